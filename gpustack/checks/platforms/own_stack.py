"""Rules about pools whose operating system brings a stack of its own, beside pools that have none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import platforms
from ...policy.language.cluster import platform_of
from ..rule import Hit, hit, rule
from .platform import SECTIONS

if TYPE_CHECKING:
    from ...cluster.pool import Pool
    from ...cluster.resolve import Cluster

DEPLOYED = {
    "driver": "driver",
    "toolkit": "container-toolkit",
    "devicePlugin": "device-plugin",
    "migManager": "mig-manager",
}
"""The ends of the labels nvidia.com/gpu.deploy.*, by section of the policy."""


@rule("GPU484", "warning")
def system_with_its_own_stack(cluster: Cluster) -> Iterator[Hit]:
    """A node pool's system brings components that this cluster installs too."""
    own = platform_of(cluster.spec.cluster)
    for pool in cluster.pools:
        if pool.system is None or pool.system.driver_image != "none" or pool.system.id in own.systems:
            continue
        for section, what in sorted(_brought(pool.system.id).items()):
            label = f"nvidia.com/gpu.deploy.{DEPLOYED[section]}"
            if _runs(cluster, pool, section) and pool.said.nodeSelector.get(label) != "false":
                title, harm = SECTIONS[section]
                yield hit(
                    f"{pool.path}.os",
                    what=what,
                    title=title,
                    harm=harm,
                    label=label,
                    pool_path=pool.path,
                    pool_name=pool.name,
                    system=pool.system.title,
                )


def _brought(system: str) -> dict[str, str]:
    """What every platform that has the system with the os-release ID SYSTEM is sure to bring, by section, in words."""
    known = [platform for name in platforms.names() if system in (platform := platforms.platform(name)).systems]
    brought = [{section: one.what for section, one in each.brings.items() if one.sure} for each in known]
    common = set.intersection(*map(set, brought)) if brought else set()
    return {section: brought[0][section] for section in common & SECTIONS.keys()}


def _runs(cluster: Cluster, pool: Pool, section: str) -> bool:
    if section == "driver":
        return pool.driver is not None
    if pool.workload != "container" or (cluster.dra and section != "driver"):
        return False
    if section == "migManager":
        cuts = pool.product is None or pool.product.mig is not None
        return cluster.mig_manager and bool(cluster.spec.migManager.enabled) and cuts
    return bool(getattr(cluster.spec, section).enabled)
