"""A cluster in which everything goes well, around the reconciler's core: what it decides is done, and what it waits for
comes.

Real are the rendered NodePolicies and driver DaemonSets, and `engine.survey` and `engine.decide`. Simulated is what
others do between two passes:

- a driver pod is ready where a rendered driver DaemonSet's nodeSelector matches, a MIG manager where its deploy label
  is "true", a validator where its label is and there are GPUs to ask for;
- a node offers what its NodePolicy expects once a device plugin is to run there; with `working` it does so from the
  beginning, as long as it has a GPU;
- the MIG manager says success to every layout;
- nobody else changes anything, and no pod uses a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from gpustack.api import keys
from gpustack.api.node_policy import NodePolicy
from gpustack.api.objects import Node
from gpustack.api.pods import DaemonSet, Pod
from gpustack.reconciler.core import engine
from gpustack.reconciler.core.actions import PatchNode, PatchStatus
from gpustack.reconciler.core.snapshot import DriverSet, Precheck, Seen, Snapshot

Labels = dict[str, str]

NAMESPACE = "gpu-operator"
DRIVER = ("app.kubernetes.io/component", "nvidia-driver")
"""The label by which the program finds driver DaemonSets."""
NEWEST = "newest"
"""The hash of every driver template: none was ever rendered before."""
OFFERING = ("device-plugin", "sandbox-device-plugin", "kata-sandbox-device-plugin")
QUIET = timedelta(minutes=16)
"""How long the cluster is left alone when nothing happens: more than the grace after which labels go (900 seconds)."""
REST = 4
"""So many quiet passes are rest: longer than a forgotten pause stays (45 minutes)."""
PASSES = 100
"""Passes after which all nodes should have come to rest long ago."""


@dataclass
class Cluster:
    """Nodes as the API has them, and what was synced for them."""

    policies: list[NodePolicy]
    drivers: list[DaemonSet]
    working: bool = False
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    seen: Seen = field(default_factory=Seen)

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]], *, working: bool) -> Cluster:
        """A cluster into which OBJECTS were synced."""
        made = cls([], [], working)
        for each in objects:
            document = {**each, "metadata": {**each["metadata"], "uid": f"uid-{each['metadata']['name']}"}}
            if each["kind"] == "NodePolicy":
                made.policies.append(msgspec.convert(document, NodePolicy))
            elif DRIVER in each["metadata"].get("labels", {}).items():
                made.drivers.append(msgspec.convert(document, DaemonSet))
        return made

    def add(self, name: str, labels: Labels, annotations: Labels) -> None:
        """A node that is Ready."""
        metadata = {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": annotations}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"machineID": name}}
        self.nodes[name] = {"metadata": metadata, "spec": {}, "status": status}

    def rest(self) -> None:
        """Make passes until nothing is to be done any more, and time does not bring anything up either."""
        quiet = 0
        for _ in range(PASSES):
            changed = self.once()
            quiet = 0 if changed else quiet + 1
            if quiet == REST:
                return
            self.now += timedelta(seconds=10) if changed else QUIET
        raise AssertionError(f"no rest after {PASSES} passes")

    def once(self) -> bool:
        """Let the others do what they do, decide, and do that. Whether a node was changed."""
        known = self._known()
        wanted = engine.survey(known)
        read = dict.fromkeys((*wanted.pods, *wanted.candidates), ())
        known = replace(known, pods=read, prechecks=dict.fromkeys(wanted.candidates, Precheck()))
        changed = False
        decision = engine.decide(known)
        self.seen = decision.seen
        for action in decision.actions:
            if isinstance(action, PatchNode):
                self._patch(action)
                changed = True
            elif isinstance(action, PatchStatus):
                action.policy.status = action.status
            else:
                raise AssertionError(f"there is nothing to be deleted or evicted: {action}")
        return changed

    def _patch(self, action: PatchNode) -> None:
        node = self.nodes[action.node]
        for of, changes in (("labels", action.labels), ("annotations", action.annotations)):
            merged = {**node["metadata"][of], **changes}
            node["metadata"][of] = {key: value for key, value in merged.items() if value is not None}
        if action.unschedulable is not None:
            node["spec"] = {"unschedulable": action.unschedulable}

    def _known(self) -> Snapshot:
        for node in self.nodes.values():
            labels = node["metadata"]["labels"]
            if labels.get(keys.MIG_CONFIG) and deployed(labels, "mig-manager"):
                labels[keys.MIG_STATE] = "success"
            node["status"]["allocatable"] = self._offers(labels)
        return Snapshot(
            now=self.now,
            namespace=NAMESPACE,
            nodes=[msgspec.convert(node, Node) for node in self.nodes.values()],
            policies=self.policies,
            driver_sets=[DriverSet(each, NEWEST) for each in self.drivers],
            driver_pods=self._pods(self._has_driver),
            validators=self._pods(self._validates),
            mig_managers=self._pods(lambda labels: deployed(labels, "mig-manager")),
            seen=self.seen,
        )

    def _has_driver(self, labels: Labels) -> bool:
        return any(each.spec.template.spec.nodeSelector.items() <= labels.items() for each in self.drivers)

    def _expected(self, labels: Labels) -> Labels:
        """What the node's NodePolicy expects it to offer."""
        of = [each for each in self.policies if each.spec.nodeSelector.items() <= labels.items()]
        return {name: str(count or 1) for each in of for name, count in each.spec.gpu.resources.items()}

    def _offers(self, labels: Labels) -> Labels:
        works = self.working and any(labels.get(key) == "true" for key in keys.GPU_FEATURES)
        return self._expected(labels) if works or any(deployed(labels, name) for name in OFFERING) else {}

    def _validates(self, labels: Labels) -> bool:
        return deployed(labels, "operator-validator") and self._offers(labels) == self._expected(labels)

    def _pods(self, runs: Callable[[Labels], bool]) -> dict[str, list[Pod]]:
        """A pod on each node on whose labels one RUNS; it has just started."""
        container = {"name": "c", "ready": True, "state": {"running": {"startedAt": self.now}}}
        pod = {
            "metadata": {"name": "p", "namespace": NAMESPACE, "labels": {keys.HASH: NEWEST}},
            "status": {"phase": "Running", "containerStatuses": [container]},
        }
        names = [name for name, node in self.nodes.items() if runs(node["metadata"]["labels"])]
        return {name: [msgspec.convert({**pod, "spec": {"nodeName": name}}, Pod)] for name in names}


def deployed(labels: Labels, component: str) -> bool:
    """Whether COMPONENT is to run on a node with LABELS."""
    return labels.get(f"{keys.DEPLOY}{component}") == "true"
