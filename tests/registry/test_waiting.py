"""Threads that nobody has to wait for."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from gpustack.registry.waiting import each, started
from tests.project import ROOT

HANGING = """
import os, signal, threading
from gpustack.registry.waiting import each
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
def hang(name):
    os.write(1, name + b"\\n")  # at once: print writes the line's end apart
    threading.Event().wait(60)
each(hang, [b"a", b"b", b"c"], 2)
"""


def test_each() -> None:
    """Results are in the order of what they are for, none is lost, and no more run at once than are asked for."""
    running, most, guard = [0], [0], threading.Lock()

    def call(number: int) -> int:
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.001)
        with guard:
            running[0] -= 1
        return number * number

    assert each(call, range(100), 8) == [number * number for number in range(100)]
    assert 1 < most[0] <= 8
    assert each(call, [], 8) == []


def test_what_is_raised() -> None:
    """What a call raises, whoever waits for it gets."""
    with pytest.raises(ZeroDivisionError):
        started(lambda: 1 // 0).result()
    with pytest.raises(ZeroDivisionError):
        each(lambda number: 1 // number, [1, 0, 1], 2)


def test_an_interrupt_is_not_held_up() -> None:
    """Ctrl-C ends the program, whatever its threads wait for."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as it:
        assert it.stdout
        assert {it.stdout.readline().strip() for _ in range(2)} == {b"a", b"b"}
        it.send_signal(signal.SIGINT)
        _, said = it.communicate(timeout=20)
    assert b"KeyboardInterrupt" in said
