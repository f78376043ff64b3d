"""The real client against a server on loopback that answers as kube-apiserver does."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from gpustack.reconciler.core.pods import Uses
from gpustack.reconciler.shell import wire
from gpustack.reconciler.shell.client import Client, Timeouts, configuration
from gpustack.reconciler.shell.cluster import (
    CLAIMS,
    DAEMONSETS,
    LEASES,
    NODES,
    PODS,
    POLICIES,
    ApiError,
    Change,
    Conflict,
    Forbidden,
    Gone,
    Kind,
    NotFound,
    Selection,
    TooMany,
    Unreachable,
)
from gpustack.reconciler.shell.lean import interest
from gpustack.reconciler.shell.refusals import evict

DATE = "Mon, 05 Jan 2026 09:00:00 GMT"


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any = None


@dataclass
class Reply:
    """An answer: one body, or the chunks of a stream. `hang`: then nothing more comes."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] | None = None
    hang: bool = False
    drop: bool = False


Handler = Callable[[Asked], Reply]


@asynccontextmanager
async def serving(handler: Handler, asked: list[Asked]) -> AsyncIterator[str]:
    """A server that answers with HANDLER; its address."""
    tasks = set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            while True:
                request = await read(reader)
                asked.append(request)
                reply = handler(request)
                if reply.drop:
                    return
                writer.write(head(reply))
                for chunk in reply.chunks or ():
                    writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0)
                if reply.hang:
                    await asyncio.sleep(60)
                if reply.chunks is not None:
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read(reader: asyncio.StreamReader) -> Asked:
    """A request from the wire."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {key.lower(): value for key, value in (line.split(": ", 1) for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, json.loads(body) if body else None)


def head(reply: Reply) -> bytes:
    """The head of an answer, and the body where it has one."""
    if reply.chunks is not None:
        return f"HTTP/1.1 {reply.status} X\r\nDate: {DATE}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"Date": DATE, "Content-Length": str(len(content)), **reply.headers}
    if reply.hang:
        headers["Content-Length"] = str(len(content) + 10)
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return f"HTTP/1.1 {reply.status} X\r\n{lines}\r\n".encode() + content


def ask(handler: Handler, call: Callable[[Client], Awaitable[Any]], **options: Any) -> tuple[Any, list[Asked]]:
    """What CALL comes to, and what was asked for."""
    asked: list[Asked] = []

    async def scenario() -> Any:
        async with serving(handler, asked) as address:
            made = Client(configured(address), **options)
            try:
                return await call(made)
            finally:
                await made.close()

    return asyncio.run(scenario()), asked


def configured(address: str, **user: Any) -> Any:
    """A configuration for a server."""
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.config.models import Cluster, User

    return KubeConfig.from_one(cluster=Cluster(server=address), user=User(**user)).get()


def items(*names: str) -> list[dict[str, Any]]:
    """Objects of these names."""
    return [{"metadata": {"name": name, "uid": name}, "spec": {"unknown": [1]}} for name in names]


def test_lists_come_in_pages() -> None:
    """limit and continue until there is no more; selectors, user agent and the server's time."""

    def handler(asked: Asked) -> Reply:
        first = "continue" not in asked.query
        metadata = {"resourceVersion": "7", **({"continue": "more"} if first else {})}
        return Reply(body={"metadata": metadata, "items": items("a") if first else items("b")})

    which = Selection("gpu", "app=x,y in (a,b)", "spec.nodeName=n")
    listing, asked = ask(handler, lambda client: client.list(PODS, which))
    assert [each.name for each in listing.items] == ["a", "b"]
    assert (listing.resource_version, listing.date) == ("7", datetime(2026, 1, 5, 9, tzinfo=UTC))
    assert [each.path for each in asked] == ["/api/v1/namespaces/gpu/pods"] * 2
    assert asked[0].query == {"labelSelector": which.labels, "fieldSelector": which.fields, "limit": "100"}
    assert asked[1].query == {**asked[0].query, "continue": "more"}
    assert asked[0].headers["user-agent"].startswith("gpustack-reconciler/")


