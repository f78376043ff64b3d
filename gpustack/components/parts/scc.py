"""Security context constraints: what OpenShift lets the pods of a component do (operator.md 8.4, 11.2).

One object per component, named after it, for its service account alone. The operator calls those of vfio-manager,
kata-manager and cc-manager by one name, `nvidia-vfio-manager`: the disabled kata-manager deletes in every pass what
vfio-manager created, and no object ever names cc-manager's account. Here each has its own.

What differs between components is a small table of access to the node. Rejected: deriving it from the pods. Pods of a
policy with `hostNetwork` would get a wider object than the operator's, and nobody could tell from the policy.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...catalog import _data
from ...model import Body
from .kube import metadata
from .pod import sparse

ACCESS = Path(__file__).with_suffix(".yaml")
ADMINS = ["system:cluster-admins", "system:nodes", "system:masters"]
EVERYTHING = ["*"]
ANY = {"type": "RunAsAny"}


def scc(
    name: str, namespace: str, *, like: str = "", accounts: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> Body:
    """The SecurityContextConstraints NAME for ACCOUNTS of NAMESPACE (default: the one called NAME).

    LIKE is the component in scc.yaml, where that isn't NAME: per-pool drivers are "nvidia-driver". Fields that would be
    null are left out; OpenShift fills them in the same way.
    """
    access = _data.read(ACCESS)[like or name]
    everything = EVERYTHING if access.get("capabilities", True) else []
    description = f"Lets the pods of {like or name} use what they need of their node. Rendered by gpustack."
    return {
        "apiVersion": "security.openshift.io/v1",
        "kind": "SecurityContextConstraints",
        "metadata": metadata(name, labels=labels, annotations={"kubernetes.io/description": description}),
        "allowHostDirVolumePlugin": True,
        "allowHostIPC": access.get("ipc", False),
        "allowHostNetwork": access.get("network", False),
        "allowHostPID": access.get("pid", False),
        "allowHostPorts": access.get("ports", False),
        "allowPrivilegeEscalation": True,
        "allowPrivilegedContainer": True,
        "fsGroup": dict(ANY),
        "readOnlyRootFilesystem": False,
        "runAsUser": dict(ANY),
        "seLinuxContext": dict(ANY),
        "seccompProfiles": list(EVERYTHING),
        "supplementalGroups": dict(ANY),
        "users": [f"system:serviceaccount:{namespace}:{account}" for account in accounts or (name,)],
        "volumes": list(EVERYTHING),
        **sparse(
            allowedCapabilities=list(everything),
            allowedUnsafeSysctls=list(everything),
            groups=list(ADMINS) if access.get("admins", True) else [],
        ),
    }
