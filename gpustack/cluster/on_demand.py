"""`resolve` for modules that every render imports: a render of what is in the cache asks for no cluster, and would pay
for importing all that a cluster stands on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec
    from .resolve import Cluster


def resolve(spec: ClusterPolicySpec) -> Cluster:
    """What SPEC means (resolve.py)."""
    from . import resolve as module

    return module.resolve(spec)
