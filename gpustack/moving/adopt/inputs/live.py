"""A cluster: the operator's objects and namespace, and the nodes. Only reads, and of Secrets only Helm's releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpustack.api.expectations import Kind
from gpustack.live.state import raw

from ..documents import Item

if TYPE_CHECKING:
    from gpustack.reconciler.shell.cluster import Cluster

OF_THE_CLUSTER = (
    Kind("nvidia.com/v1", "ClusterPolicy"),
    *(Kind("nvidia.com/v1alpha1", each) for each in ("NVIDIADriver", "GPUCluster")),
    *(Kind("config.openshift.io/v1", "ClusterVersion"), Kind("v1", "Node")),
)
OF_THE_NAMESPACE = (
    *(Kind("apps/v1", each) for each in ("DaemonSet", "ControllerRevision", "Deployment")),
    *(Kind("v1", each) for each in ("ConfigMap", "Secret")),
    Kind("monitoring.coreos.com/v1", "ServiceMonitor"),
)
CHOSEN = {"Secret": "owner=helm", "Pod": "app=gpu-operator"}
"""Labels of the kinds of which not all are read: Secrets that hold a release of Helm, pods of the operator itself."""


async def look(cluster: Cluster, namespace: str, default: str) -> list[Item]:
    """The objects of CLUSTER; NAMESPACE is the operator's, "" to take what its objects say, else DEFAULT."""
    items = [item for kind in OF_THE_CLUSTER for item in await listed(cluster, kind)]
    told = (each.text_at("status", "namespace") for each in items)
    helm = (each.text_at("metadata", "annotations", "meta.helm.sh/release-namespace") for each in items)
    where = namespace or next((each for each in (*told, *helm) if each), default)
    own = [kind._replace(namespace=where) for kind in OF_THE_NAMESPACE]
    return items + [item for kind in own for item in await listed(cluster, kind)]


async def listed(cluster: Cluster, kind: Kind) -> list[Item]:
    """The objects of KIND; none where the cluster doesn't know it."""
    from gpustack.reconciler.shell.cluster import NotFound, Selection

    try:
        chosen = Selection(namespace=kind.namespace, labels=CHOSEN.get(kind.kind, ""))
        bodies = (await cluster.list(raw(kind), chosen)).items
    except NotFound:
        return []
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return [Item(f"{kind.kind} {each['metadata']['name']}", "", {**head, **each}) for each in bodies]
