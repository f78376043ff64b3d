"""The reconciler's program: labels nodes, rolls drivers, changes MIG layouts (gpustack/reconciler).

Two copies, of which one works; they need nothing of their node. Rights are exactly what the program asks for. Access
control can't say which fields of a Node it may change: guards.py does.
"""

from collections.abc import Iterator
from string import Template
from typing import Any

from ...api import keys
from ...catalog import alerts as known
from ...catalog import health
from ...model import Body, docs
from ..component import Component
from ..parts.kube import access, config_map, grant, rights, service
from ..parts.monitoring import prometheus_rule, service_monitor
from ..parts.pod import RESTRICTED, references
from ..parts.template import template
from .guards import admission_policies
from .reconciler_inputs import ProgramInputs, ReconcilerInputs

NAME = "gpustack-reconciler"
"""Of every object, the Lease included."""
LABELS = {"app": NAME}
MONITOR = "nvidia-gpu-monitor"
"""The ConfigMap for node-problem-detector, and the file in it."""
PORT, PROBES = 8080, 8081
"""Of metrics, which others scrape, and of the kubelet's probes, so that neither stands in the other's way."""
EVENTS = "default"
"""The namespace of Events about nodes, and the only one that it writes them to."""


class Reconciler(Component[ReconcilerInputs]):
    """The program's Deployment, its rights, and what watches over it."""

    stage = "reconciler"

    def manifests(self, inputs: ReconcilerInputs) -> Iterator[Body]:
        granted = rights(NAME, deletes=inputs.deletes, layouts=keys.LAYOUTS, lease=NAME)
        yield from access(NAME, inputs.namespace, **granted, labels=LABELS)
        kured, daemonset = inputs.kured or ("", "")
        for what, space in (("events", EVENTS), ("maintenance", inputs.leases), ("kured", kured)):
            if space:
                granted = rights(f"{NAME}-{what}", daemonset=daemonset)
                yield from grant(f"{NAME}-{what}", NAME, space, home=inputs.namespace, labels=LABELS, **granted)
        yield deployment(inputs)
        named = {"name": NAME, "namespace": inputs.namespace}
        yield template(__file__, "disruption_budget", **named)
        yield service(NAME, inputs.namespace, port_name="metrics", port=PORT)
        if inputs.flow_schema:
            yield template(__file__, "flow_schema", **named)
        yield from admission_policies(NAME, inputs)
        if inputs.log_monitor:
            yield config_map(MONITOR, inputs.log_monitor, {f"{MONITOR}.json": health.monitor()})
        if inputs.monitoring:
            home, labels, reader = inputs.namespace, inputs.monitoring_labels, inputs.monitoring
            yield service_monitor(
                NAME, home, port="metrics", number=PORT, job_label="app", labels=labels, reader=reader
            )
            if inputs.alerts:
                yield alerts(NAME, inputs)


def deployment(inputs: ReconcilerInputs) -> Body:
    """The program; its copies need nothing of their nodes."""
    leases, kured = inputs.leases, "/".join(inputs.kured or ())
    args = ["--namespace", "$(POD_NAMESPACE)", "--probe-port", str(PROBES)]
    args += (["--maintenance-leases", leases] if leases else []) + (["--kured", kured] if kured else [])
    own = {"port": PORT, "probes": PROBES, "drain_skip": keys.DRAIN_SKIP, "gpus": keys.PRESENT}
    return template(__file__, "deployment", name=NAME, args=args, **own, **run_in(inputs))


def run_in(inputs: ProgramInputs) -> dict[str, Any]:
    """INPUTS as words of a template, with what pods of the program's image may do."""
    return {**dict(inputs), "pull_secrets": references(inputs.pull_secrets), "restricted": RESTRICTED}


def alerts(name: str, inputs: ReconcilerInputs) -> Body:
    """The rule NAME-alerts with the alerts on the reconciler, by the deadlines of the policy: a node that it can't
    finish, and a program that doesn't run.

    They are those of the catalogue (catalog/data/alerts.yaml), and here where the policy has no section `alerts`, which
    renders them with all others. Both copies serve metrics and only the one that works has any of policies, so that no
    alert counts a node twice."""
    page = f"{docs('reconciler.md')} says how to get out of it"
    rules = [
        {
            "alert": f"{known.PREFIX}{alert.name}",
            "expr": Template(alert.bad).substitute(alert.set, namespace=inputs.namespace, stuck=inputs.stuck_seconds),
            "for": alert.lasts,
            "labels": {"severity": alert.plain},
            "annotations": {
                "summary": alert.summary,
                "description": f"{alert.told(alert.lasts, alert.set).removesuffix('.')}; {page}.",
            },
        }
        for alert in known.alerts().values()
        if alert.plain and (inputs.health or "health" not in alert.needs)
    ]
    group = {"name": "gpustack-reconciler", "rules": rules}
    labels = inputs.monitoring_labels
    return prometheus_rule(f"{name}-alerts", inputs.namespace, group, labels, reader=inputs.monitoring)
