"""Faults on a real API server with simulated nodes: each is named, by verify or by why, with what mends it.

The cluster runs as its policy says, and nothing is found; then one thing at a time is broken, and put back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gpustack.cluster.resolve import resolve
from tests.components.common import spec
from tests.control_plane.actors import labels
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.api import Api, ApiError, Body
from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.conftest import running
from tests.control_plane.kubelet import Kubelets
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import apply_cluster
from tests.control_plane.objects import pod
from tests.control_plane.pace import Pace
from tests.control_plane.pod import Pod
from tests.project import Project, cache

__all__ = ["cache"]

NS, ML = "gpu-operator", "ml"
VERSION = "nvidia.com/cuda.driver-version.full"
IMAGE = "registry.example.com/gpu/gpustack-reconciler:1"
SPEC: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.36", "platform": "kubeadm-bare-metal-preinstalled-driver-and-toolkit"},
    "driver": {"hostVersion": "580.126.20"},
    "nfd": {"enabled": False},
    **{section: {"enabled": True} for section in ("devicePlugin", "gfd", "dcgmExporter", "migManager")},
    "daemonsets": {
        "tolerations": [{"key": key, "operator": "Exists"} for key in ("nvidia.com/gpu", "starting", "new")]
    },
    "reconciler": {"image": IMAGE, "startupTaints": [{"key": "starting", "effect": "NoSchedule"}]},
    "verify": {
        "schedule": "@yearly",
        "acceptance": {"taint": {"key": "new", "effect": "NoSchedule"}, "image": IMAGE, "command": ["diag"]},
    },
    "nodePools": [
        {
            "name": "training",
            "gpuProduct": "NVIDIA-A100-SXM4-80GB",
            "gpusPerNode": 8,
            "count": 3,
            "nodeSelector": {"pool": "t"},
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        },
        {
            "name": "inference",
            "gpuProduct": "NVIDIA-A100-SXM4-80GB",
            "gpusPerNode": 4,
            "count": 1,
            "nodeSelector": {"pool": "i"},
            "sharing": {"timeSlicing": {"replicas": 2}},
        },
    ],
}
NVIDIA_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


class Place(NamedTuple):
    """A cluster that is as its policy says."""

    plane: ControlPlane
    project: Project
    policy: Path
    kubelets: Kubelets

    @property
    def api(self) -> Api:
        return self.plane.admin

    def found(self, *words: str) -> list[dict[str, Any]]:
        """What the verb of WORDS finds, of all severities."""
        ran = self.project.run(
            *words, "--kubeconfig", self.plane.kubeconfig("admin", self.plane.token), "--format", "json"
        )
        assert ran.code in {0, 2}, ran.out + ran.err
        findings: list[dict[str, Any]] = ran.json["findings"]
        return findings

    def line_of(self, text: str) -> int:
        """The line of the policy that has TEXT."""
        return 1 + next(n for n, line in enumerate(self.policy.read_text("utf-8").splitlines()) if text in line)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path, emulated: str) -> Iterator[Place]:
    """Three nodes for training, and one whose GPUs are shared; the stack's pods run on them."""
    folder = tmp_path_factory.mktemp("faults")
    project = Project(folder, cache)
    policy = project.policy("c", **{**SPEC, "cluster": {**SPEC["cluster"], "kubernetesVersion": emulated}})
    assert project.run("render", "c").code == 0
    training, inference = resolve(spec(**SPEC)).pools
    own = {**labels.deployed("mig-manager"), VERSION: "580.126.20"}
    with ControlPlane(tmp_path_factory.mktemp("plane"), emulated=emulated) as plane:
        apply_cluster(plane.admin, folder / "dist" / "c")
        plane.namespace(ML)
        with running(gpu_kubelets(plane.admin, Pace(start=0.2))) as kubelets:
            host: dict[str, Any] = {"host_driver": True, "toolkit": True}
            kubelets.add(
                *(
                    Machine(f"t-{n}", labels={**own, **training.all_labels, "pool": "t"}, taints=[NVIDIA_TAINT], **host)
                    for n in range(3)
                ),
                Machine("i-0", gpus=4, replicas=2, labels={**own, **inference.all_labels, "pool": "i"}, **host),
            )
            made = Place(plane, project, policy, kubelets)
            wait_for(lambda: made.found("verify", "c") == [], "all is well", 300, 5)
            yield made


