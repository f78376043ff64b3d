"""Inputs of the namespace and of what it needs before any pod may start in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...catalog.platforms import platform
from .common import Inputs

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

FOREIGN = ("default", "kube-", "openshift-")
"""Namespaces that belong to the cluster: rendering one would let a prune delete it."""


class NamespaceInputs(Inputs):
    """`privileged` sets the Pod Security labels, `quota` admits system-critical pods where the platform asks for it."""

    name: str
    privileged: bool = False
    quota: bool = False


def from_spec(spec: ClusterPolicySpec) -> NamespaceInputs | None:
    """The inputs for SPEC, or None where the namespace is the cluster's own."""
    name = spec.cluster.namespace
    if name.startswith(FOREIGN):
        return None
    preset = platform(spec.cluster.platform or "generic")
    return NamespaceInputs(
        name=name, privileged=bool(spec.psa.enabled) or preset.psa_required, quota=preset.quota is not None
    )
