"""Fields that the policy's release does not know yet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ...catalog import _versions, defaults, fields
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule


@rule("GPU107", "error")
def unknown_to_the_release(cluster: Cluster) -> Iterator[Hit]:
    """A field that came with a later release than the policy's."""
    spec = cluster.spec
    for path, since in newer_fields(spec.release):
        if is_set(spec, path):
            yield hit(f"spec.{path}", first=since, release=spec.release)


@cache
def newer_fields(release: str) -> tuple[tuple[str, str], ...]:
    """(path, release that brought it) of the ClusterPolicy fields that RELEASE does not know; a field inside a list
    stands for the list.
    """
    return tuple(
        (path, facts.since)
        for path, facts in fields.fields("ClusterPolicy").items()
        if facts.since
        and "[]" not in path
        and _versions.key(facts.since) > _versions.key(release)
        and facts.type != "object"
    )


def is_set(spec: Any, path: str) -> bool:
    """Whether the policy SPEC says at PATH anything but gpustack's own default."""
    node = spec
    for step in path.split("."):
        node = getattr(node, step, None)
        if node is None:
            return False
    return node not in ("", [], {}, False, defaults.values().get(path))
