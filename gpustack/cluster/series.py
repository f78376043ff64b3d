"""How many series the exporters serve: what Prometheus is billed and sized by, counted before anybody pays.

The exporter has a series for each field of its list and each device: a GPU, or where that is cut each of its instances.
Labels of pods add none at one time, but each pod that gets a device begins them anew. Errors and events come on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .dashboards import PEERS
from .metrics import served, telemetry
from .pool import Pool

if TYPE_CHECKING:
    from .capacity import Range


class Series(NamedTuple):
    """Series of one device of a pool, of a node, and of all of them; None for what isn't known."""

    device: int | None
    node: int | None = None
    total: Range | None = None


def series(pool: Pool) -> Series:
    """How many series the exporters of POOL serve. Of pairs of whole GPUs each is told of from both sides
    (NVIDIA/dcgm-exporter, internal/pkg/collector).
    """
    have, gpus, nodes = served(pool.spec), pool.said.gpusPerNode, pool.said.count
    if not telemetry(pool.spec).exporter.enabled or pool.workload != "container":
        return Series(0, 0, (0, 0))
    device = None if have is None else sum(kind != "label" for name, kind in have.items() if name != PEERS)
    if device is None or gpus is None or pool.groups is None:
        return Series(device)
    rest = gpus - sum(len(group.indices or ()) for group in pool.groups)
    cuts = [(rest if each.indices is None else len(each.indices), each.layout) for each in pool.groups]
    whole = sum(number for number, cut in cuts if not cut)
    peers = whole * (whole - 1) if have and PEERS in have else 0
    node = device * sum(number * (sum(cut.values()) if cut else 1) for number, cut in cuts) + peers
    return Series(device, node, (nodes.min * node, nodes.max * node) if nodes else None)