def test_both_ways_of_looking_agree(place: Place, tmp_path: Path) -> None:
    """The CronJob's program, with the files and rights that are rendered for it, finds nothing in a healthy cluster and
    what the command line finds in another; and it may not write."""
    config = place.api.get("ConfigMap", "gpustack-verify", NS)
    for name, text in config["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    account = place.plane.account("gpustack-verify", NS)

    def looked() -> subprocess.CompletedProcess[str]:
        given = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "KUBECONFIG": str(account)}
        command = [sys.executable, "-m", "gpustack.live", str(tmp_path)]
        return subprocess.run(command, env=given, cwd="/", capture_output=True, text=True, check=False)

    well = looked()
    assert (well.returncode, well.stdout, well.stderr) == (0, "nothing to say\n", "")
    with labelled("t-1", **{VERSION: "570.86.15"})(place.api), gone("Service", "nvidia-dcgm-exporter", NS)(place.api):
        ill = looked()
        assert ill.returncode == 2
        for each in place.found("verify", "c"):
            assert f"{each['severity']} {each['rule']}: {each['what']}\n" in ill.stdout
    token = yaml.safe_load(account.read_text("utf-8"))["users"][0]["user"]["token"]
    theirs = Api(place.plane.port, str(place.plane.ca), token)
    for refused in (
        lambda: theirs.list("Secret", NS),
        lambda: theirs.list("Pod", ML),
        lambda: theirs.patch("Node", "t-0", {"metadata": {"labels": {"a": "b"}}}),
        lambda: theirs.delete("ConfigMap", "gpustack-verify", NS),
    ):
        with pytest.raises(ApiError) as error:
            refused()
        assert error.value.status == 403
    theirs.close()


def ends(phase: str) -> Callable[[Pod], Awaitable[None]]:
    """A trial's program, which ends so."""

    async def run(pod: Pod) -> None:
        await pod.start()
        await pod.finish(phase)
        await pod.forever()

    return run


def test_a_cuda_program_on_a_node_of_each_pool(place: Place) -> None:
    """It runs on an idle node, without the scheduler, and nothing is left of it; shared GPUs are left alone. One that
    fails is told with its node."""
    place.kubelets.programs["gpustack-trial"] = ends("Succeeded")
    found = place.found("verify", "c", "--smoke")
    assert [(each["rule"], each["what"]) for each in found] == [
        ("LIV702", "the pool inference is not tried: its GPUs are shared (timeSlicing)")
    ]
    assert not place.api.list("Pod", NS, labels="app=gpustack-trial")
    place.kubelets.programs["gpustack-trial"] = ends("Failed")
    (failed,) = [each for each in place.found("verify", "c", "--smoke") if each["rule"] == "LIV701"]
    assert failed["what"].startswith("t-0: the program did not pass")


def test_a_new_node_is_accepted(place: Place) -> None:
    """The taint with which it came goes where the policy's program passes, and no other does; else it stays."""
    new = {"key": "new", "effect": "NoSchedule"}
    with tainted(NVIDIA_TAINT, new)(place.api):
        place.kubelets.programs["gpustack-trial"] = ends("Failed")
        assert [each["rule"] for each in place.found("verify", "c", "--acceptance")] == ["LIV701"]
        assert new in place.api.get("Node", "t-0")["spec"]["taints"]
        place.api.patch("Node", "t-0", {"metadata": {"annotations": {"gpustack.dev/acceptance": None}}})
        place.kubelets.programs["gpustack-trial"] = ends("Succeeded")
        assert place.found("verify", "c", "--acceptance") == []
        assert place.api.get("Node", "t-0")["spec"]["taints"] == [NVIDIA_TAINT]
        assert not place.api.list("Pod", NS, labels="app=gpustack-trial")


# --- faults ----------------------------------------------------------------------------------------------------------

Plant = Callable[[Api], AbstractContextManager[object]]


def gone(kind: str, name: str, space: str = "") -> Plant:
    """An object is deleted."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        before = api.get(kind, name, space)
        api.delete(kind, name, space)
        yield
        kept = {key: before["metadata"][key] for key in ("name", "labels", "annotations") if key in before["metadata"]}
        api.create({**before, "metadata": {**kept, **({"namespace": space} if space else {})}})

    return plant


def patched(
    kind: str, name: str, patch: Body, back: Body | None = None, space: str = "", subresource: str = ""
) -> Plant:
    """A field is another, until BACK is patched in, or what was."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        before = api.get(kind, name, space)
        api.patch(kind, name, patch, space, subresource=subresource)
        yield
        api.patch(kind, name, back or {key: before[key] for key in patch}, space, subresource=subresource)

    return plant


