"""/healthz, /readyz and /metrics over HTTP.

A server of its own, since an answer is three lines: it takes GET alone, reads a bounded head in a bounded time, closes
after each answer and serves a bounded number at once, so nobody who can reach the port can hold the program up. Nor can
anybody keep others out by connections that say nothing: where there are too many, whoever has most loses the oldest.
The kubelet's probes have a port of their own besides: what they find must not depend on who scrapes metrics.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

Answer = tuple[int, str]
"""Status and text."""


@dataclass
class Health:
    """The server. `pages` has an answer for each path."""

    pages: Mapping[str, Callable[[], Answer]]
    port: int = 8080
    host: str | None = None
    seconds: float = 5.0
    most: int = 32
    head: int = 8192
    _open: dict[asyncio.WriteTransport, str] = field(default_factory=dict, init=False)
    """The connections, the oldest first, and whose they are."""
    _server: asyncio.Server | None = field(default=None, init=False)

    async def start(self) -> int:
        """Listen; the port, which the system chooses where 0 was asked for."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=self.head)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no longer, and end what is open."""
        if self._server is not None:
            self._server.close()
        for each in list(self._open):
            each.abort()
        while self._open:
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = writer.transport
        peer = writer.get_extra_info("peername")
        self._open[transport] = str(peer[0]) if peer else ""
        self._make_room()
        try:
            async with asyncio.timeout(self.seconds):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was is gone or not worth an answer
        finally:
            self._open.pop(transport, None)
            with contextlib.suppress(OSError):
                # A peer that never reads would keep what is buffered for ever.
                if transport.get_write_buffer_size():
                    transport.abort()
                else:
                    writer.close()

    def _make_room(self) -> None:
        """Where there are too many, close the oldest connection of the address that has most of them."""
        alive = {each: address for each, address in self._open.items() if not each.is_closing()}
        if len(alive) > self.most:
            ((crowd, _),) = Counter(alive.values()).most_common(1)
            next(each for each, address in alive.items() if address == crowd).abort()

    def _answer(self, head: bytes) -> bytes:
        line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            return _page(400, "bad request\n")
        if line[0] not in {"GET", "HEAD"}:
            return _page(405, "GET only\n")
        page = self.pages.get(line[1].partition("?")[0])
        status, text = page() if page else (404, "not found\n")
        return _page(status, text, body=line[0] == "GET")


def _page(status: int, text: str, *, body: bool = True) -> bytes:
    content = text.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (content if body else b"")
