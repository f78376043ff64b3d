"""What time it is for the API server, and how much time has passed here.

Solves: nodes and control planes disagree about the time, and deadlines that two replicas store must mean the same to
both (reconciler.md A17, I20). So a moment is the API server's, taken from its answers' Date header and carried on by
this machine's steady clock; this machine's own date is never asked. A time that passes (a lease, a back-off) is the
steady clock's alone; it counts while the machine sleeps.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .cluster import ApiError

Steady = Callable[[], float]


def steady() -> float:
    """Seconds that have passed, a suspended machine's included where the system tells them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class NoTimeError(ApiError):
    """Nobody knows the API server's time yet."""


@dataclass
class Clock:
    """The API server's time. Several servers may disagree a little: the time never goes back by less than `slack`."""

    monotonic: Steady = steady
    slack: float = 5.0
    _base: datetime | None = None
    _at: float = 0.0

    def observe(self, date: datetime | None) -> None:
        """An answer that came just now carried DATE. Dates have whole seconds, so an older one may be the same time."""
        if date is None or (self.known and 0 <= (self.now() - date).total_seconds() <= self.slack):
            return
        self._base, self._at = date, self.monotonic()

    @property
    def known(self) -> bool:
        """Whether anything has been observed."""
        return self._base is not None

    def stamp(self) -> str:
        """The API server's time as a MicroTime of the API has it."""
        return self.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def now(self) -> datetime:
        """The API server's time. Before the first answer nobody knows it."""
        if self._base is None:
            raise NoTimeError("no answer of the API server has said what time it is: its Date header is missing")
        return self._base + timedelta(seconds=self.monotonic() - self._at)


@dataclass
class Backoff:
    """Growing pauses between tries, with full jitter so that many who failed together do not come back together."""

    least: float = 0.5
    most: float = 60.0
    chance: Callable[[], float] = random.random
    tries: int = field(default=0, init=False)

    def reset(self) -> None:
        """A success: the next pause is the shortest again."""
        self.tries = 0

    def next(self, at_least: float = 0.0) -> float:
        """How long to wait now; never less than AT_LEAST, which a server asked for."""
        limit = min(self.least * 2.0 ** min(self.tries, 30), self.most)
        self.tries += 1
        return at_least + limit * (0.1 + 0.9 * self.chance())
