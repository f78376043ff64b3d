"""Rules about who serves virtual machines: what is off although a pool needs it, a provider that isn't there, and what
KubeVirt is told of the devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import gpus, kubevirt
from ...cluster.resolve import Cluster, resolve
from ...policy.language.operand import Operand
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

PLUGIN = "device-plugin"
WITH_IMAGE = " and spec.vgpuManager.repository and version to an image of your own"


@rule("GPU210", "warning")
def no_provider(cluster: Cluster) -> Iterator[Hit]:
    """A device that somebody else is said to offer to KubeVirt, and nobody does."""
    spec, section = cluster.spec, cluster.spec.kubevirt
    others = any(one.kind == "DaemonSet" and PLUGIN in one.name for one in spec.references)
    if section is None or (others and not cluster.offered_to_kubevirt):
        return
    listed = [(f"pciDevices[{at}]", one, one.selector) for at, one in enumerate(section.pciDevices)]
    mediated = [(f"mediatedDevices[{at}]", one, f"{gpus.VENDOR}:") for at, one in enumerate(section.mediatedDevices)]
    for place, one, selector in [*listed, *mediated]:
        where = f"spec.kubevirt.{place}"
        if cluster.offered_to_kubevirt:
            if one.externalResourceProvider and one.resourceName in cluster.offer.absent:
                yield hit(where, "pools", resource=one.resourceName)
        elif one.externalResourceProvider and selector.startswith(f"{gpus.VENDOR}:"):
            off = "spec.sandboxDevicePlugin is off" if cluster.sandbox else "spec.sandboxWorkloads is off"
            yield hit(f"{where}.externalResourceProvider", "off", resource=one.resourceName, off=off)


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


@rule("GPU158", "note")
def feature_gate(cluster: Cluster) -> Iterator[Hit]:
    """KubeVirt's feature gate for host devices, left to others."""
    section = cluster.spec.kubevirt
    if section is not None and section.featureGates is None and section.target == "kubevirt":
        yield hit("spec.kubevirt.featureGates")


@rule("GPU160", "error")
def two_providers(cluster: Cluster) -> Iterator[Hit]:
    """A device that two device plugins offer."""
    for path, _, _, external in nvidia_devices(cluster.spec):
        if not external:
            yield hit(path)


@rule("GPU161", "warning")
def wrong_resource(cluster: Cluster) -> Iterator[Hit]:
    """A resource name that the device plugin doesn't offer."""
    for path, given, formed, external in nvidia_devices(cluster.spec):
        if external and given != formed:
            yield hit(f"{path}.resourceName", formed=formed, given=given)


def nvidia_devices(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str, bool]]:
    """Devices under spec.kubevirt that our plugin offers: path, resource in the policy, resource as the plugin forms
    it, and whether KubeVirt is told that it is not its own.
    """
    section = spec.kubevirt
    if section is None or not resolve(spec).offered_to_kubevirt:
        return
    for index, pci in enumerate(section.pciDevices):
        vendor, _, device = pci.selector.partition(":")
        if vendor == gpus.VENDOR:
            formed = kubevirt.pci_resource(device) if kubevirt.known(device) else pci.resourceName
            yield f"spec.kubevirt.pciDevices[{index}]", pci.resourceName, formed, pci.externalResourceProvider
    for index, mediated in enumerate(section.mediatedDevices):
        if mediated.name.startswith(("NVIDIA ", "GRID ")):
            formed, external = kubevirt.vgpu_resource(mediated.name), mediated.externalResourceProvider
            yield f"spec.kubevirt.mediatedDevices[{index}]", mediated.resourceName, formed, external
