"""Which nodes a DaemonSet's pods are on, and how fast those may be taken out of service.

A DaemonSet selects nodes by labels; a pool says which of them its nodes have (cluster/node_labels.py). A label that no
pool says anything about excludes none of them: the numbers are rather too high than too low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...cluster import node_labels, ownership
from ...components.reconciler import rollout_inputs as rollout
from ...model import Body
from ...policy.language import reconciler
from .rule import Range
from .subject import mapping, pod

if TYPE_CHECKING:
    from ...policy.language.node_pools import NodePool
    from ...policy.language.spec import ClusterPolicySpec

DEPLOY = "nvidia.com/gpu.deploy."


def pools_of(spec: ClusterPolicySpec | None, body: Body | None) -> list[NodePool]:
    """The pools whose nodes may have a pod of the DaemonSet BODY."""
    selector = {str(key): str(value) for key, value in mapping(pod(body).get("nodeSelector")).items()}
    return [pool for pool in spec.nodePools if _matches(spec, pool, selector)] if spec else []


def _matches(spec: ClusterPolicySpec, pool: NodePool, selector: dict[str, str]) -> bool:
    known = {**ownership.node_labels(spec, pool), **node_labels.labels(spec, pool)}
    deployed = {f"{DEPLOY}{name}" for name in node_labels.components(spec, pool)}
    if any(key.startswith(DEPLOY) and key not in deployed for key in selector):
        return False
    return not node_labels.apart(selector, known)


def number(pools: list[NodePool]) -> Range | None:
    """How many nodes POOLS are, None where one doesn't say it or there is none."""
    counts = [(pool.count.min, pool.count.max) for pool in pools if pool.count]
    if not pools or len(counts) < len(pools):
        return None
    return sum(low for low, _ in counts), sum(high for _, high in counts)


def of(spec: ClusterPolicySpec | None, body: Body | None) -> Range | None:
    """On how many nodes pods of the DaemonSet BODY are, as far as the policy says it. None for one that doesn't ask for
    nodes with a GPU: those of the rest of the cluster are in no policy.
    """
    selector = mapping(pod(body).get("nodeSelector"))
    if not any(str(key).startswith("nvidia.com/") for key in selector):
        return None
    return number(pools_of(spec, body))


def kept(before: ClusterPolicySpec | None, after: ClusterPolicySpec | None, body: Body | None) -> Range | None:
    """On how many nodes pods of the DaemonSet BODY are that some pool has afterwards as well: those of a pool that goes
    are managed by nobody, so nothing new reaches them.
    """
    if before is None or after is None or of(before, body) is None:
        return of(before, body)
    names = {pool.name for pool in after.nodePools}
    selectors = [pool.nodeSelector for pool in after.nodePools]
    return number([pool for pool in pools_of(before, body) if pool.name in names or pool.nodeSelector in selectors])


def pace(spec: ClusterPolicySpec | None, body: Body | None) -> str:
    """How the nodes of the driver DaemonSet BODY follow its template, in words; "" where the policy isn't known."""
    if spec is None:
        return ""
    said: dict[str, list[str]] = {}
    for pool in pools_of(spec, body):
        said.setdefault(_pace(spec, pool), []).append(pool.name)
    if len(said) < 2:
        return next(iter(said), _pace(spec, None))
    return "; ".join(f"pool {', '.join(names)}: {pace}" for pace, names in said.items())


def budgeted(spec: ClusterPolicySpec | None, body: Body | None) -> bool:
    """Whether a budget holds the nodes of the driver DaemonSet BODY; not where the policy isn't known."""
    pools: list[NodePool | None] = [*pools_of(spec, body)] or [None]
    return spec is not None and all(_limited(spec, pool) for pool in pools)


def _limited(spec: ClusterPolicySpec, pool: NodePool | None) -> bool:
    parallel, share = _limits(spec, pool)
    return parallel != 0 and str(share) not in {"0", "100%", "None"}


def _limits(spec: ClusterPolicySpec, pool: NodePool | None) -> tuple[Any, Any]:
    """How many nodes of POOL are worked on at once, and how many of them may be unavailable."""
    found = rollout.upgrade_policy(spec, pool).policy
    own = pool.upgrade if pool else None
    parallel = own.maxParallel if own and own.maxParallel is not None else rollout.parallel(found)
    share = own.maxUnavailable if own and own.maxUnavailable is not None else rollout.unavailable(found)
    return parallel, share


def by_hand(spec: ClusterPolicySpec | None) -> str:
    """Why nothing follows the template by itself; "" where something does."""
    if spec is None:
        return ""
    if not reconciler.runs(spec):
        return "no reconciler runs"
    pools: list[NodePool | None] = [*spec.nodePools] or [None]
    if not any(rollout.upgrade_policy(spec, pool).automatic for pool in pools):
        return "autoUpgrade is off"
    return ""


def _pace(spec: ClusterPolicySpec, pool: NodePool | None) -> str:
    found = rollout.upgrade_policy(spec, pool).policy
    own = pool.upgrade if pool else None
    parallel, share = _limits(spec, pool)
    most = f"at most {parallel} at once" if parallel else "as many at once as are free"
    parts = [f"{most}, {share} of them unavailable at most"]
    parts.append("pods that use GPUs are evicted" + (", then the node is drained" if found.drain.enable else ""))
    if (own and own.windows) or (spec.reconciler and spec.reconciler.windows):
        parts.append("in maintenance windows only")
    return ", ".join(parts)
