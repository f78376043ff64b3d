"""The device plugin's configuration file."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog import plugin_config
from gpustack.catalog.plugin_config import flags, max_mps_replicas


@pytest.mark.parametrize(
    ("path", "kind", "default", "env"),
    [
        ("flags.migStrategy", "enum", "none", "MIG_STRATEGY"),
        ("flags.failOnInitError", "bool", True, "FAIL_ON_INIT_ERROR"),
        ("flags.nvidiaDevRoot", "string", None, "NVIDIA_DEV_ROOT"),
        ("flags.plugin.deviceListStrategy", "list", ["envvar"], "DEVICE_LIST_STRATEGY"),
        ("flags.gfd.sleepInterval", "duration", "60s", "GFD_SLEEP_INTERVAL"),
    ],
)
def test_flags(path: str, kind: str, default: Any, env: str) -> None:
    """Type, default and environment variable of a key."""
    found = flags()[path]
    assert (found.type, found.default, found.env) == (kind, default, env)


def test_values_belong_to_enums_and_lists() -> None:
    """Each enum says what it may be, its default among it."""
    for flag in flags().values():
        assert bool(flag.values) == (flag.type in {"enum", "list"}), flag.path
        defaults = flag.default if isinstance(flag.default, list) else [flag.default]
        assert not flag.values or set(defaults) <= set(flag.values)
        assert flag.default is not None or flag.note


def test_paths_start_at_the_root() -> None:
    """Flags stand below one of the keys that the file may have."""
    assert plugin_config.top_level() == ("version", "flags", "resources", "sharing", "imex")
    assert {path.partition(".")[0] for path in flags()} == {"flags"}
    assert len(flags()) == 22


@pytest.mark.parametrize(
    ("capability", "replicas"), [("7.5", 48), ("8.0", 48), ("10.0", 48), ("12.0", 48), ("7.0", 16), ("6.1", 16)]
)
def test_mps_replicas(capability: str, replicas: int) -> None:
    """48 clients from compute capability 7.5 on, 16 before; 10.0 is newer than 7.5."""
    assert max_mps_replicas(capability) == replicas


def test_sharing_limits() -> None:
    """One replica is no sharing, and MPS takes no MIG."""
    assert plugin_config.min_replicas() == 2
    assert plugin_config.sharing()["mps_with_mig"] is False


def test_names_of_configurations() -> None:
    """A configuration is a key of the ConfigMap and the value of a node label."""
    assert plugin_config.max_name_length() == 63


@pytest.mark.parametrize(
    ("capability", "family"),
    [
        ("6.1", None), ("7.0", "volta"), ("7.5", "turing"), ("8.6", "ampere"), ("8.9", "ada-lovelace"),
        ("9.0", "hopper"), ("10.3", "blackwell"), ("12.1", "blackwell"), ("13.0", "rubin"),
    ],
)  # fmt: skip
def test_families(capability: str, family: str | None) -> None:
    """The family label that GPU feature discovery writes."""
    assert plugin_config.family(capability) == family
