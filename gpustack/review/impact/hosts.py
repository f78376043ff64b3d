"""IMP72x: nodes that are made anew or reboot, and what is told to whoever makes them.

Solves: a tag or a kernel argument stands in no manifest, or in one whose effect is a restart of machines. What changes
of it is found by making both texts, as `gpustack nodes` prints them.
"""

from collections.abc import Iterator

from ...cluster.autoscaling import problems
from ...cluster.node_host import Setup, fitting, setup
from ...components.nodes import groups
from ...model import few
from .gpus import pairs, pools, spread
from .rule import Hit, rule
from .subject import POD, Subject
from .tiers import OUTAGE, PLANNED


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
