"""What the API server knows of the reconciler's program: that its Lease comes first, and what of a Node is its.

Whoever may patch a Node may patch all of it. The admission policy holds the program to what it is for (reconciler.md
A19), so that a stolen token moves no node out of its pool, adds no taint, and touches no node without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..model import Body
from ..reconciler import keys
from .inputs.reconciler import ReconcilerInputs
from .kube import metadata

LABELS = (
    keys.PRESENT,
    keys.WORKLOAD,
    keys.MIG_CONFIG,
    keys.MIG_STATE,
    keys.PLUGIN_CONFIG,
    keys.VGPU_CONFIG,
    keys.DRIVER_OWNER,
    keys.UPGRADE_STATE,
)
"""Labels outside our own domain that it may change, with those that begin with `keys.DEPLOY`."""
ANNOTATIONS = (keys.UPGRADES_ENABLED, *keys.UPSTREAM_ANNOTATIONS, keys.SCALE_DOWN_DISABLED, keys.DO_NOT_DISRUPT)
"""Annotations outside our own domain that it may change."""
UNTOUCHED = {"podCIDR": "''", "podCIDRs": "[]", "providerID": "''", "externalID": "''"}
"""Fields of a Node's spec beside `unschedulable` and `taints`, and what stands for an absent one."""


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
    account, policy = f"system:serviceaccount:{inputs.namespace}:{name}", f"{name}-nodes"
    nodes = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["nodes"],
        "scope": "*",
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata(policy, labels={"app": name}),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [nodes],
            },
            "matchConditions": [
                {"name": "reconciler", "expression": f"request.userInfo.username == '{account}'"},
            ],
            "variables": list(variables()),
            "validations": list(validations(inputs.startup_taints)),
        },
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata(policy, labels={"app": name}),
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    }


def variables() -> Iterator[Body]:
    """Labels, annotations and taints of the Node, before and after; empty where there are none."""
    for when, subject in (("Before", "oldObject"), ("After", "object")):
        for field, path, empty in (
            ("labels", "metadata.?labels", "{}"),
            ("annotations", "metadata.?annotations", "{}"),
            ("taints", "spec.?taints", "[]"),
        ):
            yield {"name": f"{field}{when}", "expression": f"{subject}.{path}.orValue({empty})"}


def validations(startup_taints: Iterable[tuple[str, str]]) -> Iterator[Body]:
    """What must hold of a change, each with the words that a refusal has."""
    gpu = [f"'{keys.PRESENT}' in variables.labelsBefore"]
    gpu += [f"'{key}' in variables.annotationsBefore" for key in (keys.MEMORY, keys.OPERATION)]
    gpu += [f"variables.labelsBefore[?'{key}'].orValue('') == 'true'" for key in keys.GPU_FEATURES]
    yield {"expression": " || ".join(gpu), "message": "the reconciler changes nodes with a GPU only"}
    for field, own in (
        ("labels", owned("key", LABELS, (f"{keys.DOMAIN}/", keys.DEPLOY))),
        ("annotations", owned("key", ANNOTATIONS, (f"{keys.DOMAIN}/",))),
    ):
        before, after = f"variables.{field}Before", f"variables.{field}After"
        kept = f"{before}[?key].orValue('') == {after}[key] && key in {before}"
        yield {
            "expression": f"{after}.all(key, ({kept}) || {own}) && {before}.all(key, key in {after} || {own})",
            "message": f"the reconciler changes its own {field} of a node only",
        }
    same = [
        f"object.spec.?{name}.orValue({empty}) == oldObject.spec.?{name}.orValue({empty})"
        for name, empty in UNTOUCHED.items()
    ]
    same += [
        f"object.metadata.?{name}.orValue([]) == oldObject.metadata.?{name}.orValue([])"
        for name in ("finalizers", "ownerReferences")
    ]
    yield {
        "expression": " && ".join(same),
        "message": "the reconciler changes nothing of a node's spec but whether it is schedulable, and startup taints",
    }
    yield {
        "expression": taints(startup_taints),
        "message": "the reconciler adds no taint, and removes those of spec.reconciler.startupTaints only",
    }


def owned(key: str, names: Iterable[str], prefixes: Iterable[str]) -> str:
    """The expression that KEY is one of NAMES or begins with one of PREFIXES."""
    parts = [f"{key}.startsWith('{prefix}')" for prefix in prefixes]
    return " || ".join([*parts, f"{key} in {list(names)}"])


def taints(startup: Iterable[tuple[str, str]]) -> str:
    """The expression that no taint came, and none went but those of STARTUP. When one was added is not looked at."""
    same = "a.key == b.key && a.effect == b.effect && a.?value.orValue('') == b.?value.orValue('')"
    gone = " || ".join(f"(a.key == '{key}' && a.effect == '{effect}')" for key, effect in startup)
    before, after = "variables.taintsBefore", "variables.taintsAfter"
    stays = f"{after}.exists(b, {same})"
    leaves = f"{gone} || {stays}" if gone else stays
    return f"{after}.all(a, {before}.exists(b, {same})) && {before}.all(a, {leaves})"
