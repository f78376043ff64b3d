"""Threads that nobody has to wait for: a registry may never answer, and who gives up, or presses Ctrl-C, is to go on.

The executors of the standard library wait for their threads, at the latest when the program ends.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def started(call: Callable[[], Result]) -> Future[Result]:
    """What CALL is going to return or raise, in a thread of its own."""
    done: Future[Result] = Future()

    def work() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return done


def each(call: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> list[Result]:
    """What CALL returns for each of ITEMS, in their order; AT_ONCE of them run at the same time."""
    waiting, guard = iter(enumerate(items)), threading.Lock()
    results: dict[int, Result] = {}

    def work() -> None:
        while True:
            with guard:
                pair = next(waiting, None)
            if pair is None:
                return
            results[pair[0]] = call(pair[1])

    for running in [started(work) for _ in range(at_once)]:
        while not wait((running,), 1).done:
            pass  # Ctrl-C that comes at the moment at which a wait begins is only seen when that ends
        running.result()
    return [results[number] for number in sorted(results)]
