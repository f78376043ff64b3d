"""ValidatingAdmissionPolicies: their form, and the expressions that several of them are made of.

A change is looked at as what was before and what is after, so a rule holds for create, update and delete alike. What
is compared is written with `orValue`, because an expression that fails is a refusal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from ...model import Body
from .kube import metadata
from .pod import sparse

API_VERSION = "admissionregistration.k8s.io/v1"
ACTIONS = {"Deny": ["Deny"], "Audit": ["Audit", "Warn"]}
"""What happens to a request that breaks a rule, by `guards.mode`. Warn tells who sent it, Audit the audit log."""
TOKEN_NODE = "authentication.kubernetes.io/node-name"  # noqa: S105 - the name of a fact about a token, no password
"""Where the API server puts the node of the pod that a token was made for."""
HERE = {"name": "here", "expression": f"request.userInfo.?extra[?'{TOKEN_NODE}'].orValue([])"}
"""The variable with the node of the caller's pod, as a list: empty for a token that names none."""
SAME_CORDON = "object.spec.?unschedulable.orValue(false) == oldObject.spec.?unschedulable.orValue(false)"
"""The expression that a Node is as schedulable as before."""
UNTOUCHED = {"podCIDR": "''", "podCIDRs": "[]", "providerID": "''", "externalID": "''"}
"""Fields of a Node's spec beside `unschedulable` and `taints`, and what stands for an absent one."""


def policy(
    name: str,
    mode: Literal["Deny", "Audit"],
    *,
    rules: Sequence[Body],
    condition: Body,
    variables: Iterable[Body],
    validations: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    namespace: str = "",
    marked: Mapping[str, str] | None = None,
) -> Iterator[Body]:
    """The policy NAME over what RULES match and CONDITION holds of, and its binding. VALIDATIONS are expressions by
    what the API server says where one doesn't hold.

    NAMESPACE: only there. MARKED: only objects with these labels, before or after. What the API server would fill in is
    written out, so that a diff against the cluster is empty.
    """
    within = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
    yield {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata(name, labels=labels),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": within,
                "objectSelector": {"matchLabels": dict(marked)} if marked else {},
                "resourceRules": list(rules),
            },
            "matchConditions": [condition],
            **sparse(variables=list(variables)),
            "validations": [{"expression": holds, "message": words} for words, holds in validations.items()],
        },
    }
    yield {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata(name, labels=labels),
        "spec": {"policyName": name, "validationActions": list(ACTIONS[mode])},
    }


def over(group: str, resources: str, operations: str, version: str = "v1") -> Body:
    """A rule from words: over("apps", "daemonsets deployments", "CREATE UPDATE")."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": operations.split(),
        "resources": resources.split(),
        "scope": "*",
    }


def callers(namespace: str, accounts: Iterable[str]) -> Body:
    """The condition that the caller is one of ACCOUNTS of NAMESPACE."""
    users = [user(namespace, account) for account in accounts]
    return {"name": "caller", "expression": f"request.userInfo.username in {listed(users)}"}


def user(namespace: str, account: str) -> str:
    """What the API server calls the ServiceAccount ACCOUNT."""
    return f"system:serviceaccount:{namespace}:{account}"


def node_changes() -> Iterator[Body]:
    """Variables: labels and annotations of a Node before and after, the keys that were set or went, and its taints."""
    for field in ("labels", "annotations"):
        yield from changes(field, f"metadata.?{field}")
    for when, subject in (("Before", "oldObject"), ("After", "object")):
        yield {"name": f"taints{when}", "expression": f"{subject}.spec.?taints.orValue([])"}


def changes(field: str, path: str) -> Iterator[Body]:
    """Variables about FIELD, a map at PATH of the object: before, after, and the keys that were set or went."""
    before, after = f"variables.{field}Before", f"variables.{field}After"
    yield {"name": f"{field}Before", "expression": f"oldObject.{path}.orValue({{}})"}
    yield {"name": f"{field}After", "expression": f"object.{path}.orValue({{}})"}
    kept = f"key in {before} && {before}[key] == {after}[key]"
    yield {"name": f"{field}Set", "expression": f"{after}.filter(key, !({kept}))"}
    yield {"name": f"{field}Gone", "expression": f"{before}.filter(key, !(key in {after}))"}


def only(field: str, own: str) -> str:
    """The expression that the keys of FIELD that were set or went are such that OWN holds of `key`."""
    return f"(variables.{field}Set + variables.{field}Gone).all(key, {own})"


def quoted(text: str) -> str:
    """TEXT as a literal of the expressions' language, whatever is in it."""
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def listed(texts: Iterable[str]) -> str:
    """TEXTS as a list of literals."""
    return f"[{', '.join(map(quoted, texts))}]"


def named(key: str, names: Iterable[str], prefixes: Iterable[str]) -> str:
    """The expression that KEY is one of NAMES or begins with one of PREFIXES."""
    parts = [f"{key}.startsWith({quoted(prefix)})" for prefix in prefixes]
    if names := list(names):
        parts.append(f"{key} in {listed(names)}")
    return " || ".join(parts) or "false"


def same_node() -> str:
    """The expression that nothing of a Node differs but labels, annotations, taints and whether it is schedulable."""
    same = [
        f"object.spec.?{name}.orValue({empty}) == oldObject.spec.?{name}.orValue({empty})"
        for name, empty in UNTOUCHED.items()
    ]
    same += [
        f"object.metadata.?{name}.orValue([]) == oldObject.metadata.?{name}.orValue([])"
        for name in ("finalizers", "ownerReferences")
    ]
    return " && ".join(same)


def taints(gone: Iterable[tuple[str, str]] = ()) -> str:
    """The expression that no taint came, and none went but those of GONE. When one was added is not looked at."""
    same = "a.key == b.key && a.effect == b.effect && a.?value.orValue('') == b.?value.orValue('')"
    leaves = " || ".join(f"(a.key == {quoted(key)} && a.effect == {quoted(effect)})" for key, effect in gone)
    before, after = "variables.taintsBefore", "variables.taintsAfter"
    stays = f"{after}.exists(b, {same})"
    kept = f"{leaves} || {stays}" if leaves else stays
    return f"{after}.all(a, {before}.exists(b, {same})) && {before}.all(a, {kept})"
