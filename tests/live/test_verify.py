"""What `gpustack verify` finds: each planted fault by its id, with the line of the policy; a sound cluster is quiet."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml

from gpustack.api.expectations import Kind, wanted
from gpustack.cli.live.look import looked_at
from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.live.preflight import preflight
from gpustack.live.state import of_files
from gpustack.live.verify import texts, verify
from gpustack.model import Body, Finding
from gpustack.policy.loading.load import policy_files
from gpustack.reconciler.shell.cluster import Forbidden
from tests.components.common import spec
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

VERSION = "nvidia.com/cuda.driver-version.full"
DEPLOY = "nvidia.com/gpu.deploy."
COMPONENTS = (
    "client", "container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery",
    "node-status-exporter", "operator-validator",
)  # fmt: skip
"""What a node for containers gets (reconciler.md 1.4)."""
POOLS: list[dict[str, Any]] = [
    {
        "name": "training",
        "os": "ubuntu22.04",
        "gpuProduct": "NVIDIA-H100-80GB-HBM3",
        "gpusPerNode": 8,
        "count": 2,
        "nodeSelector": {"pool": "t"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    }
]
RECONCILER = {"image": "registry.example.com/r:1", "startupTaints": [{"key": "starting", "effect": "NoSchedule"}]}
READY = {"type": "Ready", "status": "True"}
POOL = "spec.nodePools[0]"
RENDERED: list[Body] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "gpu-operator"},
        "data": {"x": "1"},
    }
]


DAEMONS: Body = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "d", "namespace": "gpu-operator", "uid": "d-1"},
    "spec": {"template": {"spec": {"nodeSelector": {"pool": "t"}, "tolerations": [{"operator": "Exists"}]}}},
}


def node(name: str) -> Body:
    """A node of the pool as it is once all is well."""
    labels = {f"{DEPLOY}{each}": "true" for each in COMPONENTS}
    labels |= {"pool": "t", "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    labels |= {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/cuda.driver-version.full": "580.126.20",
    }
    system = "feature.node.kubernetes.io/system-os_release."
    labels |= {f"{system}ID": "ubuntu", f"{system}VERSION_ID": "22.04"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "9"},
        },
    }


def pod(name: str, where: str, **status: Any) -> Body:
    """A pod of a DaemonSet; ready without a STATUS."""
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d-1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "gpu-operator", "labels": {"app": "d"}, "ownerReferences": [owner]},
        "spec": {"nodeName": where},
        "status": status or {"conditions": [READY]},
    }


def policy(name: str, **status: Any) -> Body:
    """A NodePolicy."""
    return {"apiVersion": "gpustack.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": name}, "status": status}


def cluster() -> list[Body]:
    """Two nodes, and the stack on them, as it should be."""
    return [node("a"), node("b"), pod("d-a", "a"), pod("d-b", "b"), *copy.deepcopy(RENDERED), copy.deepcopy(DAEMONS)]


def found(bodies: list[Body], rendered: list[Body] = RENDERED, **unread: str) -> list[Finding]:
    """What is amiss in a cluster of BODIES."""
    pools = [{**POOLS[0], "readiness": {"conditions": {"example.com/GpuReady": "True"}}}]
    sections: dict[str, Any] = {"nodePools": pools, "reconciler": RECONCILER, "driver": {"version": "580.126.20"}}
    state = of_files(bodies)
    state.unread = {Kind("v1", kind, "gpu-operator"): why for kind, why in unread.items()}
    return verify(Expected.of(resolve(spec(**sections)), rendered), state)


def test_a_sound_cluster_is_quiet() -> None:
    """Nothing is found where all is as the policy says."""
    assert found(cluster()) == []


def label(key: str, value: str | None) -> Callable[[list[Body]], object]:
    """A label of the first node is another."""

    def change(bodies: list[Body]) -> object:
        labels = bodies[0]["metadata"]["labels"]
        return labels.pop(key) if value is None else labels.__setitem__(key, value)

    return change


def annotated(key: str, value: str) -> Callable[[list[Body]], object]:
    """The first node has an annotation, and lacks the labels of the components that it names."""

    def change(bodies: list[Body]) -> None:
        bodies[0]["metadata"]["annotations"] = {key: value}
        for each in value.split(", "):
            del bodies[0]["metadata"]["labels"][f"{DEPLOY}{each}"]

    return change


def status(key: str, value: Any) -> Callable[[list[Body]], object]:
    """A field of the first node's status is another."""
    return lambda bodies: bodies[0]["status"].__setitem__(key, value)


