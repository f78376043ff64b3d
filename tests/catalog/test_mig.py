"""MIG profile names, profiles of boards, and placement."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import gpus, mig
from gpustack.catalog.mig import IllegalProfile, ProfileName, UnknownProfile, config_name, resource_name

H100 = "NVIDIA-H100-80GB-HBM3"

MEASURED = {
    # NVML on real boards, driver 580.159.04: name, id, max, reported GiB, multiprocessors, starts, size
    H100: """
        1g.10gb    19 7  9.75  16 0,1,2,3,4,5,6 1
        1g.10gb+me 20 1  9.75  16 0,1,2,3,4,5,6 1
        1g.20gb    15 4 19.62  26 0,2,4,6       2
        2g.20gb    14 3 19.62  32 0,2,4         2
        3g.40gb     9 2 39.5   60 0,4           4
        4g.40gb     5 1 39.5   64 0             4
        7g.80gb     0 1 79.25 132 0             8""",
    "NVIDIA-H200": """
        1g.18gb    19 7  16.0  16 0,1,2,3,4,5,6 1
        1g.18gb+me 20 1  16.0  16 0,1,2,3,4,5,6 1
        1g.35gb    15 4  32.5  26 0,2,4,6       2
        2g.35gb    14 3  32.5  32 0,2,4         2
        3g.71gb     9 2 69.75  60 0,4           4
        4g.71gb     5 1 69.75  64 0             4
        7g.141gb    0 1 140.0 132 0             8""",
}

MAXIMAL = {
    # All sets of profiles to which nothing can be added, by slot: number of 1g, 1g with double memory, 2g, 3g, 4g, 7g.
    "NVIDIA-A100-SXM4-40GB": """
        0 0 0 0 0 1 | 0 0 0 1 1 0 | 0 1 1 0 1 0 | 1 0 1 0 1 0 | 0 2 0 0 1 0 | 2 1 0 0 1 0 | 3 0 0 0 1 0 | 0 0 0 2 0 0
        0 0 2 1 0 0 | 0 1 1 1 0 0 | 2 0 1 1 0 0 | 0 2 0 1 0 0 | 2 1 0 1 0 0 | 4 0 0 1 0 0 | 0 1 3 0 0 0 | 1 0 3 0 0 0
        0 2 2 0 0 0 | 2 1 2 0 0 0 | 3 0 2 0 0 0 | 0 3 1 0 0 0 | 2 2 1 0 0 0 | 4 1 1 0 0 0 | 5 0 1 0 0 0 | 0 4 0 0 0 0
        2 3 0 0 0 0 | 4 2 0 0 0 0 | 6 1 0 0 0 0 | 7 0 0 0 0 0""",
    # 1g, 2g, 4g
    "NVIDIA-A30": "0 0 1 | 0 2 0 | 2 1 0 | 4 0 0",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "0 0 1 | 0 2 0 | 2 1 0 | 4 0 0",
}


def plain(product: str) -> list[mig.MigProfile]:
    """The profiles of a product that have no attributes."""
    return [profile for profile in gpus.mig_profiles(product) if profile.name.endswith("gb")]


@pytest.mark.parametrize("product", MEASURED)
def test_profiles_are_what_real_boards_report(product: str) -> None:
    """Ids, counts, memory and placements equal the readings on an H100 and an H200."""
    rows = [line.split() for line in MEASURED[product].strip().splitlines()]
    assert [profile.name for profile in gpus.mig_profiles(product)] == [row[0] for row in rows]
    for profile, row in zip(gpus.mig_profiles(product), rows, strict=True):
        assert (profile.id, profile.max, profile.size) == (int(row[1]), int(row[2]), int(row[6]))
        assert (profile.memory_gib, profile.multiprocessors) == (float(row[3]), int(row[4]))
        assert profile.starts == tuple(int(start) for start in row[5].split(","))


@pytest.mark.parametrize("product", [name for name in gpus.products() if gpus.product(name).mig])
def test_every_divisible_product_has_profiles(product: str) -> None:
    """A board whose geometry is known has ids and placements for all its profiles, and names that parse."""
    found = gpus.mig_profiles(product)
    if product == "NVIDIA-RTX-PRO-5000-72GB-Blackwell":  # documented as not known
        assert found == ()
        return
    assert found
    for profile in found:
        assert str(profile.parsed) == profile.name
        known = gpus.product(product).mig != "unknown"
        assert (profile.id is not None, profile.size is not None, bool(profile.starts)) == (known, known, known)
        assert not known or profile.compute[profile.slices] == 1
        assert profile.max


@pytest.mark.parametrize("product", MAXIMAL)
def test_placement_gives_the_documented_combinations(product: str) -> None:
    """The largest sets of instances that can be placed are those of the user guide, no more and no fewer."""
    profiles = plain(product)
    counts = itertools.product(*(range((profile.max or 0) + 1) for profile in profiles))
    names = [profile.name for profile in profiles]
    fitting = {count for count in counts if gpus.fits(product, dict(zip(names, count, strict=True)))}
    expected = {
        tuple(int(n) for n in part.split()) for part in MAXIMAL[product].replace("\n", "|").split("|") if part.strip()
    }
    assert maximal(fitting) == expected


def maximal(counts: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Those counts to which no single instance can be added."""
    known = set(counts)
    return {
        count
        for count in known
        if not any((*count[:i], count[i] + 1, *count[i + 1 :]) in known for i in range(len(count)))
    }


