"""Situations as support gets them: a must-gather, with objects, events and logs. Each has its cause, and the log of a
healthy pod, which has alarming words too, has none."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.live.verify import texts
from gpustack.model import Body
from tests.live.test_verify import POOLS, READY, node
from tests.live.test_why import event, of_stack, waiting
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

NS = "gpu-operator"
DRIVER, TOOLKIT, PLUGIN = (
    "nvidia-driver-daemonset",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
)


def running(name: str, *, ready: bool = False, **more: Any) -> Body:
    """The status of a container that runs."""
    return {"containerStatuses": [{"name": name, "ready": ready, "state": {"running": {}}, **more}]}


def failing(app: str, name: str = "main") -> Body:
    """A pod of the stack that crashes."""
    return of_stack(app, **waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container", name))


def init(app: str, name: str) -> Body:
    """A pod whose init container doesn't end."""
    status = {"initContainerStatuses": [{"name": name, "ready": False, "state": {"running": {}}}]}
    return of_stack(app, **status)


def made(status: str = "Pending", **more: Any) -> Body:
    """A pod whose containers aren't made."""
    body = of_stack("web", phase=status, containerStatuses=waiting("ContainerCreating")["containerStatuses"])
    return {**body, **more}


LEAVING = {**of_stack("web", phase="Running", conditions=[READY])}
LEAVING["metadata"] = {**LEAVING["metadata"], "deletionTimestamp": "2026-11-01T00:00:00Z"}
OLD = {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}, "restartCount": 9}

Situation = tuple[Body, str, str, str]
"""The pod, its log or its event ("" for none), the cause, and words of the evidence."""
SITUATIONS: dict[str, Situation] = {
    # In the words of NVIDIA/gpu-operator's driver container, by OS and kernel, whatever the DaemonSet is called.
    "a driver for another kernel": (
        failing("nvidia-driver-daemonset-418.94.202509100653-0"),
        "Could not resolve Linux kernel version",
        "WHY201",
        "kernel version",
    ),
    "a driver of a list": (
        failing("nvidia-gpu-driver-ubuntu24.04-next-01e082b5"),
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        "WHY202",
        "Key was rejected",
    ),
    "the vGPU manager": (
        failing("nvidia-vgpu-manager-daemonset"),
        "NVRM: No NVIDIA GPU found.",
        "WHY206",
        "No NVIDIA GPU",
    ),
    "a driver that is built": (of_stack(DRIVER, **running("nvidia-driver-ctr")), "", "WHY106", "nvidia-driver-ctr"),
    "a driver manager at work": (init(DRIVER, "k8s-driver-manager"), "", "WHY102", "empties the node"),
    "network cards without a driver": (init(DRIVER, "mofed-validation"), "", "WHY102", "network operator"),
    "a GPU that doesn't start": (
        failing(DRIVER),
        "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)",
        "WHY223",
        "RmInitAdapter",
    ),
    "an XID in a program's log": (
        failing("web"),
        "NVRM: Xid (PCI:0000:3b:00): 48, pid=0, DBE (double bit error)",
        "WHY224",
        "Xid (PCI:0000:3b:00): 48",
    ),
    # In the words of CUDA's runtime and of PyTorch.
    "GPU memory with time slices": (
        failing("web"),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
        "WHY245",
        "CUDA out of memory",
    ),
    "a GPU that is newer than the program": (
        failing("web"),
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "WHY220",
        "no kernel",
    ),
    "an older driver than the program": (
        failing("web"),
        "CUDA driver version is insufficient for CUDA runtime version",
        "WHY217",
        "insufficient",
    ),
    # In the words of kubelets and containerd.
    "an image for amd64 on Grace": (
        failing("web"),
        "exec /usr/bin/python3: exec format error",
        "WHY234",
        "exec format error",
    ),
    "no image for arm64": (
        made(),
        "Failed Failed to pull image: no match for platform in manifest: not found",
        "WHY234",
        "no match for platform",
    ),
    "a registry that has had enough": (
        made(),
        "Failed Failed to pull image: toomanyrequests: You have reached your pull rate limit",
        "WHY235",
        "toomanyrequests",
    ),
    "a registry of one's own": (
        made(),
        "Failed Failed to pull image: x509: certificate signed by unknown authority",
        "WHY236",
        "x509",
    ),
    "a licence that isn't there": (
        made(),
        'FailedMount MountVolume.SetUp failed for volume "licensing-config" : secret "licensing" not found',
        "WHY253",
        'secret "licensing" not found',
    ),
    "a device that went with its layout": (
        of_stack("web", **waiting("RunContainerError", "nvidia-container-cli: device error: MIG-1234: unknown device")),
        "",
        "WHY209",
        "unknown device",
    ),
    "a webhook that is down": (
        made(),
        'FailedCreate Internal error occurred: failed calling webhook "v.example.com": context deadline exceeded',
        "WHY254",
        "failed calling webhook",
    ),
    "a pod that doesn't leave": (LEAVING, "", "WHY105", "since 2026-11-01"),
    "an exporter that grows": (
        of_stack("nvidia-dcgm-exporter", **running("exporter", ready=True, **OLD)),
        "",
        "WHY241",
        "9 restarts",
    ),
    # Nothing is amiss: what a driver's log says on every good day.
    "a good day": (
        of_stack(DRIVER, conditions=[READY], **running("nvidia-driver-ctr", ready=True)),
        "Unloading nouveau driver...\nSuccessfully unloaded nouveau\nCUDA out of memory",
        "WHY003",
        "",
    ),
    "a good day of nouveau": (
        failing(DRIVER),
        "nouveau is not loaded\nexit status 3",
        "WHY103",
        "CrashLoopBackOff",
    ),
}


