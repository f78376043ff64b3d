"""What a pass reads, and in how many requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpustack.api.objects import Claim
from gpustack.api.pods import Pod
from gpustack.reconciler.core import engine
from gpustack.reconciler.core.engine import Wanted
from gpustack.reconciler.core.pods import Uses
from gpustack.reconciler.core.snapshot import Announced, Precheck, Snapshot
from gpustack.reconciler.core.view import View
from gpustack.reconciler.shell.cluster import CLAIMS, DEPLOYMENTS, NODES, PODS, ApiError, NotFound, TooMany, Unreachable
from gpustack.reconciler.shell.gather import Bounds, Sources, driver_sets, foreign
from tests.reconciler.memory import BUDGETS, drive, settle_budgets
from tests.reconciler.shell import NAMESPACE, World, fail


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two nodes; every pod of a node is to be evicted."""

    def trial(known: Snapshot, view: View) -> tuple[list[Pod], list[str]]:
        return list(known.pods.get(view.name, ())), []

    monkeypatch.setattr(engine, "trial", trial)
    made = World()
    made.node("a")
    made.node("b")
    return made


def sources(world: World, **bounds: int) -> Sources:
    """Everything that is watched, listed once."""
    made = Sources(world.cluster, NAMESPACE, world.clock, world.log, bounds=Bounds(**bounds))
    made.refusals.chance = lambda: 1.0
    drive(made.refresh())
    world.cluster.requests.clear()
    return made


def closer(of: Sources, pods: Sequence[str] = (), candidates: Sequence[str] = ()) -> Snapshot:
    """A snapshot with a closer look."""
    return drive(of.closer(of.base(), Wanted(tuple(pods), tuple(candidates))))


def budget(world: World, name: str = "db") -> None:
    """A budget that lets no pod of app x go."""
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": "x"}}}
    world.server.put(BUDGETS, {"metadata": {"name": name, "namespace": "work"}, "spec": spec})
    settle_budgets(world.server)


def test_the_base_costs_no_request(world: World) -> None:
    """What is watched is known; operands' pods by node, and only those of our namespace."""
    labels = {
        "drv": {"app.kubernetes.io/component": "nvidia-driver"},
        "val": {"app": "nvidia-operator-validator"},
        "mig": {"app": "nvidia-mig-manager"},
    }
    for name, found in labels.items():
        world.pod(name, "a", NAMESPACE, labels=found)
        world.pod(name, "a", "elsewhere", labels=found)
    known = sources(world).base(admitting={"u": Announced()}, paused="why")
    assert world.cluster.count == 0
    assert [node.name for node in known.nodes] == ["a", "b"]
    for of, name in ((known.driver_pods, "drv"), (known.validators, "val"), (known.mig_managers, "mig")):
        assert [(pod.name, pod.metadata.namespace) for pod in of["a"]] == [(name, NAMESPACE)]
    assert (set(known.admitting), known.paused, known.now) == ({"u"}, "why", world.server.now)


def test_the_newest_revision_is_found_by_owner(world: World) -> None:
    """By UID and number, never by name: another DaemonSet's name may begin with this one's (T3)."""
    short, long = world.driver_set("driver"), world.driver_set("driver-b")
    world.revision("driver-1", short["metadata"]["uid"], 1, **{"controller-revision-hash": "old"})
    world.revision("driver-2", short["metadata"]["uid"], 2, **{"controller-revision-hash": "new"})
    world.revision("driver-b-zz", long["metadata"]["uid"], 9)
    found = {each.object.name: each.newest for each in sources(world).base().driver_sets}
    assert found == {"driver": "new", "driver-b": "zz"}


def test_a_template_that_its_controller_has_not_seen_has_no_newest(world: World) -> None:
    """The newest revision would be that of the template before."""
    made = world.driver_set("driver")
    world.revision("driver-1", made["metadata"]["uid"], 1)
    of = sources(world)
    assert of.base().driver_sets[0].newest == "1"
    lagging = of.daemon_sets.all()[0]
    lagging.metadata.generation, lagging.status.observedGeneration = 2, 1
    assert driver_sets([lagging], of.revisions.all())[0].newest == ""
    assert driver_sets([lagging], [])[0].newest == ""


