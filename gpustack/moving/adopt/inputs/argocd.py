"""Argo CD's Application, and the template of an ApplicationSet: values in all the places that Argo CD reads."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from gpustack.model import InputError
from gpustack.text.read import value

from ..documents import MOST, Item
from .context import CHART, Context
from .releases import assign, filled_in, given

_ELEMENT = re.compile(r"\{\{-?\s*\.?(\w[\w.]*)(?:\s*\|\s*s?quote)?\s*-?\}\}|\$\{(\w+)\}")


def application(item: Item, context: Context) -> None:
    """Read an Application that installs the operator's chart, from one source or several."""
    read(item.part("spec"), context, item.text_at("metadata", "name"))


def application_set(item: Item, context: Context) -> None:
    """Read the template of an ApplicationSet: of the cluster that CONTEXT is about what its elements say, else what all
    of them agree on. What only a generator knows are variables."""
    elements = list(members(item).values())
    chosen = members(item).get(context.member)
    known = {**dict(values(item.get("spec", "generators")))} | (
        chosen
        or {
            key: each
            for key, each in (elements[0] if elements else {}).items()
            if all(one.get(key) == each for one in elements)
        }
    )
    name = item.text_at("metadata", "name")
    for kind in () if chosen else unknown(item.get("spec", "generators")):
        context.installation.tell("generator", name, item.where("spec", "generators"), kind=kind)
    template = Item(item.file, item.text, filled_in(item.data, known, _ELEMENT), item.at, item.outer)
    own = template.text_at("spec", "template", "metadata", "name")
    read(template.part("spec", "template", "spec"), context, name if "{" in own else own)


def members(item: Item) -> dict[str, dict[str, Any]]:
    """What the elements of the ApplicationSet ITEM say that name the operator's chart, else all, by cluster."""
    elements = [each for one in item.get("spec", "generators") or [] for each in generated(one)]
    elements = [each for each in elements if CHART in str(each)] or [each for each in elements if each]
    template = item.text_at("spec", "template", "metadata", "name")
    names = [str(filled_in(template, each, _ELEMENT)) for each in elements]
    for key in ("cluster", "clusterName", "name", "env"):
        own = [str(each[key]) for each in elements if isinstance(each.get(key), str)]
        if len({*own}) == len(elements):
            names = own
            break
    return dict(zip(names, elements, strict=True)) if len({*names}) == len(elements) else {}


def generated(generator: Any) -> list[dict[str, Any]]:
    """The elements that GENERATOR makes, as far as it says them; an empty one for what it finds elsewhere."""
    if not isinstance(generator, dict):
        return []
    data = generator.get("list", {})
    found = data.get("elements") if isinstance(data, dict) else None
    if found is None and isinstance(data, dict) and "{{" not in (text := str(data.get("elementsYaml") or "")):
        found = (value(text, "elementsYaml") or ("", None))[1]
    if isinstance(found, list):
        return [each for each in found if isinstance(each, dict)]
    inner = [generated(each) for each in (generator.get("matrix") or {}).get("generators") or []]
    if math.prod(map(len, inner)) > MOST:
        raise InputError.of("GPU006", f"a matrix of an ApplicationSet makes more than {MOST} elements")
    if inner:
        return [
            {key: value for each in several for key, value in each.items()} for several in itertools.product(*inner)
        ]
    merged = generator.get("merge") or {}
    lists, keys = [generated(each) for each in merged.get("generators") or []], merged.get("mergeKeys") or []
    base = lists[0] if lists else [{}]
    for more in lists[1:]:
        base = [
            next(({**each, **one} for one in more if all(one.get(k) == each.get(k) for k in keys)), each)
            for each in base
        ]
    return base


def unknown(generators: Any) -> Iterator[str]:
    """The kinds of GENERATORS, and of those inside of them, that find clusters where nothing here looks."""
    for generator in generators if isinstance(generators, list) else []:
        for kind, data in generator.items() if isinstance(generator, dict) else ():
            if kind in {"matrix", "merge"} and isinstance(data, dict):
                yield from unknown(data.get("generators"))
            elif kind not in {"list", "selector"}:
                yield str(kind)


def values(generators: Any) -> Iterator[tuple[str, Any]]:
    """What GENERATORS, whatever they find, say themselves of the clusters that they find."""
    for generator in generators if isinstance(generators, list) else []:
        for data in generator.values() if isinstance(generator, dict) else ():
            if isinstance(data, dict) and isinstance(data.get("values"), dict):
                yield "values", data["values"]
            yield from values(data.get("generators")) if isinstance(data, dict) else ()


def read(spec: Item, context: Context, name: str) -> None:
    """Read SPEC of the Application NAME."""
    installation = context.installation
    several = [spec.part("sources", index) for index in range(len(spec.get("sources") or []))]
    keys = ("chart", "path", "repoURL")
    ours = [
        each for each in several or [spec.part("source")] if CHART in next(filter(None, map(each.text_at, keys)), "")
    ]
    if not ours:
        installation.tell("another chart", name, spec.where())
    for source in ours:
        context.installs(source)
        if source.get("chart"):
            context.version(source, "targetRevision")
        elif (folder := PurePath(source.text_at("path")).name) and not any(
            folder in path.parts for name, path in context.known.items() if name != spec.file
        ):
            installation.tell("folder", name, source.where("path"), folder=source.text_at("path"))
        installation.namespace = spec.text_at("destination", "namespace") or installation.namespace
        installation.helm_release = source.text_at("helm", "releaseName") or installation.helm_release or name
        optional = source.get("helm", "ignoreMissingValueFiles") is True
        for index, file in enumerate(source.get("helm", "valueFiles") or []):  # $values/... is of another source
            called = str(file).partition("/")[2] if str(file).startswith("$") else str(file)
            home = source.text_at("path") if not str(file).startswith(("$", "/")) else ""
            context.take(
                context.file(source.part("helm", "valueFiles", index), f"{home}/{called}".strip("/"), optional=optional)
            )
        given(source, context, "helm", "values")
        given(source, context, "helm", "valuesObject")
        assign(source.part("helm", "parameters"), context)
        for each in source.get("helm", "fileParameters") or []:
            where = source.where("helm", "fileParameters")
            installation.tell("text file", str(each.get("name")), where, file=each.get("path"))
