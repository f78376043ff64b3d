"""gpustack preflight: nodes as they are before the stack is there, held against what the policy would bring to them.

Solves: a driver for which there is no image, a runtime that is too old, a second device plugin show after the sync, in
pods that wait. What nodes say of themselves is put into the policy, in the place of what that says of them, and its own
rules are asked again: what they find then, and did not before, is about these nodes. Rejected: rules over nodes, which
would say everything twice. What nobody looked at is listed, and never guessed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..api import keys
from ..api.expectations import Kind, kind_of
from ..catalog import gpus, nfd, oses
from ..checks.rule import rules_over
from ..cluster.expectations import Expected
from ..cluster.pool import ENGINES, Pool
from ..cluster.scheduling import excluded
from ..model import SEVERITIES, Body, Finding, few, grouped
from ..policy.language.driver import DriverSettings
from ..policy.language.spec import ClusterPolicySpec
from . import nodes
from .nodes import Hit
from .objects import OPERATOR, is_operator, of_kinds, of_server, repelled
from .state import State, called, labels, name_of
from .verify import folded, texts
from .why import NAMED

KINDS = (
    *(Kind("v1", "Node"), Kind("v1", "Namespace"), Kind("apps/v1", "DaemonSet"), Kind("apps/v1", "Deployment")),
    *(Kind("nvidia.com/v1", "ClusterPolicy"), Kind("nfd.k8s-sigs.io/v1alpha1", "NodeFeature")),
)
"""What is listed, in all namespaces."""
NFD_NODE = "nfd.node.kubernetes.io/node-name"
SHARE = 0.1
"""How much of a GPU's nominal memory may be missing: error correction takes 6 % where it is kept in memory (L4)."""


class Seen(NamedTuple):
    """What a node of POOL has, by the names of a pool's fields (`printed` has two more), and the TEXT brought."""

    pool: Pool
    node: str
    has: dict[str, Any]
    text: str = ""


def preflight(
    expected: Expected, state: State, brought: Mapping[str, str], counts: Callable[[Finding], bool]
) -> list[Finding]:
    """What stands against the policy on the nodes of STATE, the worst first. BROUGHT is what commands and nvidia-smi
    printed, by the node's name; of nvidia-smi another name will do. COUNTS: what holds today."""
    hits = [*of_kinds(state), *of_server(expected, state), *_operators(state)]
    hits += [*_others(expected, state), *_admitted(expected, state)]
    seen: list[Seen] = []
    modules = {labels(body).get(NFD_NODE): _modules(body) for body in state.of("NodeFeature")}
    for node in state.of("Node"):
        name = node["metadata"]["name"]
        text = f"{brought.get(name, '')}\n{modules.get(name, '')}"
        if pool := _pool_of(expected.cluster.pools, node):
            seen.append(Seen(pool, name, told(node) | printed(text), text))
            hits += [Hit("LIV204", why, name)] if (why := nodes.unready(node)) else []
            hits += _tolerated(expected, node)
    for pool, wanted in zip(expected.cluster.pools, expected.pools, strict=True):
        there = sum(each.pool is pool for each in seen)
        hits += nodes.number(wanted, there)
        hits += [] if there else [Hit("PRE202", f"no node is known to be of the pool {pool.name}", path=pool.path)]
    hits += [] if expected.cluster.pools else [Hit("PRE202", "the policy names no pools", path="spec.nodePools")]
    for name in brought.keys() - {each.node for each in seen}:
        has = printed(brought[name])
        own = [each for each in expected.cluster.pools if each.said.gpuProduct == has.get("gpuProduct", "")]
        seen += [Seen(each, name, has, brought[name]) for each in own]
        hits += [] if own else [Hit("PRE310", f"no node is called {name}, and no pool has its GPUs")]
    hits += (hit for each in seen for hit in (*_otherwise(each), *signs(each.pool, each.node, each.text)))
    findings = [*folded(hits, expected.namespace, {**texts(), **texts("preflight")["texts"]})]
    findings += _of_rules(expected.cluster.spec, seen, counts)
    return sorted(dict.fromkeys(findings), key=lambda each: SEVERITIES.index(each.severity))


def _modules(body: Body) -> str:
    """The kernel modules that node feature discovery has seen, as lsmod prints them; "" where it has told none."""
    flags = ((body.get("spec") or {}).get("features") or {}).get("flags") or {}
    loaded = (flags.get("kernel.loadedmodule") or {}).get("elements")
    return "\n".join(["Module Size", *(f"{name} " for name in loaded)]) if loaded else ""


def _tolerated(expected: Expected, node: Body) -> Iterator[Hit]:
    daemons = [body for body in expected.rendered if body["kind"] == "DaemonSet"]
    kept = [body["metadata"]["name"] for body in daemons if repelled(body["spec"]["template"]["spec"], node)]
    if kept:
        what, name = f"its taints keep out {few(kept, NAMED)}", node["metadata"]["name"]
        yield Hit("PRE203", what, name, "spec.daemonsets.tolerations")


