"""Which nodes a pool is, and the labels that they get: what the operator sets, and what the pool adds.

The selection is made of labels that a node has before anything of NVIDIA's runs there (reconciler.md A3): the pool's
own, and those of node feature discovery for the operating system, as driver DaemonSets select by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..api import keys
from ..catalog import node_labels as known
from ..catalog.oses import UnknownOS, os_id, os_tag
from ..model import Path, dotted
from .ownership import image_selector

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec
    from .pool import Pool


def selection(spec: ClusterPolicySpec, pool: NodePool) -> dict[str, str]:
    """The labels of the nodes of POOL."""
    selector = {**pool.nodeSelector, **os_selector(pool.os or "", spec.release)}
    if pool.kernel:
        selector[keys.KERNEL] = pool.kernel
    if pool.ostreeVersion:
        selector[f"{keys.OS_RELEASE}OSTREE_VERSION"] = pool.ostreeVersion
    return selector


def os_selector(os: str, release: str) -> dict[str, str]:
    """NFD's labels of all nodes whose driver image is the one for OS; none where there is no such system."""
    try:
        return image_selector(*os_id(os), os_tag(os, release))
    except UnknownOS:
        return {}


def apart(first: dict[str, str], second: dict[str, str]) -> bool:
    """Whether no node can match both selections."""
    return any(second.get(key, value) != value for key, value in first.items())


def components(pool: Pool) -> tuple[str, ...]:
    """The ends of the labels nvidia.com/gpu.deploy.* of these nodes, whatever is enabled (reconciler.md L14)."""
    cluster, release = pool.cluster, pool.spec.release
    if cluster.dra:
        return known.components("dra", release)
    if pool.workload == "vm-passthrough" and cluster.kata:
        return known.components("kata", release)
    return known.components(pool.workload, release)


def labels(pool: Pool) -> dict[str, str]:
    """The further labels of these nodes: which configuration of a component is theirs, and which driver.

    The MIG layout is not among them: GPUs are cut when their node is empty, and not when a label is due.
    """
    further: dict[str, str] = {}
    said, spec = pool.said, pool.spec
    if pool.index is not None and not pool.cluster.dra:
        if pool.cluster.sandbox:
            further[keys.WORKLOAD] = pool.workload
        if pool.workload == "vm-vgpu" and said.vgpu.config:
            further[keys.VGPU_CONFIG] = said.vgpu.config
        if spec.devicePlugin.enabled and (said.sharing.timeSlicing or said.sharing.mps):
            further[keys.PLUGIN_CONFIG] = pool.name
    owner = pool.driver.owner if pool.driver else ""
    return {**further, **({keys.DRIVER_OWNER: owner} if owner else {})}


def all_labels(pool: Pool) -> dict[str, str]:
    """Every label of these nodes that does not depend on what their GPUs can do."""
    deploy = {f"{known.DEPLOY}{name}": "true" for name in components(pool) if name != "mig-manager"}
    return {keys.PRESENT: "true", **deploy, **labels(pool)}


def rules_of(spec: ClusterPolicySpec) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The rules in NodeFeatureRules of SPEC's extraObjects, with their paths. What is not a rule at all is left out:
    validation refuses it.
    """
    for index, body in enumerate(spec.extraObjects):
        content = body.get("spec") if body["kind"] == "NodeFeatureRule" else None
        rules = content.get("rules") if isinstance(content, dict) else None
        for position, rule in enumerate(rules if isinstance(rules, list) else []):
            if isinstance(rule, dict):
                yield ("spec", "extraObjects", index, "spec", "rules", position), rule


def labels_of_rules(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str]]:
    """Path, key and value of each label; none whose value is taken from a feature (`@...`)."""
    for path, rule in rules_of(spec):
        labels = rule.get("labels")
        for key, value in labels.items() if isinstance(labels, dict) else ():
            if isinstance(value, str) and value and not value.startswith("@"):
                yield dotted((*path, "labels", key)), key, value
