"""A pass: from what is known to what is done. Two pure functions, so that a plan and its execution can't differ.

`survey` says which nodes need a closer look (their pods, a trial of their evictions), so that a pass costs requests for
the nodes that something happens on and not for all. `decide` makes the decision from what was then gathered. On each
node at most one thing happens in a pass: a write that conflicts is decided anew in the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy, Status
from ...api.objects import Node
from ...api.pods import Pod
from . import evictions, health, images, labeller, others, phases, pods, status, takeover, verify
from .actions import Action, Decision, PatchNode, PatchStatus, Tell, Wait, WaitKind, Why
from .admission import Candidate, admit, anew, operation_for, still_due
from .due import Due, differences, due, may_be_new, unclear
from .layouts import due_write, named
from .queue import Looked, Pass, Queue, queue, uncounted, waits_of
from .record import Operation, Phase, Target
from .rollout import breaker, failures
from .snapshot import Asked, Kept, Seen, Snapshot
from .soak import soaks
from .view import View, kept_views, policy_of, uncovered, uses_of, views_of

LOOKS, LONG_AGO = 100, datetime.min.replace(tzinfo=UTC)
"""Nodes without an operation that one pass looks at more closely."""
GIVEN_BACK = timedelta(minutes=15)
"""After which a record goes that no operation of ours has."""
TRIALS = 20
"""Candidates whose evictions one pass tries."""
TIMED: frozenset[WaitKind] = frozenset((
    "window", "backoff", "gpu-gone", "manual", "soak", "pulling", "checking", "blocked", "refused", "layout",
    "health", "health-limit",
))  # fmt: skip
"""What time alone may end: the next pass comes soon."""
UNDER_WAY: dict[Phase, WaitKind] = {
    "Held": "held",
    "Evicting": "evicting",
    "Acting": "acting",
    "Verifying": "verifying",
    "Quarantine": "quarantine",
}


@dataclass(frozen=True)
class Wanted:
    """Nodes whose pods the decision needs, and those of them on which evictions are to be tried first (dry run)."""

    pods: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)


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
    known = named(known)
    so_far = _pass(known, _look)
    wanted: list[str] = []
    fresh: list[View] = []
    for view in so_far.views:
        if view.unreadable:
            continue
        operation = view.operation
        guarded = operation and operation.phase in {"Acting", "Verifying"} and not operation.install
        if operation and (operation.returnable or operation.phase == "Quarantine" or guarded):
            wanted.append(view.name)
        elif operation is None and view.policy and _needs_pods(known, view, view.policy):
            fresh.append(view)
    # Those that nobody has looked at for longest, of nodes that may be new first.
    fresh.sort(key=lambda view: (known.read.get(view.node.uid, LONG_AGO), not may_be_new(view)))
    wanted += [view.name for view in fresh[:LOOKS]]
    line = queue(so_far, trials=TRIALS)
    wanted += [each.view.name for each in line.order if uncounted(known, each)][:TRIALS]
    begin = {each.view.name: each.due for each in line.begin}
    candidates = tuple(name for name, what in begin.items() if not what.health)
    return Wanted(tuple(dict.fromkeys([*wanted, *begin])), candidates, so_far.kept)


def _needs_pods(known: Snapshot, view: View, policy: NodePolicy) -> bool:
    if view.gpu:
        return may_be_new(view) or bool(labeller.surplus(view, policy))
    return labeller.gone_for_long(known, view, policy)


def trial(known: Snapshot, view: View) -> tuple[list[Pod], list[str]]:
    """The pods of a candidate whose eviction is to be tried, and all that stands against it without a trial."""
    policy = view.policy
    if policy is None:
        return [], []
    finish = operation_for(known, view, policy, Due(("driver",), Target())).finish
    uses = uses_of(known, view)
    every = known.pods.get(view.name, ())
    listed = pods.evictable(every, finish.wait, uses)
    using = pods.to_evict(listed, uses)
    ending = pods.ending(pods.to_evict(every, uses), known.now)
    awaited = pods.awaited(every, finish.wait.podSelector, uses)
    drained = pods.to_drain(every, uses, finish.drain) if finish.drain.enable else []
    again = evictions.in_vain(view, [*using, *awaited, *drained])
    others = (ending, *evictions.no_window(known, policy, using), again)
    obstacles = [*pods.obstacles(listed, uses, finish), *filter(None, others)]
    tried = [pod for pod in using if pods.rule_of(pod, finish.podRules) != "delete"]
    return ([] if obstacles else tried), obstacles


def decide(known: Snapshot) -> Decision:
    """All that is to be done now. Every node that waits says why."""
    return outlook(known).decision


def outlook(known: Snapshot) -> Outlook:
    """What `decide` decides, with the order of what is to come."""
    asked = Asked(known.seen.first)
    known = named(replace(known, seen=asked))
    if known.foreign:
        still = Looked(waits=[("operator", f"{known.foreign} runs: nothing is written on nodes")])
        return _made(_pass(known, lambda *_: still), Queue(), asked)
    so_far = _pass(known, _look)
    return _made(so_far, queue(so_far), asked)


def _pass(known: Snapshot, look: Callable[[Snapshot, View], Looked]) -> Pass:
    """What LOOK finds on each node, the admission of candidates aside."""
    kept = kept_views(known)
    every = views_of(kept)
    looked, soak = soaks(known, every, [look(known, view) for view in every])
    failed = failures(every)
    nodes = Counter(view.policy.uid for view in every if view.policy)
    breakers = {policy.uid: breaker(known, policy, failed, nodes[policy.uid]) for policy in known.policies}
    return Pass(known, kept, breakers, looked, soak)


def _made(so_far: Pass, line: Queue, asked: Asked) -> Outlook:
    """The decision that comes of the pass SO_FAR and of who is in LINE."""
    known, by_name = so_far.known, {view.name: view for view in so_far.views}
    begin = frozenset(candidate.view.name for candidate in line.begin)  # whose next write is that
    actions = [
        action
        for view, looked in zip(so_far.views, so_far.looked, strict=True)
        for action in looked.actions
        if not (view.name in begin and isinstance(action, PatchNode))
    ]
    for candidate in line.begin:
        actions += [*others.hold(known, candidate.view, first=True), admit(known, candidate)]
    waits = [
        wait for view, looked in zip(so_far.views, so_far.looked, strict=True) for wait in waits_of(view, looked.waits)
    ]
    waits += line.waits
    refused = _refused(so_far, actions, waits)
    left = refused.keys() - {wait.node for wait in waits if wait.kind == "refused"}
    waits += [
        wait for name in refused if name in left for wait in waits_of(by_name[name], [("refused", refused[name])])
    ]
    actions = [action for action in actions if not (isinstance(action, PatchNode) and action.node in left)]
    tells = [tell for looked in so_far.looked for tell in looked.tells if tell.node not in left]
    patches = [action for action in actions if isinstance(action, PatchNode)]
    tells += line.tells
    tells += [Tell(name, "ChangeRefused", text, warning=True) for name, text in refused.items()]
    tells += [tell for patch in patches if (tell := status.told(by_name[patch.node], patch))]
    tallies = status.tallies(so_far, waits)
    statuses = {
        each.uid: status.status(known, each, tallies[each.uid], so_far.breakers[each.uid], so_far.soaks.get(each.uid))
        for each in known.policies
    }
    # Statuses come first: that a breaker is open, or was reset, is written before anybody acts on it.
    first: list[Action] = [
        PatchStatus(policy, statuses[policy.uid]) for policy in known.policies if statuses[policy.uid] != policy.status
    ]
    again = min([300.0, *(looked.again for looked in so_far.looked), *([5.0] if line.begin else [])])
    if any(wait.kind in TIMED for wait in waits):
        again = min(again, 60.0)
    if file := due_write(known):
        first.append(file)
    first += others.leases(known, so_far.views, begin)
    decision = Decision((*first, *actions), tuple(tells), tuple(waits), again, Seen(asked.kept), so_far.kept)
    return Outlook(decision, so_far.views, statuses, line.order, begin)


def _refused(so_far: Pass, actions: Iterable[Action], waits: Iterable[Wait]) -> dict[str, str]:
    """The nodes that are left alone for a while since the API server lets nobody change them, with its words."""
    refused = so_far.known.refused
    if not refused:
        return {}
    names = {action.node for action in actions if isinstance(action, PatchNode) and action.uid in refused}
    names |= {wait.node for wait in waits if wait.kind == "refused"}
    return {view.name: refused[view.node.uid] for view in so_far.views if view.name in names}


def _look(known: Snapshot, view: View) -> Looked:
    """What happens on one node, the admission of candidates aside."""
    if view.unreadable:
        return Looked(waits=[("unreadable", f"its record can't be read: {view.unreadable}")])
    if view.operation is not None:
        return _operation(known, view, view.operation)
    if view.unledgered is not None:
        return _unledgered(known, view, view.unledgered)
    if keys.CORDONED in view.annotations or keys.PHASE in view.labels:
        return Looked([_lost(view)])
    if view.policy is None:
        names = ", ".join(policy.name for policy in view.policies)
        text = f"several NodePolicies match it: {names}" if names else "no NodePolicy matches it"
        return Looked(waits=[("membership", f"{text}; its labels stay as they are")], lost=_lost_members(known, view))
    if takeover.in_hand(view) and known.paused:
        return Looked(waits=[("paused", f"the fleet is paused: {known.paused}; it is taken over after that")])
    if takeover.left_behind(view):
        return Looked([takeover.take_over(known, view, view.policy)], taken_over=takeover.in_hand(view))
    return _idle(known, view, view.policy)


def _lost_members(known: Snapshot, view: View) -> list[str]:
    """The policies that the node belonged to, where it matches none any more."""
    if view.policies or view.labels.get(keys.PRESENT) != "true":
        return []
    return [each.uid for each in known.policies if view.memory.policy == each.uid or view.memory.name == each.name]


def _unledgered(known: Snapshot, view: View, operation: Operation) -> Looked:
    """A record of an operation that isn't in the ledger: somebody wrote it who owns the node, or the Lease was lost. It
    is reported, and after a while the node is given back; where the record says that the node was touched, and a cordon
    is on it, not before it works, and it has its turn once more."""
    text = f"its record says that operation {operation.id} ({operation.kind}) is open, and nobody has begun it"
    seen = known.seen.since(view.node.uid, "unledgered", known.now)
    if seen >= GIVEN_BACK:
        wrong, nudges = "", []
        if operation.acted is not None and view.node.spec.unschedulable:
            operation = msgspec.structs.replace(operation, acted=min(operation.acted, known.now - seen))
            wrong = next(iter(verify.problems(known, view, operation)), "")
            nudges = verify.nudges(known, view, operation)
        if not wrong:
            told = Tell(view.name, "OperationReleased", f"{text}: it goes", warning=True)
            return Looked([_lost(view, f"{text}: it goes")], [told])
        what = f"it stays cordoned until it works, or `gpustack rollout retry {view.name} --discard-record`: {wrong}"
        candidate = anew(known, view)
        return Looked(nudges, waits=[("unledgered", f"{text}; {what}")], candidate=candidate, again=60.0)
    minutes = GIVEN_BACK // timedelta(minutes=1)
    return Looked(waits=[("unledgered", f"{text}: after {minutes} minutes it goes, with a cordon of ours")], again=60.0)


def _lost(view: View, why: str = "taken by an operation whose record is gone") -> PatchNode:
    """Our cordon without its record, or with one that is nobody's: give the node back (reconciler.md I4)."""
    return PatchNode(
        *view.seen,
        why,
        labels={keys.PHASE: None} if keys.PHASE in view.labels else {},
        annotations=dict.fromkeys(
            key for key in (keys.CORDONED, keys.OPERATION, keys.REQUESTED) if key in view.annotations
        ),
        unschedulable=False if keys.CORDONED in view.annotations and view.node.spec.unschedulable else None,
    )


