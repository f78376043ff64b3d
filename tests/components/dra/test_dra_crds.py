"""The CRDs of the DRA driver, and who owns the CRDs that gpustack can render."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import kubernetes
from gpustack.catalog.object_kinds import CRDS
from gpustack.components import Compat, crds
from gpustack.components.base import base_inputs
from gpustack.components.dra.dra_driver_inputs import CRDS as DRA_CRDS
from gpustack.components.nfd import nfd_inputs as nfd
from gpustack.components.reconciler import node_policies_inputs as node_policies
from gpustack.model import Body
from tests.components import test_compat
from tests.components.common import render
from tests.components.dra.common import rendered
from tests.components.nfd import common as nfd_tests
from tests.components.reconciler import common as reconciler_tests

FOLDER = Path(crds.__file__).parent
MEMBER = {"ipAddress": "10.0.0.1", "cliqueID": "a.1", "index": 0, "status": "Ready"}
WHOLE: dict[str, Body] = {
    "computedomains.resource.nvidia.com": {
        "spec": {
            "numNodes": 2,
            "channel": {"allocationMode": "All", "resourceClaimTemplate": {"name": "channel"}},
        },
        "status": {"status": "Ready", "nodes": [{"name": "n", **MEMBER}]},
    },
    "computedomaincliques.resource.nvidia.com": {"daemons": [{"nodeName": "n", **MEMBER}]},
}
"""Every field of the API."""


def version(name: str) -> Body:
    """The one version of the CRD NAME."""
    (found,) = crds.crd(name)["spec"]["versions"]
    body: Body = found
    return body


def pruned(value: Any, schema: Body) -> Any:
    """VALUE as an API server stores it: without what a structural SCHEMA doesn't name."""
    if isinstance(value, list):
        return [pruned(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: pruned(item, schema["properties"][key]) for key, item in value.items() if key in schema["properties"]}


def closed(schema: Any) -> Any:
    """SCHEMA in the form of our JSON schemas: nothing unknown, enums in order, no defaults and no extensions."""
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items() if not key.startswith("x-") and key != "default"}
    if found.get("type") == "object":
        found["additionalProperties"] = False
    if isinstance(found.get("enum"), list):
        found["enum"] = sorted(found["enum"])
    return {**found, "required": sorted(found["required"])} if isinstance(found.get("required"), list) else found


@pytest.mark.parametrize("name", WHOLE)
def test_crds_keep_every_field(name: str) -> None:
    """No field of the API is lost, and one that it doesn't have is."""
    schema = version(name)["schema"]["openAPIV3Schema"]
    assert pruned({**WHOLE[name], "x": 1}, schema) == WHOLE[name]


@pytest.mark.parametrize("name", WHOLE)
def test_crds_agree_with_the_schemas_that_we_validate_by(name: str) -> None:
    """What validation lets pass is what the API server knows: the same fields, types and required ones."""
    body = crds.crd(name)
    path = kubernetes.schema_path(f"resource.nvidia.com/{version(name)['name']}", body["spec"]["names"]["kind"], "1.34")
    assert path is not None
    theirs = json.loads(path.read_bytes())["properties"]
    ours = version(name)["schema"]["openAPIV3Schema"]["properties"]
    for part in {"spec", "status", "daemons"} & {*ours, *theirs}:
        assert closed(ours[part]) == closed(theirs[part])


def test_a_compute_domain_is_immutable_and_has_a_status() -> None:
    """Its spec can't be changed, and its status is a subresource, which the driver writes."""
    found = version("computedomains.resource.nvidia.com")
    assert found["subresources"] == {"status": {}}
    (rule,) = found["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    assert rule["rule"] == "self == oldSelf"


def test_crds_have_no_prose() -> None:
    """CRDs carry structure only."""
    assert "description" not in json.dumps([crds.crd(name) for name in CRDS])


def test_the_catalogue_lists_every_crd() -> None:
    """A policy can leave to another owner exactly what gpustack can render."""
    assert sorted(CRDS) == sorted(path.stem for path in FOLDER.glob("*.yaml"))
    assert {*DRA_CRDS, *nfd.CRDS, *base_inputs.CRDS, node_policies.CRD} == set(CRDS)


def rendered_with(name: str, **sections: Any) -> dict[str, Body]:
    """What the component that the CRD NAME belongs to renders."""
    if name in DRA_CRDS:
        return rendered(gpuCluster={}, **sections)
    if name in base_inputs.CRDS:
        return render(Compat, test_compat.inputs(**sections))
    if name == node_policies.CRD:
        return reconciler_tests.node_policies(**sections)
    return nfd_tests.rendered(**sections)


@pytest.mark.parametrize("name", sorted(CRDS))
def test_every_crd_can_have_another_owner(name: str) -> None:
    """`cluster.crds: {<name>: expect}` leaves out that CRD and no other; `own` is the default."""
    key = f"CustomResourceDefinition/{name}"
    own, expected = (rendered_with(name, cluster={"crds": {name: who}}) for who in ("own", "expect"))
    assert own.keys() == rendered_with(name).keys()
    assert own.keys() - expected.keys() == {key}
