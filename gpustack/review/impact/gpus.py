"""IMP3xx, but for MIG: what the nodes of each pool advertise, before and after, and how their GPUs are shared. IMP72x:
nodes that are made anew or reboot, and what is told to whoever makes them: a tag or a kernel argument stands in no
manifest, or in one whose effect is a restart of machines, so both texts are made, as `gpustack nodes` prints them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...checks.pools.pools import wants
from ...cluster import node_labels
from ...cluster.autoscaling import problems
from ...cluster.capacity import PoolCapacity
from ...cluster.node_host import Setup, fitting, setup
from ...cluster.plugin_sharing import UnknownSharing
from ...cluster.pool import Pool
from ...cluster.resolve import resolve
from ...components.nodes import groups
from ...model import few
from ...policy.language import reconciler
from . import nodes
from .contents import Apart, of_entries
from .rule import Hit, Range, rule
from .subject import POD, Subject
from .tiers import OUTAGE, PLANNED, POWER

SELECTING = {"nodeSelector": "labels", "os": "operating system", "kernel": "kernel", "ostreeVersion": "RHCOS"}
"""The fields by which a pool selects its nodes (cluster/node_labels.py), in words."""


class Pair(NamedTuple):
    """A pool that both sides have, and what its nodes advertise."""

    before: Pool
    after: Pool

    @property
    def old(self) -> PoolCapacity:
        return counted(self.before, self.after)

    @property
    def new(self) -> PoolCapacity:
        return counted(self.after, self.before)


def counted(pool: Pool, other: Pool) -> PoolCapacity:
    """What nodes of POOL advertise. Where it doesn't say how many GPUs a node has, they are as many as in the OTHER,
    and one where neither says it: a number that is left out is no less and no more than it was."""
    if pool.said.gpusPerNode is not None:
        return pool.capacity
    said = pool.said.model_copy(update={"gpusPerNode": other.said.gpusPerNode or 1})
    return replace(pool, said=said).capacity


def pools(subject: Subject) -> tuple[dict[str, Pool], dict[str, Pool]]:
    """The pools before and after, by name. None where a side's policy isn't known, or both are the same."""
    if subject.before is None or subject.after is None or subject.before is subject.after:
        return {}, {}
    before, after = ({pool.name: pool for pool in resolve(side).pools} for side in (subject.before, subject.after))
    return before, after


def pairs(subject: Subject) -> Iterator[Pair]:
    """The pools that both sides have."""
    before, after = pools(subject)
    return (Pair(before[name], pool) for name, pool in after.items() if name in before)


def spread(pool: Pool) -> Range | None:
    """How many nodes POOL has."""
    return nodes.number([pool])


def amounts(counts: Mapping[str, int | None]) -> str:
    """What a node advertises, in words."""
    return ", ".join(f"{'?' if count is None else count} {name}" for name, count in counts.items()) or "nothing"


def step(pair: Pair) -> str:
    """What a node advertises before and after."""
    told = pair.before.said.gpusPerNode or pair.after.said.gpusPerNode
    whole = "a node advertises" if told else "for each GPU a node advertises"
    return f"{whole} {amounts(pair.old.per_node)} -> {amounts(pair.new.per_node)}"


def shrinks(pair: Pair) -> bool:
    """Whether something that pods may ask for becomes less, or gets another name."""
    new = pair.new.per_node
    return any(
        name not in new or (count is not None and (left := new[name]) is not None and left < count)
        for name, count in pair.old.per_node.items()
    )


@rule("IMP301", 2, 3)
def less_allocatable(subject: Subject) -> Iterator[Hit]:
    """Nodes of a pool advertise less of a resource, or not at all any more."""
    for pair in pairs(subject):
        if shrinks(pair):
            tier = PLANNED if recut(subject, pair) else OUTAGE
            yield Hit(f"pool {pair.after.name}", step(pair), spread(pair.after), tier=tier)


def recut(subject: Subject, pair: Pair) -> bool:
    """Whether the reconciler cuts the GPUs of a pool in other parts, none of which are lost."""
    old, new = pair
    if old.groups == new.groups or subject.after is None or not reconciler.runs(subject.after):
        return False
    if not new.capacity.per_node or effective(old) != effective(new) or old.said.gpusPerNode is None:
        return False
    return old.said.gpusPerNode == new.said.gpusPerNode and new.handed_out >= min(old.handed_out, MOST)


MOST = 6
"""Parts of a GPU above which it counts as handed out: many layouts leave one of seven."""


@rule("IMP302", 3)
def more_allocatable(subject: Subject) -> Iterator[Hit]:
    """Nodes of a pool advertise more than before."""
    for pair in pairs(subject):
        if pair.old.per_node != pair.new.per_node and not shrinks(pair):
            yield Hit(f"pool {pair.after.name}", step(pair), spread(pair.after))


@rule("IMP304", 2, 1)
def sharing_changes(subject: Subject) -> Iterator[Hit]:
    """GPUs are shared in another way."""
    by_pool: dict[str, tuple[int, str, Range | None]] = {}
    for pair in same_nodes(subject):
        was, now = effective(pair.before), effective(pair.after)
        if was == now:
            continue
        tier = POWER if now.closer_than(was) else OUTAGE
        told = (tier, f"sharing: {was.words} -> {now.words}", spread(pair.after))
        by_pool[pair.after.name] = min(by_pool.get(pair.after.name, told), told, key=lambda each: each[0])
    for name, (tier, what, number) in by_pool.items():
        yield Hit(f"pool {name}", what, number, tier=tier)


def same_nodes(subject: Subject) -> Iterator[Pair]:
    """The pools of both sides that may have the same nodes: by labels, whatever they are called. One that stays has the
    nodes that it had; one that selects others may have those of any. Where a side has none, all nodes are one."""
    if subject.before is None or subject.after is None or subject.before is subject.after:
        return
    before, after = (resolve(side).nodes for side in (subject.before, subject.after))
    for pool in after:
        same = [each for each in before if each.selection == pool.selection]
        for each in same or [one for one in before if not node_labels.apart(one.selection, pool.selection)]:
            yield Pair(each, pool)


def effective(pool: Pool) -> Apart:
    """How the GPUs of POOL are shared in the end."""
    if pool.cluster.dra:
        return Apart()
    try:
        sharing = pool.sharing
    except UnknownSharing as error:
        return Apart(why=str(error))
    if sharing.text is not None:
        return of_entries(sharing.kind, sharing.text, single=sharing.refuses_more)
    return Apart(sharing.kind, None, sharing.renamed, sharing.refuses_more) if sharing.kind else Apart()


def selects(pool: Pool, now: Pool) -> str:
    """Which nodes NOW selects instead of those of POOL: by fields that changed, else by the labels of a new release."""
    fields = ((words, getattr(pool.said, field), getattr(now.said, field)) for field, words in SELECTING.items())
    told = ", ".join(f"{words} {named(old)} -> {named(new)}" for words, old, new in fields if old != new)
    return told or "nodes by other labels"


def named(said: Mapping[str, str] | str | None) -> str:
    """What is SAID in a field, or any."""
    labels = said.items() if isinstance(said, Mapping) else ()
    return ",".join(f"{key}={value}" for key, value in sorted(labels)) or str(said or "any")


@rule("IMP305", 2)
def pool_changes(subject: Subject) -> Iterator[Hit]:
    """A node pool goes, is other nodes than before, or its nodes may be those of another pool, too."""
    before, after = pools(subject)
    for name, pool in before.items():
        now = after.get(name)
        if now is None:
            yield Hit(f"pool {name}", "the pool is in the policy no longer", spread(pool))
        elif pool.selection != now.selection:
            yield Hit(f"pool {name}", f"the pool selects {selects(pool, now)}", spread(now))
    was = [pool.selection for pool in before.values()]
    for other in (pool for pool in after.values() if pool.selection not in was):
        for pool in (each for each in after.values() if each.selection in was):  # as GPU825 and GPU826 see it
            frozen = reconciler.runs(pool.spec)
            if node_labels.apart(pool.selection, other.selection) or (not frozen and wants(pool) == wants(other)):
                continue
            then = "the reconciler freezes those" if frozen else "those get what the last of the two says"
            yield Hit(f"pool {pool.name}", f"its nodes may be of pool {other.name}, too: {then}", spread(pool))


@rule("IMP306", 3)
def pool_grows(subject: Subject) -> Iterator[Hit]:
    """A node pool is new, or has another number of nodes."""
    before, after = pools(subject)
    for name, pool in after.items():
        if name not in before:
            yield Hit(f"pool {name}", "the pool is new", spread(pool))
        elif spread(before[name]) != spread(pool):
            was, now = nodes.told(spread(before[name])), nodes.told(spread(pool))
            yield Hit(f"pool {name}", f"nodes: {was} -> {now}")


@rule("IMP720", 2)
def nodes_anew(subject: Subject) -> Iterator[Hit]:
    """Karpenter makes nodes of a pool anew."""
    named = pools(subject)[1]
    for change in subject.changed("NodePool"):
        fields = sorted({str(field.path[-1]) for field in change.fields if field.path[:2] == POD[:2]})
        if change.what == "changed" and fields:
            pool = named.get(change.identity.name)
            slow = f", {pool.budget.unavailable} at a time" if pool else ""
            what = f"{few(fields, 3)} of its NodePool: nodes that no longer fit are replaced{slow}"
            yield Hit(f"pool {change.identity.name}", what, spread(pool) if pool else None)


@rule("IMP721", 2, 3)
def hosts_change(subject: Subject) -> Iterator[Hit]:
    """What is set up on nodes changes."""
    before, after = pools(subject)
    for name in dict.fromkeys([*before, *after]):
        sides = [side[name] for side in (before, after) if name in side]
        made = [setup(pool, fitting(pool)[0]) for pool in sides]
        roles = sorted({pool.said.host.machineConfigPool or "" for pool in sides} - {""})
        if made[0] == (made[1:] or [Setup()])[0] and len(roles) < 2:
            continue
        what = "machines that are there keep what they have; `gpustack nodes` prints what new ones are made with"
        if roles:
            what = f"all nodes of the MachineConfigPool {' and '.join(roles)} reboot, as fast as that allows"
        yield Hit(f"pool {name}", what, spread(sides[-1]), tier=OUTAGE if roles else PLANNED)


@rule("IMP722", 3)
def groups_are_told(subject: Subject) -> Iterator[Hit]:
    """What a node group is told changes."""
    for old, new in pairs(subject):
        one, two = (set() if [*problems(pool)] else {*groups.text(pool).splitlines()} for pool in (old, new))
        names = sorted({line.partition(": ")[0].partition("=")[0].strip('"') for line in one ^ two if line[:1] != "#"})
        if names:
            yield Hit(f"pool {new.name}", f"{few(names, 3)} of its node group", spread(new))
