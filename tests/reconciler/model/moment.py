"""A write, as the invariants look at it: what was before and after, who wrote, and what that pass had seen.

Read from the plain objects, never through the program's own rules: these say what must hold, so they can't be asked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from gpustack.api.keys import LEDGER
from gpustack.api.node_policy import NodePolicy
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.cluster import LEASES, NODES, POLICIES
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.memory import Request
from tests.reconciler.memory.server import Event
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.world import World

OP, LAST, MEMORY, CORDONED = (f"gpustack.dev/{name}" for name in ("op", "last-op", "node", "cordoned-by"))
FENCE = "gpustack.dev/fence"
REQUESTED = "gpustack.dev/requested"
HOLD, PAUSED = "gpustack.dev/hold", "gpustack.dev/paused"
DEPLOY = "nvidia.com/gpu.deploy."
UPSTREAM = "nvidia.com/gpu-driver-upgrade-state"
PCI = "feature.node.kubernetes.io/pci-10de.present"
ZONE = "topology.kubernetes.io/zone"
BOOKKEEPING = {"resourceVersion", "generation", "managedFields"}
FORGED = "f0f0f0f0f0f0"
"""The operation of a record that somebody wrote for it to be believed."""
OPEN = {"Held", "Evicting", "Acting", "Verifying"}
Document = dict[str, Any]
KURED, LOCK = ("kube-system", "kured"), "weave.works/kured-node-lock"
"""kured's DaemonSet, and its annotation that is a lock."""
SHARED = "medik8s-leases"
"""The namespace of the Leases by which maintenance of nodes is shared."""


def holds(lease: Document, now: datetime) -> str:
    """Who holds LEASE, of a node; "" for nobody any more."""
    spec = lease["spec"]
    renewed = datetime.fromisoformat(spec.get("renewTime") or "1970-01-01T00:00:00Z")
    valid = renewed <= now <= renewed + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return str(spec.get("holderIdentity") or "") if valid else ""


def locked(text: str | None, node: str, now: datetime) -> bool:
    """Whether kured's lock TEXT has no room for another node, or is one of NODE."""
    try:
        lock = json.loads("{}" if text is None else text)
        every = (lock["locks"] or []) if "locks" in lock else [lock] if lock else []
        ends = [datetime.fromisoformat(each["created"]) + timedelta(seconds=each["TTL"] / 10**9) for each in every]
    except (ValueError, KeyError, TypeError, OverflowError):
        return True
    held = [each["nodeID"] for each, end in zip(every, ends, strict=True) if not each["TTL"] or end > now]
    return node in held or len(held) >= lock.get("maxOwners", 1)


@lru_cache(maxsize=4096)
def parsed(text: str) -> Document:
    """A record, or {"unreadable": True}."""
    try:
        found = json.loads(text)
    except ValueError:
        return {"unreadable": True}
    return found if isinstance(found, dict) and found.get("v") == 1 and "phase" in found else {"unreadable": True}


def operation(node: Document | None) -> Document:
    """The open operation of a node; empty for none. One that nobody began doesn't count."""
    text = annotations_of(node).get(OP)
    found = parsed(text) if text else {}
    return {} if found.get("id") == FORGED else found


def annotations_of(node: Document | None) -> Mapping[str, str]:
    """The annotations of an object."""
    return ((node or {}).get("metadata") or {}).get("annotations") or {}


def labels(node: Document | None) -> Mapping[str, str]:
    """The labels of an object."""
    return ((node or {}).get("metadata") or {}).get("labels") or {}


def cordoned(node: Document | None) -> bool:
    """Whether a node is unschedulable."""
    return bool(((node or {}).get("spec") or {}).get("unschedulable"))


