"""Inputs of KubeVirt's configuration: the devices that it permits, made from the node pools."""

from collections.abc import Iterable

from ...cluster.resolve import Cluster
from ...cluster.virtual import mediated_devices, pci_devices
from ...model import Finding, FindingsError
from ...policy.language.sandbox import KubeVirt, PermittedDevice, Target
from ..parts.common_inputs import Inputs
from ..refusals import refused


class Device(Inputs):
    """A device, by PCI id or by the name of its vGPU type, and the resource under which virtual machines get it.

    `external`: not KubeVirt's own device plugin offers the resource, but ours or somebody else's."""

    selector: str
    resource: str
    external: bool


class KubeVirtInputs(Inputs):
    """`gates` are all feature gates of KubeVirt, None where they are not ours to say. `keep_mediated`: KubeVirt must
    leave mediated devices alone, because the vGPU device manager makes them."""

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
    own_pci, own_mediated, findings = of_pools(cluster, section)
    external = cluster.offered_to_kubevirt
    pci = permitted(own_pci, external, ((each.selector, each) for each in section.pciDevices))
    mediated = permitted(own_mediated, external, ((each.name, each) for each in section.mediatedDevices))
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
    that the order of pools doesn't show."""
    devices = {selector: Device(selector=selector, resource=resource, external=external) for selector, resource in ours}
    for selector, device in extra:
        devices[selector] = Device(
            selector=selector, resource=device.resourceName, external=device.externalResourceProvider
        )
    return tuple(devices[selector] for selector in sorted(devices))


def of_pools(cluster: Cluster, section: KubeVirt) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[Finding]]:
    """(PCI id, resource) of the GPUs that pools pass through to virtual machines of KubeVirt, (name, resource) of the
    vGPU types that they have, and what pools fail to say."""
    pci, mediated, findings = list[tuple[str, str]](), list[tuple[str, str]](), list[Finding]()
    machines = () if cluster.kata else cluster.pools
    for pool in (each for each in machines if each.workload == "vm-passthrough"):
        if pool.product is not None:
            pci += pci_devices(pool.product)
        elif not section.pciDevices:
            at, product = f"nodePools[{pool.index}].gpuProduct", pool.said.gpuProduct
            findings.append(refused("GPU080", at, "unknown" if product else "unsaid", product=product, pool=pool.name))
    for pool in (each for each in machines if each.workload == "vm-vgpu"):
        types = mediated_devices(pool)
        if not types and not section.mediatedDevices:
            findings.append(refused("GPU081", f"nodePools[{pool.index}].vgpu.config", pool=pool.name))
        mediated += types
    return pci, mediated, findings
