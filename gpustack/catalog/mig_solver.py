"""Which layouts fit on a board: placing instances, completing a layout, and the reason in words when one does not fit.

A board has at most twelve memory slices and holds at most seven instances, so the search for places is complete: what
it does not place has no place. The cheap limits (count of a profile, media extensions, compute and memory slices) come
first; they also are what people understand, so `explain` names them before it names places.

Rejected: choosing the places that the driver would choose. It decides by itself, and the MIG manager tries orders until
one works; a layout is as good as any of its placements.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .mig import MEDIA, Geometry, MigLayout, MigProfile, Placement, ProfileName, board_profiles, find, geometry

Wanted = Mapping[str, int] | MigLayout
"""A layout, or profile names with their counts."""

Piece = tuple[str, MigProfile]
"""An instance to place: its name as the layout has it, and the board's profile."""


class UnknownGeometry(LookupError):  # noqa: N818  # as UnknownProfile
    """Where instances may stand on the board is not known, so nothing can be placed."""


def fits(board: str, layout: Wanted) -> bool:
    """Whether LAYOUT can be placed on one GPU of BOARD. UnknownProfile for a profile that the board does not have.
    Where the geometry of BOARD is not known, counts and memory decide, and a true answer is not a promise. Parts of
    instances count as the instances that hold them."""
    layout = _layout(layout)
    return _within_limits(board, layout) if geometry(board) is None else _placements(board, layout) is not None


def placements(board: str, layout: Wanted) -> tuple[Placement, ...] | None:
    """Places for all instances of LAYOUT on one GPU of BOARD, from the first memory slice on; None if there are none.
    The same layout always gets the same places, the largest instances as far to the left as they can go. Parts
    (1c.3g.40gb) stand as the instances that hold them. UnknownProfile, and UnknownGeometry for a board of which only
    the names of its profiles are known."""
    _known_geometry(board)
    return _placements(board, _layout(layout))


def completions(board: str, wanted: Wanted) -> tuple[MigLayout, ...]:
    """All maximal layouts of BOARD that contain WANTED: those to which no instance can be added. The best first. Best
    is what uses the most compute slices, then the most memory, then the fewest instances; what is equal in all three
    stands in the order of names. Empty where WANTED does not fit. What is added has the names of older drivers where
    WANTED has one of those. UnknownProfile, UnknownGeometry."""
    _known_geometry(board)
    start = _layout(wanted)
    older = any(find(board, name).alias == str(name.instance) for name, _ in start.counts)
    profiles = board_profiles(board)
    names = [(profile.alias or profile.name) if older else profile.name for profile in profiles]
    layouts = _extensions(board, start, names)
    full = [each for each in layouts if not any(fits(board, each.plus(profile.name)) for profile in profiles)]
    return tuple(sorted(full, key=lambda layout: _merit(board, layout)))


def largest_part(board: str, layout: Wanted) -> MigLayout:
    """What fits of LAYOUT: as many of its instances as can be, and of equally many the best (see `completions`)."""
    whole = _layout(layout)
    best = MigLayout(())

    def extend(taken: MigLayout, index: int) -> None:
        nonlocal best
        if (-taken.instances, _merit(board, taken)) < (-best.instances, _merit(board, best)):
            best = taken
        for position in range(index, len(whole.counts)):
            name, count = whole.counts[position]
            if dict(taken.counts).get(name, 0) < count and fits(board, more := taken.plus(name)):
                extend(more, position)

    extend(best, 0)
    return best


def explain(board: str, layout: Wanted) -> str | None:
    """Why LAYOUT does not fit on one GPU of BOARD, in words without a full stop; None if it fits. UnknownProfile."""
    layout = _layout(layout)
    if fits(board, layout):
        return None
    counts = _wanted(board, layout)
    said = [*_too_many(board, counts), *_media(board, counts)]
    if not said:
        said = [*_too_large(board, layout, counts), *_without_place(board, layout)]
    return "; ".join(said)


