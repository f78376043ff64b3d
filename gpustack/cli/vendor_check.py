"""gpustack vendor-check: what a chart of the GPU operator has that the catalogue doesn't know."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..catalog import releases
from ..model import InputError
from ..text.regular import read_regular
from .refusals import said
from .releases import known, row
from .text import as_json, printable, say

if TYPE_CHECKING:
    from ..review.vendor import Vendor

MOST_BYTES = 32 * 1024 * 1024


def run(options: argparse.Namespace) -> int:
    from ..review import vendor

    try:
        chart = vendor.opened(read_regular(options.chart, limit=MOST_BYTES))
    except (OSError, vendor.ChartError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(said("GPU987", chart=options.chart, reason=reason)) from None
    base = options.base or (chart.version if chart.version in releases.names() else releases.latest())
    known(base)
    found = vendor.compared(chart, base)
    if options.format == "data":
        print(vendor.as_data(found), end="")
    elif options.format == "json":
        facts = dataclasses.asdict(found)
        facts["chart"] = {"version": chart.version, "templates": list(chart.templates)}
        print(as_json({"version": 1, **facts}))
    else:
        for line in text(found):
            say(printable(line))
    return 1 if found.any else 0


def text(found: Vendor) -> Iterator[str]:
    """What a person has to look at."""
    if not found.any:
        yield f"{found.chart.version}: the catalogue's {found.base} has all of it"
        return
    yield f"{found.chart.version} beside the catalogue's {found.base}:"
    sections = {"Images": (*found.nfd, *found.images), "Defaults": found.defaults}
    sections |= {f"Fields of {kind}": changes for kind, changes in found.fields.items()}
    for title, changes in sections.items():
        if changes:
            yield from ("", f"{title}:")
            yield from (f"  {row(change)}" for change in changes)
    if found.missing:
        yield from ("", "The archive lacks:", *(f"  {part}" for part in found.missing))
    if found.unknown:
        yield from ("", "Values that templates read and no name here stands for:")
        yield from (f"  {path}" for path in found.unknown)
