"""How fast nodes may be taken out of service: `upgradePolicy` of a pool's driver, and the pool's own `upgrade`.

What a pool says replaces what the driver says; over all pools together `Cluster.fleet` holds, as the operator's limits
hold for a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..policy.language.driver import UpgradePolicy

if TYPE_CHECKING:
    from ..policy.language.node_pools import Window
    from .pool import Pool
    from .resolve import Cluster


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a pool. `policy` is its driver's and stands at `path`; `automatic`: a new driver rolls by itself.

    0 for `parallel` is no limit. `unavailable` is a number of nodes, or a share such as 25%. `soak` is in seconds."""

    policy: UpgradePolicy
    path: str
    automatic: bool
    parallel: int
    unavailable: int | str
    zone_unavailable: int | str | None
    windows: Sequence[Window]
    soak: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """What holds over all pools. 0 for `parallel` is no limit."""

    parallel: int
    unavailable: int | str


def budget(pool: Pool) -> Budget:
    """How fast the nodes of POOL may be taken out of service.

    In a cluster of sandboxes no driver rolls by itself: there the driver manager takes the node out of service and puts
    it back, whoever else works on it (reconciler.md U6, D6)."""
    spec, own = pool.spec, pool.said.upgrade
    upgrade_policy, path = spec.driver.upgradePolicy, "spec.driver.upgradePolicy"
    if pool.cluster.listed:
        pools = [pool] if pool.index is not None else pool.cluster.pools
        number = next((driver.number for each in pools if (driver := each.driver)), None)
        if number is not None:
            upgrade_policy, path = spec.drivers[number].upgradePolicy, f"spec.drivers[{number}].upgradePolicy"
    shared, soak = (spec.reconciler.windows, spec.reconciler.soakSeconds) if spec.reconciler else ([], 0)
    return Budget(
        upgrade_policy,
        path,
        upgrade_policy.autoUpgrade and not pool.cluster.sandbox,
        own.maxParallel if own and own.maxParallel is not None else upgrade_policy.maxParallelUpgrades,
        own.maxUnavailable if own and own.maxUnavailable is not None else upgrade_policy.maxUnavailable,
        own.zoneMaxUnavailable if own else None,
        (own.windows if own else ()) or shared,
        own.soakSeconds if own and own.soakSeconds is not None else soak,
    )


def fleet(cluster: Cluster) -> Fleet:
    """The limits of the section `driver`; of `drivers`, each of which has its own, what they allow together."""
    policies = [cluster.spec.driver.upgradePolicy]
    if cluster.listed:
        used = {pool.driver.number for pool in cluster.pools if pool.driver is not None}
        policies = [driver.upgradePolicy for number, driver in enumerate(cluster.spec.drivers) if number in used]
        policies = policies or [UpgradePolicy()]
    slots, shares = [each.maxParallelUpgrades for each in policies], [each.maxUnavailable for each in policies]
    percent = [int(share[:-1]) for share in shares if isinstance(share, str)]
    together = sum(share for share in shares if isinstance(share, int))
    return Fleet(0 if 0 in slots else sum(slots), f"{max(percent)}%" if percent else together)
