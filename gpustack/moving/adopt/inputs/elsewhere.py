"""The chart in whatever else installs charts: helmfile, Ansible, k0s, Sveltos, Cluster API, Pulumi's YAML, kustomize.

All of them say the same few things under much the same names, so one reader does for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpustack.model import Path, children

from ..documents import Item
from ..installation import Leaves, lay
from .context import CHART, Context, chart_named, said_by, words
from .flux import values, values_from
from .sets import pairs, put, typed

_ONE = re.compile(r"\{\{\s*(\w+)\s*(?:\|(?:(?!\{\{).)*)?\}\}")


def releases(item: Item, path: Path = ()) -> Iterator[Item]:
    """The maps in ITEM that name the operator's chart beside its version or its values."""
    data = item.get(*path)
    if said_by(data):
        return
    if isinstance(data, dict):
        named = any(names(data.get(key)) for key in words("charts")) and not {"dependencies", "manifest"} & set(data)
        if named and any(
            key in data for key in (*words("versions"), *words("values"), *words("files"), *words("sets"))
        ):
            yield item.part(*path)
            return
    for step, _ in children(data):
        if isinstance(step, str | int):
            yield from releases(item, (*path, step))


def names(chart: Any) -> bool:
    """Whether CHART is the operator's, by its name or a section that has it."""
    inner = (chart.get("metadata"), chart) if isinstance(chart, dict) else ()
    return chart_named(str(chart)) or any(isinstance(each, dict) and each.get("name") == CHART for each in inner)


def filled_in(data: Any, context: Context) -> Any:
    """DATA with texts that are one variable of Ansible's as the inputs say it, under `vars` or by itself."""
    if isinstance(data, dict):
        return {key: filled_in(each, context) for key, each in data.items()}
    if isinstance(data, list):
        return [filled_in(each, context) for each in data]
    match = _ONE.fullmatch(data.strip()) if isinstance(data, str) else None
    for item in context.items if match else ():
        plays = item.data if isinstance(item.data, list) else [item.data]
        for scope in (
            each.get(key, {}) if key else each for each in plays if isinstance(each, dict) for key in ("vars", "")
        ):
            if match and isinstance(scope, dict) and match[1] in scope and scope[match[1]] != data:
                return scope[match[1]]
    return data


def first(release: Item, keys: tuple[str, ...]) -> str:
    """The text at the first of KEYS that RELEASE has, "" where it is a template's."""
    text = next((release.text_at(key) for key in keys if release.text_at(key)), "")
    return "" if "{" in text else text


def recognised(item: Item) -> bool:
    """Whether ITEM installs the operator's chart."""
    return any(True for _ in releases(item))


def read(item: Item, context: Context) -> None:
    """Read what ITEM says of the chart."""
    installation = context.installation
    for release in releases(Item(item.file, item.text, filled_in(item.data, context), item.at, item.outer)):
        installation.installed = True
        context.version(release, "chart", "metadata", "appVersion")
        for key in words("versions"):
            context.version(release, "chart", key)
            context.version(release, key)
        installation.namespace = first(release, words("namespaces")) or installation.namespace
        installation.helm_release = first(release, words("names")) or installation.helm_release
        for entry in [release.part("valuesFrom", index) for index in range(len(release.get("valuesFrom") or []))]:
            context.take(from_object(entry, context))
        given(release, context)
        unread(release, context)
        for key in words("sets"):
            for at, value in assigned(release.get(key)):
                put(installation.values, at, value if key == "setString" else typed(value), release.where(key))


def given(release: Item, context: Context) -> None:
    """Take the values that RELEASE has, and those in the files that it names."""
    override = release.get("valuesMerge") != "merge"  # of kustomize: whether what stands there wins over files
    for key in (*words("files"), *words("values")) if override else (*words("values"), *words("files")):
        if key in words("files") and release.get("valuesMerge") == "replace":
            continue
        found = release.get(key)
        many = found if isinstance(found, list) else [found] if found and key in words("files") else None
        for index, each in enumerate(many or []):
            if isinstance(each, str) and (said := pairs(each)):  # a=b, as KubeKey has them
                for at, value in said:
                    put(context.installation.values, at, typed(value), release.where(key, index))
                continue
            context.take(release.leaves(key, index) if isinstance(each, dict) else context.file(release, str(each)))
        if many is None:
            values(release, context, key)


def unread(release: Item, context: Context) -> None:
    """Tell of what RELEASE says of values by a key that isn't known here."""
    known = {*words("files"), *words("values"), *words("sets"), "valuesFrom", "valuesMerge"}
    for key, each in release.data.items():
        if key not in known and re.search("[vV]alue|overrid", str(key)) and isinstance(each, str | list | dict):
            context.installation.tell("not known", str(key), release.where(key), data=f"{key} of the release")


def assigned(data: Any) -> Iterator[tuple[str, Any]]:
    """The names and values in DATA: a map, a text of a=b,c=d, or a list of these or of entries with both."""
    if isinstance(data, str):
        yield from pairs(data)
    elif isinstance(data, dict):
        yield from data.items()
    for each in data if isinstance(data, list) else ():
        if not isinstance(each, dict):
            yield from pairs(str(each))
        elif each.get("value") is not None:  # Ansible's has name=value in it
            yield from [(str(each["name"]), each["value"])] if each.get("name") else pairs(str(each["value"]))


def from_object(entry: Item, context: Context) -> Leaves:
    """The values of the ConfigMap or Secret that ENTRY names: of Crossplane below a key, of Sveltos below each."""
    for ref, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if entry.get(ref):
            return values_from(entry.part(ref), context, kind)
    source = context.find(entry.text_at("kind"), entry.text_at("name"))
    leaves: Leaves = {}
    for key in list(source.get("data") or source.get("stringData") or {}) if source else [""]:
        lay(leaves, values_from(entry, context, key=key))
    return leaves


KINDS: dict[str, object] = {}
FILES = ((recognised, read),)
