"""Inputs of the NodePolicies: what the nodes of each pool are to be, and how fast they may get there.

One for each pool; pools that select the same nodes and want the same of them share one, which is called like the first
of them. What such pools only expect to find (the GPU, what a node offers) may differ: then it isn't known. A cluster
without pools has one NodePolicy for all nodes with a GPU.

Objects are made with the structs that the program reads them with (gpustack/api/node_policy.py), every value spelled
out, so that neither an old API server's defaults nor a new program's change what a policy means.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ...api import keys, objects
from ...api import node_policy as policy
from ...cluster.pool import EVERYWHERE, Pool
from ...cluster.resolve import Cluster
from ...model import FindingsError
from ...policy.language import reconciler
from ..driver import driver_inputs as section_driver
from ..driver import nvidia_drivers_inputs as nvidia_drivers
from ..driver.driver_inputs import DriverInputs
from ..driver.driver_settings_inputs import DriverCommon, DriverPod
from ..driver.nvidia_drivers_inputs import NvidiaDriversInputs
from ..parts.common_inputs import Inputs, dumped, owned_crds
from ..plugin.configs_inputs import layout_digest
from ..toolkit.toolkit_inputs import of_containers
from .rollout_inputs import health, upgrade

CRD = "nodepolicies.gpustack.dev"


class PolicyInputs(Inputs):
    """One NodePolicy: its name and its spec, less the revisions of driver DaemonSets, which the construct knows."""

    name: str
    spec: dict[str, Any]


class NodePoliciesInputs(Inputs):
    """`crds` are the CRDs to bring; `driver` and `drivers` are what the revisions are computed from."""

    crds: tuple[str, ...] = ()
    policies: tuple[PolicyInputs, ...]
    driver: DriverInputs | None = None
    drivers: NvidiaDriversInputs | None = None


class Installed(NamedTuple):
    """A driver DaemonSet's pod, with what holds for its driver."""

    pod: DriverPod
    settings: DriverCommon


class Drivers(NamedTuple):
    """The inputs of the components that render drivers."""

    section: DriverInputs | None
    several: NvidiaDriversInputs | None


def from_cluster(cluster: Cluster) -> NodePoliciesInputs | None:
    """None where the program doesn't run, or where a driver can't be rendered: its own component says why."""
    spec, drivers = cluster.spec, drivers_of(cluster)
    if drivers is None:
        return None
    made = [node_policy(pool, drivers) for pool in cluster.nodes]
    policies = tuple(PolicyInputs(name=(each.pools or [EVERYWHERE])[0], spec=plain(each)) for each in folded(made))
    crds = owned_crds(spec, (CRD,))
    return NodePoliciesInputs(crds=crds, policies=policies, driver=drivers.section, drivers=drivers.several)


def drivers_of(cluster: Cluster) -> Drivers | None:
    """What renders the drivers that the program rolls; None where it doesn't run, or one can't be rendered."""
    if not reconciler.runs(cluster.spec):
        return None
    try:
        return Drivers(section_driver.from_cluster(cluster), nvidia_drivers.from_cluster(cluster))
    except FindingsError:
        return None


def node_policy(pool: Pool, drivers: Drivers) -> policy.Spec:
    """What the nodes of POOL are to be."""
    spec, whole = pool.spec, pool.index is None
    section, count = spec.reconciler, pool.said.count
    assert section is not None, "the program runs"  # noqa: S101 - narrows the type
    manages = pool.cluster.mig_manager
    return policy.Spec(
        pools=[] if whole else [pool.name],
        minNodes=count.min if count else 0,
        nodeSelector=pool.selection,
        workload=pool.workload,
        labelling=reconciler.labelling(spec) == "program",
        components=list(pool.components),
        labels=pool.labels,
        migManager=manages,
        migReboot=manages and any(each.name == "WITH_REBOOT" and each.value == "true" for each in spec.migManager.env),
        mig=mig(pool) if manages else None,
        migDefault=(spec.migManager.config.default or "") if manages else "",
        gpu=gpu(pool),
        driver=driver_policy(pool, drivers),
        upgradeAnnotation=pool.budget.automatic and any(each is not None for each in drivers),
        clientNamespaces=sorted(set(section.clientNamespaces)),
        upgrade=upgrade(section, pool.budget),
        fleet=policy.Limits(maxParallel=pool.cluster.fleet.parallel, maxUnavailable=pool.cluster.fleet.unavailable),
        install=policy.Install(maxParallel=section.installParallel),
        startupTaints=[objects.Taint(**each) for each in dumped(section.startupTaints)],
        deadlines=policy.Deadlines(**section.deadlines.model_dump(exclude_none=True), migReboot=section.deadlines.mig),
        health=health(section),
        graceSeconds=section.labelGraceSeconds,
    )


