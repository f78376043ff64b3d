"""Clusters of policies/ as they are once all is well: nodes as the kubelet, node feature discovery, GPU feature
discovery, the MIG manager and the device plugin leave them, and the pods that Kubernetes makes of what was applied.

NODES says by hand what stands in the racks and what people wrote on it. Everything else is done to that as NVIDIA's
programs do it (operator.md 2 and 7, reconciler.md 1.4), by the objects in dist/ and never by what `verify` expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpustack.model import Body
from tests.project import ROOT

FEATURE = "feature.node.kubernetes.io/"
DEPLOY, OWNER = "nvidia.com/gpu.deploy.", "nvidia.com/gpu-operator.driver.owner"
WORKLOAD, SHARING = "nvidia.com/gpu.workload.config", "nvidia.com/device-plugin.config"
TYPE, POOL, OSTREE = (
    "node.kubernetes.io/instance-type",
    "example.com/pool",
    f"{FEATURE}system-os_release.OSTREE_VERSION",
)
UBUNTU22, UBUNTU24 = ("ubuntu", "22.04"), ("ubuntu", "24.04")
COREOS = "418.94.202507221927-0"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Nodes:
    """So many machines of a kind: what NVML calls their GPUs, how many each has, and the labels that people and clouds
    write on them (those of docs/labels.md too). `image` is the driver that they bring, `cut` the instances of each GPU,
    `lent` what the device plugins for virtual machines call the GPUs (kubevirt.yaml).
    """

    number: int
    gpu: str
    gpus: int
    system: tuple[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    kernel: str = "6.8.0-60-generic"
    arch: str = "amd64"
    runtime: str = "containerd://2.1.4"
    image: str = ""
    cut: Mapping[str, int] = field(default_factory=dict)
    workload: str = "container"
    lent: str = ""
    taints: tuple[Body, ...] = ()


A100 = "NVIDIA A100-SXM4-80GB"
H100 = "NVIDIA H100 80GB HBM3"
RHCOS: dict[str, Any] = {
    "system": ("rhcos", "4.18"),
    "kernel": "5.14.0-427.50.1.el9_4.x86_64",
    "runtime": "cri-o://1.31.4",
}
NODES: dict[str, list[Nodes]] = {
    "dra-gb200": [
        Nodes(
            18, "NVIDIA GB200", 4, UBUNTU24, {"example.com/rack": rack, OWNER: "default"}, arch="arm64", workload="dra"
        )
        for rack in "ab"
    ],
    "edge-rke2": [Nodes(40, "NVIDIA L4", 1, ("sles", "15.6"), kernel="6.4.0-150600.21-default")],
    "kata-confidential": [Nodes(6, "NVIDIA H100 PCIe", 4, UBUNTU24, workload="kata", lent="nvidia.com/pgpu")],
    "lab-a100": [
        Nodes(4, A100, 8, UBUNTU22, {POOL: "training"}),
        Nodes(
            2,
            A100,
            8,
            UBUNTU22,
            {POOL: "notebooks", SHARING: "notebooks", "nvidia.com/mig.config": "notebooks"},
            cut={"3g.40gb": 1, "2g.20gb": 2},
        ),
    ],
    "mixed-campus": [
        Nodes(6, "NVIDIA A100-PCIE-40GB", 4, ("rhel", "9.4"), kernel="5.14.0-427.el9.x86_64"),
        Nodes(10, "Tesla T4", 1, UBUNTU22, {SHARING: "teaching"}),
    ],
    "openshift-vgpu": [
        Nodes(6, "NVIDIA L40S-24Q", 1, labels={OSTREE: COREOS}, **RHCOS),
        Nodes(2, "NVIDIA L40S-24Q", 1, labels={OSTREE: "418.94.202509100653-0"}, **RHCOS),
    ],
    "prod-eks": [
        Nodes(3, H100, 8, ("amzn", "2023"), {TYPE: "p5.48xlarge"}, image="580.105.08"),
        Nodes(
            5,
            "NVIDIA L4",
            1,
            ("amzn", "2023"),
            {TYPE: "g6.2xlarge", SHARING: "inference"},
            image="580.105.08",
        ),
    ],
    "prod-gke": [
        Nodes(
            2,
            H100,
            8,
            ("cos", "125"),
            {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb", "gke-no-default-nvidia-gpu-device-plugin": "true"},
            image="580.95.05",
            taints=(GPU_TAINT,),
        )
    ],
    "three-drivers": [
        Nodes(24, H100, 8, UBUNTU24, {"example.com/gpu": "h100", "example.com/ring": "late", OWNER: "current"}),
        Nodes(2, H100, 8, UBUNTU24, {"example.com/gpu": "h100", "example.com/ring": "early", OWNER: "next"}),
        Nodes(6, "Tesla V100-SXM2-32GB", 4, ("rhel", "9.6"), {"example.com/gpu": "v100", OWNER: "volta"}),
    ],
    "train-dgx": [Nodes(32, H100, 8, UBUNTU24)],
    "vm-kubevirt": [
        Nodes(2, A100, 8, UBUNTU22, {POOL: "containers", WORKLOAD: "container"}),
        Nodes(
            2,
            "NVIDIA L40S",
            4,
            UBUNTU22,
            {POOL: "whole-gpus", WORKLOAD: "vm-passthrough"},
            workload="vm-passthrough",
            lent="nvidia.com/AD102GL_L40S",
        ),
        Nodes(
            2,
            "NVIDIA A10",
            2,
            UBUNTU22,
            {POOL: "half-gpus", WORKLOAD: "vm-vgpu", "nvidia.com/vgpu.config": "A10-12Q"},
            workload="vm-vgpu",
            lent="nvidia.com/NVIDIA_A10-12Q",
        ),
    ],
    "vm-openshift": [
        Nodes(
            3,
            "NVIDIA L40S",
            4,
            labels={
                OSTREE: COREOS,
                "nvidia.com/vgpu.config": "L40S-8Q",
                WORKLOAD: "vm-vgpu",
            },
            workload="vm-vgpu",
            lent="nvidia.com/NVIDIA_L40S-8Q",
            **RHCOS,
        )
    ],
}
COMPONENTS = {
    "container": "driver gpu-feature-discovery container-toolkit device-plugin dcgm dcgm-exporter node-status-exporter "
    "operator-validator client",
    "vm-passthrough": "sandbox-device-plugin sandbox-validator vfio-manager kata-manager cc-manager client",
    "kata": "kata-sandbox-device-plugin sandbox-validator vfio-manager kata-manager cc-manager client",
    "vm-vgpu": "sandbox-device-plugin vgpu-manager vgpu-device-manager sandbox-validator cc-manager client",
    "dra": "driver dra-driver dra-validator dcgm-dra dcgm-exporter-dra",
}
"""What a node's workload has labels for (operator.md 2.2, 2.4)."""
PLAIN = Nodes(1, "", 0, UBUNTU24)
BUILT = "595.91.07"
"""What a precompiled driver image of the branch 595 holds."""


