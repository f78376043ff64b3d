"""How long something may take, as a time that can be added to a date: a deadline never overflows the calendar."""

from __future__ import annotations

from datetime import timedelta

LONGEST = timedelta(days=3650)


def span(seconds: float) -> timedelta:
    """SECONDS as a time that can be added to a date: whoever asks for more than ten years waits for ten."""
    return timedelta(seconds=min(max(seconds, 0), LONGEST.total_seconds()))
