"""Inputs of the namespace and of what it needs before any pod may start in it."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ...policy.language.cluster import platform_of
from ..parts.common_inputs import Inputs, prometheus_rules

FOREIGN = ("kube-", "openshift-")
"""Namespaces that begin so belong to the cluster, as `default` does: rendering one would let a prune delete it."""

OPENSHIFT_NAMESPACE = "nvidia-gpu-operator"
"""OpenShift's catalogue installs into it, so it is the stack's alone. Any other may be shared with pods that should not
be trusted so far (operator.md 2.5)."""

SYSTEM_CRITICAL = ("system-cluster-critical", "system-node-critical")


class NamespaceInputs(Inputs):
    """What the namespace is labelled with, and whether it has a quota.

    `privileged`: Pod Security lets everything start. `monitored`: OpenShift's Prometheus looks for targets there.
    `quota`: the platform admits system-critical pods only so. `admin_access`: claims of an administrator, which look at
    GPUs without taking them away, are admitted.
    """

    name: str
    privileged: bool = False
    monitored: bool = False
    quota: bool = False
    admin_access: bool = False


def from_cluster(cluster: Cluster) -> NamespaceInputs | None:
    """The inputs for CLUSTER, or None where the namespace is the cluster's own."""
    spec = cluster.spec
    name = spec.cluster.namespace
    if name == "default" or name.startswith(FOREIGN):
        return None
    preset = platform_of(spec.cluster)
    dra = cluster.dra
    critical = spec.daemonsets.priorityClassName in SYSTEM_CRITICAL
    trusted = not cluster.on_openshift or name == OPENSHIFT_NAMESPACE
    return NamespaceInputs(
        name=name,
        privileged=(bool(spec.psa.enabled) or preset.psa_required) and trusted,
        monitored=prometheus_rules(spec) and trusted,
        quota=bool(preset.quota) and (dra or critical),
        admin_access=dra,
    )
