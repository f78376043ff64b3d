"""The inputs of other components, for those that speak of them: guards and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...model import FindingsError

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

WITH_DRA = {"dra_dcgm", "dra_dcgm_exporter", "dra_driver", "nfd", "node_labels", "nvidia_drivers"}
"""Modules of components that run with a `gpuCluster` too, as the registry has it (it imports constructs)."""


def running(spec: ClusterPolicySpec, modules: Iterable[str]) -> dict[str, Any]:
    """The inputs of MODULES, None for a component that is off, or that can't be rendered: it says why itself."""
    found: dict[str, Any] = {}
    for module in modules:
        found[module] = None
        if spec.gpuCluster is None or module in WITH_DRA:
            try:
                found[module] = import_module(f"{__package__}.{module}").from_spec(spec)
            except FindingsError:
                continue
    return found
