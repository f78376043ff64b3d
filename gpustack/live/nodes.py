"""The nodes of each pool: whether they are there, are labelled, have their driver, offer what the policy comes to."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..api import keys
from ..api.expectations import Expectation, Nodes
from ..api.objects import count
from ..model import Body, few
from .state import State, labels

DRIVER_VERSION = "nvidia.com/cuda.driver-version.full"
"""GPU feature discovery's label with the version of the driver that is loaded."""
MIG_MANAGER = f"{keys.DEPLOY}mig-manager"
OF_GPUS = re.compile(r"nvidia\.com/(p?gpu|mig-.+|[A-Z].*|[0-9a-f]{4})(\.shared)?")
"""Resources of NVIDIA's device plugins; the network operator's have the same domain (nvidia.com/hostdev)."""
PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure")


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


def ready(body: Body) -> bool:
    """Whether a node works, as its kubelet says, or a pod does."""
    return condition(body, "Ready").get("status") == "True"


def condition(body: Body, kind: str) -> Mapping[str, str]:
    """The condition of BODY of a KIND; empty for none."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == kind), {})


def unready(node: Body) -> str:
    """That NODE isn't Ready, with its kubelet's words, if there are any; "" where it is."""
    said = condition(node, "Ready").get("message")
    return "" if ready(node) else f"not Ready: {said}" if said else "not Ready"


def of_pools(expected: Expectation, state: State) -> Iterator[Hit]:
    """Every node with a GPU, and every pool."""
    if not state.looked("Node"):
        return
    nodes = {node["metadata"]["name"]: node for node in state.of("Node")}
    members: dict[str, list[str]] = {name: [] for name in nodes}
    for pool in expected.pools:
        own = [name for name, node in nodes.items() if selects(pool.selection, labels(node))]
        had = [name for name in own if has_gpu(nodes[name]) or keys.PRESENT in labels(nodes[name])]
        # People say by labels of their own which nodes have GPUs; those of a system or a kernel may well have none.
        own = had or (own if any(not key.startswith(keys.FEATURES) for key in pool.selection) else [])
        yield from number(pool, len(own), nodes.values())
        for name in own:
            members[name].append(pool.name)
            if len(members[name]) == 1:
                yield from _node(pool, nodes[name])
    for name, pools in members.items():
        if len(pools) > 1:
            yield Hit("LIV203", f"selected by the pools {', '.join(pools)}", name)
        elif not pools and expected.pools and has_gpu(nodes[name]):
            yield Hit("LIV202", "in no pool", name, "spec.nodePools")


def selects(selector: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether labels that are GIVEN have all of SELECTOR."""
    return all(given.get(key) == value for key, value in selector.items())


def number(pool: Nodes, there: int, nodes: Iterable[Body] = ()) -> Iterator[Hit]:
    """That POOL should not have as many nodes as are THERE, and which of NODES are only not seen to be its own."""
    least, most = pool.least, pool.most
    if least is not None and most is not None and not least <= there <= most:
        span = f"{least}" if least == most else f"{least} to {most}"
        what = f"the pool {pool.name} has {there} nodes; the policy says {span}"
        nearly = few([*_nearly(pool, nodes)], 3, "; ") if there < least else ""
        yield Hit("LIV201", f"{what}; {nearly}" if nearly else what, path=f"{pool.path}.count")


def _nearly(pool: Nodes, nodes: Iterable[Body]) -> Iterator[str]:
    """What keeps each of NODES out of POOL that has all labels which people give by the policy, but not those of node
    feature discovery: of its system, its kernel."""
    given = {key: value for key, value in pool.selection.items() if not key.startswith(keys.FEATURES)}
    for node in nodes if given else ():
        has = labels(node)
        wrong = {key: value for key, value in pool.selection.items() if has.get(key) != value}
        if wrong and not wrong.keys() & given.keys():
            told = [f"{k}={v} ({f'it has {has[k]}' if k in has else 'it lacks the label'})" for k, v in wrong.items()]
            yield f"the node {node['metadata']['name']} would be one with {', '.join(told)}"


