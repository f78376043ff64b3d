"""gpustack preflight: nodes as they are before the stack is there, held against what the policy would bring to them.

Solves: a driver for which there is no image, a runtime that is too old, a second device plugin show after the sync, in
pods that wait. What nodes say of themselves is put into the policy, in the place of what that says of them, and its own
rules are asked anew: what they find then, and did not before, is about these nodes. Rejected: rules over nodes, which
would say everything twice. What nobody looked at is listed, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..catalog import nfd, oses
from ..checks.rule import rules_over
from ..cluster.pool import ENGINES
from ..model import Body, Finding
from . import nodes, reports
from .nodes import Hit, labels
from .objects import OPERATOR, of_kinds, repelled
from .state import Kind, State, kind_of, name_of
from .verify import Expected, folded, texts
from .why import selected, some

if TYPE_CHECKING:
    from ..cluster.pool import Pool
    from ..policy.language.spec import ClusterPolicySpec

KINDS = (
    *(Kind("v1", "Node"), Kind("v1", "Namespace"), Kind("apps/v1", "DaemonSet"), Kind("apps/v1", "Deployment")),
    *(Kind("nvidia.com/v1", "ClusterPolicy"), Kind("nfd.k8s-sigs.io/v1alpha1", "NodeFeature")),
)
"""What is listed, in all namespaces."""
SYSTEM = "feature.node.kubernetes.io/system-os_release."
ENFORCE = "pod-security.kubernetes.io/enforce"
OWN = ("feature.node.kubernetes.io/", "nvidia.com/")
"""Labels that the stack brings, which nodes needn't have before."""


class Seen(NamedTuple):
    """What a node of POOL has, by the names of a pool's fields; `hostVersion` is that of the driver."""

    pool: Pool
    node: str
    has: dict[str, Any]


def preflight(
    expected: Expected,
    state: State,
    hosts: Mapping[str, str],
    smi: Mapping[str, str],
    counts: Callable[[Finding], bool],
) -> list[Finding]:
    """What stands against the policy on the nodes of STATE, the worst first. HOSTS has what commands printed on nodes,
    by the node's name, SMI outputs of `nvidia-smi -q -x`, by node or by any other name. COUNTS: what holds today."""
    hits = [*of_kinds(state), *_operators(state), *_others(expected, state), *_admitted(expected, state)]
    if not expected.cluster.pools:
        hits.append(Hit("PRE202", "the policy names no pools of nodes", path="spec.nodePools"))
    seen: list[Seen] = []
    at: dict[str, Pool] = {}
    for pool in expected.cluster.pools:
        members = [node for node in state.of("Node") if _pool_of(expected.cluster.pools, node) is pool]
        at |= {node["metadata"]["name"]: pool for node in members}
        seen += [Seen(pool, node["metadata"]["name"], told(node)) for node in members]
        hits += nodes.number(pool, len(members))
        hits += [] if members else [Hit("PRE202", f"no node is known to be of the pool {pool.name}", path=pool.path)]
        hits += [Hit("LIV204", "not Ready", node["metadata"]["name"]) for node in members if not nodes.ready(node)]
        hits += (hit for node in members for hit in _tolerated(expected, node))
        hits += reports.of_hosts(pool, members, state, hosts)
    hits += [Hit("PRE310", f"no node of a pool is called {name}") for name in hosts if name not in at]
    for name, text in smi.items():
        more, has = reports.of_smi(name, text, at.get(name), expected.cluster.pools)
        hits += more
        seen += [Seen(pool, name, fields) for pool, fields in has]
    hits += (hit for each in seen for hit in _otherwise(each))
    found = [*folded(hits, expected.namespace, {**texts(), **reports.facts()["texts"]})]
    found += _of_rules(expected.cluster.spec, seen, counts)
    return sorted(dict.fromkeys(found), key=lambda each: ("error", "warning", "note").index(each.severity))


def _tolerated(expected: Expected, node: Body) -> Iterator[Hit]:
    daemons = [body for body in expected.rendered if body["kind"] == "DaemonSet"]
    kept = [body["metadata"]["name"] for body in daemons if repelled(body["spec"]["template"]["spec"], node)]
    if kept:
        yield Hit(
            "PRE203", f"its taints keep out {some(kept)}", node["metadata"]["name"], "spec.daemonsets.tolerations"
        )


def _pool_of(pools: Sequence[Pool], node: Body) -> Pool | None:
    """The pool of NODE: of those that may select it the first that does already, or whose system it has, or any."""
    fitting, system = [pool for pool in pools if _is_of(pool, node)], told(node).get("os", "")
    whole = [pool for pool in fitting if nodes.selects(pool.selection, labels(node))]
    alike = [pool for pool in fitting if not pool.said.os or agrees("os", pool.said.os, system)]
    return next(iter([*whole, *alike, *fitting]), None)


def _is_of(pool: Pool, node: Body) -> bool:
    """Whether POOL selects NODE by what that has before the stack. One that selects nothing has those of which it is
    known that they have a GPU."""
    wanted, given = pool.said.nodeSelector, labels(node)
    before = [key for key in wanted if not key.startswith(OWN)]
    fits = all(given.get(key, None if key in before else value) == value for key, value in wanted.items())
    return fits and (bool(before) or nodes.has_gpu(node))


