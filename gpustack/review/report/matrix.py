"""Cluster x component version: what runs where, and which cluster is unlike the others.

Versions are those of rendered images: not what a policy says in vain, but what a mirror or a digest is called.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...catalog import _data
from ...cluster.resolve import resolve
from ...policy.language.spec import ClusterPolicySpec
from ..impact import nodes
from ..impact.tags import split
from ..templates import part
from .frame import Section, table, text

COLUMNS: Mapping[str, str] = _data.read(Path(__file__).with_suffix(".yaml"))
"""The last part of an image's name, and the column that its version is in."""
_IMAGE = re.compile(r"^ *(?:- )?image: \"?([^\s\"]+)", re.MULTILINE)
NONE = "none"


@dataclass(frozen=True)
class Cluster:
    """What is known of a cluster: its effective spec, and the versions of its images by column."""

    spec: ClusterPolicySpec
    versions: Mapping[str, str]


def versions(texts: Sequence[str]) -> dict[str, str]:
    """The versions that the manifests TEXTS run, by column; several of one component side by side."""
    by_column: dict[str, dict[str, None]] = {}
    for reference in dict.fromkeys(image for each in texts for image in _IMAGE.findall(each)):
        repository, tag = split(reference)
        column = COLUMNS.get(repository.rpartition("/")[2])
        if column:
            by_column.setdefault(column, {})[tag] = None
    return {column: ", ".join(sorted(tags)) for column, tags in by_column.items()}


def section(clusters: Mapping[str, Cluster]) -> Section:
    """The section of CLUSTERS. A version that most clusters don't have is marked, and not by colour alone."""
    rows = {name: cells(cluster) for name, cluster in clusters.items()}
    columns = [name for name in next(iter(rows.values()), {}) if any(row[name] != NONE for row in rows.values())]
    counts = {column: Counter(row[column] for row in rows.values()).most_common(1)[0] for column in columns}
    usual = {column: value for column, (value, number) in counts.items() if 2 * number > len(rows)}
    made = [[text(name), *(_cell(row[each], usual.get(each)) for each in columns)] for name, row in rows.items()]
    caption = f"{len(rows)} clusters. A value is marked where most clusters have another one."
    return Section("fleet", "Clusters and versions", table(caption, ["Cluster", *columns], made) if made else "")


def _cell(value: str, usual: str | None) -> str:
    return text(value) if usual in (value, None) else part("strong", body=text(value))


def cells(cluster: Cluster) -> dict[str, str]:
    """What a cluster has, by column."""
    spec = cluster.spec
    return {
        "Release": spec.release or NONE,
        "Kubernetes": spec.cluster.kubernetesVersion or NONE,
        "Platform": spec.cluster.platform or NONE,
        **{column: cluster.versions.get(column, NONE) for column in COLUMNS.values()},
        "Pools": str(len(spec.nodePools)),
        "Nodes": nodes.told(nodes.number(resolve(spec).pools)),
    }