def labelled(node: str, **changes: str | None) -> Plant:
    """Labels of a node are others."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        before = api.get("Node", node)["metadata"]["labels"]
        api.patch("Node", node, {"metadata": {"labels": changes}})
        yield
        api.patch("Node", node, {"metadata": {"labels": {key: before.get(key) for key in changes}}})

    return plant


def tainted(*taints: Body) -> Plant:
    """The taints of the first node."""
    return patched("Node", "t-0", {"spec": {"taints": [*taints]}}, {"spec": {"taints": [NVIDIA_TAINT]}})


def offering(node: str = "t-0", **amounts: str | None) -> Plant:
    """What a node offers is another, as its kubelet says."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        before = api.get("Node", node)["status"]["allocatable"]
        change = {f"nvidia.com/{key}": value for key, value in amounts.items()}
        api.patch("Node", node, {"status": {"allocatable": change, "capacity": change}}, subresource="status")
        yield
        back = {key: before.get(key) for key in change}
        api.patch("Node", node, {"status": {"allocatable": back, "capacity": back}}, subresource="status")

    return plant


def in_status(app: str, status: Body) -> Plant:
    """The STATUS of a pod of the stack, on the first node, is another."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        (found,) = api.list("Pod", NS, labels=f"app={app}", fields="spec.nodeName=t-0")
        name = found["metadata"]["name"]
        not_ready = [{"type": "Ready", "status": "False"}]
        api.patch("Pod", name, {"status": {"conditions": not_ready, **status}}, NS, subresource="status")
        yield
        api.delete("Pod", name, NS)
        wait_for(
            lambda: [
                each
                for each in api.list("Pod", NS, labels=f"app={app}", fields="spec.nodeName=t-0")
                if each["metadata"]["name"] != name
                and any(one["type"] == "Ready" and one["status"] == "True" for one in each["status"]["conditions"])
            ],
            f"{app} is back",
        )

    return plant


def kind(body: Body) -> str:
    """What Api calls the kind of BODY."""
    return f"{body['apiVersion']}/{body['kind']}"


def made(*bodies: Body, status: Body | None = None) -> Plant:
    """Objects are made; the first has a STATUS."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        for each in bodies:
            api.create(each)
        first = bodies[0]
        where = (kind(first), first["metadata"]["name"])
        if status:
            api.patch(*where, {"status": status}, first["metadata"].get("namespace", ""), subresource="status")
        yield
        for each in reversed(bodies):
            api.delete(kind(each), each["metadata"]["name"], each["metadata"].get("namespace", ""), grace=0)

    return plant


def together(*plants: Plant) -> Plant:
    """Several things at once."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        first, *rest = plants
        with first(api):
            if rest:
                with together(*rest)(api):
                    yield
            else:
                yield

    return plant


def container(state: Body, name: str = "main") -> Body:
    """The status of a pod with a container in STATE."""
    told = {"name": name, "image": "a", "imageID": "", "ready": False, "restartCount": 3, "state": state}
    return {"containerStatuses": [told]}


def waits(reason: str, message: str = "", name: str = "main") -> Body:
    """The status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return container(state, name)


def ended(reason: str, code: int = 1) -> Body:
    """The status of a container that has ended."""
    state = {"terminated": {"reason": reason, "exitCode": code}}
    return container(state)


ELSEWHERE: Body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}}
"""A node that no kubelet is for: what is bound there stays as a test writes it."""


def broken(status: Body, **more: Any) -> Plant:
    """A tenant's pod on a node, with a STATUS."""
    return together(made(ELSEWHERE), made(pod("train", ML, nodeName="elsewhere", **more), status=status))


def pending(*others: Plant, **more: Any) -> Plant:
    """A tenant's pod that no node takes, as the real scheduler says."""

    @contextmanager
    def plant(api: Api) -> Iterator[None]:
        with together(*others, made(pod("train", ML, **more)))(api):

            def refused() -> bool:
                conditions = api.get("Pod", "train", ML).get("status", {}).get("conditions") or []
                return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)

            wait_for(refused, "the scheduler has looked")
            yield

    return plant


class Fault(NamedTuple):
    """What is planted, by which rule it is found, in which words, at which text of the policy's line, and by whom."""

    plant: Plant
    rule: str
    words: str
    line: str = ""
    ask: tuple[str, ...] = ("verify", "c")