def of_spec(key: str, value: Any) -> Callable[[list[Body]], object]:
    """A field of the first node's spec is another."""
    return lambda bodies: bodies[0]["spec"].__setitem__(key, value)


CRASHED = {"name": "ctr", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
REVISIONS: list[Body] = [
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "d",
            "namespace": "gpu-operator",
            "uid": "d-1",
            "labels": {"app.kubernetes.io/component": "nvidia-driver"},
        },
    },
    *(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"d-{mark}",
                "namespace": "gpu-operator",
                "labels": {"controller-revision-hash": mark},
                "ownerReferences": [{"uid": "d-1", "controller": True}],
            },
            "revision": number,
        }
        for number, mark in ((1, "old"), (2, "new"))
    ),
]


def outdated(bodies: list[Body]) -> None:
    """The driver has a new template, and the pod on the first node is not made from it."""
    bodies += REVISIONS
    for pod, mark in ((bodies[2], "old"), (bodies[3], "new")):
        pod["metadata"]["labels"]["controller-revision-hash"] = mark


OPERATOR: Body = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "gpu-operator", "namespace": "gpu-operator"},
    "status": {"readyReplicas": 1},
}
ANOTHER = {"name": "theirs", "namespace": "gpu-operator", "labels": {"app.kubernetes.io/component": "gpu-operator"}}
FAULTS: dict[str, tuple[Callable[[list[Body]], object], str, str, str]] = {
    "object gone": (
        lambda bodies: bodies[4]["metadata"].update(name="z"),
        "LIV101", "ConfigMap gpu-operator/a is not there", "",
    ),
    "object changed": (lambda bodies: bodies[4]["data"].update(x="2"), "LIV102", "data.x is 2, rendered 1", ""),
    "operator": (lambda bodies: bodies.append(OPERATOR), "LIV103", "Deployment gpu-operator/gpu-operator runs", ""),
    "operator by another name": (
        lambda bodies: bodies.append({**OPERATOR, "metadata": ANOTHER}), "LIV103", "gpu-operator/theirs runs", "",
    ),
    "a node less": (lambda bodies: bodies.pop(0), "LIV201", "has 1 nodes; the policy says 2", f"{POOL}.count"),
    "no pool": (lambda bodies: bodies.extend([of_no_pool()]), "LIV202", "c: in no pool", "spec.nodePools"),
    "no pod": (lambda bodies: bodies.pop(2), "LIV404", "a: DaemonSet gpu-operator/d has no pod there", ""),
    "old driver, no revisions": (
        lambda bodies: bodies[5].update(
            status={"desiredNumberScheduled": 2, "updatedNumberScheduled": 1},
            metadata={**DAEMONS["metadata"], "labels": {"app.kubernetes.io/component": "nvidia-driver"}},
        ),
        "LIV403", "DaemonSet gpu-operator/d: 1 of 2 pods are made from an older template", "",
    ),
    "not ready": (status("conditions", []), "LIV204", "a: not Ready", ""),
    "no network": (
        status("conditions", [{"type": "Ready", "status": "False", "message": "cni plugin not initialized"}]),
        "LIV204", "a: not Ready: cni plugin not initialized", "",
    ),
    "disk full": (
        status("conditions", [READY, {"type": "DiskPressure", "status": "True"}]),
        "LIV206", "has DiskPressure", "",
    ),
    "cordoned": (of_spec("unschedulable", True), "LIV205", "a: cordoned", ""),
    "label gone": (label(f"{DEPLOY}device-plugin", None), "LIV301", f"a: lacks {DEPLOY}device-plugin, which", POOL),
    "label paused": (label(f"{DEPLOY}driver", "false"), "LIV301", f"a: has {DEPLOY}driver=false", POOL),
    "product": (label("nvidia.com/gpu.product", "NVIDIA-L4"), "LIV302", "are NVIDIA-L4", f"{POOL}.gpuProduct"),
    "taint": (of_spec("taints", []), "LIV303", "lacks the taint nvidia.com/gpu:NoSchedule", f"{POOL}.taints[0]"),
    "kept off": (annotated("gpustack.dev/optout", "dcgm-exporter, dcgm"), "LIV605", "optout keeps", ""),
    "kept off whole": (label(f"{DEPLOY}operands", "false"), "LIV605", f"{DEPLOY}operands=false", ""),
    "GPU gone": (
        lambda bodies: bodies[0]["metadata"]["labels"].update(
            {"feature.node.kubernetes.io/pci-10de.present": "false", "nvidia.com/gpu.present": "false"}
        ),
        "LIV301", "a: has nvidia.com/gpu.present=false", POOL,
    ),
    "not let in": (
        lambda bodies: bodies[0]["spec"]["taints"].append({"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"}),
        "LIV304", "still has readiness.k8s.io/gpu:NoSchedule", f"{POOL}.readiness",
    ),
    "starting": (
        lambda bodies: bodies[0]["spec"]["taints"].append({"key": "starting", "effect": "NoSchedule"}),
        "LIV304", "still has starting:NoSchedule", "spec.reconciler.startupTaints",
    ),
    "crash loop": (
        lambda bodies: bodies[2].update(status={"containerStatuses": [CRASHED]}),
        "LIV401", "a: d: ctr is in CrashLoopBackOff", "",
    ),
    "init waits": (
        lambda bodies: bodies[2].update(status={"initContainerStatuses": [{"name": "wait", "state": {"running": {}}}]}),
        "LIV401", "a: d: wait has not ended", "",
    ),
    "unscheduled": (
        lambda bodies: bodies[2].update(
            status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes"}]}
        ),
        "LIV401", "d: not scheduled: 0/2 nodes", "",
    ),
    "driver": (
        label(VERSION, "570.86.15"),
        "LIV402", "has driver 570.86.15; the pool training gets 580.126.20", POOL,
    ),
    "old template": (
        outdated,
        "LIV403", "a: d is made from an older template", "",
    ),
    "seven GPUs": (status("allocatable", {"nvidia.com/gpu": "7"}), "LIV501", "offers 7 nvidia.com/gpu", POOL),
    "no GPU": (status("allocatable", {}), "LIV501", "offers 0 nvidia.com/gpu", POOL),
    "other name": (
        status("allocatable", {"nvidia.com/gpu": "8", "nvidia.com/gpu.shared": "4"}),
        "LIV501", "offers 4 nvidia.com/gpu.shared; the pool training should have none", POOL,
    ),
    "MIG": (label("nvidia.com/mig.config.state", "failed"), "LIV502", "mig.config.state is failed", f"{POOL}.sharing"),
    "stalled": (
        lambda bodies: bodies.append(policy("p", conditions=[{"type": "Stalled", "status": "True", "message": "why"}])),
        "LIV601", "NodePolicy p: why", "",
    ),
    "quarantine": (lambda bodies: bodies.append(policy("p", quarantined=2)), "LIV602", "p: 2 in quarantine", ""),
    "waiting": (
        lambda bodies: bodies.append(policy("p", waiting=[{"reason": "window", "count": 3}])),
        "LIV603", "NodePolicy p: 3 window", "",
    ),
}  # fmt: skip


