"""Rules about what tenants' pods ask for: resources that there aren't, or not so many, or not for them,
and parts of GPUs: MIG instances, and shares in time or by MPS.

None of it is an error to the API server when a Deployment is applied: its pods stay pending, or are refused one by one.
Rules about nodes that pods select are in workload_nodes.py.
"""

from collections.abc import Iterator

from ..catalog._lookup import nearest
from ..catalog.mig import IllegalProfile, ProfileName, resource_name
from ..checks.objects.pods import sort_of, wrong_amounts
from ..checks.rule import Hit, hit, rule
from ..cluster.offer import Offer
from ..cluster.scheduling import toleration_of, written
from ..model import mappings
from .tenants import GPU, MIG, SHARED, Tenant, asked, place_of

PENDING = "the pod stays pending"
OTHERS = "select other nodes"
WRITTEN = ("/etc", "/etc/nvidia", "/etc/nvidia/nvidia-application-profiles-rc.d")
"""The folder that the toolkit writes into, and those that it is in (NVIDIA/nvidia-container-toolkit issue 2026)."""
BY_CDI = ("nvidia-cdi", "nvidia-legacy")
"""RuntimeClasses beside the one of operator.runtimeClass."""


@rule("GPU701", "error", over="workload")
def no_such_resource(tenant: Tenant) -> Iterator[Hit]:
    """A pod asks for a resource that no node offers."""
    for place, container in tenant.containers:
        for name, (number, part) in asked(container).items():
            if reason := not_offered(tenant.offer, name) if number else None:
                path, why = tenant.inside(place, "resources", part, name), f"{reason[0]}; {PENDING}"
                yield hit(path, why=why, remedy=reason[1], who=tenant.who, name=name)


def not_offered(offer: Offer, name: str) -> tuple[str, str] | None:
    """Why no node offers the resource NAME, and what to write; None where one does, or may."""
    if name in offer.resources:
        return None
    if offer.claims:
        why = "this cluster allocates GPUs by claims (dynamic resource allocation), and nodes have no such resource"
        return why, "use a ResourceClaimTemplate of the device class gpu.nvidia.com"
    if illegal := _illegal(name):
        return illegal
    if not offer.complete or (offer.network_cards and not name.startswith(MIG) and "gpu" not in name.lower()):
        return None  # whoever puts network cards into nodes chooses their names: nvidia.com/hostdev
    listed = ", ".join(sorted(offer.resources)) or "none"
    why = f"nodes of this cluster offer {listed}"
    if f"{name}{SHARED}" in offer.resources:
        return f"{why}: shared GPUs are called so (renameByDefault)", f"write {name}{SHARED}"
    if name.endswith(SHARED) and name.removesuffix(SHARED) in offer.resources:
        return f"{why}: shared GPUs keep their name here", f"write {name.removesuffix(SHARED)}"
    if name.startswith(MIG) and offer.strategy == "single" and GPU in offer.resources:
        cut = any(pool.mig for pool in offer.pools)
        how = "with mig.strategy single, instances are called so" if cut else "no pool's GPUs are divided by MIG"
        return f"{why}: {how}", f"write {GPU}"
    near = nearest(name, sorted(offer.resources), 2)
    return why, f"write {' or '.join(near)}" if near else "ask for one of these, or have the policy changed"


def _illegal(name: str) -> tuple[str, str] | None:
    """What is wrong with NAME wherever a pod runs, and what to write."""
    prefix, slash, rest = name.partition("/")
    if not slash or prefix != "nvidia.com":
        if prefix.lower() in {"nvidia.com", "nvidia", "nvidia-com", "gpu.nvidia.com"} or not slash:
            return "resources of NVIDIA's device plugin begin with nvidia.com/", f"write {GPU}, or what the nodes offer"
        return None
    if not rest.startswith("mig-"):
        return None
    text = rest.removeprefix("mig-")
    try:
        profile = ProfileName.parse(text.replace("gb.", "gb+", 1))
    except IllegalProfile as error:
        return str(error), "write nvidia.com/mig- and a profile such as 1g.10gb"
    right = resource_name(profile)
    return (f"in names of resources, a plus is a dot: {right}", f"write {right}") if right != name else None


@rule("GPU702", "error", over="workload")
def refused_amounts(tenant: Tenant) -> Iterator[Hit]:
    """A pod whose containers, or their requests and limits, the API server refuses."""
    if tenant.whole:
        yield from _no_containers(tenant)
    for place, container in tenant.containers:
        for steps, what, why, remedy in wrong_amounts(container):
            yield Hit(tenant.inside(place, "resources", *steps), f"{tenant.who}: {what}", why, remedy)


def _no_containers(tenant: Tenant) -> Iterator[Hit]:
    """Where TENANT's pod has something else for a list of containers, or for one of them."""
    for key in ("initContainers", "containers"):
        items = tenant.pod.get(key)
        if items is None and (key == "initContainers" or key not in tenant.pod):
            continue
        if not isinstance(items, list) or (not items and key == "containers"):
            yield hit(tenant.at(key), "list", who=tenant.who, key=key, sort="empty" if items == [] else sort_of(items))
            continue
        for at, item in enumerate(items):
            if not isinstance(item, dict):
                yield hit(tenant.at(key, at), "item", who=tenant.who, number=at + 1, key=key, sort=sort_of(item))


