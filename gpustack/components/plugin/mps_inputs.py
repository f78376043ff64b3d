"""Inputs of the MPS control daemon: those of the device plugin that reach it (operator.md 5.2: args and env do not)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import device_plugin_inputs as device_plugin
from .device_plugin_inputs import DevicePluginInputs

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec


class MpsInputs(DevicePluginInputs):
    """As the device plugin's, without what only the plugin itself reads."""


def from_spec(spec: ClusterPolicySpec) -> MpsInputs | None:
    """The inputs for SPEC, or None where the device plugin is off."""
    plugin = device_plugin.from_spec(spec)
    if plugin is None:
        return None
    return MpsInputs(**{**dict(plugin), "env": (), "args": (), "gds": False, "gdrcopy": False})
