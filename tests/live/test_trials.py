"""Trials of GPUs: on which node of a pool, never where GPUs are shared or in use, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from gpustack.catalog import kubernetes
from gpustack.cli.live import trials as carried
from gpustack.cli.live.trials import GIVEN_UP, Trial, acceptance, smoke
from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.live.nodes import Hit
from gpustack.live.state import of_files
from gpustack.model import Body
from gpustack.reconciler.shell.cluster import Conflict, NotFound
from tests.components.common import spec
from tests.live.test_verify import POOLS, node
from tests.live.test_why import tenant
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

NEW = {"key": "example.com/new", "effect": "NoSchedule"}
TESTED = {
    "taint": NEW,
    "image": "registry.example.com/gpu/diag:1",
    "command": ["dcgmi", "diag", "-r", "3"],
    "seconds": 60,
}
GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


def given(
    bodies: list[Body], what: Callable[..., Any] = smoke, pool: Mapping[str, Any] | None = None, **sections: Any
) -> list[Trial | Hit]:
    """What WHAT gives for a cluster of BODIES."""
    made = {"nodePools": [{**POOLS[0], **(pool or {})}], "verify": {"acceptance": TESTED}, **sections}
    return [*what(Expected.of(resolve(spec(**made)), ()), of_files(bodies))]


def whys(found: list[Trial | Hit]) -> list[str]:
    """Why nodes or pools are not tried."""
    return [each.what for each in found if isinstance(each, Hit)]


def test_an_idle_node_is_tried() -> None:
    """One of each pool, by its name, so that no scheduler, preemption or autoscaler has a part in it: with one GPU, any
    taint, an end, no token, and nobody's privileges."""
    (trial,) = given([node("a"), node("b"), tenant(where="a")])
    assert isinstance(trial, Trial)
    pod = trial.body["spec"]
    assert not [*validate(trial.body, kubernetes.minor("1.34"))]
    assert (trial.node, pod["nodeName"], pod["restartPolicy"]) == ("b", "b", "Never")
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert (pod["activeDeadlineSeconds"], pod["automountServiceAccountToken"]) == (300, False)
    assert pod["runtimeClassName"] == "nvidia"
    (container,) = pod["containers"]
    assert (container["command"], container["resources"]) == (["vectorAdd"], {"limits": {"nvidia.com/gpu": "1"}})
    assert "gpu-operator-validator" in container["image"] or container["image"].startswith("nvcr.io/")
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "priorityClassName" not in pod


def test_a_network_card_is_no_gpu() -> None:
    """The network operator's resources have NVIDIA's domain too; a program gets a GPU, a longer one nothing else."""
    made = node("a")
    made["status"]["allocatable"] = {"nvidia.com/hostdev": "8", "nvidia.com/gpu": "8"}
    made["spec"]["taints"] = [NEW]
    for what, number in ((smoke, "1"), (acceptance, "8")):
        (trial,) = given([made], what)
        assert isinstance(trial, Trial)
        assert trial.body["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": number}}


def busy(**metadata: Any) -> Body:
    """The only node, with METADATA."""
    made = node("a")
    made["metadata"] |= metadata
    return made


def changed(**spec_: Any) -> Body:
    """The only node, with another spec."""
    made = node("a")
    made["spec"] |= spec_
    return made


