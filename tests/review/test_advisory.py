"""What an advisory names: its three forms, versions in words and in ranges, drivers by branch; and hostile files.

Sentences are those of NVIDIA's bulletins (NVIDIA/product-security, product_tree of 5312, 5630, 5659, 5821 and 5857).
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustack.model import InputError
from gpustack.review.advisory import Named, advisory, affects, component_of, mends, ranges

PATCHES = st.tuples(st.integers(0, 220), st.integers(0, 30))


def named(*texts: str, part: str = "container-toolkit", fixed: tuple[str, ...] = ()) -> Named:
    """A vulnerability in PART in the versions of TEXTS, in an advisory that names nothing else."""
    known = [one for text in texts for one in ranges(text)]
    spoken = {int(bound.partition(".")[0]) for one in known for _, bound in one} | {
        int(each[:3]) for each in fixed if part == "driver"
    }
    return Named("CVE-1", part, part, known, list(fixed), "", frozenset(spoken))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("All versions prior to 1.17.8", "v1.17.7", "v1.17.8"),
        ("All versions up to and including 1.17.7 (CDI mode only for versions prior to 1.17.5)", "1.17.7", "1.17.8"),
        ("0.0  to 4.5.2", "4.5.2", "4.5.3"),
        ("1.17.4(All versions prior to and including the March release)", "1.17.4", "1.17.5"),
        ("1.17.4", "v1.17.4", "v1.17.3"),
        (">=1.16 <1.17.8", "1.16.0", "1.15.9"),
        ("vers:semver/>=1.16|<1.17.8", "1.17.7", "1.17.8"),
        ("<=1.17", "1.17.0", "1.17.1"),
        ("vers:semver/>=1.10|<1.12|>=1.16|<1.17.8", "1.11.9", "1.13.0"),
        ("vers:generic/1.17.4|1.17.6", "1.17.6", "1.17.5"),
        ("vers:generic/*", "0.1", ""),
        (">=1.10 <1.12 || >=1.16 <1.17.8", "1.17.7", "1.15.0"),
        ("<1.17.8, >=1.16", "1.16.0", "1.18.0"),
        (">=1.10, <1.12, >=1.16, <1.17.8", "1.10.0", "1.12.0"),
        ("1.17.7 and earlier", "1.16.0", "1.17.8"),
        ("1.17.7 and all prior versions", "1.16.0", "1.17.8"),
        ("versions 1.16.0 or later", "1.17.0", "1.15.9"),
        ("all versions up to but not including 1.17.8", "1.17.7", "1.17.8"),
        ("versions earlier than 1.17.8", "1.17.7", "1.17.8"),
        ("1.16.0 through 1.17.7", "1.17.7", "1.15.9"),
        ("from 1.16.0 before 1.17.8", "1.16.0", "1.15.9"),
        ("<=1.17.8-rc.2", "1.17.7", "1.17.8"),
        (">=1.17.0-rc.1 <1.17.8", "1.17.0", "1.16.9"),
        ("All versions", "0.1", ""),
    ],
)
def test_versions_in_words(text: str, inside: str, outside: str) -> None:
    """What bulletins write of versions is read as people mean it; a tag's v and its zeros don't count."""
    assert affects(named(text), inside) is True
    assert not outside or affects(named(text), outside) is False


def test_the_part_of_a_tag() -> None:
    """The exporter's own version is the second in its tag; a candidate of a version is not that version."""
    bad = named("<=4.8.2", part="dcgm-exporter", fixed=("4.8.2",))
    assert affects(bad, "4.5.2-4.8.1-distroless") is True
    assert affects(bad, "4.5.3-4.8.2-distroless") is False
    assert affects(named("<1.17.8"), "v1.17.8-rc.1") is None


BULLETIN = ("All driver versions prior to 595.71.05", "All driver versions prior to 580.159.03")


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("595.58.03", True),
        ("580.126.20", True),
        ("580.159.03", False),  # less than 595.71.05, and mended
        ("610.57.04", False),  # newer than all
        ("590.48.01", None),  # the bulletin says nothing of the branch
        ("570.211.01", None),
        ("580", None),  # a precompiled driver, whose patch nobody knows
        ("", None),
    ],
)
def test_drivers_by_branch(version: str, verdict: bool | None) -> None:
    """A driver is judged by the bound of its branch alone; what the bulletin says nothing of can't be told."""
    assert affects(named(*BULLETIN, part="driver", fixed=("595.71.05", "580.159.03")), version) is verdict