def _node(pool: Nodes, node: Body) -> Iterator[Hit]:
    """What is amiss on a NODE of POOL. One that can't work, or is worked on, is asked no more than that."""
    name, spec = node["metadata"]["name"], node.get("spec") or {}
    if busy(node):
        yield Hit("LIV604", "an operation is open", name)
        return
    if labels(node).get(keys.OPERANDS) == "false":
        yield Hit("LIV605", f"{keys.OPERANDS}=false keeps the whole stack off it", name)
        return
    if why := unready(node):
        yield Hit("LIV204", why, name)
        return
    pressed = [kind for kind in PRESSURES if condition(node, kind).get("status") == "True"]
    if pressed:
        yield Hit("LIV206", f"has {', '.join(pressed)}", name)
    if spec.get("unschedulable") and keys.CORDONED not in (node["metadata"].get("annotations") or {}):
        yield Hit("LIV205", "cordoned", name)
    yield from _labelled(pool, node)
    yield from _tainted(pool, spec.get("taints") or [], name)
    yield from _driven(pool, node)
    yield from _offered(pool, node)


def _labelled(pool: Nodes, node: Body) -> Iterator[Hit]:
    name, given = node["metadata"]["name"], labels(node)
    out = str((node["metadata"].get("annotations") or {}).get(keys.OPT_OUT) or "")
    meant = {f"{keys.DEPLOY}{each.strip()}" for each in out.split(",") if each.strip()}
    if meant:
        yield Hit("LIV605", f"{keys.OPT_OUT} keeps {out} off it", name)
    lacks = [key for key in pool.labels if key not in given and key not in meant]
    if lacks:
        yield Hit("LIV301", f"lacks {', '.join(lacks)}, which the nodes of pool {pool.name} have", name, pool.path)
    for key, value in pool.labels.items():
        if given.get(key, value) != value and key not in meant:
            path = f"{pool.path}.sharing" if key == keys.PLUGIN_CONFIG else pool.path
            yield Hit("LIV301", f"has {key}={given[key]}; the pool {pool.name} has {key}={value}", name, path)
    product, wanted = given.get(keys.PRODUCT, ""), pool.product
    if product and wanted and product != wanted and not product.startswith(f"{wanted}-"):
        what = f"its GPUs are {product}; the pool {pool.name} says {wanted}"
        yield Hit("LIV302", what, name, f"{pool.path}.gpuProduct")


def _tainted(pool: Nodes, taints: list[Any], name: str) -> Iterator[Hit]:
    there = {(each.get("key"), each.get("effect")) for each in taints}
    for index, (key, effect) in enumerate(pool.taints):
        if (key, effect) not in there:
            yield Hit("LIV303", f"lacks the taint {key}:{effect}", name, f"{pool.path}.taints[{index}]")
    for key, effect, path in pool.startup:
        if (key, effect) in there:
            yield Hit("LIV304", f"still has {key}:{effect}", name, path)


def _driven(pool: Nodes, node: Body) -> Iterator[Hit]:
    """The driver by its label: a branch alone fits every version of it, and a digest says nothing."""
    loaded = labels(node).get(DRIVER_VERSION, "")
    numbers = [int(part) for part in loaded.split(".") if part.isdigit()]
    if not loaded or numbers[: len(pool.driver)] == [*pool.driver]:
        return
    has = f"has driver {loaded}; the pool {pool.name} gets {pool.version}"
    brings = f"brings driver {loaded}; the policy says {pool.version}"
    rule, what = ("LIV405", brings) if pool.brought else ("LIV402", has)
    yield Hit(rule, what, node["metadata"]["name"], pool.driver_path)


def _offered(pool: Nodes, node: Body) -> Iterator[Hit]:
    name, given = node["metadata"]["name"], labels(node)
    state, due = given.get(keys.MIG_STATE, ""), pool.cut and given.get(keys.PRESENT) == "true"
    if state not in {"", "success"} or (due and not state):
        yield Hit("LIV502", f"{keys.MIG_STATE} is {state or 'not set'}", name, f"{pool.path}.sharing")
    if not pool.offers:
        return
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    offers = {key: count(str(value)) for key, value in allocatable.items() if key.startswith(keys.NVIDIA)}
    for resource, number in pool.offers.items():
        has = offers.pop(resource, 0)
        if has != number if number >= 0 else has == 0:
            told = "some" if number < 0 else number
            yield Hit("LIV501", f"offers {has} {resource}; the pool {pool.name} should have {told}", name, pool.path)
    for resource, has in offers.items():
        if has and OF_GPUS.fullmatch(resource):
            yield Hit("LIV501", f"offers {has} {resource}; the pool {pool.name} should have none", name, pool.path)
