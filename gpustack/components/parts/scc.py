"""Security context constraints: what OpenShift lets the pods of a component do (operator.md 8.4, 11.2).

One object per component, named after it, for its service account alone. The operator calls those of vfio-manager,
kata-manager and cc-manager by one name, `nvidia-vfio-manager`: the disabled kata-manager deletes in every pass what
vfio-manager created, and no object ever names cc-manager's account. Here each has its own.

What differs between components is a small table of access to the node. Rejected: deriving it from the pods. Pods of a
policy with `hostNetwork` would get a wider object than the operator's, and nobody could tell from the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...model import Body
from .kube import metadata
from .pod import sparse


class NodeAccess(NamedTuple):
    """What of the node pods may share beside folders and devices.

    CAPABILITIES: containers that are not privileged may ask for capabilities and sysctls. ADMINS: administrators and
    nodes may use it as well.
    """

    pid: bool = False
    ipc: bool = False
    network: bool = False
    ports: bool = False
    capabilities: bool = True
    admins: bool = True


ACCESS: Mapping[str, NodeAccess] = {
    "nvidia-driver": NodeAccess(pid=True),
    "nvidia-operator-validator": NodeAccess(pid=True),
    "nvidia-gpu-feature-discovery": NodeAccess(pid=True),
    "nvidia-mig-manager": NodeAccess(pid=True, ipc=True),
    "nvidia-dcgm": NodeAccess(network=True, ports=True),
    "nvidia-dcgm-exporter": NodeAccess(ports=True),
    "nvidia-node-status-exporter": NodeAccess(),
    "nvidia-vgpu-manager": NodeAccess(pid=True),
    "nvidia-vgpu-device-manager": NodeAccess(),
    "nvidia-sandbox-validator": NodeAccess(),
    "nvidia-vfio-manager": NodeAccess(),
    "nvidia-cc-manager": NodeAccess(),
    "nvidia-kata-manager": NodeAccess(),
    "nvidia-sandbox-device-plugin": NodeAccess(capabilities=False),
    "nvidia-kata-sandbox-device-plugin": NodeAccess(capabilities=False),
    "nvidia-dra-driver": NodeAccess(network=True, ports=True, admins=False),
    "nvidia-dra-validator": NodeAccess(admins=False),
    "nvidia-dcgm-dra": NodeAccess(network=True, ports=True, admins=False),
    "nvidia-dcgm-exporter-dra": NodeAccess(pid=True, network=True, ports=True, admins=False),
}
"""By component. Source: operator.md 8.4, for the last four 11.2."""

ADMINS = ["system:cluster-admins", "system:nodes", "system:masters"]
EVERYTHING = ["*"]
ANY = {"type": "RunAsAny"}


def scc(
    name: str,
    namespace: str,
    *,
    like: str = "",
    accounts: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> Body:
    """The SecurityContextConstraints NAME for ACCOUNTS of NAMESPACE (default: the one called NAME).

    LIKE is the component in `ACCESS`, where that isn't NAME: per-pool drivers are "nvidia-driver". Fields that would be
    null are left out; OpenShift fills them in the same way.
    """
    access = ACCESS[like or name]
    everything = EVERYTHING if access.capabilities else []
    description = f"Lets the pods of {like or name} use what they need of their node. Rendered by gpustack."
    return {
        "apiVersion": "security.openshift.io/v1",
        "kind": "SecurityContextConstraints",
        "metadata": metadata(name, labels=labels, annotations={"kubernetes.io/description": description}),
        "allowHostDirVolumePlugin": True,
        "allowHostIPC": access.ipc,
        "allowHostNetwork": access.network,
        "allowHostPID": access.pid,
        "allowHostPorts": access.ports,
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
            groups=list(ADMINS) if access.admins else [],
        ),
    }
