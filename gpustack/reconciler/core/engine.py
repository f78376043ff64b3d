"""A pass: from what is known to what is done. Two pure functions, so that a plan and its execution can't differ.

`survey` says which nodes need a closer look (their pods, a trial of their evictions), so that a pass costs requests for
the nodes that something happens on and not for all. `decide` makes the decision from what was then gathered. On each
node at most one thing happens in a pass: a write that conflicts is decided anew in the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy, Status
from ...api.objects import Node, Pod
from . import evictions, labeller, phases, pods, status, takeover, telling
from .actions import Action, Decision, PatchNode, PatchStatus, Tell, Wait
from .admission import Candidate, admit, operation_for, retarget, uncovered
from .breaker import breaker, failures
from .closing import release
from .due import Due, differences, due, may_be_new, unclear
from .queue import Pass, admissible
from .record import Operation, Target
from .snapshot import Snapshot
from .startup import untaint
from .view import View, policy_of, uses_of, views

LOOKS = 100
"""New nodes that one pass looks at more closely."""
TRIALS = 20
"""Candidates whose evictions one pass tries."""


@dataclass(frozen=True)
class Wanted:
    """Nodes whose pods the decision needs, and those of them on which evictions are to be tried first (dry run)."""

    pods: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outlook:
    """A pass before anything of it is done: the decision, and what it was made of."""

    decision: Decision
    views: Sequence[View]
    statuses: Mapping[str, Status]
    """What each policy, by UID, has come to."""
    order: Sequence[Candidate] = ()
    """The nodes on which something is due, in the order in which they have their turn."""
    begins: frozenset[str] = frozenset()
    """Names of those of them that begin now."""


def survey(known: Snapshot) -> Wanted:
    """Which nodes to look at more closely. KNOWN has everything but `pods`, `claims` and fresh `prechecks`."""
    if known.foreign:
        return Wanted()
    found = _begin(known)
    wanted: list[str] = []
    fresh = 0
    for view in found.views:
        if view.unreadable:
            continue
        operation = view.operation
        guarded = operation is not None and operation.phase == "Acting" and not operation.install
        if operation and (operation.returnable or operation.phase == "Quarantine" or guarded):
            wanted.append(view.name)
        elif operation is None and view.policy and _needs_pods(known, view, view.policy):
            fresh += 1
            if fresh <= LOOKS:
                wanted.append(view.name)
        _look(found, view)
    candidates = [each.view.name for each in admissible(found, trials=TRIALS)]
    return Wanted(tuple(dict.fromkeys([*wanted, *candidates])), tuple(candidates))


def _needs_pods(known: Snapshot, view: View, policy: NodePolicy) -> bool:
    if may_be_new(view):
        return True
    return bool(labeller.surplus(view, policy)) if view.gpu else labeller.gone_for_long(known, view, policy)


def trial(known: Snapshot, view: View) -> tuple[list[Pod], list[str]]:
    """The pods of a candidate whose eviction is to be tried, and what stands against it without a trial."""
    policy = view.policy
    if policy is None:
        return [], []
    finish = operation_for(known, view, policy, Due(("driver",), Target())).finish
    listed = known.pods.get(view.name, ())
    found = pods.obstacles(listed, uses_of(known, view), finish)
    using = pods.to_evict(listed, uses_of(known, view))
    text = pods.ending(using, known.now) or evictions.too_long(known, policy, using)
    text = text or evictions.in_vain(view, using)
    found = found or ([text] if text else [])
    return ([] if found else using), found


def foreseen(known: Snapshot) -> Snapshot:
    """KNOWN with its nodes as a pass leaves those on which it only notes something: whom they belong to, their labels.

    For plans: the next pass sees them so, and what is due on them begins only then.
    """
    made = {
        action.node: action
        for action in outlook(known).decision.actions
        if isinstance(action, PatchNode) and not action.admits and keys.OPERATION not in action.annotations
    }
    return replace(known, nodes=[_noted(node, made[node.name]) if node.name in made else node for node in known.nodes])


def _noted(node: Node, action: PatchNode) -> Node:
    metadata = node.metadata
    labels = {key: value for key, value in {**metadata.labels, **action.labels}.items() if value is not None}
    notes = {key: value for key, value in {**metadata.annotations, **action.annotations}.items() if value is not None}
    made = msgspec.structs.replace(metadata, labels=labels, annotations=notes)
    spec = node.spec
    if action.unschedulable is not None:
        spec = msgspec.structs.replace(spec, unschedulable=action.unschedulable)
    if action.taints is not None:
        spec = msgspec.structs.replace(spec, taints=list(action.taints))
    return msgspec.structs.replace(node, metadata=made, spec=spec)


def decide(known: Snapshot) -> Decision:
    """All that is to be done now. Every node that waits says why."""
    return outlook(known).decision


def outlook(known: Snapshot) -> Outlook:
    """What `decide` decides, with the order of what is to come."""
    found = _begin(known)
    if known.foreign:
        for view in found.views:
            _count(found, view)
            found.wait(view, "operator", f"{known.foreign} runs: nothing is written on nodes")
        return Outlook(_end(found), found.views, found.statuses)
    for view in found.views:
        _count(found, view)
        _look(found, view)
    begins = admissible(found)
    for candidate in begins:
        found.actions.append(admit(known, candidate))
        found.again = min(found.again, 5.0)
    _leave_refused(found)
    by_name = {view.name: view for view in found.views}
    patches = [each for each in found.actions if isinstance(each, PatchNode)]
    found.tells += [tell for patch in patches if (tell := telling.phase(by_name[patch.node], patch))]
    names = frozenset(candidate.view.name for candidate in begins)
    return Outlook(_end(found), found.views, found.statuses, found.candidates, names)


def _leave_refused(found: Pass) -> None:
    """Leave nodes alone for a while that the API server lets nobody change, and say so in its words."""
    if not (refused := found.known.refused):
        return
    told = {wait.node for wait in found.waits if wait.kind == "refused"}
    left = {action.node for action in found.actions if isinstance(action, PatchNode) and action.uid in refused}
    for view in found.views:
        if view.name in left:
            found.wait(view, "refused", refused[view.node.uid])
    found.actions = [action for action in found.actions if not (isinstance(action, PatchNode) and action.node in left)]
    found.tells = [tell for tell in found.tells if tell.node not in left]
    found.tells += [
        Tell(view.name, "ChangeRefused", refused[view.node.uid], warning=True)
        for view in found.views
        if view.name in left | told
    ]


def _begin(known: Snapshot) -> Pass:
    every = views(known)
    failed = failures(every)
    nodes = Counter(view.policy.uid for view in every if view.policy)
    switches = {policy.uid: breaker(known, policy, failed, nodes[policy.uid]) for policy in known.policies}
    found = Pass(known, every, switches)
    found.tallies = {policy.uid: status.Tally() for policy in known.policies}
    return found


def _count(found: Pass, view: View) -> None:
    operation = view.operation
    for policy in view.policies if view.gpu else ():
        tally = found.tallies[policy.uid]
        if len(view.policies) > 1:
            tally.overlapping.append(view.name)
            continue
        tally.nodes += 1
        if operation:
            tally.quarantined += operation.phase == "Quarantine"
            tally.operating += operation.phase != "Quarantine"


def _look(found: Pass, view: View) -> None:
    """What happens on one node, the admission of candidates aside."""
    known = found.known
    if view.unreadable:
        found.wait(view, "unreadable", f"its record can't be read: {view.unreadable}")
    elif view.operation is not None:
        _operation(found, view, view.operation)
    elif keys.CORDONED in view.annotations or keys.PHASE in view.labels:
        found.actions.append(_lost(view))
    elif view.policy is None:
        names = ", ".join(policy.name for policy in view.policies)
        text = f"several NodePolicies match it: {names}" if names else "no NodePolicy matches it"
        found.wait(view, "membership", f"{text}; its labels stay as they are")
        _lost_member(found, view)
    elif takeover.left_behind(view):
        found.taken_over += [view] if takeover.in_hand(view) else []
        found.actions.append(takeover.take_over(known, view, view.policy))
    else:
        _idle(found, view, view.policy)


def _lost_member(found: Pass, view: View) -> None:
    """Tell the policy that the node belonged to that it matches it no more, nor any other."""
    if view.policies or view.labels.get(keys.PRESENT) != "true":
        return
    for policy in found.known.policies:
        if view.memory.policy == policy.uid or view.memory.name == policy.name:
            found.tallies[policy.uid].lost.append(view.name)


def _lost(view: View) -> PatchNode:
    """Our cordon without its record: somebody removed that. Give the node back (reconciler.md I4)."""
    metadata = view.node.metadata
    return PatchNode(
        view.name,
        metadata.uid,
        metadata.resourceVersion,
        "taken by an operation whose record is gone",
        labels={keys.PHASE: None} if keys.PHASE in view.labels else {},
        annotations={keys.CORDONED: None} if keys.CORDONED in view.annotations else {},
        unschedulable=False if keys.CORDONED in view.annotations and view.node.spec.unschedulable else None,
    )


def _operation(found: Pass, view: View, operation: Operation) -> None:
    known = found.known
    quarantined = operation.phase == "Quarantine"
    policy = view.policy if quarantined else policy_of(known, operation.policy)
    if policy is not None and policy is view.policy and _changed(found, view, policy, operation):
        return
    made = phases.step(known, view, operation)
    if any(isinstance(action, PatchNode) for action in made.actions):
        found.candidates = [each for each in found.candidates if each.view is not view]
    found.actions += made.actions
    found.tells += made.tells
    found.again = min(found.again, made.again)
    if made.reason:
        found.wait(view, operation.phase.lower(), made.reason)


def _changed(found: Pass, view: View, policy: NodePolicy, operation: Operation) -> bool:
    """See to it that the operation still is for what is due. True where nothing else is to happen on the node."""
    known = found.known
    if not (operation.returnable or operation.phase == "Quarantine"):
        return False
    what, notes = due(known, view, policy)
    if any(note.kind in {"revision", "mig-busy"} for note in notes):
        return False  # not known yet
    if operation.phase == "Quarantine":
        return _retry(found, view, policy, operation, what)
    if what is None and operation.acted is None:
        found.actions.append(release(known, view, operation, "nothing is to be done any more", failed=False))
        return True
    if what is not None and (what.target != operation.target or list(what.acts) != operation.acts):
        found.actions.append(retarget(known, Candidate(view, policy, what), operation))
        return True
    return False


def _retry(found: Pass, view: View, policy: NodePolicy, operation: Operation, what: Due | None) -> bool:
    """Make a quarantined node a candidate again: it has another target, somebody asks, or its time has come.

    True where its record goes instead.
    """
    asked = keys.RETRY in view.annotations
    other = what is not None and what.target != operation.target
    timely = operation.notBefore is not None and found.known.now >= operation.notBefore
    if not (asked or other or timely):
        return False
    if what is None and operation.install:
        if labeller.users(found.known, view) is None:
            return False
        found.actions.append(
            release(found.known, view, operation, "the node is in use, so it is not new", failed=False)
        )
        return True
    again = what or Due(tuple(operation.acts), operation.target)
    found.candidates.append(Candidate(view, policy, again))
    return False


def _idle(found: Pass, view: View, policy: NodePolicy) -> None:
    known = found.known
    if view.gpu and view.uncovered:
        found.tallies[policy.uid].uncovered += 1
    if may_be_new(view) and (why := unclear(known, view)):
        found.wait(view, "looking", why)
        found.again = min(found.again, 5.0)
        return
    what, notes = due(known, view, policy) if view.gpu else (None, [])
    for note in notes:
        found.wait(view, note.kind, note.message)
    if any(note.kind == "unlabelled" for note in notes):
        return  # nor is it remembered as one that works
    if what is not None and what.install:
        found.candidates.append(Candidate(view, policy, what))
        return
    made = labeller.edit(known, view, policy)
    if view.gpu:
        labeller.adopt(view, policy, made)
    if what is None and not notes and keys.RETRY in view.annotations:
        made.annotations[keys.RETRY] = None
        made.why.append("nothing to try again")
    for kind, message in made.waits:
        found.wait(view, kind, message)
        found.again = min(found.again, 60.0)
    if made:
        metadata = view.node.metadata
        why = ", ".join(made.why)
        found.actions.append(
            PatchNode(view.name, metadata.uid, metadata.resourceVersion, why, made.labels, made.annotations)
        )
    elif view.gpu and not _untaint(found, view, policy, tell=what is None):
        _settled(found, view, policy, what, notes)


def _untaint(found: Pass, view: View, policy: NodePolicy, *, tell: bool) -> bool:
    """Take startup taints away. True where that is all that happens; with TELL also where it has to wait."""
    patch, why = untaint(found.known, view, policy)
    if patch is not None:
        found.actions.append(patch)
    elif why and tell:
        found.wait(view, "startup", why)
        found.again = min(found.again, 60.0)
    return patch is not None or (tell and bool(why))


def _settled(found: Pass, view: View, policy: NodePolicy, what: Due | None, notes: Sequence[object]) -> None:
    if what is not None:
        found.candidates.append(Candidate(view, policy, what))
        return
    for text in differences(view, policy):
        found.wait(view, "product", text)
    if view.uncovered:
        found.wait(view, "not-covered", uncovered(policy))
    elif not notes:
        found.tallies[policy.uid].current += 1


def _end(found: Pass) -> Decision:
    known = found.known
    # Statuses come first: that a breaker is open, or was reset, is written before anybody acts on it.
    statuses: list[Action] = []
    for policy in known.policies:
        made = status.status(known, policy, found.tallies[policy.uid], found.breakers[policy.uid])
        found.statuses[policy.uid] = made
        if made != policy.status:
            statuses.append(PatchStatus(policy, made))
    known.seen.forget()
    return Decision(
        (*statuses, *found.actions), tuple(found.tells), tuple(found.waits), _again(found.waits, found.again)
    )


def _again(waits: Iterable[Wait], again: float) -> float:
    """Look again soon where time alone changes something."""
    timed = {"window", "backoff", "gpu-gone", "manual", "checking", "blocked", "refused"}
    return min(again, 60.0) if any(wait.kind in timed for wait in waits) else again
