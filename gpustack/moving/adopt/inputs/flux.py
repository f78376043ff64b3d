"""Flux's HelmRelease and what a Kustomization makes of it; and the HelmChart of K3s and RKE2."""

from __future__ import annotations

from collections.abc import Iterable

from gpustack.policy.loading.foreign import is_values

from ..documents import Item
from .context import CHART, Context
from .releases import assign, given, values_from


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
        build = item.get("spec", "postBuild") if item.text_at("apiVersion").startswith("kustomize.toolkit.") else None
        for each in [*((build or {}).get("substituteFrom") or []), {"": (build or {}).get("substitute")}]:
            data = maps.get(each.get("name")) if each.get("kind") == "ConfigMap" else each.get("")
            found |= {key: str(value) for key, value in (data if isinstance(data, dict) else {}).items()}
    return found


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


KINDS = {"helm.toolkit.fluxcd.io/HelmRelease": helm_release, "helm.cattle.io/HelmChart": helm_chart}
