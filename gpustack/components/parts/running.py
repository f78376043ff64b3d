"""The inputs of other components, for those that speak of them: guards and NetworkPolicies."""

from collections.abc import Iterable
from typing import Any

from ...model import FindingsError
from ...policy.language.spec import ClusterPolicySpec
from ..registry import REGISTRY

_ENTRIES = {entry.module: entry for entry in REGISTRY}


def running(spec: ClusterPolicySpec, modules: Iterable[str]) -> dict[str, Any]:
    """The inputs of MODULES, None for a component that is off, or that can't be rendered: it says why itself."""
    inputs: dict[str, Any] = {}
    for module in modules:
        try:
            inputs[module] = _ENTRIES[module].inputs(spec)
        except FindingsError:
            inputs[module] = None
    return inputs
