"""Inputs of KubeVirt's configuration: the devices that it permits, made from the node pools."""

from collections.abc import Iterable, Iterator
from typing import Literal

from ...cluster.mig_layouts import product_of
from ...cluster.resolve import Cluster, resolve
from ...cluster.virtual import mediated_devices, pci_devices
from ...model import Finding, FindingsError
from ...policy.language.node_pools import NodePool
from ...policy.language.sandbox import KubeVirt, PermittedDevice, Target
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs
from ..refusals import refused


class Device(Inputs):
    """A device, by PCI id or by the name of its vGPU type, and the resource under which virtual machines get it.

    `external`: not KubeVirt's own device plugin offers the resource, but ours or somebody else's.
    """

    selector: str
    resource: str
    external: bool


class KubeVirtInputs(Inputs):
    """`gates` are all feature gates of KubeVirt, None where they are not ours to say. `keep_mediated`: KubeVirt must
    leave mediated devices alone, because the vGPU device manager makes them.
    """

    target: Target
    name: str
    namespace: str
    pci: tuple[Device, ...] = ()
    mediated: tuple[Device, ...] = ()
    gates: tuple[str, ...] | None = None
    keep_mediated: bool = False


def from_cluster(cluster: Cluster) -> KubeVirtInputs | None:
    """None where KubeVirt's configuration is left alone.

    Raises FindingsError where a pool doesn't say which GPUs or vGPU types it has, and where nothing would be permitted.
    """
    spec = cluster.spec
    section = spec.kubevirt
    if section is None:
        return None
    external, findings = cluster.offered_to_kubevirt, list[Finding]()
    ours = pci_of_pools(spec, section, findings)
    pci = permitted(ours, external, ((each.selector, each) for each in section.pciDevices))
    ours = mediated_of_pools(spec, section, findings)
    mediated = permitted(ours, external, ((each.name, each) for each in section.mediatedDevices))
    if section.featureGates is not None and section.target == "hyperconverged":
        findings.append(refused("GPU083", "kubevirt.featureGates"))
    if not pci and not mediated and not findings:
        findings.append(refused("GPU082", "kubevirt", "kata" if cluster.kata else "none"))
    if findings:
        raise FindingsError(*findings)
    return KubeVirtInputs(
        target=section.target,
        name=section.name,
        namespace=section.namespace,
        pci=pci,
        mediated=mediated,
        gates=None if section.featureGates is None else tuple(section.featureGates),
        keep_mediated=bool(mediated and spec.vgpuDeviceManager.enabled),
    )


def permitted(
    ours: Iterable[tuple[str, str]], external: bool, extra: Iterable[tuple[str, PermittedDevice]]
) -> tuple[Device, ...]:
    """The devices of pools, as pairs of selector and resource, and EXTRA ones, which win; in order of selectors, so
    that the order of pools doesn't show.
    """
    devices = {selector: Device(selector=selector, resource=resource, external=external) for selector, resource in ours}
    for selector, device in extra:
        devices[selector] = Device(
            selector=selector, resource=device.resourceName, external=device.externalResourceProvider
        )
    return tuple(devices[selector] for selector in sorted(devices))


def pools(spec: ClusterPolicySpec, what: Literal["vm-passthrough", "vm-vgpu"]) -> Iterator[tuple[int, NodePool]]:
    """The pools whose GPUs virtual machines of KubeVirt get, by position."""
    if not resolve(spec).kata:
        yield from ((index, spec.nodePools[index]) for index in resolve(spec).serving(what))


def pci_of_pools(spec: ClusterPolicySpec, section: KubeVirt, findings: list[Finding]) -> list[tuple[str, str]]:
    """(PCI id, resource) of the GPUs that pools pass through."""
    devices = list[tuple[str, str]]()
    for index, pool in pools(spec, "vm-passthrough"):
        product = product_of(pool)
        if product is not None:
            devices += pci_devices(product)
        elif not section.pciDevices:
            at, said = f"nodePools[{index}].gpuProduct", pool.gpuProduct
            unknown = refused("GPU080", at, "unknown" if said else "unsaid", product=said, pool=pool.name)
            findings.append(unknown)
    return devices


def mediated_of_pools(spec: ClusterPolicySpec, section: KubeVirt, findings: list[Finding]) -> list[tuple[str, str]]:
    """(name, resource) of the vGPU types that pools have."""
    devices = list[tuple[str, str]]()
    for index, pool in pools(spec, "vm-vgpu"):
        types = mediated_devices(resolve(spec).of(pool))
        if not types and not section.mediatedDevices:
            findings.append(refused("GPU081", f"nodePools[{index}].vgpu.config", pool=pool.name))
        devices += types
    return devices
