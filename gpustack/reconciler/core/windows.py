"""Maintenance windows: whether one is open now, and when the next opens.

A window gates starts; what has started finishes. It begins at a local time of its zone and lasts a number of hours of
real time, so one that spans a change of the clocks is neither shorter nor longer. A start that the clocks skip begins
when they have skipped it; one that comes twice begins the first time. An unknown zone means closed (reconciler.md A17).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from ...api.node_policy import Window
from ...model import whole

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK = 168
"""Hours of the longest window."""


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Whether an operation may start at NOW; always, where there are no WINDOWS."""
    windows = list(windows)
    return not windows or any(start <= now < end for window in windows for start, end in _around(window, now))


def closes(windows: Iterable[Window], now: datetime) -> datetime | None:
    """When the windows that are open at NOW have all closed; None where there are none at all, or none is open."""
    return max((end for window in windows for start, end in _around(window, now) if start <= now < end), default=None)


def next_start(windows: Iterable[Window], now: datetime) -> datetime | None:
    """When the next window opens after NOW, within a fortnight; None for never."""
    starts = (start for window in windows for start, _ in _around(window, now, ahead=14) if start > now)
    return min(starts, default=None)


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone NAME, or None where there is none."""
    try:
        return ZoneInfo(name or "UTC")
    except (OSError, ValueError, KeyError):
        return None


def _around(window: Window, now: datetime, ahead: int = 1) -> Iterator[tuple[datetime, datetime]]:
    """The windows that begin between eight days before NOW (none is longer than a week) and AHEAD days after."""
    zone = zone_of(window.timeZone)
    hour, minute = (whole(part) for part in window.start.partition(":")[::2])
    if zone is None or hour is None or minute is None or hour > 23 or minute > 59:
        return
    today = now.astimezone(zone).date()
    for offset in range(-8, ahead + 1):
        day = today + timedelta(days=offset)
        if not window.days or DAYS[day.weekday()] in window.days:
            start = _at(day, hour, minute, zone)
            yield start, start + timedelta(hours=min(window.hours, WEEK))


def _at(day: date, hour: int, minute: int, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which clocks of ZONE show that time; for a skipped time, the moment of the skip."""
    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    moment = local.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return moment
    # The time does not exist. fold=1 reads it with the offset after the skip, fold=0 with the one before: the skip
    # itself lies between the two, where the zone's offset changes.
    low, high = local.replace(fold=1).astimezone(UTC), moment
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == low.astimezone(zone).utcoffset():
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
