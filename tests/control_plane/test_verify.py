"""gpustack verify on a real API server: what was applied is what is rendered, and what is amiss is named."""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components.monitoring.test_prometheus import prometheus
from tests.control_plane.actors import labels
from tests.control_plane.api import Api, ApiError
from tests.control_plane.cluster import ROOT, ControlPlane, free_ports, wait_for
from tests.control_plane.conftest import NewControlPlane, NewKubelets
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import DIST, apply_cluster
from tests.control_plane.objects import pod
from tests.control_plane.pace import Pace
from tests.live.test_verify import documented
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

CLUSTER = "train-dgx"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The cluster as it is rendered, without nodes."""
    with ControlPlane(tmp_path_factory.mktemp("verify"), emulated=emulated) as plane:
        apply_cluster(plane.admin, DIST / CLUSTER)
        yield plane


def verified(plane: ControlPlane, kubeconfig: Path | None = None, *words: str) -> dict[str, list[str]]:
    """What is found, by id; by the administrator where no KUBECONFIG is given, and with further WORDS."""
    command = [
        sys.executable,
        "-m",
        "gpustack",
        "verify",
        CLUSTER,
        "--kubeconfig",
        str(kubeconfig or plane.kubeconfig("admin", plane.token)),
        *words,
    ]
    done = subprocess.run(
        [*command, "--format", "json"], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 2}, done.stdout[:900]
    found: dict[str, list[str]] = {}
    each: dict[str, Any]
    for each in json.loads(done.stdout)["findings"]:
        found.setdefault(each["rule"], []).append(each["what"])
    return found


def test_what_was_applied_is_what_is_rendered(plane: ControlPlane) -> None:
    """The API server fills in defaults and leaves out what is one: none of that is drift. What somebody changes is told
    by its field, what somebody deletes by its name."""
    before = verified(plane)
    assert not {"LIV001", "LIV101", "LIV102"} & before.keys()
    name, space = "nvidia-device-plugin-daemonset", "gpu-operator"
    patch = {"spec": {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}}
    plane.admin.patch("DaemonSet", name, patch, space)
    plane.admin.delete("ConfigMap", "nvidia-container-toolkit-entrypoint", space)
    after = verified(plane)
    (changed,) = after["LIV102"]
    assert f"DaemonSet {space}/{name}: spec.template.spec.priorityClassName is system-cluster-critical" in changed
    assert after["LIV101"] == [f"ConfigMap {space}/nvidia-container-toolkit-entrypoint is not there"]


def test_a_version_that_is_emulated(new_control_plane: NewControlPlane) -> None:
    """An API server of 1.37 that acts as 1.34, which the policy says, counts as 1.34; one that acts as 1.36 is told."""
    older = new_control_plane(emulated="1.34", controllers=False)
    assert "LIV105" not in verified(older)
    (told,) = verified(new_control_plane(emulated="1.36", controllers=False))["LIV105"]
    assert re.fullmatch(r"the API server emulates 1\.36 \(v1\.37\.\d+\); the policy says 1\.34", told)


def test_the_documented_account_sees_everything(plane: ControlPlane) -> None:
    """It finds what an administrator finds, and may neither read a Secret nor write."""
    for body in documented():
        plane.admin.create(body)
    account = plane.account("gpustack-verify", "gpu-operator")
    assert verified(plane, account) == verified(plane)
    token = yaml.safe_load(account.read_text("utf-8"))["users"][0]["user"]["token"]
    theirs = Api(plane.port, str(plane.ca), token)
    for refused in (
        lambda: theirs.list("Secret", "gpu-operator"),
        lambda: theirs.patch("Node", "x", {"metadata": {"labels": {"a": "b"}}}),
        lambda: theirs.delete("ConfigMap", "nvidia-container-toolkit-entrypoint", "gpu-operator"),
    ):
        with pytest.raises(ApiError) as error:
            refused()
        assert error.value.status == 403
    theirs.close()


def here() -> str:
    """An address of this machine that the API server's proxy doesn't refuse, as it does that of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))
        return str(one.getsockname()[0])


def serve(plane: ControlPlane, space: str, name: str, address: str) -> None:
    """A Service NAME, and a pod that is said to be at ADDRESS: the proxy goes to addresses of pods alone."""
    host, _, port = address.partition(":")
    if not plane.admin.list("Node", fields="metadata.name=elsewhere"):
        plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
    plane.admin.create(pod(name, space, labels={"app": name}, nodeName="elsewhere"))
    status = {"podIP": host, "podIPs": [{"ip": host}], "phase": "Running"}
    status |= {"conditions": [{"type": "Ready", "status": "True"}]}
    plane.admin.patch("Pod", name, {"status": status}, space, subresource="status")
    ports = {"selector": {"app": name}, "ports": [{"name": "web", "port": int(port)}]}
    where = {"name": name, "namespace": space}
    plane.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": where, "spec": ports})