@pytest.mark.parametrize(
    "body",
    [
        {"code": 410, "reason": "Expired", "message": "The provided continue parameter is too old"},
        {"code": 410, "reason": "Gone", "message": "too old resource version"},
    ],
)
def test_a_list_that_grew_too_old_begins_anew(body: dict[str, Any]) -> None:
    """Both kinds of 410, twice; then whoever asked is told, and asks later."""
    old = 2

    def handler(asked: Asked) -> Reply:
        nonlocal old
        if "continue" in asked.query and old:
            old -= 1
            return Reply(410, body)
        more = {} if "continue" in asked.query else {"continue": "more"}
        return Reply(body={"metadata": {"resourceVersion": "7", **more}, "items": items("a")})

    listing, asked = ask(handler, lambda client: client.list(NODES))
    assert [each.name for each in listing.items] == ["a", "a"]
    assert len(asked) == 6
    old = 3
    with pytest.raises(Gone):
        ask(handler, lambda client: client.list(NODES))


MIB = 1024 * 1024


def test_memory_is_bounded_whatever_tenants_do() -> None:
    """40 pods of a node, each with 1 MiB of annotations, of environment and of labels, as whoever may create pods can
    make them: what a list of them needs at most is some pages, and what is left of them nearly nothing."""
    wide: dict[str, Any] = {"metadata": {"name": "p", "namespace": "t", "uid": "u", "annotations": {"a": "x" * MIB}}}
    wide["metadata"]["labels"] = {f"l{number}": "y" * 60 for number in range(MIB // 64)}
    container: dict[str, Any] = {"name": "c", "env": [{"name": "E", "value": "z" * MIB}]}
    container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    item = json.dumps({**wide, "spec": {"containers": [container]}, "status": {"phase": "Running"}}).encode()

    def handler(asked: Asked) -> Reply:
        first = int(asked.query.get("continue", 0))
        last = min(first + int(asked.query["limit"]), 40)
        more = f'"continue":"{last}",' if last < 40 else ""
        texts = [item, *(part for _ in range(last - first - 1) for part in (b",", item))]  # one object, many times
        return Reply(chunks=[b'{"items":[', *texts, f'],"metadata":{{{more}"resourceVersion":"7"}}}}'.encode()])

    async def call(client: Client) -> tuple[Any, int]:
        tracemalloc.start()
        try:
            listing = await client.list(interest(["l1=a"], []).pods(), Selection(fields="spec.nodeName=n"))
            return listing, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    (listing, peak), asked = ask(handler, call)
    assert len(listing.items) == 40
    assert peak < 32 * MIB, f"{peak / MIB:.0f} MiB"
    assert listing.items[0].labels == {"l1": "y" * 60}
    assert Uses("gpu-operator").gpu(listing.items[0])
    assert len(msgspec.json.encode(listing.items[0])) < 500
    assert {each.headers["accept-encoding"] for each in asked} == {"identity"}
    assert len(asked) < 50


def test_more_pods_than_a_kubelet_runs_are_no_list() -> None:
    """Whoever names a node in his pods can make as many as he likes; those that have ended count for nothing."""

    def handler(asked: Asked) -> Reply:
        first = int(asked.query.get("continue", 0))
        phase = "Failed" if asked.query["fieldSelector"].endswith("=a") else "Pending"
        found = [{"metadata": {"name": f"p{number}"}, "status": {"phase": phase}} for number in range(100)]
        metadata = {"continue": str(first + 100)} if first < 3100 else {}
        return Reply(body={"metadata": metadata, "items": found})

    kind = interest([], []).pods()
    listing, _ = ask(handler, lambda client: client.list(kind, Selection(fields="spec.nodeName=a")))
    assert listing.items == ()
    with pytest.raises(ApiError, match="more than 3000 pods"):
        ask(handler, lambda client: client.list(kind, Selection(fields="spec.nodeName=b")))


def test_paths() -> None:
    """Core and other groups, with and without a namespace."""

    async def call(client: Client) -> None:
        kinds: tuple[Kind[Any], ...] = (NODES, POLICIES, CLAIMS, LEASES)
        for kind in kinds:
            await client.list(kind, Selection("n" if kind is LEASES else ""))

    _, asked = ask(lambda _: Reply(body={"metadata": {}, "items": []}), call)
    assert [each.path for each in asked] == [
        "/api/v1/nodes",
        "/apis/gpustack.dev/v1alpha1/nodepolicies",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/coordination.k8s.io/v1/namespaces/n/leases",
    ]


def test_writes() -> None:
    """Methods, paths, content types, field manager; a delete and an eviction with a UID; a dry run."""
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "n", "uid": "u"}}, type=PODS.model)

    async def call(client: Client) -> Any:
        answer = await client.patch(POLICIES, "x", {"status": {"nodes": 1}}, subresource="status")
        await client.create(LEASES, {"metadata": {"name": "l"}}, namespace="n")
        await evict(client, pod, dry_run=True)
        await client.delete(PODS, "p", namespace="n", uid="u")
        return answer

    made = {"metadata": {"resourceVersion": "8", "uid": "u", "name": "x"}}
    answer, (patch, create, eviction, delete) = ask(lambda _: Reply(body=made), call)
    assert (answer.resource_version, answer.uid, answer.body) == ("8", "u", made)
    assert (patch.method, patch.path) == ("PATCH", "/apis/gpustack.dev/v1alpha1/nodepolicies/x/status")
    assert patch.headers["content-type"] == "application/merge-patch+json"
    assert patch.query == {"fieldManager": "gpustack-reconciler"}
    assert (create.method, create.body["kind"], create.body["apiVersion"]) == (
        "POST",
        "Lease",
        "coordination.k8s.io/v1",
    )
    assert eviction.path == "/api/v1/namespaces/n/pods/p/eviction"
    assert eviction.query["dryRun"] == "All"
    assert (eviction.body["apiVersion"], eviction.body["kind"]) == ("policy/v1", "Eviction")
    assert eviction.body["deleteOptions"] == {"preconditions": {"uid": "u"}}
    assert (delete.method, delete.body["preconditions"]) == ("DELETE", {"uid": "u"})


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Forbidden), (403, Forbidden), (404, NotFound), (409, Conflict), (410, Gone), (500, ApiError)],
)
def test_errors(status: int, kind: type[ApiError]) -> None:
    """Each status is its error, with message and reason as the Status object has them."""
    body = {"kind": "Status", "message": "because", "reason": "Reason", "code": status}
    with pytest.raises(kind, match="because") as error:
        ask(lambda _: Reply(status, body), lambda client: client.patch(NODES, "n", {}))
    assert (type(error.value), error.value.status, error.value.reason) == (kind, status, "Reason")


