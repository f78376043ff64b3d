"""What the master of node feature discovery may change of a node: it serves all of them, so its token is worth most.

It labels nodes by what workers and rules say. Held to the namespaces of labels that the policy opens, less the labels
that steer the stack unless a rule of the policy sets them, a stolen token moves no driver, no pool and no workload.
The lists by which it knows its own labels are annotations that it writes itself: they may lose entries, and gain only
what it may set, so that an old label outside those namespaces can still be cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ...policy.language.nfd import OPEN_NAMESPACES
from ..parts import admission
from ..parts.admission import named, over, quoted
from .guards_inputs import Discovery, GuardsInputs

POLICY = "gpustack-labels-by-discovery"
OWN = "nfd.node.kubernetes.io"
STEERING_PREFIXES = (keys.DEPLOY, "nvidia.com/gpu-driver-upgrade", "nvidia.com/cc.mode", f"{keys.DOMAIN}/")
"""How other labels begin that do what `keys.STEERING` do."""
STATUS = (
    *("conditions", "addresses", "daemonEndpoints", "nodeInfo"),
    *("volumesAttached", "volumesInUse", "config", "phase"),
)
"""Fields of a Node's status besides its resources and images."""


def discovery(inputs: GuardsInputs, master: Discovery) -> Iterator[Body]:
    """The policy over what the master changes, of nodes and of their status: a write of the status changes labels
    too.
    """
    note = f"key.startsWith('{OWN}/') || key.contains('.{OWN}/') || {in_namespaces(master)}"
    return admission.policy(
        POLICY,
        inputs.mode,
        rules=[over("", "nodes nodes/status", "UPDATE")],
        condition=admission.callers(inputs.namespace, [master.account]),
        variables=[
            *admission.node_changes(),
            *admission.changes("capacity", "?status.capacity"),
            *admission.changes("allocatable", "?status.allocatable"),
            *claimed("labels"),
            *claimed("annotations"),
        ],
        validations={
            (
                "node feature discovery changes labels in the namespaces of spec.nfd.labelNamespaces only, "
                "and none that steers the stack unless a rule in spec.extraObjects sets it"
            ): f"variables.labelsClaimed.all(key, {own_label(master)})",
            "node feature discovery changes its own annotations of a node only": (
                f"variables.annotationsClaimed.all(key, {note})"
            ),
            "node feature discovery changes nothing of a node's spec": (
                f"{admission.same_node()} && {admission.SAME_CORDON}"
            ),
            "node feature discovery adds and removes no taint": admission.taints(),
            (
                "node feature discovery changes nothing of a node's status but extended resources of its own namespaces"
            ): " && ".join([*offers(master), *same_status()]),
        },
    )


def claimed(field: str) -> Iterator[Body]:
    """Variables about FIELD, labels or annotations: the lists of those that the master calls its own, and all keys that
    a change must have a right to. Of those that it called its own before, it may let go.
    """
    known = f"[?'{OWN}/feature-{field}'].orValue('').split(',')"
    before = f"variables.{field}Listed"
    yield {"name": f"{field}Listed", "expression": f"variables.annotationsBefore{known}"}
    new = f"variables.annotationsAfter{known}.filter(key, !(key in {before}) && key.contains('/'))"
    gone = f"variables.{field}Gone.filter(key, !(key in {before}))"
    yield {"name": f"{field}Claimed", "expression": f"variables.{field}Set + {gone} + {new}"}


def in_namespaces(master: Discovery) -> str:
    """The expression that `key` is in a namespace that the policy opens, or below one that is open to all."""
    parts = [f"key.startsWith({quoted(f'{namespace}/')})" for namespace in master.namespaces]
    parts += [f"key.contains('.{namespace}/')" for namespace in OPEN_NAMESPACES]
    return f"({' || '.join(parts)})"


def own_label(master: Discovery) -> str:
    """The expression that `key` is a label that the master may set."""
    steers = named("key", keys.STEERING, STEERING_PREFIXES)
    asked = f"key in {admission.listed(master.steering)} || " if master.steering else ""
    return f"{in_namespaces(master)} && ({asked}!({steers}))"


def offers(master: Discovery) -> Iterator[str]:
    """The expressions that no resource of others changes: not the node's, and not the device plugins' GPUs."""
    for field in ("capacity", "allocatable"):
        yield admission.only(field, f"{in_namespaces(master)} && !key.startsWith('nvidia.com/')")


def same_status() -> Iterator[str]:
    """The expressions that nothing else of the status differs."""
    for field in STATUS:
        yield f"object.?status.{field} == oldObject.?status.{field}"
