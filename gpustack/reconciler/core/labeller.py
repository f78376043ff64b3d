"""The labels of a node that no operation is open on: adds fast, removes slowly, owns its own values only.

The operator rewrites labels from whatever NFD says at the moment, so an NFD restart takes drivers away from under
running pods (reconciler.md P32). Here a label is added at once, and removed only when the GPU has been gone for long,
nothing uses it and the node works. A value that somebody else wrote ("false", "paused-for-...", "pre-installed") stays
byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.pods import Pod
from .actions import Why
from .bounds import span
from .moves import remembered
from .pods import to_evict
from .snapshot import Snapshot
from .view import View, mig_capable, opted_out, uses_of

LONGEST_PAUSE = timedelta(minutes=45)
"""The driver manager waits five minutes for each of eight components, one after the other (reconciler.md D5)."""

SWAPPED = (keys.WORKLOAD, keys.VGPU_CONFIG, keys.DRIVER_OWNER)
"""Labels whose change disturbs what runs on the node: an operation changes them, where they have a value."""


@dataclass
class Edit:
    """What is to be written on a node, and why; `waits` says what is not done yet."""

    labels: dict[str, str | None] = field(default_factory=dict)
    annotations: dict[str, str | None] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    waits: list[Why] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotations)


def components(view: View, policy: NodePolicy) -> list[str]:
    """The components whose deploy labels the node is to have from us."""
    if view.labels.get(keys.OPERANDS) == "false" or not policy.spec.labelling:
        return []
    without = opted_out(view.node)
    if not mig_capable(view):
        without.add("mig-manager")
    return [name for name in policy.spec.components if name not in without]


def missing(view: View, policy: NodePolicy) -> dict[str, str | None]:
    """The deploy labels to add. An empty value counts as absent: the driver manager writes it (reconciler.md L20)."""
    wanted = (f"{keys.DEPLOY}{name}" for name in components(view, policy))
    return {key: "true" for key in wanted if not view.labels.get(key)}


def surplus(view: View, policy: NodePolicy) -> list[str]:
    """The deploy labels with a value of ours that the node is not to have. The MIG manager's stays (L18)."""
    ours = view.deployed
    if not (policy.spec.labelling and ours):
        return []
    wanted = {f"{keys.DEPLOY}{name}" for name in components(view, policy)}
    if "mig-manager" in policy.spec.components and "mig-manager" not in opted_out(view.node):
        wanted.add(f"{keys.DEPLOY}mig-manager")
    return sorted(set(ours) - wanted)


def unlabelled(view: View, policy: NodePolicy) -> str:
    """The label that somebody else has yet to set before anything can be done on the node; "" for none."""
    wanted = [keys.PRESENT, *([f"{keys.DEPLOY}driver"] if policy.spec.driver else [])]
    missing_now = (key for key in wanted if not view.labels.get(key))
    return "" if policy.spec.labelling else next(missing_now, "")


def edit(known: Snapshot, view: View, policy: NodePolicy) -> Edit:
    """The labels and annotations of a node that no operation is open or due on."""
    made = Edit()
    if not view.gpu:
        if policy.spec.labelling:
            _gone(known, view, policy, made)
        return made
    if policy.spec.labelling:
        if view.labels.get(keys.PRESENT) != "true":
            made.labels[keys.PRESENT] = "true"
        made.labels |= missing(view, policy)
        made.labels |= {
            key: value
            for key, value in policy.spec.labels.items()
            if view.labels.get(key) != value and not disturbs(known, view, key)  # due.py makes an operation of those
        }
        _removal(known, view, policy, made)
    # What a driver manager or MIG manager paused and then forgot is set going again (reconciler.md P29, M13, M14).
    if healed := paused_and_forgotten(known, view):
        made.labels |= dict.fromkeys(healed, "true")
        made.why.append("paused by nobody who still works on it")
    made.annotations |= upgrade_annotation(view, policy)
    if made:
        made.why.append("labels of " + policy.name)
    return made


