"""What security advisories name, and which clusters run it.

Three forms are read: CSAF 2.0, as NVIDIA publishes its bulletins, OSV, and a short one of our own (docs/upgrades.md).
Bulletins write versions in words ("All driver versions prior to 570.172.08"), call parts by many names
(catalog/data/advisories.yaml), and mend drivers branch by branch: 550.163.01 is a good one although it is less than
570.133.20, which is the first good one of another branch. So a bound in a driver's own branch decides alone.
"""

import functools
import operator
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..catalog import _data, _versions, drivers, releases
from ..cluster.resolve import Cluster
from ..model import Finding, InputError, Location, few
from ..policy.language import images
from ..text.read import read

Entry = tuple[str, str, list[str], list[str], str, bool]
"""What a form says: the vulnerability, a name, versions in words, the versions that mend it, a digest, and whether
nobody knows yet that these versions are affected."""
Bounds = list[tuple[str, str]]
_TERM = re.compile(r"(>=|<=|<|>|==?)\s*v?(\d[\w.+~-]*)")
_NUMBER = r"v?(\d+(?:\.\d+)*)"
_EARLY = re.compile(r"[-.~]?(?:rc|alpha|beta|dev)[\w.-]*$")
_PURL = re.compile(r"pkg:[^@?#]*/([^/@?#]+)(?:@([^?#]+))?(?:.*[?&]tag=([^&#]+))?")
_DIGEST = re.compile(r"sha256(?::|%3[aA])([0-9a-f]{64})")
BY_BRANCH = ("driver", "vgpu", "vgpu-manager")
MACHINES = ("vgpu", "vfio", "sandbox", "kata", "cc")
"""Sections that run with `sandboxWorkloads` alone."""
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
RULE = "GPU089"
Facts = dict[str, Any]


class Named(NamedTuple):
    """What the vulnerability ID is in: a COMPONENT of advisories.yaml, in one of RANGES until FIXED; or an image of the
    DIGEST. Without either, NAME is no part of the stack. The advisory speaks of BRANCHES; DOUBT: it isn't sure."""

    id: str
    name: str
    component: str
    ranges: list[list[tuple[str, str]]]
    fixed: list[str]
    digest: str
    branches: frozenset[int] = frozenset()
    doubt: bool = False


def component_of(name: str) -> str:
    """The part of the stack that an advisory calls NAME; "" where it isn't one."""
    plain = name.lower().partition("@")[0].rpartition("/")[2].strip().removeprefix("nvidia ")
    plain = re.sub(r"(?:(driver|drivers)-\d{3}(?:-\w+)*|\s+v?\d[\w.+-]*)$", r"\1", plain)  # of Debian; with a version
    return next((key for key, known in _data.load("advisories").items() if plain in (key, *known["names"])), "")


@functools.cache
def key_of(version: str) -> tuple[int, ...]:
    """VERSION to compare by: 1.17 is 1.17.0. ValueError where it isn't one, or one before the version it names."""
    if re.search(r"-(?:rc|alpha|beta|dev)", version):
        raise ValueError(f"{version[:40]!r} comes before a version")
    return (*_versions.key(version), 0, 0, 0, 0)[:5]


@functools.cache
def ranges(text: str) -> list[Bounds]:
    """What TEXT says of versions, any of which it means: `vers:generic/>=1|<2|>=3|<4`, `<1.2 || >=2 <2.1`, or one of
    what `bounds` reads. What comes before a version stands for it, and alone for none: no part runs one. ValueError."""
    if "||" in text:
        return [each for part in text.split("||") for each in ranges(part.strip())]
    listed = [part.strip() for part in text.partition("/")[2].split("|")] if text.startswith("vers:") else []
    terms = [(">=", "0") if part == "*" else bounds(part)[0] for part in listed if part] or bounds(text)
    made = list[Bounds]()
    for sign, said in terms:
        version, early = _EARLY.sub("", said), bool(_EARLY.search(said))
        if early and sign[0] == "=":
            continue
        term = ({"<=": "<", ">": ">="}.get(sign, sign) if early else sign, version)
        pair = len(terms) == 2 and not listed  # two go together, in either order
        if made and len(made[-1]) == 1 and (pair or (sign[0] == "<" and made[-1][0][0][0] == ">")):
            made[-1].append(term)
        else:
            made.append([term])
    return made


