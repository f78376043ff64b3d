"""The API server in memory over HTTP, so that the whole program can run against it as a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from gpustack.reconciler.shell import access, cluster
from gpustack.reconciler.shell.cluster import ApiError, Kind, Selection, TooMany
from tests.reconciler.memory import BUDGETS, FakeCluster

KINDS: dict[tuple[str, str], Kind[Any]] = {
    (kind.group, kind.plural): kind
    for kind in (
        *(each for each in vars(cluster).values() if isinstance(each, Kind)),
        access.REVIEWS,
        BUDGETS,
    )
}


class Front:
    """Answers HTTP requests from a fake."""

    def __init__(self, fake: FakeCluster) -> None:
        self.fake = fake
        self.tasks = set[asyncio.Task[Any]]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = lines[0].split(" ")
                await self.answer(method, target, json.loads(body) if body else {}, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def answer(self, method: str, target: str, body: Any, writer: asyncio.StreamWriter) -> None:
        """A request."""
        parts = urlsplit(target)
        query, segments = dict(parse_qsl(parts.query)), parts.path.strip("/").split("/")
        group, rest = ("", segments[2:]) if segments[0] == "api" else (segments[1], segments[3:])
        namespace = ""
        if rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        kind, name, subresource = KINDS[group, rest[0]], *[*rest[1:], "", ""][:2]
        which = Selection(namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        try:
            if "watch" in query:
                await self.watch(kind, which, query["resourceVersion"], writer)
                return
            status, made = 200, await self.do(method, kind, which, (name, subresource), body, "dryRun" in query)
        except ApiError as error:
            status, made = error.status or 500, {"message": str(error), "reason": error.reason, "code": error.status}
            if isinstance(error, TooMany):
                made["details"] = {"causes": [{"message": text} for text in error.causes]}
        content = json.dumps(made).encode()
        writer.write(self.head(status, f"Content-Length: {len(content)}") + content)
        await writer.drain()

    async def do(
        self, method: str, kind: Kind[Any], which: Selection, path: tuple[str, str], body: Any, dry: bool
    ) -> Any:
        """What is no watch."""
        (name, subresource), namespace = path, which.namespace
        if method == "GET":
            listing = await self.fake.list(kind, which)
            items = [self.fake.server.get(kind, each.name, each.metadata.namespace) for each in listing.items]
            return {"metadata": {"resourceVersion": listing.resource_version}, "items": items}
        if method == "PATCH":
            return (await self.fake.patch(kind, name, body, namespace=namespace, subresource=subresource)).body
        if method == "DELETE":
            uid = (body.get("preconditions") or {}).get("uid", "")
            await self.fake.delete(kind, name, namespace=namespace, uid=uid)
            return {}
        where = {"namespace": namespace, "of": name, "subresource": subresource}
        return (await self.fake.create(kind, body, **where, dry_run=dry)).body

    async def watch(self, kind: Kind[Any], which: Selection, version: str, writer: asyncio.StreamWriter) -> None:
        """Changes until the client goes."""
        writer.write(self.head(200, "Transfer-Encoding: chunked"))
        async with aclosing(self.fake.watch(kind, which, version)) as changes:
            async for change in changes:
                found = msgspec.to_builtins(change.object)
                if change.type == "BOOKMARK":  # as kube-apiserver writes an empty pod or DaemonSet
                    found = {**found, "spec": {"containers": None, "template": {"spec": {"containers": None}}}}
                line = json.dumps({"type": change.type, "object": found}).encode() + b"\n"
                writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")

    def head(self, status: int, length: str) -> bytes:
        """The head of an answer."""
        date = format_datetime(self.fake.server.now, usegmt=True)
        return f"HTTP/1.1 {status} X\r\nDate: {date}\r\n{length}\r\n\r\n".encode()


@asynccontextmanager
async def serving(fake: FakeCluster) -> AsyncIterator[str]:
    """FAKE over HTTP; the address."""
    front = Front(fake)
    server = await asyncio.start_server(front.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in front.tasks:
            task.cancel()
        await asyncio.gather(*front.tasks, return_exceptions=True)
