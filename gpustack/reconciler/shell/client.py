"""The API server over HTTP: `cluster.Cluster` for real.

Where the cluster is and how to log in are lightkube's; requests are raw, since its typed client decodes objects whole
(470 MB for 5,000 nodes), can't delete with a precondition and keeps pages in memory. Every request has a deadline here
too: a load balancer that forgets a connection says nothing.
"""

import asyncio
import contextlib
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
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from yaml import YAMLError

from ... import __version__
from ...api.objects import ListOf, Object
from . import cluster, wire
from .cluster import EVERYTHING, Answer, ApiError, Body, Change, Gone, Kind, Listing, Selection, Unreachable
from .login import Login, spoken
from .wire import OBJECT_BYTES, PAGE_BYTES, TooLarge, bounded, lines, transport

T = TypeVar("T", bound=Object)

MANAGER = "gpustack-reconciler"
"""Name of the program to the API server, and of its field manager."""

MERGE = "application/merge-patch+json"
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}
DRY = {"dryRun": "All"}
PLAIN = {"Accept-Encoding": "identity"}
"""Not packed: what is unpacked could be of any size."""

Observe = Callable[[str, str, int], None]
"""Told of each answer: verb, plural with subresource, HTTP status (0: none came)."""


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

    Of several files with colons between them, the first that is there."""
    kubeconfig = _first(kubeconfig)
    try:
        config = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_service_account()
        single = config.get(context or None)
    except KeyError as error:
        raise Unreachable(f"the configuration has no {error}") from None
    except (ConfigError, OSError, ValueError) as error:
        raise Unreachable(f"no configuration for the cluster: {error}") from None
    except (TypeError, AttributeError, YAMLError):
        raise Unreachable(f"{kubeconfig} is no kubeconfig") from None
    if single is None:
        raise Unreachable("the configuration selects no context")
    return single if single.user is not None else single._replace(user=User())


def contexts(kubeconfig: str) -> list[str]:
    """The contexts that the file KUBECONFIG has; none where it can't be read."""
    try:
        return sorted(KubeConfig.from_file(_first(kubeconfig)).contexts)
    except (ConfigError, OSError, ValueError, TypeError, AttributeError, KeyError, YAMLError):
        return []


def _first(kubeconfig: str) -> str:
    files = kubeconfig.split(os.pathsep)
    return next((each for each in files if Path(each).expanduser().is_file()), kubeconfig)


