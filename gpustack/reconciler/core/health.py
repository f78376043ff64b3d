"""Faults that a node's conditions tell of: what is done about them, for how many nodes, and when a node is well again.

Solves: a GPU with an uncorrectable error goes on being given to pods, until somebody reads a graph. Who sees it says so
in a condition of the Node (node-problem-detector, NVSentinel, an agent of the cloud); the policy says what each means.
Nothing is believed at once or for ever: a fault counts once it was told of for a while without a break, its end as
well, and what is Unknown or has no heartbeat any more is neither. Whoever owns a node can write its conditions, and a
bad detector tells of faults everywhere: no more nodes go than the policy lets go, and with too many at once none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal, NamedTuple

from ...api.node_policy import Health, HealthRule, NodePolicy
from ...api.objects import NodeCondition
from ...model import few
from .actions import Why
from .bounds import brief, span
from .budget import NAMED, absolute, announced
from .pods import to_evict
from .record import Act, Operation, Request, Target
from .snapshot import Snapshot
from .view import View, uses_of

FIRST = timedelta(days=30)
"""For how long a new cluster's faults are only reported, where its policy says no day."""
LONGEST = 4096
"""How much of a message is looked at."""
ASKS: tuple[Request, ...] = ("", "reset", "reboot")
State = Literal["fault", "unknown", "well"]


class Fault(NamedTuple):
    """A condition that tells of a fault, and the rule by which it does."""

    rule: HealthRule
    condition: NodeCondition

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.condition.reason, brief(self.condition.message, 120))))
        return f"condition {self.condition.type}={self.condition.status}" + (f" ({said})" if said else "")


@dataclass(frozen=True)
class Found:
    """What the conditions of a node tell: faults to act on, faults to report, and why the others aren't known."""

    faults: Sequence[Fault] = ()
    reported: Sequence[Fault] = ()
    unknown: str = ""

    @property
    def state(self) -> State:
        """What is known of the node."""
        return "fault" if self.faults else "unknown" if self.unknown else "well"


def look(known: Snapshot, view: View, policy: NodePolicy | None = None) -> Found:
    """What the conditions of the node tell by its policy, or by POLICY where that says nothing of faults. Faults only
    reported yet are not to act on; a node that is out for one stays so, though a NodePolicy made anew reports first."""
    policy = next((each for each in (view.policy, policy) if each and each.spec.health), None)
    section = policy.spec.health if policy else None
    if policy is None or section is None:
        return Found()
    rules = known.health_rules[policy.uid]
    told = [_told(rules[each.type], each, known.now) for each in view.node.status.conditions if each.type in rules]
    faults = [each for each in told if isinstance(each, Fault)]
    out = bool(view.operation and view.operation.target.health)
    counts = out or acts_from(known, section) is None
    acting = [each for each in faults if counts and each.rule.then != "report"]
    unknown = next((each for each in told if isinstance(each, str)), "")
    return Found(acting, [each for each in faults if each not in acting], unknown)


def _told(rules: Sequence[HealthRule], condition: NodeCondition, now: datetime) -> Fault | str | None:
    """What CONDITION tells by the RULES for its type: a fault, why it isn't known, or that all is well (None)."""
    limit = min((each.heartbeatSeconds for each in rules if each.heartbeatSeconds), default=0)
    beat = condition.lastHeartbeatTime
    if limit and (beat is None or now - beat > span(limit)):
        return f"condition {condition.type} has had no heartbeat since {f'{beat:%Y-%m-%dT%H:%MZ}' if beat else 'ever'}"
    if condition.status not in {"True", "False"}:
        return f"condition {condition.type} is {condition.status or 'without a status'}"
    rule = next((each for each in rules if _fits(each, condition)), None)
    return Fault(rule, condition) if rule else None


def _fits(rule: HealthRule, condition: NodeCondition) -> bool:
    pairs = ((rule.reasons, condition.reason), (rule.messages, condition.message))
    return condition.status == rule.status and all(
        not patterns or any(fnmatchcase(text[:LONGEST], pattern) for pattern in patterns) for patterns, text in pairs
    )


def acts_from(known: Snapshot, section: Health) -> str | None:
    """Why faults are only reported yet; None where something is done about them."""
    made = [at for each in known.policies if (at := each.metadata.creationTimestamp)]
    until = section.reportOnlyUntil or (min(made) + FIRST if made else None)
    if until is not None and known.now >= until:
        return None
    return f"only reported until {f'{until:%Y-%m-%dT%H:%MZ}' if until else 'the policy is in the cluster'}"


def reports(known: Snapshot, view: View) -> list[Why]:
    """What is told of the node though nothing is done about it, or not yet."""
    found, section = look(known, view), view.policy.spec.health if view.policy else None
    if section is None:
        return []
    yet = acts_from(known, section)
    said = [f"{each}; {yet if yet and each.rule.then != 'report' else 'only reported'}" for each in found.reported]
    if found.faults and view.operation is None and not _lasts(known, view, found, section):
        said.append(f"{found.faults[0]}; it counts once it was told of for {section.holdSeconds} s without a break")
    said += [f"whether its GPUs work isn't known: {found.unknown}"] if found.unknown and not found.faults else []
    return [("health", few(said, NAMED))] if said else []


