"""What runs on a machine: the driver manager and the MIG manager, as reconciler.md 2.13 and 3 have them, defects
included.

Nothing here is seen by the program but what it writes into the API.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpustack.api import keys
from gpustack.reconciler.memory.server import Document, stamp
from gpustack.reconciler.shell.cluster import NODES, PODS
from tests.reconciler.world.stack import FEATURES, LAYOUTS, MIG_MANAGER, OPERANDS, PLUGIN, VALIDATOR, base

if TYPE_CHECKING:
    from tests.reconciler.world.world import World

BY_DRIVER = ("operator-validator", "device-plugin", "gpu-feature-discovery", "mig-manager")
"""What the driver manager pauses (reconciler.md D5)."""
BY_MIG = ("device-plugin", "gpu-feature-discovery")
"""What the MIG manager pauses (M5)."""
PATIENCE = 300.0
"""Seconds for which a component is waited for."""
RETRY = 20.0
INSTALL = 60.0
APPLY = 20.0


@dataclass
class Task:
    """What a pod is at: for which pod, which stage, since when (in seconds that have really passed)."""

    pod: str = ""
    stage: str = ""
    since: float = 0.0
    value: str | None = None
    restarted: bool = False
    """M14: set by the first success of the process, and never cleared."""
    file: dict[str, str] = field(default_factory=dict)
    """Contents of layouts as the pod's mounted file has them, which the kubelet refreshes late."""
    read: float = -math.inf


@dataclass
class Machine:
    """A machine and what is on it."""

    name: str
    id: str
    capable: bool = True
    loaded: str = ""
    """The digest of the driver that is loaded."""
    geometry: tuple[str, str] = ("all-disabled", "")
    """The MIG layout and the digest of its content."""
    cut: tuple[str, str] | None = None
    """The name by which the geometry was last made, and its content, as long as that is the node's label."""
    faults: set[str] = field(default_factory=set)
    """"driver", "mig", "validator": what does not work here. "stuck": a MIG change that ends in M13.
    "count": a GPU less is offered than there is. "silent": none is, as with DRA. "registry":
    the one that has the driver's image gives no answer. "pull", "slow": images that are to be pulled beforehand are not
    to be had, or take for ever."""
    driver: Task = field(default_factory=Task)
    mig: Task = field(default_factory=Task)


def run_driver(world: World, machine: Machine, pod: Document) -> None:
    """One look at the driver pod: driver manager, then installation."""
    uid, task = pod["metadata"]["uid"], machine.driver
    if task.pod != uid:
        machine.driver = task = Task(uid, "start", world.elapsed)
    digest = _digest(pod)
    if "registry" in machine.faults and task.stage == "start":
        world.set_status(pod, init="ImagePullBackOff")
    elif task.stage == "start":
        if machine.loaded and machine.loaded != digest:
            pause(world, machine.name, BY_DRIVER, keys.PAUSED_FOR_DRIVER, over_absent=False)
            task.stage, task.since = "pausing", world.elapsed
        else:
            task.stage, task.since = "install", world.elapsed
    elif task.stage == "pausing":
        _unload(world, machine, task, pod)
    elif task.stage == "crashed" and world.elapsed - task.since >= RETRY:
        task.stage = "start"
        world.set_status(pod, init="running")
    elif task.stage == "install" and world.elapsed - task.since >= INSTALL:
        if "driver" in machine.faults:
            world.set_status(pod, main="CrashLoopBackOff")
        else:
            machine.loaded, task.stage = digest, "ready"
            world.set_status(pod, ready=True)


def _unload(world: World, machine: Machine, task: Task, pod: Document) -> None:
    """Wait for the paused components, refuse where a pod uses a GPU (D6, D11), else unload and set them going."""
    waits = any(world.operand(name, machine.name) for name in OPERANDS)
    if waits and world.elapsed - task.since < PATIENCE * 2:
        return
    if waits or any(True for _ in world.gpu_pods(machine.name)):
        restore(world, machine.name, BY_DRIVER, keys.PAUSED_FOR_DRIVER)
        task.stage, task.since = "crashed", world.elapsed
        world.set_status(pod, init="CrashLoopBackOff")
        return
    machine.loaded = ""
    restore(world, machine.name, BY_DRIVER, keys.PAUSED_FOR_DRIVER)
    task.stage, task.since = "install", world.elapsed


