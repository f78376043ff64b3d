"""The kubelets of all simulated nodes: nodes register, pods that are bound to them live and die.

One event loop in one thread plays them all, so that a thousand nodes cost coroutines and not threads; requests go
through a few worker threads. Nodes and pods are watched as any client does. A pod's life is its init containers one
after the other (those that `inits` knows by name do something) and then a program: the one that `programs` has for its
`role`, or plain_pod. What the node says (capacity, readiness) is patched into its status like a kubelet does it:
conditions that others wrote stay.

Without heartbeats: the control plane of cluster.py declares no node dead. `Kubelets.down` takes one down.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from tests.control_plane.api import STRATEGIC, Api, ApiError, Body
from tests.control_plane.machine import Machine, node_body, node_status
from tests.control_plane.pace import Pace
from tests.control_plane.pod import Pod
from tests.control_plane.reflector import Handler, Reflector

T = TypeVar("T")
Step = Callable[[Pod], Awaitable[None]]

SECONDS_ANNOTATION = "test.gpustack.dev/seconds"
"""On a pod: it succeeds after so many seconds (a job)."""
STOP_ANNOTATION = "test.gpustack.dev/stop-seconds"
"""On a pod: it needs so many seconds to end, and is killed when its grace period is over."""


async def plain_pod(pod: Pod) -> None:
    """Start, be ready, run until deleted, or for the time that an annotation says."""
    await pod.sleep(pod.kubelets.pace.start)
    await pod.start()
    await pod.ready()
    if seconds := pod.annotations.get(SECONDS_ANNOTATION):
        await pod.sleep(float(seconds))
        await pod.finish("Succeeded")
    await pod.forever()


class Kubelets:
    """All simulated nodes of a control plane."""

    def __init__(
        self,
        api: Api,
        *,
        programs: Mapping[str, Step] | None = None,
        inits: Mapping[str, Step] | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.api = api
        self.programs = dict(programs or {})
        self.inits = dict(inits or {})
        self.pace = pace or Pace()
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, Pod] = {}
        self.errors: list[BaseException] = []
        """What went wrong in the simulation itself; a test's end raises the first (fixture `kubelets`)."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resources: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        self._publishing: dict[str, asyncio.Lock] = {}
        self._publications = 0
        self._stopped = threading.Event()
        self._workers = ThreadPoolExecutor(8, thread_name_prefix="kubelet")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubelets", daemon=True)
        self._reflectors = [
            Reflector(api, kind, partial(self._hand_over, handle))
            for kind, handle in (("Pod", self._on_pod), ("Node", self._on_node))
        ]

    # --- for tests (any thread) ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """End everything; nodes and pods stay in the API server as they are."""
        self._stopped.set()
        for reflector in self._reflectors:
            reflector.stop()
        self._run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._workers.shutdown()
        self._loop.close()

    def add(self, *machines: Machine) -> None:
        """Register nodes, and make them Ready."""
        for machine in machines:
            self.machines[machine.name] = machine
        self._run(self._gather(self._register(machine) for machine in machines))

    def remove(self, *machines: Machine) -> None:
        """Take nodes away for good, Node objects and all, as a cloud does."""
        for machine in machines:
            self.machines.pop(machine.name, None)
            self._resources.pop(machine.name, None)
            with contextlib.suppress(ApiError):
                self.api.delete("Node", machine.name)
        self._run(self._forget({machine.name for machine in machines}))

    def change(self, machine: Machine, **faults: bool) -> None:
        """Set faults, by the names of Faults, and let everything on the machine notice."""
        for name, value in faults.items():
            if not hasattr(machine.faults, name):
                raise AttributeError(f"there is no fault {name}")
            setattr(machine.faults, name, value)
        self._loop.call_soon_threadsafe(machine.changed)

    def down(self, machine: Machine, reason: str = "NodeStatusUnknown") -> None:
        """The node stops: nothing on it moves, pods that are deleted stay, and Ready is Unknown."""
        machine.up = False
        self.tell_ready(machine, "Unknown", reason)

    def up(self, machine: Machine) -> None:
        """The node is back, and so is what ran on it."""
        machine.up = True
        self.tell_ready(machine, "True", "KubeletReady")
        self._loop.call_soon_threadsafe(machine.changed)

    def reboot(self, machine: Machine) -> None:
        """Reboot: all containers end, the kernel forgets the driver, and pods start again."""
        self._run(self._reboot(machine))

    def tell_ready(self, machine: Machine, status: str, reason: str) -> None:
        """Write the node's condition Ready; conditions of others stay."""
        condition = {"type": "Ready", "status": status, "reason": reason, "message": ""}
        self._patch_status(machine.name, {"conditions": [condition]})

    # --- for programs (in the loop) -----------------------------------------------------------------------------------

    async def call(self, function: Callable[..., T], *arguments: object, **named: object) -> T:
        """A request, in a worker thread; again while the API server is away or in trouble, as a kubelet does."""
        while True:
            try:
                return await self._loop.run_in_executor(self._workers, lambda: function(*arguments, **named))
            except ApiError as error:
                if error.status < 500:
                    raise
            except (OSError, http.client.HTTPException):
                pass
            await asyncio.sleep(0.2)

    def spawn(self, coroutine: Coroutine[Any, Any, None], key: str) -> None:
        """Run something beside; KEY replaces what ran under it."""
        if old := self._tasks.get(key):
            old.cancel()
        task = self._loop.create_task(coroutine)
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._done(key, done))

    async def advertise(self, machine: Machine, capacity: Mapping[str, int], allocatable: Mapping[str, int]) -> None:
        """Publish extended resources: what is not named any more is 0, as the kubelet has it until it restarts."""
        old_capacity, old_allocatable = self._resources.get(machine.name, ({}, {}))
        new = (
            {**dict.fromkeys(old_capacity, 0), **capacity},
            {**dict.fromkeys(old_allocatable, 0), **allocatable},
        )
        if new != (old_capacity, old_allocatable):
            self._resources[machine.name] = new
            self._publications += 1
            self.spawn(self._publish(machine), key := f"offers/{self._publications}")
            await asyncio.shield(self._tasks[key])

    async def _publish(self, machine: Machine) -> None:
        """Write what the node offers now. One write after the other: the last one is the newest."""
        async with self._publishing.setdefault(machine.name, asyncio.Lock()):
            parts = zip(("capacity", "allocatable"), self._resources.get(machine.name, ({}, {})), strict=True)
            status = {name: {key: str(count) for key, count in part.items()} for name, part in parts}
            await self.call(self._patch_status, machine.name, status)
        machine.changed()

    def capacity(self, machine: Machine) -> dict[str, int]:
        """The extended resources that the node has as capacity."""
        return dict(self._resources.get(machine.name, ({}, {}))[0])

    def allocatable(self, machine: Machine) -> dict[str, int]:
        """The extended resources that pods can get."""
        return dict(self._resources.get(machine.name, ({}, {}))[1])

    def on(self, machine: Machine) -> list[Pod]:
        """The pods that are played on a machine."""
        return [pod for pod in self.pods.values() if pod.machine is machine]

    async def reboot_from_within(self, machine: Machine) -> None:
        """For a program that reboots the machine it runs on: it does not come back from this."""
        self.spawn(self._reboot(machine), f"reboot/{machine.name}")
        await asyncio.Event().wait()

    # --- nodes --------------------------------------------------------------------------------------------------------

    async def _register(self, machine: Machine) -> None:
        machine.node = await self.call(self.api.create, node_body(machine))
        await self.call(self._patch_status, machine.name, node_status(machine))

    def _patch_status(self, node: str, status: Body) -> None:
        with contextlib.suppress(ApiError):  # the node is gone
            self.api.patch("Node", node, {"status": status}, how=STRATEGIC, subresource="status")

    async def _reboot(self, machine: Machine) -> None:
        machine.up = False
        await self.call(self.tell_ready, machine, "Unknown", "NodeStatusUnknown")
        pods = self.on(machine)
        await self._end([f"pod/{pod.uid}" for pod in pods])
        machine.rebooted()
        await asyncio.sleep(self.pace.reboot)
        machine.up = True
        await self.advertise(machine, {}, {})
        await self.call(self._patch_status, machine.name, {"nodeInfo": {"bootID": machine.boot_id}})
        await self.call(self.tell_ready, machine, "True", "KubeletReady")
        for pod in pods:
            again = Pod(self, machine, pod.body)
            for name, container in again.main.items():
                container.restarts = pod.main[name].restarts + 1
            self.pods[pod.uid] = again
            self.spawn(self._live(again), f"pod/{pod.uid}")

    def _on_node(self, kind: str, body: Body) -> None:
        machine = self.machines.get(body["metadata"]["name"])
        if machine is not None and kind != "DELETED":
            machine.node = body
            machine.changed()

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _on_pod(self, kind: str, body: Body) -> None:
        uid = body["metadata"]["uid"]
        machine = self.machines.get(body["spec"].get("nodeName", ""))
        if machine is None:
            return
        pod = self.pods.get(uid)
        if kind == "DELETED":
            if pod is not None:
                self.spawn(self._bury(pod), f"pod/{uid}")
            return
        if pod is None:
            if body.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
                return
            pod = self.pods[uid] = Pod(self, machine, body)
            self.spawn(self._live(pod), f"pod/{uid}")
        pod.body = body
        if "deletionTimestamp" in body["metadata"] and f"end/{uid}" not in self._tasks:
            self.spawn(self._die(pod), f"end/{uid}")

    async def _live(self, pod: Pod) -> None:
        await pod.until(lambda: pod.machine.up)
        for name in pod.init:
            await pod.run_init(name)
            if step := self.inits.get(name):
                await step(pod)
            await pod.end_init(name)
        await self.programs.get(pod.role, plain_pod)(pod)

    async def _die(self, pod: Pod) -> None:
        """Terminate: the program's own end, the time that it takes, and then the object goes."""
        grace = float(pod.body["metadata"].get("deletionGracePeriodSeconds", 30))
        await pod.until(lambda: pod.machine.up)
        await asyncio.sleep(min(float(pod.annotations.get(STOP_ANNOTATION, self.pace.stop)), grace))
        await pod.until(lambda: pod.machine.up and not pod.machine.faults.pods_hang)
        await self._bury(pod)
        with contextlib.suppress(ApiError):
            await self.call(self.api.delete, "Pod", pod.name, pod.namespace, uid=pod.uid, grace=0)

    async def _bury(self, pod: Pod) -> None:
        await self._end([f"pod/{pod.uid}"])
        self.pods.pop(pod.uid, None)
        pod.machine.changed()

    async def _forget(self, nodes: set[str]) -> None:
        for pod in [pod for pod in self.pods.values() if pod.machine.name in nodes]:
            await self._bury(pod)

    # --- machinery ----------------------------------------------------------------------------------------------------

    def _hand_over(self, handle: Handler, event: str, body: Body) -> None:
        self._loop.call_soon_threadsafe(handle, event, body)

    async def _end(self, keys: list[str]) -> None:
        """Cancel tasks, and wait for their `finally`."""
        tasks = [self._tasks[key] for key in keys if key in self._tasks]
        current = asyncio.current_task()
        for task in tasks:
            if task is not current:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not current), return_exceptions=True)

    async def _cancel_all(self) -> None:
        current = asyncio.current_task()
        while tasks := [task for task in asyncio.all_tasks() if task is not current]:  # some start others at their end
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._stopped.is_set() and not self._of_removed_node(error):
            self.errors.append(error)

    def _of_removed_node(self, error: BaseException) -> bool:
        """Whether something was still written on a node that `remove` took away: its programs end a little later."""
        if not isinstance(error, ApiError) or error.status != 404:
            return False
        details = error.body.get("details", {})
        return details.get("kind") == "nodes" and details.get("name") not in self.machines

    def _run(self, coroutine: Coroutine[Any, Any, T], seconds: float = 300) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    @staticmethod
    async def _gather(coroutines: Any) -> None:
        await asyncio.gather(*coroutines)