def test_all_drivers() -> None:
    """Where all versions are named, or a range goes over branches, every branch is meant, less what is mended in it."""
    assert affects(named("All versions", part="driver"), "610.57.04") is True
    over = named(">=550 <580.159.03", part="driver", fixed=("570.211.01",))
    verdicts = [affects(over, version) for version in ("565.57.01", "570.195.03", "570.211.01", "545.10.01")]
    assert verdicts == [True, True, False, False]


def test_a_branch_of_which_another_vulnerability_speaks() -> None:
    """A branch that an advisory names elsewhere is not affected by what doesn't name it."""
    one = named("<580.159.03", part="driver")._replace(branches=frozenset({580, 535}))
    assert (affects(one, "535.309.01"), affects(one, "570.211.01")) == (False, None)


@given(PATCHES, PATCHES, st.integers(450, 620))
def test_a_bound_is_of_its_branch(have: tuple[int, int], bound: tuple[int, int], branch: int) -> None:
    """In the branch of a bound the patch decides, whatever an advisory says of other branches."""
    version, limit = (f"{branch}.{one}.{two:02}" for one, two in (have, bound))
    others = [f"<{branch + 5}.100.01", f"<{branch - 5}.100.01"]
    alone, among = named(f"<{limit}", part="driver"), named(others[0], f"<{limit}", others[1], part="driver")
    assert affects(alone, version) is affects(among, version) is (have < bound)


@given(PATCHES, PATCHES, PATCHES)
def test_ranges(have: tuple[int, int], low: tuple[int, int], high: tuple[int, int]) -> None:
    """A range holds what is neither before its beginning nor at or after its end."""
    version, first, last = ("1.{}.{}".format(*each) for each in (have, low, high))
    assert affects(named(f">={first} <{last}"), version) is (low <= have < high)


@given(PATCHES, st.lists(PATCHES, min_size=1, max_size=4))
def test_what_mends_is_good(have: tuple[int, int], fixed: list[tuple[int, int]]) -> None:
    """The version to go to is none that is affected, and newer."""
    versions = tuple("1.{}.{}".format(*each) for each in fixed)
    bad = named(f"<{versions[0]}", fixed=versions)
    to = mends([bad], "1.{}.{}".format(*have))
    assert not to or (affects(bad, to) is False and tuple(map(int, to.split(".")[1:])) > have)


def csaf(*products: tuple[str, str, str]) -> dict[str, Any]:
    """An advisory of our own making in the way of NVIDIA's: systems and branches, products in them, versions in words.

    PRODUCTS: architecture, product, version; the last of each product is mended.
    """
    branches = [
        {"category": "architecture", "name": where, "branches": [
            {"category": "product_version", "name": name, "product": {"name": text, "product_id": f"p{index}"}}
        ]}
        for index, (where, name, text) in enumerate(products)
    ]  # fmt: skip
    ids = [f"p{index}" for index in range(len(products))]
    return {
        "document": {"tracking": {"id": "T-1"}},
        "product_tree": {"branches": [{"category": "vendor", "name": "NVIDIA", "branches": branches}]},
        "vulnerabilities": [{"cve": "CVE-1", "product_status": {"known_affected": ids[:-1], "fixed": ids[-1:]}}],
    }


def read(folder: Path, data: Any) -> tuple[str, list[Named]]:
    """DATA as an advisory in a file of FOLDER."""
    (folder / "a.json").write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return advisory(folder / "a.json")


def test_csaf(tmp_path: Path) -> None:
    """Products are known by the names in their branches, those for Windows are left out, and what mends is of them."""
    words = "All driver versions prior to 580.159.03"
    data = csaf(
        ("Linux(R580)", "Tesla", words), ("Windows(R580)", "Tesla", "<582.16"), ("Linux(R580)", "Tesla", "580.159.03")
    )
    name, found = read(tmp_path, data)
    (one,) = found
    assert (name, one.id, one.component, one.fixed) == ("T-1", "CVE-1", "driver", ["580.159.03"])
    assert (affects(one, "580.126.20"), one.branches) == (True, frozenset({580}))


