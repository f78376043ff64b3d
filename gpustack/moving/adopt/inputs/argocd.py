"""Argo CD's Application, and the template of an ApplicationSet: values in all the places that Argo CD reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpustack.model import children

from ..documents import Item
from .context import CHART, Context
from .flux import values
from .sets import put, typed

_ELEMENT = re.compile(r"\{\{-?\s*\.?(\w+)\s*-?\}\}|\$\{(\w+)\}")


def application(item: Item, context: Context) -> None:
    """Read an Application that installs the operator's chart, from one source or several."""
    read(item.part("spec"), context, item.text_at("metadata", "name"))


def application_set(item: Item, context: Context) -> None:
    """Read the template of an ApplicationSet. What the elements of its lists that name the chart, else all, agree on is
    filled in; what its generators know besides are variables."""
    elements = list(listed(item.get("spec", "generators")))
    ours = [each for each in elements if CHART in str(each)] or elements
    known = {key: each for key, each in (ours[0] if ours else {}).items() if all(one.get(key) == each for one in ours)}
    template = Item(item.file, item.text, with_elements(item.data, known), item.at, item.outer)
    read(template.part("spec", "template", "spec"), context, item.text_at("metadata", "name"))


def listed(data: Any) -> Iterator[dict[str, Any]]:
    """The elements of the list generators in DATA."""
    for key, each in children(data):
        found = each if key == "elements" and isinstance(each, list) else []
        yield from (element for element in found if isinstance(element, dict))
        yield from listed(each) if not found else ()


def with_elements(data: Any, known: Mapping[str, Any]) -> Any:
    """DATA with the variables that KNOWN has filled in; a text that is one alone becomes what that is."""
    if isinstance(data, dict):
        return {key: with_elements(each, known) for key, each in data.items()}
    if isinstance(data, list):
        return [with_elements(each, known) for each in data]
    if not isinstance(data, str):
        return data
    if (one := _ELEMENT.fullmatch(data)) and (one[1] or one[2]) in known:
        return known[one[1] or one[2]]
    return _ELEMENT.sub(lambda match: str(known.get(match[1] or match[2], match[0])), data)


def read(spec: Item, context: Context, name: str) -> None:
    """Read SPEC of the Application NAME."""
    installation = context.installation
    several = [spec.part("sources", index) for index in range(len(spec.get("sources") or []))]
    sources = several or [spec.part("source")]
    ours = [
        each for each in sources if CHART in (each.text_at("chart") or each.text_at("path") or each.text_at("repoURL"))
    ]
    if not ours:
        installation.tell("another chart", name, spec.where())
    for source in ours:
        installation.installed = True
        if source.get("chart"):
            context.version(source, "targetRevision")
        installation.namespace = spec.text_at("destination", "namespace") or installation.namespace
        installation.helm_release = source.text_at("helm", "releaseName") or installation.helm_release or name
        optional = source.get("helm", "ignoreMissingValueFiles") is True
        for index, file in enumerate(source.get("helm", "valueFiles") or []):  # $values/... is of another source
            name = str(file).partition("/")[2] if str(file).startswith("$") else str(file)
            context.take(context.file(source.part("helm", "valueFiles", index), name, optional=optional))
        values(source, context, "helm", "values")
        values(source, context, "helm", "valuesObject")
        for index in range(len(source.get("helm", "parameters") or [])):
            _parameter(source.part("helm", "parameters", index), context)
        for each in source.get("helm", "fileParameters") or []:
            where = source.where("helm", "fileParameters")
            installation.tell("text file", str(each.get("name")), where, file=each.get("path"))


def _parameter(parameter: Item, context: Context) -> None:
    """Take a parameter, which Argo CD hands to Helm as --set: texts that look like something else are that."""
    said = parameter.said("value")
    if said is not None:
        value = said.value if parameter.get("forceString") else typed(said.value)
        put(context.installation.values, parameter.text_at("name"), value, said.where)


KINDS = {"Application": application, "ApplicationSet": application_set}
