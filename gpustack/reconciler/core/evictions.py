"""Evicting what uses a node's GPUs: who goes when, when it is given up, and what is not tried again.

Solves: an eviction that can't succeed costs a cordon and whoever was evicted beside it, again and again. So a pod's own
time to end is waited for, whoever takes longest goes first and alone, and a node on which it was given up several times
is left alone until other pods run there. That a node is emptied or drained at all is decided by phases.py; which pods
are in the way, by pods.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.pods import Pod
from . import pods, windows
from .actions import DeletePod, Evict
from .bounds import span
from .record import Operation
from .snapshot import Snapshot
from .view import View, uses_of

IN_VAIN = 3
"""So many attempts that evicted in vain are enough."""
BUDGET = "budget"


def too_long(known: Snapshot, policy: NodePolicy, using: Sequence[Pod]) -> str:
    """Why evicting USING would not be over before the window closes; "" where it would. The point of no return may lie
    outside, since nobody gets back what was evicted; so it is asked before anybody is."""
    until, longest = windows.closes(policy.spec.upgrade.windows, known.now), pods.in_turn(using)
    if until is None or not using or known.now + longest <= until:
        return ""
    what = f"{max(using, key=pods.grace).key} may take" if len(using) == 1 else f"{len(using)} pods may take"
    return f"{what} {int(longest.total_seconds())} s to end, and the window closes at {until:%Y-%m-%dT%H:%MZ}"


def no_window(known: Snapshot, policy: NodePolicy, using: Sequence[Pod]) -> list[str]:
    """Which of USING take longer to end than any window lasts; where none does, why this one is too short for all."""
    hours = max((min(each.hours, windows.WEEK) for each in policy.spec.upgrade.windows), default=windows.WEEK)
    never = [
        f"{pod.key} may take {int(pods.grace(pod).total_seconds())} s to end, and the longest window lasts {hours} h: "
        "a node that it is on is never begun"
        for pod in using
        if policy.spec.upgrade.windows and pods.grace(pod) > timedelta(hours=hours)
    ]
    return never or [too_long(known, policy, using)]


def maker(pod: Pod) -> str:
    """Names whose pod POD is: pods come again under other names, and are as much in the way."""
    owner = pod.metadata.controller
    return f"{pod.metadata.namespace}/{owner.uid if owner else pod.uid}"


def in_the_way(known: Snapshot, left: Sequence[Pod]) -> Pod:
    """The pod for which an attempt is given up."""
    return next((pod for pod in left if pod.uid in known.refusals or pod.terminating), left[0])


def in_vain(view: View, using: Sequence[Pod]) -> str:
    """Why USING are not evicted or awaited again: that was given up several times, and who was in the way still is."""
    last = view.last
    if keys.RETRY in view.annotations or last.outcome != "released" or last.attempt < IN_VAIN or not last.inTheWay:
        return ""
    return vain(view) if last.inTheWay in map(maker, using) else ""


def vain(view: View) -> str:
    """That attempts were in vain, and what helps."""
    return (
        f"given up {view.last.attempt} times: {view.last.reason}; tried again once that pod's like is gone from the "
        f"node, or after `gpustack rollout retry {view.name}`"
    )


def budgets_alone(view: View, obstacles: Sequence[str]) -> bool:
    """Whether of OBSTACLES, found without a trial, nothing but PodDisruptionBudgets is behind: they have refused in
    vain attempts what every trial would let go, as two pods of one budget."""
    return view.last.budgets and list(obstacles) == [vain(view)]


def removal(known: Snapshot, view: View, operation: Operation, pod: Pod, why: str) -> Evict | DeletePod:
    """How POD goes: by eviction, unless it uses a GPU, and a rule says to delete it or its budget has refused for as
    long as it may. What refuses and is no budget, a webhook for example, is never passed over."""
    finish = operation.finish
    over = known.refusals.get(pod.uid) if finish.ignoreBudgets and pod.uid in known.by_budgets else ""
    named = pods.rule_of(pod, finish.podRules) == "delete"
    if not (over or named) or not uses_of(known, view).gpu(pod):
        return Evict(view.name, pod.metadata.namespace, pod.name, pod.uid, why)
    said = f"its budget is ignored: {over}" if over else "spec.reconciler.podRules says so"
    return DeletePod(view.name, pod.metadata.namespace, pod.name, pod.uid, f"{why}; {said}")


def held_up(known: Snapshot, view: View) -> timedelta:
    """For how long nothing but PodDisruptionBudgets has stood against the node, while it had its turn."""
    check, what = known.prechecks.get(view.name), (view.node.uid, BUDGET)
    holds = what in known.seen.first if check is None else check.budgets  # not tried anew: it is as it was
    return known.seen.since(*what, known.now, holds=holds)


def ignored(known: Snapshot, view: View, policy: NodePolicy) -> bool:
    """Whether PodDisruptionBudgets have held up the node for as long as POLICY lets them."""
    check, limit = known.prechecks.get(view.name), policy.spec.upgrade.ignoreBudgetsAfter
    return limit is not None and bool(check and check.budgets) and held_up(known, view) >= span(limit)


def blocked(known: Snapshot, view: View, policy: NodePolicy) -> str:
    """What stands against evicting the pods of the node, by its trial; "" for nothing, or nothing that counts."""
    check, limit = known.prechecks.get(view.name), policy.spec.upgrade.ignoreBudgetsAfter
    if check is None or not check.blockers or ignored(known, view, policy):
        return ""
    if limit is None or not check.budgets:
        return check.blockers[0]
    left = span(limit) - held_up(known, view)
    return f"{check.blockers[0]}; its budget is ignored from {known.now + left:%Y-%m-%dT%H:%MZ} on"


def askable(known: Snapshot, pod: Pod) -> bool:
    """Whether the eviction of POD may be asked for now: it was not told to end, and neither it nor, since one of its
    like was evicted, who makes it come again has to be left alone for a while."""
    if pod.terminating or known.backoff.get(pod.uid, known.now) > known.now:
        return False
    came = known.came_again.get(maker(pod))
    made = pod.metadata.creationTimestamp
    return came is None or made is None or made <= came[0] or known.now >= came[1]


def over(known: Snapshot, view: View, deadline: datetime, left: Sequence[Pod]) -> bool:
    """Whether evicting LEFT has taken too long: the policy's time is over at DEADLINE, and nobody is within his own to
    end. Who has come since has no time of his own: he tolerates the cordon, and would come for ever."""
    if known.now < deadline:
        return False
    old = [pod for pod in left if (made := pod.metadata.creationTimestamp) is None or made <= deadline]
    unasked = any(not pod.terminating and pod.uid not in known.refusals for pod in old)
    idle = unasked and not any(pod.terminating for pod in old)
    if known.seen.since(view.node.uid, "unasked", known.now, holds=idle) < pods.LATE and unasked:
        return False  # who had to wait for somebody who takes longer has not been asked yet
    own = (pod.metadata.deletionTimestamp for pod in old)  # by when each that was told to has to have ended
    return not any(until and known.now <= until + timedelta(seconds=30) for until in own)


def leaves(known: Snapshot, left: Sequence[Pod]) -> str:
    """Why the pods LEFT are still there: a disruption budget that refuses, or that one does not end."""
    for pod in left:
        if refusal := known.refusals.get(pod.uid):
            return f"{pod.key}: {refusal}"
    if text := pods.ending(left, known.now):
        return text
    first = pods.longest_first(left)[0]
    return f"{len(left)} pods still use its GPUs, the first is {first.key}"
