"""What a change of rings, or of how far changes have come, means: which rings get what, and what is gone around."""

import datetime
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ..model import few, grouped
from ..policy.language.spec import ClusterPolicySpec
from ..policy.loading.rings import Change, Rings, leaves
from ..text.quantities import milliseconds
from .impact import repository
from .impact.effects import Effect, Specs, digest
from .impact.tiers import POWER, ROUTINE

DAY = datetime.timedelta(days=1)
"""How far back a time in a file may lie when it is reviewed: there may be a night between the two."""
AHEAD = datetime.timedelta(minutes=5)
"""By how much clocks of those who promote and of those who review may differ."""
Ringed = tuple[Rings, Mapping[str, str | None]]
"""The rings and changes of a side, and the ring of each cluster."""


def effects(
    before: Ringed, after: Ringed, changed: Collection[str], now: datetime.datetime, specs: Mapping[str, Specs]
) -> Iterator[Effect]:
    """What is told of the rings BEFORE and AFTER, looked at NOW, where the clusters CHANGED render differently, whose
    effective specs of both sides are SPECS."""
    old, new = before[0], after[0]
    read = [[*(each.document for each in side.changes), side.document] for side in (old, new)]
    texts = [{each.file: each.text for each in documents if each} for documents in read]
    fleet = next((each.file for each in (new.document, old.document) if each), "")
    known = {each.name: each for each in old.changes}
    said = list[tuple[str, str]]()
    for each in new.changes:
        was = known.get(each.name)
        told = (*_hasty(was, each, old, now), *_around(was, each, before, after), *_by_others(each, after, specs))
        said += [(each.document.file, what) for what in told]
    dropped = known.keys() - {each.name for each in new.changes}
    for each in (known[name] for name in sorted(dropped)):
        said += [(each.document.file, what) for what in _dropped(each, before, changed)]
    for path, what in [*said, *((fleet, what) for what in _looser(before, after))]:
        sides = (digest(side.get(path)) for side in texts)
        yield repository.effect("IMP003", POWER, path, what, before=next(sides), after=next(sides))
    for each in new.changes:
        start = known[each.name].rollout.ring if each.name in known else None
        times = schedule(each, new)
        rest = [f"{ring.name} {times[ring.name]}" for ring in new.rings[new.place(each.rollout.ring) + 1 :]]
        if each.name not in known or start != each.rollout.ring:
            way = f"from {start or 'no ring'} to {each.rollout.ring or 'no ring'}"
            way = way if start or each.rollout.ring else "in no ring yet"
            what = f"{way}; yet to come: {few([one.rstrip() for one in rest], 6) or 'none'}"
            yield repository.effect("IMP004", ROUTINE, each.document.file, what)
    if fleet and texts[0].get(fleet) != texts[1].get(fleet):
        yield repository.effect("IMP004", ROUTINE, fleet, "who is in which ring, or what rings ask, has changed")
    total = Counter(after[1].values())
    touched = grouped((after[1].get(cluster), cluster) for cluster in sorted(changed))
    named = {ring.name: touched[ring.name] for ring in new.rings if ring.name in touched}
    shares = [f"{ring} {len(names)} of {total[ring]} ({few(names, 6)})" for ring, names in named.items()]
    if shares:
        yield repository.effect("IMP004", ROUTINE, fleet, f"clusters that change, by rings: {', '.join(shares)}")


def schedule(change: Change, rings: Rings) -> dict[str, str]:
    """By the name of each ring what CHANGE is there, or when it can be at the earliest; "" where nothing says."""
    rollout, place, told = change.rollout, rings.place(change.rollout.ring), dict[str, str]()
    at = change.came
    for index, ring in enumerate(rings.rings):
        if index == place and at:
            told[ring.name] = f"since {at:%Y-%m-%d %H:%M} UTC"
        else:
            late = f"not before {at:%Y-%m-%d %H:%M} UTC" if at else ""
            told[ring.name] = "has it" if index < place else "held" if rollout.hold else late
        if at and index >= place:
            at += datetime.timedelta(milliseconds=milliseconds(ring.soak))
    return told


def table(rings: Rings, ring_of: Mapping[str, str | None]) -> tuple[list[str], list[list[str]]]:
    """The changes by rings: the heads of the columns, and a row for each change."""
    members = Counter(ring_of.values())
    heads = ["change", *(f"{each.name} ({members[each.name]})" for each in rings.rings)]
    return heads, [[named(each), *schedule(each, rings).values()] for each in rings.changes]


def named(change: Change) -> str:
    """CHANGE, with the version of gpustack that it brings."""
    return f"{change.name} (gpustack {change.version})" if change.version else change.name


