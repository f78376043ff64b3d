"""gpustack migrate: the steps that hand a cluster of the operator over to a policy, with no driver restarted.

Nothing here writes to a cluster. A `Seen` is what was looked at, a `Render` what the policy comes to; the plan is a
pure function of both, and each time it is made anew it says how far the hand-over is, or the way back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustack.model import Body

from ..adopt.installation import understood
from .back import Back, returned
from .commands import Commands
from .holders import Way, way
from .plan import Promise, Render, Verdict, promise, verdicts
from .seen import Seen, dumped, facts, look
from .steps import Planner, Step

NFD = "node-feature-discovery-worker"
"""How the name ends of what rolls whatever the update strategy is (moving.md M6)."""

__all__ = ["Plan", "Promise", "Render", "Seen", "Step", "Verdict", "dumped", "look", "plan"]


@dataclass(frozen=True)
class Plan:
    """What a hand-over does, step by step, in or out, and the command of the way back."""

    render: Render
    seen: Seen
    way: Way
    promise: Promise
    verdicts: list[Verdict]
    steps: list[Step]
    notes: list[str]
    back: list[str]
    direction: str = "in"


def plan(
    seen: Seen, render: Render, kubectl: Sequence[str], file: str, saved: Sequence[Body], *, reverse: bool = False
) -> Plan:
    """The plan for what was SEEN, REVERSE for the way back. KUBECTL begins each command for the cluster, FILE is to
    hold the custom resources, and SAVED is what it holds. Raises InputError for malformed objects."""
    with understood("what the cluster holds"):
        how, fates = way(seen), verdicts(seen, render)
        if reverse:
            fates, promised = returned(seen, render)
            steps = Back(seen, render, how, fates, Commands(kubectl), file, saved).steps()
            return Plan(render, seen, how, promised, fates, steps, [], [], "out")
        planner = Planner(seen, render, how, fates, Commands(kubectl), file, saved)
        said, promised = [note for note in facts()["ways"][how.name][1:] if note], promise(seen, render, fates)
        if any(each.fate == "rolls" and not each.name.endswith(NFD) for each in fates):
            more = "spec.daemonsets.updateStrategy: OnDelete keeps the pods of operands until somebody deletes them"
            said.append(more)
        back = [planner.commands.ours(f"gpustack migrate abort {render.cluster}")]
        return Plan(render, seen, how, promised, fates, planner.steps(), said, back)