def works(node: Document) -> bool:
    """Whether a node is Ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def disruptive(found: Document) -> bool:
    """Whether an operation takes its node out of service."""
    return bool(found) and "install" not in found.get("acts", ())


def in_slot(found: Document) -> bool:
    """Whether an operation holds a slot."""
    return disruptive(found) and found.get("phase") in OPEN


def started(node: Document) -> datetime:
    """When the operation that is open on NODE began."""
    return datetime.fromisoformat(operation(node)["started"])


def limit_of(limit: int | str, total: int) -> int:
    """A number or a percentage of TOTAL, rounded up."""
    return math.ceil(int(limit[:-1]) * total / 100) if isinstance(limit, str) else limit


def _without_fence(node: Document) -> Document:
    """What anybody decides by: an object without its fence and what every write changes."""
    metadata = {key: value for key, value in (node.get("metadata") or {}).items() if key not in BOOKKEEPING}
    metadata["annotations"] = {key: value for key, value in annotations_of(node).items() if key != FENCE}
    return {**node, "metadata": metadata}


@dataclass(frozen=True)
class Moment:
    """A change of one object. `request` is None where somebody else wrote; `known` is what the writer's pass saw."""

    world: World
    event: Event
    request: Request | None = None
    known: Snapshot | None = None
    owner: str = ""
    """Who cordoned the node before this write: "us", "others" or nobody."""
    empty_lists: int = 0
    """How many lists of the node's pods in a row had none that uses a GPU, for the writer."""
    gone_since: tuple[datetime, float] | None = None
    """Since when NFD has not seen the node's GPU, by the API server's clock and by the time that has passed."""

    @property
    def ours(self) -> bool:
        """Whether the program wrote."""
        return self.request is not None

    @property
    def before(self) -> Document:
        """The object before; empty where there was none."""
        return self.event.before or {}

    @property
    def after(self) -> Document:
        """The object after; empty where there is none."""
        return self.event.after or {}

    @property
    def name(self) -> str:
        """The object's name."""
        return str((self.after or self.before)["metadata"]["name"])

    @property
    def opened(self) -> bool:
        """Whether a node was taken: an operation that holds a slot began, or began again."""
        return in_slot(operation(self.after)) and not in_slot(operation(self.before)) and not self.taken_over

    @property
    def taken_over(self) -> bool:
        """Whether the write goes on with what the operator had begun: it had taken the node already."""
        return UPSTREAM in labels(self.before)

    @property
    def fence_alone(self) -> bool:
        """Whether the write changes a node's fence and nothing else."""
        fenced = annotations_of(self.before).get(FENCE) != annotations_of(self.after).get(FENCE)
        return fenced and _without_fence(self.before) == _without_fence(self.after)

    def ledger(self) -> set[str]:
        """UIDs of the nodes on which operations are open by the Lease."""
        lease = self.world.server.find(LEASES, NAME, NAMESPACE) or {}
        text = annotations_of(lease).get(LEDGER, "{}") if lease else "{}"
        return set(json.loads(text)) if text.endswith("}") and text.startswith('{"') else set()

    def nodes(self) -> Iterator[Document]:
        """All nodes as they are now."""
        return self.world.server.all(NODES)

    def policies(self) -> list[Document]:
        """All NodePolicies as they are now."""
        return list(self.world.server.all(POLICIES))

    def policy(self, uid: str) -> Document | None:
        """The policy with that UID."""
        return next((each for each in self.policies() if each["metadata"]["uid"] == uid), None)

    def seen_policy(self, uid: str) -> NodePolicy | None:
        """The policy with that UID as the writer's pass saw it: budgets may have shrunk since."""
        policies = self.known.policies if self.known else ()
        return next((each for each in policies if each.uid == uid), None)

    def owner_of(self, node: Document) -> str:
        """UID of the policy whose budget a node counts in, of those that the pass saw: that of its operation, unless it
        is in no ledger."""
        found, seen = operation(node), labels(node)
        ledger = self.known.ledger if self.known else None
        if ledger is not None and node["metadata"]["uid"] not in ledger:
            found = {}
        policies = self.known.policies if self.known else ()
        if found and self.seen_policy(found.get("policy", "")):
            return str(found["policy"])
        if not found and seen.get(PCI) != "true" and seen.get("nvidia.com/gpu.present") != "true":
            return ""
        matching = [
            each.uid
            for each in policies
            if all(seen.get(key) == value for key, value in each.spec.nodeSelector.items())
        ]
        return matching[0] if len(matching) == 1 or (matching and found) else ""

    def gpu_pods(self, node: str) -> list[Document]:
        """The pods that use a GPU of a node."""
        return list(self.world.gpu_pods(node))
