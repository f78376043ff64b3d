"""What a change of rings, or of how far changes have come, means to a reviewer: which rings get what, and which of the
protections that rings are made for is gone around.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..model import few
from ..text.quantities import milliseconds
from .impact import repository
from .impact.effects import Effect
from .impact.evidence import digest
from .impact.tiers import POWER, ROUTINE

if TYPE_CHECKING:
    from ..policy.loading.rings import Change, Rings

Ringed = tuple["Rings", Mapping[str, str | None]]
"""The rings and changes of a side, and the ring of each cluster."""


def effects(before: Ringed, after: Ringed, changed: Iterable[str]) -> Iterator[Effect]:
    """What is told of the rings BEFORE and AFTER, where the clusters CHANGED render otherwise."""
    old, new = before[0], after[0]
    texts = [{each.document.file: each.document.text for each in side.changes} for side in (old, new)]
    texts[0] |= {old.document.file: old.document.text} if old.document else {}
    texts[1] |= {new.document.file: new.document.text} if new.document else {}
    fleet = next((each.file for each in (new.document, old.document) if each), "")
    known = {each.name: each for each in old.changes}
    found = [
        (each.document.file, what) for each in new.changes for what in _hasty(known.get(each.name), each, old, new)
    ]
    for path, what in [*found, *((fleet, what) for what in _looser(before, after))]:
        sides = (digest(side.get(path)) for side in texts)
        yield repository.effect("IMP003", POWER, path, what, before=next(sides), after=next(sides))
    for each in new.changes:
        was = known[each.name].rollout.ring if each.name in known else None
        rest = [ring.name for ring in new.rings[new.place(each.rollout.ring) + 1 :]]
        if each.name not in known or was != each.rollout.ring:
            what = f"from {was or 'no ring'} to {each.rollout.ring or 'no ring'}; yet to come: {few(rest, 6) or 'none'}"
            yield repository.effect("IMP004", ROUTINE, each.document.file, what)
    total, touched = Counter(after[1].values()), dict[str | None, list[str]]()
    for cluster in sorted(changed):
        touched.setdefault(after[1].get(cluster), []).append(cluster)
    named = {ring.name: touched[ring.name] for ring in new.rings if ring.name in touched}
    shares = [f"{ring} {len(names)} of {total[ring]} ({few(names, 6)})" for ring, names in named.items()]
    if shares:
        yield repository.effect("IMP004", ROUTINE, fleet, f"clusters that change, by rings: {', '.join(shares)}")


def _hasty(was: Change | None, change: Change, old: Rings, new: Rings) -> Iterator[str]:
    """What CHANGE, which WAS otherwise, goes around."""
    start = was.rollout.ring if was else None
    step, came = new.place(change.rollout.ring) - new.place(start), was.rollout.came if was else None
    if step > 1:
        yield f"goes over rings: from {start or 'no ring'} to {change.rollout.ring}"
    if step > 0 and came and change.rollout.came:
        soak = datetime.timedelta(milliseconds=milliseconds(old.rings[old.place(start)].soak))
        if change.rollout.came < came + soak:
            yield f"leaves the ring {start} before its soak is over"
    if was and start and step == 0 and was.rollout.since != change.rollout.since:
        yield f"says of another time that it came to the ring {start}"
    if was and was.rollout.hold and step >= 0 and not change.rollout.hold:
        yield f"is no longer held: {was.rollout.hold}"
    if was and start and was.part.data != change.part.data:
        yield f"says something else, at once in all rings up to {start}"


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
    moved = [name for name, ring in now.items() if was.get(name, ring) != ring]
    if moved and any(each.rollout.ring for each in (*old.changes, *new.changes)):
        yield f"in another ring while a change is on its way: {few(sorted(moved), 6)}"
