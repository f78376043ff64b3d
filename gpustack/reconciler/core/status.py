"""What people are told: what a NodePolicy has come to, and what an operation is at.

A status has counts, reasons, and conditions that deployment tools can gate on. Ready means that the policy was accepted
and is acted on. A rollout that waits (paused, window closed, one node of 500 down) stays Ready, or Flux and Argo CD
would hold back the next commit; RolledOut says whether every node is as the policy wants, for those who want to wait
for it. Stalled says that nothing will happen before somebody acts (reconciler.md A7).

A node that is cordoned says neither by whom nor why, until when, nor what to do about it. So there is an Event on it
for each phase, in plain words, for whoever is woken at night by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...api import keys
from ...api.node_policy import Breaker, NodePolicy, Soak, Status, Waiting
from ...api.objects import Condition
from ...model import few
from .actions import PatchNode, Tell, Wait, WaitKind
from .bounds import brief
from .queue import Looked, Pass
from .record import Operation, readable
from .snapshot import Snapshot
from .view import View

NAMES = 20
"""How many nodes a reason names."""
SUSPENDED: dict[str, str] = {"paused": "Paused", "hold": "Held", "window": "WindowClosed", "breaker": "BreakerOpen"}
"""Kinds of waiting that somebody chose, as reasons of RolledOut."""


@dataclass(frozen=True)
class Tally:
    """What a pass saw of a policy's nodes."""

    nodes: int = 0
    current: int = 0
    operating: int = 0
    quarantined: int = 0
    uncovered: int = 0
    overlapping: Sequence[str] = ()
    lost: Sequence[str] = ()
    """Nodes that belonged to the policy and match none any more: their labels are gone."""
    waits: Sequence[Wait] = ()


def tallies(so_far: Pass, waits: Iterable[Wait]) -> dict[str, Tally]:
    """What was seen of the nodes of each policy, by its UID."""
    said: dict[str, list[Wait]] = {}
    for wait in waits:
        said.setdefault(wait.policy, []).append(wait)
    made = {}
    members: dict[str, list[tuple[View, Looked]]] = {}
    for view, looked in zip(so_far.views, so_far.looked, strict=True):
        for each in view.policies if view.gpu else ():
            members.setdefault(each.uid, []).append((view, looked))
    lost = [(view, looked.lost) for view, looked in zip(so_far.views, so_far.looked, strict=True) if looked.lost]
    for policy in so_far.known.policies:
        every = members.get(policy.uid, [])
        own = [(view, looked) for view, looked in every if len(view.policies) == 1]
        open_ = Counter(view.operation.phase == "Quarantine" for view, _ in own if view.operation)
        made[policy.uid] = Tally(
            nodes=len(own),
            current=sum(looked.current for _, looked in own),
            operating=open_[False],
            quarantined=open_[True],
            uncovered=sum(looked.uncovered for _, looked in own),
            overlapping=[view.name for view, _ in every if len(view.policies) > 1],
            lost=[view.name for view, uids in lost if policy.uid in uids],
            waits=said.get(policy.name, []),
        )
    return made


def status(known: Snapshot, policy: NodePolicy, tally: Tally, switch: Breaker, soak: Soak | None = None) -> Status:
    """The status of POLICY."""
    grouped: dict[WaitKind, list[Wait]] = {}
    for wait in tally.waits:
        grouped.setdefault(wait.kind, []).append(wait)
    waiting = [_waiting(kind, waits) for kind, waits in sorted(grouped.items())]
    return Status(
        observedGeneration=policy.metadata.generation,
        nodes=tally.nodes,
        current=tally.current,
        operating=tally.operating,
        quarantined=tally.quarantined,
        waiting=waiting,
        conditions=_conditions(known, policy, tally, switch, waiting),
        breaker=switch,
        soak=soak,
    )


def _waiting(kind: WaitKind, waits: Sequence[Wait]) -> Waiting:
    """What nodes wait for that wait for the same kind of thing; in the words of the first by name."""
    ordered = sorted(waits, key=lambda wait: wait.node)
    names = [wait.node for wait in ordered]
    return Waiting(reason=kind, count=len(names), nodes=names[:NAMES], message=brief(ordered[0].message))


