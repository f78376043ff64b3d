"""MIG: profile names, what a board offers, and whether a layout fits.

A profile name is [<C>c.]<G>g.<M>gb with attributes: G compute slices of the GPU, M gigabytes (rounded, so that it
differs by board and drifts with the driver), and C where an instance is divided further. `+me` asks for media
extensions, `-me` goes without. Names are parsed once, here, and anything else is refused.

Placement needs no knowledge of products: a geometry (data/gpus/mig.yaml) says where instances may start, and boards
only differ in the names of its slots. Tables of all valid combinations, as the user guide prints them, were rejected:
they are a consequence of the placements, and the tests derive them.

The value types are here; mig_solver.py places a layout, completes it and says in words why it doesn't fit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpustack.catalog import _data, plugin_config
from gpustack.catalog._lookup import UnknownName, nearest

POSITIVE = ("gfx", "me", "me.all")
NEGATIVE = ("me",)
MEDIA = ("me", "me.all")
"""Attributes that take the media extensions, of which a board has one set."""

_NAME = re.compile(r"(?:([1-9])c\.)?([1-9])g\.(0|[1-9][0-9]{0,8})gb(?:([+-])([a-z.,]+))?")


class IllegalProfile(ValueError):  # noqa: N818  # as UnknownProfile
    """A text that is not a MIG profile name."""


class UnknownProfile(UnknownName):
    what = "MIG profile"


@dataclass(frozen=True, slots=True)
class ProfileName:
    """A parsed profile name. `compute` is C, `slices` G, `memory_gb` M; the attributes are sorted."""

    compute: int
    slices: int
    memory_gb: int
    attributes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ProfileName:
        """Read TEXT ("1g.10gb+me"); IllegalProfile says what is wrong with it."""
        match = _NAME.fullmatch(text)
        if match is None:
            raise IllegalProfile(f"{text!r} is not a MIG profile; one looks like 1g.10gb, 1g.10gb+me or 1c.3g.40gb")
        compute, slices, memory, sign, listed = match.groups()
        attributes = tuple(sorted(listed.split(","))) if listed else ()
        allowed = NEGATIVE if sign == "-" else POSITIVE
        if (wrong := next((each for each in attributes if each not in allowed), None)) is not None:
            raise IllegalProfile(f"{text!r}: no MIG profile has {sign}{wrong} ({sign} takes {', '.join(allowed)})")
        if len(set(attributes)) < len(attributes):
            raise IllegalProfile(f"{text!r} names an attribute twice")
        if compute and int(compute) > int(slices):
            raise IllegalProfile(f"{text!r}: {compute} compute slices do not fit into an instance of {slices}")
        plus, minus = ((), attributes) if sign == "-" else (attributes, ())
        return cls(int(compute or slices), int(slices), int(memory), plus, minus)

    @property
    def exposed(self) -> bool:
        """Whether the device plugin offers it: only where one compute instance spans the whole GPU instance."""
        return self.compute == self.slices

    @property
    def order(self) -> tuple[int, int, int, tuple[str, ...], tuple[str, ...]]:
        """Sorts names: the largest instance first, plain ones before those with attributes."""
        return -self.slices, -self.memory_gb, -self.compute, self.attributes, self.without

    @property
    def instance(self) -> ProfileName:
        """The GPU instance that it is, or is a part of: 3g.40gb of 1c.3g.40gb."""
        return ProfileName(self.slices, self.slices, self.memory_gb, self.attributes, self.without)

    def __str__(self) -> str:
        part = "" if self.exposed else f"{self.compute}c."
        plus = f"+{','.join(self.attributes)}" if self.attributes else ""
        minus = f"-{','.join(self.without)}" if self.without else ""
        return f"{part}{self.slices}g.{self.memory_gb}gb{plus}{minus}"


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A profile that a board offers.

    `id` is what `nvidia-smi mig -lgip` prints; `size` and `starts` count memory slices of the board. They are None or
    empty where the board's geometry is not known. `compute` maps the slices of a compute instance to how many of them
    one GPU instance holds. `memory_gib` is what NVML reports, `multiprocessors` their number, `branch` the driver
    branch that brought the profile (None: not known, or as old as MIG on the board). `alias` is the name that older
    drivers give it."""

    name: str
    slices: int
    memory_gb: int
    memory_gib: float | None
    multiprocessors: int | None
    id: int | None = None
    max: int | None = None
    size: int | None = None
    starts: tuple[int, ...] = ()
    compute: Mapping[int, int] = field(default_factory=dict)
    branch: str | None = None
    alias: str | None = None

    @property
    def parsed(self) -> ProfileName:
        return ProfileName.parse(self.name)


@dataclass(frozen=True, slots=True)
class Geometry:
    """How long a board is, in compute and in memory slices, and how many instances may have media extensions."""

    name: str
    compute_slices: int
    memory_slices: int
    media: int