def of_no_pool() -> Body:
    """A node with a GPU that no pool selects."""
    made = node("c")
    made["metadata"]["labels"]["pool"] = "other"
    return made


@pytest.mark.parametrize(("version", "it"), [(None, "it lacks the label"), ("24.04", "it has 24.04")])
def test_a_node_that_is_nearly_of_the_pool(version: str | None, it: str) -> None:
    """A pool with too few nodes says which node has the labels that people give, and which other it lacks."""
    bodies, key = cluster(), "feature.node.kubernetes.io/system-os_release.VERSION_ID"
    label(key, version)(bodies)
    (told,) = (each.what for each in found(bodies) if each.rule == "LIV201")
    assert told.endswith(f"the policy says 2; the node a would be one with {key}=22.04 ({it})")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    """By one finding, with the node and the policy's line."""
    plant, rule, words, path = FAULTS[name]
    bodies = cluster()
    plant(bodies)
    (finding,) = found(bodies)
    assert (finding.rule, finding.path) == (rule, path)
    assert words in finding.what
    assert finding.severity == texts()[rule]["severity"]
    assert finding.remedy


def test_every_text_is_needed_and_explained() -> None:
    """Each id is found by a test, and has its line on the page."""
    tested = {rule for _, rule, _, _ in FAULTS.values()} | {"LIV001", "LIV002", "LIV104", "LIV105", "LIV203", "LIV604"}
    tested |= {"LIV003", "LIV405", "LIV701", "LIV702"}  # below, test_host_version.py, test_trials.py
    tested |= {"LIV801", "LIV802", "LIV803", "LIV804"}  # test_monitoring.py
    assert tested == texts().keys()
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    assert all(f"| {rule} | {each['severity']} | {each['title']} |" in page for rule, each in texts().items())


