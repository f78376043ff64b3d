"""Pictures of MIG layouts: where each instance stands on the memory slices of its GPU, for a terminal and as SVG.

Solves: whether two layouts leave the same room is seen at once in a picture and hardly in numbers. A picture shows one
possible placement; the driver may choose another one.

The same layout always gives the same bytes. Instances differ in pattern and label, not in colour alone; the SVG has a
title and a description, and follows the reader's light or dark scheme.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ..catalog import gpus, mig, mig_solver
from ..catalog.mig import MigLayout, Placement
from ..cluster.mig_layouts import Group, product_of
from ..cluster.resolve import resolve
from ..policy.language.node_pools import NodePool
from ..policy.language.spec import ClusterPolicySpec
from .diff.ranges import runs
from .templates import part, template

COLUMNS = 96
"""Characters that a drawing in a terminal may take; names that need more are listed below it."""

WIDTH, BAR, LINE, MARGIN, GAP = 720, 44, 18, 20, 22
"""Measures of the SVG, in its own units: a bar's width and height, the height of a line of words, border and gap."""

WORDS = 100
"""Characters of a line in the SVG."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One GPU, or several that are cut alike: CAPTION says which, DETAIL what they hold.

    `slices` is the number of memory slices; 0 where there is nothing to draw (a whole GPU, or an unknown geometry)."""

    caption: str
    detail: str
    slices: int = 0
    placements: tuple[Placement, ...] = ()


def of_layout(caption: str, board: str, layout: Mapping[str, int] | MigLayout) -> Drawing:
    """The drawing of LAYOUT on BOARD. UnknownProfile for a profile that the board doesn't have."""
    wanted = layout if isinstance(layout, MigLayout) else MigLayout.of(layout)
    shape = mig.geometry(board)
    if shape is None:
        return Drawing(caption, f"{wanted}; where instances stand on {board} isn't known")
    places = mig_solver.placements(board, wanted)
    if places is None:
        return Drawing(caption, f"doesn't fit: {mig_solver.explain(board, wanted)}")
    compute, memory = mig_solver.used(board, wanted)
    used = f"{compute} of {shape.compute_slices} compute slices, {memory} of {shape.memory_slices} memory slices"
    return Drawing(caption, f"{wanted}: {used}", shape.memory_slices, places)


def of_spec(spec: ClusterPolicySpec) -> list[Drawing]:
    """The GPUs of each pool of SPEC."""
    drawings: list[Drawing] = []
    for pool in resolve(spec).pools:
        if pool.groups is None:
            unknown = f"what the MIG layout {pool.layout.name if pool.layout else ''} does isn't known"
            drawings.append(Drawing(f"{pool.name}: {_product(pool.said)}", unknown))
        drawings += [_of_group(pool.said, group, pool.groups or []) for group in pool.groups or ()]
    return drawings


def _of_group(pool: NodePool, group: Group, made: Sequence[Group]) -> Drawing:
    product = product_of(pool)
    caption = f"{pool.name}: {_gpus(pool, group, made)}{_product(pool)}"
    if group.layout is None or (product is not None and not product.mig_capable):
        return Drawing(caption, "whole" if product is None or product.mig_capable else "whole; this GPU takes no MIG")
    wanted = MigLayout.of(group.layout)
    if product is None or not gpus.mig_profiles(product):
        return Drawing(caption, f"{wanted}; the GPU isn't known, so there is nothing to draw")
    try:
        return of_layout(caption, product.group, wanted)
    except mig.UnknownProfile as error:
        return Drawing(caption, f"{wanted}: {error}")


def _gpus(pool: NodePool, group: Group, made: Sequence[Group]) -> str:
    if len(made) == 1:
        return f"{pool.gpusPerNode} x " if pool.gpusPerNode else "every "
    if group.indices is None:
        return "the other GPUs, "
    many = "GPUs" if len(group.indices) > 1 else "GPU"
    ranges = (str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs(group.indices))
    return f"{many} {', '.join(ranges)}, "


