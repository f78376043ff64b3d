"""The nodes of each pool: whether they are there, are labelled, have their driver, offer what the policy comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..api import keys
from ..api.objects import count
from ..model import Body
from .state import State, labels

if TYPE_CHECKING:
    from ..cluster.pool import Pool
    from ..cluster.resolve import Cluster

DRIVER_VERSION = "nvidia.com/cuda.driver-version.full"
"""GPU feature discovery's label with the version of the driver that is loaded."""
MIG_MANAGER = f"{keys.DEPLOY}mig-manager"


@dataclass(frozen=True)
class Hit:
    """Something amiss: the id of its text, what it is, on which node ("" for none), and the policy's path."""

    id: str
    what: str
    node: str = ""
    path: str = ""


def has_gpu(node: Body) -> bool:
    """Whether node feature discovery sees an NVIDIA GPU (reconciler.md L7)."""
    return any(labels(node).get(key) == "true" for key in keys.GPU_FEATURES)


def busy(node: Body) -> bool:
    """Whether the reconciler works on NODE."""
    return keys.OPERATION in (node["metadata"].get("annotations") or {})


def ready(node: Body) -> bool:
    """Whether the kubelet of NODE says that it works."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def of_pools(cluster: Cluster, state: State) -> Iterator[Hit]:
    """Every node with a GPU, and every pool."""
    if not state.looked("Node"):
        return
    nodes = {node["metadata"]["name"]: node for node in state.of("Node")}
    members: dict[str, list[str]] = {name: [] for name in nodes}
    for pool in cluster.pools:
        own = [name for name, node in nodes.items() if selects(pool.selection, labels(node))]
        yield from number(pool, len(own))
        for name in own:
            members[name].append(pool.name)
            if len(members[name]) == 1:
                yield from _node(pool, nodes[name])
    for name, pools in members.items():
        if len(pools) > 1:
            yield Hit("LIV203", f"selected by the pools {', '.join(pools)}", name)
        elif not pools and cluster.pools and has_gpu(nodes[name]):
            yield Hit("LIV202", "in no pool", name, "spec.nodePools")


def selects(selector: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether labels that are GIVEN have all of SELECTOR."""
    return all(given.get(key) == value for key, value in selector.items())


def number(pool: Pool, there: int) -> Iterator[Hit]:
    """That POOL should not have as many nodes as are THERE."""
    said = pool.said.count
    if said is not None and not said.min <= there <= (said.max if said.max is not None else there):
        span = f"{said.min}" if said.min == said.max else f"{said.min} to {'any' if said.max is None else said.max}"
        what = f"the pool {pool.name} has {there} nodes; the policy says {span}"
        yield Hit("LIV201", what, path=f"{pool.path}.count")


def _node(pool: Pool, node: Body) -> Iterator[Hit]:
    """What is amiss on a NODE of POOL. One that can't work, or is worked on, is asked no more than that."""
    name, spec = node["metadata"]["name"], node.get("spec") or {}
    if busy(node):
        yield Hit("LIV604", "an operation is open", name)
        return
    if not ready(node):
        yield Hit("LIV204", "not Ready", name)
        return
    if spec.get("unschedulable") and keys.CORDONED not in (node["metadata"].get("annotations") or {}):
        yield Hit("LIV205", "cordoned", name)
    yield from _labelled(pool, node)
    yield from _tainted(pool, spec.get("taints") or [], name)
    yield from _driven(pool, node)
    yield from _offered(pool, node)


def _labelled(pool: Pool, node: Body) -> Iterator[Hit]:
    name, given = node["metadata"]["name"], labels(node)
    lacks = [key for key in pool.all_labels if key not in given]
    if lacks:
        yield Hit("LIV301", f"lacks {', '.join(lacks)}, which the nodes of pool {pool.name} have", name, pool.path)
    for key, value in pool.all_labels.items():
        if given.get(key, value) != value:
            path = f"{pool.path}.sharing" if key == keys.PLUGIN_CONFIG else pool.path
            yield Hit("LIV301", f"has {key}={given[key]}; the pool {pool.name} has {key}={value}", name, path)
    product, wanted = given.get(keys.PRODUCT, ""), pool.said.gpuProduct or ""
    if product and wanted and product != wanted and not product.startswith(f"{wanted}-"):
        what = f"its GPUs are {product}; the pool {pool.name} says {wanted}"
        yield Hit("LIV302", what, name, f"{pool.path}.gpuProduct")


def _tainted(pool: Pool, taints: list[Any], name: str) -> Iterator[Hit]:
    there = {(each.get("key"), each.get("effect")) for each in taints}
    for index, taint in enumerate(pool.said.taints):
        if (taint.key, taint.effect) not in there:
            yield Hit("LIV303", f"lacks the taint {taint.key}:{taint.effect}", name, f"{pool.path}.taints[{index}]")
    section = pool.spec.reconciler
    for taint in section.startupTaints if section else ():
        if (taint.key, taint.effect) in there:
            yield Hit("LIV304", f"still has {taint.key}:{taint.effect}", name, "spec.reconciler.startupTaints")


def _driven(pool: Pool, node: Body) -> Iterator[Hit]:
    """The driver by its label: a branch alone fits every version of it, and a digest says nothing."""
    driver, loaded = pool.runs, labels(node).get(DRIVER_VERSION, "")
    if driver is None or not loaded or not driver.numbers:
        return
    numbers = tuple(int(part) for part in loaded.split(".") if part.isdigit())
    if numbers[: len(driver.numbers)] != driver.numbers and driver.brought:
        what = f"brings driver {loaded}; the policy says {driver.version}"
        yield Hit("LIV405", what, node["metadata"]["name"], driver.path)
    elif numbers[: len(driver.numbers)] != driver.numbers:
        what = f"has driver {loaded}; the pool {pool.name} gets {driver.version}"
        yield Hit("LIV402", what, node["metadata"]["name"], pool.path)


def _offered(pool: Pool, node: Body) -> Iterator[Hit]:
    name, given = node["metadata"]["name"], labels(node)
    state, wanted = given.get(keys.MIG_STATE, ""), pool.said.sharing.mig
    if state and state != "success":
        yield Hit("LIV502", f"{keys.MIG_STATE} is {state}", name, f"{pool.path}.sharing")
    elif wanted is not None and given.get(keys.PRESENT) == "true" and not state:
        yield Hit("LIV502", f"{keys.MIG_STATE} is not set", name, f"{pool.path}.sharing")
    expected = pool.capacity.per_node
    if not expected:
        return
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    offers = {key: count(str(value)) for key, value in allocatable.items() if key.startswith(keys.NVIDIA)}
    for resource, number in expected.items():
        has = offers.pop(resource, 0)
        if has != number if number is not None else has == 0:
            told = "some" if number is None else number
            yield Hit("LIV501", f"offers {has} {resource}; the pool {pool.name} should have {told}", name, pool.path)
    for resource, has in offers.items():
        if has:
            yield Hit("LIV501", f"offers {has} {resource}; the pool {pool.name} should have none", name, pool.path)
