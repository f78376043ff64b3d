"""Data files that are the value of a ConfigMap, byte for byte, and from which releases a text is that a cluster runs.

The MIG manager and the vGPU device manager read their defaults as text, and Argo CD how healthy an object is. Written
once as a file they are what a reviewer sees in dist/; composing them from data was rejected, because the text of a
ConfigMap must not change with the version of a YAML writer.
"""

import functools
import hashlib
import re
from typing import Any

from gpustack.catalog import _data, _versions


def _text(name: str) -> str:
    return (_data.ROOT / name).read_text(encoding="utf-8")


mig_parted_config = functools.partial(_text, "mig/default-mig-parted-config.yaml")
"""Key config.yaml of ConfigMap default-mig-parted-config; `gpus.default_mig_config` is the same as data."""
gpu_clients = functools.partial(_text, "mig/default-gpu-clients.yaml")
"""Key clients.yaml of ConfigMap default-gpu-clients (operator.md 9.4)."""
argocd_health = functools.partial(_text, "argocd/nodepolicy-health.lua")
"""How Argo CD tells the health of a NodePolicy, in Lua (reconciler.md A7)."""
_SINCE = re.compile(r"(.*)  # since (v[0-9.]+)\n")


def vgpu_devices_config(release: str) -> str:
    """Key config.yaml of ConfigMap default-vgpu-devices-config in RELEASE; `vgpu.default_config` is the same as data.
    Lines of later releases are left out, and the marks that say since when a line is there."""

    def line(match: re.Match[str]) -> str:
        return f"{match[1]}\n" if _versions.key(match[2]) <= _versions.key(release) else ""

    return _SINCE.sub(line, _text("vgpu/default-vgpu-devices-config.yaml"))


def releases_with(text: str, at: str) -> tuple[str, ...]:
    """The releases that have TEXT in the place AT, oldest first; none for a text that nobody knows there. AT is a path
    in a pod template by the names of containers ("initContainers.toolkit-validation.args.0"), or a ConfigMap and its
    key ("ConfigMap/default-gpu-clients data.clients.yaml")."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    known: list[dict[str, Any]] = _data.load("operator-texts")
    return next((tuple(each["releases"]) for each in known if each["sha256"] == digest and at in each["at"]), ())
