"""The program's client against the real API server: preconditions, evictions, and what is too old."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from gpustack.api.pods import Pod
from gpustack.reconciler.shell import refusals
from gpustack.reconciler.shell.client import Client, Timeouts, configuration
from gpustack.reconciler.shell.cluster import (
    DAEMONSETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    POLICIES,
    REVISIONS,
    ApiError,
    Conflict,
    Forbidden,
    Kind,
    NotFound,
    Selection,
    TooMany,
)
from tests.control_plane.cluster import wait_for
from tests.control_plane.objects import budget, pod
from tests.control_plane.reconciler.stack import ACCOUNT, NS, Stack

T = TypeVar("T")
Ask = Callable[[Client], Awaitable[T]]


def ask(stack: Stack, what: Ask[T]) -> T:
    """Let the program's own client ask under its own account."""

    async def asked() -> T:
        client = Client(configuration(str(stack.plane.account(ACCOUNT, NS))))
        try:
            return await what(client)
        finally:
            await client.close()

    return asyncio.run(asked())


def listed(stack: Stack, name: str) -> Pod:
    """A pod as the program reads it."""
    found = ask(stack, lambda client: client.list(PODS, Selection("default", fields=f"metadata.name={name}")))
    return found.items[0]


def test_second_writer_loses(stack: Stack) -> None:
    """T1: of two writes that were decided on the same version the second is a Conflict, and changes nothing; a write
    that names another UID is one too.
    """
    (machine,) = stack.add(1, "free")

    async def both(client: Client) -> list[object]:
        meta = stack.node(machine)["metadata"]
        bodies = [
            {
                "metadata": {"resourceVersion": meta["resourceVersion"], "labels": {"gpustack.dev/phase": "Held"}},
                "spec": {"unschedulable": True},
            },
            {"metadata": {"resourceVersion": meta["resourceVersion"], "labels": {"gpustack.dev/phase": "Evicting"}}},
            {"metadata": {"uid": "another", "labels": {"gpustack.dev/phase": "Evicting"}}},
        ]
        found: list[object] = []
        for body in bodies:
            found += await asyncio.gather(client.patch(NODES, machine.name, body), return_exceptions=True)
        return found

    for _ in range(10):
        first, *others = ask(stack, both)
        if not isinstance(first, Conflict):
            break  # else a controller has written on the new node meanwhile
    assert not isinstance(first, BaseException)
    assert [type(one) for one in others] == [Conflict, Conflict]
    node = stack.node(machine)
    assert (node["metadata"]["labels"]["gpustack.dev/phase"], node["spec"]["unschedulable"]) == ("Held", True)


def test_evictions(stack: Stack) -> None:
    """T2: what the API server says of an eviction, as the program takes it: a budget without allowance is TooMany and
    names the budget, dry run or not; two budgets are an error in words; then it is granted; a pod that is gone is
    NotFound; a wrong UID is a Conflict and evicts nobody.
    """
    (machine,) = stack.add(1, "free")
    where = {"nodeSelector": {"kubernetes.io/hostname": machine.name}}
    for name in ("tight", "double", "loose"):
        stack.api.create(pod(name, "default", labels={"app": name}, **where))
    for name, of in (("tight", "tight"), ("first", "double"), ("second", "double")):
        stack.api.create(budget(name, "default", {"app": of}, 1))
    for name in ("tight", "double", "loose"):
        wait_for(lambda name=name: stack._running(name), f"{name} runs")  # type: ignore[misc]
    wait_for(
        lambda: stack.api.get("PodDisruptionBudget", "tight", "default").get("status", {}).get("currentHealthy") == 1,
        "the budget counts the pod",
    )

    def evict(of: Pod, *, dry_run: bool = False) -> object:
        async def asked(client: Client) -> object:
            try:
                await refusals.evict(client, of, dry_run=dry_run)
            except ApiError as error:
                return error
            return None

        return ask(stack, asked)

    tight, double, loose = (listed(stack, name) for name in ("tight", "double", "loose"))
    for dry_run in (True, False):
        said = evict(tight, dry_run=dry_run)
        assert isinstance(said, TooMany)
        assert "The disruption budget tight needs 1 healthy pods" in refusals.why(said)
        said = evict(double, dry_run=dry_run)
        assert isinstance(said, ApiError)
        assert (said.status, "more than one PodDisruptionBudget" in refusals.why(said)) == (500, True)
    other = listed(stack, "loose")
    other.metadata.uid = "another"
    assert isinstance(evict(other), Conflict)
    assert stack._running("loose")
    assert evict(loose, dry_run=True) is None
    assert stack._running("loose")
    assert evict(loose) is None
    wait_for(lambda: stack.api.find("Pod", "loose", "default") is None, "it is gone")
    assert isinstance(evict(loose), NotFound)


