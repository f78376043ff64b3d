"""Data files that are the value of a ConfigMap, byte for byte, and from which releases a text is that a cluster runs.

The MIG manager and the vGPU device manager read their defaults as text, and Argo CD how healthy an object is. Written
once as a file they are what a reviewer sees in dist/; composing them from data was rejected, because the text of a
ConfigMap must not change with the version of a YAML writer.
"""

import hashlib
import re
from typing import Any

from gpustack.catalog import _data, _versions


def mig_parted_config() -> str:
    """Key config.yaml of ConfigMap default-mig-parted-config; `gpus.default_mig_config` is the same as data."""
    return _text("mig/default-mig-parted-config")


def gpu_clients() -> str:
    """Key clients.yaml of ConfigMap default-gpu-clients (operator.md 9.4)."""
    return _text("mig/default-gpu-clients")


def vgpu_devices_config(release: str) -> str:
    """Key config.yaml of ConfigMap default-vgpu-devices-config in RELEASE; `vgpu.default_config` is the same as data.

    Lines of later releases are left out, and the marks that say since when a line is there.
    """
    lines = _text("vgpu/default-vgpu-devices-config").splitlines(keepends=True)
    marks = [_SINCE.search(line) for line in lines]
    return "".join(
        line if mark is None else line[: mark.start()] + "\n"
        for line, mark in zip(lines, marks, strict=True)
        if mark is None or _versions.key(mark[1]) <= _versions.key(release)
    )


_SINCE = re.compile(r"  # since (v[0-9.]+)\n")


def _text(name: str) -> str:
    return (_data.ROOT / f"{name}.yaml").read_text(encoding="utf-8")


def argocd_health() -> str:
    """How Argo CD tells the health of a NodePolicy, in Lua (reconciler.md A7)."""
    return (_data.ROOT / "argocd" / "nodepolicy-health.lua").read_text(encoding="utf-8")


def releases_with(text: str, at: str) -> tuple[str, ...]:
    """The releases that have TEXT in the place AT, oldest first; none for a text that nobody knows there.

    AT is a path in a pod template by the names of containers ("initContainers.toolkit-validation.args.0"), or a
    ConfigMap and its key ("ConfigMap/default-gpu-clients data.clients.yaml").
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    known: list[dict[str, Any]] = _data.load("operator-texts")
    return next((tuple(each["releases"]) for each in known if each["sha256"] == digest and at in each["at"]), ())