POLICY = "gpustack.dev/v1alpha1/NodePolicy"
TRAIN = ("why", "c", "pod/ml/train")
PLUGIN, EXPORTER, VALIDATOR = "nvidia-device-plugin-daemonset", "nvidia-dcgm-exporter", "nvidia-operator-validator"
T, I = "name: training", "name: inference"  # noqa: E741 - the pools t and i
OPERATOR: Body = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "gpu-operator", "namespace": NS},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "m", "image": "a"}]}},
    },
}
QUOTA: Body = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": ML},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}


@contextmanager
def operator(api: Api) -> Iterator[None]:
    """Somebody has installed the operator beside the stack."""
    with made(OPERATOR)(api):
        wait_for(lambda: api.get("Deployment", "gpu-operator", NS).get("status", {}).get("readyReplicas"), "it runs")
        yield


FAULTS: dict[str, Fault] = {
    # what is rendered
    "a ConfigMap gone": Fault(
        gone("ConfigMap", "default-mig-parted-config", NS), "LIV101", "default-mig-parted-config is not there"
    ),
    "a Service gone": Fault(gone("Service", EXPORTER, NS), "LIV101", f"Service {NS}/{EXPORTER} is not there"),
    "a RuntimeClass gone": Fault(
        gone("node.k8s.io/v1/RuntimeClass", "nvidia"), "LIV101", "RuntimeClass nvidia is not there"
    ),
    "a ServiceAccount gone": Fault(gone("ServiceAccount", EXPORTER, NS), "LIV101", f"ServiceAccount {NS}/{EXPORTER}"),
    "rights taken away": Fault(
        patched("ClusterRole", "gpustack-reconciler", {"rules": []}),
        "LIV102",
        "ClusterRole gpustack-reconciler: rules is",
    ),
    "fewer copies by hand": Fault(
        patched("Deployment", "gpustack-reconciler", {"spec": {"replicas": 1}}, space=NS),
        "LIV102",
        "spec.replicas is 1, rendered 2",
    ),
    "a NodePolicy by hand": Fault(
        patched(POLICY, "training", {"spec": {"gpu": {"resources": {"nvidia.com/gpu": 7}}}}),
        "LIV102",
        "NodePolicy training",
    ),
    "the operator is back": Fault(operator, "LIV103", "gpu-operator runs"),
    # nodes and pools
    "a node of no pool": Fault(labelled("t-1", pool="other"), "LIV201", "has 2 nodes; the policy says 3", "count: 3"),
    "a node silent": Fault(
        patched(
            "Node",
            "t-0",
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            subresource="status",
        ),
        "LIV204",
        "t-0: not Ready",
    ),
    "a node cordoned": Fault(
        patched("Node", "t-0", {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}),
        "LIV205",
        "t-0: cordoned",
    ),
    "a label gone": Fault(
        labelled("t-0", **{f"{labels.DEPLOY}dcgm-exporter": None}), "LIV301", f"lacks {labels.DEPLOY}dcgm-exporter", T
    ),
    "a label left paused": Fault(
        labelled("t-0", **{f"{labels.DEPLOY}device-plugin": labels.MIG_PAUSE}), "LIV301", "device-plugin=paused-for", T
    ),
    "sharing of another": Fault(
        labelled("i-0", **{"nvidia.com/device-plugin.config": "other"}),
        "LIV301",
        "has nvidia.com/device-plugin.config=other",
        "sharing",
    ),
    "another GPU": Fault(
        labelled("t-0", **{"nvidia.com/gpu.product": "NVIDIA-L4"}), "LIV302", "are NVIDIA-L4", "gpuProduct"
    ),
    "a taint gone": Fault(tainted(), "LIV303", "lacks the taint nvidia.com/gpu:NoSchedule", "key: nvidia.com/gpu"),
    "a startup taint left": Fault(
        tainted(NVIDIA_TAINT, {"key": "starting", "effect": "NoSchedule"}),
        "LIV304",
        "still has starting",
        "startupTaints",
    ),
    "a driver of another version": Fault(
        labelled("t-0", **{VERSION: "570.86.15"}), "LIV405", "brings driver 570.86.15", "hostVersion"
    ),
    "seven GPUs": Fault(offering(gpu="7"), "LIV501", "t-0: offers 7 nvidia.com/gpu", T),
    "no GPU": Fault(offering(gpu="0"), "LIV501", "t-0: offers 0 nvidia.com/gpu", T),
    "GPUs that are not shared": Fault(
        offering("i-0", gpu="4"), "LIV501", "i-0: offers 4 nvidia.com/gpu; the pool inference should have 8", I
    ),
    "a resource too many": Fault(offering(**{"mig-1g.10gb": "7"}), "LIV501", "offers 7 nvidia.com/mig-1g.10gb", T),
    "MIG failed": Fault(
        labelled("t-0", **{"nvidia.com/mig.config.state": "failed"}), "LIV502", "mig.config.state is failed"
    ),
    # pods of the stack
    "a crash loop": Fault(
        in_status(PLUGIN, waits("CrashLoopBackOff", name="nvidia-device-plugin")), "LIV401", "is in CrashLoopBackOff"
    ),
    "a taint that nobody tolerates": Fault(
        pending(
            tainted(NVIDIA_TAINT, {"key": "team", "value": "x", "effect": "NoSchedule"}),
            gpus=1,
            nodeSelector={"kubernetes.io/hostname": "t-0"},
        ),
        "WHY110",
        "t-0: the pod doesn't tolerate team",
        ask=TRAIN,
    ),
    "a login of the registry": Fault(
        in_status(EXPORTER, waits("ImagePullBackOff", "Back-off pulling image: 401 Unauthorized", EXPORTER)),
        "WHY232",
        "401 Unauthorized",
        ask=("why", "c", f"daemonset/{EXPORTER}"),
    ),
    # the reconciler
    "a roll-out stalled": Fault(
        patched(
            POLICY,
            "training",
            {
                "status": {
                    "conditions": [
                        {
                            "type": "Stalled",
                            "status": "True",
                            "reason": "Breaker",
                            "message": "3 failed",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            },
            {"status": {"conditions": []}},
            subresource="status",
        ),
        "LIV601",
        "NodePolicy training: 3 failed",
    ),
    "a node in quarantine": Fault(
        patched(
            POLICY,
            "training",
            {"status": {"quarantined": 1}},
            {"status": {"quarantined": 0}},
            subresource="status",
        ),
        "LIV602",
        "1 in quarantine",
    ),
    # tenants
    "all GPUs taken": Fault(
        pending(
            made(*(pod(f"one-{n}", ML, gpus=8, nodeName=f"t-{n}") for n in range(3))),
            gpus=8,
            nodeSelector={"pool": "t"},
        ),
        "WHY110",
        "8 of 8 nvidia.com/gpu are taken, by ml/one-0, ml/one-1, ml/one-2",
        ask=TRAIN,
    ),
    "more than a node has": Fault(pending(gpus=9), "WHY110", "offers 8 nvidia.com/gpu", ask=TRAIN),
    "a label that nodes don't have": Fault(
        pending(gpus=1, nodeSelector={"nvidia.com/gpu.product": "A100"}),
        "WHY110",
        "nodeSelector or affinity",
        ask=TRAIN,
    ),
    "a quota used up": Fault(
        made(QUOTA, status={"hard": {"requests.nvidia.com/gpu": "0"}, "used": {"requests.nvidia.com/gpu": "0"}}),
        "WHY111",
        "ResourceQuota ml/team",
        ask=TRAIN,
    ),
    "no runtime": Fault(
        broken(waits("CreateContainerError", 'no runtime for "nvidia" is configured')),
        "WHY211",
        'no runtime for "nvidia"',
        ask=TRAIN,
    ),
    "no CDI device": Fault(
        broken(waits("CreateContainerError", "unresolvable CDI devices nvidia.com/gpu=0")),
        "WHY212",
        "unresolvable CDI",
        ask=TRAIN,
    ),
    "no nvidia-smi": Fault(
        broken(waits("CrashLoopBackOff", 'exec: "nvidia-smi": executable file not found in $PATH')),
        "WHY214",
        "nvidia-smi",
        ask=TRAIN,
    ),
    "out of memory": Fault(broken(ended("OOMKilled", 137)), "WHY241", "OOMKilled", ask=TRAIN),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(place: Place, name: str) -> None:
    """With the object or the node, what mends it, and the policy's line where a line says otherwise."""
    fault = FAULTS[name]
    with fault.plant(place.api):
        found = [each for each in place.found(*fault.ask) if each["rule"] == fault.rule]
    (finding,) = [each for each in found if fault.words in each["what"]]
    assert finding["remedy"]
    if fault.line:
        line = place.policy.read_text("utf-8").splitlines()[finding["line"] - 1]
        assert fault.line in line
