"""Runs a credential helper, `docker-credential-<name>`: it may hang, print without end, or print what is not JSON."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import subprocess
import time

from ..text import programs

SECONDS = 60.0
"""How long a helper may take: somebody may have to unlock a keychain."""
MOST = 1024 * 1024
NOT_FOUND = b"credentials not found"
"""What a helper prints that knows no login; it fails then as well."""


class HelperError(Exception):
    """Why the helper can't be used, as the end of a sentence that begins with its name."""


def ask(program: str, registry: str) -> tuple[str, str] | None:
    """User and secret that PROGRAM knows for REGISTRY, None where it knows none. Raises HelperError, and OSError where
    it can't be started.
    """
    code, said = _run(program, registry.encode())
    if code and NOT_FOUND in said:
        return None
    if code:
        raise HelperError(f"fails for {registry} (exit code {code})")
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        answer = None
    user, secret = (answer.get(name) if isinstance(answer, dict) else None for name in ("Username", "Secret"))
    if not isinstance(user, str) or not isinstance(secret, str):
        raise HelperError("doesn't print what a credential helper prints")
    return user, secret


def _run(program: str, given: bytes) -> tuple[int, bytes]:
    """The exit code of PROGRAM and what it prints. A program that it leaves behind, which may hold its output open, is
    not waited for either.
    """
    until = time.monotonic() + SECONDS
    path = programs.find(program)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "the PATH has no such program")
    with subprocess.Popen(
        [path, "get"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as running:
        try:
            with contextlib.suppress(BrokenPipeError), running.stdin or contextlib.nullcontext() as stdin:
                if stdin:
                    stdin.write(given)
            said = _read(running.stdout.fileno() if running.stdout else -1, until)
            return running.wait(max(0.0, until - time.monotonic())), said
        except subprocess.TimeoutExpired:
            raise HelperError(f"gives no answer in {SECONDS:.0f} seconds") from None
        finally:
            running.kill()


def _read(descriptor: int, until: float) -> bytes:
    """What comes from DESCRIPTOR to its end. Raises HelperError where that isn't reached."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            part = os.read(descriptor, 65536)
            if not part:
                return said
            said += part
            if len(said) > MOST:
                raise HelperError("prints without end")
    raise HelperError(f"gives no answer in {SECONDS:.0f} seconds")
