"""What the API server says, as bytes, and what it means: objects, lines of a watch, refusals.

Bytes are within bounds, lines come within a time, and whatever else a connection ends in is `Unreachable`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2
import msgspec

from ...api.objects import Metadata, Object, Slim
from ...model import whole
from . import cluster
from .cluster import Answer, ApiError, Change, Gone, Kind, TooMany, Unreachable

T = TypeVar("T", bound=Object)

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding ends in. Nested too deep is what a tenant writes into the parameters of a claim."""

PAGE_BYTES = 4 * 1024 * 1024
"""The longest page that is read. etcd takes objects of 1.5 MiB; as JSON they may be six times as long."""
OBJECT_BYTES = 32 * 1024 * 1024
"""The longest object that is read."""
LONGEST_RETRY = 300.0
"""Seconds: a server that asks for more is asked again nevertheless."""


class TooLarge(Exception):  # noqa: N818 - what it is, not that it failed
    """A page is longer than is read at once."""


class Cause(Slim, kw_only=True):
    """A detail of a refusal."""

    message: str = ""
    field: str = ""


class Details(Slim, kw_only=True):
    """Details of a refusal."""

    causes: list[Cause] = []
    retryAfterSeconds: float = 0.0


class Refusal(Slim, kw_only=True):
    """A Status object: what the API server says of a request that it did not serve."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class Line(Slim, kw_only=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


@contextmanager
def transport() -> Iterator[None]:
    """Whatever a connection ends in is `Unreachable`."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError, OSError) as error:
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


def change(text: bytes, kind: Kind[T]) -> Change[T]:
    """A line of a watch. Raises the error that it stands for."""
    line = decode(text, Line, kind)
    if line.type == "ERROR":
        refused = decode(bytes(line.object), Refusal, kind)
        raise _mapped(refused.code, refused, 0.0)
    if line.type == "BOOKMARK":  # an object of the kind with nothing in it, null lists where the kind has lists
        version = decode(bytes(line.object), Object, kind).metadata.resourceVersion
        return Change(line.type, kind.model(metadata=Metadata(resourceVersion=version)))
    if line.type not in {"ADDED", "MODIFIED", "DELETED"}:
        raise ApiError(f"{kind.plural}: a watch said {line.type!r}")
    return Change(line.type, decode(bytes(line.object), kind.model, kind))


def decode(text: bytes | bytearray, of: type[Any], kind: Kind[Any]) -> Any:
    """TEXT as OF. What can't be read is an error, not a hole in a list.

    Go's programs write null for a list or map that has nothing: that is as if it were absent, wherever it stands."""
    try:
        with suppress(msgspec.ValidationError):
            return msgspec.json.decode(text, type=of)
        return msgspec.convert(present(msgspec.json.decode(text)), type=of)
    except UNREADABLE as error:
        raise ApiError(f"{kind.plural}: the answer can't be read: {error}") from None


def present(value: Any) -> Any:
    """VALUE, plain data, without what is null."""
    if isinstance(value, dict):
        return {key: present(item) for key, item in value.items() if item is not None}
    return [present(item) for item in value if item is not None] if isinstance(value, list) else value


def answer(response: httpx2.Response) -> Answer:
    """The answer to a write."""
    try:
        body = msgspec.json.decode(response.content, type=dict[str, Any])
        metadata = msgspec.convert(present(body.get("metadata") or {}), Metadata)
    except UNREADABLE:
        raise Unreachable("the answer to a write can't be read: whether it happened is not known") from None
    return Answer(metadata.resourceVersion, metadata.uid, date(response), body)


def refusal(response: httpx2.Response) -> ApiError:
    """The error that an answer stands for."""
    try:
        answer = msgspec.json.decode(response.content, type=Refusal)
    except UNREADABLE:  # a proxy answered
        answer = Refusal(message=response.text[:300].strip())
    retry_after = float(whole(response.headers.get("Retry-After", "")) or 0)  # the API server sends no dates
    return _mapped(response.status_code, answer, retry_after)


def _mapped(code: int, refusal: Refusal, retry_after: float) -> ApiError:
    details = refusal.details or Details()
    causes = tuple(each.message for each in details.causes if each.message)
    message = refusal.message or f"HTTP {code}"
    if code == 429:
        return TooMany(message, min(max(retry_after or details.retryAfterSeconds, 0.0), LONGEST_RETRY), causes)
    kind: type[ApiError] = _TREE.get(code, ApiError)
    if code == 422 and any(each.field == "metadata.uid" for each in details.causes):
        kind = cluster.Conflict  # a patch that names another UID is called invalid
    return kind(message, code, refusal.reason, causes)


_TREE: Mapping[int, type[ApiError]] = {
    401: cluster.Forbidden,
    403: cluster.Forbidden,
    404: cluster.NotFound,
    409: cluster.Conflict,
    410: Gone,
}


def date(response: httpx2.Response) -> datetime | None:
    """The API server's clock, to the second."""
    try:
        parsed = parsedate_to_datetime(response.headers["Date"])
    except (KeyError, ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)  # "-0000" is UTC from somewhere
