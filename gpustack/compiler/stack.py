"""One effective spec -> the result of all its components. A pure function, cached at two levels.

Components first: a component whose inputs (and Kubernetes version) were seen before, in this run, in another worker or
last month, is taken from the store. Only the others are synthesised, validated and written as text. The stack itself is
the list of its components' keys with the findings that need the whole: rules over the spec, and cross-references.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..catalog import kubernetes
from ..checks import dra_exclusions as _dra  # noqa: F401 - registers rules
from ..checks import drivers as _drivers  # noqa: F401 - as above
from ..checks import openshift as _openshift  # noqa: F401 - as above
from ..checks import policy as _rules  # noqa: F401 - as above
from ..checks import sandbox as _sandbox  # noqa: F401 - as above
from ..checks.references import Needed, Provided, missing, needed, provided
from ..checks.rule import RULES
from ..components.registry import REGISTRY, Entry
from ..model import Finding, FindingsError, Resource
from . import node
from .cache import Store, digest

if TYPE_CHECKING:
    from ..components.inputs.common import Inputs
    from ..policy.spec import ClusterPolicySpec


@dataclass(frozen=True, slots=True)
class File:
    """A rendered object as text, and where it goes: stage/<name>.yaml."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Stack:
    """What an effective spec renders to, for Kubernetes `minor` ("1.34").

    `findings` are warnings and notes; an error would have been raised.
    """

    key: str
    minor: str
    files: tuple[File, ...]
    findings: tuple[Finding, ...]


def compile_stack(spec: ClusterPolicySpec, key: str, store: Store) -> Stack:
    """Compile SPEC, whose content KEY names. Raises FindingsError with every error that was found."""
    known = stored_stack(key, store)
    if known is not None:
        return known
    minor = kubernetes.minor(spec.cluster.kubernetesVersion)
    findings = [finding for rule in RULES.values() for finding in rule.findings(spec)]
    refuse(findings)
    components = component_results(spec, minor, store)
    results = list(components.values())
    have = [Provided(*item) for result in results for item in result["provides"]]
    need = [Needed(*item) for result in results for item in result["needs"]]
    references = [reference.model_dump() for reference in spec.references or ()]
    findings += missing(have, need, references, spec.cluster.namespace)
    refuse(findings)
    files = joined(results)
    found = [plain(finding) for finding in findings]
    store.put("stack", key, {"minor": minor, "components": list(components), "findings": found})
    return Stack(key, minor, files, tuple(findings))


def stored_stack(key: str, store: Store) -> Stack | None:
    """The stack KEY if it and all its components are in the store."""
    entry = store.get("stack", key)
    if entry is None:
        return None
    results = [store.get("component", component) for component in entry["components"]]
    if None in results:
        return None
    files = joined([result for result in results if result])
    return Stack(key, entry["minor"], files, tuple(finding_of(item) for item in entry["findings"]))


def plain(finding: Finding) -> list[str]:
    """A finding without its location, which belongs to a file and not to a spec, for the store."""
    return [finding.rule, finding.severity, finding.what, finding.path, finding.why, finding.remedy]


def finding_of(item: list[Any]) -> Finding:
    """The reverse of `plain`."""
    rule, severity, what, path, why, remedy = item
    return Finding(rule, severity, what, path=path, why=why, remedy=remedy)


def refuse(findings: list[Finding]) -> None:
    """Raise FindingsError with the errors among FINDINGS, if there are any."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise FindingsError(*errors)


def component_results(spec: ClusterPolicySpec, minor: str, store: Store) -> dict[str, dict[str, Any]]:
    """The results of SPEC's components by their keys; what the store doesn't have is computed and given to it.

    Results are handed on, not fetched back: a store that can't be written holds little of what it is given.
    """
    results: dict[str, dict[str, Any]] = {}
    absent: list[tuple[Entry, Inputs, str]] = []
    errors: list[Finding] = []
    for entry in REGISTRY:
        try:
            inputs = entry.inputs(spec)
        except FindingsError as error:
            errors += [finding for finding in error.findings if finding not in errors]
            continue
        if inputs is not None:
            key = digest("component", entry.id, minor, spec.cluster.namespace, inputs.digest())
            results[key] = store.get("component", key) or {}
            if not results[key]:
                absent.append((entry, inputs, key))
    refuse(errors)
    if absent:
        synthesised = synthesiser()([(entry, inputs) for entry, inputs, _ in absent])
        for entry, _, key in absent:
            try:
                results[key] = component_result(synthesised[entry.id], minor, spec.cluster.namespace)
            except FindingsError as error:
                errors += error.findings
            else:
                store.put("component", key, results[key])
    refuse(errors)
    return results


def synthesiser() -> Callable[[Sequence[tuple[Entry, Inputs]]], dict[str, list[Resource]]]:
    """`synth.synthesise`; importing it starts Node. Raises MissingToolError when that fails."""
    if "jsii" not in sys.modules:
        node.configure()
    try:
        from .synth import synthesise
    except (OSError, RuntimeError) as error:  # no such program, or nowhere to unpack what it runs
        raise node.unusable(f"Node can't run cdk8s: {error}") from error
    return synthesise


def component_result(resources: list[Resource], minor: str, namespace: str) -> dict[str, Any]:
    """What the store keeps of a component: its files, what they provide and what they need."""
    from .emit import emit
    from .validate import validate

    refuse([finding for resource in resources for finding in validate(resource.body, minor)])
    return {
        "files": [[file_name(resource, namespace), emit(resource.body)] for resource in resources],
        "provides": [item for resource in resources for item in provided(resource.body)],
        "needs": [item for resource in resources for item in needed(resource.body)],
    }


def file_name(resource: Resource, namespace: str) -> str:
    """stage/kind-name.yaml, with the object's namespace before its name where that isn't the stack's NAMESPACE.

    Characters that some file systems refuse (RBAC names may hold a colon) are written as =xx, so that == can only stand
    behind a namespace.
    """
    name = plain_name(resource.name)
    if resource.namespace not in {"", namespace}:
        name = f"{plain_name(resource.namespace)}=={name}"
    stem = f"{resource.kind.lower()}-{name}"
    if len(stem) > 200:
        stem = f"{stem[:180]}-{digest(stem)[:16]}"
    return f"{resource.stage}/{stem}.yaml"


def plain_name(name: str) -> str:
    """NAME in characters that every file system takes; different names stay different."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._") else f"={ord(c):02x}" for c in name)


def joined(results: list[dict[str, Any]]) -> tuple[File, ...]:
    """All files of a stack, by path. Two objects of one name, in whatever stages, only the user can tell apart."""
    files: dict[str, File] = {}
    names: dict[str, str] = {}
    for result in results:
        for path, text in result["files"]:
            name = path.partition("/")[2]
            if names.setdefault(name, path) != path or (path in files and files[path].text != text):
                raise FindingsError(conflict(path))
            files[path] = File(path, text)
    return tuple(files[path] for path in sorted(files))


def conflict(path: str) -> Finding:
    """The finding for two objects that would be written to one file."""
    kind, _, name = path.partition("/")[2].removesuffix(".yaml").partition("-")
    return Finding(
        "GPU204",
        "error",
        f"two objects are called {kind} {name}",
        path="spec.extraObjects",
        why="one would overwrite the other in the cluster",
        remedy="rename the object in spec.extraObjects, or leave it out: gpustack renders one of that name",
    )
