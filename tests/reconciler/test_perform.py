"""From a decision to requests: in order on a node, and no node in another's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpustack.api import keys
from gpustack.api.node_policy import Breaker, Status
from gpustack.reconciler.core.actions import Action, Decision, DeletePod, Evict, PatchNode, PatchStatus, Tell
from gpustack.reconciler.core.record import Operation, write
from gpustack.reconciler.shell.cluster import (
    EVENTS,
    LEASES,
    NODES,
    PODS,
    POLICIES,
    ApiError,
    Conflict,
    TooMany,
    Unreachable,
)
from gpustack.reconciler.shell.events import Events
from gpustack.reconciler.shell.gather import Sources
from gpustack.reconciler.shell.lease import NAME, Elector, NotLeadingError, admissions_in
from gpustack.reconciler.shell.metrics import Metrics
from gpustack.reconciler.shell.perform import Outcome, Performer, difference
from tests.reconciler.memory import BUDGETS, Request, drive, settle_budgets
from tests.reconciler.shell import NAMESPACE, World, fail, label


class Stage:
    """A leader in a cluster of two nodes."""

    def __init__(self) -> None:
        self.world = World()
        self.world.node("a")
        self.world.node("b")
        cluster, clock, log = self.world.cluster, self.world.clock, self.world.log
        self.elector = Elector(cluster, NAMESPACE, "me", clock, log)
        self.sources = Sources(cluster, NAMESPACE, clock, log)
        self.sources.refusals.chance = lambda: 1.0
        events = Events(cluster, "me", clock, log, Metrics())
        self.performer = Performer(cluster, self.elector, self.sources, events, log)
        drive(self.elector.step())
        drive(self.sources.refresh())
        self.world.server.writes.clear()
        cluster.requests.clear()

    def do(self, *actions: Action, tells: tuple[Tell, ...] = ()) -> Outcome:
        """Perform."""
        return drive(self.performer.perform(Decision(actions, tells)))

    def fault(self, error: Exception, when: str, test: Callable[[Request], bool]) -> None:
        """Let requests fail."""
        self.world.cluster.fault = fail(error, when, test)

    def writes(self) -> list[tuple[str, str, str]]:
        """What was written, the Lease apart."""
        return [(each.verb, each.kind, each.name) for each in self.world.server.writes if each.kind != "leases"]

    def evict(self, name: str, uid: str = "") -> Evict:
        """Of a pod in `work`."""
        return Evict("a", "work", name, uid or self.world.server.read(PODS, name, "work").uid, "uses a GPU")


@pytest.fixture
def stage() -> Stage:
    """Ready to perform."""
    return Stage()


def test_a_node_stops_at_its_first_failure_and_others_go_on(stage: Stage) -> None:
    """The second action on a waits for the first and is not tried without it; b has nothing to do with that."""
    stage.world.pod("x", "a")
    stage.fault(ApiError("no", 500), "before", lambda request: request.name == "a")
    outcome = stage.do(label(stage.world, "a", x="1"), stage.evict("x"), label(stage.world, "b", x="1"))
    assert outcome.failed.keys() == {"a"}
    assert stage.writes() == [("patch", "nodes", "b")]


def test_a_conflict_is_left_to_the_next_pass(stage: Stage) -> None:
    """Nothing is tried again here; the store has what there is now."""
    action = label(stage.world, "a", x="1")
    stage.world.server.edit(NODES, "a", {"metadata": {"labels": {"y": "2"}}})
    outcome = stage.do(action)
    assert isinstance(outcome.failed["a"], Conflict)
    assert stage.world.cluster.requests["patch", "nodes"] == 1
    assert stage.sources.nodes.get("a") == stage.world.server.read(NODES, "a")


def test_what_was_written_is_known_at_once(stage: Stage) -> None:
    """The next pass does not decide on the node as it was."""
    stage.do(label(stage.world, "a", x="1"))
    known = stage.sources.nodes.get("a")
    assert known is not None
    assert known.labels == {"x": "1"}


def begin(stage: Stage, node: str, op: str) -> PatchNode:
    """The action that begins an operation."""
    now = stage.world.server.now
    action = label(stage.world, node, admits=op)
    text = write(Operation(id=op, acts=["driver"], phase="Held", since=now, started=now))
    return PatchNode(node, action.uid, action.resource_version, "Held", annotations={keys.OPERATION: text}, admits=op)


def announced(stage: Stage) -> set[str]:
    """The admissions in the Lease, by operation."""
    return {each.op for each in admissions_in(stage.world.server.read(LEASES, NAME, NAMESPACE)).values()}


def test_admissions_are_announced_first_and_cleared_after(stage: Stage) -> None:
    """All in one write before the first node is touched, cleared in one when all are seen."""
    seen: list[set[str]] = []

    def fault(request: Request, when: str) -> None:
        if (request.verb, request.kind, when) == ("patch", "nodes", "before"):
            seen.append(announced(stage))

    stage.world.cluster.fault = fault
    stage.do(begin(stage, "a", "1"), begin(stage, "b", "2"))
    assert seen == [{"1", "2"}, {"1", "2"}]
    assert announced(stage) == set()
    assert [each.kind for each in stage.world.server.writes] == ["leases", "nodes", "nodes", "leases"]


def test_without_an_announcement_nothing_begins(stage: Stage) -> None:
    """What is under way on other nodes goes on."""
    stage.fault(Unreachable("x"), "before", lambda request: request.kind == "leases")
    outcome = stage.do(begin(stage, "a", "1"), label(stage.world, "b", x="1"))
    assert outcome.failed.keys() == {"a"}
    assert stage.writes() == [("patch", "nodes", "b")]


@pytest.mark.parametrize(
    ("error", "when", "left"),
    [
        (Unreachable("x"), "before", {"1"}),
        (Unreachable("x"), "after", {"1"}),
        (ApiError("timeout", 504), "after", {"1"}),
        (Conflict("x", 409), "before", set()),
    ],
)
def test_an_admission_without_an_answer_stays_announced(
    stage: Stage, error: ApiError, when: str, left: set[str]
) -> None:
    """Nobody knows whether it happened: it counts until the fence has settled it."""
    stage.fault(error, when, lambda request: request.name == "a")
    stage.do(begin(stage, "a", "1"))
    assert announced(stage) == left
    stage.world.cluster.fault = None
    drive(stage.elector.step())
    assert announced(stage) == set()


def test_nothing_is_written_once_the_lease_is_lost(stage: Stage) -> None:
    """Not even the rest of a decision that is under way."""

    def fault(request: Request, when: str) -> None:
        if request.name == "a" and when == "after":
            stage.world.tick(21)

    stage.world.cluster.fault = fault
    stage.performer.parallel = 1
    with pytest.raises(NotLeadingError):
        stage.do(label(stage.world, "a", x="1"), label(stage.world, "b", x="1"))
    assert stage.writes() == [("patch", "nodes", "a")]


def budget(stage: Stage) -> None:
    """A budget that lets one of two pods go."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    stage.world.server.put(BUDGETS, {"metadata": {"name": "db", "namespace": "work"}, "spec": spec})
    settle_budgets(stage.world.server)