EMULATING = {"emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35"}
PROGRAM = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2",
    "gitCommit": "0",
    "goVersion": "go1.26.3",
    "platform": "linux/amd64",
}
SERVERS: dict[str, tuple[Body, str, str]] = {
    "the policy's": ({"major": "1", "minor": "36", "gitVersion": "v1.36.4"}, "1.36.1", ""),
    "a cloud's, with a plus": ({"major": "1", "minor": "36+", "gitVersion": "v1.36.4-gke.1"}, "1.36", ""),
    "another": (
        {"major": "1", "minor": "36+", "gitVersion": "v1.36.4-eks-1"}, "1.35",
        "the API server has 1.36 (v1.36.4-eks-1); the policy says 1.35",
    ),
    "a newer one": (
        {"major": "1", "minor": "99", "gitVersion": "v1.99.0"}, "v1.36.1+k3s1",
        "the API server has 1.99 (v1.99.0); the policy says 1.36",
    ),
    "emulated, the policy's": ({**EMULATING, **PROGRAM}, "1.36", ""),
    "emulated": (
        {**EMULATING, **PROGRAM}, "1.37",
        "the API server emulates 1.36 (v1.37.2); the policy says 1.37",
    ),
    "emulates itself": (
        {**EMULATING, "emulationMinor": "37", **PROGRAM}, "1.29",
        "the API server has 1.37 (v1.37.2); the policy says 1.29",
    ),
    "no version": ({"gitVersion": "devel"}, "1.36", ""),
}  # fmt: skip
"""What API servers say of themselves (k8s.io/apimachinery/pkg/version, Info; the emulation's since 1.31), the policy's
version, and what is found."""


