"""The rule about devices of virtual machines: KubeVirt hands out what it is told to permit, and a node offers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..catalog._lookup import nearest
from ..checks.rule import Hit, hit, rule
from ..model import Path, dotted
from .tenants import NVIDIA

if TYPE_CHECKING:
    from ..cluster.offer import Offer
    from .tenants import TenantObject

KUBEVIRT = "kubevirt.io"
LISTS = ("gpus", "hostDevices")


@rule("GPU722", "error", over="manifest")
def no_such_device(given: TenantObject) -> Iterator[Hit]:
    """A virtual machine asks for a device that KubeVirt doesn't permit, or that no node offers."""
    if f".{given.group}".endswith(f".{KUBEVIRT}"):
        for path, name in _devices(given.body.get("spec"), ("spec",)):
            reason = _never(given.offer, name)
            if reason is not None:
                what, why, remedy = reason
                yield hit(dotted(path), why=why, remedy=remedy, who=given.who, name=name, what=what)


def _devices(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The devices that virtual machines below VALUE ask for by name. One that a claim brings has none."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in LISTS and isinstance(item, list):
            for index, one in enumerate(item):
                if isinstance(one, dict) and isinstance(one.get("deviceName"), str):
                    yield (*path, key, index, "deviceName"), one["deviceName"]
        else:
            yield from _devices(item, (*path, key))


def _never(offer: Offer, name: str) -> tuple[str, str, str] | None:
    """What, why and remedy for the device NAME that no virtual machine gets; None for one that it may get."""
    permitted = offer.permitted
    if permitted is not None:
        if name in permitted:
            return None
        listed = ", ".join(sorted(permitted)) or "nothing"
        near = nearest(name, sorted(permitted), 2) or sorted(permitted)[: len(permitted) == 1]
        remedy = f"write {' or '.join(near)}" if near else "write one of these, or have spec.kubevirt permit it"
        return "KubeVirt isn't told to permit", f"it permits {listed}, and refuses the virtual machine", remedy
    machines = [pool for pool in offer.pools if pool.virtual]
    if NVIDIA not in name.lower() or any(pool.resources is None for pool in machines) or not offer.pools:
        return None
    had = sorted({resource for pool in machines for resource in pool.resources or ()})
    if name in had:
        return None
    if not had:
        why = "no node pool serves virtual machines, so the virtual machine stays unscheduled"
        return (
            "no node offers",
            why,
            "have a pool serve them (sandboxWorkloads, nodePools[].workload) and spec.kubevirt",
        )
    near = nearest(name, had, 2) or had[: len(had) == 1]
    remedy = f"write {' or '.join(near)}" if near else "write one of these"
    return "no node offers", f"nodes for virtual machines offer {', '.join(had)}; it stays unscheduled", remedy
