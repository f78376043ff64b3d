"""How long a rollout takes at the most, held against the windows that it has.

By the limits that are rendered: each node takes as long as its deadlines let it, as many have their turn at a time as
the budgets allow, and an operation begins in a window only. Real nodes are faster; nobody knows by how much.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...api.node_policy import NodePolicy
from ...reconciler.core import windows
from ...reconciler.core.admission import Candidate
from ...reconciler.core.bounds import span
from ...reconciler.core.budget import Share
from ..common import counted, moment
from .reading import Look

FURTHEST = 1000
"""Rounds after which an end is too far away to be of use."""


def data(look: Look, shares: Sequence[Share]) -> list[dict[str, Any]]:
    """For each policy with nodes that have something due: how many, how fast, and until when."""
    made = []
    for policy in sorted(look.known.policies, key=lambda each: each.name):
        due = [each for each in look.outlook.order if each.policy is policy and not each.due.install]
        if not due:
            continue
        room = min(min(each.parallel, each.limit) for each in shares if each.name in {policy.name, "the fleet"})
        seconds = max((longest(policy, each) for each in due), key=lambda each: float("inf") if each is None else each)
        entry = {"policy": policy.name, "nodes": len(due), "atATime": min(room, len(due)), "secondsEach": seconds}
        first = policy.spec.upgrade.firstAlone and any(not each.due.restart_only for each in due)
        made.append({**entry, **end(policy, look.known.now, len(due), room, seconds, first=first)})
    return made


def longest(policy: NodePolicy, candidate: Candidate) -> int | None:
    """Seconds until an operation on the node of CANDIDATE has ended or failed; None where it may wait for ever."""
    spec, what = policy.spec, candidate.due
    upgrade, deadlines = spec.upgrade, spec.deadlines
    limits = [] if what.restart_only else [upgrade.podDeletion.timeoutSeconds]
    limits += [upgrade.drain.timeoutSeconds] if upgrade.drain.enable and limits else []
    awaits = upgrade.waitForCompletion.podSelector and not what.health
    limits += [upgrade.waitForCompletion.timeoutSeconds] if awaits and limits else []
    if not all(limits):
        return None
    acting = deadlines.driver if {"driver", "repair"} & set(what.acts) else 0
    acting += deadlines.mig + deadlines.migReboot * spec.migReboot if "mig" in what.acts else 0
    if what.health and spec.health:
        acting = spec.health.settleSeconds + (spec.health.requestSeconds if what.target.request else 0)
    return sum(limits) + acting + deadlines.verifying


def end(
    policy: NodePolicy, now: datetime, nodes: int, room: int, seconds: int | None, *, first: bool
) -> dict[str, Any]:
    """How many windows NODES need, ROOM at a time, and when the last has ended; None where that isn't known."""
    all_of = policy.spec.upgrade.windows
    never: dict[str, Any] = {"windows": None, "doneBy": None}
    if seconds is None or room < 1:
        return never
    # Each end of an operation makes the next one wait anew: of several at a time no more than one is sure to begin.
    soak = span(policy.spec.upgrade.soakSeconds or 0)
    used, closing, done = 0, now, now
    for number in range(FURTHEST):
        if all_of and done >= closing:
            begins = done if windows.is_open(all_of, done) else windows.next_start(all_of, done)
            if begins is None:
                return never
            used, done, closing = used + 1, begins, windows.closes(all_of, begins) or begins
        nodes -= 1 if soak or (first and not number) else room
        done += span(seconds)
        if nodes <= 0:
            return {"windows": used if all_of else None, "doneBy": moment(done)}
        done += soak
    return never


def line(each: dict[str, Any]) -> str:
    """An estimate in words."""
    how = f"{each['policy']}: {counted(each['nodes'], 'node')}, {each['atATime']} at a time"
    if each["secondsEach"] is None:
        return f"{how}; how long each takes isn't limited"
    hours, minutes = divmod(-(-each["secondsEach"] // 60), 60)
    how += f", each{f' {hours} h' if hours else ''}{f' {minutes} min' if minutes else ''} at the most"
    if each["doneBy"] is None:
        return f"{how}; no end can be told"
    within = f" in {counted(each['windows'], 'window')}" if each["windows"] else ""
    return f"{how}; done{within} by {each['doneBy'][:16]}Z at the latest"
