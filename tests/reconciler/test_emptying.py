"""How a node is emptied: who is evicted when, what is waited for, what is given up, and who is kept off meanwhile."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gpustack.api import keys
from gpustack.api.node_policy import NodePolicy, Spec, Upgrade, Window
from gpustack.api.pods import Pod
from gpustack.reconciler.core import evictions
from gpustack.reconciler.core.pods import longest_first
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.cluster import LEASES, NODES, PODS, POLICIES, Conflict
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.memory import FakeCluster, drive
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.workloads import Workload, add_workload, start


def history_of(*workloads: Workload, nodes: int = 1) -> History:
    """An installed cluster on whose first node a pod of each workload runs; nobody starts another one elsewhere."""
    history = History(nodes)
    for pod in list(history.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    history.world.workloads.clear()
    for workload in workloads:
        add_workload(history.world, workload)
        history.world.workloads.pop(workload.name)
        start(history.world, workload, "n0")
    history.world.tick(0)
    history.want.version = "2"
    return history


def evicted(history: History) -> list[str]:
    """The workloads whose pods were told to end, in that order."""
    writes = [each for each in history.world.server.writes if each.subresource == "eviction"]
    return [m.labels(each.before)["app"] for each in writes]


def cordons(history: History) -> int:
    """How often the node was cordoned."""
    nodes = [each for each in history.world.server.writes if (each.kind, each.name) == ("nodes", "n0")]
    return sum(m.cordoned(each.after) and not m.cordoned(each.before) for each in nodes)


def go(history: History, seconds: float, every: float = 15) -> None:
    """Passes for so long."""
    ends = history.world.elapsed + seconds
    while history.world.elapsed < ends:
        history.once()
        history.world.tick(every)


def test_who_takes_longest_goes_first_and_his_own_time_is_waited_for() -> None:
    """A pod that takes 50 minutes to end, of the hour that it may, under a policy that waits five: it is waited for,
    nobody else is evicted before it has ended, and one cordon is enough."""
    history = history_of(Workload("slow", 1, grace=3600, ends_after=3000), Workload("quick", 1))
    history.sync(0)
    go(history, 2500)
    assert evicted(history) == ["slow"]
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "evicting")
    assert "was told to end and still runs; it may take until" in wait.message
    go(history, 1500)
    assert evicted(history) == ["slow", "quick"]
    assert history.world.machines["n0"].loaded == "digest-2"
    assert cordons(history) == 1


def test_a_pod_that_never_ends_is_tried_once() -> None:
    """It is given up after its own time and some minutes, and then stands against the next attempt: nobody else is
    evicted beside it for days."""
    history = history_of(Workload("stuck", 1, ends_after=1e9), Workload("other", 1, grace=0))
    history.sync(0)
    go(history, 48 * 3600, 300)
    assert cordons(history) == 1
    assert Counter(evicted(history))["other"] <= 1
    assert not history.world.cordoned("n0")
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "blocked")
    assert "was told to end and still runs; since" in wait.message


def test_what_is_evicted_in_vain_is_given_up() -> None:
    """Two pods under a budget that lets one go, and no room for it elsewhere: it comes back and is evicted again. Three
    times, and then other pods, or somebody, are waited for."""
    history = History(1)
    history.world.workloads.clear()
    for pod in list(history.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    add_workload(history.world, Workload("pair", 2, max_unavailable=1))
    history.world.tick()
    history.want.version = "2"
    history.sync(0)
    go(history, 48 * 3600, 300)
    assert cordons(history) == 3
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "blocked")
    assert wait.message.startswith("given up 3 times: ")
    history.world.annotate("n0", {keys.RETRY: "now"})
    go(history, 900)
    assert cordons(history) == 4
    add_workload(history.world, Workload("pair", 0))
    for pod in list(history.world.gpu_pods("n0")):
        history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    go(history, 8 * 3600, 60)
    assert history.world.machines["n0"].loaded == "digest-2"


@pytest.mark.parametrize("what", ["fleet", "pool", "taint", "leaving"])
def test_gates_are_asked_again_before_the_point_of_no_return(what: str) -> None:
    """A pause or a taint that comes while pods are waited for or evicted: the node is given back, and its driver stays.
    Once it is over, all goes on."""
    history = history_of(Workload("slow", 1, grace=600, ends_after=500))
    history.sync(0)
    go(history, 60)
    assert m.operation(history.world.node("n0"))["phase"] == "Evicting"
    driver = history.world.operand("nvidia-driver-daemonset", "n0")
    if what == "fleet":
        body = {"metadata": {"annotations": {keys.PAUSED: "look"}}}
        history.world.server.edit(LEASES, NAME, body, NAMESPACE)
    elif what == "pool":
        history.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": {keys.PAUSED: "look"}}})
    else:
        key = "example.com/repair" if what == "taint" else keys.LEAVING_TAINTS[0]
        taint = {"key": key, "effect": "NoSchedule"}
        history.world.server.edit(NODES, "n0", {"spec": {"taints": [taint]}})
    go(history, 900)
    assert history.world.operand("nvidia-driver-daemonset", "n0") == driver
    assert not history.world.cordoned("n0")
    assert not m.operation(history.world.node("n0"))
    nothing = {"metadata": {"annotations": {keys.PAUSED: None}}}
    history.world.server.edit(LEASES, NAME, nothing, NAMESPACE)
    history.world.server.edit(POLICIES, POOL, nothing)
    history.world.server.edit(NODES, "n0", {"spec": {"taints": None}})
    go(history, 1500)
    assert history.world.machines["n0"].loaded == "digest-2"


def test_the_estimate_is_held_against_the_window() -> None:
    """Before anybody is evicted: a pod that may take two hours to end, and a window of three, an hour and a half before
    it closes."""
    window = Window(start="22:00", hours=3)
    policy = NodePolicy(spec=Spec(upgrade=Upgrade(windows=[window])))
    pods = [msgspec.convert({"metadata": {"name": "p"}, "spec": {"terminationGracePeriodSeconds": 7200}}, Pod)]
    known = Snapshot(now=datetime(2026, 1, 5, 23, 30, tzinfo=UTC), namespace="x")
    said = evictions.too_long(known, policy, pods)
    assert said == "/p may take 7200 s to end, and the window closes at 2026-01-06T01:00Z"
    early = Snapshot(now=known.now - timedelta(hours=1), namespace="x")
    assert evictions.too_long(early, policy, pods) == ""
    assert evictions.too_long(known, NodePolicy(), pods) == ""


def test_the_node_is_kept_empty_while_it_is_worked_on() -> None:
    """Uncordoned by hand in Acting, it is cordoned again at once; a pod that was bound to it by name is evicted, and
    named: the driver manager would wait for it for ever."""
    history = history_of()
    history.sync(0)
    for _ in range(40):
        if m.operation(history.world.node("n0")).get("phase") == "Acting":
            break
        go(history, 5, 5)
    history.world.cordon("n0", False)
    history.once()
    assert history.world.cordoned("n0")
    intruder = start(history.world, Workload("bound", 1), "n0")["metadata"]["name"]
    history.once()
    assert evicted(history) == ["bound"]
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "acting")
    assert f"work/{intruder} uses a GPU though the node is worked on" in wait.message
    go(history, 600)
    assert history.problems() == []


def test_leaders_that_change_in_every_pass_come_to_the_same_end() -> None:
    """What is waited for counts from what stands on the node: that nothing uses its GPUs, that the MIG manager is
    silent, that nobody has restarted a validator."""
    history = History(2)
    history.want.version, history.want.mig = "2", "halves"
    history.sync(0)
    history.world.machines["n0"].faults.add("stuck")
    for _ in range(500):
        for replica in (history.replica, history.other):
            replica.run()
            history.watcher.quiet()
            drive(replica.runner.elector.release())
            replica.restart()
            history.world.tick(5)
        if history.world.elapsed > 700:
            history.world.machines["n0"].faults.clear()
        if not history.problems():
            break
    assert history.problems() == []


def test_a_held_delete_finds_another_version() -> None:
    """The pod has changed since a former leader decided to delete it: what it decided on is no more."""
    history = History(1)
    pod = history.world.operand("nvidia-driver-daemonset", "n0")
    assert pod is not None
    name, uid, version = (pod["metadata"][key] for key in ("name", "uid", "resourceVersion"))
    history.world.set_status(pod, ready=False)
    client = FakeCluster(history.world.server)
    with pytest.raises(Conflict):
        drive(client.delete(PODS, name, namespace=NAMESPACE, uid=uid, version=version))


def test_longest_first() -> None:
    """Those within a minute of the longest go together."""
    pods = [
        msgspec.convert({"metadata": {"name": str(grace)}, "spec": {"terminationGracePeriodSeconds": grace}}, Pod)
        for grace in (0, 30, 3600, 3550)
    ]
    assert [pod.name for pod in longest_first(pods)] == ["3600", "3550"]
    assert [pod.name for pod in longest_first(pods[:2])] == ["0", "30"]
    assert longest_first([]) == []