@pytest.mark.parametrize(
    ("product", "layout", "fits"),
    [
        (H100, {"3g.40gb": 1, "2g.20gb": 2}, True),
        (H100, {"3g.40gb": 1, "4g.40gb": 1}, True),
        (H100, {"3g.40gb": 2, "1g.10gb": 1}, False),  # seven compute slices, but no memory left
        (H100, {"1g.10gb+me": 1, "1g.10gb": 6}, True),
        (H100, {"1g.10gb+me": 2}, False),  # one set of media extensions
        (H100, {"1c.3g.40gb": 3}, True),  # one instance holds three
        (H100, {"1c.3g.40gb": 7}, False),  # would take three instances
        (H100, {}, True),
        ("NVIDIA-A30", {"1g.6gb+me": 1, "2g.12gb+me": 1}, False),
        ("NVIDIA-GB200", {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}, True),
        ("NVIDIA-GB200", {"3g.95gb": 2}, True),  # the names of older drivers
        ("NVIDIA-RTX-PRO-4500-Blackwell", {"1g.16gb": 2}, True),  # only counts are known
        ("NVIDIA-RTX-PRO-4500-Blackwell", {"1g.16gb": 3}, False),
    ],
)
def test_layouts(product: str, layout: dict[str, int], fits: bool) -> None:
    """Whether a layout fits is known before any GPU is asked."""
    assert gpus.fits(product, layout) is fits


@given(st.lists(st.sampled_from([profile.name for profile in gpus.mig_profiles(H100)]), max_size=8), st.integers(0, 7))
def test_taking_an_instance_away_never_breaks_a_layout(names: list[str], index: int) -> None:
    """What fits still fits with one instance less."""
    layout = {name: names.count(name) for name in names}
    if names and gpus.fits(H100, layout):
        layout[names[index % len(names)]] -= 1
        assert gpus.fits(H100, layout)


@pytest.mark.parametrize(
    "text",
    [
        "1g.10gb",
        "1g.10gb+me",
        "1g.24gb-me",
        "1g.24gb+me.all",
        "1g.24gb+gfx",
        "7g.141gb",
        "1c.3g.40gb",
        "1g.24gb+gfx,me",
    ],
)
def test_profile_names_are_read_and_written(text: str) -> None:
    """A name is written as it was read."""
    assert str(ProfileName.parse(text)) == text


def test_parts_of_a_profile_name() -> None:
    """C, G and M of a name, and its attributes on either side."""
    assert ProfileName.parse("1c.3g.40gb") == ProfileName(1, 3, 40)
    assert ProfileName.parse("1g.10gb+me") == ProfileName(1, 1, 10, ("me",))
    assert ProfileName.parse("2g.48gb-me") == ProfileName(2, 2, 48, (), ("me",))
    assert ProfileName.parse("3c.3g.40gb") == ProfileName.parse("3g.40gb")
    assert ProfileName.parse("1g.24gb+me,gfx") == ProfileName.parse("1g.24gb+gfx,me")


