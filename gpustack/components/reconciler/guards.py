"""What the API server knows of the reconciler's program: that its Lease comes first, and what of a Node is its.

Whoever may patch a Node may patch all of it. The admission policy holds the program to what it is for (reconciler.md
A19), so that a stolen token moves no node out of its pool, adds no taint, and touches no node without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...api import keys
from ...model import Body
from ..parts import admission
from ..parts.admission import listed, named, quoted
from ..parts.kube import metadata
from .reconciler_inputs import ReconcilerInputs

LABELS = (*keys.STEERING, keys.UPGRADE_STATE)
"""Labels outside our own domain that it may change, with those that begin with `keys.DEPLOY`."""
ANNOTATIONS = (keys.UPGRADES_ENABLED, *keys.UPSTREAM_ANNOTATIONS, keys.SCALE_DOWN_DISABLED, keys.DO_NOT_DISRUPT)
"""Annotations outside our own domain that it may change."""


def flow_schema(name: str, namespace: str) -> Body:
    """Requests for its Lease are served with those of other leaders, and not behind everybody's: a leader that can't
    renew in time stops (reconciler.md A18).
    """
    account = {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": namespace}}
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "namespaces": [namespace],
        "resources": ["leases"],
        "verbs": ["create", "get", "patch", "update"],
    }
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": metadata(f"{name}-lease", labels={"app": name}),
        "spec": {
            "distinguisherMethod": {"type": "ByUser"},
            "matchingPrecedence": 500,
            "priorityLevelConfiguration": {"name": "leader-election"},
            "rules": [{"subjects": [account], "resourceRules": [leases]}],
        },
    }


def admission_policy(name: str, inputs: ReconcilerInputs) -> Iterator[Body]:
    """The policy over what the program changes on Nodes, and its binding."""
    if inputs.guard == "Off":
        return
    account = admission.user(inputs.namespace, name)
    yield from admission.policy(
        f"{name}-nodes",
        inputs.guard,
        rules=[admission.over("", "nodes", "UPDATE")],
        condition={"name": "reconciler", "expression": f"request.userInfo.username == '{account}'"},
        variables=admission.node_changes(),
        validations=validations(inputs.startup_taints),
        labels={"app": name},
    )


def lease_policy(name: str, inputs: ReconcilerInputs) -> Iterator[Body]:
    """The policy that it makes its own Lease only: a right to create can't be limited to a name. By the name of
    another's it would be leader in its place.
    """
    if inputs.guard == "Off":
        return
    own = [f"object.metadata.?name.orValue('') == '{name}'"]
    if inputs.leases:  # and those of nodes, by which maintenance is shared
        own.append(
            f"request.namespace == {quoted(inputs.leases)} && object.metadata.?name.orValue('').startsWith('node-')"
        )
    yield from admission.policy(
        f"{name}-lease",
        inputs.guard,
        rules=[admission.over("coordination.k8s.io", "leases", "CREATE")],
        condition=admission.callers(inputs.namespace, [name]),
        variables=[],
        validations={"the reconciler makes its own Lease only": " || ".join(own)},
        labels={"app": name},
    )


def pod_policy(name: str, inputs: ReconcilerInputs) -> Iterator[Body]:
    """The policy over which pods of others it deletes, where it may delete any."""
    if inputs.guard == "Off" or not inputs.deletes:
        return
    allowed = [f"request.namespace == {quoted(inputs.namespace)}"]
    others: list[str] = []  # a pod for which an earlier rule says something else is not deleted by a later one
    for each in inputs.pod_rules:
        parts = [
            f"oldObject.metadata.?labels[?{quoted(key)}].orValue('') == {quoted(text)}" for key, text in each.labels
        ]
        parts += [f"request.namespace == {quoted(each.namespace)}"] if each.namespace else []
        if each.then == "delete":
            allowed.append(f"({' && '.join(parts + others)})")
        else:
            others.append(f"!({' && '.join(parts)})")
    if inputs.ignores_budgets:
        allowed.append(uses_gpu(inputs.runtime_classes))
    yield from admission.policy(
        f"{name}-pods",
        inputs.guard,
        rules=[admission.over("", "pods", "DELETE")],
        condition=admission.callers(inputs.namespace, [name]),
        variables=[],
        validations={
            "the reconciler deletes pods of the stack, and those that spec.reconciler says": " || ".join(allowed)
        },
        labels={"app": name},
    )


def uses_gpu(runtime_classes: Sequence[str]) -> str:
    """The expression that a pod asks for a GPU: by a resource, by one of RUNTIME_CLASSES, or by a claim. Whose device a
    claim is for stands in another object, which no expression sees.
    """
    asks = "each.?resources.limits.orValue({}).exists(key, key.startsWith('nvidia.com/'))"
    spec = "oldObject.spec"
    ways = [f"{spec}.containers.exists(each, {asks})", f"{spec}.?initContainers.orValue([]).exists(each, {asks})"]
    if runtime_classes:
        ways.append(f"{spec}.?runtimeClassName.orValue('') in {listed(runtime_classes)}")
    ways.append(f"size({spec}.?resourceClaims.orValue([])) > 0")
    return f"({spec}.?nodeName.orValue('') != '' && ({' || '.join(ways)}))"


def validations(startup_taints: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What must hold of a change, by the words that a refusal has."""
    gpu = [f"'{keys.PRESENT}' in variables.labelsBefore"]
    gpu += [f"'{key}' in variables.annotationsBefore" for key in (keys.MEMORY, keys.OPERATION)]
    gpu += [f"variables.labelsBefore[?'{key}'].orValue('') == 'true'" for key in keys.GPU_FEATURES]
    own = {
        "labels": named("key", LABELS, (f"{keys.DOMAIN}/", keys.DEPLOY)),
        "annotations": named("key", ANNOTATIONS, (f"{keys.DOMAIN}/",)),
    }
    spec = "the reconciler changes nothing of a node's spec but whether it is schedulable, and startup taints"
    taints = "the reconciler adds no taint, and removes those of spec.reconciler.startupTaints only"
    return {
        "the reconciler changes nodes with a GPU only": " || ".join(gpu),
        **{
            f"the reconciler changes its own {field} of a node only": admission.only(field, each)
            for field, each in own.items()
        },
        spec: admission.same_node(),
        taints: admission.taints(startup_taints),
    }
