"""What a pass decides to do: data that the shell carries out, and that `--plan` prints.

An action on a node carries the resource version that it was decided on, an action on a pod its UID: whoever was faster
wins and the next pass decides again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy, Status
from ...api.objects import NodeTaint
from .snapshot import Kept, Seen


@dataclass(frozen=True)
class PatchNode:
    """Change a node in one write. None removes a label or annotation; `admits` is the operation that it begins."""

    node: str
    uid: str
    resource_version: str
    why: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    unschedulable: bool | None = None
    taints: Sequence[NodeTaint] | None = None
    admits: str = ""
    again: str = ""
    """The failed operation that the one which it begins is the next attempt of."""
    policy: str = ""
    """UID of the policy that it begins for."""
    install: bool = False
    """Whether it admits a new node, which no budget counts."""

    def body(self) -> dict[str, Any]:
        """The merge patch."""
        metadata: dict[str, Any] = {"resourceVersion": self.resource_version, "uid": self.uid}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        spec: dict[str, Any] = {}
        if self.unschedulable is not None:
            spec["unschedulable"] = self.unschedulable or None
        if self.taints is not None:
            spec["taints"] = msgspec.to_builtins(list(self.taints)) or None
        return {"metadata": metadata, **({"spec": spec} if spec else {})}


@dataclass(frozen=True)
class Evict:
    """Ask for a pod to be evicted."""

    node: str
    namespace: str
    name: str
    uid: str
    why: str


@dataclass(frozen=True)
class DeletePod:
    """Delete a pod of our own: a driver's or a MIG manager's, as it was when that was decided."""

    node: str
    namespace: str
    name: str
    uid: str
    why: str
    version: str = ""


@dataclass(frozen=True)
class PatchStatus:
    """Write what a policy has come to."""

    policy: NodePolicy
    status: Status


@dataclass(frozen=True)
class WriteLayouts:
    """Write the file that the MIG managers read. `at`: the time to note, "" where no content is new."""

    namespace: str
    version: str
    text: str
    at: str

    def body(self) -> dict[str, Any]:
        """The merge patch."""
        noted = {"annotations": {keys.LAYOUTS_AT: self.at}} if self.at else {}
        return {"metadata": {"resourceVersion": self.version, **noted}, "data": {keys.LAYOUTS_FILE: self.text}}


@dataclass(frozen=True)
class HoldLease:
    """Hold the Lease by which maintenance of a node is shared (others.py), in the version of it that was seen ("" for
    none), or give it back. `uid` is the node's."""

    node: str
    uid: str
    version: str
    spec: Mapping[str, Any]
    first: bool = False
    """Whether the node is only taken with it."""


Action = PatchNode | Evict | DeletePod | PatchStatus | WriteLayouts | HoldLease


@dataclass(frozen=True)
class Tell:
    """Something that people should see as an Event on a node."""

    node: str
    reason: str
    message: str
    warning: bool = False


WaitKind = Literal[
    # Something about the node itself.
    "unreadable", "unledgered", "membership", "looking", "unlabelled", "not-covered", "product", "startup", "gpu-gone",
    "gpu-pods", "health",
    # What is due is left alone.
    "revision", "auto-upgrade-off", "skip", "opt-out", "mig-busy", "manual",
    # It may not begin: gates, budget, order.
    "paused", "hold", "breaker", "leaving", "maintenance", "not-ready", "window", "cordoned", "taint", "backoff",
    "image", "pulling", "admitting", "parallel", "budget", "first", "soak", "checking", "blocked", "layout",
    "health-limit",
    # An operation is under way.
    "held", "evicting", "acting", "verifying", "quarantine",
    # The whole cluster.
    "operator", "refused",
]  # fmt: skip
"""What a node waits for. Status, metrics and people group by it, and so does the engine."""
Why = tuple[WaitKind, str]
"""What is waited for, and a sentence about it."""


@dataclass(frozen=True)
class Wait:
    """Why nothing happens on a node that is not as its policy says. `kind` groups, `message` explains."""

    node: str
    policy: str
    kind: WaitKind
    message: str


@dataclass(frozen=True)
class Decision:
    """All that a pass decided. `again` is the number of seconds after which to look again though nothing changed."""

    actions: tuple[Action, ...] = ()
    tells: tuple[Tell, ...] = ()
    waits: tuple[Wait, ...] = ()
    again: float = 300.0
    seen: Seen = field(default_factory=Seen)
    """What the next pass is to know of times."""
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)
    """The views that it may take as they are."""