def test_a_pod_is_read_before_it_is_evicted(stage: Stage) -> None:
    """A successor of the same name is spared, and its budget is not used up (reconciler.md A11)."""
    stage.world.pod("x", "a", labels={"app": "x"})
    stage.world.pod("y", "a", labels={"app": "x"})
    budget(stage)
    before = stage.world.server.get(BUDGETS, "db", "work")
    outcome = stage.do(stage.evict("x", "another"), Evict("a", "work", "gone", "u", "w"))
    assert outcome.failed == {}
    assert stage.world.server.get(BUDGETS, "db", "work") == before
    assert stage.world.cluster.requests["create", "pods/eviction"] == 0


def test_refused_evictions_wait_and_name_the_budget(stage: Stage) -> None:
    """The one that the budget allows goes; the other is remembered with the budget's name, and nothing failed."""
    for name in ("x", "y"):
        stage.world.pod(name, "a", labels={"app": "x"})
    budget(stage)
    outcome = stage.do(stage.evict("x"), stage.evict("y"), label(stage.world, "a", x="1"))
    assert (outcome.refused, outcome.failed) == (1, {})
    known, uid = stage.sources.base(), stage.world.server.read(PODS, "y", "work").uid
    assert "disruption budget db" in known.refusals[uid]
    assert (known.backoff[uid] - known.now).total_seconds() == 5
    assert stage.world.server.read(PODS, "x", "work").terminating
    assert stage.world.server.read(NODES, "a").labels == {"x": "1"}


