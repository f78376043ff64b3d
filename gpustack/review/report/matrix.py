"""Cluster x component version: what runs where, and which cluster is unlike the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...policy.ownership import in_charge
from .frame import Section, table, text

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

SECTIONS = {
    "Toolkit": "toolkit",
    "Device plugin": "devicePlugin",
    "GFD": "gfd",
    "MIG manager": "migManager",
    "DCGM": "dcgm",
    "DCGM exporter": "dcgmExporter",
}
"""Columns, and the sections of a policy that they show."""


def section(specs: Mapping[str, ClusterPolicySpec]) -> Section:
    """The section of the clusters SPECS. A version that most clusters don't have is marked, not by colour alone."""
    shapes: dict[int, dict[str, str]] = {}
    rows = {name: shapes.setdefault(id(spec), cells(spec)) for name, spec in specs.items()}
    columns = list(next(iter(rows.values()), {}))
    usual = {column: Counter(row[column] for row in rows.values()).most_common(1)[0][0] for column in columns}
    made = [[text(name), *(_cell(row[column], usual[column]) for column in columns)] for name, row in rows.items()]
    title = "Clusters and versions"
    caption = f"{len(rows)} clusters. A version is marked where most clusters have another one."
    return Section("fleet", title, table(caption, ["Cluster", *columns], made) if made else "")


def _cell(value: str, usual: str) -> str:
    return text(value) if value == usual else f"<strong>{text(value)}</strong>"


def cells(spec: ClusterPolicySpec) -> dict[str, str]:
    """What a cluster has, by column."""
    return {
        "Release": spec.release or "",
        "Kubernetes": spec.cluster.kubernetesVersion or "",
        "Platform": spec.cluster.platform or "",
        "Driver": driver(spec),
        **{title: version(getattr(spec, name)) for title, name in SECTIONS.items()},
        "Pools": str(len(spec.nodePools)),
        "Nodes": _nodes(spec),
    }


def driver(spec: ClusterPolicySpec) -> str:
    """The driver's version, or those of all drivers."""
    if in_charge(spec):
        found = dict.fromkeys(str(each.version or "") for each in spec.drivers)
        return ", ".join(filter(None, found)) or "off"
    return version(spec.driver)


def version(part: Any) -> str:
    """The version of a component, "off" where it is switched off."""
    return "off" if part.enabled is False else str(part.version or "")


def _nodes(spec: ClusterPolicySpec) -> str:
    counts = [pool.count for pool in spec.nodePools]
    if not counts or None in counts:
        return "not said"
    low, high = (sum(getattr(count, end) for count in counts) for end in ("min", "max"))
    return str(low) if low == high else f"{low} to {high}"
