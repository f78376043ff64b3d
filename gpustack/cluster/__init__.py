"""What a policy means: who gets which driver, MIG layout and sharing, and what the nodes offer then.

For programs of others, a cluster comes from a policy file or from a spec as plain data::

    from gpustack.cluster import from_policy, from_values

    cluster = from_policy("policies/prod-eu-1.yaml")
    cluster = from_values({"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .resolve import Cluster


def from_policy(path: Path | str) -> Cluster:
    """The cluster that the policy file PATH describes, with its layers. Raises InputError with all that is wrong."""
    import pathlib

    from ..policy.loading.load import load
    from .resolve import resolve

    file = pathlib.Path(path)
    return resolve(load(file, root=pathlib.Path.cwd()).spec)


def from_values(spec: Mapping[str, Any]) -> Cluster:
    """The cluster of which SPEC says what a policy's `spec` would; what is absent has the release's and the platform's
    default. Raises InputError with all that is wrong."""
    from ..policy.loading.load import load_values
    from .resolve import resolve

    return resolve(load_values(dict(spec)))