def used(board: str, layout: Wanted) -> tuple[int, int]:
    """How many compute slices and how many memory slices of BOARD the instances of LAYOUT take. UnknownProfile."""
    pieces = _pieces(board, _layout(layout))
    return sum(profile.slices for _, profile in pieces), sum(profile.size or 0 for _, profile in pieces)


def instances(board: str, layout: Wanted) -> dict[str, int]:
    """The GPU instances that LAYOUT makes on BOARD: parts stand as what holds them. UnknownProfile."""
    counts = Counter[str]()
    for name, _, count in _wanted(board, _layout(layout)):
        counts[name] += count
    return dict(counts)


def _within_limits(board: str, layout: MigLayout) -> bool:
    """Whether LAYOUT keeps the limits of BOARD that need no placing."""
    counts = _wanted(board, layout)
    return not any((any(_too_many(board, counts)), any(_media(board, counts)), any(_too_large(board, layout, counts))))


def _too_many(board: str, counts: list[tuple[str, MigProfile, int]]) -> Iterator[str]:
    totals = Counter[str]()
    for _, profile, count in counts:
        totals[profile.name] += count
    for profile in board_profiles(board):
        if profile.max is not None and totals[profile.name] > profile.max:
            times = "once" if profile.max == 1 else f"{profile.max} times at most"
            yield f"{profile.name} fits {times} on {board}, not {totals[profile.name]} times"


def _media(board: str, counts: list[tuple[str, MigProfile, int]]) -> Iterator[str]:
    """Limits of the media engines. That +me.all leaves nothing for others is inferred (gpus/mig.yaml)."""
    shape = geometry(board)
    have = [(name, count) for name, profile, count in counts if set(profile.parsed.attributes) & set(MEDIA)]
    total, most = sum(count for _, count in have), shape.media if shape else 1
    if total > most and len(have) > 1:
        names = " and ".join(name for name, _ in have)
        yield f"{names} exclude each other: {board} has one set of media extensions"
    every = [name for name, _ in have if "me.all" in ProfileName.parse(name).attributes]
    others = [name for name, profile, _ in counts if not profile.parsed.without and name not in every]
    if every and others and total <= most:
        yield f"{every[0]} takes all media engines, so what stands beside it has to go without (-me), not {others[0]}"


def _too_large(board: str, layout: MigLayout, counts: list[tuple[str, MigProfile, int]]) -> Iterator[str]:
    shape, needs = geometry(board), "needs" if layout.instances == 1 else "need"
    if shape is None:
        # Names round the memory to the next gigabyte; the largest profile is the whole board.
        total = max((profile.memory_gb for profile in board_profiles(board)), default=0)
        least = sum((profile.memory_gb - 1) * count for _, profile, count in counts)
        if least > total:
            yield f"{layout} {needs} more than the {total} GB of {board}"
        return
    compute = sum(profile.slices * count for _, profile, count in counts)
    memory = sum((profile.size or 0) * count for _, profile, count in counts)
    over = [
        f"{have} of {most} {what} slices"
        for have, most, what in ((compute, shape.compute_slices, "compute"), (memory, shape.memory_slices, "memory"))
        if have > most
    ]
    if over:
        yield f"{layout} {needs} {' and '.join(over)} on {board}"


def _without_place(board: str, layout: MigLayout) -> Iterator[str]:
    """Names the first instance, from the largest on, that finds no place beside the others."""
    if geometry(board) is None:
        return
    placed: list[Piece] = []
    for name, profile in _pieces(board, layout):
        if _search([*placed, (name, profile)]) is None:
            taken = {1: "which is taken", 2: "both taken"}.get(len(profile.starts), "all taken")
            beside = MigLayout.of([(other, 1) for other, _ in placed])
            yield f"beside {beside}, {name} can only start at {_listed(profile.starts)}, {taken}"
            return
        placed.append((name, profile))


def _layout(layout: Wanted) -> MigLayout:
    return layout if isinstance(layout, MigLayout) else MigLayout.of(layout)


def _known_geometry(board: str) -> Geometry:
    shape = geometry(board)
    if shape is None:
        raise UnknownGeometry(f"where instances may stand on {board} is not known")
    return shape


