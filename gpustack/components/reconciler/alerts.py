"""Alerts on the reconciler: a node that it can't finish, and a program that doesn't run.

They are those of the catalogue (catalog/data/alerts.yaml), and here where the policy has no section `alerts`, which
renders them with all others. Both copies serve metrics and only the one that works has any of policies, so that no
alert counts a node twice.
"""

from __future__ import annotations

from string import Template

from ...catalog import alerts as known
from ...model import Body, docs
from ..monitoring.prometheus_rules import prometheus_rule
from .reconciler_inputs import ReconcilerInputs

PAGE = f"{docs('reconciler.md')} says how to get out of it"


def alerts(name: str, inputs: ReconcilerInputs) -> Body:
    """The rule NAME-alerts with all of them, with the deadlines of the policy."""
    rules = [
        {
            "alert": f"{known.PREFIX}{alert.name}",
            "expr": Template(alert.bad).substitute(alert.set, namespace=inputs.namespace, stuck=inputs.stuck_seconds),
            "for": alert.lasts,
            "labels": {"severity": alert.plain},
            "annotations": {
                "summary": alert.summary,
                "description": f"{alert.told(alert.lasts, alert.set).removesuffix('.')}; {PAGE}.",
            },
        }
        for alert in known.alerts().values()
        if alert.plain
    ]
    group = {"name": "gpustack-reconciler", "rules": rules}
    return prometheus_rule(f"{name}-alerts", inputs.namespace, group, inputs.monitoring_labels)
