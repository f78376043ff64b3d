"""NVIDIA's own config manager, told what we render, at a real API server: a node's label chooses its configuration.

It runs where `tools/hardware.sh` has built it (it needs no GPU, and four minutes of building that nobody else needs).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import DevicePlugin
from gpustack.components.plugin import plugin_inputs
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import render, spec
from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.process import Program

MANAGER = ROOT / ".tools/hardware-v0.19.0/bin/config-manager"
LABEL = "nvidia.com/device-plugin.config"
FOUR = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
TEXTS = {"four": FOUR, "plain": "version: v1\n", "default": "version: v1\n"}

pytestmark = pytest.mark.skipif(not MANAGER.exists(), reason="tools/hardware.sh hasn't built NVIDIA's config manager")


def policy(default: str, label: str) -> ClusterPolicySpec:
    """A policy with the configurations TEXTS and one pool, whose nodes have the LABEL, "" for none."""
    selector = {LABEL: label} if label else {}
    pool = {"name": "a", "os": "ubuntu22.04", "gpusPerNode": 2, "nodeSelector": selector}
    config = {"name": "c", "data": TEXTS, **({"default": default} if default else {})}
    return spec(nodePools=[pool], devicePlugin={"version": "v0.19.0", "config": config})


def rendered(of: ClusterPolicySpec, container: str) -> dict[str, str]:
    """The environment of the config manager in the device plugin's rendered pods."""
    inputs = plugin_inputs.device_plugin(resolve(of))
    assert inputs is not None
    (body,) = (each for key, each in render(DevicePlugin, inputs).items() if key.startswith("DaemonSet/"))
    pod: dict[str, Any] = body["spec"]["template"]["spec"]
    every = [*pod["initContainers"], *pod["containers"]]
    (found,) = (each for each in every if each["name"] == container)
    return {each["name"]: each.get("value", "") for each in found["env"]}


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node of the API server, which no kubelet runs."""
    control_plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "chooses"}})
    yield "chooses"
    control_plane.admin.delete("Node", "chooses")


def start(plane: ControlPlane, node: str, folder: Path, env: dict[str, str], **changes: str) -> Program:
    """The config manager with ENV, in the folders of a test."""
    available = folder / "available"
    available.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        (available / name).write_text(text)
    kubeconfig = plane.kubeconfig("admin", plane.token)
    own = {"NODE_NAME": node, "KUBECONFIG": str(kubeconfig), "PATH": os.defpath, **changes}
    places = {"CONFIG_FILE_SRCDIR": str(available), "CONFIG_FILE_DST": str(folder / "config.yaml")}
    return Program("config-manager", [MANAGER], folder, {**env, **places, **own})


def ended(program: Program) -> int:
    """Its exit status, once it is there."""
    wait_for(lambda: not program.running, "the config manager has ended", 60)
    return int(program.process.wait())


def chosen_in(folder: Path) -> str:
    """The configuration that the file in FOLDER is, "" where there is none."""
    link = folder / "config.yaml"
    return link.readlink().name if link.is_symlink() else ""


def labelled(plane: ControlPlane, node: str, label: str | None) -> None:
    """Give NODE the LABEL, or take it away."""
    plane.admin.patch("Node", node, {"metadata": {"labels": {LABEL: label}}})


@pytest.mark.parametrize(
    ("default", "label", "chosen", "gpus"),
    [
        ("plain", "four", "four", 8),
        ("four", None, "four", 8),
        ("four", "plain", "plain", 2),
        ("", "four", "four", 8),
        ("", None, "null", 2),
    ],
)
def test_what_a_node_gets(
    control_plane: ControlPlane, node: str, tmp_path: Path, default: str, label: str | None, chosen: str, gpus: int
) -> None:
    """The init container takes the default whatever the label says; the sidecar then goes by the label. Without both
    nothing is shared, even where a configuration is called `default`. Capacity counts what it comes to."""
    of = policy(default, label or "")
    labelled(control_plane, node, label)
    assert ended(start(control_plane, node, tmp_path, rendered(of, "config-manager-init"))) == 0
    assert chosen_in(tmp_path) == (default or "null")
    sidecar = start(control_plane, node, tmp_path, rendered(of, "config-manager"), SEND_SIGNAL="false")
    wait_for(lambda: chosen_in(tmp_path) == chosen, f"{chosen} is chosen", 60)
    sidecar.stop()
    assert [pool.per_node for pool in resolve(of).capacity] == [{"nvidia.com/gpu": gpus}]


@pytest.mark.parametrize("label", ["four", None])
def test_a_default_that_there_isnt(control_plane: ControlPlane, node: str, tmp_path: Path, label: str | None) -> None:
    """No plugin starts, whatever the node's label says: the init container fails. Capacity has no number (B29)."""
    of = policy("other", label or "")
    labelled(control_plane, node, label)
    init = start(control_plane, node, tmp_path, rendered(of, "config-manager-init"))
    assert ended(init) != 0
    assert "does not exist" in init.tail()
    assert chosen_in(tmp_path) == ""
    assert [pool.per_node for pool in resolve(of).capacity] == [{}]


@pytest.mark.parametrize("default", ["plain", ""])
def test_a_label_that_there_isnt(control_plane: ControlPlane, node: str, tmp_path: Path, default: str) -> None:
    """The sidecar fails and names it, and the plugin goes on with the default. Lint refuses it, capacity is silent."""
    of = policy(default, "other")
    labelled(control_plane, node, "other")
    assert ended(start(control_plane, node, tmp_path, rendered(of, "config-manager-init"))) == 0
    sidecar = start(control_plane, node, tmp_path, rendered(of, "config-manager"), SEND_SIGNAL="false")
    assert ended(sidecar) != 0
    assert "specified config other does not exist" in sidecar.tail()
    assert chosen_in(tmp_path) == (default or "null")
    assert [pool.per_node for pool in resolve(of).capacity] == [{}]


def test_a_label_that_changes(control_plane: ControlPlane, node: str, tmp_path: Path) -> None:
    """The sidecar follows the node's label while it runs. (It signals the plugin in the pod's process namespace, and a
    test has none.)"""
    env = rendered(policy("plain", ""), "config-manager")
    program = start(control_plane, node, tmp_path, env, SEND_SIGNAL="false")
    wait_for(lambda: chosen_in(tmp_path) == "plain", "the default is chosen", 60)
    labelled(control_plane, node, "four")
    wait_for(lambda: chosen_in(tmp_path) == "four", "the label is followed", 60)
    labelled(control_plane, node, None)
    wait_for(lambda: chosen_in(tmp_path) == "plain", "the default is back", 60)
    program.stop()