@pytest.mark.parametrize(
    "text",
    [
        "", "1g", "10gb", "1g.10GB", "1g.10g", "0g.10gb", "1g.010gb", "1g.10gb+", "1g.10gb+foo", "1g.10gb-gfx",
        "1g.10gb+me-me", "1g.10gb+me,me", "2c.1g.10gb", "all-1g.10gb", "1g.10gb.me", " 1g.10gb", "1g.10gb\n",
        "1g.10gb+me.", "nvidia.com/mig-1g.10gb", "１g.10gb", "1g.1０gb",
    ],
)  # fmt: skip
def test_illegal_profile_names_are_refused(text: str) -> None:
    """Whatever is not a profile is refused while parsing, so that nothing later meets one."""
    with pytest.raises(IllegalProfile, match=r"MIG profile|twice|do not fit"):
        ProfileName.parse(text)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 999), st.sets(st.sampled_from(mig.POSITIVE)), st.booleans())
def test_every_legal_name_survives_writing(compute: int, slices: int, memory: int, plus: set[str], minus: bool) -> None:
    """Reading what was written gives the same value, for any legal value."""
    name = ProfileName(min(compute, slices), slices, memory, tuple(sorted(plus)), ("me",) if minus and not plus else ())
    assert ProfileName.parse(str(name)) == name


@pytest.mark.parametrize(
    ("profile", "resource", "config"),
    [
        ("1g.10gb", "nvidia.com/mig-1g.10gb", "all-1g.10gb"),
        ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me", "all-1g.10gb.me"),
        ("1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all", "all-1g.24gb.me.all"),
        ("1g.24gb-me", "nvidia.com/mig-1g.24gb-me", "all-1g.24gb-me"),
        ("1g.24gb+gfx", "nvidia.com/mig-1g.24gb.gfx", "all-1g.24gb.gfx"),
    ],
)
def test_names_made_of_a_profile(profile: str, resource: str, config: str) -> None:
    """In resources and layouts a plus is written as a dot, a minus stays."""
    assert resource_name(profile) == resource
    assert config_name(profile) == config
    assert resource_name(ProfileName.parse(profile)) == resource


def test_parts_of_instances_are_no_resources() -> None:
    """The device plugin offers whole instances only; the error names the one."""
    with pytest.raises(IllegalProfile, match=r"use 3g\.40gb"):
        resource_name("1c.3g.40gb")


@pytest.mark.parametrize(
    ("product", "profile", "nearest"),
    [
        (H100, "1g.5gb", "1g.10gb"),
        (H100, "3g.39gb", "3g.40gb"),
        (H100, "1g.10gb+gfx", "1g.10gb"),
        (H100, "7g.79gb", "7g.80gb"),
        ("NVIDIA-A100-SXM4-40GB", "3g.40gb", "3g.20gb"),
        (H100, "2c.4g.41gb", "4g.40gb"),
    ],
)
def test_unknown_profile_names_the_nearest(product: str, profile: str, nearest: str) -> None:
    """A profile of another board, or with the number of another driver, leads to the one of this board."""
    with pytest.raises(UnknownProfile) as caught:
        gpus.mig_profile(product, profile)
    assert nearest in caught.value.nearest


def test_a_board_without_mig_has_no_profile_to_suggest() -> None:
    """An L4 cannot be divided, so there is nothing to mean."""
    with pytest.raises(UnknownProfile) as caught:
        gpus.mig_profile("NVIDIA-L4", "1g.10gb")
    assert caught.value.nearest == ()


def test_profiles_are_found_by_the_names_of_older_drivers() -> None:
    """GB200 calls its slots differently with older drivers; both names mean the same instance."""
    assert gpus.mig_profile("NVIDIA-GB200", "7g.189gb") == gpus.mig_profile("NVIDIA-GB200", "7g.186gb")
    assert gpus.mig_profile(H100, "1c.3g.40gb").name == "3g.40gb"
