"""IMP5xx: what goes, and what neither the API server nor an engine can change in place."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...catalog import object_kinds
from ...model import Body, few
from ..diff.objects import ObjectChange, at, items, mapping
from .engines import engine_step
from .rights import ADMISSION
from .rule import Hit, rule
from .subject import WORKLOADS, Subject, guarded
from .table import guard
from .tiers import OUTAGE, POWER

CRD = "CustomResourceDefinition"


@rule("IMP501", 2)
def cluster_goes(subject: Subject) -> Iterator[Hit]:
    """A cluster's whole folder goes."""
    if subject.whole == "gone":
        engine = subject.before.gitops and subject.before.gitops.engine if subject.before else None
        left = f"; what is rendered for {engine} leaves them in the cluster" if engine else ""
        yield Hit("", f"all {len(subject.changes)} objects are removed{left}")


@rule("IMP502", 3)
def cluster_comes(subject: Subject) -> Iterator[Hit]:
    """A cluster is new."""
    if subject.whole == "new":
        yield Hit("", f"{len(subject.changes)} objects are added")


def gone(subject: Subject) -> Iterator[ObjectChange]:
    """What an engine prunes, by the identity that it had; nothing for a cluster that goes as a whole."""
    return (change for change in subject.changes if change.what in {"removed", "renamed"} and not subject.whole)


HEAVY: Mapping[str, str] = object_kinds.facts()["heavy"]


@rule("IMP503", 2, 1)
def heavy_removal(subject: Subject) -> Iterator[Hit]:
    """An object that others live by is removed."""
    removed = [(change, change.was or change.identity) for change in gone(subject)]
    pods = {(identity.namespace, identity.name) for _, identity in removed if identity.kind in WORKLOADS}
    for change, identity in removed:
        if identity.kind == "PodDisruptionBudget" and (identity.namespace, identity.name) in pods:
            continue  # its pods go, too
        if identity.kind in HEAVY:
            tier = POWER if guard(identity.kind) and subject.power(change) == POWER else OUTAGE
            yield Hit(str(identity), f"it is removed: {HEAVY[identity.kind]}{guarded(change.old)}", tier=tier)


TOLD = {*ADMISSION, *HEAVY} - {"PodDisruptionBudget"}
"""Kinds of which other rules name each object that is removed."""


@rule("IMP504", 3)
def pruned(subject: Subject) -> Iterator[Hit]:
    """Objects are removed."""
    removed = ((change.was or change.identity).kind for change in gone(subject))
    kinds = Counter(kind for kind in removed if kind not in TOLD)
    if kinds:
        yield Hit("", ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) + " removed")


def schema_fields(schema: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields that a schema of a CRD knows."""
    for name, inner in mapping(mapping(schema).get("properties")).items():
        here = f"{path}.{name}" if path else str(name)
        yield here
        yield from schema_fields(inner, here)
    if "items" in mapping(schema):
        yield from schema_fields(mapping(schema)["items"], f"{path}[]")
    extra = mapping(schema).get("additionalProperties")
    if isinstance(extra, dict):
        yield from schema_fields(extra, f"{path}{{}}")


def versions(body: Body | None) -> dict[str, Any]:
    """The versions of a CRD that are served, by name."""
    listed = (mapping(each) for each in items(at(body, "spec", "versions")))
    return {str(each.get("name")): each for each in listed if each.get("served") is not False}


@rule("IMP505", 2)
def crd_shrinks(subject: Subject) -> Iterator[Hit]:
    """A CustomResourceDefinition loses a version or fields."""
    for change in subject.changed(CRD):
        old, new = versions(change.old), versions(change.new)
        lost = sorted(old.keys() - new.keys())
        if lost:
            yield Hit(str(change.identity), f"no longer served: {', '.join(lost)}")
        for name in sorted(old.keys() & new.keys()):
            before, after = (set(schema_fields(at(side[name], "schema", "openAPIV3Schema"))) for side in (old, new))
            fields = sorted(before - after)
            if fields:
                yield Hit(str(change.identity), f"{name} lacks {few(fields, 5)}")


FIXED = object_kinds.paths(object_kinds.facts()["fixed"])
"""Fields that the API server lets nobody change (its validation of updates), by kind."""


@rule("IMP506", 2)
def fixed_fields(subject: Subject) -> Iterator[Hit]:
    """A field changes that the API server lets nobody change."""
    for change in subject.changed(*FIXED, "ConfigMap"):
        frozen = FIXED.get(change.identity.kind, ())
        if change.identity.kind in {"ConfigMap", "Secret"} and mapping(change.old).get("immutable") is True:
            frozen = (("data",), ("stringData",), ("binaryData",), ("immutable",), *frozen)
        changed = {field.path[: len(path)] for path in frozen for field in change.below(*path)}
        for path in sorted(changed, key=str):
            yield Hit(str(change.identity), f"{'.'.join(map(str, path))} can't be changed in place")


@rule("IMP507", 2, parts=True)
def moves_namespace(subject: Subject) -> Iterator[Hit]:
    """Objects move to another namespace."""
    new = {(each.identity.kind, each.identity.name): each.identity for each in subject.changes if each.what == "added"}
    moved: Counter[tuple[str, str]] = Counter()
    for change in subject.changes:
        other = new.get((change.identity.kind, change.identity.name)) if change.what == "removed" else None
        if other and other.namespace != change.identity.namespace:
            moved[change.identity.namespace, other.namespace] += 1
    for (old, other_space), number in sorted(moved.items()):
        yield Hit("", f"{number} objects move from namespace {old or '(none)'} to {other_space or '(none)'}")


@rule("IMP508", 2)
def changes_stage(subject: Subject) -> Iterator[Hit]:
    """An object moves to another stage."""
    for change in subject.changes:
        if change.moved and change.moved[0].partition("/")[0] != change.moved[1].partition("/")[0]:
            yield Hit(str(change.identity), f"{change.moved[0]} -> {change.moved[1]}")


@rule("IMP509", 2)
def engine_changes(subject: Subject) -> Iterator[Hit]:
    """Another engine syncs the cluster, or none."""
    step = engine_step(subject)
    if step:
        yield Hit("gitops.engine", f"{step[0]} -> {step[1] or 'none'}")
