"""What an autoscaler is told of the nodes of a pool, before there is one.

Solves: at zero nodes an autoscaler knows what it is told, and a pod that asks for a share of a GPU, an instance of MIG
or a label of discovery starts no node. So labels, taints and resources are those that the pool's nodes will have
(capacity.py, offer.py), and what an autoscaler can't be told is refused and not left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Any

from ..api.keys import ARCH, GPU
from ..catalog import _data, node_labels, time_zones
from ..policy.language import reconciler
from ..policy.language.node_pools import Taint

if TYPE_CHECKING:
    from ..policy.language.autoscaling import Karpenter, NodeGroup
    from ..policy.language.node_pools import Window
    from .pool import Pool

INSTANCE = "node.kubernetes.io/instance-type"
NODEPOOL, CAPACITY = "karpenter.sh/nodepool", "karpenter.sh/capacity-type"
DISCOVERED = (node_labels.PREFIX, "feature.node.kubernetes.io/")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
DAY, WEEK = 24 * 60, 7 * 24 * 60
"""Minutes."""


@cache
def facts() -> Mapping[str, Any]:
    """The data file autoscaling.yaml."""
    known: Mapping[str, Any] = _data.load("autoscaling")
    return known


Problem = tuple[str, str, str, str]
"""What keeps a pool from being scaled as the policy says (GPU750): the path, what is wrong, why, and a remedy."""


def problem(pool: Pool, path: str, case: str, **words: object) -> Problem:
    """What the data file says of CASE of POOL, with WORDS."""
    said = {"why": facts()["why"], **facts()["problems"][case], "path": path, "of": pool.name}
    what, why, remedy = (Template(said[part]).substitute(said | words) for part in ("what", "why", "remedy"))
    return path, what, why, remedy


def known_before(key: str) -> bool:
    """Whether Karpenter knows the label KEY of instances."""
    karpenter = facts()["karpenter"]
    return key in karpenter["known"] or key.partition("/")[0] in karpenter["known_domains"]


def group_kind(pool: Pool) -> str:
    """What kind of node group POOL is, as it says or its platform tells; "" where neither does, or it has none."""
    group, platform = pool.said.autoscaling.nodeGroup, pool.spec.cluster.platform or ""
    usual = (name for name, each in facts()["groups"].items() if platform.startswith(tuple(each["platforms"])))
    return (group.kind or next(usual, "")) if group else ""


def node_class(pool: Pool, said: Karpenter) -> dict[str, str]:
    """The reference to the node class that POOL SAID; without a kind where nobody says it."""
    found: dict[str, str] = {}
    for name, usual in facts()["karpenter"]["classes"].items():
        found |= usual if (pool.spec.cluster.platform or "").startswith(name) else {}
    return found | said.nodeClass.model_dump(exclude_none=True)


def startup_taints(pool: Pool) -> list[Taint]:
    """The taints with which nodes of POOL come up, which the reconciler or the Node Readiness Controller takes away."""
    taints = list[Taint]()
    if pool.spec.reconciler and reconciler.runs(pool.spec):
        taints += pool.spec.reconciler.startupTaints
    if pool.said.readiness and not pool.said.readiness.dryRun:
        taints.append(Taint(key=pool.said.readiness.taint, value="pending", effect="NoSchedule"))
    return taints


def given_labels(pool: Pool) -> dict[str, str]:
    """The labels by which nodes of POOL are known and that no instance has by itself."""
    return {key: value for key, value in pool.said.nodeSelector.items() if not known_before(key) and key != NODEPOOL}


def unseen(pool: Pool) -> bool:
    """Whether POOL may have no nodes, and its autoscaler then knows no label of discovery."""
    kind, karpenter = group_kind(pool), pool.said.autoscaling.karpenter is not None
    at_zero = pool.said.count is not None and pool.said.count.min == 0
    return at_zero and (karpenter or (kind != "" and not facts()["groups"][kind].get("discovered")))


def overlay(pool: Pool) -> dict[str, int]:
    """What nodes of POOL offer otherwise than their instance type says: so many whole GPUs. Empty where they don't, and
    where that isn't known. Karpenter takes each amount in place of the type's (nodes.md 1.3, 1.5)."""
    known = {name: count for name, count in pool.capacity.per_node.items() if count is not None}
    plain = len(known) < len(pool.capacity.per_node) or known in ({}, {GPU: pool.said.gpusPerNode})
    return {} if plain else {GPU: 0, **known}


def closed(windows: Sequence[Window]) -> list[tuple[str, int]]:
    """When all WINDOWS are closed: cron line in UTC, and minutes, of each such time of the week; ("", WEEK) for always.
    Cron's week begins on Sunday (nodes.md 1.4). Where clocks change they are open when they are so by either."""
    open_ = set[int]()
    for zone in {each.timeZone for each in windows}:
        local = {at for each in windows if each.timeZone == zone for at in minutes(each)}
        by_clock = [{(at - offset) % WEEK for at in local} for offset in time_zones.offsets(zone)]
        open_ |= set.intersection(*by_clock) if by_clock else set()
    if not open_:
        return [("", WEEK)] if windows else []
    found = []
    for start in (at for at in range(WEEK) if at not in open_ and (at - 1) % WEEK in open_):
        length = next(n for n in range(1, WEEK) if (start + n) % WEEK in open_)
        found.append((f"{start % 60} {start // 60 % 24} * * {start // DAY}", length))
    return found


