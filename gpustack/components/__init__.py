"""The GPU stack as typed cdk8s constructs.

Each works in anybody's cdk8s app::

    from gpustack.cluster import from_policy
    from gpustack.components import DevicePlugin

    DevicePlugin(chart, "device-plugin", from_policy("policies/prod-eu-1.yaml"))

A cluster comes from a policy file, or from a spec as plain data (`from_values`). A component that is off there adds no
objects. What is put together by hand goes in as inputs: `DevicePluginInputs(common=..., image="...")`.

The names are looked up on first use, because importing a construct starts Node; type checkers read __init__.pyi.
"""

from typing import Any

from .registry import REGISTRY

_MODULES = {entry.construct: f"{entry.subject}.{entry.module}" for entry in REGISTRY}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - names come from the registry


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
