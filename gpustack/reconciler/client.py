"""The API server over HTTP: `cluster.Cluster` for real.

Where the cluster is and how to log in are lightkube's; requests are raw, since its typed client decodes objects whole
(470 MB for 5,000 nodes), can't delete with a precondition and keeps pages in memory. Every request has a deadline here
too: a load balancer that forgets a connection says nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError
from yaml import YAMLError

from .. import __version__
from . import wire
from .cluster import EVERYTHING, Answer, Body, Change, Gone, Kind, Listing, Selection, Unreachable
from .login import Login, spoken
from .objects import ListOf, Object

T = TypeVar("T", bound=Object)

MANAGER = "gpustack-reconciler"
"""Name of the program to the API server, and of its field manager."""

MERGE = "application/merge-patch+json"
JSON = "application/json"

Observe = Callable[[str, str, int, "datetime | None"], None]
"""Told of each answer: verb, plural with subresource, HTTP status (0: none came), the server's time."""


@dataclass(frozen=True)
class Timeouts:
    """In seconds."""

    request: float = 30.0
    """For a request and its answer."""
    watch: float = 240.0
    """After which the server is asked to end a watch; up to a quarter less, so that they do not all end together."""
    beyond: float = 15.0
    """How much later the program ends it."""
    silence: float = 100.0
    """Without a line; bookmarks come every minute. What is listed again is nothing: the watch goes on where it was."""


def configuration(kubeconfig: str = "", context: str = "") -> SingleConfig:
    """Where the cluster is: the file KUBECONFIG, without one the pod's ServiceAccount. Raises `Unreachable`.

    Of several files with colons between them, the first that is there.
    """
    kubeconfig = _first(kubeconfig)
    try:
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_service_account()
        single = found.get(context or None)
    except KeyError as error:
        raise Unreachable(f"the configuration has no {error}") from None
    except (ConfigError, OSError, ValueError) as error:
        raise Unreachable(f"no configuration for the cluster: {error}") from None
    except (TypeError, AttributeError, YAMLError):
        raise Unreachable(f"{kubeconfig} is no kubeconfig") from None
    if single is None:
        raise Unreachable("the configuration selects no context")
    return single if single.user is not None else single._replace(user=_nobody())


def contexts(kubeconfig: str) -> list[str]:
    """The contexts that the file KUBECONFIG has; none where it can't be read."""
    try:
        return sorted(KubeConfig.from_file(_first(kubeconfig)).contexts)
    except (ConfigError, OSError, ValueError, TypeError, AttributeError, KeyError, YAMLError):
        return []


def _first(kubeconfig: str) -> str:
    files = kubeconfig.split(os.pathsep)
    return next((each for each in files if Path(each).expanduser().is_file()), kubeconfig)


def _nobody() -> Any:
    from lightkube.config.models import User

    return User()