def _conditions(
    known: Snapshot, policy: NodePolicy, tally: Tally, switch: Breaker, waiting: Sequence[Waiting]
) -> list[Condition]:
    stalled = _stalled(known, tally)
    stopped = stalled or (switch.message if switch.open else "")
    missing = _missing(policy, tally)
    done = tally.current == tally.nodes and not missing
    reason, message = ("NoNodes", missing) if missing else _rollout(tally, switch, waiting)
    uncovered = f"{tally.uncovered} nodes have a system or kernel that no driver DaemonSet is rendered for"
    working = "Stalled" if stalled else "BreakerOpen" if switch.open else "Working"
    covered = "NoDriver" if tally.uncovered else "NoNodes" if not tally.nodes else "AllCovered"
    rows = [
        ("Ready", not stalled, "Stalled" if stalled else "Accepted", stalled or message),
        ("Stalled", bool(stopped), working, stopped or "nothing is in the way"),
        ("RolledOut", done and not stalled, reason, message),
        ("NodeNotCovered", tally.uncovered > 0, covered, uncovered),
    ]
    return [_condition(policy, known.now, row) for row in rows]


def _stalled(known: Snapshot, tally: Tally) -> str:
    if known.foreign:
        return f"{known.foreign} runs and sets the same labels: scale it to 0"
    if tally.overlapping:
        return f"{tally.overlapping[0]} and {len(tally.overlapping) - 1} more nodes match several NodePolicies"
    return ""


def _missing(policy: NodePolicy, tally: Tally) -> str:
    """Why it can't be said that all is done, though nothing is left to do: nodes are gone that should be there."""
    if tally.lost:
        names = few(tally.lost, 1)
        return f"{names} belonged to it and match no NodePolicy any more: see whether node feature discovery works"
    if not tally.nodes and policy.spec.minNodes:
        return f"no node matches it, and its pools have {policy.spec.minNodes} at least"
    return ""


def _rollout(tally: Tally, switch: Breaker, waiting: Sequence[Waiting]) -> tuple[str, str]:
    counts = f"{tally.current} of {tally.nodes} nodes are as wanted"
    if not tally.nodes:
        return "NoNodes", "no node matches it"
    if tally.current == tally.nodes:
        return "Done", counts
    if switch.open:
        return "BreakerOpen", f"{counts}; {switch.message}"
    if tally.operating:
        return "RollingOut", f"{counts}, {tally.operating} are worked on"
    others = sorted((each for each in waiting if each.reason not in SUSPENDED), key=lambda each: -each.count)
    chosen = [SUSPENDED[each.reason] for each in waiting if each.reason in SUSPENDED]
    if chosen and not others:
        return chosen[0], counts
    first = "".join(part.capitalize() for part in others[0].reason.split("-")) if others else ""
    return f"Waiting{first}", counts + "".join(f"; {each.count} wait: {each.reason}" for each in waiting)


def _condition(policy: NodePolicy, now: datetime, row: tuple[str, bool, str, str]) -> Condition:
    """ROW (type, whether it holds, reason, message) with the time of the last change of its status."""
    kind, holds, reason, message = row
    status = "True" if holds else "False"
    before = next((each for each in policy.status.conditions if each.type == kind and each.status == status), None)
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=brief(message),
        observedGeneration=policy.metadata.generation,
        lastTransitionTime=(before and before.lastTransitionTime) or now,
    )


def told(view: View, patch: PatchNode) -> Tell | None:
    """What PATCH means for the node; None where it begins no phase, or one that has an Event of its own."""
    operation = readable(Operation, patch.annotations.get(keys.OPERATION))
    before = view.operation
    where = operation and (operation.id, operation.phase, operation.step)
    if operation is None or (before and (before.id, before.phase, before.step) == where):
        return None
    words = _words(view.name, operation)
    return Tell(view.name, f"Operation{operation.phase}", words) if words else None


def _words(node: str, operation: Operation) -> str:
    what = f"{operation.kind} ({operation.target})"
    back = f"to have it back: kubectl label node {node} {keys.HOLD}=true"
    if operation.acted:
        back = "it has failed before, and stays cordoned until it works"
    until = f", until {operation.deadline:%Y-%m-%dT%H:%MZ} at the latest" if operation.deadline else ""
    if operation.phase == "Held":
        waits = f"; waits for pods of {operation.finish.wait.podSelector}" if operation.finish.wait.podSelector else ""
        until = until or ", for an hour at the latest"
        return f"cordoned for {what}, attempt {operation.attempt}{waits}{until}; {back}"
    if operation.phase == "Evicting":
        how = "drained" if operation.step == "drain" else "emptied of pods that use its GPUs"
        return f"{how} for {what}{until}; {back}"
    if operation.phase == "Acting":
        cordoned = "stays cordoned" if operation.cordon else "is set up"
        return f"{operation.step or operation.kind} is under way{until}; the node {cordoned}, and there is no way back"
    if operation.phase == "Verifying":
        return f"{what} is done; whether the node works is looked at{until}, and then it is given back"
    return ""