def minutes(window: Window) -> Iterator[int]:
    """The minutes of the week at which WINDOW is open, by its own clock."""
    for day in window.days or DAYS:
        first = DAYS.index(day) * DAY + window.minute
        yield from range(first, first + window.hours * 60)


def problems(pool: Pool) -> Iterator[Problem]:
    """What keeps POOL from being scaled as the policy says."""
    scaling, path = pool.said.autoscaling, f"{pool.path}.autoscaling"
    if not (scaling.karpenter or scaling.nodeGroup):
        return
    if pool.said.count is None:
        yield problem(pool, pool.path, "count")
    if not pool.cluster.dra and (not pool.capacity.per_node or None in pool.capacity.per_node.values()):
        yield problem(pool, pool.path, "unknown", because=next(iter(pool.capacity.unknown), ""))
    if scaling.karpenter:
        yield from _karpenter(pool, scaling.karpenter, f"{path}.karpenter")
    if scaling.nodeGroup:
        yield from _group(pool, scaling.nodeGroup, f"{path}.nodeGroup")


def _karpenter(pool: Pool, said: Karpenter, path: str) -> Iterator[Problem]:
    if pool.said.count and pool.said.count.min:
        yield problem(pool, f"{pool.path}.count", "least", least=pool.said.count.min)
    if "kind" not in node_class(pool, said):
        yield problem(pool, f"{path}.nodeClass", "class", platform=pool.spec.cluster.platform or "generic")
    if "nodes" in said.limits:
        yield problem(pool, f"{path}.limits.nodes", "nodes")
    yield from _instances(pool, said, path)
    for key, value in pool.said.nodeSelector.items():
        at = f"{pool.path}.nodeSelector.{key}"
        if key == NODEPOOL:
            if value != pool.name:
                yield problem(pool, at, "nodepool", key=key, value=value)
        elif key.startswith(DISCOVERED):
            yield problem(pool, at, "discovered", key=key)
        elif _restricted(key):
            yield problem(pool, at, "restricted", key=key)


def _instances(pool: Pool, said: Karpenter, path: str) -> Iterator[Problem]:
    """What is said twice of instances, or of labels that they don't have; and whether anything is."""
    fields = {ARCH: pool.arch, INSTANCE: said.instanceTypes, CAPACITY: said.capacityTypes}
    told = {*pool.said.nodeSelector, *(key for key, value in fields.items() if value)}
    if said.instanceTypes and INSTANCE in pool.said.nodeSelector:
        yield problem(pool, f"{path}.instanceTypes", "twice", key=INSTANCE)
    for index, each in enumerate(said.requirements):
        at = f"{path}.requirements[{index}]"
        if each.key.startswith(DISCOVERED) or each.key == NODEPOOL or _restricted(each.key):
            yield problem(pool, at, "requirement", key=each.key)
        elif each.key in told:
            yield problem(pool, at, "twice", key=each.key)
    told |= {each.key for each in said.requirements}
    domains = {key.partition("/")[0] for key in told} - {"karpenter.sh"}
    if INSTANCE not in told and not any(each.startswith("karpenter.") for each in domains):
        yield problem(pool, path, "any")


def _restricted(key: str) -> bool:
    """Whether Karpenter's API refuses the label KEY: its domain, or one below it, is Karpenter's own."""
    domains, whose = facts()["karpenter"]["restricted"], key.partition("/")[0]
    return not known_before(key) and (key in domains or any(f".{whose}".endswith(f".{each}") for each in domains))


def _group(pool: Pool, said: NodeGroup, path: str) -> Iterator[Problem]:
    kind = group_kind(pool)
    if not kind:
        yield problem(pool, path, "kind", kinds=", ".join(facts()["groups"]))
        return
    known = facts()["groups"][kind]
    offered = [name for name, count in pool.capacity.per_node.items() if count]
    words, told = ", ".join(offered), known["resources"]
    at_zero = pool.said.count is not None and pool.said.count.min == 0
    if told == "whole" and at_zero and overlay(pool):
        yield problem(pool, f"{pool.path}.count", "whole", offered=words)
    for taint in startup_taints(pool) if "arguments" in known and at_zero else ():
        if not taint.key.startswith(facts()["startup"]):
            yield problem(pool, path, "startup", key=taint.key, prefix=facts()["startup"])
    taints = Counter(each.key for each in pool.said.taints)
    if "taint" in known and taints and (most := taints.most_common(1)[0])[1] > 1:
        yield problem(pool, f"{pool.path}.taints", "taints", key=most[0])
    if told == "one" and len(offered) > 1:
        yield problem(pool, path, "one", offered=words)
    if kind == "clusterApi" and not {"cpu", "memory"} <= said.resources.keys():
        yield problem(pool, f"{path}.resources", "size")
    labelled = kind == "gke" or known["gpu_label"] in pool.said.nodeSelector
    if labelled and offered and GPU not in offered:
        yield problem(pool, pool.path, "unready", offered=words, label=known["gpu_label"])
