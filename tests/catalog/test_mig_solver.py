"""Placing MIG layouts: the solver against a search of its own kind, and against what boards and their guide say."""

from __future__ import annotations

import functools
import itertools
import time
from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import _data, gpus, mig, mig_solver
from gpustack.catalog.mig import IllegalProfile, MigLayout, Placement, UnknownProfile
from gpustack.catalog.mig_solver import UnknownGeometry

DATA: dict[str, Any] = yaml.safe_load((_data.ROOT / "gpus" / "mig.yaml").read_text(encoding="utf-8"))
BOARDS = sorted(DATA["boards"])
PLACED = [name for name in BOARDS if DATA["boards"][name]["geometry"]]
H100, A30, RTX, RTX4500 = "H100-80GB", "A30", "RTX-PRO-6000-Blackwell", "RTX-PRO-4500-Blackwell"
ONE_OF_EACH = [H100, A30, RTX]
"""A board of each geometry."""

Layout = frozenset[tuple[str, int]]
"""Slots of a geometry, each with how often it is there."""


@functools.cache
def possible(geometry: str) -> frozenset[Layout]:
    """All layouts of GEOMETRY, found by filling the board from left to right in every way there is.

    Written without a look at the solver: each memory slice is left empty or begins an instance that may start there.
    """
    shape = DATA["geometries"][geometry]
    found: set[Layout] = set()

    def fill(at: int, slots: tuple[str, ...]) -> None:
        if at >= shape["memory_slices"]:
            if allowed(shape, Counter(slots)):
                found.add(frozenset(Counter(slots).items()))
            return
        fill(at + 1, slots)
        for name, slot in shape["slots"].items():
            if at in slot["starts"] and at + slot["size"] <= shape["memory_slices"]:
                fill(at + slot["size"], (*slots, name))

    fill(0, ())
    return frozenset(found)


def allowed(shape: dict[str, Any], counts: Counter[str]) -> bool:
    """The limits that no place shows: counts, media extensions, compute slices."""
    slots = shape["slots"]
    media = [name for name in counts.elements() if name.endswith(("+me", "+me.all"))]
    takes_all = [name for name in counts.elements() if name.endswith("+me.all")]
    return (
        all(count <= slots[name]["max"] for name, count in counts.items())
        and len(media) <= shape["media"]
        and (not takes_all or all(name.endswith("-me") for name in (counts - Counter(takes_all)).elements()))
        and sum(slots[name]["slices"] * count for name, count in counts.items()) <= shape["compute_slices"]
    )


def within(part: MigLayout, whole: MigLayout) -> bool:
    """Whether every instance of PART is one of WHOLE's too."""
    own = dict(whole.counts)
    return all(own.get(name, 0) >= count for name, count in part.counts)


def named(board: str, layout: Layout) -> dict[str, int]:
    """LAYOUT with the names of BOARD."""
    profiles = DATA["boards"][board]["profiles"]
    return {profiles[slot]["name"]: count for slot, count in layout}


@pytest.mark.parametrize("board", PLACED)
def test_the_solver_agrees_with_exhaustive_search(board: str) -> None:
    """On every board all layouts that there are fit, and none of those that have one instance more.

    What has two more than one that there is has a part with one more, so with the test below that is all layouts.
    """
    known = possible(DATA["boards"][board]["geometry"])
    beyond = {plus(layout, slot) for layout in known for slot in DATA["boards"][board]["profiles"]} - known
    assert all(mig_solver.fits(board, named(board, layout)) for layout in known)
    assert not any(mig_solver.fits(board, named(board, layout)) for layout in beyond)


def plus(layout: Layout, slot: str) -> Layout:
    """LAYOUT with one instance more."""
    return frozenset((Counter(dict(layout)) + Counter([slot])).items())


