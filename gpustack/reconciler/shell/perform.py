"""From a decision to requests.

Nodes are independent: what is to be done on one happens in order and stops at its first failure, whatever becomes of
the others (reconciler.md I19). Nothing is tried twice here; the next pass decides anew from what there is then.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from ...api import keys
from ..core.actions import Action, Decision, DeletePod, Evict, HoldLease, PatchNode, PatchStatus, WriteLayouts
from ..core.others import PREFIX
from . import cluster
from .cluster import Answer, ApiError, Cluster, Conflict, NotFound, Selection, Unreachable
from .events import Events
from .gather import Sources
from .lease import Admission, Elector, NotLeadingError
from .log import Log
from .refusals import evict, unheard, why
from .watch import Watch

A = TypeVar("A")


@dataclass
class Outcome:
    """What became of a decision."""

    done: list[Action] = field(default_factory=list)
    failed: dict[str, ApiError] = field(default_factory=dict)
    """By node, or "NodePolicy/NAME"."""
    refused: int = 0
    """Evictions that the API server refused."""

    @property
    def trouble(self) -> bool:
        """Whether something failed that says nothing about one object: the next pass is to wait a little."""
        return any(unheard(each) or each.status >= 500 for each in self.failed.values())


@dataclass
class Performer:
    """Carries decisions out, while this process leads."""

    cluster: Cluster
    elector: Elector
    sources: Sources
    events: Events
    log: Log
    parallel: int = 16
    longest: float = 30.0
    """Seconds for a request."""
    finished: Callable[[PatchNode], None] = lambda _: None
    """Called for every change of a node that was made."""

    async def perform(self, decision: Decision) -> Outcome:
        """Do what DECISION says. Raises `NotLeadingError` when this process no longer leads."""
        outcome = Outcome()
        lanes: dict[str, list[Action]] = {}
        for action in decision.actions:
            lanes.setdefault(_lane_of(action), []).append(action)
        admissions = await self._announce(lanes, outcome)
        slots = asyncio.Semaphore(self.parallel)
        try:
            async with asyncio.TaskGroup() as group:
                for lane, actions in lanes.items():
                    group.create_task(self._lane(lane, actions, outcome, slots))
        finally:
            self.elector.leave(admissions)
        if admissions:
            await self.elector.done({uid for uid, each in admissions.items() if self._known(each, outcome)})
        if not self.elector.leading:
            raise NotLeadingError("the Lease was lost during a pass")
        self.events.tell(tell for tell in decision.tells if tell.node not in outcome.failed)
        return outcome

    async def _announce(self, lanes: dict[str, list[Action]], outcome: Outcome) -> Mapping[str, Admission]:
        """Announce the admissions in LANES, all in one write. If that fails, none of them is made."""
        firsts = [each for lane in lanes.values() for each in lane if isinstance(each, PatchNode) and each.admits]
        admissions = {
            each.uid: Admission(
                each.node, each.admits, each.resource_version, each.install, each.again, each.policy[:8]
            )
            for each in firsts
        }
        if not admissions:
            return {}
        try:
            await self.elector.admit(admissions)
        except ApiError as error:
            self.log.warning("nothing is admitted", error=str(error))
            for action in firsts:
                outcome.failed[action.node] = error
                del lanes[action.node]
            return {}
        return admissions

    @staticmethod
    def _known(admission: Admission, outcome: Outcome) -> bool:
        """Whether the API server said what became of an admission."""
        error = outcome.failed.get(admission.node)
        return error is None or not (isinstance(error, Unreachable) or error.status >= 500)

    async def _lane(self, lane: str, actions: Sequence[Action], outcome: Outcome, slots: asyncio.Semaphore) -> None:
        async with slots:
            for action in actions:
                try:
                    await self._do(action, outcome)
                except ApiError as error:
                    outcome.failed[lane] = error
                    took = action.uid if isinstance(action, HoldLease) and action.first else ""
                    about = keys.LAYOUTS if isinstance(action, WriteLayouts) else took
                    about = action.uid if isinstance(action, PatchNode) else about
                    if about and not isinstance(error, NotLeadingError) and (took or not isinstance(error, NotFound)):
                        self.sources.refusals.fail(about, error, self.sources.clock.now())
                    level = self.log.debug if isinstance(error, (Conflict, NotFound)) else self.log.warning
                    level("not done", on=lane, action=type(action).__name__, error=str(error), status=error.status)
                    return
                outcome.done.append(action)

    async def _do(self, action: Action, outcome: Outcome) -> None:
        if isinstance(action, PatchNode):
            await self._patch_node(action)
        elif isinstance(action, Evict):
            await self._evict(action, outcome)
        elif isinstance(action, DeletePod):
            await self._delete(action)
        elif isinstance(action, WriteLayouts):
            await self._layouts(action)
        elif isinstance(action, HoldLease):
            await self._hold(action)
        else:
            await self._status(action)

    async def _patch_node(self, action: PatchNode) -> None:
        request = self.cluster.patch(cluster.NODES, action.node, action.body())
        await self._write(self.sources.nodes, action.node, request)
        self.sources.refusals.written(action.uid)
        self.log.info(action.why, node=action.node, **_changes(action))
        self.finished(action)

    async def _evict(self, action: Evict, outcome: Outcome) -> None:
        """Read the pod first: an eviction that names another UID is refused and uses up the budget (A11)."""
        which = Selection(action.namespace, fields=f"metadata.name={action.name}")
        listing = await self._send(self.cluster.list(cluster.PODS, which))
        pod = next((each for each in listing.items if each.uid == action.uid), None)
        if pod is None or pod.terminating:
            return
        try:
            await self._send(evict(self.cluster, pod))
        except (NotFound, Conflict):
            return  # it is gone
        except NotLeadingError:
            raise
        except ApiError as error:
            refused = self.sources.refusals.refuse(pod.uid, error, self.sources.clock.now())
            if unheard(error):  # it says nothing about this pod: the others are asked, too
                outcome.failed[action.node] = error
            outcome.refused += 1
            self.log.warning("eviction refused", node=action.node, pod=pod.key, why=why(error), tries=refused.tries)
            return
        self.sources.refusals.clear(pod.uid)
        self.sources.refusals.evicted(pod, self.sources.clock.now())
        self.log.info("evicted", node=action.node, pod=pod.key, why=action.why)

    async def _delete(self, action: DeletePod) -> None:
        try:
            where = {"namespace": action.namespace, "uid": action.uid, "version": action.version}
            await self._send(self.cluster.delete(cluster.PODS, action.name, **where))
        except (NotFound, Conflict):
            return  # it is gone, another one is there, or it has changed: the next pass looks
        except ApiError as error:
            if not (unheard(error) or isinstance(error, NotLeadingError)):
                self.sources.refusals.refuse(action.uid, error, self.sources.clock.now())  # others have their turn
            raise
        self.log.info("deleted", node=action.node, pod=f"{action.namespace}/{action.name}", why=action.why)

    async def _status(self, action: PatchStatus) -> None:
        policy = action.policy
        changes = difference(msgspec.to_builtins(policy.status), msgspec.to_builtins(action.status))
        if not changes:
            return
        metadata = {"resourceVersion": policy.metadata.resourceVersion, "uid": policy.uid}
        body = {"metadata": metadata, "status": changes}
        request = self.cluster.patch(cluster.POLICIES, policy.name, body, subresource="status")
        await self._write(self.sources.policies, policy.name, request)

    async def _layouts(self, action: WriteLayouts) -> None:
        where = action.namespace
        request = self.cluster.patch(cluster.CONFIG_MAPS, keys.LAYOUTS, action.body(), namespace=where)
        await self._write(self.sources.layouts, keys.LAYOUTS, request)
        self.sources.refusals.written(keys.LAYOUTS)
        self.log.info("wrote the layouts that the MIG managers read", config_map=f"{where}/{keys.LAYOUTS}")

    async def _hold(self, action: HoldLease) -> None:
        """Take, hold or give back the Lease of a node, as it was seen: whoever was faster has it."""
        name, where, spec = f"{PREFIX}{action.node}", self.sources.maintenance, dict(action.spec)
        if (shared := self.sources.shared) is None:
            return
        if action.version:
            body = {"metadata": {"resourceVersion": action.version}, "spec": spec}
            request = self.cluster.patch(cluster.LEASES, name, body, namespace=where)
        else:
            owner = {"apiVersion": "v1", "kind": "Node", "name": action.node, "uid": action.uid}
            body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
            request = self.cluster.create(cluster.LEASES, body, namespace=where)
        await self._write(shared, name, request)

    async def _write(self, watch: Watch[Any], name: str, request: Coroutine[Any, Any, Answer]) -> None:
        """Make REQUEST of the object NAME. What came of it WATCH learns at once; it reads again what it had wrong."""
        try:
            watch.learn(await self._send(request))
        except (Conflict, NotFound):
            await watch.reread(name)
            raise

    async def _send(self, request: Coroutine[Any, Any, A]) -> A:
        """A request while we lead, and no longer."""
        seconds = min(self.longest, self.elector.remaining)
        try:
            async with asyncio.timeout(seconds):
                if seconds <= 0:
                    request.close()
                    raise NotLeadingError("the Lease is not ours any more")
                return await request
        except TimeoutError:
            raise Unreachable(f"no answer within {seconds:.0f} s") from None


def difference(before: Any, after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes AFTER of BEFORE."""
    before = before if isinstance(before, Mapping) else {}
    made: dict[str, Any] = dict.fromkeys(key for key in before if key not in after)
    for key, value in after.items():
        if isinstance(value, Mapping) and isinstance(before.get(key), Mapping):
            if inner := difference(before[key], value):
                made[key] = inner
        elif key not in before or value != before[key]:
            made[key] = value
    return made


def _lane_of(action: Action) -> str:
    """What an action is about: those about one thing are done in order, and end at the first that fails."""
    if isinstance(action, PatchStatus):
        return f"NodePolicy/{action.policy.name}"
    if isinstance(action, HoldLease) and not action.first:
        return f"Lease/{action.node}"
    return f"ConfigMap/{keys.LAYOUTS}" if isinstance(action, WriteLayouts) else action.node


def _changes(action: PatchNode) -> dict[str, Any]:
    """For the log: what a change of a node changes."""
    made: dict[str, Any] = {"labels": dict(action.labels), "annotations": sorted(action.annotations)}
    if action.unschedulable is not None:
        made["unschedulable"] = action.unschedulable
    return {key: value for key, value in made.items() if value not in ({}, [])}