def told(node: Body) -> dict[str, Any]:
    """What NODE tells of itself, by the names of a pool's fields; what it doesn't tell is left out."""
    info, given = (node.get("status") or {}).get("nodeInfo") or {}, labels(node)
    named = f"{given.get(f'{SYSTEM}ID', '')}{given.get(f'{SYSTEM}VERSION_ID', '')}"
    found: dict[str, Any] = {
        "os": named or oses.of_image(str(info.get("osImage") or "")),
        "kernel": nfd.kernel(str(info.get("kernelVersion") or "")),
        "arch": info.get("architecture"),
        "containerRuntime": info.get("containerRuntimeVersion"),
    }
    return {key: value for key, value in found.items() if value}


def _otherwise(seen: Seen) -> Iterator[Hit]:
    """What a node has otherwise than the policy says."""
    pool = seen.pool
    for field, has in seen.has.items():
        said, path = getattr(pool.said, field, None), f"{pool.path}.{field}"
        if field == "hostVersion":
            said, path = (pool.runs.version, pool.runs.path) if pool.runs else (None, path)
        elif field == "containerRuntime" and not said:
            said, path = pool.runtime or pool.engine, "spec.cluster.containerRuntime"
        if said and not agrees(field, said, has):
            yield Hit("PRE201", f"{field} is {has}; the policy says {said}", seen.node, path)


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
        name = {body["metadata"]["name"], labels(body).get("app.kubernetes.io/component")}
        if body["kind"] == "ClusterPolicy" or OPERATOR in name:
            yield Hit("PRE101", f"{body['kind']} {'/'.join(filter(None, name_of(body)))} is there")


def _others(expected: Expected, state: State) -> Iterator[Hit]:
    """DaemonSets of others, on nodes of this cluster, that do what the stack will do; but for the operator's own."""
    ours = {(kind_of(body), name_of(body)) for body in expected.rendered}
    operators = {body["metadata"].get("namespace") for body in state.of("Deployment") if OPERATOR in name_of(body)}
    for body in state.of("DaemonSet"):
        pod = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
        runs = not state.looked("Node") or any(selected(pod, labels(node)) for node in state.of("Node"))
        if (kind_of(body), name_of(body)) in ours or body["metadata"].get("namespace") in operators or not runs:
            continue
        images = [each.get("image") for key in ("containers", "initContainers") for each in pod.get(key) or []]
        text = " ".join([body["metadata"]["name"], *map(str, images)])
        section = next((key for key, sign in reports.facts()["others"].items() if re.search(sign, text)), "")
        if section and _does(expected, section):
            yield Hit("PRE102", f"DaemonSet {'/'.join(name_of(body))} does what {section} of the policy will do")


def _does(expected: Expected, section: str) -> bool:
    """Whether the policy renders what SECTION describes."""
    if section == "driver":
        return bool(expected.cluster.container_drivers)
    return (section == "nfd" or not expected.cluster.dra) and getattr(
        expected.cluster.spec, section
    ).enabled is not False


def _admitted(expected: Expected, state: State) -> Iterator[Hit]:
    """Pod Security of the namespace, where the render doesn't set it itself."""
    spaces = (*state.of("Namespace"), *(each for each in expected.rendered if each.get("kind") == "Namespace"))
    level = {name_of(body)[1]: labels(body)[ENFORCE] for body in spaces if ENFORCE in labels(body)}
    if (said := level.get(expected.namespace, "privileged")) != "privileged":
        yield Hit("PRE103", f"the namespace {expected.namespace} has {ENFORCE}={said}", path="spec.psa")


def _of_rules(spec: ClusterPolicySpec, seen: Iterable[Seen], counts: Callable[[Finding], bool]) -> Iterator[Finding]:
    """What rules say of SPEC with what nodes have in it, and do not say without."""
    known = {(each.rule, each.path, each.what) for each in _ruled(spec, counts)}
    alike: dict[tuple[str, str], list[Seen]] = {}
    for each in seen:
        alike.setdefault((each.pool.name, repr(each.has)), []).append(each)
    for group in alike.values():
        for found in _ruled(_with(spec, group[0]), counts):
            if (found.rule, found.path, found.what) not in known and found.severity != "note":
                what = f"{some([each.node for each in group])}: {found.what}"
                yield Finding(found.rule, found.severity, what, path=found.path, why=found.why, remedy=found.remedy)


def _ruled(spec: ClusterPolicySpec, counts: Callable[[Finding], bool]) -> list[Finding]:
    return [each for rule in rules_over("spec") for each in rule.findings(spec) if counts(each)]


def _with(spec: ClusterPolicySpec, seen: Seen) -> ClusterPolicySpec:
    """SPEC, in which the pool of SEEN says what its node has. A system that is said in more words stays."""
    from ..policy.language.driver import DriverSettings

    has, said = dict(seen.has), seen.pool.said
    if said.os and agrees("os", said.os, has.get("os", "")):
        del has["os"]
    if version := has.pop("hostVersion", None):
        has["driver"] = DriverSettings(hostVersion=version)
    pools = [said.model_copy(update=has) if each.name == said.name else each for each in spec.nodePools]
    return spec.model_copy(update={"nodePools": pools})
