"""Nodes that nothing was rendered for: what they lack, and the lines of a policy that would cover them (reconciler.md
A14)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...api import keys as node_keys
from ...api.node_policy import NodePolicy
from ...reconciler.core.view import View
from .reading import Look


@dataclass
class Gap:
    """Nodes that the same lines would cover. `near` is the policy that they belong to, or nearly do."""

    near: str
    lacks: tuple[str, ...]
    lines: tuple[str, ...]
    nodes: list[str] = field(default_factory=list)


def gaps(look: Look) -> list[Gap]:
    """What is not covered, nodes with the same remedy together."""
    by_remedy: dict[tuple[Any, ...], Gap] = {}
    for view in look.outlook.views:
        gap = _gap(look, view)
        if gap is not None:
            by_remedy.setdefault((gap.near, gap.lacks, gap.lines), gap).nodes.append(view.name)
    return list(by_remedy.values())


def _gap(look: Look, view: View) -> Gap | None:
    """What VIEW's node lacks; None where it is covered, or several policies want it."""
    policy = view.policy
    if not view.gpu or len(view.policies) > 1 or (policy and (view.driver or not policy.spec.driver)):
        return None
    if policy is None:
        near = _nearest(look, view)
        wanted = near.spec.nodeSelector if near else {}
        name = near.name if near else ""
        lacks = [f"NodePolicy {name} is for nodes with {_key(wanted, view, key)}" for key in _differ(wanted, view)]
        return Gap(name, tuple(lacks), tuple(_lines(near, view, _differ(wanted, view))))
    names = [each.name for each in policy.spec.driver.daemonSets] if policy.spec.driver else []
    differ, lacks = list[str](), list[str]()
    for each in (one.object for one in look.known.driver_sets if one.object.name in names):
        selector = each.spec.template.spec.nodeSelector
        own = [key for key in _differ(selector, view) if key.startswith(node_keys.FEATURES)]
        differ += own
        lacks += [f"DaemonSet {each.name} is for nodes with {_key(selector, view, key)}" for key in own]
    if not lacks:
        lacks = [f"the cluster has no DaemonSet {', '.join(names) or 'for a driver'}: sync the stage `driver`"]
        return Gap(policy.name, tuple(lacks), () if names else tuple(_lines(policy, view, [])))
    return Gap(policy.name, tuple(lacks), tuple(_lines(policy, view, differ)))


def _differ(wanted: Mapping[str, str], view: View) -> list[str]:
    return [key for key, value in wanted.items() if view.labels.get(key) != value]


def _key(wanted: Mapping[str, str], view: View, key: str) -> str:
    has = view.labels.get(key)
    return f"{key}={wanted[key]}, and it has {'no such label' if has is None else has}"


def _nearest(look: Look, view: View) -> NodePolicy | None:
    """The policy whose selection the node misses by the fewest labels, where it has any of them."""
    missed = [(len(_differ(each.spec.nodeSelector, view)), each.name, each) for each in look.known.policies]
    near = min((each for each in missed if each[0] < len(each[2].spec.nodeSelector)), default=None)
    return near[2] if near else None


def _lines(near: NodePolicy | None, view: View, differ: list[str]) -> Iterator[str]:
    """A pool that selects the node as NEAR does, with the node's own system, and its kernel where that decides."""
    labels = view.labels
    system = labels.get(f"{node_keys.OS_RELEASE}ID", "") + labels.get(f"{node_keys.OS_RELEASE}VERSION_ID", "")
    selector = {} if near is None else near.spec.nodeSelector
    own = {key: labels.get(key, value) for key, value in selector.items() if not key.startswith(node_keys.FEATURES)}
    name = re.sub("[^a-z0-9]+", "-", f"{near.name if near else 'gpus'}-{system or 'more'}".lower()).strip("-")
    yield "nodePools:"
    yield f"- name: {name[:63].rstrip('-')}"
    yield f"  os: {system}" if system else "  # os: what its /etc/os-release says; node feature discovery has not told"
    if node_keys.KERNEL in differ or node_keys.KERNEL in selector:
        yield f"  kernel: {labels.get(node_keys.KERNEL, '...')}"
    if f"{node_keys.OS_RELEASE}OSTREE_VERSION" in differ:
        yield f'  ostreeVersion: "{labels.get(f"{node_keys.OS_RELEASE}OSTREE_VERSION", "...")}"'
    if own:
        yield f"  nodeSelector: {{{', '.join(f'{key}: {quoted(value)}' for key, value in own.items())}}}"
    else:
        yield "  nodeSelector: {}  # a label that tells these nodes from those of other pools"


def quoted(value: str) -> str:
    """VALUE as a policy writes a text: in quotes where it would be read as something else."""
    words = {"true", "false", "null", "yes", "no", "on", "off"}
    plain = re.fullmatch(r"[a-z][a-z0-9./-]*", value) and value not in words
    return value if plain else f'"{value}"'
