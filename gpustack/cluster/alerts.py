"""Which alerts a cluster gets: those of the catalogue that can fire there, as the policy changes them.

An alert is one rule for all pools that it treats alike, and another for each pool for which the policy says something
else. What an alert reads must be there: one that can never fire would look like safety. So an alert that is on by
default is left out where nothing could raise it, and one that the policy asks for is refused there (GPU614).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..catalog import alerts as known
from ..catalog import dcgm
from ..policy.language import alerts as language

if TYPE_CHECKING:
    from ..policy.language.alerts import AlertSettings, Silence
    from .resolve import Cluster


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of `alert`: for the pools that `only` names, or where it names none for all nodes but those of
    `but`.
    """

    alert: known.Alert
    severity: known.Severity
    lasts: str
    numbers: Mapping[str, int]
    only: str = ""
    but: tuple[str, ...] = ()


OWN_LIST = ("DCGM_EXPORTER_CONFIGMAP_DATA", "DCGM_EXPORTER_COLLECTORS")
"""Variables by which the exporter is told of a list of fields."""


def _exporter(cluster: Cluster) -> str:
    return "" if cluster.stack.dcgmExporter.enabled else f"{cluster.at('dcgmExporter')}.enabled is false"


def _promise(cluster: Cluster) -> str:
    return "" if promises(cluster) else "no node pool says what its nodes offer: gpuProduct and gpusPerNode"


NEEDS: Mapping[str, Callable[[Cluster], str]] = {"exporter": _exporter, "promise": _promise}
"""What an alert needs: why the cluster lacks it, "" where it is there."""


def why_not(cluster: Cluster, alert: known.Alert) -> str:
    """Why ALERT could never fire in CLUSTER, "" where it can."""
    return next((why for need in alert.needs if (why := NEEDS[need](cluster))), "")


def promises(cluster: Cluster) -> dict[str, int]:
    """How many devices a node of each pool offers, of the pools of which that is known."""
    found = {each.name: list(each.per_node.values()) for each in cluster.capacity}
    return {name: sum(filter(None, counts)) for name, counts in found.items() if counts and None not in counts}


def rules(cluster: Cluster) -> Iterator[Rule]:
    """The rules of CLUSTER, in the order of the catalogue; none where the policy asks for no alerts."""
    said = cluster.spec.alerts
    if said is None or not said.enabled or not cluster.spec.cluster.monitoring:
        return
    for name, alert in known.alerts().items():
        own = said.rules.get(name) or language.AlertSettings()
        if not why_not(cluster, alert):
            yield from _rules_of(alert, own)


def _rules_of(alert: known.Alert, said: AlertSettings) -> Iterator[Rule]:
    """The rules of ALERT, of which the policy SAID something."""
    on = not alert.off if said.enabled is None else said.enabled
    lasts, numbers = said.lasts or alert.lasts, {**alert.set, **said.numbers()}
    severity = said.severity or alert.severity
    if on:
        yield Rule(alert, severity, lasts, numbers, but=tuple(said.perPool))
    for pool, part in said.perPool.items():
        if on if part.enabled is None else part.enabled:
            yield Rule(alert, severity, part.lasts or lasts, {**numbers, **part.numbers()}, only=pool)


def added_counters(cluster: Cluster) -> list[dcgm.Field]:
    """All fields that the exporter is told to serve for alerts: those of its image's list, and what they need beside.
    None where that list has all they need, and where the policy says which list the exporter reads.
    """
    exporter = cluster.stack.dcgmExporter
    elsewhere = any(entry.name in OWN_LIST for entry in exporter.env or ())
    if elsewhere or exporter.config.name or exporter.config.data:
        return []
    default = dcgm.default_counters()
    read = dict.fromkeys(name for rule in rules(cluster) for name in rule.alert.counters)
    more = [field for name in read if not (field := dcgm.field(name)).default]
    return [*default, *more] if more else []


def silences(cluster: Cluster) -> dict[str, Silence]:
    """The silence of each alert that has one, the longest of several."""
    said = cluster.spec.alerts
    return {one.alert: one for one in sorted(said.silence if said else (), key=lambda one: one.until)}
