"""IMP8xx: what the GitOps engine's own objects do: from where, to where and how it syncs.

These objects are applied where the engine is, so no rule about a cluster's objects sees them (`Subject.engine`).
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from ...gitops.engine import Paths, Told
from ...gitops.engines import engine, names
from ...model import Body, dotted
from ..diff.objects import ObjectChange, at, items
from .origin import destination as served
from .origin import spelled
from .rule import Hit, rule
from .subject import Subject
from .tiers import PLANNED, POWER, ROUTINE

NOTHING = Told("")


def engine_step(subject: Subject) -> tuple[str, str] | None:
    """The engine before, and the one after or "" for none, where they differ: by the policies, else by the objects."""
    if subject.before is not None and subject.after is not None:
        old, new = (side.gitops.engine if side.gitops else None for side in (subject.before, subject.after))
        return (old, new or "") if old and old != new else None
    there = {change.identity.engine for change in subject.engine if change.what != "removed"}
    gone = {change.identity.engine for change in subject.engine} - there
    return (min(gone), min(there)) if gone and there else None


def told(change: ObjectChange) -> Told:
    """What an object such as that of CHANGE tells its engine; nothing, of an engine that gpustack doesn't know."""
    identity = change.was or change.identity
    return engine(identity.engine).kinds.get(identity.kind, NOTHING) if identity.engine in names() else NOTHING


def changed(subject: Subject) -> Iterator[tuple[ObjectChange, Told]]:
    """The engine's objects that are there on both sides and differ, each with what its kind tells the engine."""
    return ((change, told(change)) for change in subject.engine if change.what == "changed")


def shown(value: Any) -> str:
    """VALUE in a sentence."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(value[key])}" for key in sorted(value))
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def steps(change: ObjectChange, paths: Paths) -> Iterator[str]:
    """What became of the fields at PATHS, those that differ."""
    for path in paths:
        old, new = change.both(*path)
        if old != new:
            yield f"{dotted(path[1:])} {shown(old)} -> {shown(new)}"


def prunes(body: Body | None, kind: Told) -> bool:
    """Whether what is no longer rendered is deleted without anybody's help."""
    return bool(kind.prunes) and at(body, *kind.prunes) is True


@rule("IMP801", 2)
def prunes_now(subject: Subject) -> Iterator[Hit]:
    """The engine deletes what is no longer rendered, and didn't before."""
    for change, kind in changed(subject):
        if prunes(change.new, kind) and not prunes(change.old, kind):
            yield Hit(str(change.identity), "pruning is turned on")


@rule("IMP802", 1)
def destination(subject: Subject) -> Iterator[Hit]:
    """The engine applies the manifests to another cluster."""
    for change, kind in changed(subject):
        for path in kind.goes:
            old, new = map(without_namespace, change.both(*path))
            if old != new:
                yield Hit(str(change.identity), f"{dotted(path[1:])} {shown(old)} -> {shown(new)}")


def without_namespace(where: Any) -> Any:
    """WHERE an engine's object goes. The namespace beside it moves nothing: every object has its own."""
    return {key: value for key, value in where.items() if key != "namespace"} if isinstance(where, dict) else where


@rule("IMP803", 1)
def source(subject: Subject) -> Iterator[Hit]:
    """The engine reads the manifests from somewhere else."""
    for change, kind in changed(subject):
        for step in steps(change, kind.reads):
            yield Hit(str(change.identity), step)


@rule("IMP804", 2)
def nobody_syncs(subject: Subject) -> Iterator[Hit]:
    """What an engine's object synced is synced by nobody any more, or by another object."""
    if subject.whole == "gone" or engine_step(subject):
        return
    emptied = {change.file.partition("/")[0] for change in subject.changes if change.what == "removed"}
    new = (change for change in subject.engine if change.what in {"added", "renamed"})
    come = {folder_of(change.new, told(change)): change.identity for change in new}
    for change in subject.engine:
        identity, kind = change.was or change.identity, told(change)
        folder = folder_of(change.old, kind)
        if change.what not in {"removed", "renamed"} or not kind.syncs:
            continue
        if folder in come:
            what = f"{come[folder]} takes its place"
        elif kind.each_stage and folder.rpartition("/")[2] in emptied:
            continue
        else:
            what = f"{kind.syncs} isn't synced any more"
        then = kind.ends if kind.ends and prunes(change.old, kind) else "what it applied stays as it is"
        yield Hit(str(identity), f"it is removed: {what}, and {then}")


