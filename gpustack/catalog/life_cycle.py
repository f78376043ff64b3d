"""Until when a release of the operator is supported, and over which others an upgrade has to go.

NVIDIA supports the newest release line; the line before it is deprecated, and older ones have reached their end of
support. An upgrade goes to a release of the same line or of the next one (NVIDIA GPU Operator life-cycle policy). So
all of it follows from the dates of the releases, as far as the catalogue knows them.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from gpustack.catalog import releases


@dataclass(frozen=True, slots=True)
class LifeCycle:
    """Since when a release is deprecated, and since when its support has ended; None where neither is known."""

    deprecated: datetime.date | None
    ended: datetime.date | None


def lines() -> list[str]:
    """The release lines, oldest first: v25.10, v26.3, ..."""
    return list(dict.fromkeys(releases.release(name).line for name in releases.names()))


def life_cycle(name: str) -> LifeCycle:
    """The life cycle of release NAME. UnknownRelease where it is not known."""
    known = lines()
    place = known.index(releases.release(name).line)
    starts = [datetime.date.fromisoformat(releases.release(of_line(line)[0]).date) for line in known[place + 1 :]]
    return LifeCycle(starts[0] if starts else None, starts[1] if len(starts) > 1 else None)


def of_line(line: str) -> list[str]:
    """The releases of LINE, oldest first."""
    return [name for name in releases.names() if releases.release(name).line == line]


def steps(name: str) -> list[str]:
    """The releases to go over from release NAME to the newest, which comes last: the newest of each line on the way."""
    known = lines()
    place = known.index(releases.release(name).line)
    return [newest for line in known[place:] if (newest := of_line(line)[-1]) != name]
