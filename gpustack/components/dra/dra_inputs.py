"""What the inputs of components of a `gpuCluster` share."""

from __future__ import annotations

from ...cluster.resolve import resolve
from ...policy.language.gpu_cluster import GpuCluster
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Common, dumped


def common_of(spec: ClusterPolicySpec, cluster: GpuCluster, *, priority: str = "system-node-critical") -> Common:
    """What steers the pods of CLUSTER, which is SPEC's (operator.md 11.1).

    An empty list of tolerations means none. The update strategy is each component's own, and security context and root
    file system are not for the policy to say.
    """
    return Common.of(resolve(spec), cluster.daemonsets, cluster.hostPaths.driverInstallDir, "/").model_copy(
        update={
            "tolerations": dumped(cluster.daemonsets.tolerations),
            "priority_class": priority,
            "security_context": None,
            "on_delete": False,
            "max_unavailable": "100%",
        }
    )