def _operation(known: Snapshot, view: View, operation: Operation) -> Looked:
    quarantined = operation.phase == "Quarantine"
    policy = view.policy if quarantined else policy_of(known, operation.policy)
    candidate, unsure = None, ""
    if policy is not None and policy is view.policy:
        changed = still_due(known, view, policy, operation)
        if isinstance(changed, PatchNode):
            return Looked([changed])
        if isinstance(changed, str):
            unsure = changed
        else:
            candidate = changed
    made = phases.step(known, view, operation, unsure)
    if any(isinstance(action, PatchNode) and keys.OPERATION in action.annotations for action in made.actions):
        candidate = None
    waits: list[Why] = [(UNDER_WAY[operation.phase], made.reason)] if made.reason else []
    return Looked(made.actions, made.tells, waits, candidate, again=made.again)


def _idle(known: Snapshot, view: View, policy: NodePolicy) -> Looked:
    bare = bool(view.gpu and view.uncovered)
    if may_be_new(view) and (why := unclear(known, view)):
        return Looked(waits=[("looking", why)], uncovered=bare, again=5.0)
    what, notes = due(known, view, policy) if view.gpu else (None, [])
    waits = list(notes)
    if any(kind == "unlabelled" for kind, _ in notes):
        return Looked(waits=waits, uncovered=bare)  # nor is it remembered as one that works
    if what is not None and what.install:
        return Looked(waits=waits, candidate=Candidate(view, policy, what), uncovered=bare)
    edit = labeller.edit(known, view, policy)
    if view.gpu:
        labeller.adopt(view, policy, edit)
    if what is None and not notes and keys.RETRY in view.annotations:
        edit.annotations[keys.RETRY] = None
        edit.why.append("nothing to try again")
    waits += [*edit.waits, *(health.reports(known, view) if view.gpu else ())]
    again = 60.0 if edit.waits else 300.0
    if edit:
        patch = PatchNode(*view.seen, ", ".join(edit.why), edit.labels, edit.annotations)
        return Looked([patch], waits=waits, uncovered=bare, again=again)
    if not view.gpu:
        return Looked(waits=waits, again=again)
    settled = _settled(known, view, policy, what, notes)
    if not (waits or bare):
        return settled
    return replace(settled, waits=[*waits, *settled.waits], uncovered=bare, again=min(again, settled.again))


