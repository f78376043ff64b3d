"""Small objects that tests create."""

from __future__ import annotations

from tests.control_plane.api import Api, Body

IMAGE = "registry.example/pause:1"


def pod_spec(*, gpus: int = 0, **more: object) -> Body:
    """A pod's spec with one container, which takes GPUs."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    return {"containers": [{"name": "main", "image": IMAGE, **limits}], "tolerations": tolerations, **more}


def pod(name: str, namespace: str, *, labels: dict[str, str] | None = None, **spec: object) -> Body:
    """A pod; `gpus=1` and fields of its spec as named arguments."""
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(**spec)}  # type: ignore[arg-type]  # gpus is an int


def daemon_set(name: str, namespace: str, *, strategy: str = "RollingUpdate", **spec: object) -> Body:
    """A DaemonSet whose pods have the label `app: NAME`."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": strategy},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(**spec)},  # type: ignore[arg-type]  # gpus is an int
        },
    }


def budget(name: str, namespace: str, labels: dict[str, str], minimum: int | str) -> Body:
    """A PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }


def is_ready(body: Body | None) -> bool:
    """Whether a pod or a node has the condition Ready."""
    conditions = (body or {}).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ready_pods(api: Api, namespace: str, app: str, *, node: str = "") -> list[Body]:
    """The ready pods with the label `app: APP`, on one node or all; not those that are being deleted."""
    found = api.list("Pod", namespace, labels=f"app={app}", fields=f"spec.nodeName={node}" if node else "")
    return [one for one in found if is_ready(one) and "deletionTimestamp" not in one["metadata"]]
