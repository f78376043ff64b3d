"""`verify.schedule` takes what CronJobs take (the standard parser of robfig/cron), and no more."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gpustack.policy.language.verify import Verify


@pytest.mark.parametrize(
    "schedule",
    [
        "17 * * * *",
        "@hourly",
        "@midnight",
        "*/15 0-6 1,15 jan-mar MON-fri",
        "? ? ? ? ?",
        "1/5 */2 31 12 0",
        "5-5 0 1 1 6",
    ],
)
def test_what_is_taken(schedule: str) -> None:
    """Numbers, ranges, steps, lists, names of months and days, and the short forms."""
    assert Verify(schedule=schedule).schedule == schedule


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("* * * *", "is not a schedule"),
        ("0 0 * * * *", "is not a schedule"),
        ("@every 1h", "is not a schedule"),
        ("", "is not a schedule"),
        ("60 * * * *", "'60' can't be the minute"),
        ("* 24 * * *", "'24' can't be the hour"),
        ("* * 0 * *", "'0' can't be the day"),
        ("* * * 13 *", "'13' can't be the month"),
        ("* * * * 7", "'7' can't be the weekday"),
        ("5-1 * * * *", "'5-1' can't be the minute"),
        ("*/0 * * * *", "can't be the minute"),
        ("a * * * *", "'a' can't be the minute"),
        ("mon * * * *", "'mon' can't be the minute"),
        ("1,,2 * * * *", "'' can't be the minute"),
        ("-1 * * * *", "'-1' can't be the minute"),
    ],
)
def test_what_is_refused(schedule: str, words: str) -> None:
    """With the field that is wrong."""
    with pytest.raises(ValidationError) as refused:
        Verify(schedule=schedule)
    assert words in str(refused.value)
