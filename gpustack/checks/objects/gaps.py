"""What is named in a render and not there: the other half of references.py, and the rules over it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...catalog.kubernetes import SYSTEMS
from ..rule import Hit, hit, rule
from ..subjects import Render
from .references import ANYWHERE, Needed, Provided

BUILT_IN = {
    ("PriorityClass", "system-node-critical"),
    ("PriorityClass", "system-cluster-critical"),
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    *(("ClusterRole", name) for name in ("cluster-admin", "admin", "edit", "view")),
}
"""What every cluster has, or every namespace of it."""

SELECTABLE = {
    **dict.fromkeys(("Pod", "DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"), "Pods"),
    "Service": "Services",
}
"""What a reference of a kind may be selected as."""

Identity = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""


class Gap(NamedTuple):
    """An object that somebody names (BY) and that is not there; with KEY, it is there and has only KEYS."""

    kind: str
    namespace: str
    name: str
    by: str
    key: str = ""
    keys: Sequence[str] = ()


class Gaps(NamedTuple):
    """What is missing: objects and keys that are named, and things that are selected by their labels.

    `idle` are the positions of references that nothing names."""

    named: list[Gap]
    selected: list[Needed]
    idle: Sequence[int] = ()


@rule("GPU201", "error", over="render")
def no_object(render: Render) -> Iterator[Hit]:
    """An object that something names does not exist."""
    own = render.spec.cluster.namespace
    for gap in render.gaps.named:
        if not gap.key:
            foreign = gap.namespace not in {"", own}
            place, at = (f" in {gap.namespace}", f", namespace: {gap.namespace}") if foreign else ("", "")
            called = repr(gap.name)
            yield hit("spec.references", kind=gap.kind, called=called, name=gap.name, by=gap.by, place=place, at=at)


@rule("GPU202", "error", over="render")
def no_key(render: Render) -> Iterator[Hit]:
    """A ConfigMap or Secret lacks a key that something uses."""
    for gap in render.gaps.named:
        if gap.key:
            has = ", ".join(gap.keys) or "no keys"
            yield hit("spec.references", kind=gap.kind, name=repr(gap.name), key=repr(gap.key), by=gap.by, has=has)


@rule("GPU203", "error", over="render")
def nothing_selected(render: Render) -> Iterator[Hit]:
    """A selector matches nothing."""
    for item in render.gaps.selected:
        what, kind = ("pods", "DaemonSet") if item.kind == "Pods" else ("Service", "Service")
        labels = ", ".join(item.keys or []) or "any label"
        yield hit("spec.extraObjects", by=item.by, labels=labels, what=what, kind=kind)


@rule("GPU205", "note", over="render")
def reference_without_use(render: Render) -> Iterator[Hit]:
    """An entry of `references` that nothing in the render names."""
    for position in render.gaps.idle:
        reference = render.spec.references[position]
        yield hit(f"spec.references[{position}]", kind=reference.kind, reference=repr(reference.name))


def missing(
    have: Iterable[Provided], need: Iterable[Needed], references: Iterable[Mapping[str, Any]], namespace: str
) -> Gaps:
    """What is named and not there; what many name is one gap.

    REFERENCES are the policy's; without a namespace they mean NAMESPACE, the stack's own."""
    exact: dict[Identity, list[str] | None] = {}
    sets: dict[tuple[str, str], list[set[str]]] = {}
    for there in have:
        if there.kind in {"Pods", "Services"}:
            sets.setdefault((there.kind, there.namespace), []).append(set(there.keys or []))
        else:
            exact[there.kind, there.namespace, there.name] = there.keys
    unseen: set[tuple[str, str]] = set()
    references, need = list(references), list(need)
    for reference in references:
        unseen.add((SELECTABLE.get(reference["kind"], ""), reference.get("namespace") or namespace))
        for identity in _meant(reference, namespace):
            exact.setdefault(identity, reference.get("keys") or None)
    absent: dict[tuple[Identity, str], list[str]] = {}
    unselected: list[Needed] = []
    for item in need:
        if item.kind in {"Pods", "Services"}:
            if not selects(item, sets, unseen):
                unselected.append(item)
        elif not item.optional and not built_in(item):
            identity = (item.kind, item.namespace, item.name)
            for key in lacking(item.keys or [], exact, identity):
                absent.setdefault((identity, key), []).append(item.by)
    named = []
    for (identity, key), named_by in absent.items():
        by = named_by[0] + (f" (and {len(named_by) - 1} more)" if len(named_by) > 1 else "")
        named.append(Gap(*identity, by, key, exact.get(identity) or ()))
    used = {(item.kind, item.namespace, item.name) for item in need}
    by_name = [(at, _meant(each, namespace)) for at, each in enumerate(references) if each["kind"] not in SELECTABLE]
    return Gaps(named, unselected, [at for at, meant in by_name if not used & meant])


def _meant(reference: Mapping[str, Any], namespace: str) -> set[Identity]:
    """What REFERENCE may be: it doesn't say whether its kind has a namespace."""
    return {(reference["kind"], where, reference["name"]) for where in (reference.get("namespace") or namespace, "")}


def built_in(item: Needed) -> bool:
    """Whether ITEM is in every cluster, or in a namespace of the platform's own."""
    if item.kind == "ClusterRole" and item.name.startswith("system:"):
        return True
    return (item.kind, item.name) in BUILT_IN or item.namespace.startswith(SYSTEMS)


def selects(item: Needed, sets: Mapping[tuple[str, str], list[set[str]]], unseen: set[tuple[str, str]]) -> bool:
    """Whether the selector ITEM finds something, or may find something of a reference, whose labels nobody knows."""
    wanted = set(item.keys or [])
    spaces = {where for kind, where in {*sets, *unseen} if kind == item.kind and item.namespace in {where, ANYWHERE}}
    return any((item.kind, where) in unseen for where in spaces) or any(
        wanted <= labels for where in spaces for labels in sets.get((item.kind, where), [])
    )


def lacking(keys: Iterable[str], exact: Mapping[Identity, list[str] | None], identity: Identity) -> list[str]:
    """What of the object IDENTITY is not there: the KEYS that it lacks, or "" for the object itself."""
    if identity not in exact:
        return [""]
    known = exact[identity]
    return [] if known is None else sorted(set(keys) - set(known))