@functools.lru_cache(maxsize=16384)
def _placements(board: str, layout: MigLayout) -> tuple[Placement, ...] | None:
    if not _within_limits(board, layout):
        return None
    pieces = _pieces(board, layout)
    starts = _search(pieces)
    if starts is None:
        return None
    stand = sorted(zip(starts, pieces, strict=True), key=lambda each: each[0])
    return tuple(Placement(name, start, of.size or 0, of.slices) for start, (name, of) in stand)


def _search(pieces: list[Piece]) -> tuple[int, ...] | None:
    """A start for each of PIECES, equal ones from left to right, or None. Dead ends are looked at once."""
    dead: set[tuple[int, int, int]] = set()

    def place(index: int, taken: int, earliest: int) -> tuple[int, ...] | None:
        if index == len(pieces):
            return ()
        if (index, taken, earliest) in dead:
            return None
        profile = pieces[index][1]
        for start in profile.starts:
            mask = ((1 << (profile.size or 0)) - 1) << start
            if start >= earliest and not taken & mask:
                same = index + 1 < len(pieces) and pieces[index + 1][1] == profile
                rest = place(index + 1, taken | mask, start + 1 if same else 0)
                if rest is not None:
                    return (start, *rest)
        dead.add((index, taken, earliest))
        return None

    return place(0, 0, 0)


def _wanted(board: str, layout: MigLayout) -> list[tuple[str, MigProfile, int]]:
    """Each name of LAYOUT with the board's profile and how many instances of it that makes. Parts of one profile share
    instances: an instance holds parts until its compute slices are used up."""
    parts: dict[ProfileName, list[int]] = {}
    instances: list[tuple[str, MigProfile, int]] = []
    for name, count in layout.counts:
        profile = find(board, name)
        if name.exposed:
            instances.append((str(name), profile, count))
        else:
            parts.setdefault(name.instance, []).extend([name.compute] * min(count, 8 * name.slices))
    for instance, sizes in parts.items():
        instances.append((str(instance), find(board, instance), _bins(sizes, instance.slices)))
    return instances


def _bins(sizes: list[int], room: int) -> int:
    """How many instances with ROOM compute slices hold parts of SIZES: the largest first, each where it fits. That is
    the least number for what boards have: rooms above three slices exist once on a board."""
    left: list[int] = []
    for size in sorted(sizes, reverse=True):
        index = next((index for index, free in enumerate(left) if free >= size), None)
        if index is None:
            left.append(room - size)
        else:
            left[index] -= size
    return len(left)


def _pieces(board: str, layout: MigLayout) -> list[Piece]:
    """The instances of LAYOUT one by one, the largest first. More than a board can hold are not listed."""
    counts = [(name, profile, min(count, (profile.max or 8) + 1)) for name, profile, count in _wanted(board, layout)]
    pieces = [(name, profile) for name, profile, count in counts for _ in range(count)]
    return sorted(pieces, key=lambda piece: (-(piece[1].size or 0), -piece[1].slices, piece[1].name, piece[0]))


def _extensions(board: str, layout: MigLayout, names: Sequence[str]) -> Iterator[MigLayout]:
    """LAYOUT and all that fits and adds instances of NAMES to it, each once."""
    if not fits(board, layout):
        return
    yield layout
    for position, name in enumerate(names):
        yield from _extensions(board, layout.plus(name), names[position:])


def _merit(board: str, layout: MigLayout) -> tuple[object, ...]:
    """Sorts layouts, the best first."""
    compute, memory = used(board, layout)
    return -compute, -memory, layout.instances, tuple(name.order for name, _ in layout.counts)


def _listed(starts: tuple[int, ...]) -> str:
    """Starts in words: "0", "0 or 4", "0 to 6", "0, 2 or 4"."""
    if len(starts) > 3 and starts == tuple(range(starts[0], starts[-1] + 1)):
        return f"{starts[0]} to {starts[-1]}"
    *first, last = (str(start) for start in starts)
    return f"{', '.join(first)} or {last}" if first else last
