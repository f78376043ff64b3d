"""One replica of the program on the server in memory, without an event loop: the same core, the smallest shell.

A pass is `survey`, pods and trials, `decide`, requests. What a crash loses is in the fields here; `restart` loses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from gpustack.reconciler import engine, keys
from gpustack.reconciler.actions import Action, Decision, DeletePod, Evict, PatchNode, PatchStatus
from gpustack.reconciler.cluster import (
    DAEMONSETS,
    NODES,
    PODS,
    POLICIES,
    REVISIONS,
    ApiError,
    Conflict,
    Kind,
    NotFound,
    Selection,
)
from gpustack.reconciler.objects import Pod
from gpustack.reconciler.snapshot import DriverSet, Precheck, Seen, Snapshot
from gpustack.reconciler.testing import FakeCluster, drive
from gpustack.reconciler.testing.stack import DRIVER, MIG_MANAGER, NAMESPACE, VALIDATOR
from gpustack.reconciler.testing.world import World


@dataclass
class Replica:
    """A replica called like its client's actor. `paused` is what the Lease says of the fleet."""

    world: World
    cluster: FakeCluster
    paused: str = ""
    foreign: str = ""
    seen: Seen = field(default_factory=Seen)
    refusals: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    prechecks: dict[str, tuple[Precheck, datetime]] = field(default_factory=dict)
    decided: Decision = Decision()
    begun: Callable[[Snapshot], None] = lambda known: None
    """Told what a pass saw before it writes."""

    def restart(self) -> None:
        """Forget everything, as a new process does."""
        self.seen, self.refusals, self.prechecks = Seen(), {}, {}

    def snapshot(self) -> Snapshot:
        """What is known without a closer look."""
        now = self.world.server.now
        return Snapshot(
            now=now,
            namespace=NAMESPACE,
            nodes=self._all(NODES),
            policies=self._all(POLICIES),
            driver_sets=self._driver_sets(),
            driver_pods=self._operands(DRIVER),
            validators=self._operands(VALIDATOR),
            mig_managers=self._operands(MIG_MANAGER),
            prechecks={name: check for name, (check, until) in self.prechecks.items() if until > now},
            paused=self.paused,
            foreign=self.foreign,
            seen=self.seen,
            backoff={uid: until for uid, (_, until) in self.refusals.items()},
            refusals={uid: text for uid, (text, _) in self.refusals.items()},
        )

    def known(self) -> Snapshot:
        """What a pass decides on."""
        known = self.snapshot()
        wanted = engine.survey(known)
        pods = {name: tuple(self._all(PODS, Selection(fields=f"spec.nodeName={name}"))) for name in wanted.pods}
        known = replace(known, pods=pods)
        views = {each.name: each for each in engine.views(known)}
        tried = {name: self._try(known, views[name]) for name in wanted.candidates if name not in known.prechecks}
        return replace(known, prechecks={**known.prechecks, **tried})

    def run(self) -> Decision:
        """One pass."""
        known = self.known()
        self.begun(known)
        self.decided = engine.decide(known)
        for action in self.decided.actions:
            self.perform(action)
        return self.decided

    def perform(self, action: Action) -> None:
        """One request. A refusal is decided anew in the next pass."""
        try:
            if isinstance(action, PatchNode):
                drive(self.cluster.patch(NODES, action.node, action.body()))
            elif isinstance(action, PatchStatus):
                body = {"status": replaced(action.policy.status, action.status)}
                drive(self.cluster.patch(POLICIES, action.policy.name, body, subresource="status"))
            elif isinstance(action, DeletePod):
                drive(self.cluster.delete(PODS, action.name, namespace=action.namespace, uid=action.uid))
            else:
                self._evict(action)
        except (Conflict, NotFound):
            pass

    def _evict(self, action: Evict) -> None:
        try:
            drive(self.cluster.create(PODS, eviction(action), **_where(action)))
        except ApiError as error:
            self.refusals[action.uid] = str(error), self.world.server.now + timedelta(seconds=10)
        else:
            self.refusals.pop(action.uid, None)

    def _try(self, known: Snapshot, view: Any) -> Precheck:
        pods, found = engine.trial(known, view)
        for pod in pods:
            try:
                drive(self.cluster.create(PODS, {}, **_where(pod), dry_run=True))
            except ApiError as error:
                found.append(f"{pod.key}: {error}")
        check = Precheck(tuple(found))
        if found:
            self.prechecks[view.name] = check, known.now + timedelta(seconds=30)
        return check

    def _all(self, kind: Kind[Any], which: Selection | None = None) -> list[Any]:
        server = self.world.server
        return [server.decode(kind, each) for each in (server.all(kind, which) if which else server.all(kind))]

    def _operands(self, name: str) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for (of, node), pod in self.world.operands.items():
            if of == name and (document := self.world.server.find(PODS, pod, NAMESPACE)) is not None:
                found[node] = [self.world.server.decode(PODS, document)]
        return found

    def _driver_sets(self) -> list[DriverSet]:
        found = []
        for each in self._all(DAEMONSETS, Selection(NAMESPACE, f"app={DRIVER}")):
            owned = [of for of in self._all(REVISIONS) if of.metadata.controller.uid == each.uid]
            newest = max(owned, key=lambda of: of.revision, default=None)
            fresh = newest is not None and each.status.observedGeneration == each.metadata.generation
            found.append(DriverSet(each, newest.labels[keys.HASH] if fresh and newest else ""))
        return found


def eviction(action: Evict) -> dict[str, Any]:
    """The body that evicts that very pod."""
    return {"deleteOptions": {"preconditions": {"uid": action.uid}}}


def replaced(before: Any, after: Any) -> dict[str, Any]:
    """AFTER as a merge patch over BEFORE: what is gone is null."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    new["breaker"] = {**dict.fromkeys(old.get("breaker", {})), **new.get("breaker", {})}
    return {**dict.fromkeys(old), **new}


def _where(of: Any) -> dict[str, Any]:
    namespace = of.metadata.namespace if isinstance(of, Pod) else of.namespace
    return {"namespace": namespace, "of": of.name, "subresource": "eviction"}
