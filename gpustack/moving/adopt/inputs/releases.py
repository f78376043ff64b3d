"""Releases of the operator's chart in any document: where the chart is named, and what is said of it there.

Solves: dozens of programs install charts, and all say the same few things: version, namespace, a name, values, files of
values, single values, and objects that hold more. So one reader does for all. Values are known by what they are as well
as by the key; whatever else is said of values is told.
"""

import base64
import binascii
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from gpustack.model import Location, Path, children, dotted
from gpustack.policy.loading.foreign import is_values

from ..documents import Beside, Item
from ..installation import Leaves, Said, at, lay, walked
from .context import CHART, Context, chart_named, said_by, words
from .hcl import LONGEST
from .objects import CERTIFIED, OPERATOR
from .sets import pairs, put, typed, unknown

_ONE = re.compile(
    r"\{\{-?\s*(\w+)\s*(?:\|\s*(?:bool|int|string|lower|trim|quote|(?:to|from)_\w+|default\([^|]*\))\s*)*\}\}"
)
"""A variable of Ansible's, through filters that leave it what it is."""
_FILE = re.compile(r"[^'\"\n]*\.(?:ya?ml|json)(?:\.\w+)?|.*['\"]([^'\"\n]+\.(?:ya?ml|json|j2|tpl)(?:\.\w+)?)['\"].*")
_UNDER = re.compile(rf".*{CHART}(?:-(?:addon|config|helm-config))?")
RANKS = ("refs", "files", "values", "sets", "unread")
"""What is said of values, the stronger the later."""


def plain(key: object) -> str:
    """KEY as shapes.yaml has it: in small letters, without dashes."""
    return re.sub("[-_]", "", str(key)).lower()


def is_word(key: object, *lists: str) -> bool:
    """Whether KEY is one of the words of LISTS."""
    return any(plain(key) in words(each) for each in lists)


def releases(item: Item, path: Path = ()) -> Iterator[Item]:
    """The maps in ITEM that name the operator's chart beside its version or its values."""
    data = item.get(*path)
    if said_by(data):
        return
    if (
        isinstance(data, dict)
        and named(data, path[-1:])
        and any(is_word(each, "versions", *RANKS[:-1]) for each in data)
    ):
        yield item.part(*path)
        return
    if isinstance(data, list) and all(isinstance(each, dict) and len(each) == 1 for each in data):  # Salt's arguments
        whole = {key: each for one in data for key, each in one.items()}
        if len(whole) > 1 and any(is_word(key, "charts") and names(each) for key, each in whole.items()):
            yield replace(item.part(*path), data=whole, text="")
            return
    for step, _ in children(data):
        if isinstance(step, str | int):
            yield from releases(item, (*path, step))


def named(data: Mapping[Any, Any], under: Path) -> bool:
    """Whether DATA, which stands UNDER a key, are about the operator's chart, by what they call it or by that key."""
    if {"dependencies", "manifest"} & set(data):
        return False
    module = (
        "/" in str(data.get("source", "")) and "chart" not in data
    )  # of Terraform: its version and its name are its own
    if any(names(each) for key, each in data.items() if is_word(key, "charts") and not (module and key == "name")):
        return True
    key = str(under[0]).replace("_", "-") if under else ""
    return not module and bool(_UNDER.fullmatch(key)) and any(is_word(each, "values", "sets") for each in data)


def names(chart: Any) -> bool:
    """Whether CHART is the operator's, by its name or a section that has it."""
    if isinstance(chart, dict):
        inner = (chart.get("metadata"), chart)
        called = (str(each.get("name", each.get("refName"))) for each in inner if isinstance(each, dict))
        return any(chart_named(each) or chart_named(each.partition(".")[0]) for each in called)
    return chart_named(str(chart)) or str(chart) in OPERATOR