def cluster(name: str) -> list[Body]:
    """All objects of the cluster NAME: what was applied, machines with GPUs and one without, and the pods on them."""
    applied = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / "dist" / name).rglob("*.yaml"))]
    for number, body in enumerate(applied):
        body["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "7", "generation": 1}
    daemons = [body for body in applied if body["kind"] == "DaemonSet"]
    made = list[Body]()
    racks = [*NODES[name], twin(NODES[name][0])]
    for number, kind in enumerate(each for each in racks for _ in range(each.number)):
        node = registered(f"node-{number}", kind)
        given = node["metadata"]["labels"]
        if kind.gpu:
            given |= told_to_run(kind, {body["metadata"]["name"] for body in daemons})
        own = {body["metadata"]["name"]: body for body in daemons if runs(body, node)}
        if kind.gpu:
            given |= found(kind, own)
            node["status"]["allocatable"] |= offered(kind, own, given, applied)
        made += [node, *(pod(body, node) for body in own.values())]
    for body in applied:
        body["status"] = status(body, made)
    space = daemons[0]["metadata"]["namespace"]
    past = [*map(early, [body for body in made if body["kind"] == "Pod"]), *map(early, daemons)]
    return [*applied, *made, *map(revision, daemons), *ended(space), *past, *tenants()]


def twin(kind: Nodes) -> Nodes:
    """A machine of the same make and system as KIND, without GPUs and without what people write on those that have."""
    return Nodes(1, "", 0, kind.system, kernel=kind.kernel, arch=kind.arch, runtime=kind.runtime)


def registered(name: str, kind: Nodes) -> Body:
    """The kubelet's Node, and what node feature discovery writes on it (operator.md 2.1)."""
    (system, version), had = kind.system, ("0300_10de" if "T4" in kind.gpu else "10de")
    labels = {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": kind.arch,
        f"{FEATURE}kernel-version.full": kind.kernel, f"{FEATURE}system-os_release.ID": system,
        f"{FEATURE}system-os_release.VERSION_ID": version,
        f"{FEATURE}system-os_release.VERSION_ID.major": version.partition(".")[0],
        f"{FEATURE}pci-8086.present": "true", **kind.labels,
    }  # fmt: skip
    if kind.gpu:
        labels[f"{FEATURE}pci-{had}.present"] = "true"
    conditions = [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    ]
    conditions += [{"type": each, "status": "False"} for each in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    info = {"kernelVersion": kind.kernel, "containerRuntimeVersion": kind.runtime, "architecture": kind.arch}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"volumes.kubernetes.io/attach": "true"}},
        "spec": {"taints": [*kind.taints]},
        "status": {"conditions": conditions, "nodeInfo": info, "allocatable": {"cpu": "95", "pods": "110"}},
    }


