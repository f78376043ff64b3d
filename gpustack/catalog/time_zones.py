"""Names of time zones, as the package tzdata has them: the same on every machine, whatever its system knows."""

import functools
from datetime import datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

from gpustack.catalog._lookup import UnknownName, nearest

YEAR = 2027
"""Of which the changes of clocks are looked at: when they are is no matter, and the same on every day of a render."""


class UnknownTimeZone(UnknownName):
    what = "time zone"


@functools.cache
def names() -> frozenset[str]:
    """Every time zone, by the name that a policy writes."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def known(name: str) -> str:
    """NAME, where there is such a time zone; UnknownTimeZone names the nearest ones."""
    if name not in names():
        raise UnknownTimeZone(name, nearest(name, names()))
    return name


@functools.cache
def offsets(name: str) -> frozenset[int]:
    """By how many minutes clocks of the zone NAME are ahead of UTC in the course of a year; none for no zone."""
    if name not in names():
        return frozenset()
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        zone = ZoneInfo.from_file(file)
    days = (datetime(YEAR, 1, 1, tzinfo=zone) + timedelta(days=days) for days in range(0, 365, 7))
    return frozenset(int((day.utcoffset() or timedelta(0)).total_seconds()) // 60 for day in days)
