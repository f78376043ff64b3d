"""Flux's HelmRelease: values inline and from ConfigMaps and Secrets; and the HelmChart of K3s and RKE2."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from gpustack.model import InputError, Location
from gpustack.policy.loading.foreign import is_values

from ..documents import Item, documents
from ..installation import Leaves, Said
from .context import CHART, Context
from .sets import pairs, put, typed


def helm_release(item: Item, context: Context) -> None:
    """Read a HelmRelease of the operator's chart."""
    installation = context.installation
    name = item.text_at("metadata", "name")
    chart = item.text_at("spec", "chart", "spec", "chart") or item.text_at("spec", "chartRef", "name")
    source = context.find(item.text_at("spec", "chartRef", "kind"), chart) if item.get("spec", "chartRef") else None
    if source is not None:
        chart = source.text_at("spec", "chart") or source.text_at("spec", "url") or chart
    unknown = source is None and item.get("spec", "chartRef")
    if CHART not in chart and not (unknown and (CHART in name or is_values(item.get("spec", "values") or {}))):
        installation.tell("another release", name, item.where("spec"), chart=chart or "unnamed")
        return
    installation.installed = True
    installation.namespace = (
        item.text_at("spec", "targetNamespace") or installation.namespace or item.text_at("metadata", "namespace")
    )
    installation.helm_release = item.text_at("spec", "releaseName") or item.text_at("metadata", "name")
    context.version(item, "spec", "chart", "spec", "version")
    for path in (("spec", "version"), ("spec", "ref", "tag"), ("spec", "ref", "semver")):
        context.version(source or item, *path)
    for index in range(len(item.get("spec", "valuesFrom") or [])):
        context.take(values_from(item.part("spec", "valuesFrom", index), context))
    values(item, context, "spec", "values")
    if item.get("spec", "postRenderers"):
        installation.tell("post-renderers", "spec.postRenderers", item.where("spec", "postRenderers"))


def values(item: Item, context: Context, *path: str | int) -> None:
    """Take the values at PATH of ITEM: a map, a text of YAML, or a variable that nobody filled in."""
    if isinstance(item.get(*path), str):
        try:
            inner = item.embedded(*path)
        except InputError:
            if "{{" not in item.text_at(*path):
                raise
            inner = next(
                (replace(each, outer=(item, path)) for each in documents(item.text_at(*path), item.file)), None
            )
        if inner is not None and isinstance(inner.data, dict):
            context.undecided(inner)
            context.take(inner.leaves())
        elif found := pairs(item.text_at(*path)):  # as --set takes them
            for name, text in found:
                put(context.installation.values, name, typed(text), item.where(*path))
        else:
            text = repr(item.text_at(*path))
            context.installation.tell("filled in", str(path[-1]), item.where(*path), text=text)
    else:
        context.take(item.leaves(*path))


def substitutes(items: Iterable[Item]) -> dict[str, str]:
    """What Kustomizations of Flux among ITEMS fill in for variables, by themselves and from ConfigMaps."""
    found: dict[str, str] = {}
    maps = {each.text_at("metadata", "name"): each.get("data") for each in items if each.text_at("kind") == "ConfigMap"}
    for item in items:
        build = item.get("spec", "postBuild") if item.text_at("apiVersion").startswith("kustomize.toolkit.") else None
        for each in [*((build or {}).get("substituteFrom") or []), {"": (build or {}).get("substitute")}]:
            data = maps.get(each.get("name")) if each.get("kind") == "ConfigMap" else each.get("")
            found |= {key: str(value) for key, value in (data if isinstance(data, dict) else {}).items()}
    return found


def values_from(entry: Item, context: Context, kind: str = "", key: str = "") -> Leaves:
    """The values in the ConfigMap or Secret of KIND that ENTRY of `valuesFrom` names, below KEY."""
    kind, name = kind or entry.text_at("kind"), entry.text_at("name")
    source = context.find(kind, name)
    key = key or entry.text_at("valuesKey") or entry.text_at("key") or "values.yaml"
    text = _text(source, key) if source else None
    if text is None and kind == "ConfigMap" and (found := _generated(name, key, context)) is not None:
        return found
    if source is None or text is None:
        if not entry.get("optional"):
            context.installation.tell("values from", f"{kind} {name}", entry.where(), key=key, kind=kind)
        return {}
    target = entry.text_at("targetPath")
    if target:
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


def helm_chart(item: Item, context: Context) -> None:
    """Read a HelmChart of the helm controller of K3s and RKE2."""
    if CHART not in item.text_at("spec", "chart") or not item.text_at("apiVersion").startswith("helm.cattle.io/"):
        return
    installation = context.installation
    installation.namespace = item.text_at("spec", "targetNamespace") or installation.namespace
    installation.helm_release = item.text_at("metadata", "name")
    installation.installed = True
    context.version(item, "spec", "version")
    for each in filter(None, (item, context.find("HelmChartConfig", installation.helm_release))):
        values(each, context, "spec", "valuesContent")
        for secret in (
            each.part("spec", "valuesSecrets", index) for index in range(len(each.get("spec", "valuesSecrets") or []))
        ):
            for key in secret.get("keys") or []:
                context.take(values_from(secret, context, "Secret", str(key)))
    for key, said in item.leaves("spec", "set").items():
        put(installation.values, ".".join(map(str, key)), typed(said.value), said.where)


KINDS = {"HelmRelease": helm_release, "HelmChart": helm_chart}