@dataclass
class Client:
    """A `cluster.Cluster`. To be closed."""

    config: SingleConfig
    manager: str = MANAGER
    """Who writes, for the API server."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    page: int = 500
    """The most objects in a page; a kind may say fewer."""
    observe: Observe | None = None
    _http: httpx2.AsyncClient = field(init=False)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Of who reads objects one by one, since each is large."""

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
        """All objects that WHICH selects. A list that grows too old between two pages begins anew, twice."""
        for _ in range(2):
            with contextlib.suppress(Gone):
                return await self._pages(kind, which)
        return await self._pages(kind, which)

    async def _pages(self, kind: Kind[T], which: Selection) -> Listing[T]:
        """In pages that fit into memory, whatever is in them: one that does not is asked for again as smaller ones."""
        items: list[T] = []
        asked, limit = _selection(which), min(kind.page, self.page)
        while True:
            alone = limit == 1
            async with self._alone if alone else contextlib.nullcontext():
                try:
                    text, date = await self._page(kind, which, {**asked, "limit": str(limit)}, alone=alone)
                except TooLarge:
                    if alone:
                        raise ApiError(f"one of the {kind.plural} is too large to be read") from None
                    limit = max(limit // 8, 1)
                    continue
                page = wire.decode(text, ListOf[kind.model], kind)  # type: ignore[name-defined]
                items += cluster.leaned(kind, page.items)
            cluster.within(kind, len(items))
            if not page.metadata.continue_:
                return Listing(tuple(items), page.metadata.resourceVersion, date)
            asked = {**asked, "continue": page.metadata.continue_}
            if len(text) < PAGE_BYTES // 8:
                limit = min(limit * 4, kind.page, self.page)

    async def _page(
        self, kind: Kind[Any], which: Selection, asked: Mapping[str, str], *, alone: bool
    ) -> tuple[bytearray, datetime | None]:
        """A page as it was sent. Raises `TooLarge`."""
        request = self._http.build_request("GET", _url(kind, which.namespace), params=asked, headers=PLAIN)
        with transport():
            async with asyncio.timeout(self.timeouts.request), self._sent("list", kind.plural, request) as answer:
                return await bounded(answer, OBJECT_BYTES if alone else PAGE_BYTES), wire.date(answer)

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
        request = self._http.build_request("GET", _url(kind, which.namespace), params=asked, timeout=timeout)
        with transport():
            async with self._sent("watch", kind.plural, request) as answer, aclosing(lines(answer, ends)) as texts:
                async for text in texts:
                    yield wire.change(text, kind)

    async def patch(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", subresource: str = ""
    ) -> Answer:
        """Merge BODY into the object."""
        path = (name, subresource) if subresource else (name,)
        return wire.answer(await self._request("patch", kind, namespace, path, body, of=MERGE))

    async def apply(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> Answer:
        """Server-side apply of BODY, a whole manifest; fields that others have become ours. For people's programs."""
        dry = DRY if dry_run else {}
        return wire.answer(await self._request("patch", kind, namespace, (name,), body, of=APPLY, force="true", **dry))

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
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        if subresource == "eviction":
            head = {"apiVersion": "policy/v1", "kind": "Eviction"}
        path = (of, subresource) if subresource else ()
        dry = DRY if dry_run else {}
        return wire.answer(await self._request("create", kind, namespace, path, {**head, **body}, **dry))

    async def delete(self, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "", version: str = "") -> None:
        """Delete the object that has UID, in that version."""
        wanted = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **({"preconditions": wanted} if wanted else {})}
        await self._request("delete", kind, namespace, (name,), body)

    async def proxied(self, namespace: str, service: str, path: str, asked: Mapping[str, str]) -> Any:
        """What a Service (NAME:PORT) answers to a GET of PATH by the API server's proxy. For people's programs."""
        url = f"{_url(Kind(Object, '', 'v1', 'services', 'Service'), namespace, (service, 'proxy'))}/{path}"
        return await self._got(url, service, asked)

    async def version(self) -> dict[str, Any]:
        """What the API server says of its version (k8s.io/apimachinery/pkg/version, Info). For whoever verifies."""
        return await self._got("/version", "/version", {})

    async def _got(self, url: str, what: str, asked: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object that a GET of URL brings, WHAT in errors."""
        asking = self._http.stream("GET", url, params=asked, headers=PLAIN)
        try:
            with transport():
                async with asyncio.timeout(self.timeouts.request), asking as answer:
                    text = await bounded(answer, OBJECT_BYTES)
            if not answer.is_success:
                raise ApiError(f"{what} answers with {answer.status_code}: {text[:200].decode(errors='replace')}")
            return msgspec.json.decode(text, type=dict[str, Any])
        except (TooLarge, msgspec.MsgspecError):
            raise ApiError(f"{what} answers with no JSON, or with too much") from None

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _request(
        self, verb: str, kind: Kind[Any], space: str, path: Sequence[str], body: Body, *, of: str = JSON, **asked: str
    ) -> httpx2.Response:
        """The answer to a write of BODY, which is of the media type OF."""
        if verb != "delete":  # what is gone has no fields that somebody manages
            asked["fieldManager"] = self.manager
        url, content, headers = _url(kind, space, path), msgspec.json.encode(body), {"Content-Type": of}
        request = self._http.build_request(METHODS[verb], url, params=asked, content=content, headers=headers)
        what = "/".join((kind.plural, *path[1:]))
        with transport():
            async with asyncio.timeout(self.timeouts.request), self._sent(verb, what, request) as response:
                await response.aread()
                return response

    @asynccontextmanager
    async def _sent(self, verb: str, what: str, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """The answer to REQUEST, its body still to be read. Raises what it refuses with."""
        code = 0
        try:
            async with asyncio.timeout(self.timeouts.request):  # a watch that is granted answers with its head at once
                response = await self._http.send(request, stream=True)
            code = response.status_code
        finally:
            if self.observe:
                self.observe(verb, what, code)
        async with aclosing(response):
            if not response.is_success:
                async with asyncio.timeout(self.timeouts.request):
                    await response.aread()
                raise wire.refusal(response)
            yield response


def _url(kind: Kind[Any], namespace: str = "", path: Sequence[str] = ()) -> str:
    """Names of objects come from people, too: no character of theirs leads elsewhere."""
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    space = f"/namespaces/{quote(namespace, safe='')}" if kind.namespaced and namespace else ""
    parts = "".join(f"/{quote(part, safe='')}" for part in path)
    return f"{group}{space}/{kind.plural}{parts}"


def _selection(which: Selection) -> dict[str, str]:
    asked = {"labelSelector": which.labels, "fieldSelector": which.fields}
    return {key: value for key, value in asked.items() if value}