def run_puller(world: World, machine: Machine, pod: Document) -> None:
    """One look at the pod that pulls the driver's images: "pull" lets it fail, "slow" never come to an end."""
    ready = world.is_ready(pod)
    if "pull" in machine.faults and not ready:
        world.set_status(pod, main="ImagePullBackOff")
    elif not ready and "slow" not in machine.faults:
        world.set_status(pod, ready=True)


def run_mig(world: World, machine: Machine, pod: Document) -> None:
    """One look at the MIG manager's pod (M1 to M5, M13 to M15)."""
    uid, task = pod["metadata"]["uid"], machine.mig
    if task.pod != uid:
        machine.mig = task = Task(uid)
    if world.elapsed - task.read >= world.refresh:
        task.file, task.read = world.layouts(), world.elapsed
    value = world.labels(machine.name).get(keys.MIG_CONFIG, "")
    if task.stage == "" and value != task.value:
        task.value = value
        if value:
            task.stage, task.since = "assert", world.elapsed
        return
    if task.stage == "assert":
        _assert(world, machine, task)
    elif task.stage == "pausing":
        _pausing(world, machine, task)
    elif task.stage == "apply" and world.elapsed - task.since >= APPLY:
        _apply(world, machine, task)


def _assert(world: World, machine: Machine, task: Task) -> None:
    name = task.value or ""
    if name not in task.file or not machine.capable:
        world.label(machine.name, {keys.MIG_STATE: "failed"})
        task.stage = ""
    elif machine.geometry[0] == base(name) and machine.geometry[1] in {task.file[name], ""}:
        machine.geometry = (base(name), task.file[name])
        _succeed(world, machine, task)
    else:
        world.label(machine.name, {keys.MIG_STATE: "pending"})
        pause(world, machine.name, BY_MIG, keys.PAUSED_FOR_MIG, over_absent=True)
        task.stage, task.since = "pausing", world.elapsed


def _pausing(world: World, machine: Machine, task: Task) -> None:
    if "stuck" in machine.faults or world.elapsed - task.since >= PATIENCE:
        task.stage = ""  # M13: pending and paused for good
    elif not any(world.operand(name, machine.name) for name in (PLUGIN, FEATURES)):
        task.stage, task.since = "apply", world.elapsed


def _apply(world: World, machine: Machine, task: Task) -> None:
    name = task.value or ""
    if "mig" in machine.faults or name not in task.file or any(True for _ in world.gpu_pods(machine.name)):
        world.label(machine.name, {keys.MIG_STATE: "failed"})
        if not task.restarted:
            _unpause(world, machine)
        task.stage = ""
        return
    if machine.cut and machine.cut[0] == name and machine.cut[1] != task.file[name]:
        world.uncommanded.append(f"{machine.name} is cut by another {name} than before")
    machine.geometry, machine.cut = (base(name), task.file[name]), (name, task.file[name])
    world.delete_operand(VALIDATOR, machine.name)
    _succeed(world, machine, task)


def _succeed(world: World, machine: Machine, task: Task) -> None:
    _unpause(world, machine)
    world.label(machine.name, {keys.MIG_STATE: "success"})
    task.restarted, task.stage = True, ""


def _unpause(world: World, machine: Machine) -> None:
    """M15: "true" over everything but "false"."""
    labels = world.labels(machine.name)
    names = [f"{keys.DEPLOY}{each}" for each in BY_MIG]
    world.label(machine.name, {name: "true" for name in names if labels.get(name) != "false"})


def reboot(world: World, machine: Machine) -> None:
    """The machine restarts: no geometry survives that (M12), nor any pod of a workload. The MIG manager starts anew,
    and the kubelet offers no GPU before a device plugin has told it of some."""
    there = (world.node(machine.name).get("status") or {}).get("allocatable") or {}
    none = {name: "0" for name in there if name.startswith("nvidia.com/")}
    boot = world.node(machine.name)["status"]["nodeInfo"]["bootID"]
    info = {"bootID": machine.id if boot != machine.id else f"{machine.id}'s other"}
    world.server.edit(NODES, machine.name, {"status": {"allocatable": none, "nodeInfo": info}})
    machine.geometry, machine.mig = ("all-disabled", ""), Task(machine.mig.pod)
    for pod in list(world.gpu_pods(machine.name)):
        world.server.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])


