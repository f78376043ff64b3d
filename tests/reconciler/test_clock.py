"""The API server's time, steady time, and pauses between tries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpustack.reconciler.core.bounds import span
from gpustack.reconciler.shell.clock import Backoff, Clock, NoTimeError, steady
from tests.reconciler.shell import Steady

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


def test_time_is_the_servers_and_goes_on_by_the_steady_clock() -> None:
    """What an answer's Date said, and what has passed here since; this machine's date plays no part."""
    seconds = Steady()
    clock = Clock(seconds)
    with pytest.raises(NoTimeError):
        clock.now()
    clock.observe(NINE)
    seconds.seconds += 90
    assert clock.now() == NINE + timedelta(seconds=90)


def test_whole_seconds_do_not_turn_time_back() -> None:
    """A Date is cut to the second: one that seems a little old is the same time, one that is far off is a new time."""
    seconds = Steady()
    clock = Clock(seconds)
    clock.observe(NINE)
    seconds.seconds += 0.9
    clock.observe(NINE)
    assert clock.now() == NINE + timedelta(seconds=0.9)
    clock.observe(NINE - timedelta(hours=1))
    assert clock.now() == NINE - timedelta(hours=1)
    clock.observe(NINE)
    clock.observe(None)
    assert clock.now() == NINE


def test_steady_time_never_goes_back() -> None:
    """Whatever happens to the date."""
    assert steady() <= steady()


def test_backoff_has_full_jitter_and_a_limit() -> None:
    """Doubling up to a limit, anywhere between a tenth and all of it; never less than a server asked for."""
    backoff = Backoff(1.0, 8.0, chance=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == [1, 2, 4, 8, 8]
    backoff.reset()
    assert backoff.next(at_least=30) == 31
    backoff.chance = lambda: 0.0
    backoff.reset()
    assert backoff.next() == pytest.approx(0.1)


@pytest.mark.parametrize("seconds", [10**9, 10**14, 10**30, float("inf")])
def test_a_wait_without_end_is_ten_years(seconds: float) -> None:
    """A timeout of a policy may be any number; the date at which it ends must be one."""
    assert NINE + span(seconds) == NINE + timedelta(days=3650)
    assert span(60) == timedelta(minutes=1)
