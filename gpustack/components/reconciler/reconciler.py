"""The reconciler's program: labels nodes, rolls drivers, changes MIG layouts (gpustack/reconciler).

Two copies, of which one works; they need nothing of their node. Rights are exactly what the program asks for. Access
control can't say which fields of a Node it may change: guards.py does.
"""

from collections.abc import Iterator
from string import Template

from ...api import keys
from ...catalog import alerts as known
from ...catalog import health
from ...model import Body, docs
from ..component import Component
from ..parts.kube import access, config_map, grant, metadata, rights, service
from ..parts.monitoring import prometheus_rule, service_monitor
from ..parts.pod import RESTRICTED, Container, Env, Pod, http_probe, sparse
from .guards import admission_policies, flow_schema
from .reconciler_inputs import ReconcilerInputs

NAME = "gpustack-reconciler"
"""Of every object, the Lease included."""
LABELS = {"app": NAME}
MONITOR = "nvidia-gpu-monitor"
"""The ConfigMap for node-problem-detector, and the file in it."""
PORT, PROBES = 8080, 8081
"""Of metrics, which others scrape, and of the kubelet's probes, so that neither stands in the other's way."""
EVENTS = "default"
"""The namespace of Events about nodes, and the only one that it writes them to."""
PAGE = f"{docs('reconciler.md')} says how to get out of it"


class Reconciler(Component[ReconcilerInputs]):
    """The program's Deployment, its rights, and what watches over it."""

    stage = "reconciler"

    def manifests(self, inputs: ReconcilerInputs) -> Iterator[Body]:
        granted = rights(NAME, deletes=inputs.deletes, layouts=keys.LAYOUTS, lease=NAME)
        yield from access(NAME, inputs.namespace, **granted, labels=LABELS)
        kured, daemonset = inputs.kured or ("", "")
        for what, space in (("events", EVENTS), ("maintenance", inputs.leases), ("kured", kured)):
            if space:
                name, whose = f"{NAME}-{what}", {"account": NAME, "home": inputs.namespace, "namespace": space}
                yield from grant(name, **whose, labels=LABELS, role=rights(name, daemonset=daemonset)["role"])
        yield deployment(inputs)
        yield disruption_budget(inputs)
        yield service(NAME, inputs.namespace, port_name="metrics", port=PORT)
        if inputs.flow_schema:
            yield flow_schema(NAME, inputs.namespace)
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
    """The program, on nodes without GPUs first, its copies on different nodes; drains that it makes itself spare it."""
    main = Container(
        "reconciler",
        inputs.image,
        inputs.pull_policy,
        command=["python", "-m", "gpustack.reconciler"],
        args=["--namespace", "$(POD_NAMESPACE)", "--probe-port", str(PROBES)]
        + (["--maintenance-leases", inputs.leases] if inputs.leases else [])
        + (["--kured", "/".join(inputs.kured)] if inputs.kured else []),
        env=Env().field("POD_NAME", "metadata.name").field("POD_NAMESPACE", "metadata.namespace"),
        security=RESTRICTED,
        resources=inputs.resources,
        ports=[
            {"name": "metrics", "containerPort": PORT, "protocol": "TCP"},
            {"name": "probes", "containerPort": PROBES, "protocol": "TCP"},
        ],
        liveness=http_probe(PROBES, "/healthz", initialDelaySeconds=10, periodSeconds=20, failureThreshold=3),
        readiness=http_probe(PROBES, "/readyz", periodSeconds=10),
    )
    pod = Pod(NAME, inputs.node_selector, [main], affinity=affinity(), pull_secrets=inputs.pull_secrets)
    spec = pod.body() | sparse(
        priorityClassName=inputs.priority_class,
        tolerations=[dict(toleration) for toleration in inputs.tolerations],
        enableServiceLinks=False,
    )
    template = {"metadata": metadata("", labels={**LABELS, keys.DRAIN_SKIP: "true"}), "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, inputs.namespace, labels=LABELS),
        "spec": {
            "replicas": inputs.replicas,
            "selector": {"matchLabels": LABELS},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "template": template,
        },
    }


def affinity() -> Body:
    """Where the copies run if there is a choice."""
    other = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": "kubernetes.io/hostname"}
    without_gpu = {"matchExpressions": [{"key": keys.PRESENT, "operator": "DoesNotExist"}]}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {preferred: [{"weight": 50, "preference": without_gpu}]},
        "podAntiAffinity": {preferred: [{"weight": 100, "podAffinityTerm": other}]},
    }


def disruption_budget(inputs: ReconcilerInputs) -> Body:
    """One copy may go at a time; one that doesn't work may always go."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, inputs.namespace, labels=LABELS),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    }


def alerts(name: str, inputs: ReconcilerInputs) -> Body:
    """The rule NAME-alerts with the alerts on the reconciler, by the deadlines of the policy: a node that it can't
    finish, and a program that doesn't run.

    They are those of the catalogue (catalog/data/alerts.yaml), and here where the policy has no section `alerts`, which
    renders them with all others. Both copies serve metrics and only the one that works has any of policies, so that no
    alert counts a node twice.
    """
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
        if alert.plain and (inputs.health or "health" not in alert.needs)
    ]
    group = {"name": "gpustack-reconciler", "rules": rules}
    labels = inputs.monitoring_labels
    return prometheus_rule(f"{name}-alerts", inputs.namespace, group, labels, reader=inputs.monitoring)
