"""What `gpustack why` tells: situations as people meet them, each with its cause; what isn't known is said."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.live.state import of_files
from gpustack.live.verify import texts
from gpustack.live.why import Target, why
from gpustack.model import Body, Finding
from tests.components.common import spec
from tests.live.test_verify import POOLS, READY, RECONCILER, node, policy, policy_and_dump
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

TOLERATES = [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def tenant(name: str = "train-0", *, number: int = 1, where: str = "", **fields: Any) -> Body:
    """A tenant's pod that asks for GPUs; pending unless it is on a node."""
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": str(number)}}}
    placed = {"nodeName": where} if where else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"containers": [container], "tolerations": TOLERATES, **placed, **fields},
        "status": {"phase": "Running" if where else "Pending"},
    }


def of_stack(app: str, **status: Any) -> Body:
    """A pod of the stack on the first node."""
    metadata = {"name": f"{app}-x", "namespace": "gpu-operator", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "a"}, "status": status}


def waiting(reason: str, message: str = "", name: str = "main") -> dict[str, Any]:
    """The status of a container that waits."""
    said = {"reason": reason, **({"message": message} if message else {})}
    return {"containerStatuses": [{"name": name, "state": {"waiting": said}}]}


def told(bodies: list[Body], target: Target, log: str = "", **sections: Any) -> list[Finding]:
    """What is told of TARGET in a cluster of BODIES."""
    more: dict[str, Any] = {
        "nodePools": POOLS,
        "reconciler": RECONCILER,
        "driver": {"version": "580.126.20"},
        **sections,
    }
    return why(Expected.of(resolve(spec(**more)), ()), of_files(bodies), target, log)


def nodes(**changes: Any) -> list[Body]:
    """Two nodes; CHANGES to the spec of both."""
    made = [node("a"), node("b")]
    for each in made:
        each["spec"].update(copy.deepcopy(changes))
    return made


