"""Programs that a test starts: each ends with the test run, however that ends, and what it said is kept.

On Linux the kernel kills a child when its parent is gone (PR_SET_PDEATHSIG), so that a killed pytest leaves nothing.
That has to be asked for by the child itself: LAUNCH is a program of a few lines that does so and becomes the real one.
(A preexec_fn would run Python code in a fork of a program with threads.)
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LAUNCH = """\
import ctypes, os, signal, sys
parent = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != parent:
    sys.exit("the test run is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class ProgramError(Exception):
    """A program did not start, did not get ready, or ended too early; the end of what it said is in the message."""


class Program:
    """A running program with a log file."""

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        arguments = [str(word) for word in command]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def tail(self, lines: int = 25) -> str:
        """The last lines of the log."""
        text = self.log.read_text("utf-8", "replace").splitlines()
        return "\n".join(f"  {line[:300]}" for line in text[-lines:])

    def failed(self, what: str) -> ProgramError:
        """An error that says WHAT, and shows the end of the log."""
        return ProgramError(f"{self.name} {what}; the end of {self.log}:\n{self.tail()}")

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Until READY says so; ProgramError when the program ends before, or time runs out."""
        end = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise self.failed(f"ended with {self.process.returncode}")
            if time.monotonic() > end:
                raise self.failed(f"was not ready within {seconds:.0f} s")
            time.sleep(0.1)

    def stop(self, seconds: float = 15) -> None:
        """Ask it to end, then make it; what it started (its session) goes along."""
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        else:
            self.process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP)."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.process.send_signal(signal.SIGCONT)
