"""How much is believed of what somebody else may have written: how long a time, how much of a text.

Solves: a deadline must never overflow the calendar. And all annotations of a node have 256 KiB together: a reason of a
pause or a refusal of a webhook that fills them would make every write on that node fail, the one that gives it back
included.
"""

from __future__ import annotations

from datetime import timedelta

LONGEST = timedelta(days=3650)
MOST = 1000
"""Bytes of a text."""
_CUT = "..."


def span(seconds: float) -> timedelta:
    """SECONDS as a time that can be added to a date: whoever asks for more than ten years waits for ten."""
    return timedelta(seconds=min(max(seconds, 0), LONGEST.total_seconds()))


def brief(text: str, most: int = MOST) -> str:
    """TEXT, or its beginning, in at most MOST bytes of UTF-8."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= most:
        return text
    return whole[: most - len(_CUT)].decode("utf-8", "ignore") + _CUT
