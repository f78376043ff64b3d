"""What security advisories name, and which clusters run it.

Three forms are read: CSAF 2.0, as NVIDIA publishes its bulletins, OSV, and a short one of our own (docs/upgrades.md).
Bulletins write versions in words ("All driver versions prior to 570.172.08"), call parts by many names
(catalog/data/advisories.yaml), and mend drivers branch by branch: 550.163.01 is a good one although it is less than
570.133.20, which is the first good one of another branch. So a bound in a driver's own branch decides alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..catalog import _data, _versions, drivers, releases
from ..cluster.resolve import Cluster
from ..model import Finding, InputError, Location, few
from ..policy.language import images
from ..text.read import read

Entry = tuple[str, str, list[str], list[str], str]
"""What a form says: the vulnerability, a name, versions in words, the versions that mend it, and a digest."""
_TERM = re.compile(r"(>=|<=|<|>|==?)\s*v?(\d[\w.+-]*)")
_WORDS = re.compile(r"(prior to|before|including|up to|through|\bto)\s+v?(\d[\d.]*)", re.IGNORECASE)
_DIGEST = re.compile(r"sha256(?::|%3[aA])([0-9a-f]{64})")
BY_BRANCH = ("driver", "vgpu", "vgpu-manager")
MACHINES = ("vgpu", "vfio", "sandbox", "kata", "cc")
"""Sections that run with `sandboxWorkloads` alone."""
RULE = "GPU089"
Facts = dict[str, Any]


class Named(NamedTuple):
    """What the vulnerability ID is in: a COMPONENT of advisories.yaml, in one of RANGES until FIXED; or an image of the
    DIGEST. Without either it is what an advisory calls NAME, and no part of the stack. The advisory speaks of BRANCHES.
    """

    id: str
    name: str
    component: str
    ranges: list[list[tuple[str, str]]]
    fixed: list[str]
    digest: str
    branches: frozenset[int] = frozenset()


def component_of(name: str) -> str:
    """The part of the stack that an advisory calls NAME; "" where it isn't one."""
    plain = name.lower().partition("@")[0].rpartition("/")[2].strip().removeprefix("nvidia ")
    return next((key for key, known in _data.load("advisories").items() if plain in (key, *known["names"])), "")


def key_of(version: str) -> tuple[int, ...]:
    """VERSION to compare by: 1.17 is 1.17.0. ValueError where it isn't one, or one before the version it names."""
    if re.search(r"-(?:rc|alpha|beta|dev)", version):
        raise ValueError(f"{version[:40]!r} comes before a version")
    return (*_versions.key(version), 0, 0, 0, 0)[:5]


def bounds(text: str) -> list[tuple[str, str]]:
    """What TEXT says of versions: `>=570.0 <570.158`, `vers:generic/>=1|<2`, or words of a bulletin. ValueError."""
    if terms := _TERM.findall(text):
        if _TERM.sub("", text.partition("/")[2] if text.startswith("vers:") else text).strip(" ,|&"):
            raise ValueError(f"{text[:60]!r} is not a range of versions")
        return terms
    if match := _WORDS.search(text):
        return [("<" if match[1].lower() in ("prior to", "before") else "<=", match[2])]
    everything, match = "all" in text.lower(), re.match(r"v?(\d[\w.+-]*)", text.strip())
    if (match is None and not everything) or re.search(r"\d\s+-\s+\d|\.\*", text):
        raise ValueError(f"{text[:60]!r} is not a version")
    return [("<=" if everything else "==", match[1])] if match else [(">=", "0")]


def affects(named: Named, version: str) -> bool | None:
    """Whether NAMED has VERSION of its component; None where that can't be told, as of a branch without a patch."""
    known = _data.load("advisories")[named.component]
    try:
        match = re.match(known["version"], version) if "version" in known else None
        have = key_of(match[1] if match else version)
    except ValueError:
        return None
    ranges = [[(sign, key_of(bound)) for sign, bound in one] for one in named.ranges]
    fixed, silent = [key_of(each) for each in named.fixed], False
    if named.component in BY_BRANCH:
        fixed = [bound for bound in fixed if bound[0] == have[0]]
        mine = [one for one in ranges if any(bound[0] == have[0] for _, bound in one)]
        others = [one for one in ranges if one not in mine]
        ends = [one for one in others if any(sign[0] == "<" for sign, _ in one)]  # the end of another branch
        bare = [one for one in ends if not any(sign[0] == ">" and any(bound) for sign, bound in one)]
        silent = have[0] not in named.branches and any(have < bound for one in bare for _, bound in one)
        silent = silent or (version.isdecimal() and bool(mine or fixed))
        ranges = [*mine, *(one for one in others if one not in bare)]
    holds = any(all(_holds(have, sign, bound) for sign, bound in one) for one in ranges)
    good = any(bound <= have for bound in fixed) if named.component in BY_BRANCH else have in fixed
    return None if silent else holds and not good


