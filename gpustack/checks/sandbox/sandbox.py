"""Rules about virtual machines: who serves them, vGPUs and the files of their managers, what KubeVirt is told."""

import re
from collections.abc import Iterator

from ...catalog import gpus, vgpu
from ...catalog._lookup import nearest
from ...cluster.mig_layouts import text_of
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...policy.configurations.mig_configs import KEY, read_vgpu_config
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule
from ..subjects import told

WITHOUT_MEDIATED_DEVICES = ("ada-lovelace", "hopper", "blackwell")
"""Families whose host drivers, from vGPU 17 on, make no mediated devices on Linux 6.8 and newer: each vGPU is a PCI
function instead, which neither the vGPU device manager v0.5.0 nor KubeVirt's device plugin v1.6.0 knows (bug-reports.md
B58; NVIDIA/gpu-operator#2594)."""
FIRST_KERNEL = (6, 8)


@rule("GPU150", "error")
def workload_without_sandbox(cluster: Cluster) -> Iterator[Hit]:
    """A node pool for virtual machines, and virtual machines are off."""
    for pool in cluster.pools if not cluster.sandbox else ():
        if pool.said.workload not in {None, "container"}:
            yield hit(f"{pool.path}.workload", pool_name=pool.name, workload=pool.said.workload)


@rule("GPU151", "warning")
def vgpu_without_plugin(cluster: Cluster) -> Iterator[Hit]:
    """vGPUs in Kata's mode, where nothing offers them."""
    for pool in with_vgpus(cluster) if cluster.kata else ():
        yield hit(f"{pool.path}.workload" if pool.said.workload else "spec.sandboxWorkloads", pool_name=pool.name)


def with_vgpus(cluster: Cluster) -> list[Pool]:
    """The pools whose nodes serve virtual machines with vGPUs."""
    return [pool for pool in cluster.pools if pool.workload == "vm-vgpu"]


@rule("GPU152", "error")
def no_mediated_devices(cluster: Cluster) -> Iterator[Hit]:
    """vGPU devices on a GPU and a kernel that together have none."""
    for pool in made_by_the_manager(cluster):
        kernel = re.match(r"(\d+)\.(\d+)", pool.said.kernel or "")
        if kernel and (int(kernel[1]), int(kernel[2])) >= FIRST_KERNEL:
            yield hit(f"{pool.path}.gpuProduct", product=pool.said.gpuProduct, kernel=pool.said.kernel)


@rule("GPU153", "warning")
def perhaps_no_mediated_devices(cluster: Cluster) -> Iterator[Hit]:
    """vGPU devices on a GPU that has them with older kernels only, and no word about the kernel."""
    for pool in made_by_the_manager(cluster):
        if not pool.said.kernel:
            yield hit(f"{pool.path}.gpuProduct", product=pool.said.gpuProduct, index=pool.index)


def made_by_the_manager(cluster: Cluster) -> Iterator[Pool]:
    """Pools on whose GPUs the vGPU device manager should make devices that new drivers don't have."""
    for pool in with_vgpus(cluster) if cluster.spec.vgpuDeviceManager.enabled else ():
        if pool.product is not None and pool.product.family in WITHOUT_MEDIATED_DEVICES:
            yield pool


@rule("GPU154", "warning")
def unknown_default_set(cluster: Cluster) -> Iterator[Hit]:
    """A default set of vGPU devices that there isn't."""
    manager, config = cluster.spec.vgpuDeviceManager, cluster.spec.vgpuDeviceManager.config
    plain = config.default == vgpu.DEFAULT and not config.name and not config.data  # the release's, which is there
    sets = cluster.vgpu_sets if cluster.sandbox and manager.enabled and not plain else None
    if sets is not None and config.default not in sets:
        near = nearest(config.default, sorted(sets), 2) or sorted(sets)[:1]
        yield hit("spec.vgpuDeviceManager.config.default", name=repr(config.default), near=" or ".join(near))


@rule("GPU155", "error")
def unknown_set(cluster: Cluster) -> Iterator[Hit]:
    """A node pool's set of vGPU devices that there isn't."""
    for pool in choosing(cluster):
        sets = cluster.vgpu_sets
        if sets is not None and pool.vgpu_set not in sets:
            yield hit(f"{pool.path}.vgpu.config", config=repr(pool.vgpu_set))


