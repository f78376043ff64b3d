"""Rules for pods, and budgets that are ignored after a time: by explicit choice alone (P22, I8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gpustack.api.node_policy import PodRule
from gpustack.reconciler.core import engine
from gpustack.reconciler.core.pods import rule_of
from gpustack.reconciler.memory.eviction import BUDGETS
from gpustack.reconciler.shell.cluster import PODS, POLICIES, Forbidden, TooMany
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.test_pods import REPLICAS, pod
from tests.reconciler.world.workloads import Workload, add_workload, start

LABEL = "app=job"


def one_node(workload: Workload, **upgrade: Any) -> History:
    """A node with a pod of WORKLOAD, and a driver that is due; UPGRADE goes over the policy's."""
    history = History(1, limits=3)
    add_workload(history.world, Workload("train", 0))
    for each in list(history.world.gpu_pods("n0")):
        history.world.server.remove(PODS, each["metadata"]["name"], "work")
    history.want.version, history.want.digest = "2", "digest-2"
    history.want.pods = upgrade
    history.sync(0)
    add_workload(history.world, workload)
    start(history.world, workload, "n0")
    return history


def ways(history: History) -> list[str]:
    """How the workload's pods went, in order: evicted or deleted."""
    found = [each for each in history.world.server.writes if each.kind == "pods" and each.namespace == "work"]
    return ["evict" if each.subresource else each.verb for each in found if each.actor == "one"]


def run(history: History, passes: int = 60, seconds: float = 10) -> None:
    """Some passes."""
    for _ in range(passes):
        history.once()
        history.world.tick(seconds)


def loaded(history: History) -> str:
    """The driver of the machine."""
    return history.world.machines["n0"].loaded


@pytest.mark.parametrize("then", ["evict", "delete"])
def test_a_rule_says_how_a_pod_goes(then: str) -> None:
    """Deleted: whatever its budget says, which allows nobody to go. Evicted, as without a rule: the node waits."""
    history = one_node(Workload("job", 1, max_unavailable=0), podRules=[{"podSelector": LABEL, "then": then}])
    run(history)
    assert (loaded(history) == "digest-2") == (then == "delete")
    assert ways(history) == (["delete"] if then == "delete" else [])


@pytest.mark.parametrize("then", ["leave", "wait"])
def test_a_rule_says_that_a_pod_stays(then: str) -> None:
    """Left: it counts as none that uses a GPU, and the work goes on beside it. Waited for: nobody is evicted before."""
    idle = {"uses-gpu": str(then == "wait").lower()}  # it asks for one, and opens none
    workload = Workload("job", 1, ends_after=1, labels=idle)
    history = one_node(workload, podRules=[{"podSelector": LABEL, "then": then}])
    run(history, 12)
    phase = m.operation(history.world.node("n0")).get("phase")
    assert ways(history) == []
    assert phase == "Held" if then == "wait" else phase not in {"Held", "Evicting"}


@pytest.mark.parametrize("how", ["rule", "selector"])
@pytest.mark.parametrize("timeout", [0, 3600])
def test_what_is_never_evicted_is_not_asked_whether_it_could_be(how: str, timeout: int) -> None:
    """A pod whose budget allows nobody to go, and that is waited for: its node is cordoned and waits until it ended.
    With a time after which it is evicted, it is known beforehand that it can't be."""
    history = one_node(
        Workload("job", 1, max_unavailable=0, ends_after=10_000, labels={"uses-gpu": "true"}),
        podRules=[{"podSelector": LABEL, "then": "wait"}] if how == "rule" else [],
        waitForCompletion={"podSelector": LABEL if how == "selector" else "", "timeoutSeconds": timeout},
    )
    run(history, 12)
    assert ways(history) == []
    assert (m.operation(history.world.node("n0")).get("phase") == "Held") == (timeout == 0)


def test_rules_in_their_order_and_namespace() -> None:
    """The first that a pod matches counts; one of another namespace doesn't match."""
    found = pod(REPLICAS)
    rules = [
        PodRule(podSelector="x=y", then="leave"),
        PodRule(podSelector="", namespace="other", then="wait"),
        PodRule(podSelector="", namespace="tenant", then="delete"),
        PodRule(podSelector="", then="evict"),
    ]
    assert rule_of(found, rules) == "delete"
    assert rule_of(found, rules[:2]) == ""