@pytest.mark.parametrize("board", [H100, A30])
def test_every_count_there_is(board: str) -> None:
    """The same for each combination of counts, from none to one too many of each profile."""
    profiles, known = DATA["boards"][board]["profiles"], possible(DATA["boards"][board]["geometry"])
    slots = DATA["geometries"][DATA["boards"][board]["geometry"]]["slots"]
    for counts in itertools.product(*(range(min(slots[slot]["max"], 4) + 2) for slot in profiles)):
        layout = frozenset((slot, count) for slot, count in zip(profiles, counts, strict=True) if count)
        assert mig_solver.fits(board, named(board, layout)) == (layout in known), counts


@pytest.mark.parametrize("board", ONE_OF_EACH)
def test_completions_are_the_maximal_layouts(board: str) -> None:
    """What completes nothing at all is every layout to which nothing can be added."""
    known = possible(DATA["boards"][board]["geometry"])
    slots = DATA["boards"][board]["profiles"]
    maximal = {layout for layout in known if not any(plus(layout, slot) in known for slot in slots)}
    found = mig_solver.completions(board, {})
    assert {frozenset(layout.as_dict().items()) for layout in found} == {
        frozenset(named(board, layout).items()) for layout in maximal
    }
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("board", ONE_OF_EACH)
def test_placements_stand_where_they_may(board: str) -> None:
    """Instances start where the board lets them, stand on no slice twice, and are those that were asked for."""
    profiles = {profile.name: profile for profile in mig.board_profiles(board)}
    for layout in possible(DATA["boards"][board]["geometry"]):
        wanted = named(board, layout)
        places = mig_solver.placements(board, wanted)
        assert places is not None
        assert Counter(place.profile for place in places) == Counter(wanted)
        assert [place.start for place in places] == sorted(place.start for place in places)
        taken = [slice_ for place in places for slice_ in range(place.start, place.start + place.size)]
        assert len(set(taken)) == len(taken)
        for place in places:
            assert place.start in profiles[place.profile].starts
            assert (place.size, place.compute) == (profiles[place.profile].size, profiles[place.profile].slices)


@given(st.sampled_from(PLACED), st.data())
def test_a_part_of_what_fits_fits(board: str, data: st.DataObject) -> None:
    """Taking instances away never breaks a layout, and adding some never repairs one."""
    names = [profile.name for profile in mig.board_profiles(board)]
    layout = Counter(data.draw(st.lists(st.sampled_from(names), max_size=8)))
    part = Counter({name: data.draw(st.integers(0, count)) for name, count in layout.items()})
    assert mig_solver.fits(board, part) or not mig_solver.fits(board, layout)


@given(st.permutations(["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb+me"]))
def test_order_is_irrelevant(names: list[str]) -> None:
    """A layout is a value: the order in which it was written changes neither it nor its places."""
    layout = MigLayout.of(dict.fromkeys(names, 1))
    assert layout == MigLayout.parse("3g.40gb,2g.20gb,1g.10gb,1g.10gb+me")
    assert mig_solver.placements(H100, dict.fromkeys(names, 1)) == mig_solver.placements(H100, layout)


def test_places_on_a_known_board() -> None:
    """A 3g beside four 1g has to go to the right: the last memory slice starts no instance of one (measured)."""
    assert mig_solver.placements(H100, {"3g.40gb": 1, "1g.10gb": 4}) == (
        *(Placement("1g.10gb", start, 1, 1) for start in range(4)),
        Placement("3g.40gb", 4, 4, 3),
    )
    assert mig_solver.placements(H100, {"3g.40gb": 2, "1g.10gb": 1}) is None
    assert mig_solver.placements(H100, {}) == ()


