"""MIG: profile names, what a board offers, and whether a layout fits.

A profile name is [<C>c.]<G>g.<M>gb with attributes: G compute slices of the GPU, M gigabytes (rounded, so that it
differs by board and drifts with the driver), and C where an instance is divided further. `+me` asks for media
extensions, `-me` goes without. Names are parsed once, here, and anything else is refused.

Placement needs no knowledge of products: a geometry (data/gpus/mig.yaml) says where instances may start, and boards
only differ in the names of its slots. Tables of all valid combinations, as the user guide prints them, were rejected:
they are a consequence of the placements, and the tests derive them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpustack.catalog import _data
from gpustack.catalog._lookup import UnknownName, nearest

POSITIVE = ("gfx", "me", "me.all")
NEGATIVE = ("me",)
MEDIA = ("me", "me.all")
"""Attributes that take the media extensions, of which a board has one set."""

_NAME = re.compile(r"(?:([1-9])c\.)?([1-9])g\.(0|[1-9][0-9]*)gb(?:([+-])([a-z.,]+))?")


class IllegalProfile(ValueError):  # noqa: N818  # as UnknownProfile
    """A text that is no MIG profile name."""


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
            raise IllegalProfile(f"{text!r} is no MIG profile; one looks like 1g.10gb, 1g.10gb+me or 1c.3g.40gb")
        compute, slices, memory, sign, listed = match.groups()
        attributes = tuple(sorted(listed.split(","))) if listed else ()
        allowed = NEGATIVE if sign == "-" else POSITIVE
        for attribute in attributes:
            if attribute not in allowed:
                raise IllegalProfile(
                    f"{text!r}: {sign}{attribute} is no attribute of a MIG profile ({sign} takes {', '.join(allowed)})"
                )
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
    drivers give it.
    """

    name: str
    id: int | None
    slices: int
    max: int | None
    size: int | None
    starts: tuple[int, ...]
    compute: Mapping[int, int]
    memory_gb: int
    memory_gib: float | None
    multiprocessors: int | None
    branch: str | None
    alias: str | None

    @property
    def parsed(self) -> ProfileName:
        return ProfileName.parse(self.name)


def resource_name(profile: str | ProfileName) -> str:
    """The extended resource of a profile under the strategy `mixed`: 1g.10gb+me is nvidia.com/mig-1g.10gb.me.

    IllegalProfile for a part of an instance (1c.3g.40gb), which the device plugin does not offer.
    """
    name = _parsed(profile)
    if not name.exposed:
        raise IllegalProfile(
            f"{name} is a part of an instance, and those are no resources of the device plugin; use {name.instance}"
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
    """The profile of BOARD by name or alias; for a part (1c.3g.40gb) its instance. UnknownProfile otherwise."""
    name = _parsed(profile)
    for known in board_profiles(board):
        if str(name.instance) in (known.name, known.alias) and (name.exposed or name.compute in known.compute):
            return known
    raise UnknownProfile(str(name), nearest(str(name), (known.name for known in board_profiles(board))))


def fits(board: str, layout: Mapping[str, int]) -> bool:
    """Whether LAYOUT (profile name to count) can be placed on one GPU of BOARD.

    UnknownProfile for a profile that the board does not have. Where the board's geometry is not known, only the number
    of each profile is checked. Parts of instances count as the instances that hold them.
    """
    wanted: list[MigProfile] = []
    for text, count in layout.items():
        name = _parsed(text)
        profile = find(board, name)
        instances = count if name.exposed else -(-count // profile.compute[name.compute])
        if profile.max is not None and instances > profile.max:
            return False
        wanted += [profile] * instances
    geometry = _data.load("gpus/mig")["boards"].get(board, {}).get("geometry")
    media = _data.load("gpus/mig")["geometries"][geometry]["media"] if geometry else len(wanted)
    if sum(1 for profile in wanted if set(profile.parsed.attributes) & set(MEDIA)) > media:
        return False
    placeable = [profile for profile in wanted if profile.size is not None]
    return _place(sorted(placeable, key=lambda profile: (-(profile.size or 0), profile.name)), 0, 0)


def _place(left: list[MigProfile], taken: int, earliest: int) -> bool:
    """Whether the instances LEFT, largest first, find room beside the memory slices TAKEN (a bit mask)."""
    if not left:
        return True
    first, rest = left[0], left[1:]
    for start in first.starts:
        mask = ((1 << (first.size or 0)) - 1) << start
        if start >= earliest and not taken & mask:
            same = bool(rest) and rest[0].name == first.name  # equal instances are placed from left to right only
            if _place(rest, taken | mask, start + 1 if same else 0):
                return True
    return False


def _profile(row: Mapping[str, Any], slot: Mapping[str, Any]) -> MigProfile:
    facts: dict[str, Any] = {**slot, **row}
    name = ProfileName.parse(str(facts["name"]))
    return MigProfile(
        name=str(name),
        id=facts.get("id"),
        slices=name.slices,
        max=facts.get("max"),
        size=facts.get("size"),
        starts=tuple(facts.get("starts", ())),
        compute=facts.get("compute", {}),
        memory_gb=name.memory_gb,
        memory_gib=facts["gib"],
        multiprocessors=facts["sm"],
        branch=facts.get("branch"),
        alias=facts.get("alias"),
    )


def _parsed(profile: str | ProfileName) -> ProfileName:
    return profile if isinstance(profile, ProfileName) else ProfileName.parse(profile)


def _dotted(name: ProfileName) -> str:
    return str(name).replace("+", ".")
