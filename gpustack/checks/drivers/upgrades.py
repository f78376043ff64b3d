"""Rules about rolling out a new driver, and about components that others wait for."""

from collections.abc import Iterator

from ...cluster.resolve import Cluster, resolve
from ...policy.language.driver import UpgradePolicy
from ...policy.language.operand import DriverManager
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

OVERRIDDEN = {
    "ENABLE_AUTO_DRAIN": "drain.enable",
    "ENABLE_GPU_POD_EVICTION": "podDeletion",
    "DRAIN_USE_FORCE": "drain.force",
    "DRAIN_POD_SELECTOR_LABEL": "drain.podSelector",
    "DRAIN_TIMEOUT_SECONDS": "drain.timeoutSeconds",
    "DRAIN_DELETE_EMPTYDIR_DATA": "drain.deleteEmptyDir",
}
"""Variables of the driver manager, and the fields of upgradePolicy that take their place (operator.md 7.1 and 12)."""


def policies(spec: ClusterPolicySpec) -> Iterator[tuple[str, UpgradePolicy, DriverManager]]:
    """Of each driver that this policy installs: its path, its upgrade policy, its manager."""
    if resolve(spec).listed:
        for index, driver in enumerate(spec.drivers):
            yield f"drivers[{index}]", driver.upgradePolicy, driver.manager
    elif spec.driver.enabled:
        yield "driver", spec.driver.upgradePolicy, spec.driver.manager


@rule("GPU470", "warning")
def two_sets_of_knobs(cluster: Cluster) -> Iterator[Hit]:
    """A variable of the driver manager is overridden by the upgrade policy."""
    spec = cluster.spec
    for path, policy, manager in policies(spec):
        automatic = policy.autoUpgrade
        for index, entry in enumerate(manager.env if automatic and not spec.sandboxWorkloads.enabled else ()):
            if entry.name in OVERRIDDEN:
                field = f"{path}.upgradePolicy.{OVERRIDDEN[entry.name]}"
                yield hit(f"spec.{path}.manager.env[{index}]", section=path, entry=entry.name, setting=field)


@rule("GPU471", "warning")
def drain_that_stops(cluster: Cluster) -> Iterator[Hit]:
    """Nodes are drained for a new driver, and pods with emptyDir volumes are not to be removed."""
    for path, policy, _ in policies(cluster.spec):
        if policy.drain.enable and not policy.drain.deleteEmptyDir:
            yield hit(f"spec.{path}.upgradePolicy.drain", section=path)


@rule("GPU472", "note")
def percentage_of_few(cluster: Cluster) -> Iterator[Hit]:
    """A percentage of a small number of nodes is rounded up to one."""
    spec = cluster.spec
    counts = [pool.count.max if pool.count else None for pool in spec.nodePools]
    known = [count for count in counts if count is not None]
    total = sum(known) if known and len(known) == len(counts) else 0
    for path, policy, _ in policies(spec):
        if policy.autoUpgrade:
            yield from _rounded(
                f"spec.{path}.upgradePolicy.maxUnavailable", policy.maxUnavailable, total, "the cluster"
            )
    for index, pool in enumerate(spec.nodePools):
        if pool.upgrade is not None:
            path = f"spec.nodePools[{index}].upgrade.maxUnavailable"
            yield from _rounded(path, pool.upgrade.maxUnavailable, counts[index] or 0, f"node pool {pool.name}")


def _rounded(path: str, share: int | str | None, nodes: int, whose: str) -> Iterator[Hit]:
    if isinstance(share, str) and share.endswith("%") and 0 < int(share[:-1]) * nodes < 100:
        yield hit(
            path,
            share=share,
            nodes="1 node" if nodes == 1 else f"{nodes} nodes",
            whose=whose,
            percent=round(100 / nodes),
            key=path.rpartition(".")[2],
        )


@rule("GPU473", "warning")
def nobody_offers_gpus(cluster: Cluster) -> Iterator[Hit]:
    """The device plugin is off, and nothing else offers GPUs to pods."""
    spec = cluster.spec
    if spec.devicePlugin.enabled or cluster.dra or "devicePlugin" in cluster.platform.brings:
        return
    if cluster.serving("container"):
        yield hit("spec.devicePlugin.enabled")


@rule("GPU474", "note")
def what_nodes_have_to_bring(cluster: Cluster) -> Iterator[Hit]:
    """Driver or container toolkit is off, and components wait for those of the nodes."""
    spec = cluster.spec
    brings = cluster.platform.brings
    if not cluster.serving("container"):
        return
    if not cluster.container_drivers and not cluster.listed and "driver" not in brings:
        yield hit("spec.driver.enabled", "driver")
    if not spec.toolkit.enabled and "toolkit" not in brings:
        yield hit("spec.toolkit.enabled", "toolkit")
