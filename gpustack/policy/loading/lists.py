"""What tells the items of a list apart, where parts of a policy are merged.

Solves: a layer's list and the policy's are one list, and something has to say which of their items are the same. Most
have a name; the manifests of `extraObjects` have what the API server tells them apart by.
"""

from typing import Any

from gpustack.model import Path

OBJECTS = ("extraObjects",)
REPLACE = "$replace"
"""The key of an item of `extraObjects` that takes the place of the lower one instead of being merged with it."""

Identity = tuple[Any, ...] | None
"""What tells an item of a list from the others; None where nothing does."""


def named(node: Any, path: Path) -> bool:
    """Is NODE, the list at PATH, one whose items are told apart by name? An empty list is not: it says that there are
    no items. Nor is a list inside a manifest that has a name twice, as the subjects of a binding may."""
    if not isinstance(node, list) or not node:
        return False
    names = [identity(item, path) for item in node]
    return None not in names and (not inside_object(path) or len(set(names)) == len(names))


def inside_object(path: Path) -> bool:
    """Whether PATH leads into a manifest of `extraObjects`."""
    return path[:1] == OBJECTS and len(path) > 1


def identity(item: Any, path: Path) -> Identity:
    """What tells ITEM from the others of the list at PATH."""
    if not isinstance(item, dict):
        return None
    kind = item.get("kind")
    if path == OBJECTS:
        metadata, version = item.get("metadata"), item.get("apiVersion")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in (kind, version, name)):
            return None
        return str(version).rpartition("/")[0], kind, str(metadata.get("namespace") or ""), name
    name = item.get("name")
    if path[-1:] == ("rules",) and inside_object(path):  # of a group of a PrometheusRule
        kind = next((word for word in ("alert", "record") if word in item), None)
        name = item.get(kind)
    return (kind if isinstance(kind, str) else None, name) if isinstance(name, str) else None
