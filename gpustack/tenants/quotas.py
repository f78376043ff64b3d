"""Rules about what shares out resources without asking for them (quotas, limits, Kueue's queues and flavors), and about
devices of virtual machines, of which KubeVirt hands out what it is told to permit, and a node offers.

None of the first is refused: a quota over a resource that no node offers counts nothing, a default of a LimitRange
keeps every pod pending, and a queue that doesn't cover the right resource admits no job.
"""

from collections.abc import Iterator
from typing import Any

from ..catalog._lookup import nearest
from ..checks.objects.pods import amount_of
from ..checks.rule import Hit, hit, rule
from ..cluster.offer import Offer
from ..model import Path, children, dotted, mapping, mappings
from ..policy.loading.place import node
from .tenants import NVIDIA, QUOTAS, TenantObject
from .workload_nodes import never
from .workloads import not_offered

KUEUE = "kueue.x-k8s.io"
BY_PREFIX = {("", "ResourceQuota"), ("quota.openshift.io", "ClusterResourceQuota")}
"""Kinds that name a resource with requests. before it."""
PREFIX = "requests."
OTHER_COUNTS = ("count/", "services.")
CLASS = ".deviceclass.resource.k8s.io/devices"
"""How a quota names the devices of a class of dynamic resource allocation."""
KUBEVIRT = "kubevirt.io"
LISTS = ("gpus", "hostDevices")
NOBODY = "no node offers"


@rule("GPU720", "warning", over="manifest")
def quota_of_nothing(given: TenantObject) -> Iterator[Hit]:
    """A quota, limit or queue over a resource that no node offers."""
    kind = (given.group, str(given.body["kind"]))
    content = node(given.body, QUOTAS[kind]) if kind in QUOTAS else None
    told = set()
    every = [*_named(content, QUOTAS.get(kind, ()))]
    for path, name, amount in every:
        if name in told or (amount is not None and amount_of(amount) == 0):
            continue
        resource = name.removeprefix(PREFIX) if kind in BY_PREFIX else name
        if kind in BY_PREFIX and resource == name:
            told.add(name)
            right = f"{PREFIX}{name.removeprefix('limits.')}"
            why = f"of extended resources, quotas count requests: {name} bounds nothing, and nobody says so"
            yield hit(dotted(path), "name", why=why, who=given.who, name=name, right=right, at_key=True)
            continue
        if reason := not_offered(given.offer, resource):
            told.add(name)
            why, remedy = reason
            if kind in BY_PREFIX:
                remedy = remedy.replace("write nvidia.com/", f"write {PREFIX}nvidia.com/")
            if sum(name == other for _, other, _ in every) > 1:
                remedy += ", wherever it stands"
            why += f"; {EFFECTS.get(kind[1], 'it bounds nothing')}"
            yield hit(dotted(path), "nobody", why=why, remedy=remedy, who=given.who, resource=resource)


EFFECTS = {
    "LimitRange": "pods that get it as a default stay pending",
    "ClusterQueue": "jobs that ask for what nodes do offer are not admitted",
    "Cohort": "jobs that ask for what nodes do offer are not admitted",
}


def _named(value: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """The resources of NVIDIA that VALUE, at PATH, names as keys, in lists or under `name`; and how many, if said."""
    number = value.get("nominalQuota") if isinstance(value, dict) else None
    for key, item in children(value):
        if _resource(key) and not isinstance(item, dict | list):
            yield (*path, key), key, item
        elif (key == "name" or isinstance(value, list)) and _resource(item):
            yield (*path, key), item, number
        else:
            yield from _named(item, (*path, key))


def _resource(value: Any) -> bool:
    """Whether VALUE names a resource of NVIDIA."""
    if not isinstance(value, str) or "/" not in value or value.endswith(CLASS) or value.startswith(OTHER_COUNTS):
        return False
    return NVIDIA in value.lower()


@rule("GPU721", "warning", over="manifest")
def flavor_of_no_nodes(given: TenantObject) -> Iterator[Hit]:
    """A ResourceFlavor of Kueue for nodes that there aren't."""
    if given.group != KUEUE or given.body["kind"] != "ResourceFlavor" or not given.offer.pools:
        return
    for key, value in mapping(node(given.body, ("spec", "nodeLabels"))).items():
        if reason := never(given.offer, str(key), (str(value),)):
            what, why, remedy = reason
            yield hit(dotted(("spec", "nodeLabels", key)), remedy=remedy, who=given.who, what=what, because=why)


@rule("GPU722", "error", over="manifest")
def no_such_device(given: TenantObject) -> Iterator[Hit]:
    """A virtual machine asks for a device that KubeVirt doesn't permit, or that no node offers."""
    if f".{given.group}".endswith(f".{KUBEVIRT}"):
        for path, name in _devices(given.body.get("spec"), ("spec",)):
            if reason := _never(given.offer, name):
                what, why, remedy = reason
                yield hit(dotted(path), why=why, remedy=remedy, who=given.who, name=name, what=what)


def _devices(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The devices that virtual machines below VALUE ask for by name. One that a claim brings has none."""
    for key, item in mapping(value).items():
        if key in LISTS and isinstance(item, list):
            for index, one in mappings(item):
                if isinstance(one.get("deviceName"), str):
                    yield (*path, key, index, "deviceName"), one["deviceName"]
        else:
            yield from _devices(item, (*path, key))


def _never(offer: Offer, name: str) -> tuple[str, str, str] | None:
    """What, why and remedy for the device NAME that no virtual machine gets; None for one that it may get."""
    permitted = offer.permitted
    if permitted is not None:
        if name in permitted - offer.absent:
            return None
        listed = ", ".join(sorted(permitted)) or "nothing"
        had = sorted(permitted - offer.absent if NVIDIA in name.lower() else ())
        near = nearest(name, had, 2) or had[: len(had) == 1]
        if name in permitted:
            remedy = f"write {near[0]}" if near else "have a pool with this GPU serve virtual machines"
            return NOBODY, "it is permitted, and no node pool has such a GPU; it stays unscheduled", remedy
        remedy = f"write {' or '.join(near)}" if near else "write one of these, or have spec.kubevirt permit it"
        if NVIDIA not in name.lower():
            listed, remedy = "what spec.kubevirt lists", "list the device in spec.kubevirt.pciDevices"
        return "KubeVirt isn't told to permit", f"it permits {listed}, and refuses the virtual machine", remedy
    machines = [pool for pool in offer.pools if pool.virtual]
    if NVIDIA not in name.lower() or any(pool.resources is None for pool in machines) or not offer.pools:
        return None
    had = sorted({resource for pool in machines for resource in pool.resources or ()})
    if name in had:
        return None
    if not had:
        why = "no node pool serves virtual machines, so the virtual machine stays unscheduled"
        return NOBODY, why, "have a pool serve them (sandboxWorkloads, nodePools[].workload) and spec.kubevirt"
    near = nearest(name, had, 2) or had[: len(had) == 1]
    remedy = f"write {' or '.join(near)}" if near else "write one of these"
    return NOBODY, f"nodes for virtual machines offer {', '.join(had)}; it stays unscheduled", remedy
