"""Rules about who serves virtual machines: what is off although a pool needs it, and a provider that isn't there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import gpus
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.operand import Operand

PLUGIN = "device-plugin"
WITH_IMAGE = " and spec.vgpuManager.repository and version to an image of your own"


@rule("GPU210", "warning")
def no_provider(cluster: Cluster) -> Iterator[Hit]:
    """A device that somebody else is said to offer to KubeVirt, and nobody does."""
    spec, section = cluster.spec, cluster.spec.kubevirt
    others = any(one.kind == "DaemonSet" and PLUGIN in one.name for one in spec.references)
    if section is None or cluster.offered_to_kubevirt or others:
        return
    listed = [(f"pciDevices[{at}]", one, one.selector) for at, one in enumerate(section.pciDevices)]
    mediated = [(f"mediatedDevices[{at}]", one, f"{gpus.VENDOR}:") for at, one in enumerate(section.mediatedDevices)]
    for place, one, selector in [*listed, *mediated]:
        if one.externalResourceProvider and selector.startswith(f"{gpus.VENDOR}:"):
            off = "spec.sandboxDevicePlugin is off" if cluster.sandbox else "spec.sandboxWorkloads is off"
            yield hit(f"spec.kubevirt.{place}.externalResourceProvider", resource=one.resourceName, off=off)


@rule("GPU211", "warning")
def part_is_off(cluster: Cluster) -> Iterator[Hit]:
    """A component that is off, and nodes for virtual machines need it."""
    spec = cluster.spec
    told = set[str]()
    for pool in cluster.pools:
        needed: list[tuple[str, Operand, str]] = []
        if pool.workload == "vm-passthrough":
            needed.append(("vfioManager", spec.vfioManager, "nothing binds their GPUs to vfio-pci"))
            if cluster.kata:
                effect = "nothing offers their GPUs to Kata containers"
                needed.append(("kataSandboxDevicePlugin", spec.kataSandboxDevicePlugin, effect))
        elif pool.workload == "vm-vgpu":
            if not cluster.listed:
                needed.append(("vgpuManager", spec.vgpuManager, "nothing brings the vGPU host driver"))
            needed.append(("vgpuDeviceManager", spec.vgpuDeviceManager, "nothing makes vGPU devices"))
        for name, part, effect in needed:
            if not part.enabled and name not in told:
                told.add(name)
                image = WITH_IMAGE if name == "vgpuManager" else ""
                yield hit(
                    f"spec.{name}.enabled",
                    part=name,
                    pool_name=pool.name,
                    workload=pool.workload,
                    effect=effect,
                    image=image,
                )
