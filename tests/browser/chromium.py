"""Chromium without a window, driven through a pipe in its DevTools protocol.

Solves: the pages are to be tried in a real browser, and a driver of its own (Selenium, Playwright) is one more program
to install, keep in step and start. The protocol is JSON between NUL bytes on two pipes; what is needed of it fits here.

A page that asks for anything but itself, or writes to its console, is caught: `requests` and `console`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60
FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run", "--force-color-profile=srgb"),
)


class FailedError(Exception):
    """The browser refused something, or a script of a page threw."""


def program() -> str:
    """The browser. Raises FailedError where there is none: these tests are never skipped without a word."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise FailedError("no chromium on the PATH: tools/chromium.sh installs Debian's")
    return found


@dataclass
class Page:
    """A page that is open, and what it did so far."""

    browser: Browser
    session: str
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the protocol's METHOD answers for this page."""
        return self.browser.ask(method, self.session, **parameters)

    def value(self, script: str) -> Any:
        """What the expression SCRIPT is in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise FailedError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str, code: int = 0) -> None:
        """Press and release KEY."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Type TEXT where the focus is."""
        self.ask("Input.insertText", text=text)

    def media(self, kind: str = "", **features: str) -> None:
        """Show the page as on paper (`print`), or to who prefers something: prefers_color_scheme="dark"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.ask("Emulation.setEmulatedMedia", media=kind, features=wanted)

    def screenshot(self, width: int = 1280, height: int = 1600) -> bytes:
        """The page as PNG."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def pdf(self) -> bytes:
        """The page on paper."""
        return base64.b64decode(self.ask("Page.printToPDF")["data"])


class Browser:
    """A running browser. `ask` sends a command and reads until its answer is there; events on the way are noted."""

    def __init__(self, sink: int, source: int) -> None:
        self._sink, self._source = os.fdopen(sink, "wb", buffering=0), os.fdopen(source, "rb", buffering=0)
        self._number, self._rest = 0, b""
        self._pages: dict[str, Page] = {}
        self._loaded: set[str] = set()

    def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """What METHOD answers."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        self._sink.write(json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                if "error" in found:
                    raise FailedError(f"{method}: {found['error']['message']}")
                answer: dict[str, Any] = found["result"]
                return answer

    def open(self, path: Path) -> Page:
        """The page of a file, once it is loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        page.ask("Page.navigate", url=path.resolve().as_uri())
        while session not in self._loaded:
            self._read()
        return page

    def close(self) -> None:
        """End the browser."""
        self.ask("Browser.close")
        self._sink.close()
        self._source.close()

    def _read(self) -> dict[str, Any]:
        """The next message; events of a page are noted."""
        while b"\0" not in self._rest:
            data = self._source.read(1 << 16)
            if not data:
                raise FailedError("the browser ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        page = self._pages.get(found.get("sessionId", ""))
        method, parameters = found.get("method"), found.get("params", {})
        if page and method == "Page.loadEventFired":
            self._loaded.add(page.session)
        elif page and method == "Network.requestWillBeSent":
            page.requests.append(parameters["request"]["url"])
        elif page and method in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}:
            page.console.append(json.dumps(parameters))
        return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser of its own, with a profile that is thrown away."""
    theirs, sink = os.pipe()
    source, ours = os.pipe()
    with tempfile.TemporaryDirectory(prefix="gpustack-browser-", ignore_cleanup_errors=True) as profile:
        command = [program(), *FLAGS, f"--user-data-dir={profile}"]
        script = f'exec "$@" 3<&{theirs} 4>&{ours}'
        with subprocess.Popen(
            ["bash", "-c", script, "chromium", *command], pass_fds=(theirs, ours), stderr=subprocess.DEVNULL
        ) as process:
            os.close(theirs)
            os.close(ours)
            found = Browser(sink, source)
            try:
                yield found
                found.close()
                process.wait(SECONDS)
            finally:
                process.kill()
