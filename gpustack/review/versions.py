"""What another version of gpustack changes by itself, apart from what people changed.

Solves: a version that renders 19 objects otherwise, in the ring that it comes to, hides the one line that somebody
changed beside it. So what the policies of the base render to by the new version stands between the two sides: what is
so already there, the version alone did.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .diff.groups import Group, group
from .diff.objects import ObjectChange
from .diff.own import NONE, Own, literal
from .impact import repository
from .impact.effects import Effect
from .impact.tiers import ROUTINE

Changes = Mapping[str, Sequence[ObjectChange]]
"""The changes of each cluster."""


@dataclass(frozen=True)
class Step:
    """Clusters that the version NEW renders and OLD did, "" where nothing said which. For each the files that are as
    NEW alone makes them. `failed` says why nobody knows."""

    old: str
    new: str
    alone: Mapping[str, frozenset[str]]
    failed: str = ""

    def has(self, cluster: str, change: ObjectChange, own: Mapping[str, Own]) -> bool:
        """Whether this step alone made CHANGE in CLUSTER, of which the names that it has of its OWN are marked."""
        return literal(change.file, own.get(cluster, NONE)) in self.alone.get(cluster, ())


def groups(steps: Sequence[Step], changes: Changes, own: Mapping[str, Own]) -> Iterator[Group]:
    """CHANGES in groups, what one of STEPS alone made apart from the rest, and behind it."""
    rest, made = dict(changes), list[Group]()
    for step in steps:
        mine, known = dict[str, Sequence[ObjectChange]](), dict[object, list[list[ObjectChange]]]()
        for cluster in step.alone.keys() & rest.keys():
            key, every = (id(changes[cluster]), step.alone[cluster]), changes[cluster]
            if key not in known:  # clusters of one shape go on sharing a list
                known[key] = [[each for each in every if step.has(cluster, each, own) is its] for its in (True, False)]
            mine[cluster], rest[cluster] = known[key]
        made += [replace(each, by=f"gpustack {step.new} alone") for each in group(mine, own)]
    yield from group(rest, own)
    yield from made


def effects(steps: Sequence[Step], changes: Changes, own: Mapping[str, Own]) -> Iterator[Effect]:
    """What is told of STEPS, where CHANGES are all that changed, with names of clusters' OWN marked in them."""
    for step in steps:
        way = f"from gpustack {step.old or '(nobody said which)'} to {step.new}"
        known = [(name, each) for name in step.alone for each in changes.get(name, ())]
        told = {(literal(each.identity, own.get(name, NONE)), step.has(name, each, own)) for name, each in known}
        mine = sum(its for _, its in told)
        what = f"by that alone, {mine} objects change; by what people changed as well, {len(told) - mine}"
        what = f"what that changes by itself can't be told: {step.failed}" if step.failed else what
        made = repository.effect("IMP006", ROUTINE, "gpustack.lock", f"{way}: {what}")
        yield replace(made, clusters=tuple(sorted(step.alone)))
