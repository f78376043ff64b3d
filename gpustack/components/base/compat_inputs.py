"""Inputs of the copy of a ClusterPolicy: what the policy comes to, as far as the operator's API has a field for it."""

from __future__ import annotations

from typing import Any

from ...catalog.fields import fields
from ...cluster.resolve import Cluster
from ...model import FindingsError
from ..parts.common_inputs import Inputs, owned_crds
from ..refusals import refused

CRDS = ("clusterpolicies.nvidia.com",)


class CompatInputs(Inputs):
    """`crds` are the CRDs to bring, `spec` is the copy's, of an operator of RELEASE."""

    release: str
    spec: dict[str, Any]
    crds: tuple[str, ...] = CRDS


def from_cluster(cluster: Cluster) -> CompatInputs | None:
    """None where nobody wants a copy. Raises FindingsError with `gpuCluster`, which has no ClusterPolicy."""
    if not cluster.spec.compat.clusterPolicy:
        return None
    if cluster.dra:
        raise FindingsError(refused("GPU061", "compat.clusterPolicy"))
    spec = known(cluster.spec.model_dump(exclude_none=True))
    return CompatInputs(release=cluster.spec.release, spec=spec, crds=owned_crds(cluster.spec, CRDS))


def known(value: Any, path: str = "") -> Any:
    """VALUE at PATH with those fields alone that the operator's API has; what is free below its field is kept whole. Of
    what is off that alone is said: its image may have no version."""
    paths = fields("ClusterPolicy")
    if isinstance(value, dict) and value.get("enabled") is False:
        return {"enabled": False}
    if isinstance(value, list):
        return [known(item, f"{path}[]") for item in value]
    if not isinstance(value, dict) or (path and not any(each.startswith(f"{path}.") for each in paths)):
        return value
    below = {key: f"{path}.{key}" if path else key for key in value}
    return {key: known(item, below[key]) for key, item in value.items() if below[key] in paths}
