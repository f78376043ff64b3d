"""Which devices KubeVirt is told to permit, as virtual machines ask for them.

KubeVirt permits by PCI id or by the name of a vGPU type. Both follow from the GPU of a pool; what the policy lists
under `kubevirt` comes on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog import gpus, vgpu

if TYPE_CHECKING:
    from ..policy.language.sandbox import PermittedDevice
    from .pool import Pool
    from .resolve import Cluster


def pci_devices(product: gpus.Product) -> list[tuple[str, str]]:
    """(PCI id, resource) of the boards of PRODUCT, passed through."""
    return [(vgpu.pci_selector(device), vgpu.pci_resource(device)) for device in product.pci_ids]


def mediated_devices(pool: Pool) -> list[tuple[str, str]]:
    """(name, resource) of the vGPU types of nodes of POOL; none where they aren't known."""
    section, elements = pool.spec.kubevirt, (pool.cluster.vgpu_sets or {}).get(pool.vgpu_set, ())
    own = section.vgpuNames if section else {}
    names = [vgpu.vgpu_name(each, pool.product, own) for each in vgpu.types(elements, pool.product)]
    return [(name, vgpu.vgpu_resource(name)) for name in names]


def permitted(cluster: Cluster) -> frozenset[str] | None:
    """The resources of all devices that KubeVirt is told to permit; None where that isn't the whole list: the policy
    doesn't write it, or the HyperConverged operator adds those of others."""
    section = cluster.spec.kubevirt
    if section is None or section.target == "hyperconverged":
        return None
    resources = [device.resourceName for device in (*section.pciDevices, *section.mediatedDevices)]
    for pool in () if cluster.kata else cluster.pools:
        if pool.workload == "vm-passthrough" and pool.product is not None:
            resources += [resource for _, resource in pci_devices(pool.product)]
        elif pool.workload == "vm-vgpu":
            resources += [resource for _, resource in mediated_devices(pool)]
    return frozenset(resources)


def absent(cluster: Cluster) -> frozenset[str]:
    """The resources of GPUs under spec.kubevirt that no node has, as far as that is known of nodes and of providers."""
    section, machines = cluster.spec.kubevirt, [pool.offer for pool in cluster.pools if pool.offer.virtual]
    if section is None or not cluster.pools or cluster.kata or any(pool.resources is None for pool in machines):
        return frozenset()
    ours, had = cluster.offered_to_kubevirt, {name for pool in machines for name in pool.resources or ()}
    boards = {vgpu.pci_selector(device) for product in gpus.products() for device in gpus.product(product).pci_ids}
    listed: list[tuple[str, PermittedDevice]]
    listed = [(vgpu.pci_resource(one.selector[5:]), one) for one in section.pciDevices if one.selector in boards]
    listed += [(vgpu.vgpu_resource(one.name), one) for one in section.mediatedDevices]
    away = (one for formed, one in listed if formed not in had and (ours or not one.externalResourceProvider))
    return frozenset(one.resourceName for one in away)
