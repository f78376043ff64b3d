"""The simulated operands do what the real ones do, their known defects included: facts/reconciler.md 2.13 to 3.3.

A reconciler that is tested against them is worth what they are worth. The manifests are those of dist/lab-a100; nodes
are labelled here by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.control_plane.actors import driver, labels, mig, surroundings
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.api import Api, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.conftest import running
from tests.control_plane.kubelet import Kubelets
from tests.control_plane.machine import PCI_LABEL, Machine
from tests.control_plane.manifests import DIST, apply_cluster
from tests.control_plane.objects import is_ready, pod, ready_pods

NS = "gpu-operator"
VALIDATOR = "nvidia-operator-validator"
DRIVER = "nvidia-driver-daemonset"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane with the whole stack of dist/lab-a100, and no node yet. Nobody keeps the file of the MIG managers
    there as the reconciler does: it has all layouts from the start.
    """
    with ControlPlane(tmp_path_factory.mktemp("stack"), emulated=emulated) as plane:
        apply_cluster(plane.admin, DIST / "lab-a100")
        whole = plane.admin.get("ConfigMap", "gpustack-mig-parted-config", NS)["data"]
        plane.admin.patch("ConfigMap", "gpustack-mig-layouts", {"data": whole}, namespace=NS)
        yield plane


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[Kubelets]:
    """Simulated nodes on it."""
    with running(gpu_kubelets(plane.admin)) as started:
        yield started


@pytest.fixture
def api(plane: ControlPlane) -> Api:
    """The API server, as admin."""
    return plane.admin


@pytest.fixture
def machine(api: Api, nodes: Kubelets) -> Machine:
    """A node on which the whole stack is ready."""
    made = Machine(f"gpu-{next(NUMBERS)}", labels=labels.deployed("mig-manager"))
    nodes.add(made)
    settled(api, made)
    return made


def settled(api: Api, machine: Machine) -> Body:
    """Wait until the node's validator is ready; the validator's pod."""
    return wait_for(lambda: ready_pods(api, NS, VALIDATOR, node=machine.name), f"{machine.name} is validated")[0]


def on_node(api: Api, app: str, machine: Machine) -> list[Body]:
    """The pods of an operand on a node."""
    return api.list("Pod", NS, labels=f"app={app}", fields=f"spec.nodeName={machine.name}")


def node_label(api: Api, machine: Machine, key: str) -> str:
    """A label of the node, "" where absent."""
    return str(api.get("Node", machine.name)["metadata"]["labels"].get(key, ""))


def set_label(api: Api, machine: Machine, key: str, value: str | None) -> None:
    """Label the node."""
    api.patch("Node", machine.name, {"metadata": {"labels": {key: value}}})


def allocatable(api: Api, machine: Machine) -> dict[str, str]:
    """The extended resources that the node has for pods; those of which there are 0 are as good as absent."""
    found: dict[str, str] = api.get("Node", machine.name)["status"]["allocatable"]
    return {name: count for name, count in found.items() if name.startswith("nvidia.com/") and count != "0"}


def restart_driver(api: Api, machine: Machine, digest: str) -> None:
    """Give the driver another content, and delete its pod on the node."""
    env = [{"name": "DRIVER_CONFIG_DIGEST", "value": digest}]
    spec = {
        "initContainers": [{"name": driver.MANAGER, "env": env}],
        "containers": [{"name": driver.CONTAINER, "env": env}],
    }
    patch = {"spec": {"template": {"spec": spec}}}
    changed = api.patch("DaemonSet", DRIVER, patch, NS, how="application/strategic-merge-patch+json")
    wait_for(
        lambda: api.get("DaemonSet", DRIVER, NS)["status"]["observedGeneration"] == changed["metadata"]["generation"],
        "the controller has seen the new driver",
    )
    (old,) = on_node(api, DRIVER, machine)
    api.delete("Pod", old["metadata"]["name"], NS, uid=old["metadata"]["uid"])


def gpu_job(api: Api, machine: Machine) -> Body:
    """A running pod with a GPU on the node."""
    name = f"job-{next(NUMBERS)}"
    api.create(pod(name, "default", gpus=1, nodeSelector={"kubernetes.io/hostname": machine.name}))
    wait_for(lambda: is_ready(api.get("Pod", name, "default")), f"{name} runs")
    return api.get("Pod", name, "default")


def manager_status(api: Api, machine: Machine) -> Body:
    """The state of driver-manager's container on the node."""
    pods = on_node(api, DRIVER, machine)
    statuses = pods[0].get("status", {}).get("initContainerStatuses", []) if pods else []
    found: Body = statuses[0] if statuses else {"restartCount": 0, "state": {}}
    return found