@pytest.mark.parametrize(
    ("name", "labels", "ready", "found"),
    [
        ("gpu-operator", {}, 1, "gpu-operator/gpu-operator"),
        ("nvidia", {"app.kubernetes.io/component": "gpu-operator"}, 1, "gpu-operator/nvidia"),
        ("gpu-operator", {}, 0, ""),
        ("other", {}, 1, ""),
    ],
)
def test_a_live_operator(world: World, name: str, labels: dict[str, str], ready: int, found: str) -> None:
    """By name or by the label of its chart, where one of its pods is ready."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    world.server.put(DEPLOYMENTS, {"metadata": metadata, "status": {"readyReplicas": ready} if ready else {}})
    assert sources(world).base().foreign == found
    assert foreign([]) == ""


def test_pods_of_wanted_nodes(world: World) -> None:
    """One list for each node, whichever way it is wanted; one that fails is missing and hinders no other."""
    world.pod("x", "a")
    world.pod("y", "b")
    of = sources(world)
    known = closer(of, ["a", "b"], ["a"])
    assert {node: [pod.name for pod in pods] for node, pods in known.pods.items()} == {"a": ["x"], "b": ["y"]}
    assert world.cluster.requests["list", "pods"] == 2
    world.cluster.fault = fail(Unreachable("x"), "before", lambda request: "nodeName=a" in request.which.fields)
    assert closer(of, ["a", "b"]).pods.keys() == {"b"}


def claim(name: str, driver: str, **more: Any) -> dict[str, Any]:
    """A claim with a device."""
    result = {"driver": driver, "device": "gpu-0", **more}
    status = {"allocation": {"devices": {"results": [result]}}}
    return {"metadata": {"name": name, "namespace": "work"}, "status": status}


def test_claims_are_read_where_pods_have_some(world: World) -> None:
    """None is listed for pods without; of those that pods have, the ones with a GPU, and those that aren't there."""
    world.pod("x", "a")
    of = sources(world)
    assert closer(of, ["a"]).claims == frozenset()
    assert world.cluster.requests["list", "resourceclaims"] == 0
    names = ["gpu", "admin", "nic", "unknown"]
    world.pod("y", "a", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])
    for each in (
        claim("gpu", "gpu.nvidia.com"),
        claim("admin", "gpu.nvidia.com", adminAccess=True),
        claim("nic", "x"),
    ):
        world.server.put(CLAIMS, each)
    assert closer(of, ["a"]).claims == {"work/gpu", "work/unknown"}
    assert not Claim().holds_gpu