TRAIN = Target("Pod", "train-0", "ml")
FULL = [tenant("one", number=8, where="a"), tenant("two", number=8, where="b")]
QUOTA: Body = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": "ml"},
    "status": {"hard": {"requests.nvidia.com/gpu": "4"}, "used": {"requests.nvidia.com/gpu": "4"}},
}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}
TERM = {"matchExpressions": [{"key": "fast", "operator": "In", "values": ["yes"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}}


def asleep() -> list[Body]:
    """Two nodes whose kubelets are silent."""
    made = nodes()
    for each in made:
        each["status"]["conditions"] = []
    return made


PENDING: dict[str, tuple[list[Body], str, str]] = {
    "all taken": ([*nodes(), *FULL, tenant()], "WHY110", "a, b: 8 of 8 nvidia.com/gpu are taken, by ml/one, ml/two"),
    "cordoned": ([*nodes(unschedulable=True), tenant()], "WHY110", "a, b: cordoned"),
    "worked on": (
        [
            {**each, "metadata": {**each["metadata"], "annotations": {"gpustack.dev/cordoned-by": "x"}}}
            for each in nodes(unschedulable=True)
        ]
        + [tenant()],
        "WHY110", "a, b: the reconciler works on it",
    ),
    "taint": (
        [*nodes(taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}]), tenant()],
        "WHY110", "the pod doesn't tolerate team",
    ),
    "selector": ([*nodes(), tenant(nodeSelector={"disk": "fast"})], "WHY110", "a, b: the pod's nodeSelector"),
    "too many": ([*nodes(), tenant(number=9)], "WHY110", "a, b: offers 8 nvidia.com/gpu"),
    "not ready": ([*asleep(), tenant()], "WHY110", "a, b: not Ready"),
    "affinity": ([*nodes(), tenant(affinity=AFFINITY)], "WHY110", "a, b: the pod's nodeSelector or affinity"),
    "room": ([*nodes(), tenant()], "WHY112", "a, b: room for 1 nvidia.com/gpu"),
    "scheduler": (
        [*nodes(), {**tenant(), "status": {"phase": "Pending", "conditions": [GATED]}}],
        "WHY113", "SchedulingGated: gates",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PENDING)
def test_why_a_pod_is_pending(name: str) -> None:
    """Node by node, and to whom the GPUs went."""
    bodies, rule, words = PENDING[name]
    found = told(bodies, TRAIN)
    assert any(each.rule == rule and words in each.what for each in found), found


def test_what_no_node_ever_could_is_told_as_by_lint() -> None:
    """A resource that nothing offers: the rule's own words, and its remedy."""
    body = tenant()
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu.shared": "1"}
    (first, *_) = told([*nodes(), body], TRAIN)
    assert first.rule.startswith("GPU7")
    assert "nvidia.com/gpu.shared" in first.what


SIGNS: dict[str, tuple[str, dict[str, Any], str]] = {
    "runtime": ("web", waiting("CreateContainerError", 'no runtime for "nvidia" is configured'), "WHY211"),
    "cdi": ("web", waiting("CreateContainerError", "unresolvable CDI devices nvidia.com/gpu=0"), "WHY212"),
    "smi": ("web", waiting("CrashLoopBackOff", 'exec: "nvidia-smi": executable file not found in $PATH'), "WHY214"),
    "image": ("web", waiting("ImagePullBackOff", "Back-off pulling image: not found"), "WHY231"),
    "login": ("web", waiting("ErrImagePull", "failed to authorize: 401 Unauthorized"), "WHY232"),
    "registry": ("web", waiting("ErrImagePull", "dial tcp 192.0.2.1:443: i/o timeout"), "WHY233"),
    "memory": (
        "web",
        {"containerStatuses": [{"name": "m", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]},
        "WHY241",
    ),
    "disk": ("web", waiting("CreateContainerError", "write /x: no space left on device"), "WHY207"),
    "evicted": (
        "web",
        {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi"},
        "WHY207",
    ),
    "unhealthy": (
        "web",
        {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy "
            "devices nvidia.com/mig-1g.5gb, which is unexpected",
        },
        "WHY215",
    ),
    "lost": (
        "web",
        {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": "Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
            "Unable to retrieve list of available devices: error creating nvml.Device 3: nvml: GPU is lost",
        },
        "WHY216",
    ),
    "CUDA": (
        "web",
        waiting(
            "StartError", "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update"
        ),
        "WHY217",
    ),
    "mismatch": (
        "web",
        waiting(
            "StartError", "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"
        ),
        "WHY218",
    ),
}
"""In the words of kubelets, runtimes and NVIDIA's programs; those from `evicted` on as in NVIDIA/k8s-device-plugin
231, openshift/instaslice-operator 140, NVIDIA/nvidia-docker 1442."""
DRIVER = "nvidia-driver-daemonset"
LOGS = {
    "headers": (DRIVER, "E: Unable to locate package linux-headers-6.8.0-60-generic", "WHY201"),
    "headers of RHEL": (DRIVER, "Error: Unable to find a match: kernel-headers-5.14.0", "WHY201"),
    "key": (DRIVER, "modprobe: ERROR: could not insert: Key was rejected by service", "WHY202"),
    "in use": (DRIVER, "Could not unload NVIDIA driver kernel modules, driver is in use", "WHY203"),
    "nouveau": (DRIVER, "Unloading nouveau driver... failed", "WHY204"),
    "open": (DRIVER, "NVRM: this system requires use of the NVIDIA open kernel modules.", "WHY205"),
    "unsupported": (DRIVER, "NVRM: No NVIDIA GPU found.", "WHY206"),
    "nvml": ("web", "Failed to initialize NVML: Unknown Error", "WHY213"),
    "fallen": ("web", "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost. Reboot", "WHY216"),
    "platform": (
        "nvidia-device-plugin-daemonset",
        "E0506 17:45:45.421956 1 factory.go:112] Incompatible strategy detected auto",
        "WHY219",
    ),
    "older platform": ("nvidia-device-plugin-daemonset", "factory.go:115] Incompatible platform detected", "WHY219"),
    "engine": (
        "nvidia-dcgm-exporter",
        "Not collecting DCP metrics: Error getting supported metrics: Host engine connection invalid/disconnected",
        "WHY242",
    ),
    "DCGM's module": (
        "nvidia-dcgm-exporter",
        "Error watching fields: This request is serviced by a module of DCGM that is not currently loaded",
        "WHY242",
    ),
    "MIG in use": ("nvidia-mig-manager", "GPU 00000000:07:00.0: In use by another client", "WHY222"),
    "fabric": ("web", "CUDA error 802: system not yet initialized", "WHY208"),
}
"""From `fallen` on as in NVIDIA/k8s-device-plugin issues 231, 406 and 1220, NVIDIA/dcgm-exporter 61, NVIDIA/
gpu-monitoring-tools 120, reconciler.md P39 and the CUDA runtime's text of cudaErrorSystemNotReady."""  # fmt: skip


@pytest.mark.parametrize("name", SIGNS)
def test_why_a_container_does_not_run(name: str) -> None:
    """By what the kubelet says of it."""
    app, status, rule = SIGNS[name]
    body = of_stack(app, **status)
    found = told([*nodes(), body], Target("Pod", body["metadata"]["name"], "gpu-operator"))
    assert [each.rule for each in found] == [rule]


@pytest.mark.parametrize("name", LOGS)
def test_what_a_log_says(name: str) -> None:
    """Of the last lines of a container."""
    app, line, rule = LOGS[name]
    body = of_stack(app, **waiting("CrashLoopBackOff"))
    found = told([*nodes(), body], Target("Pod", body["metadata"]["name"], "gpu-operator"), f"first\n{line}\nlast\n")
    assert found[0].rule == rule
    assert line in found[0].what


def event(name: str, reason: str, message: str) -> Body:
    """An event about an object of the stack's namespace."""
    head = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "gpu-operator"}}
    return {**head, "involvedObject": {"name": name}, "reason": reason, "message": message}


EVENTS = {
    "layouts": (
        "nvidia-mig-manager", "FailedMount",
        "MountVolume.SetUp failed: configmap references non-existent config key: config.yaml", "WHY221",
    ),
    "probe": (
        "nvidia-dcgm-exporter", "Unhealthy",
        'Liveness probe failed: Get "http://10.0.0.7:9400/health": context deadline exceeded', "WHY243",
    ),
    "claims": ("web", "FailedScheduling", "0/2 nodes are available: 2 cannot allocate all claims.", "WHY114"),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_events_tell_as_well(name: str) -> None:
    """What nothing but an event says, such as that the MIG manager waits for the file that the reconciler writes."""
    app, reason, message, rule = EVENTS[name]
    body = of_stack(app, phase="Pending")
    found = told([*nodes(), body, event(f"{app}-x", reason, message)], Target("Pod", f"{app}-x", "gpu-operator"))
    assert [each.rule for each in found] == [rule]


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ('Error creating: pods "d-x" is forbidden: violates PodSecurity "baseline:latest": privileged', "WHY251"),
        (
            "Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]",
            "WHY252",
        ),
    ],
)
def test_a_daemonset_whose_pods_nobody_may_make(message: str, rule: str) -> None:
    """There is no pod to ask then, but the controller's event (grafana/agent issue 3373, cstor-operators issue 196)."""
    metadata = {"name": "d", "namespace": "gpu-operator", "uid": "1"}
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}
    (found,) = told([*nodes(), daemons, event("d", "FailedCreate", message)], Target("DaemonSet", "d", "gpu-operator"))
    assert (found.rule, message in found.what) == (rule, True)