def cuttable(kind: Nodes) -> bool:
    """Whether GPUs of KIND can be cut (operator.md 2.2)."""
    return any(each in kind.gpu for each in ("A100", "H100"))


def told_to_run(kind: Nodes, daemons: set[str]) -> dict[str, str]:
    """What the reconciler, or a person by docs/labels.md, writes (operator.md 2.2)."""
    labels = {"nvidia.com/gpu.present": "true", **{DEPLOY + each: "true" for each in COMPONENTS[kind.workload].split()}}
    if cuttable(kind) and kind.workload == "container" and "nvidia-mig-manager" in daemons:
        labels |= {
            f"{DEPLOY}mig-manager": "true",
            "nvidia.com/mig.config": kind.labels.get("nvidia.com/mig.config", "all-disabled"),
        }
    return labels


def runs(body: Body, node: Body) -> bool:
    """Whether the DaemonSet controller makes a pod of BODY for NODE."""
    spec, labels = body["spec"]["template"]["spec"], node["metadata"]["labels"]
    tolerated = {each.get("key") for each in spec.get("tolerations", ())}
    terms = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fits = [
        all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"])
        for term in terms.get("nodeSelectorTerms", ())
    ]
    return (
        all(labels.get(key) == value for key, value in spec.get("nodeSelector", {}).items())
        and all(taint["key"] in tolerated for taint in node["spec"]["taints"])
        and (not fits or any(fits))
    )


def found(kind: Nodes, own: Mapping[str, Body]) -> dict[str, str]:
    """What GPU feature discovery and the MIG manager say, where they run (reconciler.md 3.1)."""
    labels = dict[str, str]()
    if "nvidia-mig-manager" in own:
        labels["nvidia.com/mig.config.state"] = "success"
    if "gpu-feature-discovery" not in own:
        return labels
    images = [
        one["image"].rpartition(":")[2]
        for body in own.values()
        for one in body["spec"]["template"]["spec"]["containers"]
        if one["name"] == "nvidia-driver-ctr"
    ]
    tag = images[0].partition("-")[0] if images else kind.image
    version = tag if "." in tag else BUILT
    major, minor, *rest = version.split(".")
    return labels | {
        "nvidia.com/gpu.product": kind.gpu.replace(" ", "-"), "nvidia.com/gpu.count": str(kind.gpus),
        "nvidia.com/mig.capable": str(cuttable(kind)).lower(), "nvidia.com/mps.capable": "false",
        "nvidia.com/cuda.driver-version.full": version, "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor, "nvidia.com/cuda.driver-version.revision": "".join(rest),
        "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gfd.timestamp": "1764400000",
    }  # fmt: skip


