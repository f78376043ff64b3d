"""The device plugin's configuration file: its keys, their types, and the limits of sharing.

The plugin accepts any key and ignores what it does not know, so a typo is never reported by it; these facts let
somebody else do so.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpustack.catalog import _data, _versions

_facts = functools.partial(_data.load, "plugin-config")

MPS_FAILS_SETTABLE = "v0.20.0"
"""The first plugin that heeds failRequestsGreaterThanOne under mps; before, it was always true."""
NAMES_ANCHORED = "v0.20.0"
"""The first plugin whose patterns for MIG profiles fit whole names; before, 1g.24gb fitted 1g.24gb+me as well."""
INFINITE_SLEEP = "v0.19.0"
"""The first plugin that knows an infinite sleepInterval."""
_DISCOVERY_ALONE = {"flags.deviceDiscoveryStrategy": ("vfio",)}


@dataclass(frozen=True, slots=True)
class Flag:
    """One key below `flags`. `type` is bool, string, enum, list or duration; `values` what an enum or the elements of a
    list may be. `default` is None where it depends (see `note`); `env` the environment variable that overrides it;
    `since` the first plugin release."""

    path: str
    type: str
    default: Any
    env: str
    since: str | None = None
    note: str | None = None
    values: tuple[str, ...] = ()


@functools.cache
def flags() -> Mapping[str, Flag]:
    """The keys below `flags`, by dotted path from the file's root (flags.plugin.deviceListStrategy)."""
    said = _data.table("plugin-config", "flags").items()
    return {path: _data.made(Flag, facts, path=path, default=facts["default"]) for path, facts in said}


def before(plugin: str, version: str) -> bool:
    """Whether the device plugin PLUGIN is older than VERSION; no, where it says none (a digest, a tag of one's own)."""
    have = _versions.numbers(plugin)
    return bool(have) and have < _versions.numbers(version)


def taken(flag: Flag) -> tuple[str, ...]:
    """The values of an enumeration that the device plugin takes; GPU feature discovery takes all of `flag.values`."""
    return tuple(value for value in flag.values if value not in _DISCOVERY_ALONE.get(flag.path, ()))


set_in_environment = functools.partial(_data.table, "plugin-config", "set_in_environment")
"""What the stack's pods set in their environment, which wins over the file: value by the flag's path."""
top_level = functools.partial(_data.words, "plugin-config", "top_level")
"""The keys at the file's root."""
sharing = functools.partial(_data.table, "plugin-config", "sharing")
"""The keys and limits of `sharing`, as in the data file."""
min_replicas = functools.partial(_data.number, "plugin-config", "sharing", "min_replicas")
"""The least number of replicas; with fewer the plugin exits."""
max_name_length = functools.partial(_data.number, "plugin-config", "config_manager", "max_name_length")
"""How long the name of a configuration may be: it is the value of the node's label."""


def max_mps_replicas(compute_capability: str) -> int:
    """The most MPS clients of one GPU with this compute capability ("7.5")."""
    have = _versions.key(compute_capability)
    limits = _facts()["sharing"]["mps_max_replicas"]
    return int(next(limit["replicas"] for limit in limits if have >= _versions.key(limit["capability"])))


def family(compute_capability: str) -> str | None:
    """The label nvidia.com/gpu.family that GPU feature discovery gives this compute capability, None below 7.0."""
    have = _versions.key(compute_capability)
    return next((row["family"] for row in _facts()["families"] if have >= _versions.key(row["capability"])), None)
