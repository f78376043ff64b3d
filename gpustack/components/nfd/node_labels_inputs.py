"""Inputs of the rules by which node feature discovery labels nodes, where no program does."""

from typing import Any

from ...api import keys
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language import reconciler
from ..parts.common_inputs import Inputs


class LabelRule(Inputs):
    """Labels, and the nodes that get them: those with a GPU on which node feature discovery finds `system` and
    `kernel`; what is empty may be anything. `pools` are the pools that it stands for.
    """

    labels: dict[str, str]
    pools: tuple[str, ...] = ()
    system: dict[str, str] = {}
    kernel: str = ""


class NodeLabelsInputs(Inputs):
    """The rules, one for each set of labels and nodes."""

    rules: tuple[LabelRule, ...]


def from_cluster(cluster: Cluster) -> NodeLabelsInputs | None:
    """None where somebody else labels nodes. One rule for all where all nodes get the same."""
    if reconciler.labelling(cluster.spec) != "nodeFeatureRule":
        return None
    pools = cluster.nodes
    labels = [pool.all_labels for pool in pools]
    alike = all(each == labels[0] for each in labels)
    rules: list[LabelRule] = []
    for pool, wanted in zip(pools, labels, strict=True):
        made = LabelRule(labels=wanted, **({} if alike else features(pool)))
        names = () if pool.index is None else (pool.name,)
        same = next((at for at, rule in enumerate(rules) if rule.model_copy(update={"pools": ()}) == made), None)
        if same is None:
            rules.append(made.model_copy(update={"pools": names}))
        else:
            rules[same] = rules[same].model_copy(update={"pools": (*rules[same].pools, *names)})
    return NodeLabelsInputs(rules=tuple(rules))


def features(pool: Pool) -> dict[str, Any]:
    """What node feature discovery finds on the nodes of POOL, by the fields of LabelRule."""
    system = {
        key.removeprefix(keys.OS_RELEASE): value
        for key, value in pool.selection.items()
        if key.startswith(keys.OS_RELEASE)
    }
    return {"system": system, "kernel": pool.said.kernel or ""}
