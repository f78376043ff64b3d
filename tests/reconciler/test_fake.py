"""The API server in memory keeps the rules of the real one: facts of reconciler.md 6.8 and of the API's reference."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from gpustack.reconciler.shell.cluster import (
    LEASES,
    NODES,
    PODS,
    POLICIES,
    ApiError,
    Change,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Selection,
    TooMany,
    Unreachable,
)
from tests.reconciler.memory import BUDGETS, FakeCluster, Request, drive, settle_budgets


def pod(name: str, node: str = "a", **labels: str) -> dict[str, Any]:
    """A running pod."""
    return {
        "metadata": {"name": name, "namespace": "work", "labels": labels},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture
def cluster() -> FakeCluster:
    """With a node."""
    made = FakeCluster()
    made.server.put(NODES, {"metadata": {"name": "a", "labels": {"zone": "1"}}, "spec": {}})
    return made


def test_merge_patch_and_no_op(cluster: FakeCluster) -> None:
    """null removes, the rest stays; a patch that changes nothing raises no resourceVersion and is no write."""
    body = {"metadata": {"labels": {"zone": None, "x": "y"}}, "spec": {"unschedulable": True}}
    first = drive(cluster.patch(NODES, "a", body))
    node = cluster.server.read(NODES, "a")
    assert (node.labels, node.spec.unschedulable) == ({"x": "y"}, True)
    second = drive(cluster.patch(NODES, "a", body))
    assert second.resource_version == first.resource_version
    assert len(cluster.server.writes) == 1
    assert cluster.requests["patch", "nodes"] == 2


@pytest.mark.parametrize("precondition", [{"resourceVersion": "0"}, {"uid": "other"}])
def test_preconditions(cluster: FakeCluster, precondition: dict[str, str]) -> None:
    """A resourceVersion or a UID that isn't the object's is a conflict, and nothing is written."""
    with pytest.raises(Conflict):
        drive(cluster.patch(NODES, "a", {"metadata": {**precondition, "labels": {"x": "y"}}}))
    assert cluster.server.read(NODES, "a").labels == {"zone": "1"}


def test_status_is_apart(cluster: FakeCluster) -> None:
    """The main resource takes no status and the status subresource nothing else; generation counts changes of spec."""
    cluster.server.put(POLICIES, {"metadata": {"name": "p"}, "spec": {"pools": ["p"]}})
    drive(cluster.patch(POLICIES, "p", {"spec": {"pools": ["q"]}, "status": {"nodes": 5}}))
    policy = cluster.server.read(POLICIES, "p")
    assert (policy.spec.pools, policy.status.nodes, policy.metadata.generation) == (["q"], 0, 2)
    drive(cluster.patch(POLICIES, "p", {"spec": {"pools": ["r"]}, "status": {"nodes": 5}}, subresource="status"))
    policy = cluster.server.read(POLICIES, "p")
    assert (policy.spec.pools, policy.status.nodes, policy.metadata.generation) == (["q"], 5, 2)


def test_pods_go_when_the_kubelet_says_so(cluster: FakeCluster) -> None:
    """A deleted pod of a node stays, with a deletionTimestamp, until it has ended; another UID is a conflict."""
    cluster.server.put(PODS, pod("x"))
    with pytest.raises(Conflict):
        drive(cluster.delete(PODS, "x", namespace="work", uid="other"))
    drive(cluster.delete(PODS, "x", namespace="work", uid=cluster.server.read(PODS, "x", "work").uid))
    assert cluster.server.read(PODS, "x", "work").terminating
    assert cluster.server.finish_all() == 0
    cluster.server.tick(30)
    assert cluster.server.finish_all() == 1
    with pytest.raises(NotFound):
        drive(cluster.delete(PODS, "x", namespace="work"))


def eviction(name: str, uid: str = "") -> dict[str, Any]:
    """Its body."""
    options = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
    return {"metadata": {"name": name, "namespace": "work"}, **options}


def evict(cluster: FakeCluster, name: str, uid: str = "", *, dry_run: bool = False) -> None:
    """Ask for it."""
    body = eviction(name, uid)
    drive(cluster.create(PODS, body, namespace="work", of=name, subresource="eviction", dry_run=dry_run))


def budget(cluster: FakeCluster, name: str, available: int) -> None:
    """Put a budget there for app x."""
    spec = {"minAvailable": available, "selector": {"matchLabels": {"app": "x"}}}
    cluster.server.put(BUDGETS, {"metadata": {"name": name, "namespace": "work"}, "spec": spec})


def test_budgets(cluster: FakeCluster) -> None:
    """429 before the budget was observed and when it is used up, naming it; a dry run uses nothing up."""
    for name in ("x", "y"):
        cluster.server.put(PODS, pod(name, app="x"))
    budget(cluster, "db", 1)
    with pytest.raises(TooMany) as early:
        evict(cluster, "x")
    assert early.value.causes == ("The disruption budget db is still being processed by the server.",)
    settle_budgets(cluster.server)
    evict(cluster, "x", dry_run=True)
    evict(cluster, "x")
    with pytest.raises(TooMany) as used:
        evict(cluster, "y", dry_run=True)
    assert used.value.causes == ("The disruption budget db needs 1 healthy pods and has 2 currently",)


def test_wrong_uid_burns_the_allowance(cluster: FakeCluster) -> None:
    """An eviction that names another UID is refused, and the budget has one less all the same (reconciler.md A11)."""
    for name in ("x", "y"):
        cluster.server.put(PODS, pod(name, app="x"))
    budget(cluster, "db", 1)
    settle_budgets(cluster.server)
    with pytest.raises(Conflict):
        evict(cluster, "x", "other")
    with pytest.raises(TooMany):
        evict(cluster, "x")


def test_two_budgets_are_a_500(cluster: FakeCluster) -> None:
    """A pod with two budgets can't be evicted: the server says 500."""
    cluster.server.put(PODS, pod("x", app="x"))
    budget(cluster, "one", 0)
    budget(cluster, "two", 0)
    with pytest.raises(ApiError) as error:
        evict(cluster, "x")
    assert error.value.status == 500


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=x", ["x"]),
        ("app!=x", ["y", "z"]),
        ("app in (x,y)", ["x", "y"]),
        ("app notin (x, y)", ["z"]),
        ("app", ["x", "y"]),
        ("!app", ["z"]),
        ("app in (x,y),app!=y", ["x"]),
    ],
)
def test_label_selectors(cluster: FakeCluster, selector: str, found: list[str]) -> None:
    """Equality, sets and existence, and all of what stands between commas."""
    for each in (pod("x", app="x"), pod("y", app="y"), pod("z", "b")):
        cluster.server.put(PODS, each)
    listing = drive(cluster.list(PODS, Selection(labels=selector)))
    assert [each.name for each in listing.items] == found