@pytest.mark.parametrize(
    ("board", "wanted", "best"),
    [
        (H100, "1g.10gb=4,3g.40gb=1", ["3g.40gb + 4 x 1g.10gb"]),
        (H100, "4g.40gb", ["4g.40gb + 3g.40gb", "4g.40gb + 2g.20gb + 1g.20gb"]),
        (H100, "7g.80gb", ["7g.80gb"]),
        (H100, "1g.10gb=7", ["7 x 1g.10gb"]),
        (A30, "2g.12gb=1", ["2 x 2g.12gb", "2g.12gb + 2g.12gb+me"]),
        ("GB200", "1g.24gb=6", ["1g.47gb + 6 x 1g.24gb", "7 x 1g.24gb"]),  # older drivers name them so
        (H100, "4g.40gb=2", []),
    ],
)
def test_the_best_completions(board: str, wanted: str, best: list[str]) -> None:
    """Most compute slices first, then most memory, then the fewest instances."""
    found = mig_solver.completions(board, MigLayout.parse(wanted))
    assert [str(layout) for layout in found][: len(best)] == best
    assert bool(found) == bool(best)
    assert all(within(MigLayout.parse(wanted), layout) for layout in found)
    merits = [(*(-number for number in mig_solver.used(board, layout)), layout.instances) for layout in found]
    assert merits == sorted(merits)


@pytest.mark.parametrize(
    ("board", "layout", "words"),
    [
        (
            H100,
            "4g.40gb,3g.40gb,1g.10gb",
            (
                "4g.40gb + 3g.40gb + 1g.10gb need 8 of 7 compute slices and 9 of 8 memory slices on H100-80GB; "
                "beside 4g.40gb + 3g.40gb, 1g.10gb can only start at 0 to 6, all taken"
            ),
        ),
        (
            H100,
            "4g.40gb,3g.40gb=2",
            (
                "4g.40gb + 2 x 3g.40gb need 10 of 7 compute slices and 12 of 8 memory slices on H100-80GB; "
                "beside 4g.40gb + 3g.40gb, 3g.40gb can only start at 0 or 4, both taken"
            ),
        ),
        (H100, "3g.40gb=3", "3g.40gb fits 2 times at most on H100-80GB, not 3 times"),
        (H100, "1g.10gb+me=2", "1g.10gb+me fits once on H100-80GB, not 2 times"),
        (
            A30,
            "1g.6gb+me,2g.12gb+me",
            "2g.12gb+me and 1g.6gb+me exclude each other: A30 has one set of media extensions",
        ),
        (
            RTX,
            "1g.24gb+me.all,1g.24gb",
            "1g.24gb+me.all takes all media engines, so what stands beside it has to go without (-me), not 1g.24gb",
        ),
        (RTX4500, "2g.32gb,1g.16gb", "2g.32gb + 1g.16gb need more than the 32 GB of RTX-PRO-4500-Blackwell"),
        (RTX4500, "1g.16gb=3", "1g.16gb fits 2 times at most on RTX-PRO-4500-Blackwell, not 3 times"),
        (H100, "3g.40gb,4g.40gb", None),
        (RTX, "1g.24gb+me.all,1g.24gb-me=3", None),
        (RTX4500, "1g.16gb=2", None),
    ],
)
def test_reasons(board: str, layout: str, words: str | None) -> None:
    """The reason names the limit that is broken, and where the last instance could have stood."""
    assert mig_solver.explain(board, MigLayout.parse(layout)) == words


@given(st.sampled_from(BOARDS), st.data())
def test_a_reason_for_all_that_does_not_fit(board: str, data: st.DataObject) -> None:
    """There is a reason exactly where a layout doesn't fit, and then a part of it that does."""
    names = [profile.name for profile in mig.board_profiles(board)]
    layout = MigLayout.of(Counter(data.draw(st.lists(st.sampled_from(names), max_size=9))))
    part = mig_solver.largest_part(board, layout)
    assert mig_solver.fits(board, part)
    assert within(part, layout)
    assert bool(mig_solver.explain(board, layout)) == (not mig_solver.fits(board, layout)) == (part != layout)


