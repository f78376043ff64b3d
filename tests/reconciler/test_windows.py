"""Windows: local times of a zone, hours of real time; a change of the clocks makes none shorter or longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpustack.api.node_policy import Window
from gpustack.reconciler.core.windows import is_open, next_start


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_no_windows_means_always() -> None:
    """Windows are optional."""
    assert is_open([], at("2026-01-05T09:00"))


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        ("2026-01-05T21:59", False),
        ("2026-01-05T22:00", True),
        ("2026-01-06T00:30", True),
        ("2026-01-06T01:00", False),
    ],
)
def test_over_midnight(now: str, wanted: bool) -> None:
    """The 5th of January 2026 is a Monday; the window that begins on it reaches into Tuesday."""
    assert is_open([Window(days=["mon"], start="22:00", hours=3)], at(now)) is wanted
    assert not is_open([Window(days=["tue"], start="22:00", hours=3)], at("2026-01-06T00:30"))


def test_spring_forward() -> None:
    """Berlin skips 02:00 to 03:00 on 29 March 2026: 02:30 begins at 03:00 summer time, which is 01:00 UTC."""
    windows = [Window(start="02:30", hours=2, timeZone="Europe/Berlin")]
    assert not is_open(windows, at("2026-03-29T00:59"))
    assert is_open(windows, at("2026-03-29T01:00"))
    assert is_open(windows, at("2026-03-29T02:59"))
    assert not is_open(windows, at("2026-03-29T03:00"))


def test_fall_back() -> None:
    """Berlin has 02:00 to 03:00 twice on 25 October 2026: 02:30 begins the first time, at 00:30 UTC, for two hours."""
    windows = [Window(start="02:30", hours=2, timeZone="Europe/Berlin")]
    assert not is_open(windows, at("2026-10-25T00:29"))
    assert is_open(windows, at("2026-10-25T00:30"))
    assert is_open(windows, at("2026-10-25T02:29"))
    assert not is_open(windows, at("2026-10-25T02:30"))


def test_a_window_that_spans_a_change_keeps_its_length() -> None:
    """Six hours of real time, though the clocks of New York show seven."""
    windows = [Window(days=["sat"], start="23:00", hours=6, timeZone="America/New_York")]
    assert is_open(windows, at("2026-03-08T09:59")), "Saturday 23:00 EST is 04:00 UTC"
    assert not is_open(windows, at("2026-03-08T10:00"))


def test_a_week_is_always_open() -> None:
    """168 hours from Wednesday noon end when the next begin."""
    windows = [Window(days=["wed"], start="12:00", hours=168)]
    start = at("2026-01-01T00:00")
    assert all(is_open(windows, start + timedelta(hours=hour)) for hour in range(24 * 15))


@pytest.mark.parametrize(
    "window", [{"timeZone": "Mars/Olympus"}, {"start": "24:00"}, {"start": "9"}, {"start": "²²:00"}]
)
def test_what_cannot_be_read_is_closed(window: dict[str, str]) -> None:
    """An unknown zone, or a time that is none (A17)."""
    windows = [Window(**{"start": "00:00", "hours": 24, **window})]  # type: ignore[arg-type]
    assert not is_open(windows, at("2026-01-05T09:00"))
    assert next_start(windows, at("2026-01-05T09:00")) is None


def test_next_start() -> None:
    """The earliest of all windows."""
    windows = [Window(days=["sun"], start="01:00", hours=1), Window(days=["fri"], start="20:00", hours=1)]
    assert next_start(windows, at("2026-01-05T09:00")) == at("2026-01-09T20:00")


def test_no_window_is_longer_than_a_week() -> None:
    """Whatever number stands there: the API server takes no larger one either."""
    assert is_open([Window(days=["sun"], start="01:00", hours=10**12)], at("2026-01-05T09:00"))