def test_csaf_as_others_write_it(tmp_path: Path) -> None:
    """The product above its versions, products of relationships, images by digest in a package URL."""
    digest = "0" * 64
    tree = {
        "branches": [{"name": "NVIDIA Container Toolkit", "branches": [
            {"category": "product_version_range", "name": "vers:semver/>=1.10|<1.17.8",
             "product": {"name": "NVIDIA Container Toolkit before 1.17.8", "product_id": "a"}}]}],
        "full_product_names": [{"name": "DCGM 4.5.2", "product_id": "b", "product_identification_helper": {
            "purl": f"pkg:oci/dcgm@sha256%3A{digest}"}}],
        "relationships": [{"product_reference": "a", "full_product_name": {"product_id": "c"}}],
    }  # fmt: skip
    status = {"known_affected": ["b", "c"], "under_investigation": ["a"]}
    vulnerabilities = [{"cve": "CVE-2", "product_status": status}]
    _, found = read(
        tmp_path, {"document": {"tracking": {"id": "T"}}, "product_tree": tree, "vulnerabilities": vulnerabilities}
    )
    by_digest, toolkit, doubted = found
    assert by_digest.digest == f"sha256:{digest}"
    assert (toolkit.component, affects(toolkit, "v1.17.7"), affects(toolkit, "v1.9.0")) == (
        "container-toolkit",
        True,
        False,
    )
    assert (doubted.doubt, affects(doubted, "v1.17.7"), affects(doubted, "v1.9.0")) == (True, None, False)


def test_osv(tmp_path: Path) -> None:
    """Events make ranges, versions stand for themselves, and a Go module is known by its last part."""
    events = [{"introduced": "0.14.0"}, {"fixed": "0.17.3"}, {"introduced": "0.18.0"}, {"last_affected": "0.18.1"}]
    package = {"ecosystem": "Go", "name": "github.com/NVIDIA/k8s-device-plugin"}
    affected = [{"package": package, "ranges": [{"type": "SEMVER", "events": events}], "versions": ["0.13.1"]}]
    _, (one,) = read(tmp_path, {"id": "GHSA-1", "affected": affected})
    told = {
        version: affects(one, version) for version in ("v0.13.0", "v0.13.1", "v0.17.2", "v0.17.3", "v0.18.1", "v0.18.2")
    }
    assert [version for version, verdict in told.items() if verdict] == ["v0.13.1", "v0.17.2", "v0.18.1"]
    assert (one.component, mends([one], "v0.16.0")) == ("k8s-device-plugin", "0.17.3")


def product(name: str = "x", **helper: Any) -> dict[str, Any]:
    """A product with an identifier."""
    return {"name": name, "product_id": "p", "product_identification_helper": helper}


def branch(category: str, name: str, *below: Any) -> dict[str, Any]:
    """A branch with those BELOW it, or with a product."""
    below = below or (product(),)
    return {
        "category": category,
        "name": name,
        **({"branches": below} if "category" in below[0] else {"product": below[0]}),
    }


def within(*versions: Any, name: str = "NVIDIA Container Toolkit") -> dict[str, Any]:
    """A tree of a product and VERSIONS of it."""
    return {"branches": [branch("vendor", "NVIDIA", branch("product_name", name, *versions))]}