def sayings(data: Any, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Where DATA, which stand at PATH, say anything of values, with the rank of it. Those of a selector are others."""
    for step, each in children(data) if not (isinstance(data, dict) and {"key", "operator"} <= set(data)) else ():
        at = (*path, step)
        rank = next((rank for rank in RANKS[:-1] if is_word(step, rank)), "") if isinstance(step, str) else ""
        if not rank and re.search("[vV]alue|overrid", str(step)) and each and isinstance(each, str | list | dict):
            rank = "values" if isinstance(each, dict) and is_values(each) else "unread" if step != "valuesMerge" else ""
        if rank:
            yield rank, at
        elif not said_by(each):
            yield from sayings(each, at)


def filled_in(data: Any, known: Mapping[str, Any], pattern: re.Pattern[str] = _ONE, depth: int = 5) -> Any:
    """DATA with the variables that PATTERN finds and that are KNOWN; a text that is one alone becomes what that is.
    Each variable is filled in once, and texts that grow beyond LONGEST stay as they are."""

    @functools.cache
    def one(name: str, depth: int) -> Any:
        said = known.get(name, at(known, tuple(name.split("."))))
        return None if said is None else of(said, depth - 1)

    def of(data: Any, depth: int) -> Any:
        if isinstance(data, dict):
            return {key: of(each, depth) for key, each in data.items()}
        if isinstance(data, list):
            return [of(each, depth) for each in data]
        found = list(pattern.finditer(data)) if isinstance(data, str) and depth else []
        made = [one(next(filter(None, each.groups())), depth) for each in found]
        texts = {each[0]: each[0] if said is None else str(said) for each, said in zip(found, made, strict=True)}
        if found and found[0][0] == data.strip():
            return data if made[0] is None else made[0]
        long = sum(len(texts[each[0]]) for each in found) > LONGEST
        return data if long or not found else pattern.sub(lambda match: texts[match[0]], data)

    return of(data, depth)


def recognised(item: Item) -> bool:
    """Whether ITEM installs the operator's chart."""
    return any(True for _ in releases(item))


def read(item: Item, context: Context) -> None:
    """Read what ITEM says of the chart."""
    filled = Item(item.file, item.text, filled_in(item.data, context.variables), item.at, item.outer, item.line)
    for release in releases(filled):
        if release.get("count") == 0:
            context.installation.tell("counted off", item.file, release.where())
        context.installs(release)
        if (
            CERTIFIED in release.data.values()
            and release.at
            and not (item.text_at("kind") or context.installation.spec)
        ):
            context.installation.tell("own chart", item.file, item.where())
        above = [filled.part(*release.at[len(filled.at) : end]) for end in range(len(release.at) - len(filled.at))]
        scope, found = release, list(sayings(release.data))
        for outer in reversed(above[1:] if item.text_at("kind") else []):  # beside it, as kapp has them
            if found or (isinstance(outer.data, list) and len(outer.data) > 1):
                break
            scope, found = outer, list(sayings(outer.data))
        if not found:  # values beside the chart, as `helm get all` prints them
            found = [("values", (key,)) for key in release.data if is_values({key: None})]
        describe(release, [*(scope.part(*path[:-1]) for _, path in found), *reversed(above)], context)
        take(scope, found, context)


def describe(release: Item, around: list[Item], context: Context) -> None:
    """Take version, namespace and name of RELEASE; what it lacks perhaps stands AROUND it."""
    installation, module = context.installation, "/" in str(release.get("source") or "")
    for key, each in release.data.items():
        if is_word(key, "charts"):
            context.version(release, key, "metadata", "appVersion")
            for inner in each if isinstance(each, dict) else ():
                if is_word(inner, "versions"):
                    context.version(release, key, inner)
        if is_word(key, "versions") and not (module and key == "version"):
            context.version(release, key)
        if (archive := re.search(rf"{CHART}(?:-|&version=)(v?\d[\d.]*\d)", str(each))) and not installation.version:
            installation.version = Said(archive[1], release.where(key))
        if each == CERTIFIED:
            installation.openshift, installation.defaults = True, "operator"
            context.version(release, "channel")
    inside = [release.part("release")] if isinstance(release.get("release"), dict) else []
    beside = [each.part("destination") for each in around if isinstance(each.data, dict)]
    spaces = (first(each.data, "namespaces") for each in (release, *inside, *around, *beside, *flat(beside)))
    installation.namespace = next(filter(None, spaces), "") or installation.namespace
    called = [each for each in around if isinstance(each.data, dict) and "releaseName" in each.data]
    told = (first(each.data, "names") for each in (*inside, release, *called))
    installation.helm_release = next((each for each in told if each not in {"", CERTIFIED}), installation.helm_release)


def flat(items: list[Item]) -> Iterator[Item]:
    """The first of each list among ITEMS: a block of Terraform."""
    return (each.part(0) for each in items if isinstance(each.data, list) and each.data)


def first(data: Any, kind: str) -> str:
    """The text in DATA at the first word of KIND that they have, "" where it is a template's."""
    pairs = data.items() if isinstance(data, dict) else ()
    found = {plain(key): each.get("name") if isinstance(each, dict) else each for key, each in pairs}
    text = next((str(found[key]) for key in words(kind) if isinstance(found.get(key), str)), "")
    return "" if "{" in text else text


def take(item: Item, found: list[tuple[str, Path]], context: Context) -> None:
    """Take what ITEM says of values at FOUND, the weakest first; of kustomize `valuesMerge` says which wins."""
    order: dict[str, float] = {rank: place for place, rank in enumerate(RANKS)}
    if item.get("valuesMerge") == "merge":
        order["files"] = order["values"] + 0.5
    for rank, path in sorted(found, key=lambda each: order[each[0]]):
        part = item.part(*path)
        if rank == "refs":
            context.take(from_objects(part, context))
        elif rank == "sets":
            assign(part, context, text=path[-1] == "setString")
        elif rank == "unread":
            data = f"{path[-1]} of the release"
            context.installation.tell("not known", dotted(path), part.where(), data=data)
        elif rank == "values" and not is_word(path[-1], "values") and is_values({str(path[-1]): None}):
            context.take({(path[-1], *below): said for below, said in part.leaves().items()})
        elif rank == "values" or item.get("valuesMerge") != "replace":
            given(part, context, file=rank == "files")


def given(item: Item, context: Context, *path: str | int, file: bool = False) -> None:
    """Take the values at PATH of ITEM: a map, a text of YAML, the name of a FILE, texts of a=b, or a list of these."""
    data, part = item.get(*path), item.part(*path)
    if isinstance(data, Beside):
        context.take(context.file(part, data, words=data.words))
    elif isinstance(data, dict) and all("." in str(key) and not isinstance(each, dict) for key, each in data.items()):
        assign(part, context)
    elif isinstance(data, dict):
        context.take(
            from_objects(part, context)
            if {plain(key) for key in data} <= {"secretref", "configmapref"}
            else part.leaves()
        )
    elif isinstance(data, list):
        for index in range(len(data)):
            given(part, context, index, file=file)
    elif isinstance(data, str) and file and not data.startswith("["):
        context.take(context.file(part, data))
    elif isinstance(data, str):
        text(part, context)


def text(part: Item, context: Context) -> None:
    """Take the values in the text that PART is."""
    part.embedded()  # which says what isn't YAML
    found = [each for each in part.inner() if isinstance(each.data, dict | list)]
    for each in found:
        if isinstance(each.data, dict):
            context.undecided(each)
            context.take(each.leaves())
        else:
            given(each, context, file=True)
    if found or not part.data.strip():
        return
    if assigned := pairs(part.data) if not unknown(part.data) else []:  # as --set takes them
        for name, value in assigned:
            put(context.installation.values, name, typed(value), part.where())
    elif named := _FILE.fullmatch(part.data.strip()):
        context.take(context.file(part, named[1] or named[0].strip()))
    else:
        key = str((part.at or ("values",))[-1])
        if unknown(part.data):
            context.installation.tell("not known", key, part.where(), data=f"{part.data:.80}")
        else:
            context.installation.tell("filled in", key, part.where(), text=repr(part.data))


def assign(part: Item, context: Context, *, text: bool = False) -> None:
    """Put the single values that PART says over those that are known, as TEXT all of them or where they say so."""
    if lost := [each for each in (part.data if isinstance(part.data, list) else [part.data]) if unknown(each)]:
        context.installation.tell("not known", "set", part.where(), data=f"{lost[0]:.80}")
        return
    for name, value, whole in assigned(part.data):
        put(context.installation.values, name, value if text or whole else typed(value), part.where())


def assigned(data: Any) -> Iterator[tuple[str, Any, bool]]:
    """The names and values in DATA, and whether they stay texts: of a map, a text of a=b,c=d, or a list."""
    if isinstance(data, str):
        yield from ((*each, False) for each in pairs(data))
    elif isinstance(data, dict):
        yield from ((*each, False) for each in data.items())
    for each in data if isinstance(data, list) else ():
        whole = isinstance(each, dict) and (
            each.get("type", each.get("value_type")) == "string" or "forceString" in each
        )
        if not isinstance(each, dict):
            yield from assigned(str(each))
        elif each.get("value") is not None:  # Ansible's has name=value in it
            many = [(str(each["name"]), each["value"])] if each.get("name") else pairs(str(each["value"]))
            yield from ((*one, whole) for one in many)


def from_objects(entry: Item, context: Context, kind: str = "ConfigMap") -> Leaves:
    """The values in the ConfigMaps and Secrets that ENTRY names, of KIND where it says none."""
    leaves: Leaves = {}
    if not entry.text_at("name"):
        for step, each in children(entry.data):
            told = next((one for one in ("ConfigMap", "Secret") if one.lower() in plain(step)), kind)
            lay(leaves, from_objects(entry.part(step), context, told) if isinstance(each, dict | list) else {})
        return leaves
    kind = entry.text_at("kind") or kind
    source = context.find(kind, entry.text_at("name"))
    keys = [entry.text_at(key) for key in ("valuesKey", "key", "dataKey") if entry.text_at(key)]
    for key in keys or list((source.get("data") or source.get("stringData") or {}) if source else [""]):
        lay(leaves, values_from(entry, context, kind, key))
    return leaves


def values_from(entry: Item, context: Context, kind: str, key: str) -> Leaves:
    """The values in the ConfigMap or Secret of KIND that ENTRY names, below KEY."""
    name, key = entry.text_at("name"), key or "values.yaml"
    source = context.find(kind, name)
    text = _text(source, key) if source else None
    if text is None and kind == "ConfigMap" and (found := _generated(name, key, context)) is not None:
        return found
    if source is None or text is None:
        if not entry.get("optional"):
            context.installation.tell("values from", f"{kind} {name}", entry.where(), key=key, kind=kind)
        return {}
    if target := entry.text_at("targetPath"):
        put(leaves := dict(context.installation.values), target, typed(text), source.where("data", key))
        return leaves
    inner = Item(source.file, source.text, {"data": {key: text}}, source.at, source.outer).embedded("data", key)
    leaves = inner.leaves() if inner is not None else {}
    context.read.add(source.file)
    if kind == "Secret":
        where = source.where("data")
        return {path: Said(said.value, Location(where.file, where.line)) for path, said in leaves.items()}
    return leaves


def _generated(name: str, key: str, context: Context) -> Leaves | None:
    """The values in the file of which an overlay of kustomize makes the KEY of the ConfigMap NAME."""
    for item in context.items:
        for each in item.get("configMapGenerator") or [] if PurePath(item.file).stem == "kustomization" else []:
            for file in each.get("files", []) if each.get("name") == name else []:
                called, _, path = file.rpartition("=")
                if key == (called or PurePath(path).name):
                    return context.file(item, path)
    return None


def _text(source: Item, key: str) -> str | None:
    data = source.get("stringData", key) or source.get("data", key)
    if source.text_at("kind") != "Secret" or source.get("stringData", key) is not None:
        return data if isinstance(data, str) else None
    try:
        return base64.b64decode(str(data or ""), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def patches(item: Item, context: Context) -> None:
    """Tell of patches in ITEM, which is about the operator: nothing here applies them."""
    for path, each in walked(item.data):
        known = any(is_word(step, "patching") for step in path[:-1])
        if (
            each
            and not known
            and path
            and is_word(path[-1], "patching")
            and not (isinstance(each, dict) and is_values(each))
        ):
            context.installation.tell(
                "of the operator" if of_the_operator(each) else "post-renderers", dotted(path), item.where(*path)
            )


def of_the_operator(patches: Any) -> bool:
    """Whether all of PATCHES are for the Deployment of the operator itself."""
    maps = [each for _, each in walked(patches) if isinstance(each, dict) and {"patch", "target"} & set(each)]
    targets = [each["target"] if isinstance(each.get("target"), dict) else {} for each in maps]
    known = all(each.get("kind") == "Deployment" and each.get("name") == CHART for each in targets)
    return bool(maps) and known and "StrategicMerge" not in str(patches)
