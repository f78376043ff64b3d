"""Which nodes a pool is, and the labels that they get: what the operator sets, and what the pool adds.

The selection is made of labels that a node has before anything of NVIDIA's runs there (reconciler.md A3): the pool's
own, and those of node feature discovery for the operating system, as driver DaemonSets select by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..api import keys
from ..catalog.oses import UnknownOS, os_id, os_tag
from ..model import Path, dotted, mapping, mappings
from .ownership import image_selector

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec


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


def rules_of(spec: ClusterPolicySpec) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The rules in NodeFeatureRules of SPEC's extraObjects, with their paths."""
    for index, body in enumerate(spec.extraObjects):
        content = mapping(body.get("spec")) if body["kind"] == "NodeFeatureRule" else {}
        for position, rule in mappings(content.get("rules")):
            yield ("spec", "extraObjects", index, "spec", "rules", position), rule


def labels_of_rules(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str]]:
    """Path, key and value of each label; none whose value is taken from a feature (`@...`)."""
    for path, rule in rules_of(spec):
        for key, value in mapping(rule.get("labels")).items():
            if isinstance(value, str) and value and not value.startswith("@"):
                yield dotted((*path, "labels", key)), key, value
