"""A node as the rules see it: whom it belongs to, what is recorded on it, which driver it should have.

A node belongs to the one NodePolicy whose selector it matches. None or several, and its labels freeze and nothing
starts there: a label that is removed by mistake kills a driver (reconciler.md A2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy, PodDeletion
from ...api.objects import Node, count
from ...api.pods import DaemonSet, Pod
from ...api.taints import kept_away
from .pods import Uses
from .record import Last, Memory, Operation, Unreadable, read, readable
from .snapshot import DriverSet, Kept, Snapshot


@dataclass(frozen=True)
class View:
    """What is known of a node with a GPU, or with labels of one."""

    node: Node
    policies: tuple[NodePolicy, ...]
    operation: Operation | None = None
    last: Last = Last()  # noqa: RUF009 - never changed
    memory: Memory = Memory()  # noqa: RUF009 - never changed
    unledgered: Operation | None = None
    """What a record says to be open, and nobody has begun: it holds no slot, and nothing is done by it."""
    unreadable: str = ""
    """Why a record can't be read; nothing is done then."""
    spoilt: bool = False
    """Whether an operation is open here of which the record can't be read."""
    drivers: tuple[DriverSet, ...] = ()
    """The driver DaemonSets of the policy that run on this node: one, if all is well. No policy: the record's."""
    admitted: datetime | None = None
    """When the open operation was admitted, by the ledger, which no node can write."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def seen(self) -> tuple[str, str, str]:
        """The node in the version in which it was seen, for a write: its name, UID and resource version."""
        return self.name, self.node.metadata.uid, self.node.metadata.resourceVersion

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.node.metadata.annotations

    @cached_property
    def policy(self) -> NodePolicy | None:
        """The policy that the node belongs to; None where it is not exactly one."""
        return self.policies[0] if len(self.policies) == 1 else None

    @cached_property
    def deploys(self) -> dict[str, str]:
        """The deploy labels of the node: nodes have some hundred labels, and several rules look for these."""
        return {key: value for key, value in self.labels.items() if key.startswith(keys.DEPLOY)}

    @property
    def deployed(self) -> list[str]:
        """Those of them with a value of ours that takes a component to the node."""
        return [key for key, value in self.deploys.items() if value == "true" and key != keys.OPERANDS]

    def cut_as(self, layout: str) -> bool:
        """Whether the MIG manager says that the GPUs are cut as LAYOUT."""
        return (self.labels.get(keys.MIG_CONFIG), self.labels.get(keys.MIG_STATE)) == (layout, "success")

    @cached_property
    def gpu(self) -> bool:
        """Whether NFD says that the node has an NVIDIA GPU."""
        return has_gpu(self.node)

    @property
    def driver(self) -> DriverSet | None:
        """The DaemonSet that installs the node's driver."""
        return self.drivers[0] if self.drivers else None

    @cached_property
    def uncovered(self) -> bool:
        """Whether the node is to have a driver of the policy's, and none of its DaemonSets is for the node."""
        return bool(self.policy and self.policy.spec.driver and not self.barred("driver") and self.driver is None)

    def barred(self, component: str) -> bool:
        """Whether somebody keeps COMPONENT off the node for good: by an opt-out, or by a value of its label that isn't
        ours: "false", or "pre-installed" as the driver manager writes where it finds a driver (reconciler.md L23)."""
        ours = {"", "true", keys.PAUSED_FOR_DRIVER, keys.PAUSED_FOR_MIG}
        if self.labels.get(f"{keys.DEPLOY}{component}", "") not in ours:
            return True
        out = self.labels.get(keys.OPERANDS) == "false" or component in opted_out(self.node)
        return out and self.policy is not None and self.policy.spec.labelling

    @property
    def known_machine(self) -> bool:
        """Whether the stack was proved on this very machine, under this very Node object."""
        return (self.memory.uid, self.memory.machine) == (self.node.uid, self.node.status.nodeInfo.machineID)

    @property
    def held(self) -> str:
        """Why nothing may start here; "" where it may."""
        if self.labels.get(keys.HOLD) == "true":
            return f"the node has the label {keys.HOLD}=true"
        policy = self.policy
        if policy and keys.HOLD in policy.annotations:
            return f"the pool is held: {policy.annotations[keys.HOLD] or 'no reason given'}"
        return ""

    @property
    def owns_cordon(self) -> bool:
        """Whether the cordon is ours: the record says so, and so does the mark beside it."""
        record = self.operation or self.unledgered
        return bool(record and record.cordon and self.annotations.get(keys.CORDONED) == record.id)

    def allocatable(self, resource: str) -> int:
        """How many of RESOURCE the kubelet offers; absent is 0."""
        return count(self.node.status.allocatable.get(resource, "0"))

    @property
    def offers(self) -> dict[str, int]:
        """The extended resources of NVIDIA's that the node offers, without those of which there are none."""
        names = [name for name in self.node.status.allocatable if name.startswith(keys.NVIDIA)]
        return {name: count for name in sorted(names) if (count := self.allocatable(name))}

    def paused(self) -> list[str]:
        """Components that the driver manager or the MIG manager has paused."""
        return sorted(
            key.removeprefix(keys.DEPLOY)
            for key, value in self.deploys.items()
            if keys.PAUSED_FOR_DRIVER in value or keys.PAUSED_FOR_MIG in value
        )


