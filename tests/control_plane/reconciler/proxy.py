"""What lies between a program and the API server, and misbehaves: late requests, lost answers, broken watches.

A program is given `Proxy.address` as its server, over plain HTTP; each request goes on to the real API server with the
program's own token. `trouble` says what befalls the requests that it picks:

- `hold`: they wait here until `release`, and are sent on then, whatever has become of who sent them;
- `lose`: the API server does what they ask, and the connection breaks before the answer;
- `fail`: the API server does what they ask, and the answer is a 500.

`behind` sets the API server's clock back, as far as the program can tell: by the Date of its answers. Set to a smaller
one, time has passed for the program, and for nobody else. (Never set it forward: what pods say of themselves would be
in the past.)
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from tests.control_plane.api import Api

Picks = Callable[[str, str, bytes], bool]
"""Whether a request is meant: method, path with query, body."""
ERROR = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"trouble","reason":"InternalError","code":500}'
)


@dataclass
class Trouble:
    """What befalls the first `times` requests that `picks` picks. `met` counts them; `answers`: what they came to."""

    kind: Literal["hold", "lose", "fail"]
    picks: Picks
    times: int = 1
    met: int = 0
    answers: list[int] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let held requests go on."""
        self.free.set()


class _Server(ThreadingHTTPServer):
    proxy: Proxy
    daemon_threads = True
    request_queue_size = 128
    """A program that starts opens twenty connections at once."""


class Proxy:
    """A server on the loopback interface; to be started and stopped."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.behind = timedelta(0)
        self.troubles: list[Trouble] = []
        self.requests: list[tuple[str, str]] = []
        self._watches: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="proxy", daemon=True)

    @property
    def address(self) -> str:
        """What a kubeconfig has as its server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def now(self) -> datetime:
        """What time it is for the program."""
        return datetime.now(UTC) - self.behind

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is held is sent on."""
        for trouble in self.troubles:
            trouble.release()
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def trouble(self, kind: Literal["hold", "lose", "fail"], picks: Picks, times: int = 1) -> Trouble:
        """Let something befall requests."""
        made = Trouble(kind, picks, times)
        self.troubles.append(made)
        return made

    def cut(self) -> None:
        """Break all watches."""
        with self._lock:
            watches = list(self._watches)
        for connection in watches:
            if (sock := connection.sock) is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def _meets(self, method: str, path: str, body: bytes) -> Trouble | None:
        with self._lock:
            self.requests.append((method, path))
            for trouble in self.troubles:
                if trouble.met < trouble.times and trouble.picks(method, path, body):
                    trouble.met += 1
                    return trouble
        return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        trouble = self.server.proxy._meets(self.command, self.path, body)
        if trouble and trouble.kind == "hold":
            trouble.free.wait()
        connection = self.server.proxy.api.connect(300)
        try:
            connection.request(self.command, self.path, body or None, self.passed())
            response = connection.getresponse()
            if "watch=" in self.path and response.status == 200:
                self.stream(connection, response)
                return
            said = response.read()
        except (OSError, http.client.HTTPException):
            self.close_connection = True
            return
        finally:
            connection.close()
        self.end(response, said, trouble)

    def end(self, response: http.client.HTTPResponse, said: bytes, trouble: Trouble | None) -> None:
        if trouble:
            trouble.answers.append(response.status)
        if trouble and trouble.kind == "lose":
            self.close_connection = True
            return
        status, said = (500, ERROR) if trouble and trouble.kind == "fail" else (response.status, said)
        try:
            self.send_response_only(status)
            self.head(response)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
        except OSError:
            self.close_connection = True  # who asked is gone

    def passed(self) -> dict[str, str]:
        wanted = ("Authorization", "Accept", "Content-Type", "User-Agent")
        return {name: self.headers[name] for name in wanted if name in self.headers}

    def head(self, response: http.client.HTTPResponse) -> None:
        for name in ("Content-Type", "Retry-After"):
            if value := response.getheader(name):
                self.send_header(name, value)
        if date := response.getheader("Date"):
            self.send_header("Date", format_datetime(parsedate_to_datetime(date) - self.server.proxy.behind, True))

    def stream(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.close_connection = True
        with self.server.proxy._lock:
            self.server.proxy._watches.add(connection)
        try:
            self.send_response_only(200)
            self.head(response)
            self.send_header("Connection", "close")
            self.end_headers()
            for line in response:
                self.wfile.write(line)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return  # either side broke it off
        finally:
            with self.server.proxy._lock:
                self.server.proxy._watches.discard(connection)

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815  # names of the base class
