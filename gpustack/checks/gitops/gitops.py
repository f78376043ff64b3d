"""Rules about GitOps engines: what they do with objects (labels by which they track, variables, hooks), and the section
`gitops`: what an engine must know, what goes together, and what has no effect.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.resolve import Cluster
from ...gitops.engine import Trouble
from ...gitops.engines import chosen, engines, names
from ...model import Path, Resource, children, dotted
from ...policy.language.reconciler import runs
from ...policy.language.repository import CLUSTER, address, is_digest, is_oci, revision
from ...policy.language.spec import ClusterPolicySpec
from ...policy.language.types import IMAGE_TAG
from ..objects.pods import who
from ..rule import Hit, hit, rule
from ..subjects import Written

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
    if "${" not in cluster.spec.model_dump_json(exclude_defaults=True):  # nearly all: to walk through a spec costs more
        return
    dump = cluster.spec.model_dump(exclude_none=True, exclude_defaults=True)
    for path, value in _variables(dump, ("spec",)):
        yield hit(dotted(path), value=value)


def _variables(value: Any, path: Path, *, read: bool = False) -> Iterator[tuple[Path, str]]:
    """The variables in texts of one line below VALUE, at PATH. READ: something else than Kubernetes may read them."""
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
            yield hit(dotted(("metadata", "annotations", key)), who=who(resource), annotation=key, at_key=True)


@rule("GPU832", "error")
def incomplete(cluster: Cluster) -> Iterator[Hit]:
    """A section `gitops` that lacks what an engine can't do without."""
    given, engine = cluster.spec.gitops, chosen(cluster.spec.gitops)
    if given is not None and engine is None:
        titles = " and ".join(each.title for each in engines())
        yield hit("spec.gitops", "engine", titles=titles, engines=" or ".join(names()))
    if given is not None and engine is not None:
        if given.repository.url is None and not engine.brings_source(given):
            remedy = "set spec.gitops.repository.url" + (f", or {engine.source_field}" if engine.source_field else "")
            yield hit("spec.gitops.repository", "repository", remedy=remedy)
        yield from map(_hit, engine.missing(given))


def _hit(trouble: Trouble) -> Hit:
    return Hit(f"spec.gitops.{trouble.path}", trouble.what, trouble.why, trouble.remedy)


@rule("GPU833", "error")
def contradicting(cluster: Cluster) -> Iterator[Hit]:
    """Parts of `gitops` that can't both be meant."""
    given = cluster.spec.gitops
    if given is None:
        return
    repository, engine, path = given.repository, chosen(given), "spec.gitops.repository"
    yield from map(_hit, engine.contradictions(given)) if engine is not None else ()
    wanted, oci = revision(repository).name, is_oci(repository)
    if oci and not re.fullmatch(IMAGE_TAG.pattern, wanted):
        yield hit(f"{path}.revision", "oci", wanted=wanted)
    if not oci and is_digest(wanted):
        yield hit(f"{path}.revision", "commit")
    if oci and {"{", "}"} & {*address(repository, "")}:
        yield hit(f"{path}.url", "other name")
    if not oci and CLUSTER in (repository.url or ""):
        yield hit(f"{path}.url", "name in git")
    if not oci and repository.dist == "oci":
        yield hit(f"{path}.dist", "no artifact")


@rule("GPU834", "warning", over="origins")
def in_vain(written: Written) -> Iterator[Hit]:
    """A word in `gitops` that changes nothing."""
    given, engine = written.spec.gitops, chosen(written.spec.gitops)
    if given is None or engine is None:
        return
    others = {each.name: each.of(given).model_dump(exclude_none=True, exclude_defaults=True) for each in engines()}
    vain = [(name, f"the engine is {given.engine}") for name, said in others.items() if said and name != engine.name]
    for path, why in (*vain, *engine.idle(given)):
        if written.by(f"spec.gitops.{path}") == "policy":
            yield hit(f"spec.gitops.{path}", why=why)


@rule("GPU835", "warning")
def substituted(cluster: Cluster) -> Iterator[Hit]:
    """An object that wants Flux to replace its variables, which nothing does."""
    verbatim = engine.verbatim if (engine := chosen(cluster.spec.gitops)) else {}
    for index, body in enumerate(cluster.spec.extraObjects if verbatim else ()):
        given = body["metadata"].get("annotations") or {}
        wanted = [key for key, kept in verbatim.items() if given.get(key, kept) != kept]
        for key in wanted if "${" in json.dumps(body, default=str) else ():
            path = dotted(("spec", "extraObjects", index, "metadata", "annotations", key))
            yield hit(path, kind=body["kind"], name=body["metadata"]["name"])


@rule("GPU836", "note")
def nothing_to_wait_for(cluster: Cluster) -> Iterator[Hit]:
    """An engine, and no NodePolicy by whose state it could tell whether the GPU stack is well."""
    if chosen(cluster.spec.gitops) and not runs(cluster.spec):
        yield hit("spec.gitops")