def test_a_budget_is_ignored_after_a_time_and_not_before() -> None:
    """The node waits for so long, and says until when; then its pod is asked to go, refused, and deleted."""
    history = one_node(Workload("job", 1, max_unavailable=0), ignoreBudgetsAfter=1800)
    run(history, 25, 60)
    assert ways(history) == []
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "blocked")
    assert "its budget is ignored from 2026-01-05T09:3" in wait.message
    run(history, 60, 10)
    assert ways(history) == ["delete"]
    assert loaded(history) == "digest-2"


def test_without_the_choice_a_budget_holds_for_ever() -> None:
    """A day, and nothing is removed."""
    history = one_node(Workload("job", 1, max_unavailable=0))
    run(history, 150, 600)
    assert ways(history) == []
    assert loaded(history) == "digest-1"


def test_a_record_takes_no_power_that_the_policy_does_not_give() -> None:
    """Whoever owns the node may write its record: rules and ignored budgets are the policy's."""
    history = one_node(Workload("job", 1, ends_after=10_000, max_unavailable=1))
    for _ in range(30):
        history.once()
        history.world.tick(1)
        if m.operation(history.world.node("n0")).get("phase") == "Evicting":
            break
    text = m.annotations_of(history.world.node("n0"))[m.OP]
    rules = '"finish":{"ignoreBudgets":true,"podRules":[{"podSelector":"app=job","then":"delete"}],'
    assert '"finish":{' in text
    history.world.annotate("n0", {m.OP: text.replace('"finish":{', rules)})
    run(history, 6)
    assert "delete" not in ways(history)
    assert history.world.server.find(POLICIES, POOL)


def test_where_the_policy_is_gone_nobody_says_that_pods_may_be_deleted() -> None:
    """A pod that was bound by name to a node that is worked on goes by eviction then: the node's record, which says
    more, is up to whoever owns the node."""
    history = one_node(Workload("job", 1), podRules=[{"podSelector": LABEL, "then": "delete"}])
    for _ in range(60):
        history.once()
        if m.operation(history.world.node("n0")).get("phase") == "Acting":
            break
        history.world.tick(1)
    before = ways(history)
    assert '"then":"delete"' in m.annotations_of(history.world.node("n0"))[m.OP]
    history.world.server.remove(POLICIES, POOL)
    start(history.world, Workload("job", 1), "n0")
    history.once()
    assert ways(history)[len(before) :] == ["evict"]


DRAIN = {"drain": {"enable": True, "force": True, "podSelector": "app=web"}}


def add(history: History, workload: Workload, pods: int = 1) -> list[str]:
    """The names of so many pods of WORKLOAD on the node, which nobody makes anew."""
    add_workload(history.world, workload)
    history.world.workloads.pop(workload.name)
    return [start(history.world, workload, "n0")["metadata"]["name"] for _ in range(pods)]


def test_what_a_webhook_refuses_is_not_deleted() -> None:
    """Budgets are ignored after a time, and nothing else: KubeVirt's webhook refuses to evict a virtual machine that it
    migrates. The pod that it refuses is behind three that budgets refuse, so that the trial doesn't come to it."""
    history = one_node(Workload("job", 0, max_unavailable=0), ignoreBudgetsAfter=60)
    add(history, Workload("job", 0, max_unavailable=0), 2)
    (machine,) = add(history, Workload("vm", 0))
    error = TooMany('admission webhook "virt-launcher-eviction-interceptor" denied the request: it is migrated')
    history.watcher.spared["create", machine] = error
    run(history, 120)
    assert "delete" in ways(history)
    assert history.world.server.find(PODS, machine, "work")
    assert loaded(history) == "digest-1"


