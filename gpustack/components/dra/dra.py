"""What the objects of dynamic resource allocation look like: classes of devices, claims, and the label of their owner.

`resource.k8s.io/v1` is served from Kubernetes 1.34 on, and below that policies with DRA are refused
(checks/dra/dra.py), so the beta forms of these objects are not rendered.
"""

from collections.abc import Iterable, Iterator, Sequence

from ...model import Body
from ..parts.kube import object_of

STATE_LABEL = "nvidia.com/gpu-operator.state"
"""Which of the operator's states an object belongs to (operator.md 11.1): by it an installation is recognised."""


def of_state(state: str, bodies: Iterable[Body]) -> Iterator[Body]:
    """BODIES with the label of STATE, which every object of a state carries."""
    for body in bodies:
        meta = body["metadata"]
        meta["labels"] = {**meta.get("labels", {}), STATE_LABEL: state}
        yield body


def resource(kind: str, name: str, spec: Body, namespace: str = "") -> Body:
    """The object NAME of KIND."""
    return object_of("resource.k8s.io/v1", kind, name, spec, namespace)


def required(terms: Sequence[Body]) -> Body:
    """The affinity to nodes that one of TERMS fits."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def admin_claim(name: str, namespace: str, request: str, *, count: int | None = None) -> Body:
    """The ResourceClaimTemplate NAME for whoever looks after GPUs without taking them away from workloads.

    COUNT GPUs of a node, or all where it is None. The API server admits it in namespaces with the label
    resource.kubernetes.io/admin-access only (namespace.py)."""
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    exactly = {"deviceClassName": "gpu.nvidia.com", "adminAccess": True, **mode}
    spec = {"spec": {"devices": {"requests": [{"name": request, "exactly": exactly}]}}}
    return resource("ResourceClaimTemplate", name, spec, namespace)