def test_a_budget_is_named() -> None:
    """The cause of a refused eviction names its PodDisruptionBudget; Retry-After is in seconds."""
    text = "The disruption budget db needs 2 healthy pods and has 2 currently"
    details = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    body = {"message": "Cannot evict pod", "reason": "TooManyRequests", "code": 429, "details": details}
    with pytest.raises(TooMany) as error:
        ask(lambda _: Reply(429, body, {"Retry-After": "10"}), lambda client: client.create(PODS, {}, namespace="n"))
    assert (error.value.causes, error.value.retry_after) == ((text,), 10.0)


def test_another_uid_in_a_patch_is_a_conflict() -> None:
    """The API server calls it invalid: metadata.uid is immutable."""
    causes = [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}]
    body = {"message": "invalid", "reason": "Invalid", "code": 422, "details": {"causes": causes}}
    with pytest.raises(Conflict):
        ask(lambda _: Reply(422, body), lambda client: client.patch(NODES, "n", {}))


def test_an_answer_of_a_proxy() -> None:
    """No Status object: its text is the message."""
    with pytest.raises(ApiError, match="bad gateway") as error:
        ask(lambda _: Reply(502, b"<h1>bad gateway</h1>"), lambda client: client.list(NODES))
    assert error.value.status == 502


@pytest.mark.parametrize("how", ["dropped", "hanging", "refused"])
def test_no_answer(how: str) -> None:
    """A connection that is dropped, hangs or can't be made: whether a write happened is not known."""
    reply = Reply(drop=how == "dropped", hang=how == "hanging")

    async def call(client: Client) -> None:
        if how == "refused":
            client = Client(configured("http://127.0.0.1:1"))
        await client.patch(NODES, "n", {})

    with pytest.raises(Unreachable):
        ask(lambda _: reply, call, timeouts=Timeouts(request=0.3))


def test_an_object_that_can_not_be_read() -> None:
    """A list with a broken object is an error that names the kind, not a list without it."""
    body = {"metadata": {}, "items": [{"metadata": {"name": 5}}]}
    with pytest.raises(ApiError, match="nodes: the answer can't be read"):
        ask(lambda _: Reply(body=body), lambda client: client.list(NODES))


def test_a_claim_that_is_nested_too_deep() -> None:
    """A tenant writes the parameters of a claim: they can be an error, and never the end of the program."""
    content = b'{"metadata": {}, "items": [{"spec": {"devices": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}]}"
    with pytest.raises(ApiError, match="resourceclaims: the answer can't be read"):
        ask(lambda _: Reply(body=content), lambda client: client.list(CLAIMS))