def answers(plane: ControlPlane, *asked: str) -> bool:
    """Whether the Prometheus that is ASKED does."""
    return "LIV804" not in verified(plane, None, *asked)


def test_a_prometheus_is_asked_by_the_proxy(plane: ControlPlane, tmp_path: Path) -> None:
    """A real one: with the rules as rendered nothing lacks, without them they are named; a Service that isn't there
    and a login that may not use the proxy are told as that."""
    rule = "monitoring/prometheusrule-gpustack-reconciler-alerts.yaml"
    rendered = yaml.safe_load((DIST / CLUSTER / rule).read_text(encoding="utf-8"))["spec"]
    space = plane.namespace("monitoring")
    for name, rules in (("whole", rendered), ("without", {"groups": []})):
        folder = tmp_path / name
        folder.mkdir()
        with prometheus(folder, rules, "127.0.0.1:9", here()) as address:
            serve(plane, space, name, address)
            asked = ("--prometheus", f"{space}/{name}:web")
            wait_for(functools.partial(answers, plane, *asked), "it answers", 60, 1)
            told = verified(plane, None, *asked).get("LIV801", [])
        number = len(rendered["groups"][0]["rules"])
        assert [each.partition(": ")[2].partition(":")[0] for each in told] == (
            [f"{number} of {number} rules are not loaded"] if name == "without" else []
        )
    (gone,) = verified(plane, None, "--prometheus", f"{space}/other:web")["LIV804"]
    assert "other" in gone
    somebody: dict[str, Any] = {"metadata": {"name": "somebody", "namespace": space}}
    plane.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", **somebody})
    account = plane.account("somebody", space)
    assert "forbidden" in " ".join(verified(plane, account, "--prometheus", f"{space}/whole:web")["LIV804"]).lower()


NODES = 50
SPEC: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.36", "platform": "kubeadm-bare-metal-preinstalled-driver-and-toolkit"},
    "nfd": {"enabled": False},
    **{section: {"enabled": True} for section in ("devicePlugin", "gfd", "dcgmExporter", "migManager")},
    "nodePools": [
        {
            "name": "training",
            "gpuProduct": "NVIDIA-A100-SXM4-80GB",
            "gpusPerNode": 8,
            "count": NODES,
            "nodeSelector": {"pool": "t"},
        }
    ],
}
FLEET = ("one", "two", "three")


def config(folder: Path, planes: Mapping[str, ControlPlane]) -> Path:
    """A kubeconfig with a context for each of PLANES, that of two under another name."""
    names = {name: f"{name}-context" if name == "two" else name for name in planes}
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": f"https://127.0.0.1:{plane.port}", "certificate-authority": str(plane.ca)},
            }
            for name, plane in planes.items()
        ],
        "users": [{"name": name, "user": {"token": plane.token}} for name, plane in planes.items()],
        "contexts": [{"name": names[name], "context": {"cluster": name, "user": name}} for name in planes],
    }
    target = folder / "fleet.kubeconfig"
    target.write_text(yaml.safe_dump(body), encoding="utf-8")
    return target


def test_a_fleet_side_by_side(
    project: Project, emulated: str, new_control_plane: NewControlPlane, new_kubelets: NewKubelets, tmp_path: Path
) -> None:
    """Three clusters of 50 nodes are verified together, each by its own context, with nothing found, in 10 s on 2 cores
    (twice that is let pass). A cordoned node is told of its cluster alone, and a cluster that doesn't answer is a
    finding that stops no other."""
    planes = {}
    for name in FLEET:
        project.policy(name, **{**SPEC, "cluster": {**SPEC["cluster"], "kubernetesVersion": emulated}})
        assert project.run("render", name).code == 0
        planes[name] = new_control_plane()
        apply_cluster(planes[name].admin, project.folder / "dist" / name)
    for name, plane in planes.items():
        own = {**labels.deployed("mig-manager"), "pool": "t"}
        nodes = new_kubelets(plane, Pace(start=0.2))
        nodes.add(*(Machine(f"{name}-{n}", labels=own, host_driver=True, toolkit=True) for n in range(NODES)))
    words = ("verify", *FLEET, "--kubeconfig", config(tmp_path, planes), "--context", "two=two-context")
    wait_for(lambda: project.spawn(*words).code == 0, "all is well everywhere", 600, 10)
    began = time.monotonic()
    ran = project.spawn(*words)
    took = time.monotonic() - began
    assert (ran.code, took < 20) == (0, True)
    assert ran.out.splitlines() == [
        "3 clusters: nothing to say",
        "       errors  warnings  notes",
        *(f"{name:<5}       0         0      0" for name in FLEET),
    ]
    planes["one"].admin.patch("Node", "one-7", {"spec": {"unschedulable": True}})
    planes["three"].port = free_ports(1)[0]
    config(tmp_path, planes)
    told = project.spawn(*words, "--format", "json").json
    found = {(each["rule"], *each["clusters"]) for each in told["findings"]}
    assert found == {("LIV205", "one"), ("LIV003", "three")}