def opted_out(node: Node) -> set[str]:
    """Components that are not to run on NODE."""
    return {part.strip() for part in node.annotations.get(keys.OPT_OUT, "").split(",")} - {""}


def has_gpu(node: Node) -> bool:
    """Whether NFD says that NODE has an NVIDIA GPU (reconciler.md L7)."""
    return any(node.metadata.labels.get(key) == "true" for key in keys.GPU_FEATURES)


def ours(node: Node) -> bool:
    """Whether NODE is any business of the program: it has a GPU, or labels or a record that say so."""
    return has_gpu(node) or keys.PRESENT in node.labels or keys.OPERATION in node.annotations


def views(known: Snapshot) -> list[View]:
    """Every node that is our business, by name."""
    return views_of(kept_views(known))


def views_of(made: Kept) -> list[View]:
    """The views that were MADE."""
    return [view for _, _, view in made.views.values()]


def kept_views(known: Snapshot) -> Kept:
    """A view of every node that is our business, by name: what KNOWN keeps where all that it's made of is the same."""
    of = (*known.policies, *(part for each in known.driver_sets for part in (each.object, each.newest)))
    before, ledger = known.kept, known.ledger
    still = len(of) == len(before.of) and all(
        new is old or (isinstance(new, str) and new == old) for new, old in zip(of, before.of, strict=True)
    )
    made: dict[str, tuple[Node, object, View]] = {}
    for node in sorted(known.nodes, key=lambda node: node.metadata.name):
        uid = node.metadata.uid
        entry = None if ledger is None else (ledger.get(uid),)
        found = before.views.get(uid) if still else None
        if found and found[0] is node and found[1] == entry:
            made[uid] = found
        elif ours(node):
            made[uid] = node, entry, view(known, node)
    return Kept(of, made)


def view(known: Snapshot, node: Node) -> View:
    """NODE with its policies and records."""
    policies = tuple(each for each in known.policies if selects(each.spec.nodeSelector, node.metadata.labels))
    annotations, operation = node.metadata.annotations, None
    try:
        operation = read(Operation, annotations.get(keys.OPERATION))
        last = read(Last, annotations.get(keys.LAST)) or Last()
        memory = read(Memory, annotations.get(keys.MEMORY)) or Memory()
    except Unreadable as why:
        open_, other = ledgered(known, node, operation)
        spoilt = open_ is None and keys.OPERATION in annotations and (known.ledger is None or node.uid in known.ledger)
        return View(node, policies, open_, unledgered=other, unreadable=str(why), spoilt=spoilt)
    open_, other = ledgered(known, node, operation)
    policy = policies[0] if len(policies) == 1 else None
    drivers = _drivers(known.driver_sets, policy, node) if policy else _recorded(known, open_)
    entry = (known.ledger or {}).get(node.uid) if open_ else None
    admitted = entry.since if entry else None
    made = View(node, policies, open_, last, memory, other, drivers=tuple(drivers), admitted=admitted)
    return replace(made, drivers=()) if drivers and made.barred("driver") else made