@rule("GPU156", "warning")
def foreign_vgpu_type(cluster: Cluster) -> Iterator[Hit]:
    """A type of vGPU that the pool's GPU doesn't have."""
    for pool in choosing(cluster):
        product, elements = pool.product, (cluster.vgpu_sets or {}).get(pool.vgpu_set, ())
        boards = vgpu.boards(product, cluster.spec.release) if product is not None else frozenset()
        path, listed = f"{pool.path}.vgpu.config", " or ".join(sorted(boards))
        for name in vgpu.types(elements, product) if boards else ():
            if vgpu.board(name) not in boards:
                yield hit(path, name=name, product=pool.said.gpuProduct, boards=listed)


def choosing(cluster: Cluster) -> list[Pool]:
    """Pools with vGPUs that choose their set."""
    enabled = cluster.spec.vgpuDeviceManager.enabled
    return [pool for pool in with_vgpus(cluster) if enabled and pool.said.vgpu.config]


@rule("GPU157", "error")
def idle_vgpu_set(cluster: Cluster) -> Iterator[Hit]:
    """A set of vGPU devices for nodes that have no vGPUs."""
    for pool in cluster.pools:
        if pool.said.vgpu.config and pool.workload != "vm-vgpu":
            yield hit(f"{pool.path}.vgpu.config", pool_name=pool.name)


@rule("GPU159", "error")
def idle_sharing(cluster: Cluster) -> Iterator[Hit]:
    """Sharing between pods, for nodes that serve virtual machines."""
    for pool in cluster.pools:
        if not pool.said.sharing.exclusive and pool.workload != "container":
            yield hit(f"{pool.path}.sharing", pool_name=pool.name)


@rule("GPU540", "error")
def broken_vgpu_file(cluster: Cluster) -> Iterator[Hit]:
    """A file of the vGPU device manager that it refuses or can't find."""
    manager, on = cluster.spec.vgpuDeviceManager, cluster.sandbox and cluster.spec.vgpuDeviceManager.enabled
    text = text_of(cluster.spec, manager.config, "vgpuDeviceManager.config", KEY) if on else None
    if text is not None and text.text is not None:
        yield from told(text.path, read_vgpu_config(text.text))
    elif text is not None:
        yield hit(text.path, file=KEY)


@rule("GPU541", "error")
def no_vgpu_image(cluster: Cluster) -> Iterator[Hit]:
    """A vGPU manager, and no word about where its image is."""
    section = cluster.spec.vgpuManager
    if cluster.sandbox and section.enabled and not section.repository and "/" not in (section.image or ""):
        yield hit("spec.vgpuManager", image=section.image or "its image")


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
    seen = set[str]()
    for pool in cluster.pools:
        needed: list[tuple[str, str]] = []
        if pool.workload == "vm-passthrough":
            needed.append(("vfioManager", "nothing binds their GPUs to vfio-pci"))
            if cluster.kata:
                needed.append(("kataSandboxDevicePlugin", "nothing offers their GPUs to Kata containers"))
        elif pool.workload == "vm-vgpu":
            if not cluster.listed:
                needed.append(("vgpuManager", "nothing brings the vGPU host driver"))
            needed.append(("vgpuDeviceManager", "nothing makes vGPU devices"))
        for name, effect in needed:
            if not getattr(spec, name).enabled and name not in seen:
                seen.add(name)
                path, image = f"spec.{name}.enabled", WITH_IMAGE if name == "vgpuManager" else ""
                yield hit(path, part=name, pool_name=pool.name, workload=pool.workload, effect=effect, image=image)


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
    it, and whether KubeVirt is told that it is not its own."""
    section = spec.kubevirt
    if section is None or not resolve(spec).offered_to_kubevirt:
        return
    for index, pci in enumerate(section.pciDevices):
        vendor, _, device = pci.selector.partition(":")
        if vendor == gpus.VENDOR:
            formed = vgpu.pci_resource(device) if vgpu.listed(device) else pci.resourceName
            yield f"spec.kubevirt.pciDevices[{index}]", pci.resourceName, formed, pci.externalResourceProvider
    for index, mediated in enumerate(section.mediatedDevices):
        if mediated.name.startswith(("NVIDIA ", "GRID ")):
            formed, external = vgpu.vgpu_resource(mediated.name), mediated.externalResourceProvider
            yield f"spec.kubevirt.mediatedDevices[{index}]", mediated.resourceName, formed, external