@pytest.mark.parametrize("name", SERVERS)
def test_the_version_of_kubernetes(name: str) -> None:
    """A policy for another minor version than that of the API server, or than the one that it emulates, is a warning at
    its field, before the stack is there and after: by a server that was asked, by what `kubectl version` printed."""
    server, version, told = SERVERS[name]
    sections: dict[str, Any] = {"nodePools": POOLS, "driver": {"version": "580.126.20"}}
    expected = Expected.of(resolve(spec(cluster={"kubernetesVersion": version}, **sections)), RENDERED)
    asked = asyncio.run(looked_at(Served(server), expected, ()))
    for state in (asked, of_files([{"clientVersion": {}, "serverVersion": server}])):
        for findings in (verify(expected, state), preflight(expected, state, {}, lambda _: True)):
            found = [each for each in findings if each.rule == "LIV105"]
            assert [(each.what, each.severity, each.path) for each in found] == (
                [(told, "warning", "spec.cluster.kubernetesVersion")] if told else []
            )


def test_a_version_that_may_not_be_read() -> None:
    """Is told as what nobody looked at."""
    expected = Expected.of(resolve(spec(nodePools=POOLS)), ())
    found = verify(expected, asyncio.run(looked_at(Served(None), expected, ())))
    told = [each.what for each in found if each.rule == "LIV001"]
    assert told == ["the API server's version can't be read: /version answers with 403"]


class Served(NamedTuple):
    """A cluster that says its version, or may not."""

    server: Body | None

    async def version(self) -> Body:
        if self.server is None:
            raise Forbidden("/version answers with 403", 403)
        return self.server


class Applied(NamedTuple):
    """A cluster whose ConfigMap is not as rendered; `made` is what an apply comes to, None where it may not be."""

    made: Body | None

    async def version(self) -> Body:
        return {}

    async def list(self, kind: Any, which: Any) -> Any:
        there = [{**RENDERED[0], "data": {"x": "2"}}] if kind.name == "ConfigMap" else []
        return SimpleNamespace(items=there)

    async def apply(self, kind: Any, name: str, body: Body, *, namespace: str, dry_run: bool) -> Any:
        assert dry_run
        if self.made is None:
            raise Forbidden("may not patch", 403)
        return SimpleNamespace(body=self.made)


@pytest.mark.parametrize(
    ("data", "told"),
    [({"x": "2"}, False), ({"x": "1"}, True), (None, True)],
    ids=["an apply leaves it so", "an apply changes it back", "who looks may not patch"],
)
def test_what_an_apply_comes_to(data: Body | None, told: bool) -> None:
    """A difference that an apply would leave is none: a webhook makes it. Without the right to patch it is one."""
    expected = Expected.of(resolve(spec(nodePools=POOLS, driver={"version": "580.126.20"})), RENDERED)
    metadata = {**RENDERED[0]["metadata"], "managedFields": [{"manager": "gpustack"}], "resourceVersion": "8"}
    made = {**RENDERED[0], "metadata": metadata, "data": data} if data else None
    state = asyncio.run(looked_at(Applied(made), expected, expected.kinds))
    assert ("LIV102" in {each.rule for each in verify(expected, state)}) == told


