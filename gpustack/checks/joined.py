"""Hits that say the same of several node pools, told as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from .rule import Hit

POOLS = "{pools}"
"""Stands in what a hit says for the node pools that it is about: see `joined`."""


def joined(hits: Iterable[tuple[NodePool, Hit]]) -> Iterator[Hit]:
    """The hits about pools, those that say the same of several pools as one; their names take the place of POOLS."""
    names: dict[Hit, list[str]] = {}
    for pool, hit in hits:
        names.setdefault(hit, []).append(pool.name)
    for hit, about in names.items():
        text = f"node pool {about[0]}" if len(about) == 1 else f"node pools {', '.join(about[:-1])} and {about[-1]}"
        yield replace(hit, what=hit.what.replace(POOLS, text))
