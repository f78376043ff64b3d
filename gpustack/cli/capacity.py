"""gpustack capacity: which extended resources the nodes of each pool will advertise."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Finding, GpustackError, InputError, few
from ..policy.loading.load import Memo, load
from . import common
from .text import as_json, columns_of, folded, picked

if TYPE_CHECKING:
    from ..cluster.capacity import PoolCapacity, Range, Total, Unit
    from ..cluster.metrics import Series

Pools = tuple["PoolCapacity", ...]
Counted = tuple[str, Pools, list["Series"]]
"""A cluster's name, its pools, and what is served of each."""
Totals = Mapping[str, Sequence["Total"]]


def run(options: argparse.Namespace) -> int:
    from ..cluster.capacity import totals

    clusters = list(counted(common.select(options.policies)))
    fleet = totals(
        dataclasses.replace(pool, name=f"{name}/{pool.name}") for name, pools, _ in clusters for pool in pools
    )
    if options.format == "json":
        documents = [as_data(name, pools, totals(pools), served) for name, pools, served in clusters]
        print(as_json({"version": 2, "clusters": documents, "total": totals_data(fleet)}))
        return 0
    for name, pools, served in clusters:
        print("\n".join([name, *lines(pools, served), *totals_lines(totals(pools))]), end="\n\n")
    if len(clusters) > 1:
        print("\n".join([f"{len(clusters)} clusters", *totals_lines(fleet)]))
    return 0


def counted(paths: Iterable[Path]) -> Iterator[Counted]:
    """What is known of each cluster. Raises InputError with what is wrong with all policies."""
    from ..cluster.metrics import series
    from ..cluster.resolve import resolve

    memo, findings, clusters = Memo(), list[Finding](), list[Counted]()
    for path in paths:
        try:
            loaded = load(path, root=Path.cwd(), memo=memo)
        except GpustackError as error:
            findings += [finding for finding in error.findings if finding not in findings]
        else:
            cluster = resolve(loaded.spec)
            clusters.append((loaded.name, cluster.capacity, [series(pool) for pool in cluster.pools]))
    if findings:
        raise InputError(*findings)
    yield from clusters


def lines(pools: Pools, served: list[Series]) -> Iterator[str]:
    """The pools of a cluster, each with its resources and the series that are SERVED of it."""
    for pool, (device, each, every) in zip(pools, served, strict=True):
        yield f"  {pool.name}: {described(pool)}"
        width = max((len(name) for name in pool.per_node), default=0)
        for name, count in pool.per_node.items():
            number = "unknown" if count is None else str(count)
            yield f"    {name:<{width}}  {number:>7} a node  {ranged(pool.total[name]):>7} in total"
        if device != 0:
            yield f"    metrics: {'unknown' if each is None else each} series a node, {ranged(every)} in total"
        for reason in pool.unknown:
            yield folded(f"    unknown: {reason}", columns_of(sys.stdout))
    if not pools:
        yield "  unknown: the policy has no node pools"


def described(pool: PoolCapacity) -> str:
    """Nodes and GPUs of a pool in words."""
    nodes = "nodes" if pool.nodes is None else f"{ranged(pool.nodes)} {'node' if pool.nodes == (1, 1) else 'nodes'}"
    product = pool.product or "GPU, which the policy doesn't name"
    return f"{nodes} with {pool.gpus or '?'} x {product}"


def ranged(count: Range | None) -> str:
    """A number, or its bounds."""
    if count is None:
        return "unknown"
    low, high = count
    return str(low) if low == high else f"{low} to {high}"


def totals_lines(sums: Totals) -> Iterator[str]:
    """What all pools advertise together. A name that stands for several things has a line for each."""
    rows = [(f"{name} ({one.unit})" if len(every) > 1 else name, one) for name, every in sums.items() for one in every]
    width = max((len(name) for name, _ in rows), default=0)
    if rows:
        yield "  total"
    for name, total in rows:
        pools = few(total.without, 3)
        beside = "" if not total.without else f" ({pools})" if total.known is None else f", beside what {pools} has"
        yield f"    {name:<{width}}  {ranged(total.known)}{beside}"


def as_data(name: str, pools: Pools, total: Totals, served: list[Series]) -> dict[str, Any]:
    """A cluster for --format json; null stands for a number that isn't known."""
    return {
        "name": name,
        "pools": [
            {
                **picked(pool, "name gpuProduct=product nodes gpusPerNode=gpus"),
                "nodes": bounds(pool.nodes),
                "perNode": dict(pool.per_node),
                "units": {resource: unit_data(unit) for resource, unit in pool.units.items()},
                "total": {resource: bounds(count) for resource, count in pool.total.items()},
                "series": {"perDevice": each.device, "perNode": each.node, "total": bounds(each.total)},
                "unknown": list(pool.unknown),
            }
            for pool, each in zip(pools, served, strict=True)
        ],
        "total": totals_data(total),
    }


def totals_data(sums: Totals) -> dict[str, Any]:
    """Sums by resource and by what one of it is, and the pools that they are without."""
    return {
        name: [{"unit": unit_data(one.unit), **(bounds(one.known) or {}), "without": one.without} for one in every]
        for name, every in sums.items()
    }


def unit_data(unit: Unit) -> dict[str, Any]:
    return picked(unit, "gpuProduct=product migProfile=profile sharedBy=shared_by")


def bounds(count: Range | None) -> dict[str, int] | None:
    return None if count is None else {"min": count[0], "max": count[1]}
