"""The CRDs of node feature discovery, written by hand: complete, and the same as what we validate by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpustack.catalog import kubernetes
from gpustack.components.nfd.nfd_inputs import CRDS
from gpustack.model import Body
from tests.components.nfd.common import rendered


def schema_of(crd: Body) -> Body:
    """The schema of the one version of CRD."""
    (version,) = crd["spec"]["versions"]
    found: Body = version["schema"]["openAPIV3Schema"]
    return found


def pruned(value: Any, schema: Body) -> Any:
    """VALUE as an API server stores it: without what a structural SCHEMA doesn't name."""
    if isinstance(value, list):
        return [pruned(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or schema.get("type") != "object":
        return value
    known, rest = schema.get("properties", {}), schema.get("additionalProperties")
    if not known and rest is None:
        return {}
    return {key: pruned(item, known.get(key, rest)) for key, item in value.items() if key in known or rest is not None}


TERM = {
    "feature": "pci.device",
    "matchName": {"op": "In", "value": ["a"]},
    "matchExpressions": {"vendor": {"op": "Ge", "type": "version", "value": ["1"]}},
}
CONDITIONS = {"matchFeatures": [TERM], "matchAny": [{"matchFeatures": [TERM]}]}
WHOLE: dict[str, Body] = {
    "nodefeatures.nfd.k8s-sigs.io": {
        "spec": {
            "labels": {"a": "b"},
            "features": {
                "flags": {"cpu.cpuid": {"elements": {"AVX": {}}}},
                "attributes": {"kernel.version": {"elements": {"full": "6"}}},
                "instances": {"pci.device": {"elements": [{"attributes": {"vendor": "10de"}}]}},
            },
        }
    },
    "nodefeaturerules.nfd.k8s-sigs.io": {
        "spec": {
            "rules": [
                {
                    "name": "r",
                    **CONDITIONS,
                    **{name: {"a": "b"} for name in ("labels", "annotations", "extendedResources", "vars")},
                    "labelsTemplate": "t",
                    "varsTemplate": "t",
                    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
                }
            ]
        }
    },
    "nodefeaturegroups.nfd.k8s-sigs.io": {
        "spec": {"featureGroupRules": [{"name": "r", **CONDITIONS, "vars": {"a": "b"}, "varsTemplate": "t"}]},
        "status": {"nodes": [{"name": "n"}]},
    },
}


@pytest.mark.parametrize("name", CRDS)
def test_crds_keep_every_field(name: str) -> None:
    """An API server prunes what a schema doesn't name: no field of the API is lost, and one it doesn't have is."""
    schema = schema_of(rendered()[f"CustomResourceDefinition/{name}"])
    assert pruned(WHOLE[name], schema) == WHOLE[name]
    assert pruned({"spec": {"x": 1}}, schema) == {"spec": {}}


@pytest.mark.parametrize("name", CRDS)
def test_crds_agree_with_the_schemas_that_we_validate_by(name: str) -> None:
    """What validation lets pass is what the API server knows: the same fields, types and required ones."""
    crd = rendered()[f"CustomResourceDefinition/{name}"]
    api_version, kind = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}", crd["spec"]["names"]["kind"]
    path = kubernetes.schema_path(api_version, kind, "1.34")
    assert path is not None
    ours, theirs = schema_of(crd)["properties"], json.loads(path.read_bytes())["properties"]
    for part in {"spec", "status"} & {*ours, *theirs}:
        assert closed(ours[part]) == closed(theirs[part])


def closed(schema: Any) -> Any:
    """SCHEMA of a CRD or a JSON schema in one form: what pruning drops is forbidden, enums in order, no extensions."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items() if not key.startswith("x-") and key != "format"}
    if isinstance(found.get("type"), str) and found["type"] == "object" and "additionalProperties" not in found:
        found = {"properties": {}, **found, "additionalProperties": False}
    if isinstance(found.get("enum"), list):
        found["enum"] = sorted(found["enum"])
    return found


def test_groups_have_a_status_of_their_own() -> None:
    """The master writes the nodes of a group to the status subresource."""
    for name in CRDS:
        (version,) = rendered()[f"CustomResourceDefinition/{name}"]["spec"]["versions"]
        assert version.get("subresources") == ({"status": {}} if "groups" in name else None)


def test_crds_of_others() -> None:
    """`cluster.crds` leaves a CRD to whoever brings it."""
    bodies = rendered(cluster={"crds": {CRDS[0]: "expect", CRDS[1]: "own"}})
    assert {key.partition("/")[2] for key in bodies if key.startswith("Custom")} == set(CRDS[1:])


def test_crds_have_no_prose() -> None:
    """CRDs carry structure only: descriptions would be most of their bytes."""
    assert "description" not in json.dumps([rendered()[f"CustomResourceDefinition/{name}"] for name in CRDS])
