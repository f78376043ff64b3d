"""The CRD of NodePolicy says what the program reads (gpustack/api/node_policy.py) and nothing else."""

from __future__ import annotations

import datetime
import re
import types
import typing
from typing import Any

import msgspec
import pytest

from gpustack.api import node_policy as policy
from gpustack.api import objects
from gpustack.compiler.validate import validate
from gpustack.components.crds import crd
from gpustack.model import Body
from tests.components.reconciler.common import POOL, node_policies

(VERSION,) = crd("nodepolicies.gpustack.dev")["spec"]["versions"]
SCHEMA: Body = VERSION["schema"]["openAPIV3Schema"]["properties"]


def shape(of: Any) -> Any:
    """A type of the program's in the words of a schema: types and fields."""
    if typing.get_origin(of) in (types.UnionType, typing.Union):
        parts = [part for part in typing.get_args(of) if part is not type(None)]
        return "int-or-string" if set(parts) == {int, str} else shape(parts[0])
    if typing.get_origin(of) is typing.Literal:
        return "string"
    if typing.get_origin(of) is list:
        return [shape(typing.get_args(of)[0])]
    if typing.get_origin(of) is dict:
        return {"*": shape(typing.get_args(of)[1])}
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        hints = typing.get_type_hints(of)
        return {field.encode_name: shape(hints[field.name]) for field in msgspec.structs.fields(of)}
    return {str: "string", int: "integer", bool: "boolean", datetime.datetime: "string"}[of]


def shape_of(schema: Body) -> Any:
    """A schema in the same words."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if schema["type"] == "array":
        return [shape_of(schema["items"])]
    if "additionalProperties" in schema:
        return {"*": shape_of(schema["additionalProperties"])}
    if schema["type"] == "object":
        return {name: shape_of(part) for name, part in schema["properties"].items()}
    return schema["type"]


@pytest.mark.parametrize(("part", "struct"), [("spec", policy.Spec), ("status", policy.Status)])
def test_fields_are_the_programs(part: str, struct: type[msgspec.Struct]) -> None:
    """Every field that the program reads or writes is there with its type, and none that it doesn't know."""
    assert shape_of(SCHEMA[part]) == shape(struct)


def required(struct: type[msgspec.Struct]) -> set[str]:
    """The fields of STRUCT without a default."""
    return {field.encode_name for field in msgspec.structs.fields(struct) if field.required}


def test_required_fields_are_the_programs() -> None:
    """What the program can't do without, the API server insists on."""
    spec, status = SCHEMA["spec"]["properties"], SCHEMA["status"]["properties"]
    windows = spec["upgrade"]["properties"]["windows"]["items"]
    for schema, struct in (
        (spec["mig"], policy.Mig),
        (windows, policy.Window),
        (spec["upgrade"]["properties"]["podRules"]["items"], policy.PodRule),
        (spec["upgrade"]["properties"]["order"]["items"], policy.OrderBy),
        (spec["driver"]["properties"]["daemonSets"]["items"], policy.DaemonRevision),
        (spec["startupTaints"]["items"], objects.Taint),
        (status["conditions"]["items"], objects.Condition),
        (status["waiting"]["items"], policy.Waiting),
    ):
        assert set(schema["required"]) == required(struct)


def test_the_api_server_adds_nothing() -> None:
    """No defaults, so that what is applied is what is there; the status is a subresource; every list says how it is
    merged; and no text that a rule looks at is without bound, which the API server would refuse as too costly."""
    assert "default" not in re.findall(r"'(\w+)':", str(SCHEMA["spec"]))
    assert VERSION["subresources"] == {"status": {}}
    lists = re.findall(r"'type': 'array'", str(SCHEMA))
    assert len(re.findall("x-kubernetes-list-type", str(SCHEMA))) == len(lists)
    for name in ("nodeSelector", "labels", "components"):
        assert {"maxProperties", "maxItems"} & SCHEMA["spec"]["properties"][name].keys()


def test_rendered_objects_are_valid() -> None:
    """What is rendered passes the strict schema, which knows no further field; the program reads it back as it was."""
    bodies = [body for body in node_policies(nodePools=[POOL]).values() if body["kind"] == "NodePolicy"]
    for body in bodies:
        assert validate(body, "1.34") == []
        read = msgspec.convert(body["spec"], policy.Spec)
        assert read.components == body["spec"]["components"]
        assert validate({**body, "spec": {**body["spec"], "nodeSelektor": {}}}, "1.34")
    assert bodies


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload", "vm"),
        ("graceSeconds", -1),
        ("upgrade.maxUnavailable", "200%"),
        ("upgrade.maxUnavailable", -1),
        ("upgrade.windows", [{"start": "24:00", "hours": 1}]),
        ("upgrade.windows", [{"start": "22:00", "hours": 0}]),
        ("upgrade.windows", [{"start": "22:00", "hours": 1, "days": ["monday"]}]),
        ("startupTaints", [{"key": "a", "effect": "Never"}]),
    ],
)
def test_values_that_are_refused(path: str, value: Any) -> None:
    """Formats and ranges are checked before the program sees them."""
    (body,) = (body for body in node_policies().values() if body["kind"] == "NodePolicy")
    first, _, second = path.partition(".")
    changed = {**body["spec"][first], second: value} if second else value
    assert validate({**body, "spec": {**body["spec"], first: changed}}, "1.34")


def test_rules_of_the_api_server() -> None:
    """Labels of NVIDIA's select nothing (A3) and are all that is set; a MIG layout and the upgrade annotation need what
    they are about."""
    rules = {
        rule["rule"]
        for part in (SCHEMA["spec"], *SCHEMA["spec"]["properties"].values())
        for rule in part.get("x-kubernetes-validations", [])
    }
    assert "self.all(key, !key.startsWith('nvidia.com/'))" in rules
    assert "self.all(key, key.startsWith('nvidia.com/'))" in rules
    assert len(rules) == 5
