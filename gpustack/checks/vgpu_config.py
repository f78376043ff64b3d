"""The rule about the file of the vGPU device manager. Rules about who gets which set are in sandbox.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..policy.mig_layouts import text_of
from ..policy.vgpu_configs import KEY, read_vgpu_config
from ..policy.workloads import sandbox
from .rule import Hit, rule

if TYPE_CHECKING:
    from ..policy.spec import ClusterPolicySpec


@rule("GPU540", "error")
def broken_vgpu_file(spec: ClusterPolicySpec) -> Iterator[Hit]:
    """A file of the vGPU device manager that it refuses or can't find.

    Sets of devices stand under the key config.yaml of `vgpuDeviceManager.config`. Keys are written with dashes, and
    a key too many makes the manager refuse the whole file.

    Bad:
        sandboxWorkloads: {enabled: true}
        vgpuDeviceManager:
          enabled: true
          config:
            data:
              config.yaml: |
                version: v1
                vgpu-configs:
                  default:
                  - devices: all
                    vgpuDevices: {A10-24Q: 1}

    Good:
        sandboxWorkloads: {enabled: true}
        vgpuDeviceManager:
          enabled: true
          config:
            data:
              config.yaml: |
                version: v1
                vgpu-configs:
                  default:
                  - devices: all
                    vgpu-devices: {A10-24Q: 1}
    """
    if not sandbox(spec) or not spec.vgpuDeviceManager.enabled:
        return
    text = text_of(spec, spec.vgpuDeviceManager.config, "vgpuDeviceManager.config", KEY)
    if text is not None and text.text is None:
        why = f"the vGPU device manager reads the file {KEY}, and finds none"
        yield Hit(text.path, f"the ConfigMap has no key {KEY}", why, f"put the text under the key {KEY}")
    for problem in read_vgpu_config(text.text) if text and text.text is not None else ():
        yield Hit(text.path if text else "", problem.what, problem.why, problem.remedy, problem.place)
