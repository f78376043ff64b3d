"""What an open operation is for, as long as it has touched nothing, and once it has failed.

Solves: a policy changes while a node waits or is in quarantine. What was due when the operation began is then not what
is due now, and an attempt for the old target would be held against what the policy says today.
"""

from __future__ import annotations

import dataclasses

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy
from . import health, labeller, verify
from .actions import PatchNode
from .admission import Candidate, operation_for, retarget
from .due import Due, due, manual_until
from .layouts import unread
from .moves import release, remembered
from .record import Operation, Target
from .snapshot import Snapshot
from .view import View

LEFT_ALONE = {"skip", "auto-upgrade-off"}
"""Why a driver stays that isn't the newest."""


def still_due(
    known: Snapshot, view: View, policy: NodePolicy, operation: Operation
) -> PatchNode | Candidate | str | None:
    """See to it that the operation still is for what is due: the write that is all that happens on the node then, the
    next attempt of one that has failed, or why it isn't known yet, so that nothing is done that can't be undone."""
    if not (operation.returnable or operation.phase == "Quarantine"):
        return None
    what, notes = due(known, view, policy)
    if why := next((text for kind, text in notes if kind in {"revision", "mig-busy"}), ""):
        return why if operation.returnable else None
    if what and operation.returnable and (why := unread(known, view, what.target.mig)):
        return why  # nor could it be commanded yet
    if operation.phase == "Quarantine":
        if what is None and (text := next((text for kind, text in notes if kind in LEFT_ALONE), "")):
            # Somebody wants the driver that there is: where that works, all is well.
            wrong = verify.problems(known, view, today(known, view, operation))
            return None if wrong else release(known, view, operation, text, failed=False)
        return _retry(known, view, policy, operation, what)
    if what is None and operation.acted is None:
        return release(known, view, operation, "nothing is to be done any more", failed=False)
    if what is not None and (what.target != operation.target or list(what.acts) != operation.acts):
        return retarget(known, Candidate(view, policy, what), operation)
    return None


def _retry(
    known: Snapshot, view: View, policy: NodePolicy, operation: Operation, what: Due | None
) -> PatchNode | Candidate | None:
    """Make a quarantined node a candidate again: it has another target, somebody asks, or its time has come. A record
    that is for nothing any more goes instead."""
    asked = keys.RETRY in view.annotations
    other = what is not None and what.target != operation.target
    timely = operation.notBefore is not None and known.now >= operation.notBefore
    timely = timely and (not operation.target.health or health.look(known, view).state == "fault")
    if not (asked or other or timely):
        return None
    if what is None and operation.install:
        if labeller.users(known, view) is None:
            return None
        made = release(known, view, operation, "the node is in use, so it is not new", failed=False)
        return dataclasses.replace(made, annotations={**made.annotations, **_cut(view, policy, operation)})
    return Candidate(view, policy, what or _once_more(known, view, policy, operation))


def _cut(view: View, policy: NodePolicy, operation: Operation) -> dict[str, str]:
    """What is to be remembered of a node that OPERATION has cut, whatever became of it besides: by which content."""
    target = operation.target
    if not (target.mig and view.cut_as(target.mig)):
        return {}
    return remembered(view, policy.uid, policy.name, target.mig, target.mig_digest)


def anew(known: Snapshot, view: View) -> Candidate | None:
    """A node that doesn't work, and of whose operation nobody knows any more, as one on which something is due. Of what
    its record says that it was for nothing is believed."""
    policy = view.policy
    what = due(known, view, policy)[0] if policy else None
    if what is None and view.driver:
        what = Due(("repair",), Target(revision=view.driver.newest))
    return Candidate(view, policy, what) if policy and what and not what.install else None


def _once_more(known: Snapshot, view: View, policy: NodePolicy, operation: Operation) -> Due:
    """OPERATION once more, on a node that doesn't work though nothing is due: with the layout and the components that
    POLICY has for it now, and without a layout where somebody set one by hand for a while."""
    acts, target, mig = operation.acts, operation.target, policy.spec.mig
    until = manual_until(view)
    if target.deploy and policy.spec.labelling:
        target = msgspec.structs.replace(target, deploy=labeller.components(view, policy))
    if target.mig and len(acts) > 1 and until and known.now < until:
        return Due(tuple(act for act in acts if act != "mig"), msgspec.structs.replace(target, mig="", mig_digest=""))
    if target.mig and mig is not None:
        target = msgspec.structs.replace(target, mig=mig.config, mig_digest=mig.digest)
    elif target.mig and "install" not in acts:  # nobody wants it any more
        target = msgspec.structs.replace(target, mig="", mig_digest="")
        acts = [act for act in acts if act != "mig"] or ["repair"]
    return Due(tuple(acts), target)


def today(known: Snapshot, view: View, operation: Operation) -> Operation:
    """OPERATION, which has failed, as its policy judges it now: what mends the policy mends the node."""
    policy = view.policy
    if policy is None or policy.uid != operation.policy:
        return operation
    target = operation.target
    if target.mig and policy.spec.mig is None:
        target = msgspec.structs.replace(target, mig="", mig_digest="")
    finish = operation_for(known, view, policy, Due(tuple(operation.acts), target)).finish
    return msgspec.structs.replace(operation, target=target, finish=finish)