def _settled(known: Snapshot, view: View, policy: NodePolicy, what: Due | None, notes: Sequence[object]) -> Looked:
    """A node whose labels are as they should be: its startup taints go; then it is a candidate, or done."""
    patch, why = takeover.untaint(known, view, policy)
    if patch is not None:
        return Looked([patch])
    if what is not None:
        return Looked(candidate=Candidate(view, policy, what))
    if why:
        return Looked(waits=[("startup", why)], again=60.0)
    waits: list[Why] = [("product", text) for text in differences(view, policy)]
    stuck = (images.pulls(pod) for pod in known.driver_pods.get(view.name, ()) if not pod.ready)
    if pulled := next(filter(None, stuck), ""):
        return Looked(waits=[*waits, ("image", f"its driver does not run: {pulled}")])
    if view.uncovered:
        waits.append(("not-covered", uncovered(policy)))
    return Looked(waits=waits, current=not view.uncovered and not notes)


def foreseen(known: Snapshot) -> Snapshot:
    """KNOWN with its nodes as a pass leaves those on which it only notes something: whom they belong to, their labels.
    For plans: the next pass sees them so, and what is due on them begins only then."""
    made = {
        action.node: action
        for action in outlook(known).decision.actions
        if isinstance(action, PatchNode) and not action.admits and keys.OPERATION not in action.annotations
    }
    file = named(known).layouts
    layouts = replace(file, written=file.file, at=None) if file else None
    nodes = [_noted(node, made[node.name]) if node.name in made else node for node in known.nodes]
    return replace(known, nodes=nodes, layouts=layouts)


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