def _pool_of(pools: Sequence[Pool], node: Body) -> Pool | None:
    """The pool of NODE, as far as its nodeSelector tells before the stack: the first that selects it already, or whose
    system it has, or any. One without a nodeSelector has nodes of which it is known that they have a GPU."""
    given, system = labels(node), told(node).get("os", "")
    fits = [pool for pool in pools if nodes.selects(pool.said.nodeSelector, given)]
    fits = [pool for pool in fits if pool.said.nodeSelector or nodes.has_gpu(node)]
    whole = [pool for pool in fits if nodes.selects(pool.selection, given)]
    alike = [pool for pool in fits if not pool.said.os or agrees("os", pool.said.os, system)]
    return next(iter([*whole, *alike, *fits]), None)


def told(node: Body) -> dict[str, Any]:
    """What NODE tells of itself, by the names of a pool's fields; what it doesn't tell is left out."""
    info, given = (node.get("status") or {}).get("nodeInfo") or {}, labels(node)
    named = f"{given.get(f'{keys.OS_RELEASE}ID', '')}{given.get(f'{keys.OS_RELEASE}VERSION_ID', '')}"
    tells: dict[str, Any] = {
        "os": named or oses.of_image(str(info.get("osImage") or "")),
        "kernel": nfd.kernel(str(info.get("kernelVersion") or "")),
        "arch": info.get("architecture"),
        "containerRuntime": info.get("containerRuntimeVersion"),
    }
    return {key: value for key, value in tells.items() if value}


def _otherwise(seen: Seen) -> Iterator[Hit]:
    """Where a node differs from what the policy says."""
    pool, has = seen.pool, dict(seen.has)
    memory, driver, product = has.pop("memory", 0), has.get("hostVersion"), has.get("gpuProduct", "")
    nominal = gpus.product(product).memory_gb if product in gpus.products() else 0
    if memory and nominal and abs(memory - nominal) > SHARE * nominal:
        what = f"{product} has {memory:.0f} GiB, and boards of that name have {nominal}"
        yield Hit("PRE403", what, seen.node, f"{pool.path}.gpuProduct")
    if driver and (pool.driver or not pool.runs):
        del has["hostVersion"]
        rule, end = ("PRE405", "policy installs one") if pool.driver else ("PRE406", "policy doesn't say which")
        yield Hit(rule, f"has driver {driver}; the {end}", seen.node, pool.driver.path if pool.driver else pool.path)
    for field, value in has.items():
        said, path = getattr(pool.said, field, None), f"{pool.path}.{field}"
        if field == "hostVersion" and pool.runs:
            said, path = pool.runs.version, pool.runs.path
        elif field == "containerRuntime" and not said:
            said, path = pool.runtime, "spec.cluster.containerRuntime"
        if said and not agrees(field, said, value):
            yield Hit("PRE201", f"{field} is {value}; the policy says {said}", seen.node, path)


def agrees(field: str, said: Any, has: Any) -> bool:
    """Whether a node that HAS this is what was SAID. Versions may be said or told in part, a runtime's not at all."""
    if field == "containerRuntime" and ":" not in said:
        return ENGINES.get(said) == ENGINES.get(has.partition(":")[0])
    if field not in {"os", "hostVersion"}:
        return bool(said == has)
    one, two = f"{said}.", f"{has}."
    return one.startswith(two) or two.startswith(one)


def _operators(state: State) -> Iterator[Hit]:
    """The operator: its Deployment, or what it is set to."""
    for body in (*state.of("Deployment"), *state.of("ClusterPolicy")):
        inert = keys.INERT in (body["metadata"].get("annotations") or {})
        theirs = body["kind"] == "ClusterPolicy" and body["apiVersion"].startswith(keys.NVIDIA) and not inert
        if theirs or is_operator(body):
            yield Hit("PRE101", f"{called(body)} is there")


def _others(expected: Expected, state: State) -> Iterator[Hit]:
    """DaemonSets of others, on nodes of this cluster, that do what the stack will do; but for the operator's own."""
    ours = {(kind_of(body), name_of(body)) for body in expected.rendered}
    operators = {body["metadata"].get("namespace") for body in state.of("Deployment") if OPERATOR in name_of(body)}
    for body in state.of("DaemonSet"):
        pod = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
        runs = not state.looked("Node") or any(not excluded(pod, labels(node), whole=True) for node in state.of("Node"))
        if (kind_of(body), name_of(body)) in ours or body["metadata"].get("namespace") in operators or not runs:
            continue
        images = [each.get("image") for key in ("containers", "initContainers") for each in pod.get(key) or []]
        text = " ".join([body["metadata"]["name"], *map(str, images)])
        section = next((key for key, sign in texts("preflight")["others"].items() if re.search(sign, text)), "")
        if section and _does(expected, section):
            yield Hit("PRE102", f"DaemonSet {'/'.join(name_of(body))} does what {section} of the policy will do")