VERSION, RANGE, TOOLKIT = (
    "product_version",
    "product_version_range",
    "pkg:golang/github.com/NVIDIA/nvidia-container-toolkit",
)
LINUX, WINDOWS = ({"name": each, "product_id": each} for each in ("Ubuntu Linux", "Windows Server"))
OF_CSAF: dict[str, tuple[Any, dict[str, list[str]], str | None, str | None]] = {
    "a range of several parts": (
        within(branch(RANGE, "vers:generic/>=1.10|<1.12|>=1.16|<1.17.8")), {}, "1.17.7", "1.13.0"
    ),
    "the architecture below the version": (
        within(branch(VERSION, "1.17.7", branch("architecture", "x86_64"))), {}, "1.17.7", "1.17.6"
    ),
    "versions in words": (within(branch(RANGE, "1.17.7 and earlier")), {}, "1.16.0", "1.17.8"),
    "a whole name": ({"full_product_names": [product("NVIDIA Container Toolkit 1.17.7")]}, {}, "1.17.7", "1.17.8"),
    "a package URL": ({"full_product_names": [product("x", purl=f"{TOOLKIT}@v1.17.7")]}, {}, "1.17.7", "1.17.8"),
    "a tag in a package URL": (
        {"full_product_names": [product("x", purl="pkg:oci/container-toolkit?repository_url=a.b/c&tag=v1.17.7")]},
        {}, "1.17.7", "1.17.8",
    ),
    "a CPE of 2.3": (
        {"full_product_names": [product("x", cpe="cpe:2.3:a:nvidia:container_toolkit:1.17.7:*:*:*:*:*:*:*")]},
        {}, "1.17.7", "1.17.8",
    ),
    "a CPE of 2.2": (
        {"full_product_names": [product("x", cpe="cpe:/a:nvidia:container_toolkit:1.17.7")]}, {}, "1.17.7", "1.16"
    ),
    "from the first to the last": (
        within(branch(VERSION, "1.16.0", {**product(), "product_id": "a"}), branch(VERSION, "1.17.7")),
        {"first_affected": ["a"], "last_affected": ["p"]}, "1.17.0", "1.15.0",
    ),
    "from the first on": (within(branch(VERSION, "1.16.0")), {"first_affected": ["p"]}, "1.18.0", "1.15.0"),
    "up to the last": (within(branch(VERSION, "1.17.7")), {"last_affected": ["p"]}, "1.2.0", "1.17.8"),
    "of what is looked into": (within(branch(VERSION, "1.17.7")), {"under_investigation": ["p"]}, None, "1.17.8"),
    "on Linux": (
        {**within(branch(VERSION, "1.17.7")), "full_product_names": [LINUX, WINDOWS], "relationships": [
            {"category": "installed_on", "product_reference": "p", "relates_to_product_reference": "Ubuntu Linux",
             "full_product_name": {"product_id": "q", "name": "both"}}]},
        {"known_affected": ["q"]}, "1.17.7", "1.17.8",
    ),
    "mended, and not affected": (
        within(branch(RANGE, "<1.17.8"), branch(VERSION, "1.17.5", {**product(), "product_id": "a"})),
        {"known_affected": ["p"], "fixed": ["a"], "known_not_affected": ["z"]}, "1.17.4", "1.17.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_CSAF)
def test_forms_of_csaf(tmp_path: Path, name: str) -> None:
    """Trees, identifiers and statuses as CSAF 2.0 (3.1.2, 3.1.3, 3.2.2, 3.2.3.9) has them, with what is affected."""
    tree, status, bad, good = OF_CSAF[name]
    vulnerabilities = [
        {"ids": [{"system_name": "x", "text": "V-1"}], "product_status": status or {"known_affected": ["p"]}}
    ]
    document = {"tracking": {"id": "T"}}
    _, (one,) = read(tmp_path, {"document": document, "product_tree": tree, "vulnerabilities": vulnerabilities})
    assert (one.id, one.component) == ("V-1", "container-toolkit")
    assert affects(one, bad or "1.17.7") is (True if bad else None)
    assert affects(one, good or "") is False


def test_products_on_windows(tmp_path: Path) -> None:
    """What is affected where it is installed on Windows is none of ours, whichever way the tree says it."""
    tree = within(branch(VERSION, "1.17.7")) | {"full_product_names": [WINDOWS]}
    both = {"product_id": "q", "name": "both"}
    tree["relationships"] = [
        {
            "category": "installed_on",
            "product_reference": "p",
            "relates_to_product_reference": "Windows Server",
            "full_product_name": both,
        }
    ]
    status = {"known_affected": ["q", "Windows Server"]}
    data = {
        "document": {"tracking": {"id": "T"}},
        "product_tree": tree,
        "vulnerabilities": [{"product_status": status}],
    }
    assert read(tmp_path, data) == ("T", [])


def test_a_digest_among_hashes(tmp_path: Path) -> None:
    """An image may have its digest beside its package URL, and is known by its own name."""
    hashes = [{"filename": "x", "file_hashes": [{"algorithm": "sha256", "value": "a" * 64}]}]
    tree = {"full_product_names": [product("DCGM", purl="pkg:oci/dcgm?tag=4.5.2", hashes=hashes)]}
    vulnerabilities = [{"cve": "C", "product_status": {"known_affected": ["p"]}}]
    _, (one,) = read(
        tmp_path, {"document": {"tracking": {"id": "T"}}, "product_tree": tree, "vulnerabilities": vulnerabilities}
    )
    assert (one.name, one.digest) == ("dcgm", f"sha256:{'a' * 64}")


def events(*said: str, how: str = "SEMVER") -> dict[str, Any]:
    """A range of OSV: "introduced 1.0", "fixed 1.2", in the order that they are SAID."""
    return {"ranges": [{"type": how, "events": [dict([each.split()]) for each in said]}]}


OF_OSV: dict[str, tuple[dict[str, Any], str | None, str | None]] = {
    "from the beginning": (events("introduced 0", "fixed 1.17.8"), "0.1.0", "1.17.8"),
    "without an end": (events("introduced 1.16.0"), "1.99.0", "1.15.0"),
    "to the last": (events("introduced 0", "last_affected 1.17.7"), "1.17.7", "1.17.8"),
    "several, in any order": (
        events("fixed 1.17.8", "introduced 1.10.0", "fixed 1.12.0", "introduced 1.16.0"), "1.17.0", "1.13.0"
    ),
    "a limit": (events("introduced 0", "fixed 1.17.8", "limit *"), "1.17.7", "1.17.8"),
    "versions alone": ({"versions": ["1.17.6", "v1.17.7"]}, "1.17.7", "1.17.5"),
    "versions with candidates": ({"versions": ["1.17.8-rc.1", "1.17.7", "1.17.8-beta"]}, "1.17.7", "1.17.8"),
    "versions beside a range": (
        events("introduced 1.16.0", "fixed 1.16.2") | {"versions": ["1.14.0"]}, "1.14.0", "1.15.0"
    ),
    "a candidate that mends": (events("introduced 0", "fixed 1.17.8-rc.1"), "1.17.7", "1.17.8"),
    "commits alone": (events("introduced 0", "fixed abc", how="GIT"), None, None),
    "commits and versions": (events("introduced 0", how="GIT") | {"versions": ["1.17.7"]}, "1.17.7", "1.17.8"),
    "of an ecosystem": (events("introduced 1.16.0-1", "fixed 1.17.8-1", how="ECOSYSTEM"), "1.17.7", "1.17.8"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_OSV)
def test_forms_of_osv(tmp_path: Path, name: str) -> None:
    """Ranges, versions and events as OSV's schema has them: what is affected, what isn't, and what nobody can tell."""
    said, bad, good = OF_OSV[name]
    package = {"ecosystem": "Go", "name": "github.com/NVIDIA/nvidia-container-toolkit"}
    _, (one,) = read(tmp_path, {"id": "O-1", "affected": [{"package": package, **said}]})
    assert affects(one, bad or "1.17.7") is (True if bad else None)
    assert good is None or affects(one, good) is False


def test_packages_of_a_distribution(tmp_path: Path) -> None:
    """Debian's packages of a driver are the driver, judged by branch; its revisions don't count."""
    package = {"ecosystem": "Ubuntu:24.04:LTS", "name": "nvidia-graphics-drivers-580"}
    told = events("introduced 0", "fixed 580.159.03-0ubuntu0.24.04.1", how="ECOSYSTEM")
    _, (one,) = read(tmp_path, {"id": "USN-1", "affected": [{"package": package, **told}]})
    assert (one.component, affects(one, "580.126.20"), affects(one, "580.159.03")) == ("driver", True, False)


def test_what_was_withdrawn(tmp_path: Path) -> None:
    """An advisory that its authors took back is refused as that, and nobody is called affected."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, {"id": "O-1", "withdrawn": "2026-01-02T00:00:00Z", "affected": [{"package": {"name": "dcgm"}}]})
    assert "withdrawn on 2026-01-02" in refused.value.findings[0].why


def test_our_own_form(tmp_path: Path) -> None:
    """Components by the names that policies have for them, images by digest, what mends by component."""
    file = tmp_path / "a.yaml"
    digest = "sha256:" + "1" * 64
    affected = [
        {"component": "driver", "versions": ">=570.0 <570.158.01"},
        {"image": "nvcr.io/nvidia/cloud-native/dcgm", "digest": digest},
    ]
    file.write_text(
        yaml.safe_dump({"id": "ours-1", "affected": affected, "fixed": {"driver": "570.158.01"}}), encoding="utf-8"
    )
    _, (driver, image) = advisory(file)
    assert (affects(driver, "570.133.20"), affects(driver, "570.158.01"), affects(driver, "565.57.01")) == (
        True,
        False,
        False,
    )
    assert (image.digest, mends([driver], "570.133.20")) == (digest, "570.158.01")


def test_names() -> None:
    """Parts are known by the names of bulletins, modules, images and sections; others are no part of the stack."""
    for name, part in {
        "NVIDIA Container Toolkit": "container-toolkit",
        "NVIDIA Kubernetes Device Plugin": "k8s-device-plugin",
        "devicePlugin": "k8s-device-plugin",
        "NVIDIA RTX, Quadro, NVS": "driver",
        "Virtual GPU Manager": "vgpu-manager",
        "github.com/NVIDIA/gpu-operator": "gpu-operator",
        "AIS Operator": "",
    }.items():
        assert component_of(name) == part, name


HOSTILE = {
    "no advisory": {"id": "x"},
    "a list": [1],
    "nothing affected": {"document": {"tracking": {"id": "x"}}, "product_tree": {}, "vulnerabilities": 7},
    "products that are numbers": csaf(("Linux", "Tesla", "<1")) | {"product_tree": {"branches": [5]}},
    "a version of letters": {"id": "x", "affected": [{"component": "driver", "versions": "<abc"}]},
    "a version of many digits": {"id": "x", "affected": [{"component": "driver", "versions": "<" + "9" * 9000}]},
    "a range that isn't one": {"id": "x", "affected": [{"component": "driver", "versions": "595.0 - 596"}]},
    "a range with a star": {"id": "x", "affected": [{"component": "driver", "versions": "595.*"}]},
    "a range and more": {"id": "x", "affected": [{"component": "driver", "versions": ">=595 or so"}]},
    "versions that are a map": {"id": "x", "affected": [{"component": "driver", "versions": {"a": 1}}]},
    "a fix that is a number": {
        "id": "x",
        "affected": [{"component": "driver", "versions": "<1"}],
        "fixed": {"driver": 570.1},
    },
    "an end before a beginning": {
        "id": "x",
        "affected": [{"package": {"name": "dcgm"}, "ranges": [{"type": "X", "events": [{"fixed": "1"}]}]}],
    },
    "deep": '{"a":' * 5000 + "1" + "}" * 5000,
    "no JSON": "{",
    "huge": '{"id": "' + "x" * (9 << 20) + '"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str) -> None:
    """What is no advisory, of whatever wrong types, depth or size, is refused by name, and nothing else happens."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, HOSTILE[name])
    assert all("a.json" in f"{each.what} {each.location}" for each in refused.value.findings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("<>=0.19v-sha:", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "document product_tree branches name product vulnerabilities id affected component versions".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_file(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Whatever a file holds is read or refused."""
    with contextlib.suppress(InputError):
        read(tmp_path_factory.getbasetemp(), data)


@pytest.mark.parametrize("where", ["affected", "fixed"])
def test_versions_that_are_numbers_to_yaml(tmp_path: Path, where: str) -> None:
    """580.10 without quotes has lost its zero: that is told with what to do, and not read as 580.1."""
    versions = (
        {"affected": "580.10", "fixed": '"580.10"'} if where == "affected" else {"affected": "x", "fixed": "580.10"}
    )
    file = tmp_path / "a.yaml"
    file.write_text(
        f"id: x\naffected: [{{component: driver, versions: [{versions['affected']}]}}]\n"
        f"fixed: {{driver: [{versions['fixed']}]}}\n"
    )
    with pytest.raises(InputError) as refused:
        advisory(file)
    assert refused.value.findings[0].why == "580.1 is a number: write versions in quotes"
