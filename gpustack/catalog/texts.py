"""Data files that are the value of a ConfigMap, byte for byte.

The MIG manager reads its defaults as text. Written once as a file they are what a reviewer sees in dist/; composing
them from data was rejected, because the text of a ConfigMap must not change with the version of a YAML writer.
"""

from __future__ import annotations

from gpustack.catalog import _data


def mig_parted_config() -> str:
    """Key config.yaml of ConfigMap default-mig-parted-config; `gpus.default_mig_config` is the same as data."""
    return _text("mig/default-mig-parted-config")


def gpu_clients() -> str:
    """Key clients.yaml of ConfigMap default-gpu-clients (operator.md 9.4)."""
    return _text("mig/default-gpu-clients")


def _text(name: str) -> str:
    return (_data.ROOT / f"{name}.yaml").read_text(encoding="utf-8")
