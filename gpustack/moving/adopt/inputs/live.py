"""A cluster, looked at: the operator's objects, the nodes, and what is in the operator's namespace. Nothing is written,
and of Secrets those that Helm keeps its releases in are read, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..documents import Item

if TYPE_CHECKING:
    from gpustack.reconciler.shell.cluster import Cluster

OF_THE_CLUSTER = (
    ("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy"),
    ("nvidia.com", "v1alpha1", "nvidiadrivers", "NVIDIADriver"),
    ("nvidia.com", "v1alpha1", "gpuclusters", "GPUCluster"),
    ("config.openshift.io", "v1", "clusterversions", "ClusterVersion"),
    ("", "v1", "nodes", "Node"),
)
OF_THE_NAMESPACE = (
    ("apps", "v1", "daemonsets", "DaemonSet"),
    ("apps", "v1", "controllerrevisions", "ControllerRevision"),
    ("apps", "v1", "deployments", "Deployment"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "secrets", "Secret"),
    ("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"),
)
CHOSEN = {"Secret": "owner=helm", "Pod": "app=gpu-operator"}
"""Labels of the kinds of which not all are read: Secrets that hold a release of Helm, pods of the operator itself."""


async def look(cluster: Cluster, namespace: str, default: str) -> list[Item]:
    """The objects of CLUSTER; NAMESPACE is the operator's, "" to take what its objects say, else DEFAULT."""
    items = [item for kind in OF_THE_CLUSTER for item in await listed(cluster, kind, "")]
    told = (each.text_at("status", "namespace") for each in items)
    helm = (each.text_at("metadata", "annotations", "meta.helm.sh/release-namespace") for each in items)
    where = namespace or next((each for each in (*told, *helm) if each), default)
    return items + [item for kind in OF_THE_NAMESPACE for item in await listed(cluster, kind, where)]


async def listed(cluster: Cluster, kind: Sequence[str], namespace: str) -> list[Item]:
    """The objects of KIND; none where the cluster doesn't know it."""
    from gpustack.reconciler.shell.cluster import Kind, NotFound, Selection

    group, version, plural, name = kind
    model: Any = dict[str, Any]
    raw: Kind[Any] = Kind(model, group, version, plural, name, namespaced=bool(namespace))
    chosen = Selection(namespace=namespace, labels=CHOSEN.get(name, ""))
    try:
        bodies = (await cluster.list(raw, chosen)).items
    except NotFound:
        return []
    head = {"apiVersion": raw.api_version, "kind": name}
    return [Item(f"{name} {each['metadata']['name']}", "", {**head, **each}) for each in bodies]
