"""Rules about what GitOps engines do with objects: labels by which they track, variables that they replace, hooks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.resolve import Cluster
from ...gitops.engines import engines
from ...model import Path, Resource, children, dotted
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

INSTANCE = "app.kubernetes.io/instance"
HELM = "meta.helm.sh/"
HELM_HOOK = "helm.sh/hook"

VARIABLE = re.compile(r"\$\{#?[A-Za-z_][A-Za-z0-9_]*(?:(?::?[-=?+]|:\d|[/#%^,@])[^}]*)?\}")
"""A variable as Flux, envsubst and shells write it: ${NAME}, ${NAME:=4}, ${NAME/-/_}."""
REGEXES = ("relabelings", "podLabelAllowlistRegex")
"""Fields with regular expressions and their groups."""
PLAIN = ("env", "args", "workingDir", "externalName")
"""Fields of any object that are taken as they are: Kubernetes replaces $(NAME) alone."""
SHELL = re.compile(r"(?:^|[/.\s])(?:ba|da|a|z|k)?sh(?:\s|$)|^-\w*c$", re.MULTILINE)
PROGRAM = re.compile(r"\.(?:sh|bash|py|json|lua|conf|te?mpl|template|tpl)$|snippet|script")
"""Keys of ConfigMaps and annotations with texts of programs, which may have variables of their own."""


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


def _variables(value: Any, path: Path, *, read: bool = False) -> Iterator[tuple[Path, str]]:
    """The variables in texts of one line below VALUE, which stands at PATH. READ: something else than Kubernetes may
    read them, as in most of a manifest.
    """
    if not read and isinstance(value, str) and (match := VARIABLE.search(value)) and "\n" not in value.strip():
        yield path, match[0]
    for key, item in children(value):
        program = path[-1] in ("annotations", "data") and PROGRAM.search(str(key))
        if not program and key not in REGEXES and not (key == "args" and _runs_shell(value)):
            plain = key in PLAIN or (path[-1], key) == ("metadata", "annotations")
            plain = plain or (key == "data" and value.get("kind") == "ConfigMap")
            yield from _variables(item, (*path, key), read=key == "extraObjects" or (read and not plain))


def _runs_shell(container: Any) -> bool:
    """Whether the command or the arguments of CONTAINER are a shell's."""
    words = [str(word) for part in ("command", "args") for _, word in children(container.get(part))]
    return SHELL.search("\n".join(words)) is not None


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