def _holds(have: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    return {"<": have < bound, "<=": have <= bound, ">": have > bound, ">=": have >= bound}.get(sign, have == bound)


def mends(named: Collection[Named], version: str) -> str:
    """The least version that NAMED are all mended in, of VERSION's branch where there is one; "" where none is told."""
    have = _versions.numbers(version)
    told = sorted({each for one in named for each in one.fixed}, key=key_of)
    good = [each for each in told if _versions.key(each) > have and not any(affects(one, each) for one in named)]
    return next((each for each in good if _versions.key(each)[:1] == have[:1]), good[0] if good else "")


def advisory(path: Path) -> tuple[str, list[Named]]:
    """The id of the advisory in the file PATH, and what it names. Raises InputError for anything else."""
    data = read(path, path.name).data
    try:
        form = _csaf if "document" in data else _osv if any("package" in one for one in data["affected"]) else _own
        named = []
        for vulnerability, name, texts, fixed, digest in form(data):
            part = component_of(name)
            ranges = [bounds(text) for text in texts] if part else []
            named.append(Named(str(vulnerability), str(name), part, ranges, fixed if part else [], str(digest)))
        spoken: dict[str, set[int]] = {}
        for each in named:
            told = (*(bound for one in each.ranges for _, bound in one), *each.fixed)
            spoken.setdefault(each.component, set()).update(key_of(version)[0] for version in told)
        name = data["document"]["tracking"]["id"] if form is _csaf else data["id"]
        return str(name), [each._replace(branches=frozenset(spoken[each.component])) for each in named]
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what, why = f"{path.name} is not an advisory that can be read", f"{type(error).__name__}: {str(error)[:120]}"
        remedy = "bring CSAF 2.0, OSV, or the form in gpustack's docs/upgrades.md"
        raise InputError.of("GPU084", what, location=Location(path.name), why=why, remedy=remedy) from None


def _csaf(data: dict[str, Any]) -> Iterator[Entry]:
    tree, products = data["product_tree"], dict[str, tuple[str, str, str]]()
    waiting: list[tuple[list[str], dict[str, Any]]] = [([], {"branches": tree.get("branches", [])})]
    waiting += [([], {"name": one["name"], "product": one}) for one in tree.get("full_product_names", [])]
    while waiting:
        above, branch = waiting.pop()
        names = [*above, branch["name"]] if "name" in branch else above
        waiting += [(names, one) for one in branch.get("branches", [])]
        if "product" in branch and not any("windows" in name.lower() for name in names):
            product = branch["product"]  # NVIDIA's tree has the product in the branch, and the version in its name
            known = [name for name in (*names, product["name"]) if component_of(name)]
            text = product["name"] if component_of(names[-1]) else names[-1]
            match = _DIGEST.search(product.get("product_identification_helper", {}).get("purl", ""))
            named = known[-1] if known else " ".join(names)
            products[product["product_id"]] = named, text, f"sha256:{match[1]}" if match else ""
    for one in tree.get("relationships", []):
        products[one["full_product_name"]["product_id"]] = products[one["product_reference"]]
    for one in data["vulnerabilities"]:
        said: dict[str, tuple[list[str], list[str]]] = {}
        for status, ids in one["product_status"].items():
            for name, text, digest in (products[each] for each in ids if each in products):
                affected, fixed = said.setdefault(name, ([], []))
                bad = status in ("known_affected", "first_affected", "last_affected")
                if bad and digest:
                    yield one.get("cve", "?"), name, [], [], digest
                affected += [text] if bad and not digest else []
                fixed += re.findall(r"\d+(?:\.\d+)+", text)[:1] if status in ("fixed", "first_fixed") else []
        yield from ((one.get("cve", "?"), name, *both, "") for name, both in said.items() if both[0])


def _osv(data: dict[str, Any]) -> Iterator[Entry]:
    for one in data["affected"]:
        texts, fixed = [f"=={version}" for version in one.get("versions", [])], list[str]()
        for event in (event for each in one.get("ranges", []) if each["type"] != "GIT" for event in each["events"]):
            if "introduced" in event:
                texts.append(f">={event['introduced']}")
            else:
                texts[-1] += f" <{event['fixed']}" if "fixed" in event else f" <={event['last_affected']}"
                fixed += [event["fixed"]] if "fixed" in event else []
        yield data["id"], one["package"]["name"], texts, fixed, ""


def _own(data: dict[str, Any]) -> Iterator[Entry]:
    for one in data["affected"]:
        name = one.get("component") or one["image"]
        texts, fixed = one.get("versions", []), data.get("fixed", {}).get(name, [])
        both = ([each] if isinstance(each, str) else list(each) for each in (texts, fixed))
        yield data["id"], name, *both, one.get("digest", "")


def running(cluster: Cluster, references: Collection[str]) -> Iterator[tuple[str, str, str, list[str]]]:
    """What runs in CLUSTER, whose objects name the images REFERENCES: component, version ("" where nothing says it),
    the path that says it, and the pools where it is a driver.
    """
    spec, drivers_of = cluster.spec, dict[tuple[str, str, str], list[str]]()
    for pool in (each for each in cluster.pools if each.workload == "container"):
        driver, key = pool.runs, ("driver", "", f"{pool.path}.driver.hostVersion")
        if driver is not None:
            version = "" if driver.digest else driver.version
            key = ("vgpu" if driver.vgpu else "driver", version, driver.paths["version"])
        drivers_of.setdefault(key, []).append(pool.name)
    yield from ((*key, pools) for key, pools in drivers_of.items())
    sections: list[tuple[str, str, str]] = []
    for path, known in releases.release(spec.release).images.items():
        section: Any = spec
        for step in path.split("."):
            section = getattr(section, step, None)
        image = images.composed(*(getattr(section, name, None) for name in ("repository", "image", "version")))
        off = path.startswith(MACHINES) and not spec.sandboxWorkloads.enabled
        if image and not off and getattr(section, "enabled", True) is not False:
            where = images.version_path(f"spec.{path}", section)
            sections.append((images.mirrored(image, spec.cluster.registryMap), known.image, where))
    for reference in sorted(references):
        said = [(part, path) for image, part, path in sections if reference.startswith(image)]
        for part, path in said or [(component_of(images.repository(reference)), "spec")]:
            if part and not (part == "driver" and cluster.pools):
                yield part, images.tag_of(reference), path, []


def hits(
    cluster: Cluster, references: Mapping[str, str], name: str, named: list[Named]
) -> Iterator[tuple[Finding, Facts]]:
    """What of CLUSTER the advisory NAME is about, which has NAMED: an error for sure, a warning where it may be.
    REFERENCES are the images that its objects name, with their digests, "" where nothing says it.
    """
    for part, version, path, pools in running(cluster, references):
        of_part = [each for each in named if each.component == part]
        verdicts = {
            each.id: affects(each, version) for each in sorted(of_part, key=lambda one: affects(one, version) or 0)
        }
        sure = [each for each, verdict in verdicts.items() if verdict]
        if ids := sure or [each for each, verdict in verdicts.items() if verdict is None]:
            put, table = in_table(of_part, cluster.spec.release, path, version)
            facts = {"advisory": name, "component": part, "version": version, "pools": pools, "ids": ids}
            facts |= {"mended": mends(of_part, version) if version else "", "put": put}
            yield _found(facts, path, table, sure=bool(sure)), facts
    for each in (one for one in named if one.digest):
        for reference, digest in references.items():
            alike = images.repository(reference).endswith(each.name.rpartition("/")[2])
            if digest == each.digest or (alike and not digest):
                facts = {"advisory": name, "component": reference, "version": digest, "pools": [], "ids": [each.id]}
                facts |= {"mended": "", "put": ""}
                yield _found(facts, "spec", "", sure=bool(digest)), facts


def _found(facts: Facts, path: str, table: str, *, sure: bool) -> Finding:
    pools = f" (node pools: {', '.join(facts['pools'])})" if facts["pools"] else ""
    mended = f"mended in {facts['mended']}" if facts["mended"] else "the advisory names no version that is mended"
    what = f"{facts['advisory']} {{}} {facts['component']} {facts['version'] or 'of no known version'}"
    if sure:
        remedy = f"{mended}; {table}" if table else mended
        why, more = "the advisory calls this version affected", f" for {few(facts['ids'], 3)}{pools}"
        return Finding(RULE, "error", what.format("names") + more, path, why=why, remedy=remedy)
    why = "nothing here says which patch or digest it is, or the advisory doesn't speak of its branch"
    return Finding(RULE, "warning", what.format("may name") + pools, path, why=why, remedy=f"see which it is: {mended}")


def in_table(named: Collection[Named], release: str, path: str, version: str) -> tuple[str, str]:
    """What RELEASE, or a newer one, has that none of NAMED is in, for VERSION of the component at PATH; and in words.
    A driver of VERSION's branch where one is listed.
    """
    if any(each.component in BY_BRANCH for each in named):
        good = [each for each in drivers.listed_versions(release) if not any(affects(one, each) for one in named)]
        good = [each for each in good if each[:3] == version[:3]] or good
        own = any(each.component != "driver" for each in named)  # vGPU: images that everybody builds
        return ("", "") if own else (good[0], f"release {release} lists {good[0]}") if good else ("", "")
    section, names = path.removeprefix("spec.").rpartition(".")[0], releases.names()
    for later in names[names.index(release) :]:
        image = releases.release(later).images.get(section)
        tag = (image.version if image else "") or ""
        if tag and not any(affects(one, tag) for one in named):
            return tag, f"release {later} brings {tag}"
    return "", "no release that is known here brings one"