@pytest.mark.parametrize(
    ("layout", "part"),
    [
        ("4g.40gb,3g.40gb,1g.10gb", "4g.40gb + 3g.40gb"),
        ("7g.80gb,1g.10gb=7", "7 x 1g.10gb"),
        ("1g.10gb=999", "7 x 1g.10gb"),
        ("1c.3g.40gb=7", "6 x 1c.3g.40gb"),
    ],
)
def test_the_largest_part(layout: str, part: str) -> None:
    """As many of the wanted instances as fit are kept."""
    assert str(mig_solver.largest_part(H100, MigLayout.parse(layout))) == part


@pytest.mark.parametrize(
    ("layout", "instances"),
    [
        ("1c.3g.40gb=3", {"3g.40gb": 1}),
        ("1c.3g.40gb=4", {"3g.40gb": 2}),
        ("2c.4g.40gb=1,1c.4g.40gb=2", {"4g.40gb": 1}),
        ("1c.3g.40gb=1,3g.40gb=1", {"3g.40gb": 2}),
    ],
)
def test_parts_share_instances(layout: str, instances: dict[str, int]) -> None:
    """Compute instances stand in as few GPU instances as hold them, and never in one that is whole."""
    assert mig_solver.instances(H100, MigLayout.parse(layout)) == instances


def test_what_is_not_known() -> None:
    """A board without a known geometry has no places; a profile of another board is an error, not a misfit."""
    with pytest.raises(UnknownGeometry):
        mig_solver.placements(RTX4500, {"1g.16gb": 1})
    with pytest.raises(UnknownGeometry):
        mig_solver.completions(RTX4500, {})
    with pytest.raises(UnknownProfile):
        mig_solver.fits(H100, {"1g.5gb": 1})


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("1g.10gb=4,3g.40gb=1", {"3g.40gb": 1, "1g.10gb": 4}),
        (" 1g.10gb = 4 , 3g.40gb", {"3g.40gb": 1, "1g.10gb": 4}),
        ("1g.10gb,1g.10gb=2", {"1g.10gb": 3}),
        ("1g.24gb+gfx,me=1,1g.24gb-me", {"1g.24gb-me": 1, "1g.24gb+gfx,me": 1}),
        ("1g.10gb=0", {}),
        ("", {}),
    ],
)
def test_layouts_are_read(text: str, layout: dict[str, int]) -> None:
    """A layout is read as a command line has it, and written with the largest instance first."""
    assert MigLayout.parse(text).as_dict() == layout
    assert list(MigLayout.parse(text).as_dict()) == list(layout)


@pytest.mark.parametrize("text", ["1g", "1g.10gb=", "1g.10gb=x", "1g.10gb=-1", "1g.10gb=1.5", ",", "1g.10gb=٣", "=1"])
def test_illegal_layouts_are_refused(text: str) -> None:
    """What is not a layout says so, and never counts as an empty one."""
    with pytest.raises(IllegalProfile):
        MigLayout.parse(text)


def test_every_product_has_its_board() -> None:
    """Products ask by their board: the same answer by either name."""
    for name in gpus.products():
        product = gpus.product(name)
        for profile in gpus.mig_profiles(product):
            assert gpus.fits(name, {profile.name: profile.max or 1}), (name, profile.name)
            assert not gpus.fits(name, {profile.name: (profile.max or 1) + 1})


@pytest.mark.parametrize("board", ONE_OF_EACH)
def test_a_layout_takes_less_than_ten_milliseconds(board: str) -> None:
    """On average over all layouts, those that don't fit among them, and for the largest that anybody may write."""
    layouts = [named(board, layout) for layout in possible(DATA["boards"][board]["geometry"])]
    layouts += [dict.fromkeys(layouts[-1], 999)]
    mig_solver._placements.cache_clear()
    start = time.process_time()
    for layout in layouts:
        mig_solver.fits(board, layout)
        mig_solver.explain(board, layout)
    assert (time.process_time() - start) / len(layouts) < 0.010
