"""Inputs of the reconciler's program: what runs it, and what it may do."""

from typing import Any

from ...cluster.resolve import Cluster
from ...policy.language import guards, reconciler
from ...policy.language.base import own
from ...policy.language.cluster import Monitoring
from ...policy.language.reconciler import Reconciler
from ...policy.language.spec import ClusterPolicySpec
from ..nfd.nfd_inputs import CONTROL_PLANE, GPU
from ..parts.common_inputs import Inputs, dump, dumped, image, pull_policy
from ..toolkit.toolkit_inputs import of_containers


class PodLabels(Inputs):
    """Pods by their labels, in one namespace or, for "", in any, and what becomes of them."""

    labels: tuple[tuple[str, str], ...]
    namespace: str = ""
    then: str = "delete"


class ProgramInputs(Inputs):
    """What runs in the reconciler's image, and where: the program, or `verify`."""

    namespace: str
    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    resources: dict[str, Any] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = (CONTROL_PLANE, GPU)


def run_by(spec: ClusterPolicySpec, section: Reconciler) -> dict[str, Any]:
    """What SECTION says of that."""
    return {
        "namespace": spec.cluster.namespace,
        "image": image(spec, section, "reconciler"),
        "pull_policy": pull_policy(section.imagePullPolicy),
        "pull_secrets": tuple(section.imagePullSecrets),
        "node_selector": section.nodeSelector,
        "tolerations": (CONTROL_PLANE, GPU) if section.tolerations is None else dumped(section.tolerations),
    }


class ReconcilerInputs(ProgramInputs):
    """`pod_rules` say which pods it may delete, the first that fits; with `ignores_budgets` all that use a GPU, by a
    resource of NVIDIA's, one of `runtime_classes` or a claim. `startup_taints` are those that it may remove, as key and
    effect. `leases` is the namespace of Leases by which maintenance is shared, `kured` are namespace and name of the
    DaemonSet of which it sees the lock. `guard`: how the API server holds it to its own. `flow_schema` is rendered
    along; `monitoring`: the Prometheus operator's CRDs are there, `monitoring_labels` are of what it reads, and a node
    that has been in one phase for `stuck_seconds` is worth an alert. `alerts`: they are rendered here, as the policy
    has no section of that name; those about faults of GPUs with `health`. `log_monitor`: the namespace of
    node-problem-detector, which gets its rules about GPUs."""

    replicas: int = own("reconciler.replicas")
    priority_class: str = own("reconciler.priorityClassName")
    startup_taints: tuple[tuple[str, str], ...] = ()
    guard: guards.Mode = "Deny"
    pod_rules: tuple[PodLabels, ...] = ()
    ignores_budgets: bool = False
    leases: str = ""
    kured: tuple[str, str] | None = None
    runtime_classes: tuple[str, ...] = ()
    flow_schema: bool = True
    monitoring: Monitoring = False
    monitoring_labels: dict[str, str] = {}
    stuck_seconds: int = 7200
    alerts: bool = True
    health: bool = False
    log_monitor: str = ""

    @property
    def deletes(self) -> bool:
        """Whether it deletes pods of others."""
        return self.ignores_budgets or any(each.then == "delete" for each in self.pod_rules)


def from_cluster(cluster: Cluster) -> ReconcilerInputs | None:
    """None where the program doesn't run."""
    spec = cluster.spec
    section = spec.reconciler
    if section is None or not reconciler.runs(spec):
        return None
    return ReconcilerInputs(
        **run_by(spec, section),
        replicas=section.replicas,
        resources=dump(section.resources) or {},
        priority_class=section.priorityClassName,
        startup_taints=tuple((taint.key, taint.effect) for taint in section.startupTaints),
        guard=reconciler.guard(spec),
        pod_rules=tuple(
            PodLabels(labels=tuple(sorted(each.labels.items())), namespace=each.namespace or "", then=each.then)
            for each in section.podRules
        ),
        ignores_budgets=section.ignoreBudgetsAfterSeconds is not None,
        leases=section.maintenanceLeaseNamespace or "",
        kured=(section.kured.namespace, section.kured.name) if section.kured else None,
        runtime_classes=of_containers(cluster),
        flow_schema=section.flowSchema,
        monitoring=spec.cluster.monitoring,
        monitoring_labels=spec.cluster.monitoringLabels,
        stuck_seconds=stuck(section),
        alerts=not (spec.alerts and spec.alerts.enabled),
        health=section.health is not None,
        log_monitor=(section.health and section.health.logMonitorNamespace) or "",
    )


def stuck(section: Reconciler) -> int:
    """After how many seconds in a phase a node is stuck by the deadlines of SECTION; a MIG change with a reboot has
    twice its time, and a node that had a fault is looked at for longer."""
    deadlines, faults = section.deadlines, section.health
    asked, settles = (faults.requestSeconds, faults.settleSeconds) if faults else (0, 0)
    return max(deadlines.driver, 2 * deadlines.mig, deadlines.verifying + settles, asked) + 1800