@pytest.mark.parametrize("date", ["Mon, 05 Jan 2026 09:00:00 -0000", "Mon, 05 Jan 2026 09:00:00 GMT"])
def test_the_servers_time_has_a_zone(date: str) -> None:
    """ "-0000" is how mail says that UTC is meant."""
    found, _ = ask(lambda _: Reply(headers={"Date": date}), lambda client: client.list(NODES))
    assert found.date == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize("date", ["", "soon", "Mon, 05 Jan 2026 09:00:00 +99999999999999999999"])
def test_a_date_that_is_none(date: str) -> None:
    """It says nothing."""
    found, _ = ask(lambda _: Reply(headers={"Date": date}), lambda client: client.list(NODES))
    assert found.date is None


@pytest.mark.parametrize(("text", "seconds"), [("99999999999", 300.0), ("\xb2", 0.0), ("-5", 0.0), ("7", 7.0)])
def test_how_long_a_busy_server_is_left_alone(text: str, seconds: float) -> None:
    """As long as it asks, and five minutes at most: a wrong number must not stop the program for a year."""
    with pytest.raises(TooMany) as error:
        ask(lambda _: Reply(429, {}, {"Retry-After": text}), lambda client: client.list(NODES))
    assert error.value.retry_after == seconds


@pytest.mark.parametrize("body", [[], "x", {"metadata": "x"}, {"metadata": {"uid": 5}}])
def test_an_answer_to_a_write_that_is_none(body: Any) -> None:
    """Whether it happened is not known."""
    with pytest.raises(Unreachable, match="can't be read"):
        ask(lambda _: Reply(body=body), lambda client: client.patch(NODES, "n", {}))


