"""Inputs of the driver of all nodes, and of the drivers that node pools have instead.

A cluster has one `DriverCommon` for its section `driver`, and several `DriverPod` where its nodes differ in OS or
kernel. A pool whose `driver` overrides fields of that section has a DaemonSet of its own. What others are here:

- It is called after the pool, not after what is set: a new version in `nodePools[].driver` changes a DaemonSet in
  place, to be rolled out node by node. Pools with equal overrides therefore have a DaemonSet each.
- It selects the nodes whose label nvidia.com/gpu-operator.driver.owner names the pool, and the DaemonSets of all other
  nodes exclude these by node affinity. Nobody writes a selector. Rejected: excluding the pool's own labels. Kubernetes
  would take the driver from all nodes of the pool in the moment in which the override is applied, workloads and all
  (reconciler.md L38). A label is set node by node, by whoever drains the node first.
- The other DaemonSets keep their names, also where all pools of their system have a driver of their own: a node that
  nobody has labelled yet is theirs. Their pods gain the affinity, which isn't part of what is installed: none restarts.
"""

from typing import Any

from ...api import keys
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...model import Finding, FindingsError
from ...policy.language import reconciler
from ..parts.common_inputs import Common, Inputs
from ..reconciler.rollout_inputs import managers_evict
from .driver_pools_inputs import RHCOS_LABEL, targets
from .driver_settings_inputs import DriverCommon, DriverPod, driver_pod, refusals, settings
from .driver_view import DriverView
from .nvidia_driver_pools_inputs import daemonset_name


class PoolDriver(Inputs):
    """The driver of one node pool: its own settings, and its only DaemonSet."""

    owner: str
    settings: DriverCommon
    pod: DriverPod


class DriverInputs(Inputs):
    """Without node pools there are no `pods`: rights and ConfigMap are there, and nothing runs.

    The `pods` stay away from the nodes of those who are in `pools`. `revisions`: DaemonSets name their pod template.
    `evicts`: driver managers evict, as no reconciler does on all nodes."""

    common: Common
    settings: DriverCommon
    pods: tuple[DriverPod, ...] = ()
    pools: tuple[PoolDriver, ...] = ()
    revisions: bool = False
    evicts: bool = True


def from_cluster(cluster: Cluster) -> DriverInputs | None:
    """The driver of all nodes; None where the nodes bring it, or where `drivers` describe it.

    Raises FindingsError where the policy asks for what no driver image can do, or does not say what the nodes run."""
    spec = cluster.spec
    if not spec.driver.enabled or cluster.listed:
        return None
    view = DriverView.section(cluster)
    findings, inputs = refusals(view), None
    try:
        inputs = DriverInputs(
            common=Common.from_cluster(cluster),
            settings=settings(view),
            pods=tuple(driver_pod(view, target, crio=cluster.engine == "cri-o") for target in targets(view)),
        )
    except FindingsError as error:
        findings += error.findings
    pools, refused = pool_drivers(cluster)
    findings += [finding for finding in refused if finding not in findings]
    if findings or inputs is None:
        raise FindingsError(*findings)
    rolled = {"revisions": reconciler.runs(spec), "evicts": managers_evict(spec)}
    return inputs.model_copy(update={"pools": tuple(pools), **rolled})


def pool_drivers(cluster: Cluster) -> tuple[list[PoolDriver], list[Finding]]:
    """The drivers of the pools that serve containers and override the cluster's, and what is said against them."""
    drivers, findings = list[PoolDriver](), list[Finding]()
    for pool in cluster.pools:
        if pool.workload != "container" or pool.said.driver is None:
            continue
        view = overridden(pool, pool.said.driver.model_dump(exclude_unset=True))
        findings += refusals(view)
        try:
            drivers.append(pool_driver(view, pool))
        except FindingsError as error:
            findings += error.findings
    return drivers, findings


def overridden(pool: Pool, said: dict[str, Any]) -> DriverView:
    """The driver of POOL: what that has SAID over the cluster's, by the rules of layers.

    An image that is named whole ("registry.example/driver:595") replaces repository and version too."""
    from ...policy.language import driver, images
    from ...policy.loading import layers

    below = images.made_way(pool.spec.driver.model_dump(exclude_unset=True), said)
    parts = [layers.Part("policy", "driver", below), layers.Part("policy", pool.name, said)]
    merged = driver.Driver.model_validate(layers.merge(parts).spec)

    def at(field: str) -> str:
        section, _, name = field.partition(".")
        own = section == "driver" and name.partition(".")[0] in said
        return f"nodePools[{pool.index}].{field}" if own else field

    return DriverView(pool.cluster, merged, pool.spec.gds, pool.spec.gdrcopy, (pool,), at)


def pool_driver(view: DriverView, pool: Pool) -> PoolDriver:
    """The driver of POOL, the only one that VIEW is for."""
    (target,) = targets(view)
    name = daemonset_name("gpu", target.os.tag, pool.name)
    selects = {keys.DRIVER_OWNER: pool.name, **target.os.selector}
    if target.kernel:
        selects[keys.KERNEL] = target.kernel
    if target.toolkit:
        selects[RHCOS_LABEL] = target.toolkit.rhcos
    renamed = target._replace(name=name, app=name, node_selector=selects)
    pod = driver_pod(view, renamed, crio=pool.engine == "cri-o")
    return PoolDriver(owner=pool.name, settings=settings(view), pod=pod)