def _lasts(known: Snapshot, view: View, found: Found, section: Health) -> bool:
    """Whether there has been a fault for long enough to act on it."""
    holds = bool(found.faults)
    return known.seen.since(view.node.uid, "fault", known.now, holds=holds) >= span(section.holdSeconds) and holds


def unwell(known: Snapshot, view: View) -> str:
    """Why the node can't be called well yet; "" where it can."""
    said = view.policy.spec.health if view.policy else None
    found, section = look(known, view), said or Health()
    well = known.seen.since(view.node.uid, "well", known.now, holds=found.state == "well")
    if found.state == "well" and well < span(section.settleSeconds):
        told = said is not None and not found.reported
        what = "no fault is told of any more" if told else "nothing is done about its fault any more"
        return f"{what}, for {int(well.total_seconds())} of {section.settleSeconds} s"
    return str(found.faults[0]) if found.faults else found.unknown


def due(known: Snapshot, view: View, policy: NodePolicy) -> Target | None:
    """What is to become of the node for its faults; None for nothing, and while something else is done there. What is
    open never asks for less than it did: of two faults one may end first."""
    operation, section = view.operation, policy.spec.health
    if section is None or (operation and not operation.target.health):
        return None
    found = look(known, view)
    if operation is None and not _lasts(known, view, found, section):
        return None
    if operation and not unwell(known, view):
        return None
    before = [operation.target] if operation else []
    grades = {*(each.health for each in before), *(each.rule.then for each in found.faults)}
    asks = max([*(each.request for each in before), *(each.rule.request for each in found.faults)], key=ASKS.index)
    quarantined = operation is not None and operation.phase == "Quarantine"
    listed = known.pods.get(view.name) if quarantined and asks and found.faults else None
    free = listed is not None and not to_evict(listed, uses_of(known, view))  # what it needs disturbs nobody now
    return Target(health="drain" if "drain" in grades or free else "cordon", request=asks)


def stays(view: View, operation: Operation) -> bool:
    """Whether the node stays cordoned though what OPERATION does is given up: pods would only come to a bad GPU. Who
    holds the node, or gives it to another policy, has it back."""
    policy = view.policy
    belongs = policy is not None and policy.uid == operation.policy and policy.spec.health is not None
    return bool(operation.target.health) and belongs and not view.held


def _out(view: View) -> bool:
    """Whether the node is out of service for a fault. While it is cordoned its record is enough, whatever the ledger
    has lost: whoever owns the node and forges one gets no more by it than by a condition that tells of a fault."""
    record = view.operation or (view.unledgered if view.node.spec.unschedulable else None)
    return record is not None and record.target.health != ""


@dataclass
class Faults:
    """How many more nodes may go for a fault, in all pools together."""

    known: Snapshot
    views: Sequence[View]

    @cached_property
    def sections(self) -> list[Health]:
        """What the policies say: the same, but while a sync is under way."""
        return [each.spec.health for each in self.known.policies if each.spec.health]

    @cached_property
    def out(self) -> dict[str, str]:
        """The nodes that are out of service for a fault, or may be: who was announced may be one."""
        return {
            view.node.uid: view.name
            for view in self.views
            if _out(view) or view.spoilt or announced(view, self.known.admitting)
        }

    @cached_property
    def many(self) -> str:
        """Why nothing is done about any fault: too many nodes tell of one, be they of no pool now, of several, or of
        one whose policy only reports yet or doesn't say so yet."""
        other = next((each for each in self.known.policies if each.spec.health), None)
        looks = ((view.name, look(self.known, view, other)) for view in self.views)
        faulty = [name for name, it in looks if any(each.rule.then != "report" for each in (*it.faults, *it.reported))]
        limit = min((max(absolute(each.breakerShare, len(self.views)), 1) for each in self.sections), default=0)
        if len(faulty) <= limit:
            return ""
        what = f"{len(faulty)} of {len(self.views)} nodes tell of a fault at once: {few(sorted(faulty), NAMED)}"
        return f"{what}; of more than {limit} nobody believes it"

    def refuses(self, view: View, acts: Sequence[Act]) -> Why | None:
        """Why nothing may be done about the node's fault now, where one of ACTS is for it."""
        if "health" not in acts:
            return None
        if self.many:
            return "health-limit", self.many
        total = len(self.views)
        limit = min((min(each.maxNodes, absolute(each.maxShare, total)) for each in self.sections), default=0)
        if view.node.uid in self.out or len(self.out) < limit:
            return None
        names = few(sorted(self.out.values()), NAMED)
        return "health-limit", f"{len(self.out)} nodes are out of service for a fault, and {limit} may be: {names}"

    def take(self, view: View, target: Target) -> None:
        """Count the node as taken, if TARGET is for a fault."""
        if target.health:
            self.out[view.node.uid] = view.name
