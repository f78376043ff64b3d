"""jsii's talk with Node, guarded: however Node fails, one error says so, and soon.

The problem: jsii takes for granted that Node is well. A Node that ends, is killed, or prints something else makes it
raise whatever its next step happens to trip over, each further step trips again, and for a Node that never answers it
waits for ever. Here each answer has `ANSWER_S` seconds, whatever goes wrong becomes a MissingToolError, and the first
failure is the answer to all later requests, so that nobody waits twice. What Node writes to its standard error is kept
for that error, not printed. An error that cdk8s raises in good health passes as it is. One Node runs, not jsii's two.

Importing this module puts the guard in place: import it before anything of cdk8s, and where Node is needed only.
"""

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import IO, Any

from jsii._kernel.providers import process
from jsii._kernel.types import ObjRef
from jsii._reference_map import _refs

from ..model import MissingToolError
from .node import unusable

ANSWER_S = 120.0
"""How long one answer may take. The slowest, to the request to load cdk8s, takes half a second on an idle machine; on a
crowded one, waiting is better than giving up."""

KEYS = frozenset(("hello", "ok", "error", "callback"))
"""Each message from Node has one of them."""

GONE = b'{"ok":{}}'
"""What Node says when it has let an object go."""

TREE = ("cdk8s.ApiObject", "cdk8s.App@", "cdk8s.Chart@", "cdk8s.Helm@", "cdk8s.Include@", "constructs.")
"""What the names of objects begin with that are of one tree of constructs. Others, such as a quantity, may be constants
of a team's module."""

AT_ONCE = 200
"""Requests that fit, as their answers do, into what a socket holds: else both of us would wait to be heard."""

_said: deque[str] = deque(maxlen=50)
_failure: list[MissingToolError] = []


class GuardedNode(process._NodeProcess):  # noqa: SLF001 - jsii has no other way to its Node
    stopped = False
    _unread = b""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._named: dict[str, None] = {}

    def start(self) -> None:
        """As jsii's, but without the second Node that it has between, which takes 30 MB and a third of the time of each
        answer: we talk to the program that does the work, by its file 3."""
        if _failure:
            raise _failure[0]
        try:
            script = f"{Path(self._jsii_runtime()).parents[1]}/lib/program.js"
            node = [os.environ.get("JSII_NODE", "node"), "--max-old-space-size=4069", "--preserve-symlinks", script]
            ours, theirs = socket.socketpair()
            with ours, theirs:
                running = self._process = subprocess.Popen(
                    ["/bin/sh", "-c", 'exec "$@" 3<&0 </dev/null', "sh", *node],
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                reader: Any = ours.makefile("rb", 0)
                running.stderr, running.stdin, running.stdout = running.stdout, ours.makefile("wb"), reader
            self.sink_thread = Thread(name="process.stderr_sink", target=listen, args=(running.stderr,), daemon=True)
            self.sink_thread.start()
            atexit.register(self.stop)
            self.handshake()
        except MissingToolError:
            raise
        except Exception as error:
            raise self._failed(str(error), ended=True) from error

    def send(self, request: Any, response_type: Any) -> Any:
        if _failure:
            raise _failure[0]
        try:
            return super().send(request, response_type)
        except OSError as error:
            raise self._failed(str(error), ended=True) from error

    def let_go(self) -> None:
        """Forget the constructs made until now, here and in Node, as jsii itself never does: a fleet has millions."""
        names, self._named = list(self._named), {}
        for name in names:
            _refs._refs.pop(name, None)  # noqa: SLF001 - as above
        asked = [json.dumps({"api": "del", "objref": {"$jsii.byref": name}}).encode() for name in names]
        for some in (asked[start : start + AT_ONCE] for start in range(0, len(asked), AT_ONCE)):
            try:
                self._process.stdin.write(b"".join(b"%b\n" % line for line in some))  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
            except OSError as error:
                raise self._failed(str(error), ended=True) from error
            for _ in some:
                if (line := self._line()) != GONE:
                    self._message(line)

    def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        try:
            with contextlib.suppress(Exception):  # it may be gone already, or was never there
                super().stop()
        finally:
            self._ctx_stack.close()

    def _next_message(self) -> Mapping[Any, Any]:
        return self._message(self._line())

    def _message(self, line: bytes) -> Mapping[Any, Any]:
        try:
            message = json.loads(line, object_hook=self._noted)
        except ValueError:
            message = None
        if not isinstance(message, dict) or not KEYS & message.keys():
            raise self._failed(f"{shown(line)} is not an answer" if line else "it closed its output", ended=not line)
        return message

    def _noted(self, item: dict[str, Any]) -> Any:
        """What jsii makes of ITEM of an answer; which constructs there are is noted."""
        made = process.ohook(item)  # type: ignore[no-untyped-call]
        if isinstance(made, ObjRef) and made.ref.startswith(TREE):
            self._named[made.ref] = None
        return made

    def _line(self) -> bytes:
        """What Node says next, or b"" when it says no more."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe, as start() makes it
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self._unread:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                self._process.kill()
                raise self._failed(f"it gave no answer for {ANSWER_S:g} seconds")
            more = os.read(descriptor, 1 << 16)
            if not more:
                break
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _failed(self, how: str, *, ended: bool = False) -> MissingToolError:
        """The error for a Node that failed: HOW or, where it may have ENDED, with which code. It is not asked again."""
        running = getattr(self, "_process", None)
        if running is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = running.wait(1) if ended else None
                if code is not None:
                    how = f"it ended with exit code {code}" if code >= 0 else f"it was killed by signal {-code}"
            running.kill()
            self.sink_thread.join(1)
        told = next((line for line in _said if "rror" in line), _said[-1] if _said else "")
        program = running.args[4] if running is not None else "node"
        what = f"Node can't run cdk8s ({program}): {how}"
        _failure.append(unusable(what, f"; Node said: {told}" if told else "", "another"))
        self.stop()
        return _failure[0]


def shown(line: bytes) -> str:
    """What Node said, cut to what fits into a sentence."""
    text = line.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def listen(reader: IO[bytes]) -> None:
    """Keep the last lines that Node writes to its standard error."""
    for line in iter(reader.readline, b""):
        _said.append(line.decode("utf-8", "backslashreplace").strip()[:300])


process._NodeProcess = GuardedNode  # type: ignore[misc]  # noqa: SLF001 - as above
