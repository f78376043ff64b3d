"""Inputs of NVIDIA's DRA driver: the whole of it for a `gpuCluster`, or compute domains beside a device plugin."""

from typing import Any

from ...api import keys
from ...catalog import gpus
from ...cluster.resolve import Cluster, resolve
from ...cluster.scheduling import arch_of
from ...model import Finding, FindingsError
from ...policy.language.base import own
from ...policy.language.gpu_cluster import DraContainer, KubeletPlugin
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ...text.quantities import size
from ..parts.common_inputs import Common, Inputs, Pairs, dump, image, owned_crds, pairs, pull_policy
from ..refusals import refused
from .dra_inputs import common_of

CRDS = ("computedomaincliques.resource.nvidia.com", "computedomains.resource.nvidia.com")


class Program(Inputs):
    """One program of the driver: what the policy adds to its environment, and its resources.

    `port` is that of its health check, 0 for none."""

    env: Pairs = ()
    resources: dict[str, Any] | None = None
    port: int = 0


class DraDriverInputs(Inputs):
    """`gpus` is None beside a device plugin, `compute_domains` and `controller` are None without compute domains.

    `placement`: sets of labels of which a node must have one, where only some nodes can have compute domains; empty for
    all. `clique_label`: the driver labels nodes with the NVLink partition that they are in. `crds`: CRDs to bring."""

    common: Common
    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    kubelet_dir: str = own("hostPaths.kubeletRootDir")
    gpus: Program | None = None
    compute_domains: Program | None = None
    controller: Program | None = None
    placement: tuple[dict[str, str], ...] = ()
    clique_label: bool = True
    crds: tuple[str, ...] = ()

    @property
    def init_resources(self) -> dict[str, Any] | None:
        """Those of the init container, which must fit beside whatever its pod sets aside anyway (operator.md 11.2)."""
        return most(*(program.resources for program in (self.gpus, self.compute_domains) if program))


def from_cluster(cluster: Cluster) -> DraDriverInputs | None:
    """The driver of a `gpuCluster`, or its compute domains beside the device plugin; None if DRA allocates neither."""
    spec, whole = cluster.spec, cluster.spec.gpuCluster
    if not whole and not spec.computeDomains.enabled:
        return None
    driver = whole.draDriver if whole else spec.computeDomains
    domains = whole.draDriver.computeDomains if whole else spec.computeDomains
    steers = common_of(spec, whole, priority=whole.daemonsets.priorityClassName) if whole else None
    return DraDriverInputs(
        common=steers or Common.from_cluster(cluster),
        image=image(spec, driver, "gpuCluster.draDriver" if whole else "computeDomains"),
        pull_policy=(driver.imagePullPolicy or "") if whole else pull_policy(driver.imagePullPolicy),
        pull_secrets=tuple(driver.imagePullSecrets),
        feature_gates=driver.featureGates,
        kubelet_dir=(whole or spec).hostPaths.kubeletRootDir,
        gpus=plugin(whole.draDriver.gpus.kubeletPlugin) if whole else None,
        compute_domains=plugin(domains.kubeletPlugin) if domains.enabled else None,
        controller=program(domains.controller) if domains.enabled else None,
        placement=() if whole else placement(spec),
        clique_label=bool(whole) or not spec.gfd.enabled,  # GFD sets it too: two writers of one label would fight
        crds=owned_crds(spec, CRDS) if domains.enabled else (),
    )


def program(section: DraContainer) -> Program:
    """The inputs of a program without a health check."""
    return Program(env=pairs(section.env), resources=dump(section.resources))


def plugin(section: KubeletPlugin) -> Program:
    """The inputs of a kubelet plugin."""
    check = section.healthcheck
    return program(section).model_copy(update={"port": check.port if check.enabled else 0})


def placement(spec: ClusterPolicySpec) -> tuple[dict[str, str], ...]:
    """Labels of the nodes that compute domains are for: of each pool whose GPUs may share memory between nodes.

    Decided: labels that nodes have of their own, from the pool's `nodeSelector` and architecture. Rejected:

    - nvidia.com/gpu.clique, which tells exactly the nodes that are in an NVLink partition. GFD takes it away whenever
      it stops, and it stops for every driver reload and MIG change; without GFD the plugin itself sets it and removes
      it when it stops. Either way the plugin would be taken off nodes whose pods still hold claims.
    - nvidia.com/gpu.deploy.device-plugin or .client, which every container node has. A driver reload takes pods with
      these labels off the node first; kubelet needs the plugin until the last pod has given its claim back.
    - nvidia.com/gpu.deploy.dra-driver, because only nodes of a `gpuCluster` get it."""
    pools = [pool for pool in spec.nodePools if resolve(spec).of(pool).workload == "container" and may_share(pool)]
    if spec.nodePools and not pools:
        raise FindingsError(nowhere())
    known = [(pool, arch_of(pool)) for pool in pools]
    nodes = [{**pool.nodeSelector, **({keys.ARCH: arch} if arch else {})} for pool, arch in known]
    return tuple(labels for index, labels in enumerate(nodes) if labels not in nodes[:index]) if all(nodes) else ()


def may_share(pool: NodePool) -> bool:
    """Whether the GPUs of POOL may share memory with other nodes: known to, or not known at all."""
    if pool.gpuProduct is None or pool.gpuProduct not in gpus.products():
        return True
    return gpus.product(pool.gpuProduct).nvlink_rack


def nowhere() -> Finding:
    """The finding for a cluster without a node that could have compute domains."""
    known = [name for name in gpus.products() if gpus.product(name).nvlink_rack]
    return refused("GPU060", "computeDomains.enabled", known=" and ".join(known))


def most(*resources: dict[str, Any] | None) -> dict[str, Any] | None:
    """For each resource the largest of RESOURCES' requests and the largest of their limits; None where all are empty.

    A limit below the request that another one brought is raised to it: the API server refuses the pair otherwise."""
    merged: dict[str, dict[str, Any]] = {}
    for part in ("requests", "limits"):
        for one in resources:
            for name, quantity in ((one or {}).get(part) or {}).items():
                known = merged.setdefault(part, {}).get(name)
                if known is None or size(quantity) > size(known):
                    merged[part][name] = quantity
    limits = merged.get("limits", {})
    for name, request in merged.get("requests", {}).items():
        if name in limits and size(request) > size(limits[name]):
            limits[name] = request
    return merged or None