@dataclass
class Client:
    """A `cluster.Cluster`. To be closed."""

    config: SingleConfig
    manager: str = MANAGER
    """Who writes, for the API server."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    page: int = 500
    observe: Observe | None = None
    _http: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        parameters = ConnectionParams(timeout=httpx2.Timeout(self.timeouts.request, connect=10.0))
        try:
            self._http = AsyncClient(spoken(self.config), parameters)
        except (ConfigError, OSError, ValueError, httpx2.InvalidURL) as error:  # certificates that can't be read
            raise Unreachable(f"no configuration for the cluster: {error}") from None
        if self._http.auth is not None:
            self._http.auth = Login(self._http.auth)
        self._http.headers.update({"User-Agent": f"{self.manager}/{__version__}", "Accept": JSON})

    @property
    def server(self) -> str:
        """Where it is, without what somebody may have written there to log in."""
        address = self._http.base_url
        return f"{address.scheme}://{address.netloc.decode('ascii', 'replace')}"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def list(self, kind: Kind[T], which: Selection = EVERYTHING) -> Listing[T]:
        """All objects that WHICH selects. A list that grows too old between two pages begins anew, at last in one."""
        for limit in (self.page, self.page, 0):
            try:
                return await self._pages(kind, which, limit)
            except Gone:
                if not limit:
                    raise
        raise AssertionError  # the last try returns or raises

    async def _pages(self, kind: Kind[T], which: Selection, limit: int) -> Listing[T]:
        items: list[T] = []
        asked = {**_selection(which), **({"limit": str(limit)} if limit else {})}
        while True:
            response = await self._request("list", "GET", kind, which.namespace, asked)
            page = wire.decode(response.content, ListOf[kind.model], kind)  # type: ignore[name-defined]
            items += page.items
            if not page.metadata.continue_:
                return Listing(tuple(items), page.metadata.resourceVersion, wire.date(response))
            asked = {**asked, "continue": page.metadata.continue_}

    async def watch(self, kind: Kind[T], which: Selection, resource_version: str) -> AsyncGenerator[Change[T], None]:
        """What happens after RESOURCE_VERSION, until the server ends the request. Raises `Gone`."""
        seconds = int(self.timeouts.watch * (1 - random.random() / 4))  # noqa: S311 - spreads load, guards nothing
        asked = {
            **_selection(which),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        ends = time.monotonic() + seconds + self.timeouts.beyond
        timeout = httpx2.Timeout(self.timeouts.request, connect=10.0, read=self.timeouts.silence)
        with _transport():
            async with (
                self._stream(kind, which.namespace, asked, timeout) as response,
                aclosing(_lines(response, ends)) as lines,
            ):
                async for text in lines:
                    yield wire.change(text, kind)

    async def patch(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", subresource: str = ""
    ) -> Answer:
        """Merge BODY into the object."""
        asked = {"fieldManager": self.manager}
        path = (name, subresource) if subresource else (name,)
        return wire.answer(
            await self._request("patch", "PATCH", kind, namespace, asked, path=path, body=body, content_type=MERGE)
        )

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        *,
        namespace: str = "",
        of: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Create an object, or post BODY to the SUBRESOURCE of the object OF."""
        asked = {"fieldManager": self.manager, **({"dryRun": "All"} if dry_run else {})}
        head: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.name}
        if subresource == "eviction":
            head = {"apiVersion": "policy/v1", "kind": "Eviction"}
        path = (of, subresource) if subresource else ()
        sent = {**head, **body}
        return wire.answer(await self._request("create", "POST", kind, namespace, asked, path=path, body=sent))

    async def delete(self, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete the object that has UID."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **({"preconditions": {"uid": uid}} if uid else {})}
        await self._request("delete", "DELETE", kind, namespace, {}, path=(name,), body=body)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _request(
        self,
        verb: str,
        method: str,
        kind: Kind[Any],
        namespace: str,
        asked: Mapping[str, str],
        *,
        path: Sequence[str] = (),
        body: Body | None = None,
        content_type: str = JSON,
    ) -> httpx2.Response:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": content_type}
        of = "/".join((kind.plural, *path[1:]))
        code, date = 0, None
        try:
            with _transport():
                async with asyncio.timeout(self.timeouts.request):
                    response = await self._http.request(
                        method, _url(kind, namespace, path), params=asked, content=content, headers=headers
                    )
            code, date = response.status_code, wire.date(response)
        finally:
            if self.observe:
                self.observe(verb, of, code, date)
        if not response.is_success:
            raise wire.refusal(response)
        return response

    @asynccontextmanager
    async def _stream(
        self, kind: Kind[Any], namespace: str, asked: Mapping[str, str], timeout: httpx2.Timeout
    ) -> AsyncIterator[httpx2.Response]:
        code, date = 0, None
        request = self._http.build_request("GET", _url(kind, namespace), params=asked, timeout=timeout)
        try:
            async with asyncio.timeout(self.timeouts.request):  # a watch that is granted answers with its head at once
                response = await self._http.send(request, stream=True)
            code, date = response.status_code, wire.date(response)
        finally:
            if self.observe:
                self.observe("watch", kind.plural, code, date)
        try:
            if not response.is_success:
                async with asyncio.timeout(self.timeouts.request):
                    await response.aread()
                raise wire.refusal(response)
            yield response
        finally:
            await response.aclose()


class _transport:  # noqa: N801 - used as a word in `with`
    """Whatever a connection ends in is `Unreachable`."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError, OSError)):
            raise Unreachable(str(error) or type(error).__name__) from error


async def _lines(response: httpx2.Response, ends: float) -> AsyncGenerator[bytes, None]:
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


def _url(kind: Kind[Any], namespace: str = "", path: Sequence[str] = ()) -> str:
    """Names of objects come from people, too: no character of theirs leads elsewhere."""
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    space = f"/namespaces/{quote(namespace, safe='')}" if kind.namespaced and namespace else ""
    parts = "".join(f"/{quote(part, safe='')}" for part in path)
    return f"{group}{space}/{kind.plural}{parts}"


def _selection(which: Selection) -> dict[str, str]:
    asked = {"labelSelector": which.labels, "fieldSelector": which.fields}
    return {key: value for key, value in asked.items() if value}