def line(kind: str, name: str = "", version: str = "", **more: Any) -> bytes:
    """A line of a watch."""
    metadata = {"name": name, "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata, **more}}, ensure_ascii=False).encode() + b"\n"


async def changes(client: Client) -> list[Change[Any]]:
    """All that a watch says."""
    return [change async for change in client.watch(NODES, Selection(labels="x"), "5")]


def test_watches() -> None:
    """Lines, wherever the chunks are cut and whatever line separators are in strings; bookmarks; the server's end."""
    text = line("ADDED", "a", "6", metadata={"name": "a", "resourceVersion": "6", "labels": {"x": "a\u2028b\u0085c"}})
    text += line("BOOKMARK", "", "7") + b"\n" + line("DELETED", "a", "8")
    chunks = [text[start : start + 7] for start in range(0, len(text), 7)]
    found, asked = ask(lambda _: Reply(chunks=chunks), changes)
    assert [(change.type, change.object.metadata.resourceVersion) for change in found] == [
        ("ADDED", "6"),
        ("BOOKMARK", "7"),
        ("DELETED", "8"),
    ]
    assert found[0].object.labels == {"x": "a\u2028b\u0085c"}
    query = asked[0].query
    assert (query["watch"], query["allowWatchBookmarks"], query["resourceVersion"]) == ("1", "true", "5")
    assert 180 <= int(query["timeoutSeconds"]) <= 240
    assert "limit" not in query


@pytest.mark.parametrize("how", ["as the answer", "as an event"])
def test_gone_watches(how: str) -> None:
    """HTTP 410, and 200 with an ERROR event that says 410."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (5)"}
    error = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    reply = Reply(410, status) if how == "as the answer" else Reply(chunks=[error])
    with pytest.raises(Gone, match="too old"):
        ask(lambda _: reply, changes)


@pytest.mark.parametrize("timeouts", [Timeouts(watch=1, beyond=-0.5), Timeouts(silence=0.3)])
def test_a_watch_that_the_server_never_ends(timeouts: Timeouts) -> None:
    """A deadline of our own, and one for silence: a forgotten connection is `Unreachable`."""
    chunks = [line("ADDED", "a", "6")]
    with pytest.raises(Unreachable):
        ask(lambda _: Reply(chunks=chunks, hang=True), changes, timeouts=timeouts)


def test_requests_are_observed() -> None:
    """Verb, resource and status of each answer; 0 where none came."""
    seen: list[tuple[str, str, int]] = []

    def observe(verb: str, kind: str, code: int) -> None:
        seen.append((verb, kind, code))

    async def call(client: Client) -> None:
        await client.list(PODS)
        with pytest.raises(NotFound):
            await client.create(PODS, {}, namespace="n", of="p", subresource="eviction")
        with pytest.raises(Unreachable):
            await client.delete(PODS, "p", namespace="n")

    def handler(asked: Asked) -> Reply:
        if asked.method == "DELETE":
            return Reply(drop=True)
        return Reply(404) if asked.method == "POST" else Reply(body={"metadata": {}, "items": []})

    ask(handler, call, observe=observe)
    assert seen == [("list", "pods", 200), ("create", "pods/eviction", 404), ("delete", "pods", 0)]


def test_the_token_file_is_read_again(tmp_path: Path) -> None:
    """Tokens of ServiceAccounts expire: after a 401 the file has a new one."""
    token = tmp_path / "token"
    token.write_text("old")

    def handler(asked: Asked) -> Reply:
        if asked.headers["authorization"] == "Bearer old":
            token.write_text("new")
            return Reply(401)
        return Reply(body={"metadata": {}, "items": []})

    asked: list[Asked] = []

    async def scenario() -> None:
        async with serving(handler, asked) as address:
            made = Client(configured(address, token_file=str(token)))
            await made.list(NODES)
            await made.close()

    asyncio.run(scenario())
    assert [each.headers["authorization"] for each in asked] == ["Bearer old", "Bearer new"]


def test_a_kubeconfig(tmp_path: Path) -> None:
    """From a file, by context; what is wrong with it is said."""
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: k}}, {name: d, context: {cluster: other}}]\n"
        "clusters: [{name: k, cluster: {server: 'http://k:1'}}]\n"
    )
    for given in (str(path), f"{tmp_path / 'none'}:{path}"):
        assert configuration(given).cluster.server == "http://k:1"
    for file, context in ((path, "none"), (path, "d"), (tmp_path / "none", "")):
        with pytest.raises(Unreachable):
            configuration(str(file), context)
    path.write_text("just text")
    with pytest.raises(Unreachable):
        configuration(str(path))


EMPTY = {"metadata": {"resourceVersion": "9", "creationTimestamp": None}}
"""What is in every bookmark."""


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (PODS, {"kind": "Pod", "spec": {"containers": None}, "status": {}}),
        (DAEMONSETS, {"spec": {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}}}),
        (NODES, {"spec": {}, "status": {"nodeInfo": {"machineID": ""}, "conditions": None}}),
        (POLICIES, {"spec": 5}),
    ],
    ids=lambda value: value.plural if isinstance(value, Kind) else "",
)
def test_of_a_bookmark_only_the_version_is_read(kind: Kind[Any], found: dict[str, Any]) -> None:
    """Bookmarks carry an empty object, in which Go writes null for lists that an object must have."""
    line = json.dumps({"type": "BOOKMARK", "object": {**EMPTY, **found}}).encode()
    made = wire.change(line, kind)
    assert (made.type, made.object.metadata.resourceVersion, made.object.name) == ("BOOKMARK", "9", "")


@pytest.mark.parametrize(
    "body",
    [
        {"items": None, "metadata": {"resourceVersion": "7"}},
        {"items": None, "metadata": None},
        {"metadata": {"resourceVersion": "7"}},
        {},
        {"items": [{"metadata": None, "spec": None, "status": None}], "metadata": {}},
        {"items": [{"metadata": {"labels": None, "ownerReferences": None}, "spec": {"containers": None}}]},
        {"items": [{"spec": {"containers": [{"env": None, "resources": {"limits": None}}], "volumes": [None]}}]},
        {"items": [{"status": {"conditions": None, "containerStatuses": [{"state": None}]}}]},
    ],
)
def test_null_is_as_if_it_were_absent(body: dict[str, Any]) -> None:
    """Wherever it stands in a list of pods."""
    listing, _ = ask(lambda _: Reply(body=body), lambda client: client.list(PODS))
    assert len(listing.items) == len(body.get("items") or [])
    for each in listing.items:
        assert (each.name, each.labels, each.metadata.controller, each.ready, each.claims) == ("", {}, None, False, [])


def test_the_version_of_the_server() -> None:
    """As the API server says it, all fields; what is no JSON object, or is refused, is an ApiError that says so."""
    said = {"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "36"}
    found, asked = ask(lambda _: Reply(body=said), lambda client: client.version())
    assert (found, [(each.method, each.path) for each in asked]) == (said, [("GET", "/version")])
    for reply, told in ((Reply(body=[1]), "no JSON"), (Reply(403, {"message": "no"}), "/version answers with 403")):
        with pytest.raises(ApiError, match=told):
            ask(lambda _, reply=reply: reply, lambda client: client.version())  # type: ignore[misc]