def test_stack_comes_up(api: Api, machine: Machine) -> None:
    """Labelled, a node gets everything in order: driver, toolkit, plugin, validator; GPUs and GFD's labels appear."""
    assert allocatable(api, machine) == {"nvidia.com/gpu": "8"}
    wait_for(lambda: node_label(api, machine, "nvidia.com/mig.capable") == "true", "GFD has labelled the node")
    assert node_label(api, machine, "nvidia.com/gpu.product") == "NVIDIA-A100-SXM4-80GB"
    gpu_job(api, machine)


def test_driver_is_not_replaced_under_gpu_pods(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """Where a controller does upgrades (L31), driver-manager refuses while a GPU is in use: it fails again and again,
    and each time the operands are paused and brought back (D6, D11). The pod gone, it goes through.
    """
    api.patch("Node", machine.name, {"metadata": {"annotations": {driver.UPGRADE_ENABLED: "true"}}})
    job = gpu_job(api, machine)
    before = settled(api, machine)["metadata"]["uid"]
    restart_driver(api, machine, "new-under-pods")
    wait_for(lambda: manager_status(api, machine)["restartCount"] >= 2, "driver-manager has failed twice")
    assert is_ready(api.get("Pod", job["metadata"]["name"], "default"))
    api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    wait_for(lambda: machine.driver == "new-under-pods", "the new driver is loaded")
    assert settled(api, machine)["metadata"]["uid"] != before
    assert node_label(api, machine, f"{labels.DEPLOY}device-plugin") == "true"


def test_driver_manager_evicts_and_uncordons(api: Api, machine: Machine) -> None:
    """Without that annotation it evicts GPU pods by itself, and uncordons the node, whoever cordoned it (D10, P1)."""
    job = gpu_job(api, machine)
    surroundings.cordon(api, machine)
    restart_driver(api, machine, "new-by-itself")
    wait_for(lambda: api.find("Pod", job["metadata"]["name"], "default") is None, "the pod is evicted")
    wait_for(lambda: machine.driver == "new-by-itself", "the new driver is loaded")
    settled(api, machine)
    assert "unschedulable" not in api.get("Node", machine.name)["spec"]


def test_same_digest_disturbs_nobody(api: Api, machine: Machine) -> None:
    """A restart of the same driver in use keeps modules, operands and GPU pods (D8)."""
    job, before = gpu_job(api, machine), settled(api, machine)
    digest = machine.driver
    assert digest is not None
    (old,) = on_node(api, DRIVER, machine)
    api.delete("Pod", old["metadata"]["name"], NS)
    wait_for(
        lambda: [
            one
            for one in ready_pods(api, NS, DRIVER, node=machine.name)
            if one["metadata"]["uid"] != old["metadata"]["uid"]
        ],
        "the driver pod is new and ready",
    )
    assert manager_status(api, machine)["restartCount"] == 0
    assert settled(api, machine)["metadata"]["uid"] == before["metadata"]["uid"]
    assert is_ready(api.get("Pod", job["metadata"]["name"], "default"))


def test_driver_image_that_is_not_there(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """ImagePullBackOff: the pod is Pending, no restart is counted (U25), and it goes on when the image is there."""
    nodes.change(machine, pull_fails=True)
    restart_driver(api, machine, "new-image")
    wait_for(
        lambda: manager_status(api, machine)["state"].get("waiting", {}).get("reason") == "ImagePullBackOff",
        "the pull fails",
    )
    assert on_node(api, DRIVER, machine)[0]["status"]["phase"] == "Pending"
    assert manager_status(api, machine)["restartCount"] == 0
    nodes.change(machine, pull_fails=False)
    wait_for(lambda: machine.driver == "new-image", "the new driver is loaded")
    settled(api, machine)


def test_mig_change(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """A new mig.config: pending, operands paused and back, other resources, success; until then the old success."""
    ask(api, machine, "all-disabled")
    before = settled(api, machine)["metadata"]["uid"]
    nodes.pace.mig_notice = 2
    nodes.change(machine, mig_hangs=True)
    set_label(api, machine, mig.CONFIG, "all-1g.10gb")
    assert node_label(api, machine, mig.STATE) == "success"  # M3: of the command before
    wait_for(lambda: node_label(api, machine, mig.STATE) == "pending", "the manager works")
    wait_for(lambda: not on_node(api, "nvidia-device-plugin-daemonset", machine), "the plugin is gone")
    assert allocatable(api, machine) == {}
    nodes.change(machine, mig_hangs=False)
    wait_for(lambda: node_label(api, machine, mig.STATE) == "success", "the manager is done")
    assert machine.geometry == {"1g.10gb": 56}
    assert settled(api, machine)["metadata"]["uid"] != before
    wait_for(lambda: allocatable(api, machine) == {"nvidia.com/mig-1g.10gb": "56"}, "the slices are there")
    ask(api, machine, "all-disabled")
    wait_for(lambda: allocatable(api, machine) == {"nvidia.com/gpu": "8"}, "the GPUs are whole again")


def ask(api: Api, machine: Machine, config: str, state: str = "success") -> None:
    """Ask for a MIG configuration, and wait until the manager has come to STATE for it."""
    set_label(api, machine, mig.STATE, None)
    set_label(api, machine, mig.CONFIG, config)
    wait_for(lambda: node_label(api, machine, mig.STATE) == state, f"{config}: {state}")


def test_mig_failure_after_a_success_leaves_operands_paused(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """M14: a process that fails first brings operands back; after a success it does not. A restart heals that."""
    plugin = f"{labels.DEPLOY}device-plugin"
    nodes.change(machine, mig_fails=True)
    ask(api, machine, "all-1g.10gb", "failed")
    assert node_label(api, machine, plugin) == "true"
    nodes.change(machine, mig_fails=False)
    ask(api, machine, "all-2g.20gb")
    nodes.change(machine, mig_fails=True)
    ask(api, machine, "all-3g.40gb", "failed")
    assert node_label(api, machine, plugin) == labels.MIG_PAUSE
    nodes.change(machine, mig_fails=False)
    (manager,) = on_node(api, "nvidia-mig-manager", machine)
    api.delete("Pod", manager["metadata"]["name"], NS)
    wait_for(lambda: node_label(api, machine, mig.STATE) == "success", "the new process applies it")
    assert node_label(api, machine, plugin) == "true"


def test_mig_wait_that_fails_stays_pending(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """M13: pending for good, operands paused, no retry; only a restart of the manager's pod helps."""
    nodes.change(machine, mig_wait_fails=True)
    ask(api, machine, "all-1g.10gb", "pending")
    wait_for(lambda: node_label(api, machine, f"{labels.DEPLOY}dcgm") == labels.MIG_PAUSE, "operands are paused")
    nodes.change(machine, mig_wait_fails=False)
    wait_for(lambda: not on_node(api, "nvidia-device-plugin-daemonset", machine), "the plugin is gone")
    assert node_label(api, machine, mig.STATE) == "pending"
    (manager,) = on_node(api, "nvidia-mig-manager", machine)
    api.delete("Pod", manager["metadata"]["name"], NS)
    wait_for(lambda: node_label(api, machine, mig.STATE) == "success", "the new process applies it")


def test_reboot(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """A reboot forgets the driver's modules and the MIG geometry (M12); everything comes back, with another boot id."""
    ask(api, machine, "all-1g.10gb")
    settled(api, machine)
    boot = api.get("Node", machine.name)["status"]["nodeInfo"]["bootID"]
    nodes.reboot(machine)
    assert machine.boots == 2
    wait_for(lambda: machine.geometry == {"1g.10gb": 56}, "the geometry is back")
    settled(api, machine)
    node = api.get("Node", machine.name)
    assert is_ready(node)
    assert node["status"]["nodeInfo"]["bootID"] != boot


def test_gfd_labels_vanish(api: Api, nodes: Kubelets, machine: Machine) -> None:
    """GFD's labels go with GFD (L29), and come back with it."""
    capable = "nvidia.com/mig.capable"
    wait_for(lambda: node_label(api, machine, capable) == "true", "GFD has labelled the node")
    nodes.change(machine, gfd_gone=True)
    wait_for(lambda: node_label(api, machine, capable) == "", "the label is gone")
    nodes.change(machine, gfd_gone=False)
    wait_for(lambda: node_label(api, machine, capable) == "true", "GFD has labelled the node again")


def test_node_feature_discovery_and_autoscaler(api: Api, nodes: Kubelets) -> None:
    """An autoscaler's nodes are bare and Ready; labels of node feature discovery come, go and come back."""
    added = surroundings.scale_up(nodes, "scaled", 3)
    assert all(is_ready(api.get("Node", one.name)) for one in added)
    for act, there in (
        (surroundings.set_nfd_labels, 3),
        (surroundings.lose_nfd_labels, 0),
        (surroundings.set_nfd_labels, 3),
    ):
        act(api, *added)
        assert len(api.list("Node", labels=f"{PCI_LABEL}=true")) == there
