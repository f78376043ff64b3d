"""Which nodes a DaemonSet's pods are on, and how fast those may be taken out of service.

A DaemonSet selects nodes by labels and tolerates taints; a pool says which of them its nodes have. A label that no pool
says anything about excludes none of them: the numbers are rather too high than too low.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...api import keys
from ...cluster import scheduling
from ...cluster.plugin_sharing import UnknownSharing
from ...cluster.pool import Pool
from ...cluster.resolve import resolve
from ...model import Body, grouped
from ...policy.language import reconciler
from ...policy.language.spec import ClusterPolicySpec
from ..diff.objects import mapping
from .rule import Range
from .subject import pod


def pools_of(spec: ClusterPolicySpec | None, body: Body | None) -> list[Pool]:
    """The pools whose nodes may have a pod of the DaemonSet BODY."""
    return [pool for pool in resolve(spec).pools if _lands(pool, pod(body))] if spec else []


def _lands(pool: Pool, spec: Mapping[str, Any]) -> bool:
    """Whether nodes of POOL may have pods with SPEC."""
    selector = {str(key): str(value) for key, value in mapping(spec.get("nodeSelector")).items()}
    deployed = {f"{keys.DEPLOY}{name}" for name in pool.components if _has(pool, name)}
    if any(key.startswith(keys.DEPLOY) and key not in deployed for key in selector):
        return False
    known = {**scheduling.labels_of(pool.said), **pool.known_labels, **pool.labels, **_mps(pool)}
    taints = [taint for taint in pool.said.taints if taint.key not in scheduling.OF_DAEMONSETS]
    kept_away = scheduling.kept_away(taints, scheduling.tolerations_of(spec))
    return not kept_away and not scheduling.excluded(spec, known)


def _has(pool: Pool, component: str) -> bool:
    """Whether nodes of POOL get the label for COMPONENT, one that their workload has: not the MIG manager's where GPUs
    can't be cut (operator.md 2.2). A driver is for those that don't bring theirs."""
    if component == "mig-manager":
        return pool.product is None or pool.product.mig_capable
    return component != "driver" or pool.driver is not None


def _mps(pool: Pool) -> dict[str, str]:
    try:
        return {keys.MPS_CAPABLE: "true" if not pool.cluster.dra and pool.sharing.kind == "mps" else "false"}
    except UnknownSharing:
        return {}


def number(pools: Sequence[Pool]) -> Range | None:
    """How many nodes POOLS are, None where one doesn't say it or there is none."""
    counts = [pool.capacity.nodes for pool in pools if pool.capacity.nodes]
    if not pools or len(counts) < len(pools):
        return None
    return sum(low for low, _ in counts), sum(high for _, high in counts)


def told(number: Range | None) -> str:
    """NUMBER of nodes in words."""
    return "not said" if number is None else " to ".join(dict.fromkeys(map(str, number)))


def of(spec: ClusterPolicySpec | None, body: Body | None) -> Range | None:
    """On how many nodes pods of the DaemonSet BODY are, as far as the policy says it. None for one that doesn't ask for
    nodes with a GPU: those of the rest of the cluster are in no policy."""
    selector = mapping(pod(body).get("nodeSelector"))
    if not any(str(key).startswith(keys.NVIDIA) for key in selector):
        return None
    pools = pools_of(spec, body)
    return (0, 0) if spec and spec.nodePools and not pools else number(pools)


def kept(before: ClusterPolicySpec | None, after: ClusterPolicySpec | None, body: Body | None) -> Range | None:
    """On how many nodes pods of the DaemonSet BODY are that some pool has afterwards as well: those of a pool that goes
    are managed by nobody, so nothing new reaches them."""
    if before is None or after is None or of(before, body) is None:
        return of(before, body)
    names = {pool.name for pool in after.nodePools}
    selectors = [pool.nodeSelector for pool in after.nodePools]
    mine = [each for each in pools_of(before, body) if each.name in names or each.said.nodeSelector in selectors]
    return number(mine)


def pace(spec: ClusterPolicySpec | None, body: Body | None) -> str:
    """How the nodes of the driver DaemonSet BODY follow its template, in words; "" where the policy isn't known."""
    if spec is None:
        return ""
    said = grouped((_pace(pool), pool.name) for pool in pools_of(spec, body))
    if len(said) < 2:
        return next(iter(said), _pace(resolve(spec).everywhere))
    return "; ".join(f"pool {', '.join(names)}: {pace}" for pace, names in said.items())


def budgeted(spec: ClusterPolicySpec | None, body: Body | None) -> bool:
    """Whether a budget holds the nodes of the driver DaemonSet BODY; not where the policy isn't known."""
    if spec is None:
        return False
    budgets = [pool.budget for pool in pools_of(spec, body) or [resolve(spec).everywhere]]
    return all(each.parallel != 0 and str(each.unavailable) not in {"0", "100%"} for each in budgets)


def by_hand(spec: ClusterPolicySpec | None) -> str:
    """Why nothing follows the template by itself; "" where something does."""
    if spec is None:
        return ""
    if not reconciler.runs(spec):
        return "no reconciler runs"
    if not any(pool.budget.automatic for pool in resolve(spec).nodes):
        return "autoUpgrade is off"
    return ""


def _pace(pool: Pool) -> str:
    budget = pool.budget
    most = f"at most {budget.parallel} at once" if budget.parallel else "as many at once as are free"
    drained = ", then the node is drained" if budget.policy.drain.enable else ""
    shut = ", in maintenance windows only" if budget.windows else ""
    return f"{most}, {budget.unavailable} of them unavailable at most, pods that use GPUs are evicted{drained}{shut}"