@pytest.mark.parametrize(
    "container", ["driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"]
)
def test_what_the_validator_waits_for(container: str) -> None:
    """Init:0/4 has a cause by the container that has not ended (operator.md 7.4)."""
    status = {"initContainerStatuses": [{"name": container, "ready": False, "state": {"running": {}}}]}
    body = of_stack("nvidia-operator-validator", **status)
    (found,) = told([*nodes(), body], Target("Pod", body["metadata"]["name"], "gpu-operator"))
    assert (found.rule, f"{container} has not ended" in found.what) == ("WHY102", True)


def test_a_node_is_asked_what_verify_asks() -> None:
    """What is amiss there with the policy's line, and why the reconciler waits."""
    bodies = nodes()
    bodies[0]["status"]["allocatable"] = {}
    waits = {"reason": "window", "count": 1, "nodes": ["a"], "message": "no window is open"}
    found = told([*bodies, policy("p", waiting=[waits])], Target("Node", "a"))
    assert [(each.rule, each.path) for each in found] == [("LIV501", "spec.nodePools[0]"), ("WHY101", "")]
    assert "p: window: no window is open" in found[1].what


def test_a_policy_is_asked_what_it_says_of_itself() -> None:
    """That nothing will happen before somebody acts, and who is out of service."""
    stalled = [{"type": "Stalled", "status": "True", "message": "3 nodes failed in a row"}]
    bodies = [*nodes(), policy("p", conditions=stalled, quarantined=2), policy("other", quarantined=1)]
    found = [(each.rule, each.what) for each in told(bodies, Target("NodePolicy", "p"))]
    assert found == [("LIV601", "NodePolicy p: 3 nodes failed in a row"), ("LIV602", "NodePolicy p: 2 in quarantine")]


def test_a_daemonset_is_asked_by_its_pods() -> None:
    """Each reason once, with the nodes, though kubelets write names, UIDs and times into it; another one beside."""
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "gpu-operator", "uid": "1"},
    }
    pods = []
    for number in range(3):
        said = f"back-off {number}m0s pulling for pod=p{number}_gpu-operator(4fa{number}-11c{number}): 401 Unauthorized"
        pod = of_stack("web", **waiting("ErrImagePull", said))
        pod["metadata"] |= {"name": f"p{number}", "ownerReferences": [{"uid": "1"}]}
        pod["spec"]["nodeName"] = "abc"[number]
        pods.append(pod)
    (found,) = told([*nodes(), daemons, *pods], Target("DaemonSet", "d", "gpu-operator"))
    assert (found.rule, found.what.partition(":")[0]) == ("WHY232", "a, b, c")
    pods[2]["status"] = waiting("CreateContainerError", "no space left on device")
    both = told([*nodes(), daemons, *pods], Target("DaemonSet", "d", "gpu-operator"))
    assert [(each.rule, each.what.partition(":")[0]) for each in both] == [("WHY232", "a, b"), ("WHY207", "c")]