def bounds(text: str) -> Bounds:
    """What TEXT says of versions, all of which holds: `>=570.0 <570.158`, or words of a bulletin. ValueError."""
    if terms := _TERM.findall(text):
        if _TERM.sub("", text).strip(" ,&") or "!=" in text:
            raise ValueError(f"{text[:60]!r} is not a range of versions")
        return terms
    rows = [(row["signs"], row["pattern"].replace("VERSION", _NUMBER)) for row in _data.load("advisory-words")["words"]]
    said = [(signs, match) for signs, row in rows if (match := re.search(row, text, re.IGNORECASE))]
    if said:
        signs, match = min(said, key=lambda each: each[1].start())
        return list(zip(signs, match.groups(), strict=True))
    everything, match = "all" in text.lower(), re.match(r"v?(\d[\w.+~-]*)", text.strip())
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
        sorts: dict[str, list[list[tuple[str, tuple[int, ...]]]]] = {"mine": [], "bare": [], "others": []}
        for one in ranges:
            ends = any(sign[0] == "<" for sign, _ in one)  # the end of another branch
            begins = any(sign[0] == ">" and any(bound) for sign, bound in one)
            mine = any(bound[0] == have[0] for _, bound in one)
            sorts["mine" if mine else "bare" if ends and not begins else "others"].append(one)
        silent = have[0] not in named.branches and any(have < bound for one in sorts["bare"] for _, bound in one)
        silent = silent or (version.isdecimal() and bool(sorts["mine"] or fixed))
        ranges = [*sorts["mine"], *sorts["others"]]
    holds = any(all(SIGNS.get(sign, operator.eq)(have, bound) for sign, bound in one) for one in ranges)
    good = any(bound <= have for bound in fixed) if named.component in BY_BRANCH else have in fixed
    return None if silent or (named.doubt and holds and not good) else holds and not good


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
        for vulnerability, name, texts, fixed, digest, doubt in form(data):
            part = component_of(name)
            known = [one for text in texts for one in ranges(text)] if part else []
            good = [_EARLY.sub("", each) for each in fixed] if part else []
            named.append(Named(str(vulnerability), str(name), part, known, good, str(digest), doubt=doubt))
        spoken: dict[str, set[int]] = {}
        for each in named:
            told = (*(bound for one in each.ranges for _, bound in one), *each.fixed)
            spoken.setdefault(each.component, set()).update(key_of(version)[0] for version in told)
        name = data["document"]["tracking"]["id"] if form is _csaf else data["id"]
        return str(name), [each._replace(branches=frozenset(spoken[each.component])) for each in named]
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what, why = f"{path.name} is not an advisory that can be read", str(error)[:120]
        why = why if isinstance(error, ValueError) else f"{type(error).__name__}: {why}"
        remedy = "bring CSAF 2.0, OSV, or the form in gpustack's docs/upgrades.md"
        raise InputError.of("GPU084", what, location=Location(path.name), why=why, remedy=remedy) from None


def _csaf(data: dict[str, Any]) -> Iterator[Entry]:
    products = dict(_products(data["product_tree"]))
    for one in data["product_tree"].get("relationships", []):
        windows = products.get(one.get("relates_to_product_reference"), one) is None
        products[one["full_product_name"]["product_id"]] = None if windows else products.get(one["product_reference"])
    for one in data["vulnerabilities"]:
        said: dict[str, dict[str, list[str]]] = {}
        name_of = one.get("cve") or next((each["text"] for each in one.get("ids", [])), "?")
        for status, ids in one.get("product_status", {}).items():
            for product in filter(None, map(products.get, ids)):
                bad = status in ("known_affected", "first_affected", "last_affected", "under_investigation")
                if bad and product.digest:
                    yield name_of, product.image, [], [], product.digest, status == "under_investigation"
                elif not product.digest or not bad:
                    said.setdefault(product.name, {}).setdefault(status, []).append(product.text)
        for name, by in said.items():
            every = by.get("fixed", []) + by.get("first_fixed", [])
            fixed = [match for text in every for match in re.findall(r"\d+(?:\.\d+)+", text)[:1]]
            first, last = (by.get(status, []) for status in ("first_affected", "last_affected"))
            events = [*(("introduced", each) for each in first), *(("last_affected", each) for each in last)]
            sure = by.get("known_affected", []) + (_spans(events) if first else [f"<={each}" for each in last])
            yield from ((name_of, name, sure, fixed, "", False),) if sure else ()
            doubted = by.get("under_investigation", [])
            yield from ((name_of, name, doubted, fixed, "", True),) if doubted else ()


class Product(NamedTuple):
    """A product of CSAF: the NAME of its component, its versions as TEXT, the DIGEST, and the IMAGE that has it."""

    name: str
    text: str
    digest: str
    image: str


def _products(tree: dict[str, Any]) -> Iterator[tuple[str, Product | None]]:
    """The products of TREE by their ids; None for those of Windows."""
    waiting: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [([], {"branches": tree.get("branches", [])})]
    waiting += [([], {"name": one["name"], "product": one}) for one in tree.get("full_product_names", [])]
    while waiting:
        above, branch = waiting.pop()
        path = [*above, branch] if "name" in branch else above
        waiting += [(path, one) for one in branch.get("branches", [])]
        if "product" in branch:
            product, names = branch["product"], [one["name"] for one in path]
            windows = any("windows" in name.lower() for name in (*names, product["name"]))
            yield product["product_id"], None if windows else _product(product, path, names)