def test_bookmarks(stack: Stack) -> None:
    """Bookmarks as the API server writes them two seconds before a watch ends, of pods at least, in which it says
    `containers: null`: they are read, and watches of all kinds end as they should."""
    (machine,) = stack.add(1, "free")
    stack.api.create(pod("marked", NS, nodeSelector={"kubernetes.io/hostname": machine.name}))

    async def watched(client: Client) -> dict[str, list[str]]:
        async def one(kind: Kind[Any]) -> list[str]:
            space = Selection(NS if kind.namespaced else "")
            version = (await client.list(kind, space)).resource_version
            return [change.type async for change in client.watch(kind, space, version)]

        client.timeouts = Timeouts(watch=8)
        kinds: tuple[Kind[Any], ...] = (PODS, NODES, DAEMONSETS, REVISIONS, DEPLOYMENTS, POLICIES)
        found = await asyncio.gather(*(one(kind) for kind in kinds))
        return {kind.plural: types for kind, types in zip(kinds, found, strict=True)}

    found = ask(stack, watched)
    assert "BOOKMARK" in found["pods"], found


def test_replaced_pod_is_not_deleted(stack: Stack) -> None:
    """T5: a pod that was replaced by another of its name between a list and the delete stays: the UID protects it."""
    (machine,) = stack.add(1, "free")
    where = {"nodeSelector": {"kubernetes.io/hostname": machine.name}}
    stack.api.create(pod("same", NS, **where))
    old = stack.api.get("Pod", "same", NS)["metadata"]["uid"]
    stack.api.delete("Pod", "same", NS, grace=0)
    wait_for(lambda: stack.api.find("Pod", "same", NS) is None, "it is gone")
    new = stack.api.create(pod("same", NS, **where))["metadata"]["uid"]

    async def delete(client: Client) -> None:
        with pytest.raises(Conflict):
            await client.delete(PODS, "same", namespace=NS, uid=old)
        assert stack.api.get("Pod", "same", NS)["metadata"]["uid"] == new
        await client.delete(PODS, "same", namespace=NS, uid=new)

    ask(stack, delete)


def test_too_old(stack: Stack) -> None:
    """T6: a list in pages that grows too old on the way is listed anew, and comes out whole."""
    machines = stack.add(4, "free")

    async def asked(client: Client) -> set[str]:
        client.page = 2
        compacted = False

        def on_answer(verb: str, *_: object) -> None:
            nonlocal compacted
            if verb == "list" and not compacted:
                compacted = True
                compact(stack, machines[0].name)

        client.observe = on_answer
        found = await client.list(NODES)
        assert compacted
        return {one.name for one in found.items}

    assert ask(stack, asked) == {machine.name for machine in machines}


def compact(stack: Stack, node: str) -> None:
    """Let etcd forget all versions but the newest, which takes five minutes in life."""
    stack.api.patch("Node", node, {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    revision = stack.api.request("GET", "/api/v1/nodes").body["metadata"]["resourceVersion"]
    body = json.dumps({"revision": revision, "physical": True})
    etcd = http.client.HTTPConnection(stack.plane.etcd.removeprefix("http://"), timeout=30)
    try:
        etcd.request("POST", "/v3/kv/compaction", body, {"Content-Type": "application/json"})
        assert etcd.getresponse().status == 200
    finally:
        etcd.close()


def test_evictions_that_nobody_can_judge(stack: Stack) -> None:
    """T2, A11: a budget that no controller has looked at yet refuses, and so does a namespace that is being removed,
    each in words; a wrong UID evicts nobody, and yet uses up the budget's allowance, as the API server has it: so the
    program reads a pod anew before it asks.
    """
    (machine,) = stack.add(1, "free")
    where = {"nodeSelector": {"kubernetes.io/hostname": machine.name}}
    space = stack.plane.namespace("leaving")
    stack.api.create(pod("there", space, **where))
    for name in ("one", "two"):
        stack.api.create(pod(name, "default", labels={"app": "both"}, **where))
        wait_for(lambda name=name: stack._running(name), f"{name} runs")  # type: ignore[misc]
    controllers = stack.plane.programs["kube-controller-manager"]
    controllers.pause()
    try:
        stack.api.create(budget("both", "default", {"app": "both"}, 1))
        stack.api.delete("Namespace", space)
        said = [evict_as_program(stack, "one", "default"), evict_as_program(stack, "there", space)]
    finally:
        controllers.resume()
    assert isinstance(said[0], TooMany)
    assert "both is still being processed" in refusals.why(said[0])
    assert isinstance(said[1], Forbidden)
    assert "is being terminated" in refusals.why(said[1])

    def allowed() -> int:
        status = stack.api.get("PodDisruptionBudget", "both", "default").get("status", {})
        return int(status.get("disruptionsAllowed", 0))

    wait_for(lambda: allowed() == 1, "the budget allows one")
    assert isinstance(evict_as_program(stack, "one", "default", uid="another"), Conflict)
    assert allowed() == 0
    assert isinstance(evict_as_program(stack, "one", "default"), TooMany)


def evict_as_program(stack: Stack, name: str, space: str, *, uid: str = "") -> object:
    """What becomes of the eviction of a pod, or of another of its name."""

    async def asked(client: Client) -> object:
        (found,) = (await client.list(PODS, Selection(space, fields=f"metadata.name={name}"))).items
        found.metadata.uid = uid or found.uid
        try:
            await refusals.evict(client, found)
        except ApiError as error:
            return error
        return None

    return ask(stack, asked)
