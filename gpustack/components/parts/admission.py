"""ValidatingAdmissionPolicies: their form and their language; what they say is data to review: admission.yaml."""

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from string import Template
from typing import Any, Literal

from ...model import Body
from .pod import sparse
from .template import data, template

ACTIONS = {"Deny": ["Deny"], "Audit": ["Audit", "Warn"]}
"""What happens to a request that breaks a rule, by `guards.mode`. Warn tells who sent it, Audit the audit log."""


def policy(
    key: str,
    mode: Literal["Deny", "Audit"],
    condition: Body,
    *,
    further: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "",
    marked: Mapping[str, str] | None = None,
    **words: str,
) -> Iterator[Body]:
    """The policy KEY of the data file over what CONDITION holds of, and its binding, with WORDS for its `$name`s.
    FURTHER are expressions that only this cluster's has, by what the API server says where one doesn't hold.

    NAMESPACE: only there. MARKED: only objects with these labels, before or after."""
    of_policy, fill = data(__file__, "policies")[key], functools.partial(_filled, words={**expressions(), **words})
    held = {**{why: fill(holds) for why, holds in of_policy["validations"].items()}, **(further or {})}
    known = [data(__file__, "variables")[group] for group in of_policy["variables"].split()]
    named: dict[str, Any] = {"name": fill(of_policy["name"]), "labels": labels}
    yield template(
        __file__,
        "form",
        **named,
        within=sparse(**{"kubernetes.io/metadata.name": namespace}),
        marked=marked,
        rules=[over(*each) for each in of_policy["over"]],
        condition=condition,
        variables=[{"name": name, "expression": fill(value)} for group in known for name, value in group.items()],
        validations=[{"expression": holds, "message": why} for why, holds in held.items()],
    )
    yield template(__file__, "binding", **named, actions=ACTIONS[mode])


@functools.cache
def expressions() -> Mapping[str, str]:
    """The expressions that several policies are made of, with those above them filled in."""
    made: dict[str, str] = {}
    for name, text in data(__file__, "expressions").items():
        made[name] = _filled(text, made)
    return made


def _filled(text: str, words: Mapping[str, str]) -> str:
    return Template(text).substitute(words)


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
