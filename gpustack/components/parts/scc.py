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

ACCESS, OBJECT = (Path(__file__).with_name(name) for name in ("scc.yaml", "scc-object.yaml"))
ADMINS = ["system:cluster-admins", "system:nodes", "system:masters"]


def scc(
    name: str, namespace: str, *, like: str = "", accounts: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> Body:
    """The SecurityContextConstraints NAME for ACCOUNTS of NAMESPACE (default: the one called NAME).

    LIKE is the component in scc.yaml, where that isn't NAME: per-pool drivers are "nvidia-driver"."""
    access = _data.read(ACCESS)[like or name]
    everything = ["*"] if access.get("capabilities", True) else []
    description = f"Lets the pods of {like or name} use what they need of their node. Rendered by gpustack."
    return {
        **_data.copy(_data.read(OBJECT)),
        "metadata": metadata(name, labels=labels, annotations={"kubernetes.io/description": description}),
        **{f"allowHost{part}": access.get(part.lower(), False) for part in ("IPC", "Network", "PID", "Ports")},
        "users": [f"system:serviceaccount:{namespace}:{account}" for account in accounts or (name,)],
        **sparse(
            allowedCapabilities=everything,
            allowedUnsafeSysctls=list(everything),
            groups=list(ADMINS) if access.get("admins", True) else [],
        ),
    }