def _product(pool: NodePool) -> str:
    return pool.gpuProduct or "GPU that the policy doesn't name"


def terminal(drawings: Sequence[Drawing]) -> str:
    """DRAWINGS as lines of ASCII, each with its caption."""
    return "\n\n".join("\n".join([drawing.caption, *_lines(drawing)]) for drawing in drawings) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield f"  {drawing.detail}"
    if not drawing.slices:
        return
    cell = max([6, *(-(-(len(place.profile) + 3) // place.size) for place in drawing.placements)])
    keys = cell * drawing.slices > COLUMNS
    cell = 6 if keys else cell
    spans = list(_spans(drawing))
    yield "  " + "".join(f"{number:<{cell}}" for number in range(drawing.slices)).rstrip()
    edge = "+" + "".join(("." if not name else "-") * (size * cell - 1) + "+" for name, size in spans)
    labels = [chr(ord("a") + place) if keys else name for place, (name, _) in enumerate(spans)]
    named = [(label, name, size) for label, (name, size) in zip(labels, spans, strict=True)]
    row = "|" + "".join(f" {label if name else '':<{size * cell - 2}}|" for label, name, size in named)
    yield from (f"  {line}" for line in (edge, row, edge))
    if keys:
        yield "  " + ", ".join(f"{label} {name}" for label, name, _ in named if name)


def _spans(drawing: Drawing) -> Iterator[tuple[str, int]]:
    """Instances and gaps from left to right: profile, "" for a gap, and memory slices."""
    at = 0
    for place in drawing.placements:
        if place.start > at:
            yield "", place.start - at
        yield place.profile, place.size
        at = place.start + place.size
    if at < drawing.slices:
        yield "", drawing.slices - at


def svg(title: str, drawings: Sequence[Drawing], *, within: str = "") -> str:
    """DRAWINGS below one another, as an SVG document called TITLE.

    WITHIN a page, ids begin with that word, and styles and patterns are the page's: `shared`, once."""
    body, top = "", MARGIN
    for drawing in drawings:
        text, bottom = _bar(drawing, top)
        body += text
        top = bottom + GAP
    size = {"width": WIDTH + 2 * MARGIN, "height": top - GAP + MARGIN}
    description = escape(". ".join(f"{drawing.caption}: {drawing.detail}" for drawing in drawings))
    words = {"ids": within or "mig", "title": escape(title), "description": description}
    return part("picture", **size, **words, style="" if within else _style(), body=body)


def _bar(drawing: Drawing, top: int) -> tuple[str, int]:
    """The words and the bar of DRAWING from TOP on, and where they end."""
    lines = [part("caption", x=MARGIN, y=top + 12, words=escape(drawing.caption))]
    top += LINE + 2
    for words in textwrap.wrap(drawing.detail, WORDS):
        lines.append(part("detail", x=MARGIN, y=top + 10, words=escape(words)))
        top += LINE
    at = 0
    for name, size in _spans(drawing) if drawing.slices else ():
        x, width = MARGIN + WIDTH * at // drawing.slices, WIDTH * size // drawing.slices
        at += size
        what = f"{escape(name or 'unused')}, memory slices {at - size} to {at - 1}"
        kind = f"g{name[0]}" if name else "unused"
        lines.append(part("slice", kind=kind, x=x, y=top, width=width, height=BAR, what=what))
        if name:
            wide, middle = 7 * len(name) + 8, x + width // 2
            place = {"x": middle - wide // 2, "y": top + 13, "width": wide, "middle": middle, "line": top + 26}
            lines.append(part("label", **place, words=escape(name)))
    return "".join(lines), top + (BAR if drawing.slices else 0)


def shared() -> str:
    """What the pictures of a page share; displayed, with no size: browsers draw no pattern of a hidden picture."""
    return part("shared", style=_style())


def _style() -> str:
    """Contrast of text is above 7 in both schemes; a pattern tells sizes apart where colours don't."""
    return part("style", css=template("mig.css"), patterns=template("mig-patterns.svg").removesuffix("\n"))
