"""Rules about tenants' pods that get parts of GPUs: MIG instances, and shares in time or by MPS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..checks.rule import Hit, hit, rule
from .tenants import GPU, MIG, SHARED, asked, place_of

if TYPE_CHECKING:
    from .tenants import Tenant


@rule("GPU708", "note", over="workload")
def several_slices(tenant: Tenant) -> Iterator[Hit]:
    """A container that asks for several MIG instances."""
    single = tenant.offer.strategy == "single" and bool(tenant.selected) and all(pool.mig for pool in tenant.selected)
    for _, container in tenant.containers:
        slices = {
            name: number
            for name, (number, _) in asked(container).items()
            if name.startswith(MIG) or (single and name.removesuffix(SHARED) == GPU)
        }
        if sum(slices.values()) > 1:
            yield hit(place_of(tenant, next(iter(slices))), who=tenant.who, number=sum(slices.values()))


@rule("GPU709", "error", over="workload")
def more_than_one_share(tenant: Tenant) -> Iterator[Hit]:
    """A container that asks for more than one share of a GPU where that is refused."""
    for path, name, number in _shares(tenant, refused=True):
        yield hit(path, who=tenant.who, number=number, name=name)


@rule("GPU710", "note", over="workload")
def shares_are_no_gpus(tenant: Tenant) -> Iterator[Hit]:
    """A container that asks for several shares of GPUs."""
    for path, name, number in _shares(tenant, refused=False):
        yield hit(path, who=tenant.who, number=number, name=name)


def _shares(tenant: Tenant, *, refused: bool) -> Iterator[tuple[str, str, int]]:
    """Requests for more than one share, with their places, where all nodes that have the resource share it."""
    for (key, index), container in tenant.containers:
        for name, (number, part) in asked(container).items():
            pools = [pool for pool in tenant.selected if pool.resources and name in pool.resources]
            whole = name.removesuffix(SHARED)
            kinds = {(pool.sharing.replicas(whole) > 1, pool.sharing.refuses_more) for pool in pools}
            if number > 1 and kinds == {(True, refused)}:
                where = (key, index) if tenant.whole else ()
                yield tenant.at(*where, "resources", part, name), name, number


@rule("GPU790", "warning", over="workload")
def folder_that_the_toolkit_writes(tenant: Tenant) -> Iterator[Hit]:
    """A container with GPUs mounts something read-only at /etc/nvidia."""
    volumes = tenant.pod.get("volumes")
    fixed = {
        one.get("name")
        for one in (volumes if isinstance(volumes, list) else [])
        if isinstance(one, dict) and {"configMap", "secret", "projected", "downwardAPI"} & one.keys()
    }
    for place, container in tenant.containers if tenant.offer.writes_etc_nvidia else ():
        mounts = container.get("volumeMounts")
        for index, mount in enumerate(mounts if isinstance(mounts, list) and asked(container) else []):
            if not isinstance(mount, dict) or str(mount.get("mountPath", "")).rstrip("/") != "/etc/nvidia":
                continue
            if mount.get("readOnly") is True or mount.get("name") in fixed:
                yield hit(tenant.at(*place, "volumeMounts", index, "mountPath"), who=tenant.who)
