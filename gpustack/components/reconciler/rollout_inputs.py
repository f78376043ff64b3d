"""How fast nodes may be taken out of service: `upgradePolicy` of a pool's driver, and the pool's own `upgrade`.

Absent fields have the operator's defaults (reconciler.md U22). What a pool says replaces what the driver says; over all
pools together `fleet` holds, as the operator's limits hold for a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...cluster.ownership import in_charge, owners
from ...cluster.workloads import sandbox
from ...policy.language import reconciler

if TYPE_CHECKING:
    from ...api import node_policy as policy
    from ...policy.language.driver import UpgradePolicy
    from ...policy.language.node_pools import NodePool, Window
    from ...policy.language.reconciler import Reconciler
    from ...policy.language.spec import ClusterPolicySpec

PARALLEL, UNAVAILABLE, SECONDS = 1, "25%", 300


class Rollout(NamedTuple):
    """The upgrade policy of a pool's driver, and whether a new driver rolls by itself."""

    policy: UpgradePolicy
    automatic: bool


def upgrade_policy(spec: ClusterPolicySpec, pool: NodePool | None) -> Rollout:
    """The upgrade policy that holds for POOL. In a cluster of sandboxes no driver rolls by itself: there the driver
    manager takes the node out of service and puts it back, whoever else works on it (reconciler.md U6, D6).
    """
    found, default = spec.driver.upgradePolicy, False
    if in_charge(spec):
        default = True
        mine = [owners(spec)[at] for at, other in enumerate(spec.nodePools) if pool is None or other is pool]
        index = next((each for each in mine if each is not None), None)
        found = spec.drivers[index].upgradePolicy if index is not None else found
    automatic = default if found.autoUpgrade is None else found.autoUpgrade
    return Rollout(found, bool(automatic) and not sandbox(spec))


def managers_evict(spec: ClusterPolicySpec) -> bool:
    """Whether driver managers must be able to evict pods: on some node nobody else does before a new driver."""
    pools: list[NodePool | None] = list(spec.nodePools) or [None]
    return not (reconciler.runs(spec) and all(upgrade_policy(spec, pool).automatic for pool in pools))


def upgrade(section: Reconciler, pool: NodePool | None, rollout: Rollout) -> policy.Upgrade:
    """How fast the nodes of POOL may be taken out of service."""
    from ...api import node_policy as policy

    own, found = pool.upgrade if pool else None, rollout.policy
    wait, deletion, drain = found.waitForCompletion, found.podDeletion, found.drain
    return policy.Upgrade(
        auto=rollout.automatic,
        maxParallel=own.maxParallel if own and own.maxParallel is not None else parallel(found),
        maxUnavailable=own.maxUnavailable if own and own.maxUnavailable is not None else unavailable(found),
        zoneMaxUnavailable=own.zoneMaxUnavailable if own else None,
        windows=[window(each) for each in (own.windows if own else ()) or section.windows],
        waitForCompletion=policy.WaitForCompletion(
            podSelector=wait.podSelector or "", timeoutSeconds=wait.timeoutSeconds or 0
        ),
        podDeletion=policy.PodDeletion(
            force=bool(deletion.force),
            timeoutSeconds=seconds(deletion.timeoutSeconds),
            deleteEmptyDir=bool(deletion.deleteEmptyDir),
        ),
        drain=policy.Drain(
            enable=bool(drain.enable),
            force=bool(drain.force),
            podSelector=drain.podSelector or "",
            timeoutSeconds=seconds(drain.timeoutSeconds),
            deleteEmptyDir=bool(drain.deleteEmptyDir),
        ),
        breakerFailures=3 if section.breakerFailures is None else section.breakerFailures,
        firstAlone=section.firstAlone is not False,
        maxAttempts=section.maxAttempts or 3,
    )


def window(said: Window) -> policy.Window:
    """A window as the program reads it."""
    from ...api import node_policy as policy

    return policy.Window(days=list(said.days), start=said.start, hours=said.hours, timeZone=said.timeZone or "UTC")


def fleet(spec: ClusterPolicySpec) -> policy.Limits:
    """What holds over all pools: the limits of the section `driver`; of `drivers`, each of which has its own, what they
    allow together.
    """
    from ...api import node_policy as policy

    if not in_charge(spec):
        found = spec.driver.upgradePolicy
        return policy.Limits(maxParallel=parallel(found), maxUnavailable=unavailable(found))
    used = {index for index in owners(spec) if index is not None}
    policies = [spec.drivers[index].upgradePolicy for index in sorted(used)]
    slots = [parallel(each) for each in policies] or [PARALLEL]
    shares = [unavailable(each) for each in policies] or [UNAVAILABLE]
    percent = [int(share[:-1]) for share in shares if isinstance(share, str)]
    return policy.Limits(
        maxParallel=0 if 0 in slots else sum(slots),
        maxUnavailable=f"{max(percent)}%" if percent else sum(share for share in shares if isinstance(share, int)),
    )


def parallel(found: UpgradePolicy) -> int:
    """How many nodes at a time; 0 is no limit."""
    return PARALLEL if found.maxParallelUpgrades is None else found.maxParallelUpgrades


def unavailable(found: UpgradePolicy) -> int | str:
    """How many nodes may be unavailable."""
    return UNAVAILABLE if found.maxUnavailable is None else found.maxUnavailable


def seconds(given: int | None) -> int:
    """A time limit; 0 is none."""
    return SECONDS if given is None else given