def test_field_selectors(cluster: FakeCluster) -> None:
    """By name and by node; a field that the API has no selector for is a bad request."""
    for each in (pod("x"), pod("y", "b")):
        cluster.server.put(PODS, each)
    assert [each.name for each in drive(cluster.list(PODS, Selection(fields="spec.nodeName=b"))).items] == ["y"]
    assert [each.name for each in drive(cluster.list(PODS, Selection("work", fields="metadata.name=x"))).items] == ["x"]
    with pytest.raises(ApiError):
        drive(cluster.list(PODS, Selection(fields="spec.restartPolicy=Never")))


async def some(cluster: FakeCluster, which: Selection, version: str, number: int) -> list[Change[Any]]:
    """The first changes of a watch."""
    found: list[Change[Any]] = []
    async for change in cluster.watch(PODS, which, version):
        found.append(change)
        if len(found) == number:
            break
    return found


def test_watch_through_a_selector(cluster: FakeCluster) -> None:
    """History since a version, then what comes; what leaves the selection is deleted, what enters is added."""

    async def scenario() -> list[str]:
        start = drive(cluster.list(PODS)).resource_version
        cluster.server.put(PODS, pod("x", app="x"))
        task = asyncio.create_task(some(cluster, Selection(labels="app=x"), start, 5))
        await asyncio.sleep(0)
        cluster.server.edit(PODS, "x", {"metadata": {"labels": {"app": "y"}}}, "work")
        await asyncio.sleep(0)
        cluster.server.edit(PODS, "x", {"metadata": {"labels": {"app": "x"}}}, "work")
        return [change.type for change in await task]

    assert asyncio.run(scenario()) == ["ADDED", "BOOKMARK", "DELETED", "BOOKMARK", "ADDED"]


def test_watches_that_are_gone(cluster: FakeCluster) -> None:
    """410 for a version that is no longer kept, at the start and in the middle."""

    async def early() -> None:
        cluster.server.put(PODS, pod("x"))
        cluster.server.compact()
        await some(cluster, Selection(), "1", 1)

    async def late() -> None:
        task = asyncio.create_task(some(cluster, Selection(), str(cluster.server.version), 1))
        await asyncio.sleep(0)
        cluster.end_watches(gone=True)
        await task

    for scenario in (early, late):
        with pytest.raises(Gone):
            asyncio.run(scenario())


def test_faults(cluster: FakeCluster) -> None:
    """A fault before leaves things as they were; one after hides that it happened."""

    def fault(request: Request, when: str) -> None:
        if (request.number, when) in {(1, "before"), (2, "after")}:
            raise Unreachable("the connection broke")

    cluster.fault = fault
    with pytest.raises(Unreachable):
        drive(cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "1"}}}))
    assert "x" not in cluster.server.read(NODES, "a").labels
    with pytest.raises(Unreachable):
        drive(cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "2"}}}))
    assert cluster.server.read(NODES, "a").labels["x"] == "2"


def test_denied(cluster: FakeCluster) -> None:
    """What RBAC denies is `Forbidden`, for that client alone."""
    cluster.denied = {("create", "leases")}
    body = {"metadata": {"name": "x"}}
    with pytest.raises(Forbidden):
        drive(cluster.create(LEASES, body, namespace="n"))
    drive(FakeCluster(cluster.server).create(LEASES, body, namespace="n"))
    with pytest.raises(Conflict):
        drive(FakeCluster(cluster.server).create(LEASES, body, namespace="n"))


def test_clock(cluster: FakeCluster) -> None:
    """Lists and writes say the server's time, and what is created carries it."""
    cluster.server.now = datetime(2030, 1, 1, tzinfo=UTC)
    assert drive(cluster.list(NODES)).date == datetime(2030, 1, 1, tzinfo=UTC)
    cluster.server.put(PODS, pod("x"))
    assert cluster.server.read(PODS, "x", "work").metadata.creationTimestamp == datetime(2030, 1, 1, tzinfo=UTC)


def test_five_thousand_nodes(cluster: FakeCluster) -> None:
    """A second list of 5,000 nodes decodes only what has changed."""
    for number in range(5000):
        cluster.server.put(NODES, {"metadata": {"name": f"n{number}"}, "spec": {}})
    drive(cluster.list(NODES))
    start = time.perf_counter()
    assert len(drive(cluster.list(NODES)).items) == 5001
    assert time.perf_counter() - start < 0.5