def offered(kind: Nodes, own: Mapping[str, Body], labels: dict[str, str], applied: list[Body]) -> dict[str, str]:
    """What the kubelet offers once the device plugin of the node has told it; sharing shows in LABELS too."""
    if kind.lent:
        return {kind.lent: str(kind.gpus)}
    if "nvidia-device-plugin-daemonset" not in own:
        return {}
    containers = own["nvidia-device-plugin-daemonset"]["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one.get("value", "") for each in containers for one in each.get("env", ())}
    counts = {"nvidia.com/gpu": kind.gpus}
    if kind.cut and env["MIG_STRATEGY"] == "mixed":
        counts = {f"nvidia.com/mig-{profile}": kind.gpus * number for profile, number in kind.cut.items()}
    configured: dict[str, str] = next(
        (one["data"] for one in applied if one["metadata"]["name"] == "gpustack-device-plugin-config"), {}
    )
    chosen = labels.get("nvidia.com/device-plugin.config") or env.get("DEFAULT_CONFIG", "")
    slicing = (yaml.safe_load(configured.get(chosen, "{}")).get("sharing") or {}).get("timeSlicing") or {}
    made = dict(counts)
    for each in slicing.get("resources", ()):
        number = made.pop(each["name"]) * each["replicas"]
        made[f"{each['name']}.shared" if slicing.get("renameByDefault") else each["name"]] = number
        labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
        if each["name"] == "nvidia.com/gpu" and not slicing.get("renameByDefault"):
            labels["nvidia.com/gpu.product"] += "-SHARED"
    # a resource that a former layout had stays at 0 until the kubelet starts again
    # and the network operator offers network cards
    return {"nvidia.com/hostdev": "8", "nvidia.com/mig-1g.10gb": "0", **{key: str(n) for key, n in made.items()}}


def pod(body: Body, node: Body) -> Body:
    """The pod of the DaemonSet BODY on NODE, at work; its init containers are through."""
    template, name = body["spec"]["template"], f"{body['metadata']['name']}-{node['metadata']['name']}"
    owner = {"kind": "DaemonSet", "name": body["metadata"]["name"], "uid": body["metadata"]["uid"], "controller": True}
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": body["metadata"]["namespace"],
            "labels": {**template["metadata"]["labels"], "controller-revision-hash": f"hash-{body['metadata']['uid']}"},
            "ownerReferences": [owner],
        },
        "spec": {**template["spec"], "nodeName": node["metadata"]["name"]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": each, "status": "True"} for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "initContainerStatuses": [
                {"name": one["name"], "ready": True, "restartCount": 0, "state": done}
                for one in template["spec"].get("initContainers", ())
            ],
            "containerStatuses": [
                {
                    "name": one["name"],
                    "ready": True,
                    "restartCount": 1,
                    "state": {"running": {"startedAt": "2026-11-01T00:00:00Z"}},
                }
                for one in template["spec"]["containers"]
            ],
        },
    }


def status(body: Body, made: list[Body]) -> Body:
    """What the controllers of BODY's kind say of it."""
    if body["kind"] == "DaemonSet":
        number = sum(
            one["kind"] == "Pod" and one["metadata"]["ownerReferences"][0]["uid"] == body["metadata"]["uid"]
            for one in made
        )
        return {"desiredNumberScheduled": number, "updatedNumberScheduled": number, "numberReady": number}
    if body["kind"] == "Deployment":
        return {"readyReplicas": body["spec"].get("replicas", 1), "replicas": body["spec"].get("replicas", 1)}
    if body["kind"] == "NodePolicy":
        conditions = [
            {"type": "Ready", "status": "True"},
            {"type": "Stalled", "status": "False"},
            {"type": "RolledOut", "status": "True"},
        ]
        return {
            "observedGeneration": 1,
            "nodes": 2,
            "current": 2,
            "quarantined": 0,
            "waiting": [],
            "conditions": conditions,
        }
    return {}


def early(body: Body) -> Body:
    """An event of the hour in which BODY came up, of what passed by itself."""
    text = "MountVolume.SetUp failed: configmap references non-existent config key: config.yaml"
    if body["kind"] == "DaemonSet":
        text = 'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged'
    metadata = {"name": f"{body['kind']}-{body['metadata']['name']}.18", "namespace": body["metadata"]["namespace"]}
    regarding = {"kind": body["kind"], "name": body["metadata"]["name"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": regarding,
        "reason": "Failed",
        "message": text,
    }


def ended(space: str) -> list[Body]:
    """What Kubernetes keeps of pods that have ended: a Job's last failure, and a pod that was evicted."""
    kept = list[Body]()
    for name, kind, reason in (
        ("gpustack-verify-29", "Job", "Error"),
        ("gpustack-reconciler-6d", "ReplicaSet", "Evicted"),
    ):
        owner = {"kind": kind, "name": name, "uid": name, "controller": True}
        metadata = {"name": f"{name}-x", "namespace": space, "labels": {"app": name}, "ownerReferences": [owner]}
        status = {"phase": "Failed", "reason": reason}
        kept.append(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "node-0"}, "status": status}
        )
    return kept


def tenants() -> list[Body]:
    """A pod that works with a GPU, and one that has done its work."""
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    metadata = {"name": "train-0", "namespace": "ml"}
    well = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    done = {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "name": which},
            "spec": {"nodeName": "node-0", "containers": [container]},
            "status": status,
        }
        for which, status in (("train-0", well), ("train-1", done))
    ]


def revision(body: Body) -> Body:
    """The template of the DaemonSet BODY, of which all its pods are."""
    mark = f"hash-{body['metadata']['uid']}"
    metadata = {
        "name": f"{body['metadata']['name']}-{mark}",
        "namespace": body["metadata"]["namespace"],
        "labels": {"controller-revision-hash": mark},
        "ownerReferences": [{"kind": "DaemonSet", "uid": body["metadata"]["uid"], "controller": True}],
    }
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": 1}
