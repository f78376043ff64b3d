"""Rules about what GitOps engines do with objects: labels by which they track, variables that they replace, hooks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.resolve import Cluster
from ...gitops.engines import engines
from ...model import Path, Resource, dotted
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

INSTANCE = "app.kubernetes.io/instance"
HELM = "meta.helm.sh/"
HELM_HOOK = "helm.sh/hook"

VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-=][^}]*)?\}")
"""A variable as Flux and envsubst write it: ${NAME}, ${NAME:=4}."""
TEXTS = {"extraObjects", "data", "relabelings", "args", "podLabelAllowlistRegex"}
"""Fields in which such a text may be meant for somebody else: a shell, a regular expression."""


@rule("GPU801", "error")
def tracking_labels(cluster: Cluster) -> Iterator[Hit]:
    """A label or annotation by which a GitOps engine tells its objects apart, on everything."""
    tracking = (HELM, *(prefix for each in engines() for prefix in each.annotations))
    for path, texts in _labels(cluster.spec):
        for key in texts:
            if key == INSTANCE or key.startswith(tracking):
                yield hit(dotted((*path, key)), key=key, at_key=True)


def _labels(spec: ClusterPolicySpec) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Labels and annotations of the policy that reach many objects, or pods."""
    yield ("spec", "cluster", "monitoringLabels"), spec.cluster.monitoringLabels
    yield ("spec", "daemonsets", "labels"), spec.daemonsets.labels
    yield ("spec", "daemonsets", "annotations"), spec.daemonsets.annotations
    yield ("spec", "dcgmExporter", "annotations"), spec.dcgmExporter.annotations
    for section in ("dcgmExporter", "nodeStatusExporter"):
        monitor = getattr(getattr(spec, section), "serviceMonitor", None)
        if monitor is not None:
            yield ("spec", section, "serviceMonitor", "additionalLabels"), monitor.additionalLabels
    for index, driver in enumerate(spec.drivers):
        yield ("spec", "drivers", index, "labels"), driver.labels
        yield ("spec", "drivers", index, "annotations"), driver.annotations
    if cluster := spec.gpuCluster:
        yield ("spec", "gpuCluster", "daemonsets", "labels"), cluster.daemonsets.labels
        yield ("spec", "gpuCluster", "daemonsets", "annotations"), cluster.daemonsets.annotations


@rule("GPU802", "error")
def variable(cluster: Cluster) -> Iterator[Hit]:
    """A variable that nothing replaces."""
    dump = cluster.spec.model_dump(exclude_none=True, exclude_defaults=True)
    for path, value in _variables(dump, ("spec",)):
        yield hit(dotted(path), value=value)


def _variables(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        if match := VARIABLE.search(value):
            yield path, match[0]
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in TEXTS:
                yield from _variables(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _variables(item, (*path, index))


@rule("GPU806", "warning", over="object")
def hook(resource: Resource) -> Iterator[Hit]:
    """An object with the annotation of a Helm or Argo CD hook."""
    annotations = resource.body["metadata"].get("annotations") or {}
    hooks = (HELM_HOOK, *(name for each in engines() for name in each.hooks))
    for key in annotations:
        if key.startswith(hooks):
            yield Hit(
                dotted(("metadata", "annotations", key)), f"{resource.kind} {resource.name} is a hook ({key})", key=True
            )