def gathered(folder: Path, pod: Body, said: str, *, packed: bool) -> Path:
    """A must-gather as `oc adm must-gather` lays it out, as a folder or packed: nodes each in a file, the rest in lists
    by namespace, logs by pod and container. What is SAID is an event for a pod that has no log yet, else the log."""
    name = pod["metadata"]["name"]
    creating = (pod.get("status") or {}).get("phase") == "Pending"
    reason, _, message = said.partition(" ")
    events = [{**event(name, reason, message), "apiVersion": None, "kind": None}] if creating and said else []
    here = f"namespaces/{NS}"
    files: dict[str, Any] = {
        **{f"cluster-scoped-resources/core/nodes/{each}.yaml": node(each) for each in "ab"},
        f"{here}/core/pods.yaml": {"apiVersion": "v1", "kind": "PodList", "items": [bare(pod)]},
        f"{here}/core/events.yaml": {"apiVersion": "v1", "kind": "EventList", "items": [bare(each) for each in events]},
        "version": "4.19.3",
        "timestamp.txt": "2026-11-01",
        f"{here}/broken.yaml": "a: [",
    }
    if said and not creating:
        files[f"{here}/pods/{name}/main/main/logs/current.log"] = f"2026-11-01T00:00:00Z starting\n{said}\n"
    texts = {path: each if isinstance(each, str) else yaml.safe_dump(each) for path, each in files.items()}
    where = folder / ("must-gather.tgz" if packed else "must-gather")
    if packed:
        with tarfile.open(where, "w:gz") as tar:
            for path, text in texts.items():
                member = tarfile.TarInfo(f"must-gather.local/quay-io-sha256/{path}")
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
    else:
        for path, text in texts.items():
            (where / path).parent.mkdir(parents=True, exist_ok=True)
            (where / path).write_text(text, encoding="utf-8")
    return where


def bare(body: Mapping[str, Any]) -> Body:
    """An item of a list, which doesn't say what it is."""
    return {key: value for key, value in body.items() if key not in {"apiVersion", "kind"}}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_must_gather_tells_the_cause(project: Project, name: str) -> None:
    """Objects, events and logs are found in it; each situation is told by its cause, and no other is."""
    pod, said, rule, words = SITUATIONS[name]
    project.policy("c", nodePools=POOLS, cluster={"kubernetesVersion": "1.34"})
    where = gathered(project.folder, pod, said, packed=name.startswith("a"))
    ran = project.run("why", "c", f"pod/{NS}/{pod['metadata']['name']}", "--from", where, "--format", "json")
    found = ran.json["findings"]
    assert [each["rule"] for each in found if each["rule"] != "WHY112"] == [rule], ran.out
    assert words in found[0]["what"]
    assert found[0]["remedy"]
    assert "left out: " in ran.err
    assert "broken.yaml can't be read" in ran.err


