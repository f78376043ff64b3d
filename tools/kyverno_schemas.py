"""Kyverno's PolicyException as a JSON schema written by hand.

Its API is part of the module of the program. Source: PolicyExceptionSpec of kyverno.io/v2, and its documentation; of
what may be matched the fields that tell objects apart.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj

RESOURCES = obj(
    kinds=array(STRING),
    names=array(STRING),
    namespaces=array(STRING),
    annotations=STRINGS,
    operations=array({"type": "string", "enum": ["CREATE", "CONNECT", "UPDATE", "DELETE"]}),
)
MATCH = array(obj(resources=RESOURCES))
KYVERNO: dict[tuple[str, str], Schema] = {
    ("kyverno.io/v2", "PolicyException"): obj(
        "spec",
        spec=obj(
            "exceptions match",
            background={"type": "boolean"},
            match=obj(any=MATCH, all=MATCH),
            exceptions=array(obj("policyName ruleNames", policyName=STRING, ruleNames=array(STRING))),
        ),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
