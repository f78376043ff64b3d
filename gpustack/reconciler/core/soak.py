"""Soaking: after each node of a rollout the next one waits, so that what a new driver does only under load is seen.

When a rollout goes on stands in the NodePolicy's status, and for one that is made anew in the Lease. No node can write
these: one that says of itself that it was done just now holds up nobody. It is written before the node is given back: a
write that fails must not let the next one begin. Installs, repairs and further attempts don't wait; the first two
aren't waited for either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ...api import keys
from ...api.node_policy import NodePolicy, Soak
from .actions import Action, PatchNode, Why
from .bounds import span
from .queue import Looked
from .record import Last, Operation, read
from .snapshot import Snapshot
from .view import View, policy_of

SOAKS = "soak "
GONE_FOR = timedelta(days=1)
"""How long a policy that is gone is remembered to soak: it may be made anew under its name."""
UNSAID_FOR = timedelta(minutes=5)
"""How long a node that is proved waits for the status to say that it soaks."""


def soaks(known: Snapshot, views: Sequence[View], looked: Sequence[Looked]) -> tuple[list[Looked], dict[str, Soak]]:
    """What happens on the nodes in this pass, LOOKED, and how long the rollout of each policy soaks, by its UID."""
    ending = {
        view.name: view.operation
        for view, each in zip(views, looked, strict=True)
        if view.operation and _done(view.operation, each.actions)
    }
    after = {operation.policy: name for name, operation in ending.items()}
    names = {policy.name for policy in known.policies}
    for name, node, at in _said(known):
        known.seen.since(name, f"{SOAKS}{node}", known.now, holds=name not in names and known.now - at < GONE_FOR)
    made = {policy.uid: _of(known, policy, after.get(policy.uid, "")) for policy in known.policies}
    waits: list[Why] = [("verifying", "it is proved, and soaks")]
    left = [
        replace(each, actions=(), tells=(), waits=waits, again=1.0)
        if view.name in ending and _unsaid(known, view, ending[view.name])
        else each
        for view, each in zip(views, looked, strict=True)
    ]
    return left, {uid: soak for uid, soak in made.items() if soak}


def _unsaid(known: Snapshot, view: View, operation: Operation) -> bool:
    """Whether OPERATION must not end on the node yet, since the status of its policy doesn't say that it soaks. Past
    its deadline, and after a few minutes, it ends whatever the status says: somebody may let nobody write that."""
    policy = policy_of(known, operation.policy)
    if policy is None or not policy.spec.upgrade.soakSeconds:
        return False
    said, deadline = policy.status.soak, operation.deadline
    if (said and said.after == view.name) or (deadline is not None and known.now >= deadline):
        return False
    return known.seen.since(view.node.uid, "soak unsaid", known.now) < UNSAID_FOR


def _of(known: Snapshot, policy: NodePolicy, after: str) -> Soak | None:
    seconds, soak, now = policy.spec.upgrade.soakSeconds, policy.status.soak, known.now
    if not seconds:
        return None
    until = now + span(seconds)
    if after:
        soak = Soak(until=until, after=after)
    elif soak is None:  # a policy that was made anew knows nothing of what its name has come to
        said = max(((at, node) for name, node, at in _said(known) if name == policy.name), default=None)
        soak = said and Soak(until=said[0] + span(seconds), after=said[1])
    if soak is None or soak.until <= now:
        return None
    known.seen.since(policy.name, f"{SOAKS}{soak.after}", now)
    return Soak(until=min(soak.until, until), after=soak.after)  # the policy may say less by now


def _said(known: Snapshot) -> Iterator[tuple[str, str, datetime]]:
    """Which policies soak after which node, and since when, as the leaders remember it."""
    said = known.seen.first.items()
    return ((name, what.removeprefix(SOAKS), at) for (name, what), at in said if what.startswith(SOAKS))


def _done(operation: Operation, actions: Iterable[Action]) -> bool:
    """Whether ACTIONS end OPERATION well, and a rollout consists of such."""
    if operation.install or {"repair", "health"} & set(operation.acts):
        return False
    ends = (action.annotations.get(keys.LAST) for action in actions if isinstance(action, PatchNode))
    return any((last := read(Last, text)) is not None and last.outcome == "done" for text in ends)