def test_an_archive_that_is_none(project: Project) -> None:
    """Is refused with what to do; what points out of it is not written."""
    project.policy("c")
    project.write("a.tgz", "no archive")
    refused = project.run("why", "c", "node/a", "--from", "a.tgz")
    assert (refused.code, "a.tgz can't be unpacked" in refused.err) == (4, True), refused.err
    with tarfile.open(project.folder / "b.tar", "w") as tar:
        member = tarfile.TarInfo("../../outside.yaml")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    assert "can't be unpacked" in project.run("why", "c", "node/a", "--from", "b.tar").err
    assert not [*project.folder.parent.rglob("outside.yaml")]


def packed(folder: Path, *members: tarfile.TarInfo) -> Path:
    """An archive of MEMBERS, which are as large as they say or, where that is too much, cut off."""
    with (folder / "m.tar").open("wb") as file:
        for each in members:
            file.write(each.tobuf(tarfile.PAX_FORMAT) + bytes(min(each.size + 511 & ~511, 512)))
        file.write(bytes(1024))
    return folder / "m.tar"


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    """The head of a file in an archive, with FIELDS."""
    made = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


HOSTILE = {
    "a name with a zero": ([member("x.yaml", pax_headers={"path": "a\0b.yaml"})], "can't be unpacked"),
    "a name that is too long": ([member("x" * 5000 + ".yaml")], "can't be unpacked"),
    "a file that is a folder too": ([member("a.yaml"), member("a.yaml/b.yaml")], "can't be unpacked"),
    "a time that is none": ([member("a.yaml", mtime=1e300)], "can't be unpacked"),
    "a TiB of what isn't read": ([member("x.bin", size=1 << 40)], "more than 4 GiB"),
    "a pipe, a device and a link": (
        [
            member("a.yaml", type=tarfile.FIFOTYPE),
            member("b.yaml", type=tarfile.CHRTYPE),
            member("c.yaml", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            member("d.yaml", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        ],
        "holds no object of a cluster",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_means_no_good(project: Project, name: str) -> None:
    """Is refused in a sentence; what isn't a file is left out."""
    project.policy("c")
    members, words = HOSTILE[name]
    ran = project.run("why", "c", "node/a", "--from", packed(project.folder, *members))
    assert (ran.code, words in ran.err) == (4, True), ran.err


LAUGHS = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9 if n else 1}]\n" for n in range(9))


@pytest.mark.parametrize("text", ["a: &a [*a]\n", LAUGHS])
def test_a_document_that_stands_for_too_much(project: Project, text: str) -> None:
    """Aliases that lie within themselves, or that come to millions of values, are refused before anybody follows."""
    project.policy("c")
    project.write("a.yaml", text)
    ran = project.run("why", "c", "node/a", "--from", "a.yaml")
    assert (ran.code, "its aliases stand for too much" in ran.err) == (4, True), ran.err


def test_a_log_of_one_long_line(project: Project) -> None:
    """Takes no longer than one of many lines, and what stands at its end is found."""
    body = failing("web")
    line = "failed to pull " * 20_000 + " CUDA out of memory"
    project.policy("c", nodePools=POOLS)
    began = time.monotonic()
    ran = project.run("why", "c", f"pod/{NS}/web-x", "--from", gathered(project.folder, body, line, packed=False))
    assert "WHY245" in ran.out
    assert time.monotonic() - began < 20


def test_every_init_container_of_the_stack_is_known() -> None:
    """What each waits for, in all example clusters: a pod at Init:0/4 has an answer, whoever's it is."""
    names = {
        container["name"]
        for path in (ROOT / "dist").rglob("daemonset-nvidia-*.yaml")
        for container in yaml.safe_load(path.read_text("utf-8"))["spec"]["template"]["spec"].get("initContainers", ())
    }
    assert len(names) > 10
    assert names <= texts("why")["init"].keys()
