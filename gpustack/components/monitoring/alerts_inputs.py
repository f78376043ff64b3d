"""Inputs of the alerts about GPUs."""

import datetime

from ...cluster import alerts
from ...cluster.metrics import served
from ...cluster.resolve import Cluster
from ...policy.language.alerts import Alerts, Silence
from ...policy.language.cluster import Monitoring
from ...policy.language.reconciler import runs
from ..parts.common_inputs import Inputs
from ..reconciler.reconciler_inputs import stuck

PROBE = "DCGM_FI_DEV_GPU_TEMP"
"""A metric of the list in the exporter's image."""


class RuleInputs(Inputs):
    """One rule of the alert NAME: for the pools ONLY, or for all nodes but those of the pools BUT. It doesn't fire
    before `ends`, a Unix time, for `reason`."""

    name: str
    severity: str
    lasts: str
    numbers: dict[str, int] = {}
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    ends: int = 0
    reason: str = ""


class PoolInputs(Inputs):
    """A pool: the labels of its nodes, and how many devices each of them offers, 0 where that isn't known."""

    name: str
    labels: dict[str, str] = {}
    promised: int = 0


class AlertsInputs(Inputs):
    """`object_labels` are of the PrometheusRule, `labels` of each alert. `resources` are those that pools promise.
    `runbooks` is where their pages are published, "" for nowhere; `operations`: a reconciler tells what it works on,
    and an operation that lasts `stuck_seconds` is stuck. `probe` is a metric that the exporter serves of each GPU.
    `honor_labels`: the exporter's names of the pod that has the GPU are those of its series. `reader` reads the rules.
    """

    namespace: str
    object_labels: dict[str, str] = {}
    labels: dict[str, str] = {}
    runbooks: str = ""
    rules: tuple[RuleInputs, ...]
    pools: tuple[PoolInputs, ...] = ()
    resources: tuple[str, ...] = ()
    operations: bool = False
    stuck_seconds: int = 0
    probe: str = PROBE
    honor_labels: bool = False
    reader: Monitoring = True


def from_cluster(cluster: Cluster) -> AlertsInputs | None:
    """None where the policy asks for no alerts, and where nothing could read them."""
    spec, said = cluster.spec, cluster.spec.alerts
    if said is None:
        return None
    silences = alerts.silences(cluster)
    rules = tuple(_rule(rule, said, silences.get(rule.alert.name)) for rule in alerts.rules(cluster))
    if not rules:
        return None
    promised = alerts.promises(cluster)
    resources = {name for pool in cluster.capacity for name in pool.per_node if pool.name in promised}
    return AlertsInputs(
        namespace=spec.cluster.namespace,
        object_labels=spec.cluster.monitoringLabels,
        labels=said.labels,
        runbooks=(said.runbooks or "").rstrip("/"),
        rules=rules,
        pools=tuple(
            PoolInputs(name=pool.name, labels=pool.selection, promised=promised.get(pool.name, 0))
            for pool in cluster.nodes
        ),
        resources=tuple(sorted(resources)),
        operations=runs(spec),
        stuck_seconds=stuck(spec.reconciler) if spec.reconciler else 0,
        probe=probe(cluster),
        honor_labels=cluster.stack.dcgmExporter.serviceMonitor.honorLabels,
        reader=spec.cluster.monitoring or True,
    )


def probe(cluster: Cluster) -> str:
    """A metric that the exporter serves of each GPU: of the policy's list the first that is not a profiling counter."""
    have = served(cluster.spec) or {}
    rows = [name for name, kind in have.items() if kind != "label" and not name.startswith("DCGM_FI_PROF_")]
    return PROBE if PROBE in rows or not rows else rows[0]


def _rule(rule: alerts.Rule, said: Alerts, silence: Silence | None) -> RuleInputs:
    midnight = datetime.datetime.combine(silence.ends, datetime.time(), datetime.UTC) if silence else None
    return RuleInputs(
        name=rule.alert.name,
        severity=getattr(said.severities, rule.severity),
        lasts=rule.lasts,
        numbers=dict(rule.numbers),
        only=rule.only,
        but=rule.but,
        ends=int(midnight.timestamp()) if midnight else 0,
        reason=silence.reason if silence else "",
    )
