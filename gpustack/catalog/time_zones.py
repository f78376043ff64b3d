"""Names of time zones, as the package tzdata has them: the same on every machine, whatever its system knows."""

from __future__ import annotations

import functools
from importlib import resources

from gpustack.catalog._lookup import UnknownName, nearest


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
