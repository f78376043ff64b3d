"""Which alerts a cluster gets: those of the catalogue that can fire there, as the policy changes them.

An alert is one rule for all pools that it treats alike, and another for each pool for which the policy says something
else. What an alert reads must be there: one that can never fire would look like safety. So an alert that is on by
default is left out where nothing could raise it, and one that the policy asks for is refused there (GPU614).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..catalog import alerts as known
from ..policy.language import alerts as language
from ..policy.language.alerts import AlertSettings, Silence
from ..policy.language.reconciler import runs
from .resolve import Cluster


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of `alert`: for the pools that `only` names; where it names none, for all nodes but those of `but`."""

    alert: known.Alert
    severity: known.Severity
    lasts: str
    numbers: Mapping[str, int]
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()


def promises(cluster: Cluster) -> dict[str, int]:
    """How many devices a node of each pool offers, of the pools of which that is known."""
    per_pool = {each.name: list(each.per_node.values()) for each in cluster.capacity}
    return {name: sum(filter(None, counts)) for name, counts in per_pool.items() if counts and None not in counts}


def switched(cluster: Cluster) -> tuple[str, ...]:
    """The pools of CLUSTER whose GPUs reach each other over NVSwitch. A GPU that is cut reaches no other."""
    whole = (pool for pool in cluster.pools if pool.product and pool.layout is None and pool.workload == "container")
    return tuple(pool.name for pool in whole if pool.product and pool.product.nvswitch)


def _licensed(cluster: Cluster) -> bool:
    drivers = cluster.spec.drivers if cluster.listed else [cluster.spec.driver]
    return any(value for each in drivers for name, value in each.licensingConfig if name != "nlsEnabled")


NEEDS: Mapping[str, tuple[str, Callable[[Cluster], object]]] = {
    "exporter": ("the exporter is off", lambda cluster: cluster.stack.dcgmExporter.enabled),
    "promise": ("no node pool says what its nodes offer: gpuProduct and gpusPerNode", promises),
    "pools": (
        "there are not several node pools, each with labels of its own",
        lambda cluster: len(cluster.pools) > 1 and all(pool.selection for pool in cluster.pools),
    ),
    "nvswitch": ("no node pool has whole GPUs on boards with NVSwitch", switched),
    "driver": ("the nodes bring their driver", lambda cluster: cluster.container_drivers),
    "plugin": ("there is no device plugin", lambda cluster: not cluster.dra and cluster.spec.devicePlugin.enabled),
    "mig": (
        "no node pool has a MIG layout, or there is no MIG manager",
        lambda cluster: cluster.mig_manager and any(pool.layout for pool in cluster.pools),
    ),
    "dra": ("GPUs are not allocated by claims", lambda cluster: cluster.dra),
    "licence": ("no driver has a licensingConfig", _licensed),
    "verify": ("verify has no schedule", lambda cluster: cluster.spec.verify and cluster.spec.verify.schedule),
    "reconciler": ("there is no reconciler", lambda cluster: runs(cluster.spec)),
    "health": (
        "nobody looks at conditions of nodes: reconciler.health",
        lambda cluster: cluster.spec.reconciler and cluster.spec.reconciler.health,
    ),
}
"""What an alert needs: why it can't fire in a cluster without, and whether it is there."""


def why_not(cluster: Cluster, alert: known.Alert) -> str:
    """Why ALERT could never fire in CLUSTER, "" where it can."""
    return next((why for why, there in map(NEEDS.__getitem__, alert.needs) if not there(cluster)), "")


def rules(cluster: Cluster) -> Iterator[Rule]:
    """The rules of CLUSTER, in the order of the catalogue; none where the policy asks for no alerts."""
    said = cluster.spec.alerts
    if said is None or not said.enabled or not cluster.spec.cluster.monitoring:
        return
    for name, alert in known.alerts().items():
        if not why_not(cluster, alert):
            yield from _rules_of(cluster, alert, said.rules.get(name) or language.AlertSettings())


def _rules_of(cluster: Cluster, alert: known.Alert, said: AlertSettings) -> Iterator[Rule]:
    """The rules of ALERT, of which the policy SAID something."""
    on = not alert.why_off if said.enabled is None else said.enabled
    lasts, numbers = said.lasts or alert.lasts, {**alert.set, **said.numbers()}
    severity = said.severity or alert.severity
    of = switched(cluster) if alert.pools else ()
    apart = {pool: part for pool, part in said.perPool.items() if part.model_dump(exclude_none=True)}
    only = () if len(of) == len(cluster.pools) else tuple(name for name in of if name not in apart)
    if on and (only or not alert.pools or len(of) == len(cluster.pools)):
        yield Rule(alert, severity, lasts, numbers, only, () if only else tuple(apart))
    for pool, part in apart.items():
        if (on if part.enabled is None else part.enabled) and (not alert.pools or pool in of):
            yield Rule(alert, severity, part.lasts or lasts, {**numbers, **part.numbers()}, only=(pool,))


def silences(cluster: Cluster) -> dict[str, Silence]:
    """The silence of each alert that has one, the longest of several."""
    said = cluster.spec.alerts
    return {one.alert: one for one in sorted(said.silence if said else (), key=lambda one: one.until)}
