"""gpustack rollout plan --budget-report: what emptying the nodes would meet, before anything is due.

Solves: that a PodDisruptionBudget allows nobody to go, or a pod takes two hours to end, shows on the night of the
roll-out, node by node. Every node is asked here as if it had its turn now, by the reconciler's own code.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ...model import grouped
from ...reconciler.core import engine, pods
from ...reconciler.core.view import View, uses_of
from ..common import counted
from .plan import SHOWN, head, some
from .reading import Look

SLOW = 300
"""Seconds to end from which on a pod is named."""


def data(look: Look) -> dict[str, Any]:
    """The report for --format json."""
    return {**look.head, "nodes": [_node(look, view) for view in look.outlook.views if view.policy is not None]}


def _node(look: Look, view: View) -> dict[str, Any]:
    listed, check, uses = look.known.pods.get(view.name), look.known.prechecks.get(view.name), uses_of(look.known, view)
    using = pods.to_evict(listed or (), uses)
    selector = view.policy.spec.upgrade.waitForCompletion.podSelector if view.policy else ""
    awaited = [pod.key for pod in pods.awaited(listed or (), selector, uses)]
    evicted = [pod for pod in using if pod.key not in awaited]
    obstacles = engine.trial(look.known, view)[1] or (check.blockers if check else ())
    slow = [(int(pods.grace(pod).total_seconds()), pod.key) for pod in evicted]
    return {
        "node": view.name,
        "policy": view.policy.name if view.policy else None,
        "podsKnown": listed is not None,
        "tried": check is not None or not using,
        "evicts": [pod.key for pod in evicted],
        "waitsFor": awaited,
        "blockers": [*dict.fromkeys(obstacles)],
        "unknown": check.unknown if check else "",
        "slow": [{"pod": key, "seconds": seconds} for seconds, key in sorted(slow, reverse=True) if seconds > SLOW],
    }


def lines(budget: dict[str, Any]) -> Iterator[str]:
    """The report as a person reads it."""
    yield from head(budget)
    nodes = budget["nodes"]
    blocked = grouped((text, each["node"]) for each in nodes for text in each["blockers"])
    if blocked:
        yield "can't be emptied"
    yield from (f"  {some(names)}: {text}" for text, names in blocked.items())
    awaited = [f"{pod} on {each['node']}" for each in nodes for pod in each["waitsFor"]]
    yield from _first("waited for until they have ended", awaited)
    slow = sorted(((one["seconds"], one["pod"], each["node"]) for each in nodes for one in each["slow"]), reverse=True)
    told = [f"{pod} on {node}: {seconds} s" for seconds, pod, node in slow]
    yield from _first(f"pods that may take more than {SLOW} s to end", told)
    unread = [each["node"] for each in nodes if not each["podsKnown"] or not each["tried"] or each["unknown"]]
    if unread:
        yield f"not known: {some(unread)}"
    clear = sum(not each["blockers"] and not each["waitsFor"] and each["node"] not in unread for each in nodes)
    yield f"{counted(clear, 'node')} of {len(nodes)}: nothing stands against emptying them now"
    yield "nothing was changed"


def _first(title: str, texts: Sequence[str]) -> Iterator[str]:
    """TITLE, the first of TEXTS below it, a line each, and how many more there are. Without texts, no title either."""
    if texts:
        yield title
    yield from (f"  {text}" for text in texts[:SHOWN])
    if len(texts) > SHOWN:
        yield f"  and {len(texts) - SHOWN} more"
