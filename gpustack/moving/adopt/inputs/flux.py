"""Flux's HelmRelease and what a Kustomization makes of it; and the HelmChart of K3s and RKE2."""

import re
from collections.abc import Iterable
from dataclasses import replace

from gpustack.policy.loading.foreign import is_values

from ..documents import Item
from . import sets
from .context import CHART, Context
from .hcl import plain
from .releases import assign, given, values_from

TARGET = {"kind": ("kind",), "name": ("metadata", "name")}
"""What a patch is for, and where it says that itself."""


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
    context.installs(item)
    installation.namespace = (
        item.text_at("spec", "targetNamespace") or installation.namespace or item.text_at("metadata", "namespace")
    )
    installation.helm_release = item.text_at("spec", "releaseName") or item.text_at("metadata", "name")
    context.version(item, "spec", "chart", "spec", "version")
    for path in (("spec", "version"), ("spec", "ref", "tag"), ("spec", "ref", "semver")):
        context.version(source or item, *path)
    for index, entry in enumerate(item.get("spec", "valuesFrom") or []):
        part = item.part("spec", "valuesFrom", index)
        context.take(values_from(part, context, str(entry.get("kind", "")), str(entry.get("valuesKey", ""))))
    given(item, context, "spec", "values")


def substitutes(items: Iterable[Item]) -> dict[str, str]:
    """What Kustomizations of Flux among ITEMS fill in for variables, by themselves and from ConfigMaps."""
    found: dict[str, str] = {}
    maps = {each.text_at("metadata", "name"): each.get("data") for each in items if each.text_at("kind") == "ConfigMap"}
    for item in items:
        inputs = item.get("spec", "inputs") if item.text_at("kind") == "ResourceSet" else None
        sets = [each for each in inputs or [] if isinstance(each, dict)]
        agreed = (
            set.intersection(*({(key, plain(value)) for key, value in each.items()} for each in sets)) if sets else ()
        )
        found |= {f"inputs.{key}": value for key, value in agreed}
        build = item.get("spec", "postBuild") if item.text_at("apiVersion").startswith("kustomize.toolkit.") else None
        for each in [*((build or {}).get("substituteFrom") or []), {"": (build or {}).get("substitute")}]:
            data = maps.get(each.get("name")) if each.get("kind") == "ConfigMap" else each.get("")
            found |= {key: plain(value) for key, value in (data if isinstance(data, dict) else {}).items()}
    return found


def patched(items: list[Item], context: Context) -> list[Item]:
    """ITEMS as Kustomizations of Flux among them patch them; what can't be applied is told."""
    made = list(items)
    for item in (each for each in items if each.text_at("apiVersion").startswith("kustomize.toolkit.")):
        for index, patch in enumerate(item.get("spec", "patches") or []):
            part = next(item.part("spec", "patches", index).inner("patch"), None)
            target = (patch.get("target") or {}) if isinstance(patch, dict) else {}
            kind, name = (target.get(key) or (part and part.text_at(*at)) for key, at in TARGET.items())
            for place, each in enumerate(made):
                if each.text_at("kind") != kind or not re.fullmatch(
                    str(name or ".*"), each.text_at("metadata", "name")
                ):
                    continue
                try:
                    whole = each.get("spec", "chart") or kind != "HelmRelease"  # a patch of it is found in texts, too
                    data = sets.patched(each.data, part.data) if part and whole else each.data
                    made[place] = replace(each, data=data)
                except ValueError:
                    where = item.where("spec", "patches", index)
                    context.installation.tell("post-renderers", f"spec.patches[{index}]", where)
    return made


def helm_chart(item: Item, context: Context) -> None:
    """Read a HelmChart of the helm controller of K3s and RKE2."""
    if CHART not in item.text_at("spec", "chart"):
        return
    installation = context.installation
    installation.namespace = item.text_at("spec", "targetNamespace") or installation.namespace
    installation.helm_release = item.text_at("metadata", "name")
    context.installs(item)
    context.version(item, "spec", "version")
    for each in filter(None, (item, context.find("HelmChartConfig", installation.helm_release))):
        given(each, context, "spec", "valuesContent")
        for index, secret in enumerate(each.get("spec", "valuesSecrets") or []):
            for key in secret.get("keys") or []:
                context.take(values_from(each.part("spec", "valuesSecrets", index), context, "Secret", str(key)))
    assign(item.part("spec", "set"), context)
