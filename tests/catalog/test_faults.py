"""Known faults, the container toolkit's images, and the life cycle of releases."""

from __future__ import annotations

import datetime

import pytest

from gpustack.catalog import _versions, faults, gpus, oses, platforms, releases, toolkit

WHERE = {
    "platforms",
    "systems",
    "selinux",
    "host_driver",
    "runtime",
    "mig",
    "products",
    "gds",
    "rdma",
    "releases",
    "kernel",
}


@pytest.mark.parametrize("fault", faults.faults(), ids=lambda fault: fault.name)
def test_faults_are_sound(fault: faults.Fault) -> None:
    """A fault names a component that has an image, versions that can be read, and conditions and names that exist."""
    assert fault.component in releases.release(releases.latest()).images
    assert _versions.satisfies("v0.0.0", fault.versions) in {True, False}
    assert fault.what
    assert fault.use
    assert fault.severity in {"error", "warning", "note"}
    assert fault.where.keys() <= WHERE
    assert {*fault.where.get("platforms", ())} <= {*platforms.names()}
    assert {*fault.where.get("products", ())} <= {gpus.product(name).driver for name in gpus.products()}
    assert all(system.rstrip("0123456789") in oses.os_ids() for system in fault.where.get("systems", ()))


@pytest.mark.parametrize(
    ("component", "version", "names"),
    [
        ("toolkit", "v1.18.0", ["toolkit-1.18-k0s", "toolkit-1.18.0-imports"]),
        ("toolkit", "v1.17.0-ubuntu20.04", ["toolkit-1.17.0-k3s", "toolkit-1.17-k0s"]),
        ("toolkit", "v1.20.0", []),
        ("devicePlugin", "v0.19.0", ["plugin-0.19-features"]),
        ("devicePlugin", "v0.19.3", []),
        ("driver", "570.124.06", ["driver-570-mixed-mig", "driver-peermem-64k"]),
        ("driver", "570.158.01", ["driver-570-mixed-mig", "driver-peermem-64k"]),
        ("driver", "570.172.08", ["driver-peermem-64k"]),
        ("driver", "580", []),
        ("driver", "latest", []),
        ("toolkit", "sha256:1" + "0" * 63, []),
    ],
)
def test_versions_with_a_fault(component: str, version: str, names: list[str]) -> None:
    """Both ends of a range of faults.yaml have the fault, their neighbours don't."""
    assert [fault.name for fault in faults.faults_of(component, version)] == names


@pytest.mark.parametrize(
    ("name", "deprecated", "ended"),
    [
        ("v25.10.0", "2026-03-18", "2026-08-20"),
        ("v26.3.3", "2026-08-20", None),
        ("v26.7.0", None, None),
    ],
)
@pytest.mark.usefixtures("as_of_v26_7")
def test_life_cycles(name: str, deprecated: str | None, ended: str | None) -> None:
    """The docs of v26.7: that line is supported, 26.3 deprecated, 25.10 ended; dates are those of the next lines."""
    found = releases.life_cycle(name)
    assert (found.deprecated and str(found.deprecated), found.ended and str(found.ended)) == (deprecated, ended)


@pytest.mark.usefixtures("as_of_v26_7")
def test_upgrades_go_line_by_line() -> None:
    """The newest patch of the own line, then of each next one."""
    assert releases.steps("v25.10.0") == ["v25.10.1", "v26.3.3", "v26.7.0"]
    assert releases.steps("v26.3.3") == ["v26.7.0"]
    assert releases.steps(releases.latest()) == []
    assert datetime.date.fromisoformat(releases.release("v26.3.0").date) == releases.life_cycle("v25.10.1").deprecated


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("v1.17.8-ubuntu20.04", ("v1.17.8", "ubuntu20.04")),
        ("1.14.6-centos7", ("1.14.6", "centos7")),
        ("v1.20.0", None),
        ("v1.20.0-rc.1", None),
        ("sha256:" + "0" * 64, None),
        ("", None),
    ],
)
def test_suffix_of_a_toolkit_tag(tag: str, parts: tuple[str, str] | None) -> None:
    """What follows the version is the system that the image was made from, but for release candidates."""
    assert toolkit.suffix(tag) == parts


def test_toolkit_tags() -> None:
    """CentOS 7 ended with v1.14, the other suffixes with v1.17; of unknown ones nothing is said."""
    assert [toolkit.has_tag(version, "centos7") for version in ("v1.14.6", "v1.15.0")] == [True, False]
    assert [toolkit.has_tag(version, "ubi8") for version in ("v1.17.8", "v1.18.0")] == [True, False]
    assert toolkit.has_tag("v1.17.8", "alpine") is None
    assert [toolkit.runs_on_ancient(tag) for tag in ("v1.14.6-centos7", "v1.20.0", "latest")] == [True, False, None]


@pytest.mark.parametrize("name", releases.names())
def test_releases_name_tags_that_exist(name: str) -> None:
    """The toolkit of a release has a tag without suffix, and runs on no ancient system."""
    version = releases.release(name).image("toolkit").version or ""
    assert toolkit.suffix(version) is None
    assert toolkit.runs_on_ancient(version) is False
