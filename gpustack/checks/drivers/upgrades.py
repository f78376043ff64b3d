"""Rules about rolling out a new driver, and about components that others wait for."""

from collections.abc import Iterator

from ...cluster.resolve import Cluster
from ...policy.language.driver import UpgradePolicy
from ...policy.language.operand import DriverManager
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


def policies(cluster: Cluster) -> Iterator[tuple[str, UpgradePolicy, DriverManager]]:
    """Of each driver that this policy installs: its path, its upgrade policy, its manager."""
    spec = cluster.spec
    if cluster.drivers_by == "section":
        yield "driver", spec.driver.upgradePolicy, spec.driver.manager
    for index, driver in enumerate(spec.drivers if cluster.listed else ()):
        yield f"drivers[{index}]", driver.upgradePolicy, driver.manager


@rule("GPU470", "warning")
def two_sets_of_knobs(cluster: Cluster) -> Iterator[Hit]:
    """A variable of the driver manager is overridden by the upgrade policy."""
    for path, policy, manager in policies(cluster) if not cluster.sandbox else ():
        for index, entry in enumerate(manager.env if policy.autoUpgrade else ()):
            if entry.name in OVERRIDDEN:
                field = f"{path}.upgradePolicy.{OVERRIDDEN[entry.name]}"
                yield hit(f"spec.{path}.manager.env[{index}]", section=path, entry=entry.name, setting=field)


@rule("GPU471", "warning")
def drain_that_stops(cluster: Cluster) -> Iterator[Hit]:
    """Nodes are drained for a new driver, and pods with emptyDir volumes are not to be removed."""
    for path, policy, _ in policies(cluster):
        if policy.drain.enable and not policy.drain.deleteEmptyDir:
            yield hit(f"spec.{path}.upgradePolicy.drain", section=path)


@rule("GPU472", "note")
def percentage_of_few(cluster: Cluster) -> Iterator[Hit]:
    """A percentage of a small number of nodes is rounded up to one."""
    counts = {pool.name: pool.said.count.max if pool.said.count else 0 for pool in cluster.pools}
    total = sum(counts.values()) if all(pool.said.count for pool in cluster.pools) else 0
    for path, policy, _ in policies(cluster):
        if policy.autoUpgrade:
            yield from _rounded(f"spec.{path}.upgradePolicy", policy.maxUnavailable, total, "the cluster")
    for pool in cluster.pools:
        if own := pool.said.upgrade:
            yield from _rounded(f"{pool.path}.upgrade", own.maxUnavailable, counts[pool.name], f"node pool {pool.name}")


def _rounded(path: str, share: int | str | None, number: int, whose: str) -> Iterator[Hit]:
    if isinstance(share, str) and share.endswith("%") and 0 < int(share[:-1]) * number < 100:
        nodes, key = "1 node" if number == 1 else f"{number} nodes", "maxUnavailable"
        yield hit(f"{path}.{key}", share=share, nodes=nodes, whose=whose, percent=round(100 / number), key=key)


@rule("GPU473", "warning")
def nobody_offers_gpus(cluster: Cluster) -> Iterator[Hit]:
    """The device plugin is off, and nothing else offers GPUs to pods."""
    offered = cluster.spec.devicePlugin.enabled or cluster.dra or "devicePlugin" in cluster.platform.brings
    if not offered and cluster.serving("container"):
        yield hit("spec.devicePlugin.enabled")


@rule("GPU474", "note")
def what_nodes_have_to_bring(cluster: Cluster) -> Iterator[Hit]:
    """Driver or container toolkit is off, and components wait for those of the nodes."""
    serving, brings = cluster.serving("container"), cluster.platform.brings
    if serving and not cluster.container_drivers and not cluster.listed and "driver" not in brings:
        yield hit("spec.driver.enabled", "driver")
    if serving and not cluster.spec.toolkit.enabled and "toolkit" not in brings:
        yield hit("spec.toolkit.enabled", "toolkit")