def test_what_is_not_known_is_said() -> None:
    """With what was looked at; an object that isn't there is told, too."""
    body = of_stack("web", phase="Running")
    (found,) = told([*nodes(), body], Target("Pod", "web-x", "gpu-operator"))
    assert (found.rule, found.severity) == ("WHY002", "note")
    assert "looked at Node (2), Pod (1)" in found.what
    body = of_stack("web", phase="Running", conditions=[READY])
    (well,) = told([*nodes(), body], Target("Pod", "web-x", "gpu-operator"))
    assert (well.rule, well.severity) == ("WHY003", "note")
    (absent,) = told([], TRAIN)
    assert (absent.rule, absent.what) == ("WHY001", "pod/ml/train-0 may be there: no Pod was looked at")
    (absent, quota) = told([*nodes(), tenant("other"), QUOTA], TRAIN)
    assert (absent.rule, absent.what) == ("WHY001", "pod/ml/train-0 is not there")
    assert (quota.rule, quota.what) == ("WHY111", "ResourceQuota ml/team: 4 of 4 requests.nvidia.com/gpu are used")


def test_every_cause_is_tested_and_explained() -> None:
    """Each id is told by a test, and has its line on the page; every sign has a cause."""
    from tests.live.test_reports import REPORTS
    from tests.live.test_situations import SITUATIONS

    page = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    causes = texts("why")["causes"]
    assert texts("why")["signs"].keys() <= causes.keys()
    assert all(f"| {each['id']} |" in page for each in causes.values())
    tested = {rule for _, _, rule in (*SIGNS.values(), *LOGS.values())} | {rule for _, rule, _ in PENDING.values()}
    tested |= {"WHY111", "WHY001", "WHY002", "WHY003", "WHY101", "WHY102", "WHY103", "WHY104", "WHY251", "WHY252"}
    tested |= {rule for _, _, _, rule in EVENTS.values()} | {rule for _, _, rule, _ in SITUATIONS.values()}
    tested |= {report["is"] for report in REPORTS.values()}
    assert {each["id"] for each in causes.values()} == tested


def test_a_crash_that_nobody_knows() -> None:
    """Says how to get its log."""
    body = of_stack("web", **waiting("CrashLoopBackOff", "exit status 3"))
    (found,) = told([*nodes(), body], Target("Pod", "web-x", "gpu-operator"))
    assert found.rule == "WHY103"
    assert "kubectl -n gpu-operator logs web-x" in found.remedy


def test_a_fault_that_a_condition_tells_of() -> None:
    """With the condition's own words; what no NodePolicy listens to, and what is well, isn't one."""
    rules = [{"type": kind, "then": "drain"} for kind in ("GpuLost", "GpuWell")]
    section = {"health": {"rules": [*rules, {"type": "GpuReady", "status": "False", "then": "cordon"}]}}
    policy = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p"}, "spec": section}
    ill = node("a")
    ill["status"]["conditions"] += [
        {"type": "GpuLost", "status": "True", "reason": "Xid79", "message": "fallen off the bus"},
        {"type": "GpuWell", "status": "False"},
        {"type": "GpuReady", "status": "False"},
        {"type": "Other", "status": "True"},
    ]
    found = [each.what for each in told([ill, policy], Target("Node", "a")) if each.rule == "WHY104"]
    assert found == ["condition GpuLost is True (Xid79: fallen off the bus)", "condition GpuReady is False"]


def test_the_verb(project: Project) -> None:
    """A policy, a dump and a log; a target of another form is refused with the forms."""
    policy_and_dump(project, [node("a"), of_stack(DRIVER, **waiting("CrashLoopBackOff"))])
    project.write("log", "Key was rejected by service\n")
    target = "pod/gpu-operator/nvidia-driver-daemonset-x"
    ran = project.run("why", "c", target, "--from", "dump.yaml", "--log", "log")
    assert ran.code == 2
    assert "error WHY202: nvidia-driver-daemonset: Key was rejected by service" in ran.out
    refused = project.run("why", "c", "pods/x", "--from", "dump.yaml")
    assert refused.code == 4
    assert "pod/NAMESPACE/NAME" in refused.err + refused.out