NEVER: dict[str, tuple[list[Body], dict[str, Any], str]] = {
    "in use": ([node("a"), tenant(where="a")], {}, "no node of it is Ready and idle"),
    "worked on": ([busy(annotations={"gpustack.dev/op": "{}"})], {}, "no node of it is Ready and idle"),
    "cordoned": ([changed(unschedulable=True)], {}, "no node of it is Ready and idle"),
    "time slices": ([node("a")], {"pool": {"sharing": {"timeSlicing": {"replicas": 2}}}}, "shared (timeSlicing)"),
    "MPS": ([node("a")], {"pool": {"sharing": {"mps": {"replicas": 2}}}}, "shared (mps)"),
    "claims": ([node("a")], {"gpuCluster": {}, "cluster": {"kubernetesVersion": "1.34"}}, "allocated by claims"),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_tried(name: str) -> None:
    """And why, in a note with the pool's line."""
    bodies, changes, words = NEVER[name]
    (hit,) = given(bodies, **changes)
    assert isinstance(hit, Hit)
    assert (hit.id, hit.path) == ("LIV702", "spec.nodePools[0]")
    assert words in hit.what


def test_pods_that_have_ended_use_nothing() -> None:
    """A Job's pod that is done holds no GPU."""
    done = tenant(where="a")
    done["status"]["phase"] = "Succeeded"
    assert isinstance(given([node("a"), done])[0], Trial)


def test_nodes_that_wait_for_acceptance() -> None:
    """Those with the taint, with all their GPUs and the policy's program; one that was given up is told, not tried."""
    waits, given_up, other = changed(taints=[GPU, NEW]), changed(taints=[NEW]), changed(taints=[GPU])
    for name, each in (("a", waits), ("b", given_up), ("c", other)):
        each["metadata"]["name"] = name
    given_up["metadata"]["annotations"] = {GIVEN_UP: "2026-11-01 it did not pass"}
    trial, hit = given([waits, given_up, other], acceptance)
    assert isinstance(trial, Trial)
    assert isinstance(hit, Hit)
    assert (trial.node, trial.taint) == ("a", ("example.com/new", "NoSchedule"))
    container = trial.body["spec"]["containers"][0]
    assert (container["image"], container["command"]) == (TESTED["image"], TESTED["command"])
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert (hit.id, hit.node, "did not pass" in hit.what) == ("LIV701", "b", True)
    mirrors = {"kubernetesVersion": "1.34", "registryMap": {"registry.example.com": "mirror.example.com/all"}}
    (mirrored, _) = given([waits, given_up], acceptance, cluster=mirrors)
    assert isinstance(mirrored, Trial)
    assert mirrored.body["spec"]["containers"][0]["image"] == "mirror.example.com/all/gpu/diag:1"
    waits["status"]["allocatable"] = {}
    assert whys(given([waits], acceptance)) == ["is not tried: it offers no GPU yet"]
    assert whys(given([waits], acceptance, verify={})) == ["no node is tried: the policy has no verify.acceptance"]


class Fake:
    """A cluster whose kubelet plays a pod's STATES one after the other, and whose node changes once in between."""

    def __init__(self, *states: Body, there: bool = False) -> None:
        self.states, self.there, self.asked = [*states], there, list[str]()
        self.node = changed(taints=[GPU, NEW])
        self.node["metadata"]["resourceVersion"] = "1"
        self.conflicts = 1

    async def create(self, kind: Any, body: Body, *, namespace: str) -> Any:
        self.asked.append(f"create {namespace}/{body['metadata']['name']}")
        if self.there:
            raise Conflict("it is there")
        return SimpleNamespace(uid="1")

    async def list(self, kind: Any, which: Any) -> Any:
        if kind.plural == "nodes":
            return SimpleNamespace(items=(self.node,))
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return SimpleNamespace(items=({"status": state},) if state else ())

    async def patch(self, kind: Any, name: str, body: Body) -> None:
        self.asked.append(f"patch {name}")
        if self.conflicts and "resourceVersion" in body["metadata"]:
            self.conflicts -= 1
            raise Conflict("it has changed")
        self.node["metadata"]["annotations"] = body["metadata"].get("annotations")
        self.node["spec"] |= body.get("spec", {})

    async def delete(self, kind: Any, name: str, *, namespace: str, uid: str) -> None:
        self.asked.append(f"delete {name} {uid}")
        raise NotFound("it is gone")


RUNS, DONE = {"phase": "Running"}, {"phase": "Succeeded"}
FAILED = {
    "phase": "Failed",
    "containerStatuses": [{"state": {"terminated": {"reason": "Error", "message": "XID 79\n"}}}],
}
LATE = {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than 60"}


def came_of(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """What comes of the acceptance of the node."""
    monkeypatch.setattr(carried, "PAUSE", 0.001)
    monkeypatch.setattr(carried, "SLACK", -59.99)
    cluster: Any = fake
    return asyncio.run(carried.carried_out(cluster, given([fake.node], acceptance)))


def test_a_node_that_passes_loses_its_taint(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other of its taints; what somebody writes meanwhile is not written over. The pod is taken away."""
    fake = Fake({"phase": "Pending"}, RUNS, DONE)
    assert came_of(fake, monkeypatch) == []
    assert fake.node["spec"]["taints"] == [GPU]
    assert fake.asked == ["create gpu-operator/gpustack-trial-a", "delete gpustack-trial-a 1", "patch a", "patch a"]


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([RUNS, FAILED], "Error: XID 79"),
        ([RUNS, LATE], "DeadlineExceeded: Pod was active"),
        ([{}], "somebody has deleted its pod"),
        ([{"phase": "Pending"}], "it has not ended"),
    ],
)
def test_a_node_that_does_not_is_given_up(states: list[Body], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With why; it keeps its taint, nobody tries it again, and the pod is taken away."""
    fake = Fake(*states)
    (hit,) = came_of(fake, monkeypatch)
    assert (hit.id, hit.node, hit.path) == ("LIV701", "a", "spec.nodePools[0]")
    assert words in hit.what
    assert NEW in fake.node["spec"]["taints"]
    assert words in fake.node["metadata"]["annotations"][GIVEN_UP]
    assert fake.asked[1] == "delete gpustack-trial-a 1"
    assert [each for each in given([fake.node], acceptance) if isinstance(each, Trial)] == []


def test_a_trial_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's pod is left alone."""
    fake = Fake(RUNS, there=True)
    (hit,) = came_of(fake, monkeypatch)
    assert (hit.id, "there is a pod gpu-operator/gpustack-trial-a" in hit.what) == ("LIV702", True)
    assert fake.asked == ["create gpu-operator/gpustack-trial-a"]


def test_trials_need_a_cluster(project: Project) -> None:
    """Files stand for none, and one at a time is tried."""
    for name in ("a", "b"):
        project.policy(name)
    project.write("dump.yaml", "{}")
    for words in (("a", "--from", "dump.yaml", "--smoke"), ("a", "b", "--acceptance")):
        refused = project.run("verify", *words)
        assert (refused.code, "is for one cluster that answers" in refused.err) == (4, True)
    assert project.run("verify", "a", "--smoke", "--acceptance").code == 4