def _hasty(was: Change | None, change: Change, old: Rings, now: datetime.datetime) -> Iterator[str]:
    """What CHANGE, which WAS different, goes around."""
    start, rollout, came = was.rollout.ring if was else None, change.rollout, was.rollout.came if was else None
    further = old.place(rollout.ring) > old.place(start)
    if further and came and rollout.came:
        soak = datetime.timedelta(milliseconds=milliseconds(old.rings[old.place(start)].soak))
        if rollout.came < came + soak:
            yield f"leaves the ring {start} before its soak is over"
    if rollout.came and rollout.came != came and rollout.came > now + AHEAD:
        yield f"says that it will have come to the ring {rollout.ring} on {rollout.came:%Y-%m-%d at %H:%M} UTC"
    if not start and rollout.came and rollout.came < now - DAY:
        yield f"says that it is in the ring {rollout.ring} since {rollout.came:%Y-%m-%d}, and nobody has seen it there"
    if was and start and start == rollout.ring and was.rollout.since != rollout.since:
        yield f"says of another time that it came to the ring {start}"
    if was and was.rollout.hold and not rollout.hold and old.place(rollout.ring) >= old.place(start):
        yield f"is no longer held: {was.rollout.hold}"
    if was and start and (was.part.data, was.version) != (change.part.data, change.version):
        yield f"says something else, at once in all rings up to {start}"


def _around(there: Change | None, change: Change, before: Ringed, after: Ringed) -> Iterator[str]:
    """Which clusters CHANGE, which was THERE before, comes to, of others than the ring that was the next one for it."""
    (old, was), (new, now) = before, after
    following = old.place(there.rollout.ring if there else None) + 1
    come = {
        name
        for name, ring in now.items()
        if name in was and new.reached(change, ring) and not (there and old.reached(there, was[name]))
    }
    far = sorted(name for name in come if old.rings and old.place(was[name]) != following)
    if far:
        yield f"goes over rings, or around them: it comes to {few(far, 6)}"


def _by_others(change: Change, after: Ringed, specs: Mapping[str, Specs]) -> Iterator[str]:
    """Which clusters that CHANGE hasn't reached get all that it says from other files, so that no ring held it."""
    said = {called: value for called, (_, value) in change.leaves.items() if value != {}}
    known: dict[int, bool] = {}

    def has(spec: ClusterPolicySpec | None) -> bool:
        if spec is not None and id(spec) not in known:  # clusters of one shape share a spec
            there = {called: value for called, _, value in leaves(spec.model_dump(mode="json", exclude_none=True))}
            known[id(spec)] = all(there.get(called) == value for called, value in said.items())
        return spec is not None and known[id(spec)]

    far = [name for name in specs if name in after[1] and not after[0].reached(change, after[1][name])]
    got = sorted(name for name in far if said and specs[name][0] and has(specs[name][1]) and not has(specs[name][0]))
    if got:
        yield f"is overtaken: other files say the same to {few(got, 6)}, which it has not reached"


def _dropped(change: Change, before: Ringed, changed: Collection[str]) -> Iterator[str]:
    """What the end of CHANGE, which is gone, goes around: it was held, or clusters that it had not reached change."""
    old, was = before
    if old.place(change.rollout.ring) == len(old.rings) - 1:
        return
    others = sorted(name for name in changed if name in was and not old.reached(change, was[name]))
    if change.rollout.hold:
        yield f"is gone, and was held: {change.rollout.hold}"
    elif change.rollout.ring and others:
        yield f"is gone, and {few(others, 6)}, which it had not reached, change with that"


def _looser(before: Ringed, after: Ringed) -> Iterator[str]:
    """What the rings AFTER ask less than those BEFORE, and who is in another."""
    (old, was), (new, now) = before, after
    rings = {ring.name: ring for ring in new.rings}
    for ring in old.rings:
        other = rings.get(ring.name, ring)
        then, asks = ring.require, other.require
        less = (then.verified and not asks.verified) or (then.findings, asks.findings) == ("none", "warnings")
        if less or milliseconds(other.soak) < milliseconds(ring.soak):
            yield f"the ring {ring.name} soaks for less, or asks for less"
    gone = [ring.name for ring in old.rings if ring.name not in rings]
    if gone:
        yield f"rings are gone, or renamed: {few(gone, 6)}"
    kept = [ring.name for ring in old.rings if ring.name in rings]
    if kept != [ring.name for ring in new.rings if ring.name in kept]:
        yield "rings come in another order"
    moved = [name for name, ring in now.items() if was.get(name, ring) != ring]
    order: dict[str | None, int] = {None: -1, **{ring.name: place for place, ring in enumerate(old.rings)}}
    earlier = [name for name in moved if name in was and order.get(now[name], len(order)) < order[was[name]]]
    if earlier:
        yield f"in an earlier ring, or in none: {few(sorted(earlier), 6)}"
    if moved and any(each.rollout.ring for each in (*old.changes, *new.changes)):
        yield f"in another ring while a change is on its way: {few(sorted(moved), 6)}"
