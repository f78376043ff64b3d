"""What comes over a connection: bytes within bounds, lines within a time, and failures that are all `Unreachable`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2

from .cluster import Unreachable

PAGE_BYTES = 4 * 1024 * 1024
"""The longest page that is read. etcd takes objects of 1.5 MiB; as JSON they may be six times as long."""
OBJECT_BYTES = 32 * 1024 * 1024
"""The longest object that is read."""


class TooLarge(Exception):  # noqa: N818 - what it is, not that it failed
    """A page is longer than is read at once."""


class transport:  # noqa: N801 - used as a word in `with`
    """Whatever a connection ends in is `Unreachable`."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError, OSError)):
            raise Unreachable(str(error) or type(error).__name__) from error


async def bounded(response: httpx2.Response, most: int) -> bytearray:
    """The body of RESPONSE. Raises `TooLarge` where it has more bytes than MOST; no more is read then."""
    text = bytearray()
    async for chunk in response.aiter_bytes():
        text += chunk
        if len(text) > most:
            raise TooLarge
    return text


async def lines(response: httpx2.Response, ends: float) -> AsyncGenerator[bytes, None]:
    """The lines of a watch: split at newlines only, and given up at the moment ENDS."""
    rest = b""
    async with aclosing(response.aiter_bytes()) as chunks:
        while True:
            try:
                async with asyncio.timeout(max(ends - time.monotonic(), 0)):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if line.strip():
                    yield line