def test_what_looks_like_a_fault_and_is_none() -> None:
    """A volume that is mounted twice by its name; a DaemonSet whose affinity keeps it off; a network card's resource; a
    pod of verify's own Job that found something once."""
    twice = [
        {"name": "licence", "mountPath": "/a", "subPath": "a"},
        {"name": "licence", "mountPath": "/b", "subPath": "b"},
    ]
    mounting = {**copy.deepcopy(RENDERED[0]), "volumeMounts": twice}
    bodies = [*cluster()[:4], copy.deepcopy(mounting), copy.deepcopy(DAEMONS)]
    apart = {"key": "pool", "operator": "NotIn", "values": ["t"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [apart]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    elsewhere = copy.deepcopy(DAEMONS)
    elsewhere["metadata"] |= {"name": "e", "uid": "e-1"}
    elsewhere["spec"]["template"]["spec"]["affinity"] = affinity
    bodies[0]["status"]["allocatable"]["nvidia.com/hostdev"] = "8"
    job = pod("gpustack-verify-29-x", "a", phase="Failed")
    job["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "gpustack-verify-29", "uid": "j", "controller": True}]
    assert found([*bodies, elsewhere, job], [mounting]) == []
    apart["operator"] = "In"
    bodies[4]["volumeMounts"][1]["subPath"] = "c"
    assert [each.rule for each in found([*bodies, elsewhere, job], [mounting])] == ["LIV102", "LIV404"]


def test_a_copy_beside_an_operator() -> None:
    """A rendered ClusterPolicy is fine by itself; beside an operator's Deployment, even one that is stopped, it is an
    error, for that would act on it."""
    copied = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    bodies = [*cluster(), copied]
    assert found(bodies, [*RENDERED, copied]) == []
    (finding,) = found([*bodies, {**OPERATOR, "status": {}}], [*RENDERED, copied])
    assert (finding.rule, finding.severity) == ("LIV104", "error")
    assert "compat.clusterPolicy" in finding.remedy


def test_one_finding_for_many_nodes() -> None:
    """The same of each node is told once, with the nodes."""
    bodies = cluster()
    for each in bodies[:2]:
        each["status"]["allocatable"] = {}
    (finding,) = found(bodies)
    assert finding.what.startswith("a, b: offers 0")


def test_what_is_worked_on_is_meant() -> None:
    """A node with an open operation is cordoned, its driver pod not there: that is told in a note, and nothing else."""
    bodies = cluster()
    bodies[0]["metadata"]["annotations"] = {"gpustack.dev/op": "{}"}
    bodies[0]["spec"]["unschedulable"] = True
    bodies[0]["status"]["allocatable"] = {}
    bodies[2]["status"] = {}
    (finding,) = found(bodies)
    assert (finding.rule, finding.severity) == ("LIV604", "note")


def test_what_was_not_looked_at_is_neither_right_nor_wrong() -> None:
    """A dump without nodes says nothing of nodes, but that; what one may not list is told."""
    (finding,) = found([pod("d-a", "a")])
    assert (finding.rule, finding.what) == ("LIV002", "no Node, no DaemonSet was looked at")
    (finding,) = found(cluster(), Pod="forbidden")
    assert (finding.rule, finding.what) == ("LIV001", "pods in gpu-operator can't be listed: forbidden")


def test_a_node_of_two_pools() -> None:
    """It is told once, with both."""
    twice = [POOLS[0], {**POOLS[0], "name": "again"}]
    expected = Expected.of(resolve(spec(nodePools=twice, driver={"version": "580.126.20"})), ())
    rules = [(finding.rule, finding.what) for finding in verify(expected, of_files(cluster()))]
    assert ("LIV203", "a, b: selected by the pools training, again") in rules


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("DaemonSet", "daemonsets"),
        ("NodePolicy", "nodepolicies"),
        ("RuntimeClass", "runtimeclasses"),
        ("SecurityContextConstraints", "securitycontextconstraints"),
    ],
)
def test_names_of_resources(kind: str, plural: str) -> None:
    """As the API server calls them."""
    assert Kind("v1", kind).plural == plural


def test_no_secret_is_read() -> None:
    """Not even where one is rendered, by a construct of somebody's own."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "gpu-operator"}}
    kinds = wanted([*RENDERED, secret], "gpu-operator")
    assert {"ConfigMap", "Node"} <= {each.kind for each in kinds}
    assert "Secret" not in {each.kind for each in kinds}


def documented() -> list[Body]:
    """The account of docs/verify.md and its rights, the first YAML of the section about schedules."""
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8").partition("## On a schedule")[2]
    return list(yaml.safe_load_all(page.partition("```yml\n")[2].partition("```")[0]))


@pytest.mark.parametrize("name", [path.stem for path in policy_files(ROOT / "policies", "policies")])
def test_the_documented_account_may_list_what_is_rendered(name: str) -> None:
    """All kinds of each example but for those of its extraObjects; to list is all that it may, and no Secret."""
    roles = {each["metadata"]["name"]: each["rules"] for each in documented() if each["kind"] == "ClusterRole"}
    bound = {
        each["metadata"].get("namespace", ""): roles[each["roleRef"]["name"]]
        for each in documented()
        if each["kind"].endswith("Binding")
    }
    policy = yaml.safe_load((ROOT / "policies" / f"{name}.yaml").read_text(encoding="utf-8"))["spec"]
    own = {each["kind"] for each in policy.get("extraObjects") or ()}
    rendered = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "dist" / name).rglob("*.yaml")]
    for kind in wanted(rendered, "gpu-operator"):
        may = any(
            kind.api_version.rpartition("/")[0] in rule["apiGroups"] and kind.plural in rule["resources"]
            for rule in bound.get(kind.namespace, bound["gpu-operator"])
        )
        assert may or kind.kind in own, kind
    assert all(rule["verbs"] == ["list"] for rules in roles.values() for rule in rules)
    assert all("secrets" not in rule["resources"] for rules in roles.values() for rule in rules)


def policy_and_dump(project: Project, items: list[Body]) -> None:
    """The policy of cluster c, and dump.yaml with ITEMS."""
    body = {
        "apiVersion": "gpustack.dev/v1alpha1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "c"},
        "spec": {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}, "nodePools": POOLS},
    }
    project.write("policies/c.yaml", yaml.safe_dump(body, sort_keys=False))
    project.write("dump.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))


def test_the_verb(project: Project) -> None:
    """A policy and a dump: the finding with the file's line, exit 2; as JSON and as JUnit, too."""
    shown = node("a")
    shown["metadata"]["labels"].pop(VERSION)
    shown["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    policy_and_dump(project, [shown])
    project.write("empty.yaml", "items: []\n")
    assert "holds no object of a cluster" in project.run("verify", "c", "--from", "empty.yaml").err
    words = ("verify", "c", "--from", "dump.yaml")
    told = project.run(*words)
    assert told.code == 2
    assert "policies/c.yaml:" in told.out
    assert "LIV201: the pool training has 1 nodes; the policy says 2" in told.out
    found = project.run(*words, "--format", "json").json
    assert [each["rule"] for each in found["findings"]] == ["LIV501", "LIV002", "LIV201"]
    assert '<testsuites name="gpustack verify"' in project.run(*words, "--format", "junit").out


def test_several_clusters(project: Project) -> None:
    """Each with its own context; one that can't be reached is a finding. What is of one cluster is refused for more."""
    for name in ("a", "b"):
        project.policy(name)
    project.write("kube.yaml", yaml.safe_dump(KUBECONFIG))
    words = ("verify", "a", "b", "--kubeconfig", "kube.yaml")
    ran = project.run(*words, "--context", "b=other", "--format", "json")
    told = {(each["rule"], *each["clusters"]): each["what"] for each in ran.json["findings"]}
    assert ran.code == 2
    assert told.keys() == {("LIV003", "a"), ("LIV003", "b")}
    assert "no context is called 'a'" in told["LIV003", "a"]
    assert "does not answer" in told["LIV003", "b"]
    lines = project.run(*words, "--context", "b=other").out.splitlines()
    assert lines[-3:] == ["   errors  warnings  notes", *(f"{name}       1         0      0" for name in "ab")]
    assert project.run(*words, "--format", "junit").out.count("<testsuite ") == 2
    for more in (("--context", "other"), ("--context", "other", "--context", "more")):
        refused = project.run(*words, *more)
        assert (refused.code, "--context CLUSTER=NAME" in refused.err) == (4, True)
    assert project.run("verify", "a", "b", "--from", "kube.yaml").code == 4
    assert "does not answer" in project.run("verify", "a", "--kubeconfig", "kube.yaml", "--context", "other").err


KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "contexts": [{"name": "other", "context": {"cluster": "c"}}],
}
