"""Rules about the vGPU managers: the device manager's file, the host driver's image. Who gets which set: sandbox.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...cluster.mig_layouts import text_of
from ...policy.configurations.vgpu_configs import KEY, read_vgpu_config
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster


@rule("GPU540", "error")
def broken_vgpu_file(cluster: Cluster) -> Iterator[Hit]:
    """A file of the vGPU device manager that it refuses or can't find."""
    spec = cluster.spec
    if not cluster.sandbox or not spec.vgpuDeviceManager.enabled:
        return
    text = text_of(spec, spec.vgpuDeviceManager.config, "vgpuDeviceManager.config", KEY)
    if text is not None and text.text is None:
        yield hit(text.path, file=KEY)
    for problem in read_vgpu_config(text.text) if text and text.text is not None else ():
        yield Hit(text.path if text else "", problem.what, problem.why, problem.remedy, problem.place)


@rule("GPU541", "error")
def no_vgpu_image(cluster: Cluster) -> Iterator[Hit]:
    """A vGPU manager, and no word about where its image is."""
    section = cluster.spec.vgpuManager
    if cluster.sandbox and section.enabled and not section.repository and "/" not in (section.image or ""):
        yield hit("spec.vgpuManager", image=section.image or "its image")