@rule("GPU703", "error", over="workload")
def more_than_a_node_has(tenant: Tenant) -> Iterator[Hit]:
    """A pod asks for more than any node has."""
    if not tenant.known or any(pool.has(tenant.known) for pool in tenant.selected) or not tenant.selected:
        return
    texts, most = [], 0
    for pool in tenant.selected:
        has = {name: number for name, number in (pool.resources or {}).items() if name in tenant.known}
        if has:
            texts.append(f"{' and '.join(f'{number} {name}' for name, number in has.items())} on nodes of {pool.name}")
            most = max(most, *(number or 0 for number in has.values()))
    asks = " and ".join(f"{number} {name}" for name, number in tenant.known.items())
    path, have = place_of(tenant, next(iter(tenant.known))), ", ".join(texts)
    remedy = "" if most else OTHERS
    yield hit(path, "some" if texts else "none", remedy=remedy, who=tenant.who, asks=asks, have=have, most=most)


@rule("GPU704", "error", over="workload")
def kept_away_by_taints(tenant: Tenant) -> Iterator[Hit]:
    """A pod that doesn't tolerate the taints of the nodes which have what it asks for."""
    fitting = [pool for pool in tenant.selected if pool.has(tenant.known)] if tenant.known and tenant.whole else []
    away = {pool.name: tenant.keeps_away(pool) for pool in fitting}
    if away and all(away.values()):
        listed = "; ".join(f"{name}: {', '.join(map(written, taints))}" for name, taints in away.items())
        fewest = min(away.values(), key=len)
        add = ", ".join(map(toleration_of, fewest))
        key = "tolerations" if tenant.pod.get("tolerations") else "containers"
        yield hit(tenant.at(key), who=tenant.who, resources=" and ".join(tenant.known), listed=listed, add=add)


@rule("GPU705", "error", over="workload")
def no_such_runtime_class(tenant: Tenant) -> Iterator[Hit]:
    """A pod names a RuntimeClass that isn't there."""
    name = tenant.pod.get("runtimeClassName")
    if not isinstance(name, str) or not name or name in tenant.offer.runtime_classes:
        return
    if "nvidia" in name.lower() or tenant.wanted:
        have = sorted(tenant.offer.runtime_classes)
        own = [each for each in have if each not in BY_CDI]
        near = own if name == "nvidia" and len(own) == 1 else nearest(name, have, 1)
        remedy, listed = "leave runtimeClassName out", ", ".join(have) or "none of NVIDIA"
        if near or have:
            others = f", or add {{kind: RuntimeClass, name: {name}}} to spec.references if others bring it"
            remedy = f"write {near[0]}" if near else f"write {have[0]}{others}"
        yield hit(tenant.at("runtimeClassName"), remedy=remedy, who=tenant.who, name=repr(name), has=listed)


@rule("GPU708", "note", over="workload")
def several_slices(tenant: Tenant) -> Iterator[Hit]:
    """A container that asks for several MIG instances."""
    single = tenant.offer.strategy == "single" and bool(tenant.selected) and all(pool.mig for pool in tenant.selected)
    for _, container in tenant.containers:
        every = {name: number for name, (number, _) in asked(container).items()}
        slices = [name for name in every if name.startswith(MIG) or (single and name.removesuffix(SHARED) == GPU)]
        if (total := sum(every[name] for name in slices)) > 1:
            yield hit(place_of(tenant, slices[0]), who=tenant.who, number=total)


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
    for place, container in tenant.containers:
        for name, (number, part) in asked(container).items():
            pools = [pool for pool in tenant.selected if pool.resources and name in pool.resources]
            whole = name.removesuffix(SHARED)
            kinds = {(pool.sharing.replicas(whole) > 1, pool.sharing.refuses_more) for pool in pools}
            if number > 1 and kinds == {(True, refused)}:
                yield tenant.inside(place, "resources", part, name), name, number


@rule("GPU790", "warning", over="workload")
def folder_that_the_toolkit_writes(tenant: Tenant) -> Iterator[Hit]:
    """A container with GPUs mounts something read-only where the toolkit writes, in /etc/nvidia."""
    kinds = {"configMap", "secret", "projected", "downwardAPI", "image"}
    fixed = [one.get("name") for _, one in mappings(tenant.pod.get("volumes")) if kinds & one.keys()]
    for place, container in tenant.containers if tenant.offer.writes_etc_nvidia else ():
        for index, mount in mappings(container.get("volumeMounts")) if asked(container) else ():
            folder = str(mount.get("mountPath", "")).rstrip("/")
            if folder in WRITTEN and (mount.get("readOnly") is True or mount.get("name") in fixed):
                yield hit(tenant.at(*place, "volumeMounts", index, "mountPath"), who=tenant.who, folder=folder)
