"""Whether maintenance windows are within others, minute by minute of the week.

Solves: a window that begins an hour later and is half as long is tighter, and its fields alone don't say so. Windows of
different time zones aren't compared: how far they are apart changes twice a year.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = 24 * 60
WEEK = 7 * DAY
_START = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def tighter(old: Any, new: Any) -> bool:
    """Whether the windows NEW are within OLD. None, or an empty list, is any time."""
    if not new:
        return not old
    if not old or not isinstance(new, list) or not isinstance(old, list):
        return not old
    was, now = _minutes(old), _minutes(new)
    if was is None or now is None:
        return old == new
    return all(not any(inside and not was[zone][at] for at, inside in enumerate(week)) for zone, week in now.items())


def _minutes(windows: Sequence[Any]) -> dict[str, bytearray] | None:
    """The minutes of the week that WINDOWS have, by time zone; None where one can't be read."""
    by_zone: dict[str, bytearray] = defaultdict(lambda: bytearray(WEEK))
    for window in windows:
        start = _START.fullmatch(str(window.get("start"))) if isinstance(window, Mapping) else None
        hours = window.get("hours") if start else None
        days = (window.get("days") or DAYS) if start else ()
        if start is None or type(hours) is not int or hours < 0 or not isinstance(days, (list, tuple)):
            return None
        if not set(days) <= set(DAYS):
            return None
        week = by_zone[str(window.get("timeZone") or "UTC")]
        for day in days:
            first = DAYS.index(day) * DAY + int(start[1]) * 60 + int(start[2])
            for minute in range(first, first + min(hours * 60, WEEK)):
                week[minute % WEEK] = 1
    return by_zone
