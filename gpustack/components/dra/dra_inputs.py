"""Inputs that the components of a `gpuCluster` share: its sections in the places where other policies have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cluster.resolve import resolve
from ..parts.common_inputs import Common, dumped

if TYPE_CHECKING:
    from ...policy.language.gpu_cluster import GpuCluster
    from ...policy.language.spec import ClusterPolicySpec

DEFAULT_PRIORITY = "system-node-critical"


def as_policy(spec: ClusterPolicySpec) -> ClusterPolicySpec:
    """SPEC as the inputs of its other components read it.

    With a `gpuCluster` its sections stand for the policy's own, and there is no device plugin and no MIG manager, so
    that inputs which know nothing of DRA (DCGM, its exporter, the ConfigMaps) are right as they are.
    """
    if not (cluster := spec.gpuCluster):
        return spec
    from ...policy.language.device_plugin import DevicePlugin
    from ...policy.language.host import HostPaths
    from ...policy.language.mig import MigManager

    return spec.model_copy(
        update={
            "daemonsets": cluster.daemonsets,
            "dcgm": cluster.dcgm,
            "dcgmExporter": cluster.dcgmExporter,
            "hostPaths": HostPaths.model_validate(cluster.hostPaths.model_dump()),
            "devicePlugin": DevicePlugin(enabled=False),
            "migManager": MigManager(enabled=False),
        }
    )


def common_of(spec: ClusterPolicySpec, cluster: GpuCluster, *, priority: str = DEFAULT_PRIORITY) -> Common:
    """What steers the pods of CLUSTER, which is SPEC's (operator.md 11.1).

    An empty list of tolerations means none. The update strategy is each component's own, and security context and root
    file system are not for the policy to say.
    """
    return Common.from_cluster(resolve(as_policy(spec))).model_copy(
        update={
            "tolerations": dumped(cluster.daemonsets.tolerations),
            "priority_class": priority,
            "security_context": None,
            "on_delete": False,
            "max_unavailable": "100%",
        }
    )