def _does(expected: Expected, section: str) -> bool:
    """Whether the policy renders what SECTION describes."""
    if section == "driver":
        return bool(expected.cluster.container_drivers)
    return (section == "nfd" or not expected.cluster.dra) and getattr(expected.cluster.spec, section).enabled


def _admitted(expected: Expected, state: State) -> Iterator[Hit]:
    """Pod Security of the namespace, where the render doesn't set it itself."""
    spaces = (*state.of("Namespace"), *(each for each in expected.rendered if each.get("kind") == "Namespace"))
    level = {name_of(body)[1]: labels(body)[keys.ENFORCE] for body in spaces if keys.ENFORCE in labels(body)}
    if (said := level.get(expected.namespace, "privileged")) != "privileged":
        yield Hit("PRE103", f"the namespace {expected.namespace} has {keys.ENFORCE}={said}", path="spec.psa")


def _of_rules(spec: ClusterPolicySpec, seen: Iterable[Seen], counts: Callable[[Finding], bool]) -> Iterator[Finding]:
    """What rules say of SPEC with what nodes have in it, and do not say without."""
    known = {(each.rule, each.path, each.what) for each in _ruled(spec, counts)}
    for group in grouped(((each.pool.name, repr(each.has)), each) for each in seen).values():
        for hit in _ruled(_with(spec, group[0]), counts):
            if (hit.rule, hit.path, hit.what) not in known and hit.severity != "note":
                what = f"{few([each.node for each in group], NAMED)}: {hit.what}"
                yield Finding(hit.rule, hit.severity, what, path=hit.path, why=hit.why, remedy=hit.remedy)


def _ruled(spec: ClusterPolicySpec, counts: Callable[[Finding], bool]) -> list[Finding]:
    return [each for rule in rules_over("spec") for each in rule.findings(spec) if counts(each)]


def _with(spec: ClusterPolicySpec, seen: Seen) -> ClusterPolicySpec:
    """SPEC, in which the pool of SEEN says what its node has. A system that is said in more words stays."""
    has, said = {key: value for key, value in seen.has.items() if key != "memory"}, seen.pool.said
    if said.os and agrees("os", said.os, has.get("os", "")):
        has.pop("os", None)
    version = has.pop("hostVersion", None)
    if version and seen.pool.driver is None:
        has["driver"] = DriverSettings(hostVersion=version)
    pools = [said.model_copy(update=has) if each.name == said.name else each for each in spec.nodePools]
    return spec.model_copy(update={"nodePools": pools})


def asked_of(pool: Pool) -> Iterator[str]:
    """What has to be known of the hosts of POOL, by the names of the data file."""
    if pool.workload != "container":
        yield from ("iommu",) if pool.workload == "vm-passthrough" else ()
        return
    yield "mig-mode" if pool.said.sharing.mig is not None else "no-mig-mode"
    if pool.driver is not None:
        yield from ("nouveau",) if pool.driver.precompiled else ("nouveau", "secure-boot", "headers")
    elif pool.product is not None and pool.product.nvswitch:
        yield from ("fabric-manager", "fabric")


def signs(pool: Pool, node: str, text: str) -> Iterator[Hit]:
    """What TEXT, all that was brought from NODE of POOL, tells, and what it does not tell."""
    unknown = []
    for key in asked_of(pool):
        said = texts("preflight")["hosts"][key]
        if match := re.search(said["bad"], text, re.MULTILINE):
            yield Hit(said["id"], " ".join(match[0].split()), node, pool.path)
        elif not re.search(said["looked"], text, re.MULTILINE):
            unknown.append(said["called"])
    if unknown:
        yield Hit("PRE309", f"not looked at: {', '.join(unknown)}", node)


def printed(text: str) -> dict[str, Any]:
    """What an output of nvidia-smi in TEXT tells, by the names of a pool's fields; `hostVersion` is the driver's, and
    `memory` is in GiB. Empty for a TEXT without such an output."""
    products = re.findall(r"<product_name>([^<]*)<", text)
    driver = re.search(r"<driver_version>([^<]*)<", text)
    memory = re.search(r"<fb_memory_usage>\s*<total>\s*(\d+) MiB", text)
    if not products or not driver:
        return {}
    known = {"gpuProduct": products[0].replace(" ", "-"), "gpusPerNode": len(products), "hostVersion": driver[1]}
    return known | ({"memory": int(memory[1]) / 1024} if memory else {})
