"""Rules about nodes' own software: what components need of it (its C library, its network driver, files of parameters),
and what of `host` a system doesn't take, or contradicts the rest of the policy.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...api import keys
from ...catalog import toolkit
from ...catalog.gpus import VENDOR
from ...cluster import node_host
from ...cluster.resolve import Cluster
from ...model import dotted, mapping, mappings
from ...policy.language import images
from ..objects.references import pod_of
from ..rule import Hit, hit, rule

MODULE_FILES = ("nvidia.conf", "nvidia-uvm.conf", "nvidia-modeset.conf", "nvidia-peermem.conf")
"""The files of module parameters that the driver container reads (NVIDIA GPU Operator documentation, custom driver
parameters)."""
CONFIG = "/etc/containerd/config.toml"
"""Where containerd's configuration is, unless the platform brings a containerd of its own."""


@rule("GPU454", "error")
def toolkit_on_an_ancient_system(cluster: Cluster) -> Iterator[Hit]:
    """The container toolkit is too new for the nodes' C library."""
    section, version = cluster.spec.toolkit, images.version(cluster.spec.toolkit)
    where = images.version_path("spec.toolkit", section)
    for pool in cluster.pools if section.enabled and toolkit.runs_on_ancient(version) is False else ():
        if pool.system is not None and pool.system.ancient:
            yield hit(f"{pool.path}.os", version=version, system=pool.system.name, where=where, pool=pool.name)


@rule("GPU455", "warning")
def no_such_toolkit_tag(cluster: Cluster) -> Iterator[Hit]:
    """The container toolkit's tag ends in a system that this version has no image for."""
    section = cluster.spec.toolkit
    parts = toolkit.suffix(images.version(section))
    if section.enabled and parts is not None and toolkit.has_tag(*parts) is False:
        yield hit(images.version_path("spec.toolkit", section), version=parts[0], suffix=parts[1])


@rule("GPU466", "warning")
def rdma_without_a_network_driver(cluster: Cluster) -> Iterator[Hit]:
    """GPUDirect RDMA is on, and nothing says where the network driver comes from."""
    spec = cluster.spec
    kinds = {*(body["kind"] for body in spec.extraObjects), *(reference.kind for reference in spec.references)}
    for path, driver in () if spec.cluster.networkOperator or "NicClusterPolicy" in kinds else cluster.described:
        if driver.rdma.enabled and not driver.rdma.useHostMofed:
            yield hit(f"{path}.rdma.enabled", section=f"{path}.rdma".removeprefix("spec."))


@rule("GPU467", "warning")
def module_parameters_that_do_nothing(cluster: Cluster) -> Iterator[Hit]:
    """A ConfigMap of kernel module parameters has a file or a line that does nothing."""
    spec = cluster.spec
    sections: list[Any] = [spec.driver, spec.vgpuManager, *spec.drivers]
    sections += [pool.driver for pool in spec.nodePools if pool.driver is not None]
    names = {each.kernelModuleConfig.name for each in sections}
    for index, body in enumerate(spec.extraObjects):
        if body["kind"] != "ConfigMap" or body["metadata"]["name"] not in names:
            continue
        for key, text in (body.get("data") or {}).items():
            path = dotted(("spec", "extraObjects", index, "data", key))
            if key not in MODULE_FILES:
                yield hit(f"spec.extraObjects[{index}].data", "file", key=key, files=", ".join(MODULE_FILES))
            for number, line in enumerate(str(text).splitlines(), 1):
                if line.split()[:1] == ["options"]:
                    right = " ".join(line.split()[2:]) or "NAME=value"
                    yield hit(path, "line", line=line.strip(), right=right, inside=(number, 1))


@rule("GPU468", "error")
def pods_in_a_user_namespace(cluster: Cluster) -> Iterator[Hit]:
    """A pod of extraObjects asks for GPUs and has a user namespace of its own."""
    for index, body in enumerate(cluster.spec.extraObjects):
        pod = pod_of(body)
        limits = [mapping(mapping(one.get("resources")).get("limits")) for _, one in mappings(pod.get("containers"))]
        asked = any(str(name).startswith(keys.NVIDIA) for each in limits for name in each)
        if pod.get("hostUsers") is False and asked:
            yield hit(f"spec.extraObjects[{index}]", kind=body["kind"], name=body["metadata"]["name"])


@rule("GPU490", "error")
def system_takes_no_such_setting(cluster: Cluster) -> Iterator[Hit]:
    """Something is to be set up on nodes that their system can't do."""
    for pool in cluster.pools:
        for item, why, instead in node_host.cannot(pool.said.host, node_host.fitting(pool)[0]):
            yield hit(f"{pool.path}.host.{item}", of=pool.name, item=item, because=why, instead=instead)


@rule("GPU491", "error")
def host_against_the_policy(cluster: Cluster) -> Iterator[Hit]:
    """What is set up on nodes contradicts what else the policy says of them."""
    named = Counter(pool.said.host.machineConfigPool for pool in cluster.pools)
    own = cluster.platform.containerd
    moved = own.config if own and own.config != CONFIG else ""
    for pool in cluster.pools:
        host, path, of, arm = pool.said.host, f"{pool.path}.host", pool.name, pool.arch == "arm64"
        where = moved or f"files of {pool.engine}"
        mine = pool.workload == "container" and any(each.startswith(f"{VENDOR.lower()}:") for each in host.vfio)
        others = host.containerdDropIn and (moved or pool.engine != "containerd")
        role = host.machineConfigPool
        for wrong, found in (
            (host.fabricManager and pool.driver is not None, hit(f"{path}.fabricManager", "brought", of=of)),
            (mine, hit(f"{path}.vfio", "containers", of=of)),
            (host.vfio and not host.iommu and not arm, hit(f"{path}.vfio", "iommu", of=of, host=path)),
            (host.iommu and arm, hit(f"{path}.iommu", "arm", of=of)),
            (host.pinKernel and not pool.said.kernel, hit(f"{path}.pinKernel", "kernel", of=of)),
            (others, hit(f"{path}.containerdDropIn", "elsewhere", of=of, where=where)),
            (role and not cluster.platform.os_images, hit(f"{path}.machineConfigPool", "openshift", of=of)),
            (role and named[role] > 1, hit(f"{path}.machineConfigPool", "twice", of=of)),
        ):
            if wrong:
                yield found


@rule("GPU492", "warning")
def every_worker_reboots(cluster: Cluster) -> Iterator[Hit]:
    """A MachineConfig for a pool of GPU nodes goes to all workers, or to the control plane."""
    for pool in cluster.pools:
        if pool.said.host.machineConfigPool in {"worker", "master"}:
            yield hit(f"{pool.path}.host.machineConfigPool", of=pool.name, role=pool.said.host.machineConfigPool)