def _product(product: dict[str, Any], path: list[dict[str, Any]], names: list[str]) -> Product:
    """PRODUCT below the branches PATH, which have NAMES. NVIDIA's trees have the product in the last branch, and the
    versions in its name; others have a branch for the versions, or tell both by an identifier."""
    helper = product.get("product_identification_helper", {})
    purl = _PURL.match(" ".join(helper.get("purls", [helper.get("purl", "")])))
    cpe = re.sub(r"^cpe:(?:2\.3:|/)", "", helper.get("cpe", "")).split(":")
    hashes = [
        one["value"] for each in helper.get("hashes", []) for one in each["file_hashes"] if len(one["value"]) == 64
    ]
    match = _DIGEST.search(purl[0] if purl else "")
    digest = match[1] if match else hashes[0] if hashes and (purl is None or "pkg:oci" in purl[0]) else ""
    called = [*names, product["name"], purl[1] if purl else "", cpe[2].replace("_", " ") if len(cpe) > 2 else ""]
    known = [name for name in called if component_of(name)]
    texts = [one["name"] for one in path if one.get("category", "").startswith("product_version")][-1:]
    texts = [product["name"] if component_of(names[-1]) else (texts or names[-1:])[0]]
    told = re.search(r"\sv?(\d[\w.+-]*)$", product["name"])
    texts += [told[1] if told else "", (purl and (purl[3] or purl[2])) or "", cpe[3] if len(cpe) > 3 else ""]
    text = next((each for each in texts if _readable(each)), texts[0])
    name = known[-1] if known else " ".join(names)
    return Product(name, text, f"sha256:{digest}" if digest else "", purl[1] if purl else name)


def _readable(text: str) -> bool:
    """Whether TEXT says something of versions."""
    try:
        return bool(ranges(text))
    except ValueError:
        return False


def _spans(events: Iterable[tuple[str, str]]) -> list[str]:
    """The ranges that EVENTS of OSV make, in whatever order they are. ValueError for an end without a beginning."""
    made, low = list[str](), ""
    known = [(key_of(_EARLY.sub("", said)), how != "introduced", how, said) for how, said in events if how != "limit"]
    for _, ends, how, said in sorted(known):
        if ends and not low:
            raise ValueError(f"{said[:40]!r} ends what doesn't begin")
        made += [f"{low} {'<' if how == 'fixed' else '<='}{said}"] if ends else []
        low = "" if ends else low or f">={said}"
    return [*made, low] if low else made


def _osv(data: dict[str, Any]) -> Iterator[Entry]:
    if data.get("withdrawn"):
        raise ValueError(f"it was withdrawn on {data['withdrawn']}")
    for one in data["affected"]:
        texts, fixed = [f"=={version}" for version in one.get("versions", [])], list[str]()
        for each in (each for each in one.get("ranges", []) if each["type"] != "GIT"):
            events = [event for said in each["events"] for event in said.items()]
            texts += _spans(events)
            fixed += [said for how, said in events if how == "fixed"]
        # Of commits alone no version can be told.
        yield data["id"], one["package"]["name"], texts or [">=0"], fixed, "", not texts


def _own(data: dict[str, Any]) -> Iterator[Entry]:
    for one in data["affected"]:
        name = one.get("component") or one["image"]
        texts, fixed = one.get("versions", []), data.get("fixed", {}).get(name, [])
        yield data["id"], name, _versions_of(texts), _versions_of(fixed), one.get("digest", ""), False


def _versions_of(said: Any) -> list[str]:
    """The versions that SAID lists, or is one of. Raises ValueError for numbers: YAML makes 580.1 of 580.10."""
    listed = list(said) if isinstance(said, list) else [said]
    if number := next((each for each in listed if isinstance(each, int | float)), None):
        raise ValueError(f"{number} is a number: write versions in quotes")
    return [str(each) for each in listed]


def running(cluster: Cluster, references: Collection[str]) -> Iterator[tuple[str, str, str, list[str]]]:
    """What runs in CLUSTER, whose objects name the images REFERENCES: component, version ("" where nothing says it),
    the path that says it, and the pools where it is a driver."""
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
    REFERENCES are the images that its objects name, with their digests, "" where nothing says it."""
    for part, version, path, pools in running(cluster, references):
        of_part = [each for each in named if each.component == part]
        found = ((each.id, affects(each, version)) for each in of_part)
        verdicts = dict(sorted(found, key=lambda one: one[1] or 0))
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
    A driver of VERSION's branch where one is listed."""
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
