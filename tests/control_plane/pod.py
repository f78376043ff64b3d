"""A pod that a simulated kubelet plays: its containers' states, and the status that the API server is told.

What happens in a pod is a coroutine (its program), which moves the pod on: `start`, `ready`, `crash`. When the pod is
deleted the program is cancelled; what stands in its `finally` is what the real one does on SIGTERM or in preStop.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.control_plane.api import STRATEGIC, ApiError, Body
from tests.control_plane.machine import Machine

if TYPE_CHECKING:
    from tests.control_plane.kubelet import Kubelets

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")


def now() -> str:
    """The time as Kubernetes writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Container:
    """A container's state."""

    name: str
    image: str
    state: Body
    ready: bool = False
    restarts: int = 0

    def status(self) -> Body:
        """As a pod's status has it."""
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "state": self.state,
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
        }


class Pod:
    """One pod on one machine, from its binding to its end."""

    def __init__(self, kubelets: Kubelets, machine: Machine, body: Body) -> None:
        self.kubelets = kubelets
        self.machine = machine
        self.body = body
        self.uid = str(body["metadata"]["uid"])
        self.name = str(body["metadata"]["name"])
        self.namespace = str(body["metadata"]["namespace"])
        self.labels: dict[str, str] = body["metadata"].get("labels", {})
        self.annotations: dict[str, str] = body["metadata"].get("annotations", {})
        self.spec: Body = body["spec"]
        self.init = self._containers("initContainers", "PodInitializing")
        self.main = self._containers("containers", "PodInitializing" if self.init else "ContainerCreating")
        self.started_at = now()
        self.finished: str = ""
        self._told: Body = {}

    def _containers(self, key: str, reason: str) -> dict[str, Container]:
        return {
            one["name"]: Container(one["name"], one["image"], {"waiting": {"reason": reason}})
            for one in self.spec.get(key, [])
        }

    # --- what a program asks ------------------------------------------------------------------------------------------

    @property
    def app(self) -> str:
        """The label that NVIDIA's operands are told apart by."""
        return self.labels.get("app", "")

    @property
    def role(self) -> str:
        """What decides about its program: its component where it has one (per-pool drivers differ in `app`)."""
        return self.labels.get("app.kubernetes.io/component") or self.app

    @property
    def running(self) -> bool:
        """Whether any of its containers runs."""
        return any("running" in one.state for one in self.main.values())

    @property
    def daemon(self) -> bool:
        """Whether a DaemonSet made it."""
        return any(owner["kind"] == "DaemonSet" for owner in self.body["metadata"].get("ownerReferences", []))

    @property
    def takes_gpu(self) -> bool:
        """Whether a container asks for GPUs by name."""
        wanted = [one.get("resources", {}).get("limits", {}) for one in self.spec["containers"]]
        return any(name.startswith(GPU_RESOURCES) for limits in wanted for name in limits)

    def env(self, name: str, container: str = "") -> str:
        """The value of an environment variable in a container (any, where none is named), "" where it has none."""
        for one in [*self.spec.get("initContainers", []), *self.spec["containers"]]:
            if container in ("", one["name"]):
                for variable in one.get("env", []):
                    if variable["name"] == name:
                        return str(variable.get("value", ""))
        return ""

    async def config(self, key: str) -> str:
        """The value of KEY in a ConfigMap that it mounts, "" where no ConfigMap has it."""
        for volume in self.spec.get("volumes", []):
            if "configMap" in volume:
                name = volume["configMap"]["name"]
                found = await self.kubelets.call(self.kubelets.api.find, "ConfigMap", name, self.namespace)
                if found and key in found.get("data", {}):
                    return str(found["data"][key])
        return ""

    # --- what a program does ------------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Time that something takes."""
        await asyncio.sleep(seconds)

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until TRUE is, looking whenever the machine changes."""
        await self.machine.until(true)

    async def within(self, true: Callable[[], object], seconds: float) -> bool:
        """Wait like `until`, but no longer than SECONDS: whether TRUE came to be."""
        try:
            await asyncio.wait_for(self.until(true), seconds)
        except TimeoutError:
            return False
        return True

    async def forever(self) -> None:
        """Until the pod ends."""
        await asyncio.Event().wait()

    async def pull(self, fails: Callable[[], bool]) -> None:
        """Pull the images; while it FAILS every container waits with ImagePullBackOff."""
        if fails():
            first = self.init or self.main
            for one in first.values():
                one.state = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling "{one.image}"'}}
                break
            await self.tell()
            await self.until(lambda: not fails())

    async def run_init(self, name: str) -> None:
        """An init container begins."""
        self.init[name].state = {"running": {"startedAt": now()}}
        await self.tell()

    async def end_init(self, name: str) -> None:
        """An init container is through."""
        self.init[name].state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        self.init[name].ready = True
        await self.tell()

    async def start(self) -> None:
        """All containers run; none is ready yet."""
        for one in self.main.values():
            one.state, one.ready = {"running": {"startedAt": now()}}, False
        await self.tell()

    async def ready(self, *, yes: bool = True) -> None:
        """All containers pass their probes, or no longer do."""
        for one in self.main.values():
            one.ready = yes
        await self.tell()

    async def crash(self, name: str, message: str) -> None:
        """A container ends with an error, waits in CrashLoopBackOff, and is restarted."""
        container = self.init.get(name) or self.main[name]
        container.ready = False
        container.restarts += 1
        container.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        await self.tell()
        await self.sleep(self.kubelets.pace.crash_back_off)
        container.state = {"running": {"startedAt": now()}}
        await self.tell()

    async def finish(self, phase: str) -> None:
        """All containers end for good: phase `Succeeded` or `Failed`."""
        self.finished = phase
        code = 0 if phase == "Succeeded" else 1
        for one in self.main.values():
            one.state = {"terminated": {"exitCode": code, "finishedAt": now()}}
            one.ready = False
        await self.tell()

    async def tell(self) -> None:
        """Tell the API server what state the pod is in. A pod that is gone has nobody to be told about."""
        self.machine.changed()
        status = self.status()
        if status == self._told or not self.machine.up:
            return
        try:
            await self.kubelets.call(
                self.kubelets.api.patch,
                "Pod",
                self.name,
                {"metadata": {"uid": self.uid}, "status": status},
                self.namespace,
                how=STRATEGIC,
                subresource="status",
            )
        except ApiError as error:
            if error.status not in {404, 409}:  # 409: another pod of that name, the uid is a precondition
                raise
        self._told = status

    def status(self) -> Body:
        """The pod's status."""
        initialized = all(one.ready for one in self.init.values())
        all_ready = initialized and all(one.ready for one in self.main.values())
        begun = initialized and any("running" in one.state or one.restarts for one in self.main.values())
        phase = self.finished or ("Running" if begun else "Pending")
        conditions = {
            "Initialized": initialized,
            "ContainersReady": all_ready,
            "Ready": all_ready,
            "PodScheduled": True,
        }
        return {
            "phase": phase,
            "startTime": self.started_at,
            "hostIP": "127.0.0.1",
            "podIP": "127.0.0.1",
            "conditions": [{"type": name, "status": str(value)} for name, value in conditions.items()],
            "initContainerStatuses": [one.status() for one in self.init.values()],
            "containerStatuses": [one.status() for one in self.main.values()],
        }
