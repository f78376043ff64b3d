"""Nodes are given back, from every phase (reconciler.md I25, T23)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, get_args

import pytest

from gpustack.api import keys
from gpustack.reconciler.core.record import Memory, Operation, Phase, write
from gpustack.reconciler.shell.cluster import LEASES, NODES, POLICIES, ApiError, Conflict, Forbidden, Unreachable
from gpustack.reconciler.shell.gather import Sources
from gpustack.reconciler.shell.lease import NAME, Elector
from gpustack.reconciler.shell.uninstall import Uninstalled, uninstall
from tests.reconciler.memory import Request, drive
from tests.reconciler.shell import NAMESPACE, World, fail

GPU = {keys.GPU_FEATURES[0]: "true"}
OURS = {keys.PRESENT: "true", f"{keys.DEPLOY}driver": "true", f"{keys.DEPLOY}dcgm": "false", keys.PLUGIN_CONFIG: "c"}


@pytest.fixture
def world() -> World:
    """A policy for all nodes."""
    made = World()
    spec = {"nodeSelector": {}, "components": ["driver", "dcgm"], "labels": {keys.PLUGIN_CONFIG: "c"}}
    made.server.put(POLICIES, {"metadata": {"name": "pool"}, "spec": spec})
    return made


def node(world: World, name: str, operation: Operation | None = None, *, ours: bool = True, **labels: str) -> None:
    """A labelled node, in an operation."""
    annotations: dict[str, str] = {keys.MEMORY: write(Memory(name="pool")), keys.OPT_OUT: "dcgm"}
    if operation is not None:
        annotations[keys.OPERATION] = write(operation)
        labels[keys.PHASE] = operation.phase
        if operation.cordon:
            annotations |= {keys.CORDONED: operation.id if ours else "other", keys.SCALE_DOWN_DISABLED: "true"}
    world.node(name, labels={**GPU, **OURS, **labels}, annotations=annotations)
    world.server.edit(NODES, name, {"spec": {"unschedulable": True if operation else None}})


def operation(world: World, phase: Any, *, cordon: bool = True, acted: datetime | None = None) -> Operation:
    """An open operation."""
    now = world.server.now
    annotated = [keys.SCALE_DOWN_DISABLED] if cordon else []
    return Operation(
        id="1", acts=["driver"], phase=phase, since=now, started=now, cordon=cordon, annotated=annotated, acted=acted
    )


def release(world: World, *, keep_labels: bool = False, name: str = "uninstall") -> Uninstalled:
    """Uninstall."""
    cluster = world.client(name)
    sources = Sources(cluster, NAMESPACE, world.clock, world.log)
    elector = Elector(cluster, NAMESPACE, name, world.clock_of(), world.log)
    return drive(uninstall(cluster, sources, elector, world.log, keep_labels=keep_labels))


@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("phase", get_args(Phase))
def test_every_phase_is_left(world: World, phase: str, touched: bool) -> None:
    """No cordon, label or annotation of ours is left, whether or not something was done; people's own and foreign
    values stay."""
    node(world, "a", operation(world, phase, acted=world.server.now if touched else None))
    assert release(world).released == ["a"]
    made = world.server.read(NODES, "a")
    assert not made.spec.unschedulable
    assert made.annotations == {keys.OPT_OUT: "dcgm"}
    assert made.labels == {**GPU, f"{keys.DEPLOY}dcgm": "false"}
    assert world.server.find(LEASES, NAME, NAMESPACE) is None


@pytest.mark.parametrize("ours", [True, False])
def test_cordons_of_others_stay(world: World, ours: bool) -> None:
    """A node that was cordoned when its operation began, or whose cordon somebody took over."""
    node(world, "a", operation(world, "Acting", cordon=not ours), ours=False)
    release(world)
    made = world.server.read(NODES, "a")
    assert made.spec.unschedulable
    assert keys.OPERATION not in made.annotations


def test_labels_stay_while_pods_use_gpus(world: World) -> None:
    """Taking them away would remove the driver under the pod; everything else goes."""
    node(world, "a", operation(world, "Held"))
    world.pod("x", "a")
    assert release(world).labelled == {"a": "work/x uses a GPU, and would lose the driver"}
    made = world.server.read(NODES, "a")
    assert made.labels == {**GPU, **OURS}
    assert made.annotations == {keys.OPT_OUT: "dcgm"}
    assert not made.spec.unschedulable


def test_labels_can_be_kept(world: World) -> None:
    """For who goes on with labels from NFD rules."""
    node(world, "a")
    release(world, keep_labels=True)
    assert world.server.read(NODES, "a").labels == {**GPU, **OURS}


def test_labels_of_others_stay(world: World) -> None:
    """Where the policy leaves labels to others, its annotations go and no label but the commanded MIG layout."""
    spec = {"labelling": False, "mig": {"config": "halves"}}
    world.server.edit(POLICIES, "pool", {"spec": spec})
    node(world, "a")
    more = {"labels": {keys.MIG_CONFIG: "halves"}, "annotations": {keys.UPGRADES_ENABLED: "true"}}
    world.server.edit(NODES, "a", {"metadata": more})
    assert release(world).released == ["a"]
    made = world.server.read(NODES, "a")
    assert made.labels == {**GPU, **OURS}
    assert made.annotations == {keys.OPT_OUT: "dcgm"}


def test_a_second_time_nothing_is_written(world: World) -> None:
    """It can be repeated."""
    node(world, "a", operation(world, "Held"))
    release(world)
    before = len(world.server.writes)
    assert release(world) == Uninstalled()
    assert {each.kind for each in world.server.writes[before:]} == {"leases"}


def test_unreadable_records_are_left_and_named(world: World) -> None:
    """Whose the cordon is is not guessed."""
    node(world, "a", operation(world, "Held"))
    world.server.edit(NODES, "a", {"metadata": {"annotations": {keys.OPERATION: "{"}}})
    made = release(world)
    assert made.released == []
    assert made.left.keys() == {"a"}
    assert world.server.read(NODES, "a").spec.unschedulable


def test_a_live_replica_is_refused(world: World) -> None:
    """It would label the nodes again: it is to be removed first."""
    leader = Elector(world.client("live"), NAMESPACE, "live", world.clock_of(), world.log)
    drive(leader.step())
    node(world, "a")
    with pytest.raises(ApiError, match="live still leads"):
        release(world)
    assert keys.MEMORY in world.server.read(NODES, "a").annotations


def test_a_node_that_changes_meanwhile_is_written_again(world: World) -> None:
    """A conflict costs a second look at that node."""
    node(world, "a", operation(world, "Held"))
    node(world, "b", operation(world, "Held"))
    left = [1]

    def fault(request: Request, when: str) -> None:
        if (request.kind, request.verb, request.name, when) == ("nodes", "patch", "a", "before") and left:
            left.pop()
            raise Conflict("x", 409)

    cluster = world.client("u")
    cluster.fault = fault
    sources = Sources(cluster, NAMESPACE, world.clock, world.log)
    elector = Elector(cluster, NAMESPACE, "u", world.clock_of(), world.log)
    made = drive(uninstall(cluster, sources, elector, world.log))
    assert sorted(made.released) == ["a", "b"]
    assert cluster.requests["patch", "nodes"] == 3


@pytest.mark.parametrize("error", [Forbidden("no", 403), ApiError("denied by a webhook", 422)])
def test_a_node_that_may_not_be_written_is_left_and_named(world: World, error: ApiError) -> None:
    """A policy or a webhook refuses one: the others are given back nevertheless."""
    node(world, "a", operation(world, "Held"))
    node(world, "b", operation(world, "Held"))
    cluster = world.client("uninstall")
    cluster.fault = fail(error, "before", lambda request: request.verb == "patch" and request.name == "a")
    sources = Sources(cluster, NAMESPACE, world.clock, world.log)
    elector = Elector(cluster, NAMESPACE, "uninstall", world.clock_of(), world.log)
    made = drive(uninstall(cluster, sources, elector, world.log))
    assert (made.released, list(made.left)) == (["b"], ["a"])
    assert str(error) in made.left["a"]
    assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == ""


@pytest.mark.parametrize("error", [Unreachable("x"), asyncio.CancelledError()])
def test_who_is_cut_off_gives_the_lease_back(world: World, error: Exception) -> None:
    """Ctrl-C, or no answer: whoever tries again need not wait for the end of the Lease."""
    node(world, "a", operation(world, "Held"))
    cluster = world.client("uninstall")
    cluster.fault = fail(error, "before", lambda request: request.verb == "patch" and request.kind == "nodes")
    sources = Sources(cluster, NAMESPACE, world.clock, world.log)
    elector = Elector(cluster, NAMESPACE, "uninstall", world.clock_of(), world.log)
    with pytest.raises(type(error)):
        drive(uninstall(cluster, sources, elector, world.log))
    assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == ""
    assert release(world, name="again").released == ["a"]
