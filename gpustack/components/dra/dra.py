"""What the objects of dynamic resource allocation look like: classes of devices, claims, and the label of their owner.

`resource.k8s.io/v1` is served from Kubernetes 1.34 on, and below that policies with DRA are refused
(checks/dra/dra.py), so the beta forms of these objects are not rendered.
"""

from collections.abc import Iterable, Iterator

from ...model import Body
from ..parts.kube import metadata

RESOURCES, VERSION = "resource.k8s.io", "v1"
GPU_CLASS = "gpu.nvidia.com"
STATE_LABEL = "nvidia.com/gpu-operator.state"
"""Which of the operator's states an object belongs to (operator.md 11.1): by it an installation is recognised."""


def of_state(state: str, bodies: Iterable[Body]) -> Iterator[Body]:
    """BODIES with the label of STATE, which every object of a state carries."""
    for body in bodies:
        meta = body["metadata"]
        meta["labels"] = {**meta.get("labels", {}), STATE_LABEL: state}
        yield body


def device_class(name: str, driver: str, *conditions: str) -> Body:
    """The DeviceClass NAME: devices of DRIVER whose attributes meet all CONDITIONS, such as "type == 'gpu'"."""
    attributes = (f"device.attributes['{driver}'].{condition}" for condition in conditions)
    expression = " && ".join((f"device.driver == '{driver}'", *attributes))
    return {
        "apiVersion": f"{RESOURCES}/{VERSION}",
        "kind": "DeviceClass",
        "metadata": metadata(name),
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def admin_claim(name: str, namespace: str, request: str, *, count: int | None = None) -> Body:
    """The ResourceClaimTemplate NAME for whoever looks after GPUs without taking them away from workloads.

    COUNT GPUs of a node, or all where it is None. The API server admits it in namespaces with the label
    resource.kubernetes.io/admin-access only (namespace.py).
    """
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    exactly = {"deviceClassName": GPU_CLASS, "adminAccess": True, **mode}
    return {
        "apiVersion": f"{RESOURCES}/{VERSION}",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata(name, namespace),
        "spec": {"spec": {"devices": {"requests": [{"name": request, "exactly": exactly}]}}},
    }
