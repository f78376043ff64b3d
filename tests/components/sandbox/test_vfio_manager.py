"""The vfio-manager (operator.md 7.14; earlier releases: operator-releases.md 6.10)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog.traits import Traits
from gpustack.cluster.resolve import resolve
from gpustack.components import VfioManager
from gpustack.components.driver.driver_settings_inputs import Manager
from gpustack.components.sandbox.sandbox_inputs import VfioManagerInputs, vfio_manager
from gpustack.components.scripts import script
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec
from tests.components.sandbox.common import machines

NAME = "nvidia-vfio-manager"
V26_3 = Traits.of("v26.3.3")
V25_10 = Traits.of("v25.10.1")


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the manager's inputs."""
    inputs = {"image": "manager:1", "manager": Manager(image="driver-manager:1"), **fields}
    return render(VfioManager, VfioManagerInputs(common=common(**(changes or {})), **inputs))


def pod(changes: dict[str, Any] | None = None, **fields: Any) -> Body:
    """The manager's pod."""
    return pod_of(rendered(changes, **fields), NAME)


def pre_stop(body: Body) -> list[str]:
    """What the manager runs at its end."""
    found: list[str] = container(body, NAME)["lifecycle"]["preStop"]["exec"]["command"]
    return found


def test_pods_are_selected_by_name() -> None:
    """Selector and pod label are name=, the DaemonSet's own label is app=; labels of the policy don't replace it."""
    body = rendered({"labels": {"name": "mine", "team": "ml"}})[f"DaemonSet/{NAME}"]
    assert body["metadata"]["labels"]["app"] == NAME
    assert body["spec"]["selector"]["matchLabels"] == {"name": NAME}
    assert body["spec"]["template"]["metadata"]["labels"] == {"name": NAME, "team": "ml"}


def test_the_node_is_cleared_first_and_nobody_is_evicted() -> None:
    """The driver manager unloads the driver of containers, with eviction and drain off unless the policy says so."""
    first = container(pod(), "k8s-driver-manager")
    assert env(first) | {"ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"} == env(first)
    told = Manager(image="driver-manager:1", env=(("ENABLE_GPU_POD_EVICTION", "true"),))
    assert env(container(pod(manager=told), "k8s-driver-manager"))["ENABLE_GPU_POD_EVICTION"] == "true"


def test_gpus_are_given_back_at_the_end() -> None:
    """The main container binds all GPUs and unbinds them when it ends (7.14)."""
    body = pod()
    assert "vfio-manage bind --all" in container(body, NAME)["args"][0]
    assert pre_stop(body) == ["/bin/sh", "-c", "vfio-manage unbind --all"]
    assert env(container(body, NAME)) == {"HOST_ROOT": "/host"}
    assert mounts(body, NAME)["/lib/modules"]["readOnly"]


def test_v26_3_names_a_program_that_cannot_exist() -> None:
    """As that release's operator: one word with blanks, so GPUs stay bound (6.10)."""
    assert pre_stop(pod({"traits": V26_3})) == ["vfio-manage unbind --all"]


def test_v25_10_runs_a_script() -> None:
    """The script comes from a ConfigMap, mounted executable; no HOST_ROOT and no kernel modules (6.10)."""
    bodies = rendered({"traits": V25_10})
    found = mounts(pod_of(bodies, NAME), NAME)["/bin/vfio-manage.sh"]["from"]["configMap"]
    assert found == {"name": NAME, "defaultMode": 0o700}
    assert bodies[f"ConfigMap/{NAME}"]["data"] == {"vfio-manage.sh": script("vfio-manage")}
    assert env(container(pod_of(bodies, NAME), NAME)) == {}
    assert pre_stop(pod_of(bodies, NAME)) == ["/bin/sh", "-c", "/bin/vfio-manage.sh unbind --all"]
    assert f"ConfigMap/{NAME}" not in rendered()