def test_a_claim_that_the_scheduler_made(world: World) -> None:
    """A pod asks for a resource that stands for a DeviceClass, and has the GPU by a claim that its status names."""
    asks = [{"name": "c", "resources": {"limits": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}]
    made = world.pod("x", "a")
    status = {**made["status"], "extendedResourceClaimStatus": {"resourceClaimName": "x-1", "requestMappings": []}}
    world.server.edit(PODS, "x", {"spec": {"containers": asks}, "status": status}, "work")
    world.server.put(CLAIMS, claim("x-1", "gpu.nvidia.com"))
    known = closer(sources(world), ["a"])
    assert known.claims == {"work/x-1"}
    assert Uses(NAMESPACE, claims=known.claims).gpu(known.pods["a"][0])
    assert not Uses(NAMESPACE).gpu(known.pods["a"][0])


@pytest.mark.parametrize(("error", "lists"), [(NotFound("x", 404), 3), (ApiError("x", 500), 1)])
def test_claims_that_can_not_be_read_count_as_held(world: World, error: ApiError, lists: int) -> None:
    """Older versions of the API are tried where this one isn't served."""
    world.pod("y", "a", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    world.cluster.fault = fail(error, "before", lambda request: request.kind == "resourceclaims")
    assert closer(sources(world), ["a"]).claims == {"work/c"}
    assert world.cluster.requests["list", "resourceclaims"] == lists


def test_trials_evict_nobody_and_name_the_budget(world: World) -> None:
    """A dry run for each pod: what stands against it is what the API server says."""
    world.pod("x", "a", labels={"app": "x"})
    world.pod("y", "b")
    budget(world)
    known = closer(sources(world), [], ["a", "b"])
    text = "work/x: The disruption budget db needs 1 healthy pods and has 1 currently"
    assert known.prechecks == {"a": Precheck((text,), budgets=True), "b": Precheck()}
    assert world.server.writes == []
    assert not any("deletionTimestamp" in pod["metadata"] for pod in world.server.all(PODS))


def test_two_budgets_stand_against_an_eviction(world: World) -> None:
    """The API server's 500 is no outage: that pod can't be evicted."""
    world.pod("x", "a", labels={"app": "x"})
    budget(world, "one")
    budget(world, "two")
    check = closer(sources(world), [], ["a"]).prechecks["a"]
    blockers = check.blockers
    assert not check.budgets  # nor is it ignored after a time
    assert "more than one PodDisruptionBudget" in blockers[0]


def test_blocked_candidates_make_room(world: World) -> None:
    """A blocked node is remembered, with a growing pause in which nothing is asked; then it is asked again."""
    world.pod("x", "a", labels={"app": "x"})
    budget(world)
    of = sources(world)
    closer(of, [], ["a"])
    world.cluster.requests.clear()
    assert of.base().prechecks.keys() == {"a"}
    assert closer(of, [], ["a"]).prechecks["a"].blockers
    assert world.cluster.requests["create", "pods/eviction"] == 0
    world.tick(6)
    assert of.base().prechecks == {}
    closer(of, [], ["a"])
    assert world.cluster.requests["create", "pods/eviction"] == 1
    world.tick(6)
    assert of.base().prechecks.keys() == {"a"}, "the second pause is longer"
    world.server.remove(BUDGETS, "db", "work")
    world.tick(60)
    assert closer(of, [], ["a"]).prechecks == {"a": Precheck()}


def test_requests_of_trials_are_bounded(world: World) -> None:
    """Not more than so many dry runs in a pass, and a node's trial ends after some refusals."""
    for number in range(10):
        world.pod(f"x{number}", "a", labels={"app": "x"})
        world.pod(f"y{number}", "b")
    budget(world)
    of = sources(world, trials=10, blockers=3)
    known = closer(of, [], ["a", "b"])
    assert known.prechecks.keys() == {"a"}
    assert world.cluster.requests["create", "pods/eviction"] == 3
    assert closer(of, [], ["a", "b"]).prechecks.keys() == {"a", "b"}, "its turn comes"


@pytest.mark.parametrize("error", [Unreachable("x"), TooMany("busy", 1.0)])
def test_a_trial_without_an_answer_says_nothing(world: World, error: ApiError) -> None:
    """Neither that it may go on nor that something stands against it: why it isn't known is what its node waits for."""
    world.pod("x", "a")
    world.cluster.fault = fail(error, "before", lambda request: request.subresource == "eviction")
    of = sources(world)
    unknown = f"whether work/x can be evicted is not known: {error}"
    assert closer(of, [], ["a"]).prechecks == {"a": Precheck(unknown=unknown)}
    assert of.base().prechecks == {"a": Precheck(unknown=unknown)}, "and meanwhile others have their turn"


def test_a_webhook_that_denies_stands_against_it(world: World) -> None:
    """KubeVirt's answers 429 without a cause, as a server that has no time does: what it says is what stands against
    it."""
    world.pod("x", "a")
    error = TooMany('admission webhook "virt" denied the request: Eviction triggered evacuation of VMI "work/vm"')
    world.cluster.fault = fail(error, "before", lambda request: request.subresource == "eviction")
    (blocker,) = closer(sources(world), [], ["a"]).prechecks["a"].blockers
    assert blocker == f"work/x: {error}"


def test_what_is_known_without_a_trial_blocks_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An obstacle that the core sees costs no dry run, and makes room as well."""
    monkeypatch.setattr(engine, "trial", lambda known, view: ([], ["a static pod"]))
    of = sources(world)
    assert closer(of, [], ["a"]).prechecks == {"a": Precheck(("a static pod",))}
    assert of.base().prechecks.keys() == {"a"}
    assert world.cluster.requests["create", "pods/eviction"] == 0


def test_five_thousand_nodes_cost_nothing_when_idle(world: World) -> None:
    """No request for a pass in which nobody is looked at (reconciler.md I26)."""
    for number in range(5000):
        world.server.put(NODES, {"metadata": {"name": f"n{number}"}, "spec": {}})
    of = sources(world)
    assert len(closer(of).nodes) == 5002
    assert world.cluster.count == 0