def operations(known: Snapshot) -> dict[str, Operation]:
    """What the records that can be read say to be open, by the node's UID."""
    records = ((node.uid, readable(Operation, node.annotations.get(keys.OPERATION))) for node in known.nodes)
    return {uid: operation for uid, operation in records if operation}


def ledgered(known: Snapshot, node: Node, operation: Operation | None) -> tuple[Operation | None, Operation | None]:
    """OPERATION, which a record says to be open on NODE, as one that is, or as one that nobody has begun. An annotation
    is up to whoever owns the node: what was begun stands in the Lease, and what its policy gives, it has."""
    if operation is None or known.ledger is None:
        return operation, None
    entry = known.ledger.get(node.uid)
    if entry is None or not entry.lists(operation.id):
        return None, operation
    if entry.policy and not operation.policy.startswith(entry.policy):
        uid = next((each.uid for each in known.policies if each.uid.startswith(entry.policy)), entry.policy)
        operation = msgspec.structs.replace(operation, policy=uid)
    policy = policy_of(known, operation.policy)
    return (bounded(operation, policy) if policy else _unbacked(operation)), None


def _unbacked(operation: Operation) -> Operation:
    """OPERATION whose policy is gone: what it says of deleting pods has nobody's word but the node's."""
    rules = [rule for rule in operation.finish.podRules if rule.then != "delete"]
    finish = msgspec.structs.replace(operation.finish, podRules=rules, ignoreBudgets=False)
    return msgspec.structs.replace(operation, finish=finish)


def bounded(operation: Operation, policy: NodePolicy) -> Operation:
    """OPERATION with no more attempts, time and power over pods than POLICY gives."""
    limits, said, upgrade = policy.spec.deadlines, operation.finish, policy.spec.upgrade
    health = policy.spec.health if operation.target.health else None
    wait, delete, drain = upgrade.waitForCompletion, upgrade.podDeletion, upgrade.drain
    finish = msgspec.structs.replace(
        said,
        wait=msgspec.structs.replace(said.wait, timeoutSeconds=min(said.wait.timeoutSeconds, wait.timeoutSeconds)),
        podDeletion=_milder(said.podDeletion, delete),
        drain=msgspec.structs.replace(_milder(said.drain, drain), enable=said.drain.enable and drain.enable),
        driverSeconds=min(said.driverSeconds, limits.driver),
        migSeconds=min(said.migSeconds, limits.mig + (limits.migReboot if policy.spec.migReboot else 0)),
        verifySeconds=min(said.verifySeconds, limits.verifying + (health.settleSeconds if health else 0)),
        requestSeconds=min(said.requestSeconds, health.requestSeconds) if health else 0,
        maxAttempts=min(said.maxAttempts, upgrade.maxAttempts),
        podRules=upgrade.podRules or [],
        ignoreBudgets=said.ignoreBudgets and upgrade.ignoreBudgetsAfter is not None,
    )
    return msgspec.structs.replace(operation, finish=finish)


H = TypeVar("H", bound=PodDeletion)