def test_resources_of_the_policy_replace_the_built_in_ones() -> None:
    """Without a policy's it asks for memory of its own; with one, the init container gets them too (5.2)."""
    assert container(pod(), NAME)["resources"]["limits"] == {"memory": "200Mi"}
    mine = {"limits": {"cpu": "1"}}
    assert {name: container(pod(resources=mine), name)["resources"] for name in (NAME, "k8s-driver-manager")} == {
        NAME: mine,
        "k8s-driver-manager": mine,
    }


def test_rights() -> None:
    """Those of the driver manager, which evicts only where the policy tells it to; versions of OpenShift are read there
    alone."""
    found = grants(rendered()[f"ClusterRole/{NAME}"])
    assert {"nodes:patch", "pods:list"} <= found
    assert "pods/eviction:create" not in found
    told = Manager(image="manager:1", env=(("ENABLE_AUTO_DRAIN", "true"),))
    assert "pods/eviction:create" in grants(rendered(manager=told)[f"ClusterRole/{NAME}"])
    assert not any(right.startswith("clusterversions") for right in found)
    assert f"Role/{NAME}" not in rendered()
    bodies = rendered({"openshift": True})
    assert f"SecurityContextConstraints/{NAME}" in bodies
    assert "clusterversions:get" in grants(bodies[f"ClusterRole/{NAME}"])


def test_when_it_is_there() -> None:
    """With sandboxWorkloads on, whatever the pools serve, unless it is switched off (1.3); secrets in order (4)."""
    assert vfio_manager(resolve(spec())) is None
    assert vfio_manager(resolve(machines(vfioManager={"enabled": False}))) is None
    section = {"imagePullSecrets": ["own"], "driverManager": {"imagePullSecrets": ["first"]}}
    found = vfio_manager(resolve(machines(vfioManager=section)))
    assert found is not None
    assert found.pull_secrets == ("first", "own")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with a GPU of the driver, one with displays and audio, one of no driver, and a network card."""
    for driver in ("nvidia", "vfio-pci", "snd"):
        (tmp_path / "drivers" / driver).mkdir(parents=True)
    for address, vendor, kind, driver in (
        ("0000:01:00.0", "0x10de", "0x030200", "nvidia"),
        ("0000:02:00.0", "0x10de", "0x030000", "vfio-pci"),
        ("0000:02:00.1", "0x10de", "0x040300", "snd"),
        ("0000:03:00.0", "0x10de", "0x030200", ""),
        ("0000:04:00.0", "0x15b3", "0x020000", "snd"),
    ):
        device = tmp_path / "devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")
        if driver:
            (device / "driver").symlink_to(tmp_path / "drivers" / driver)
    audio = tmp_path / "devices" / "0000:02:00.0" / "consumer:pci:0000:02:00.1"
    audio.symlink_to(tmp_path / "devices" / "0000:02:00.1")
    return tmp_path


def manage(node: Path, *words: str) -> int:
    """Run the script on NODE; its exit code."""
    text = script("vfio-manage").replace("/sys/bus/pci", str(node)).replace("chroot /host modprobe", ": modprobe")
    return subprocess.run(["sh", "-c", text, "vfio-manage.sh", *words], capture_output=True, check=False).returncode


def test_the_script_binds_gpus_and_what_belongs_to_them(node: Path) -> None:
    """All GPUs, with the functions that depend on them, go to vfio-pci; other vendors' devices stay as they are."""
    assert manage(node, "bind", "--all") == 0
    override = {path.parent.name: path.read_text() for path in node.glob("devices/*/driver_override")}
    assert override == dict.fromkeys(("0000:01:00.0", "0000:02:00.1", "0000:03:00.0"), "vfio-pci\n")
    assert (node / "drivers/nvidia/unbind").read_text() == "0000:01:00.0\n"


def test_the_script_leaves_gpus_to_no_driver(node: Path) -> None:
    """Unbinding takes each from its driver; a wrong word is refused."""
    assert manage(node, "unbind", "--all") == 0
    assert (node / "drivers/vfio-pci/unbind").read_text() == "0000:02:00.0\n"
    assert manage(node, "bend", "--all") == 2