def folder_of(body: Body | None, kind: Told) -> str:
    """The folder that an engine's object applies."""
    return str(at(body, *kind.folder) or "") if kind.folder else ""


RIGHTS = {"project", "serviceAccountName"}
"""By whose rights it applies."""


@rule("IMP805", 3, 1, 5)
def how(subject: Subject) -> Iterator[Hit]:
    """The engine syncs in another way."""
    for change, kind in changed(subject):
        for path in kind.how:
            tier = POWER if path[-1] in RIGHTS else ROUTINE if path[-1] == "interval" else PLANNED
            yield from (Hit(str(change.identity), step, tier=tier) for step in steps(change, (path,)))


@rule("IMP806", 1, 3)
def permits_more(subject: Subject) -> Iterator[Hit]:
    """An AppProject permits more than before."""
    for change, kind in changed(subject):
        for path in (*kind.permits, *kind.kinds):
            old, now = map(items, change.both(*path))
            if new := [shown(each) for each in now if each not in old]:
                yield Hit(str(change.identity), f"{path[-1]}: {'; '.join(new)}", tier=subject.power(change))


@rule("IMP808", 3)
def permits_less(subject: Subject) -> Iterator[Hit]:
    """An AppProject permits kinds no more."""
    for change, kind in changed(subject):
        for path in kind.kinds:
            old, new = map(items, change.both(*path))
            gone = [each for each in old if each not in new]
            names = (f"{each['kind']} ({each['group']})" if each["group"] else each["kind"] for each in gone)
            if gone:
                yield Hit(str(change.identity), f"{path[-1]} without {', '.join(names)}")


def may_be_one(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether nothing tells the destinations ONE and TWO, which are others by the letter, apart."""
    named = [where[1].startswith("name ") for where in (one, two)]
    if one[0] != two[0] or len(one) != 2 or all(named):
        return False  # of another engine, or of one that takes them from Secrets by name
    (how, host), (other, there) = (_form(where[1].rpartition(":")[0].rstrip(".")) for where in (one, two))
    alike = f"{host}.".startswith(f"{there}.") or f"{there}.".startswith(f"{host}.")
    return any(named) or how != other or how == "number" or alike


def _form(host: str) -> tuple[str, str]:
    """What kind of an address HOST is, and the one spelling of it; a number may be any address of IPv4."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "number" if re.fullmatch(r"(?:.*\.)?(?:0x[0-9a-f]+|[0-9]+)", host) else "name", host
    address = getattr(address, "ipv4_mapped", None) or address
    return f"IPv{address.version}", str(address)


@rule("IMP807", 1)
def two_at_once(subject: Subject) -> Iterator[Hit]:
    """Two clusters' manifests are applied to one destination."""
    there, counted = served(subject.after), subject.fleet.destinations
    if there and there != served(subject.before):
        if counted.get(there, 0) > 1:
            yield Hit("gitops", f"{' '.join(there)} is another cluster's destination, too")
        alike = sorted(" ".join(each) for each in counted if each != there and may_be_one(each, there))
        if alike:
            yield Hit("gitops", f"{' '.join(there)} may be the cluster that is a destination as {_three(alike)}")
    installation, name = spelled(subject.after)
    others = sorted(subject.fleet.spelled.get(installation, set()) - {name})
    if installation and not there and others and spelled(subject.before) != (installation, name):
        where = f"{name} is where Argo CD itself runs, which applies to {_three(others)}, too"
        yield Hit("gitops", f"{where}: that may be the same one")


def _three(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"
