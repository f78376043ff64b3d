"""The chart with its values in whatever else installs charts: Ansible, k0s, Sveltos, Cluster API, Pulumi's YAML, kustomize.

All of them say the same few things under much the same names, so one reader does for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..documents import Item
from .context import CHART, Context
from .flux import values

CHARTS = ("chart", "chartName", "chartname", "chart_ref", "name")
VERSIONS = ("version", "chart_version", "chartVersion", "targetRevision", "revision")
NAMESPACES = ("namespace", "releaseNamespace", "release_namespace")
NAMES = ("releaseName", "release_name", "name")
FILES_OF = ("valuesFile", "valuesFiles", "valueFiles", "values_files")
VALUES = ("values", "release_values", "valuesInline", "valuesTemplate", "valuesObject", "valuesContent")


def releases(item: Item, path: tuple[str | int, ...] = ()) -> Iterator[Item]:
    """The maps in ITEM that name the operator's chart beside its version or its values."""
    data = item.get(*path)
    if isinstance(data, dict):
        named = any(str(data.get(key, "")).rpartition("/")[2] == CHART for key in CHARTS)
        if named and any(key in data for key in (*VERSIONS, *VALUES, *FILES_OF)):
            yield item.part(*path)
            return
    steps: Any = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for step in steps:
        if isinstance(step, str | int):
            yield from releases(item, (*path, step))


def recognised(item: Item) -> bool:
    """Whether ITEM installs the operator's chart."""
    return any(True for _ in releases(item))


def read(item: Item, context: Context) -> None:
    """Read what ITEM says of the chart."""
    installation = context.installation
    for release in releases(item):
        for key in VERSIONS:
            context.version(release, key)
        told = [next((release.text_at(key) for key in each if release.text_at(key)), "") for each in (NAMESPACES, NAMES)]
        installation.namespace, installation.helm_release = (
            new if new and "{" not in new else old
            for new, old in zip(told, (installation.namespace, installation.helm_release), strict=True)
        )
        for key in FILES_OF:
            names = release.get(key)
            for name in names if isinstance(names, list) else [names] if names else []:
                context.take(context.file(release, str(name)))
        for key in VALUES:
            values(release, context, key)


KINDS: dict[str, object] = {}
FILES = ((recognised, read),)