def test_our_own_pods_are_deleted_by_uid(stage: Stage) -> None:
    """A replacement of the same name is not; one that is gone is as good as deleted."""
    stage.world.pod("d", "a", NAMESPACE)
    uid = stage.world.server.read(PODS, "d", NAMESPACE).uid
    stage.do(DeletePod("a", NAMESPACE, "d", "another", "old"), DeletePod("a", NAMESPACE, "gone", "u", "old"))
    assert not stage.world.server.read(PODS, "d", NAMESPACE).terminating
    stage.do(DeletePod("a", NAMESPACE, "d", uid, "old"))
    assert stage.world.server.read(PODS, "d", NAMESPACE).terminating


def test_a_status_is_written_when_it_differs(stage: Stage) -> None:
    """What is no longer so is removed, and what the model does not know stays; an equal status is no request."""
    status = {"nodes": 2, "breaker": {"open": True, "message": "x"}, "later": 1}
    stage.world.server.put(POLICIES, {"metadata": {"name": "p"}, "spec": {}, "status": status})
    drive(stage.sources.policies.refresh())
    policy = stage.sources.policies.all()[0]
    stage.do(PatchStatus(policy, policy.status))
    assert stage.world.cluster.requests["patch", "nodepolicies/status"] == 0
    stage.do(PatchStatus(policy, Status(nodes=3, breaker=Breaker())))
    written = stage.world.server.get(POLICIES, "p")["status"]
    assert stage.world.server.read(POLICIES, "p").status == Status(nodes=3)
    assert written["later"] == 1
    assert stage.sources.policies.all()[0].status == Status(nodes=3)


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"c": 1}}, {"a": None, "b": {"d": None}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_differences_are_merge_patches(before: Any, after: Any, patch: Any) -> None:
    """RFC 7386: null removes, lists are whole."""
    assert difference(before, after) == patch


def test_events_are_of_what_was_done(stage: Stage) -> None:
    """What failed is not told: the next pass decides it again."""
    stage.fault(Conflict("x", 409), "before", lambda request: request.name == "a")
    tells = (Tell("a", "Held", "x"), Tell("b", "Held", "x"))
    stage.do(label(stage.world, "a", x="1"), label(stage.world, "b", x="1"), tells=tells)
    drive(stage.performer.events.send())
    assert [each["regarding"]["name"] for each in stage.world.server.all(EVENTS)] == ["b"]


def test_a_busy_api_server_is_a_failure_and_no_refusal(stage: Stage) -> None:
    """429 without a budget's word: the pod has no back-off of its own."""
    stage.world.pod("x", "a")
    stage.fault(TooMany("busy", 1.0), "before", lambda request: request.subresource == "eviction")
    outcome = stage.do(stage.evict("x"))
    assert outcome.failed.keys() == {"a"}
    known = stage.sources.base()
    assert all(until <= known.now for until in known.backoff.values())
    assert list(known.refusals.values()) == ["busy"]