def adopt(view: View, policy: NodePolicy, made: Edit) -> None:
    """Remember that the node belongs to POLICY and that its stack was found working."""
    memory, mig = view.memory, policy.spec.mig
    if mig and not view.cut_as(mig.config):
        mig = None  # where nobody has said success, it may never have been cut
    kept = view.known_machine and (mig is None or memory.mig == mig.config)
    if memory.policy == policy.uid and memory.name == policy.name and kept:
        return
    proved = (memory.mig, memory.mig_digest) if view.known_machine else ("", "")
    if mig and not kept:
        proved = mig.config, mig.digest
    made.annotations |= remembered(view, policy.uid, policy.name, *proved)
    made.why.append(f"belongs to {policy.name}")


def disturbs(known: Snapshot, view: View, key: str) -> bool:
    """Whether another value of the label KEY would disturb what runs on the node: it has one, or a driver without."""
    there = view.labels.get(key) or (key == keys.DRIVER_OWNER and known.driver_pods.get(view.name))
    return key in SWAPPED and bool(there)


def _removal(known: Snapshot, view: View, policy: NodePolicy, made: Edit) -> None:
    unwanted = surplus(view, policy)
    using = users(known, view) if unwanted else None
    if using:
        names = ", ".join(key.removeprefix(keys.DEPLOY) for key in unwanted)
        made.waits.append(("gpu-pods", f"{names} stays until no pod uses a GPU here: {using[0].key} does"))
    elif using is not None:
        made.labels |= dict.fromkeys(unwanted)


def users(known: Snapshot, view: View) -> Sequence[Pod] | None:
    """The pods that use GPUs of the node; None where its pods were not read."""
    pods = known.pods.get(view.name)
    return None if pods is None else to_evict(pods, uses_of(known, view))


def gone_for_long(known: Snapshot, view: View, policy: NodePolicy) -> bool:
    """Whether the node's GPU has been gone from NFD's labels for the grace period, on a node that works and offers
    none. An outage of NFD looks the same for a while: that is what the grace is for."""
    away = policy.spec.labelling and view.labels.get(keys.PRESENT) == "true" and not view.gpu
    quiet = away and view.node.ready and not view.offers and view.operation is None
    gone = known.seen.since(view.node.uid, "gpu-gone", known.now, holds=quiet)
    return quiet and gone >= span(policy.spec.graceSeconds)


def _gone(known: Snapshot, view: View, policy: NodePolicy, made: Edit) -> None:
    if view.labels.get(keys.PRESENT) != "true":
        return
    if not gone_for_long(known, view, policy):
        made.waits.append(("gpu-gone", "NFD no longer sees a GPU; the labels stay for a while, in case it is NFD"))
        return
    using = users(known, view)
    if using is None or using:
        made.waits.append(("gpu-gone", "NFD no longer sees a GPU, but pods still use one"))
        return
    made.labels |= {keys.PRESENT: "false", **dict.fromkeys(view.deployed)}
    if view.annotations.get(keys.UPGRADES_ENABLED) == "true":
        made.annotations[keys.UPGRADES_ENABLED] = None
    made.why.append("the GPU is gone")


def paused_and_forgotten(known: Snapshot, view: View) -> list[str]:
    """Deploy labels that were paused longer ago than anybody who pauses them waits, while that party is idle."""
    busy = view.labels.get(keys.MIG_STATE) in {"pending", "rebooting"}
    asleep = known.seen.since(view.node.uid, "mig-busy", known.now, holds=busy) >= LONGEST_PAUSE  # M13
    # A driver pod may be in its init containers, where the driver manager works.
    idle = all(pod.ready for pod in known.driver_pods.get(view.name, ())) and (not busy or asleep)
    stuck = [key for key, value in view.deploys.items() if value in {keys.PAUSED_FOR_DRIVER, keys.PAUSED_FOR_MIG}]
    since = known.seen.since(view.node.uid, "paused", known.now, holds=bool(stuck) and idle)
    return sorted(stuck) if idle and since >= LONGEST_PAUSE else []


def upgrade_annotation(view: View, policy: NodePolicy) -> dict[str, str | None]:
    """The annotation that leaves eviction to us, where it is not as it should be (reconciler.md L31)."""
    wanted = policy.spec.upgradeAnnotation
    there = view.annotations.get(keys.UPGRADES_ENABLED) == "true"
    return {} if wanted == there else {keys.UPGRADES_ENABLED: "true" if wanted else None}
