"""Values of the operator's chart in a file: by themselves, or below the name of the chart in those of another one."""

from __future__ import annotations

from gpustack.policy.loading.foreign import is_values

from ..documents import Item
from .context import Context


def recognised(item: Item) -> bool:
    """Whether ITEM holds values of the operator's chart, or of one that bundles it."""
    return isinstance(item.data, dict) and bool(item.data) and (is_values(item.data) or wrapper(item) is not None)


def wrapper(item: Item) -> str | None:
    """The key below which the chart's values stand in those of a chart that bundles it."""
    from gpustack.catalog import chart

    known = [key for key in item.data if key in chart.wrappers()]
    alias = [key for key, below in item.data.items() if isinstance(below, dict) and len(set(below) & SECTIONS) > 1]
    return next((str(key) for key in [*known, *alias]), None)


SECTIONS = {
    "driver",
    "toolkit",
    "devicePlugin",
    "dcgmExporter",
    "migManager",
    "gfd",
    "nfd",
    "validator",
    "sandboxWorkloads",
}
"""Sections that tell the chart's values from those of other charts, two at least."""


def take(item: Item, context: Context) -> None:
    """Read a file of values. Those of the chart that bundles ours are listed."""
    below = wrapper(item)
    if below is None or item.get(below) is None:
        context.take(item.leaves())
        return
    context.take(item.leaves(below))
    for key in item.data:
        if key != below:
            why = f"it is a value of the chart that bundles {below}"
            context.installation.note(
                "dropped", str(key), why, "keep what needs it in that chart", item.where(str(key))
            )


KINDS: dict[str, object] = {}
FILES = ((recognised, take),)
