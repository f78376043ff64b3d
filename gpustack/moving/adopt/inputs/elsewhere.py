"""The chart in whatever else installs charts: helmfile, Ansible, k0s, Sveltos, Cluster API, Pulumi's YAML, kustomize.

All of them say the same few things under much the same names, so one reader does for all.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpustack.model import Path, children

from ..documents import Item
from .context import CHART, Context
from .flux import values
from .sets import put, typed

CHARTS = ("chart", "chartName", "chartname", "chart_ref", "name")
VERSIONS = ("version", "chart_version", "chartVersion", "targetRevision", "revision")
NAMESPACES = ("namespace", "releaseNamespace", "release_namespace")
NAMES = ("releaseName", "release_name", "name")
NAMED = ("valuesFile", "valuesFiles", "valueFiles", "values_files")
VALUES = ("values", "release_values", "valuesInline", "valuesTemplate", "valuesObject", "valuesContent")


def releases(item: Item, path: Path = ()) -> Iterator[Item]:
    """The maps in ITEM that name the operator's chart beside its version or its values."""
    data = item.get(*path)
    if isinstance(data, dict):
        named = any(str(data.get(key, "")).rpartition("/")[2] == CHART for key in CHARTS)
        if named and any(key in data for key in (*VERSIONS, *VALUES, *NAMED, "set")):
            yield item.part(*path)
            return
    for step, _ in children(data):
        if isinstance(step, str | int):
            yield from releases(item, (*path, step))


def first(release: Item, keys: tuple[str, ...]) -> str:
    """The text at the first of KEYS that RELEASE has, "" where it is a template's."""
    text = next((release.text_at(key) for key in keys if release.text_at(key)), "")
    return "" if "{" in text else text


def recognised(item: Item) -> bool:
    """Whether ITEM installs the operator's chart."""
    return any(True for _ in releases(item))


def read(item: Item, context: Context) -> None:
    """Read what ITEM says of the chart."""
    installation = context.installation
    for release in releases(item):
        for key in VERSIONS:
            context.version(release, key)
        installation.namespace = first(release, NAMESPACES) or installation.namespace
        installation.helm_release = first(release, NAMES) or installation.helm_release
        for key in (*NAMED, *VALUES):
            found = release.get(key)
            many = found if isinstance(found, list) else [found] if found and key in NAMED else None
            for index, each in enumerate(many or []):
                context.take(release.leaves(key, index) if isinstance(each, dict) else context.file(release, str(each)))
            if many is None:
                values(release, context, key)
        for entry in [release.part("set", index) for index in range(len(release.get("set") or []))]:
            if (said := entry.said("value")) is not None:
                put(installation.values, entry.text_at("name"), typed(said.value), said.where)


KINDS: dict[str, object] = {}
FILES = ((recognised, read),)
