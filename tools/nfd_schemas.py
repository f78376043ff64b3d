"""The kinds of Node Feature Discovery, group nfd.k8s-sigs.io, as JSON schemas written by hand.

NFD's API is in its program's module, which is not served as one of its own, so controller-gen can't be run over it.
Source: the resource definitions of NFD 0.18.2, 0.18.3 and 0.19.0 (those that the operator's charts v25.10, v26.3 and
v26.7 bring), compared: they are equal.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}


def obj(required: str = "", **properties: Schema) -> Schema:
    """Return a mapping with these fields and no others. REQUIRED names some of them, separated by blanks."""
    closed: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**closed, "required": required.split()} if required else closed


def array(items: Schema) -> Schema:
    """Return a list of ITEMS."""
    return {"type": "array", "items": items}


def mapping(values: Schema) -> Schema:
    """Return a mapping with free keys."""
    return {"type": "object", "additionalProperties": values}


STRINGS = mapping(STRING)
OPERATORS = ["In", "NotIn", "InRegexp", "Exists", "DoesNotExist", "IsTrue", "IsFalse"]
OPERATORS += ["Gt", "Ge", "Lt", "Le", "GtLt", "GeLe"]
EXPRESSION = obj("op", op={"type": "string", "enum": OPERATORS}, value=array(STRING), type=STRING)
TERMS = array(obj("feature", feature=STRING, matchExpressions=mapping(EXPRESSION), matchName=EXPRESSION))
MATCHER: dict[str, Schema] = {
    "name": STRING,
    "matchFeatures": TERMS,
    "matchAny": array(obj("matchFeatures", matchFeatures=TERMS)),
    "vars": STRINGS,
    "varsTemplate": STRING,
}
OUTPUTS: dict[str, Schema] = {
    "labels": STRINGS,
    "labelsTemplate": STRING,
    "annotations": STRINGS,
    "extendedResources": STRINGS,
    "taints": array(obj("effect key", key=STRING, value=STRING, effect=STRING, timeAdded=STRING)),
}
DISCOVERED = obj(
    flags=mapping(obj("elements", elements=mapping(obj()))),
    attributes=mapping(obj("elements", elements=STRINGS)),
    instances=mapping(obj("elements", elements=array(obj("attributes", attributes=STRINGS)))),
)

NFD: dict[tuple[str, str], Schema] = {
    ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule"): obj(
        "spec", spec=obj("rules", rules=array(obj("name", **MATCHER, **OUTPUTS)))
    ),
    ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureGroup"): obj(
        "spec",
        spec=obj("featureGroupRules", featureGroupRules=array(obj("name", **MATCHER))),
        status=obj(nodes=array(obj("name", name=STRING))),
    ),
    ("nfd.k8s-sigs.io/v1alpha1", "NodeFeature"): obj("spec", spec=obj(features=DISCOVERED, labels=STRINGS)),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