def pause(world: World, node: str, components: Iterable[str], value: str, *, over_absent: bool) -> None:
    """Take components off a node by their labels."""
    labels, made = world.labels(node), {}
    for name in (f"{keys.DEPLOY}{each}" for each in components):
        now = labels.get(name, "")
        if now == "false" or (not now and not over_absent) or value in now:
            continue
        made[name] = value if over_absent or now == "true" else f"{now}_{value}"
    world.label(node, made)


def restore(world: World, node: str, components: Iterable[str], value: str) -> None:
    """Bring paused components back."""
    labels, made = world.labels(node), {}
    for name in (f"{keys.DEPLOY}{each}" for each in components):
        now = labels.get(name, "")
        if value in now:
            made[name] = "true" if now == value else now.removesuffix(f"_{value}")
    world.label(node, made)


def offer(world: World, machine: Machine) -> None:
    """What the kubelet offers while the device plugin works, and what GPU feature discovery says."""
    plugin, features = world.operand(PLUGIN, machine.name), world.operand(FEATURES, machine.name)
    working = plugin is not None and world.is_ready(plugin) and machine.loaded and "silent" not in machine.faults
    resources = LAYOUTS.get(machine.geometry[0], {}) if working else {}
    before = (world.node(machine.name).get("status") or {}).get("allocatable") or {}
    less = "count" in machine.faults
    wanted = {
        name: str(max(resources.get(name, 0) - less, 0))
        for name in {*resources, *before}
        if name.startswith("nvidia.com/")
    }
    if any(before.get(name) != count for name, count in wanted.items()):
        world.server.edit(NODES, machine.name, {"status": {"allocatable": wanted}})
    seen = features is not None and world.is_ready(features)
    labels = {keys.PRODUCT: "NVIDIA-H100-80GB-HBM3", keys.MIG_CAPABLE: str(machine.capable).lower()}
    world.label(machine.name, labels if seen else dict.fromkeys(labels))


def run_operand(world: World, machine: Machine, pod: Document) -> None:
    """One look at another operand's pod: it starts once a driver is loaded, the validator once GPUs are offered."""
    app = pod["metadata"]["labels"]["app"]
    if app == MIG_MANAGER and not world.layouts():
        return  # the kubelet waits for the key of the ConfigMap
    if app == MIG_MANAGER and world.is_ready(pod):
        run_mig(world, machine, pod)
        return
    if world.is_ready(pod) or not machine.loaded:
        return
    if app == VALIDATOR:
        allocatable = (world.node(machine.name).get("status") or {}).get("allocatable") or {}
        if "validator" in machine.faults or not any(int(count) for count in allocatable.values()):
            return
    world.set_status(pod, ready=True)


def status_of(name: str, *, init: str, main: str, ready: bool, now: Any) -> Document:
    """The status of a pod of an operand."""

    def state(text: str) -> Document:
        if not text[:1].isupper():
            return {"running": {"startedAt": stamp(now)}}
        silent = {"message": "failed to pull: dial tcp 192.0.2.1:443: i/o timeout"} if "Pull" in text else {}
        return {"waiting": {"reason": text, **silent}}

    made: Document = {
        "phase": "Running" if ready or main else "Pending",
        "containerStatuses": [
            {
                "name": name,
                "ready": ready,
                "restartCount": 0,
                "state": state("running" if ready else main or "PodInitializing"),
            }
        ],
        "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(now)}],
    }
    if init:
        made["initContainerStatuses"] = [{"name": "init", "ready": False, "state": state(init)}]
    return made


def _digest(pod: Document) -> str:
    for variable in pod["spec"]["containers"][0].get("env", ()):
        if variable["name"] == "DRIVER_CONFIG_DIGEST":
            return str(variable["value"])
    return ""