def gpu(pool: Pool) -> policy.Gpu:
    """What is known of the GPUs of POOL. A number that isn't known is 0: some."""
    offers = {} if pool.index is None else pool.capacity.per_node
    return policy.Gpu(
        product=pool.said.gpuProduct or "",
        migCapable=pool.product.mig_capable if pool.product else None,
        resources={name: count or 0 for name, count in offers.items()},
        runtimeClasses=list(of_containers(pool.cluster)),
    )


def mig(pool: Pool) -> policy.Mig | None:
    """The MIG layout of POOL, with its content's name."""
    cut = pool.said.sharing.mig
    if cut is None:
        return None
    return policy.Mig(config=cut.config or pool.name, digest=layout_digest(pool))


def driver_policy(pool: Pool, drivers: Drivers) -> policy.Driver | None:
    """The driver DaemonSets that may run on nodes of POOL; None where the nodes bring theirs, or none is for them.

    The vGPU host manager is not among them: it drives the GPUs of virtual machines."""
    brought = bool(pool.cluster.container_drivers) and any(one is not None for one in drivers)
    if pool.workload != "container" or not brought:
        return None
    if pool.index is not None and not (pool.driver and pool.driver.for_containers):
        return None
    known = {} if pool.index is None else {**pool.known_labels, **pool.selection}
    fitting = [each for each in installed(pool, drivers) if fits(each.pod.node_selector, known)]
    digests = all(each is None or each.common.traits.driver_digest for each in drivers)
    return policy.Driver(
        daemonSets=[policy.DaemonRevision(name=each.pod.name) for each in fitting],
        digestRestart=digests and not any(each.settings.precompiled for each in fitting),
    )


def installed(pool: Pool, drivers: Drivers) -> Iterator[Installed]:
    """The DaemonSets that are for POOL as far as the driver's owner goes, whatever its nodes run."""
    if drivers.section is not None:
        own = [each for each in drivers.section.pools if pool.driver and each.owner == pool.driver.owner]
        shared = [Installed(pod, drivers.section.settings) for pod in drivers.section.pods]
        yield from [Installed(each.pod, each.settings) for each in own] or shared
    if drivers.several is not None:
        number = pool.driver.number if pool.driver else None
        name = pool.spec.drivers[number].name if number is not None else ""
        for each in drivers.several.drivers:
            if each.settings.type != "vgpu-host-manager" and (pool.index is None or each.name == name):
                yield from (Installed(pod, each.settings) for pod in each.pods)


def fits(selector: Mapping[str, str], known: Mapping[str, str]) -> bool:
    """Whether nodes with the labels KNOWN may match SELECTOR; a label that isn't known may be anything."""
    return all(known.get(key, value) == value for key, value in selector.items() if key != keys.DRIVER_OWNER)


def folded(made: Iterable[policy.Spec]) -> list[policy.Spec]:
    """MADE with those that select the same nodes and want the same of them as one."""
    specs: list[policy.Spec] = []
    for each in made:
        same = next((at for at, other in enumerate(specs) if wanted(other) == wanted(each)), None)
        if same is None:
            specs.append(each)
        else:
            specs[same] = both(specs[same], each)
    return specs


def wanted(each: policy.Spec) -> dict[str, Any]:
    """What EACH wants of which nodes, less what it only expects to find there."""
    data = plain(each)
    return {**data, "pools": [], "minNodes": 0, "gpu": {"runtimeClasses": data["gpu"]["runtimeClasses"]}}


def both(first: policy.Spec, second: policy.Spec) -> policy.Spec:
    """FIRST for the pools of SECOND too, which wants the same."""
    one, other = first.gpu, second.gpu
    resources = {
        name: count if count == other.resources[name] else 0
        for name, count in one.resources.items()
        if name in other.resources
    }
    merged = msgspec.structs.replace(
        one,
        product=one.product if one.product == other.product else "",
        migCapable=one.migCapable if one.migCapable == other.migCapable else None,
        resources=resources,
    )
    pools, nodes = [*first.pools, *second.pools], first.minNodes + second.minNodes
    return msgspec.structs.replace(first, pools=pools, minNodes=nodes, gpu=merged)


def plain(value: Any) -> Any:
    """A struct as plain data, with every default written out and without what is None."""
    if isinstance(value, msgspec.Struct):
        fields = ((each.encode_name, getattr(value, each.name)) for each in msgspec.structs.fields(value))
        return {name: plain(item) for name, item in fields if item is not None}
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
