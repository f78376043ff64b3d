"""Rules about `host`: what a system doesn't take, and what contradicts the rest of the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...catalog.gpus import VENDOR
from ...cluster import node_host
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule


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
    for pool in cluster.pools:
        host, path, of = pool.said.host, f"{pool.path}.host", pool.name
        if host.fabricManager and pool.driver is not None:
            yield hit(f"{path}.fabricManager", "brought", of=of)
        if pool.workload == "container" and any(each.startswith(f"{VENDOR.lower()}:") for each in host.vfio):
            yield hit(f"{path}.vfio", "containers", of=of)
        if host.vfio and not host.iommu and pool.arch != "arm64":
            yield hit(path, "iommu", of=of)
        if host.iommu and pool.arch == "arm64":
            yield hit(f"{path}.iommu", "arm", of=of)
        if host.pinKernel and not pool.said.kernel:
            yield hit(f"{path}.pinKernel", "kernel", of=of)
        if host.machineConfigPool and not cluster.on_openshift:
            yield hit(f"{path}.machineConfigPool", "openshift", of=of)
        if host.machineConfigPool and named[host.machineConfigPool] > 1:
            yield hit(f"{path}.machineConfigPool", "twice", of=of)


@rule("GPU492", "warning")
def every_worker_reboots(cluster: Cluster) -> Iterator[Hit]:
    """A MachineConfig for a pool of GPU nodes goes to all workers, or to the control plane."""
    for pool in cluster.pools:
        if pool.said.host.machineConfigPool in {"worker", "master"}:
            yield hit(f"{pool.path}.host.machineConfigPool", of=pool.name, role=pool.said.host.machineConfigPool)