@pytest.mark.parametrize("what", ["budget", "rule"])
def test_a_drain_deletes_no_pod_that_uses_no_gpu(what: str) -> None:
    """Rules are for pods that use a GPU, and so are budgets that are ignored: what a drain removes besides is evicted,
    or stays while its budget refuses."""
    rules = [{"podSelector": "app=web", "then": "delete"}] if what == "rule" else []
    history = one_node(Workload("job", 0), ignoreBudgetsAfter=60, podRules=rules, **DRAIN)
    add(history, Workload("job", 0, owned=False, max_unavailable=0))
    (web,) = add(history, Workload("web", 0, gpu=False, max_unavailable=0))
    run(history, 120)
    assert history.world.server.find(PODS, web, "work")


def test_a_deletion_that_is_refused_is_given_up() -> None:
    """A policy of the cluster lets nobody delete the pod that a rule names. The other pod has its turn all the same,
    the node is given back at the deadline, and says why."""
    rules = [{"podSelector": LABEL, "then": "delete"}]
    history = one_node(Workload("job", 0), podRules=rules)
    (name,) = (pod["metadata"]["name"] for pod in history.world.gpu_pods("n0"))
    add(history, Workload("other", 0))
    history.watcher.spared["delete", name] = Forbidden("a policy refuses it", 403)
    run(history, 45)
    assert ways(history) == ["evict"]
    assert not history.world.cordoned("n0")
    (wait,) = (each for each in history.replica.decided.waits if each.node == "n0")
    assert "a policy refuses it" in wait.message


def test_a_pass_without_a_trial_forgets_no_time() -> None:
    """How long budgets have held up a node is counted on where its trial has no turn in a pass."""
    history = one_node(Workload("job", 1, max_unavailable=0), ignoreBudgetsAfter=1800)
    run(history, 4, 60)
    known = history.watcher.seen["one"]
    uid = known.nodes[0].uid
    assert (uid, "budget") in known.seen.first
    after = engine.decide(replace(known, prechecks={}))
    assert after.seen.first[uid, "budget"] == known.seen.first[uid, "budget"]


def test_the_time_of_budgets_stands_still_while_it_is_not_their_turn() -> None:
    """Twenty minutes in which a budget refuses, an hour in which somebody else has the only slot of the fleet or the
    window is closed, and ten minutes more: that is the half hour. Neither does it begin anew, nor count what was not
    up to a budget."""
    history = one_node(Workload("job", 1, max_unavailable=0), ignoreBudgetsAfter=1800)
    run(history, 20, 60)
    (uid, _), since = next(each for each in history.replica.decided.seen.first.items() if each[0][1] == "budget")
    closed = {"windows": [{"start": "00:00", "hours": 1, "days": ["sun"]}]}
    upgrade = history.world.server.get(POLICIES, POOL)["spec"]["upgrade"]
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": closed}})
    run(history, 60, 60)
    assert {each.kind for each in history.replica.decided.waits} == {"window"}
    assert ways(history) == []
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {"windows": upgrade.get("windows")}}})
    run(history, 7, 60)
    assert ways(history) == []
    assert history.replica.decided.seen.since(uid, "budget", history.world.server.now) < timedelta(minutes=30)
    assert history.replica.decided.seen.first[uid, "budget"] > since
    run(history, 60, 10)
    assert ways(history) == ["delete"]


def test_budgets_hold_up_no_longer_what_was_tried_in_vain() -> None:
    """Two pods of a budget that lets one go at a time, and no room for the one that went: each is let go in the trial,
    and the second never. After three attempts the time begins, and with its end the second is deleted."""
    history = one_node(Workload("job", 2, max_unavailable=1), ignoreBudgetsAfter=1800)
    start(history.world, Workload("job", 2), "n0")
    history.world.server.edit(BUDGETS, "job", {"spec": {"maxUnavailable": None, "minAvailable": 1}}, "work")
    run(history, 600, 10)
    assert loaded(history) == "digest-2"
    assert "delete" in ways(history)


def test_nobody_waits_for_a_pod_that_uses_no_gpu() -> None:
    """Rules are for pods that use a GPU: a tenant's other pod with the label of one that is waited for, which never
    ends, holds up nobody."""
    history = one_node(Workload("job", 0), podRules=[{"podSelector": "team=ml", "then": "wait"}])
    add(history, Workload("web", 0, gpu=False, labels={"team": "ml"}))
    run(history, 60)
    assert loaded(history) == "digest-2"
