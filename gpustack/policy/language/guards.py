"""`guards`: what the API server refuses to the stack's own accounts, and who may reach its pods.

Access rights can't say "its own node". One node on which somebody is root has the tokens of the driver, the validator
and the MIG manager, and with them, unguarded, the labels and pods of every other node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from gpustack.catalog import kubernetes

from .base import Section, items, own, section
from .forms import form
from .types import DnsLabel

if TYPE_CHECKING:
    from .spec import ClusterPolicySpec

Mode = Literal["Deny", "Audit", "Off"]
User = Annotated[str, form("user_name")]


class Writers(Section):
    """Who may change the stack's ConfigMaps besides the engine of `gitops`: what is in them is run, as root, on every
    GPU node. `system:masters` always may."""

    users: list[User] = items()
    """Users, as `kubectl auth whoami` shows them, such as `system:serviceaccount:NAMESPACE:NAME`. Absent: none."""
    groups: list[User] = items()
    """Groups; all ServiceAccounts of a namespace are `system:serviceaccounts:NAMESPACE`. Absent: none."""


class Guards(Section):
    """What the API server refuses to the stack's own accounts, and who may reach its pods."""

    mode: Mode = "Deny"
    """What happens to a request that a guard is against: `Deny` refuses it, `Audit` lets it through, warns who sent it
    and notes it in the audit log, `Off` renders no guards: the first step of leaving gpustack. Absent: Deny from
    Kubernetes 1.30 on, which is the first that can; before it Off."""
    writers: Writers = section()
    networkPolicies: Literal["reconciler", "all", "none"] = own("guards.networkPolicies")
    """For which pods that listen a NetworkPolicy is rendered, which closes all but their ports: the `reconciler`, `all`
    of the stack, or `none`. Pods in the network of their node are reached by none. Absent: reconciler."""
    scrapers: list[DnsLabel] = items()
    """Namespaces from which metrics may be read where there is a NetworkPolicy. Absent: any."""


def mode(spec: ClusterPolicySpec) -> Mode:
    """The mode that is rendered: Off where the API server has no such policies."""
    return spec.guards.mode if knows_policies(spec) else "Off"


def knows_policies(spec: ClusterPolicySpec) -> bool:
    """Whether the API server has the kind ValidatingAdmissionPolicy, and tokens that tell their node."""
    return kubernetes.knows_policies(spec.cluster.kubernetesVersion)
