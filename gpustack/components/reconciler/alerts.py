"""Alerts on the reconciler: a node that it can't finish, and a program that doesn't run.

Both copies serve metrics and only the one that works has any of policies, so that no alert counts a node twice.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model import Body, docs
from ..monitoring.prometheus_rules import prometheus_rule
from .reconciler_inputs import ReconcilerInputs

PAGE = f"{docs('reconciler.md')} says how to get out of it"


class Alert(NamedTuple):
    """An alert: the end of its name, when it holds and for how long, how bad it is, and what it tells."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    description: str


def alerts(name: str, inputs: ReconcilerInputs) -> Body:
    """The rule NAME-alerts with all of them."""
    rules = [
        {
            "alert": f"GPUStackReconciler{alert.name}",
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": f"{alert.description} {PAGE}."},
        }
        for alert in all_alerts(inputs)
    ]
    group = {"name": "gpustack-reconciler", "rules": rules}
    return prometheus_rule(f"{name}-alerts", inputs.namespace, group, inputs.monitoring_labels)


def all_alerts(inputs: ReconcilerInputs) -> list[Alert]:
    """The alerts, with the deadlines of the policy."""
    since = 'gpustack_reconciler_node_phase_since_seconds{phase!="Quarantine"}'
    policy, node = "{{ $labels.policy }}", "{{ $labels.node }}"
    return [
        Alert(
            "Down",
            f'absent(gpustack_reconciler_leader{{namespace="{inputs.namespace}"}} == 1)',
            "15m",
            "critical",
            "The GPU reconciler does not work",
            "No copy has held the lease for 15 minutes: new GPU nodes get no labels, and no roll-out goes on;",
        ),
        Alert(
            "NodeStuck",
            f"time() - max by (node, policy, kind, phase) ({since}) > {inputs.stuck_seconds}",
            "5m",
            "warning",
            "An operation on a GPU node does not end",
            f"The operation {{{{ $labels.kind }}}} on node {node} has been in phase {{{{ $labels.phase }}}} for longer "
            "than any deadline;",
        ),
        Alert(
            "NodeQuarantined",
            'max by (policy) (gpustack_reconciler_nodes{state="quarantined"}) > 0',
            "5m",
            "warning",
            "GPU nodes are out of service after a failure",
            f"{{{{ $value }}}} nodes of policy {policy} stay cordoned, because an operation failed there;",
        ),
        Alert(
            "BreakerOpen",
            "max by (policy) (gpustack_reconciler_breaker_open) == 1",
            "1m",
            "warning",
            "A roll-out over GPU nodes was stopped",
            f"So many nodes of policy {policy} failed that no other one is begun until somebody resets the breaker;",
        ),
        Alert(
            "RolloutStands",
            "time() - max by (policy) (gpustack_reconciler_still_since_seconds) > 3600",
            "5m",
            "warning",
            "A roll-out over GPU nodes is due, and nothing moves",
            f"For an hour no node of policy {policy} has moved on, though something is due there and nobody has paused "
            "it; gpustack rollout status says what each node waits for;",
        ),
        Alert(
            "NodeNotCovered",
            'max by (policy) (gpustack_reconciler_nodes{state="uncovered"}) > 0',
            "15m",
            "warning",
            "GPU nodes that no policy or driver covers",
            "{{ $value }} nodes have a GPU and a system, kernel or pool that nothing was rendered for;",
        ),
    ]
