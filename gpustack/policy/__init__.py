"""The policy language: what one may write (language, configurations), how it is read (loading) and explained (help).
Knows no manifest; what a policy means is told by `gpustack.cluster`.

    from gpustack.policy import ClusterPolicySpec

Names are loaded when they are asked for: a render whose results are all in the cache, or `--help`, pays for no model.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .language.spec import ClusterPolicy as ClusterPolicy
    from .language.spec import ClusterPolicySpec as ClusterPolicySpec
    from .language.spec import PolicyLayer as PolicyLayer
    from .language.spec import PolicySpec as PolicySpec

__all__ = ["ClusterPolicy", "ClusterPolicySpec", "PolicyLayer", "PolicySpec"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".language.spec", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
