"""Kyverno's PolicyException as a JSON schema written by hand.

Its API is part of the module of the program. Source: PolicyExceptionSpec of kyverno.io/v2, and its documentation; of
what may be matched the fields that tell objects apart.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj
from tools.openshift_schemas import BOOLEAN, one_of

RESOURCES = obj(
    kinds=array(STRING),
    names=array(STRING),
    namespaces=array(STRING),
    annotations=STRINGS,
    operations=array(one_of("CREATE CONNECT UPDATE DELETE")),
)
MATCH = array(obj(resources=RESOURCES))
KYVERNO: dict[tuple[str, str], Schema] = {
    ("kyverno.io/v2", "PolicyException"): obj(
        "spec",
        spec=obj(
            "exceptions match",
            background=BOOLEAN,
            match=obj(any=MATCH, all=MATCH),
            exceptions=array(obj("policyName ruleNames", policyName=STRING, ruleNames=array(STRING))),
        ),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
