"""What the API server knows of the reconciler's program: what of a Node is its.

Whoever may patch a Node may patch all of it. The admission policy holds the program to what it is for (reconciler.md
A19), so that a stolen token moves no node out of its pool, adds no taint, and touches no node without a GPU.
"""

from collections.abc import Iterator, Sequence

from ...api import keys
from ...model import Body
from ..parts import admission
from ..parts.admission import listed, named, quoted
from .reconciler_inputs import ReconcilerInputs

LABELS = (*keys.STEERING, keys.UPGRADE_STATE)
"""Labels outside our own domain that it may change, with those that begin with `keys.DEPLOY`."""
ANNOTATIONS = (keys.UPGRADES_ENABLED, *keys.UPSTREAM_ANNOTATIONS, keys.SCALE_DOWN_DISABLED, keys.DO_NOT_DISRUPT)
"""Annotations outside our own domain that it may change."""


def admission_policies(name: str, inputs: ReconcilerInputs) -> Iterator[Body]:
    """The policies over what the program changes on Nodes, which Leases it makes and which pods of others it deletes,
    where it may delete any, each with its binding."""
    if inputs.guard == "Off":
        return
    labels, who = {"app": name}, admission.callers(inputs.namespace, [name])
    gpu = [f"'{keys.PRESENT}' in variables.labelsBefore"]
    gpu += [f"'{key}' in variables.annotationsBefore" for key in (keys.MEMORY, keys.OPERATION)]
    gpu += [f"variables.labelsBefore[?'{key}'].orValue('') == 'true'" for key in keys.GPU_FEATURES]
    gone = [f"(a.key == {quoted(key)} && a.effect == {quoted(effect)})" for key, effect in inputs.startup_taints]
    yield from admission.policy(
        "reconciler_nodes",
        inputs.guard,
        {
            "name": "reconciler",
            "expression": f"request.userInfo.username == '{admission.user(inputs.namespace, name)}'",
        },
        labels=labels,
        account=name,
        gpu=" || ".join(gpu),
        own_labels=named("key", LABELS, (f"{keys.DOMAIN}/", keys.DEPLOY)),
        own_annotations=named("key", ANNOTATIONS, (f"{keys.DOMAIN}/",)),
        leaves="".join(f"{each} || " for each in gone),
    )
    of_nodes = f"request.namespace == {quoted(inputs.leases)} && object.metadata.?name.orValue('').startsWith('node-')"
    nodes = f" || {of_nodes}" if inputs.leases else ""  # by which maintenance is shared
    yield from admission.policy("reconciler_lease", inputs.guard, who, labels=labels, account=name, nodes=nodes)
    if inputs.deletes:
        allowed = " || ".join(deleted(inputs))
        yield from admission.policy("reconciler_pods", inputs.guard, who, labels=labels, account=name, allowed=allowed)


def deleted(inputs: ReconcilerInputs) -> Iterator[str]:
    """The expressions that a pod may be deleted by one of the policy's rules, or is one of the stack."""
    yield f"request.namespace == {quoted(inputs.namespace)}"
    others: list[str] = []  # a pod for which an earlier rule says something else is not deleted by a later one
    for each in inputs.pod_rules:
        parts = [
            f"oldObject.metadata.?labels[?{quoted(key)}].orValue('') == {quoted(text)}" for key, text in each.labels
        ]
        parts += [f"request.namespace == {quoted(each.namespace)}"] if each.namespace else []
        if each.then == "delete":
            yield f"({' && '.join(parts + others)})"
        else:
            others.append(f"!({' && '.join(parts)})")
    if inputs.ignores_budgets:
        yield uses_gpu(inputs.runtime_classes)


def uses_gpu(runtime_classes: Sequence[str]) -> str:
    """The expression that a pod asks for a GPU: by a resource, by one of RUNTIME_CLASSES, or by a claim. Whose device a
    claim is for stands in another object, which no expression sees."""
    asks = "each.?resources.limits.orValue({}).exists(key, key.startsWith('nvidia.com/'))"
    spec = "oldObject.spec"
    ways = [f"{spec}.containers.exists(each, {asks})", f"{spec}.?initContainers.orValue([]).exists(each, {asks})"]
    if runtime_classes:
        ways.append(f"{spec}.?runtimeClassName.orValue('') in {listed(runtime_classes)}")
    ways.append(f"size({spec}.?resourceClaims.orValue([])) > 0")
    return f"({spec}.?nodeName.orValue('') != '' && ({' || '.join(ways)}))"