def _milder(said: H, given: H) -> H:
    """What both SAID and GIVEN let do to pods, and for how long; 0 seconds are no limit."""
    seconds = min(filter(None, (said.timeoutSeconds, given.timeoutSeconds)), default=0)
    force, data = said.force and given.force, said.deleteEmptyDir and given.deleteEmptyDir
    return msgspec.structs.replace(said, timeoutSeconds=seconds, force=force, deleteEmptyDir=data)


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether LABELS have all of SELECTOR."""
    return selector.items() <= labels.items()


def _drivers(sets: Sequence[DriverSet], policy: NodePolicy, node: Node) -> list[DriverSet]:
    """The driver DaemonSets that POLICY names and whose nodeSelector NODE matches, or will once it has its labels."""
    names = {each.name for each in policy.spec.driver.daemonSets} if policy.spec.driver else set()
    labels = {**node.labels, **policy.spec.labels, keys.PRESENT: "true", f"{keys.DEPLOY}driver": "true"}
    own = (each for each in sets if each.object.name in names)
    return [each for each in own if selects(each.object.spec.template.spec.nodeSelector, labels)]


def _recorded(known: Snapshot, operation: Operation | None) -> list[DriverSet]:
    """The driver DaemonSet that OPERATION began with: it finishes by that where its policy is gone (A2)."""
    name = operation.finish.daemonSet if operation else ""
    return [each for each in known.driver_sets if each.object.name == name]


def outdated(view: View, pods: Sequence[Pod]) -> list[Pod]:
    """The driver pods of the node that are not made from the newest template."""
    newest = view.driver.newest if view.driver else ""
    return [pod for pod in pods if outdated_by(pod, newest)]


def outdated_by(pod: Pod, newest: str) -> bool:
    """Whether a driver pod is made from another template than the NEWEST, where that is known."""
    return newest != "" and pod.labels.get(keys.HASH) != newest


def digest(pod_or_set: Pod | DaemonSet) -> str:
    """The DRIVER_CONFIG_DIGEST of a driver pod or of a DaemonSet's template; "" for none."""
    spec = pod_or_set.spec.template.spec if isinstance(pod_or_set, DaemonSet) else pod_or_set.spec
    variables = (each for container in (*spec.containers, *spec.initContainers) for each in container.env)
    return next((each.value for each in variables if each.name == "DRIVER_CONFIG_DIGEST" and each.value), "")


def leaving(view: View) -> str:
    """Why the node is about to go away; "" where it is not."""
    if view.node.metadata.deletionTimestamp is not None:
        return "the node is being deleted"
    for taint in view.node.spec.taints:
        if taint.key in keys.LEAVING_TAINTS and taint.effect == "NoSchedule":
            return f"an autoscaler is removing the node (taint {taint.key})"
    return ""


def mig_capable(view: View) -> bool | None:
    """Whether the node's GPUs can be cut (reconciler.md L29); None while nothing tells."""
    labels = view.labels
    if labels.get(keys.GUEST_DRIVER):
        return False
    if keys.MIG_CAPABLE in labels:
        return labels[keys.MIG_CAPABLE] == "true"
    product = labels.get(keys.PRODUCT, "").lower()
    if product and any(board in product for board in ("h100", "a100", "a30")):
        return True
    return view.policy.spec.gpu.migCapable if view.policy else None


def uses_of(known: Snapshot, view: View) -> Uses:
    """How pods that use this node's GPUs are told."""
    finish = view.operation.finish if view.operation else None
    gpu = view.policy.spec.gpu if view.policy else None
    return Uses(
        known.namespace,
        {*(finish.resources if finish else ()), *(gpu.resources if gpu else ())},
        {*(finish.runtimeClasses if finish else ()), *(gpu.runtimeClasses if gpu else ())},
        known.claims,
        frozenset(view.policy.spec.clientNamespaces if view.policy else ()),
        finish.podRules if finish else (view.policy.spec.upgrade.podRules or ()) if view.policy else (),
    )


def policy_of(known: Snapshot, uid: str) -> NodePolicy | None:
    """The policy with that UID, if it is still there."""
    return next((each for each in known.policies if each.metadata.uid == uid), None)


def untolerable(view: View) -> str:
    """Why a driver pod that was deleted would not come back (A12); "" where it would."""
    tolerations = view.driver.object.spec.template.spec.tolerations if view.driver else []
    own = (each for each in view.node.spec.taints if not each.key.startswith("node.kubernetes.io/"))  # the kubelet's
    away = kept_away(own, map(msgspec.structs.asdict, tolerations))
    return f"the driver does not tolerate the taint {away[0].key}: its pod would not come back" if away else ""


def uncovered(policy: NodePolicy) -> str:
    """The text for a node that no driver DaemonSet would run on."""
    names = ", ".join(each.name for each in policy.spec.driver.daemonSets) if policy.spec.driver else ""
    return f"no driver DaemonSet matches the node's system and kernel ({names or 'none is rendered'})"