@dataclass(frozen=True, slots=True)
class MigLayout:
    """How many instances of each profile one GPU gets: a value, whatever the order in which it was written. `counts`
    holds each profile once, with one instance or more, the largest first. Names of the same profile by different
    drivers stay apart here; a board tells that they are one."""

    counts: tuple[tuple[ProfileName, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str, int] | Iterable[tuple[str | ProfileName, int]]) -> MigLayout:
        """The layout with COUNTS (profile to number). IllegalProfile for any other name and below 0."""
        total: dict[ProfileName, int] = {}
        for text, count in counts.items() if isinstance(counts, Mapping) else counts:
            name = _parsed(text)
            if count < 0:
                raise IllegalProfile(f"{count} instances of {name}: a count is 0 or more")
            total[name] = total.get(name, 0) + count
        return cls(tuple(sorted(((n, c) for n, c in total.items() if c), key=lambda item: item[0].order)))

    @classmethod
    def parse(cls, text: str) -> MigLayout:
        """Read "1g.10gb=4,3g.40gb=1"; a profile without a number counts once. IllegalProfile says what is wrong."""
        counts: list[tuple[str | ProfileName, int]] = []
        # Attributes are separated by commas as well: 1g.24gb+gfx,me. They begin with a letter, profiles do not.
        for part in re.split(r",(?=[^a-z])", "".join(text.split())) if text.strip() else []:
            name, equals, number = part.partition("=")
            if equals and not (number.isascii() and number.isdigit() and len(number) < 4):
                raise IllegalProfile(f"{number!r} is not a number of instances; write {name or '1g.10gb'}=2")
            counts.append((name, int(number) if equals else 1))
        return cls.of(counts)

    @property
    def instances(self) -> int:
        return sum(count for _, count in self.counts)

    def as_dict(self) -> dict[str, int]:
        """Profile name to count, the largest first."""
        return {str(name): count for name, count in self.counts}

    def plus(self, name: str | ProfileName, count: int = 1) -> MigLayout:
        """This layout with COUNT more instances of NAME."""
        return MigLayout.of([*self.counts, (name, count)])

    def __str__(self) -> str:
        return " + ".join(f"{name}" if count == 1 else f"{count} x {name}" for name, count in self.counts) or "nothing"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an instance stands on its GPU: memory slices START to START + SIZE - 1, and COMPUTE compute slices."""

    profile: str
    start: int
    size: int
    compute: int


def resource_name(profile: str | ProfileName, plugin: str = "") -> str:
    """The extended resource of a profile under the strategy `mixed`: 1g.10gb+me is nvidia.com/mig-1g.10gb.me. PLUGIN is
    the version of the device plugin, "" for the newest. Before v0.20.0 its patterns fit parts of names, and the plain
    profile's comes first: 1g.10gb+me and 1c.1g.10gb count as nvidia.com/mig-1g.10gb there. IllegalProfile for a part of
    an instance (1c.3g.40gb), which the device plugin does not offer from v0.20.0 on."""
    name = _parsed(profile)
    if plugin_config.before(plugin, plugin_config.NAMES_ANCHORED):
        return f"nvidia.com/mig-{name.slices}g.{name.memory_gb}gb"
    if not name.exposed:
        raise IllegalProfile(
            f"{name} is a part of an instance, and those are not resources of the device plugin; use {name.instance}"
        )
    return f"nvidia.com/mig-{_dotted(name)}"


def config_name(profile: str | ProfileName) -> str:
    """The entry of the MIG manager's configuration that divides every GPU into this profile: all-1g.10gb.me."""
    return f"all-{_dotted(_parsed(profile))}"


@functools.cache
def board_profiles(board: str) -> tuple[MigProfile, ...]:
    """The profiles of BOARD (a key of data/gpus/mig.yaml), smallest first; empty where there are none or none known."""
    data = _data.load("gpus/mig")
    facts = data["boards"].get(board)
    if facts is None:
        return ()
    slots = data["geometries"][facts["geometry"]]["slots"] if facts["geometry"] else {}
    return tuple(_profile(row, slots.get(slot, {})) for slot, row in facts["profiles"].items())


def find(board: str, profile: str | ProfileName) -> MigProfile:
    """The profile of BOARD by name or alias; for a part (1c.3g.40gb) its instance. UnknownProfile for any other."""
    name = _parsed(profile)
    known = _by_name(board).get(name.instance)
    if known is not None and (name.exposed or name.compute in known.compute):
        return known
    raise UnknownProfile(str(name), nearest(str(name), (known.name for known in board_profiles(board))))


def boards() -> list[str]:
    """The keys of all boards that take MIG and whose profiles are known, in alphabetical order."""
    return sorted(_data.load("gpus/mig")["boards"])


@functools.cache
def geometry(board: str) -> Geometry | None:
    """The geometry of BOARD; None where it is not known, and for a board without MIG."""
    data = _data.load("gpus/mig")
    name = data["boards"].get(board, {}).get("geometry")
    if not name:
        return None
    facts = data["geometries"][name]
    return Geometry(name, facts["compute_slices"], facts["memory_slices"], facts["media"])


@functools.cache
def _by_name(board: str) -> dict[ProfileName, MigProfile]:
    names = [(name, profile) for profile in board_profiles(board) for name in (profile.name, profile.alias) if name]
    return {ProfileName.parse(name): profile for name, profile in names}


def _profile(row: Mapping[str, Any], slot: Mapping[str, Any]) -> MigProfile:
    facts: dict[str, Any] = {**slot, **row}
    name = ProfileName.parse(str(facts["name"]))
    told = {"memory_gib": facts["gib"], "multiprocessors": facts["sm"]}
    return _data.made(MigProfile, facts, name=str(name), slices=name.slices, memory_gb=name.memory_gb, **told)


def _parsed(profile: str | ProfileName) -> ProfileName:
    return profile if isinstance(profile, ProfileName) else ProfileName.parse(profile)


def _dotted(name: ProfileName) -> str:
    return str(name).replace("+", ".")
