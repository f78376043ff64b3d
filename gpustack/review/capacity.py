"""What the nodes of each pool will advertise, for reports: see policy/capacity.py, which the rules ask as well."""

from __future__ import annotations

from ..policy.capacity import GPU, Counts, PoolCapacity, Range, Total, capacity, totals

__all__ = ["GPU", "Counts", "PoolCapacity", "Range", "Total", "capacity", "totals"]
