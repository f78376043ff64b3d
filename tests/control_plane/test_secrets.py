"""What a real API server makes of `secrets`: the objects are valid by definitions made of their schemas, and come back
as they were rendered."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.base.secrets import Secrets
from tests.components.common import chart, spec
from tests.control_plane.api import ApiError, Body
from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.manifests import established

KINDS = {
    "externalsecrets.external-secrets.io": ("externalsecret-external-secrets.io-v1", "ExternalSecret", "v1"),
    "sealedsecrets.bitnami.com": ("sealedsecret-bitnami.com-v1alpha1", "SealedSecret", "v1alpha1"),
}
SEALED = base64.b64encode((256).to_bytes(2, "big") + bytes(range(256)) + bytes(40)).decode()
KEYS = {".dockerconfigjson": {"key": "gpu/registry", "property": "auth"}}
SECRETS: list[Body] = [
    {
        "name": "registry",
        "type": "kubernetes.io/dockerconfigjson",
        "labels": {"example.com/team": "gpu"},
        "external": {"store": {"name": "vault", "kind": "SecretStore"}, "keys": KEYS},
    },
    {"name": "licence", "sealed": {"encryptedData": {"gridd.conf": SEALED}, "scope": "namespace-wide"}},
]


def structural(schema: Any) -> Any:
    """SCHEMA as a definition may have it: a strict request refuses fields that it does not name."""
    if isinstance(schema, list):
        return [structural(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("type"), list):  # a number or a text, as quantities are
        return {"x-kubernetes-int-or-string": True}
    return {
        key: structural(value) for key, value in schema.items() if not (key == "additionalProperties" and not value)
    }


def definition(name: str, file: str, kind: str, version: str, scope: str = "Namespaced") -> Body:
    """The CustomResourceDefinition of a kind, made of its schema in the repository."""
    schema = json.loads((ROOT / "schemas" / "crds" / f"{file}.json").read_text(encoding="utf-8"))
    said = structural(schema["properties"]["spec"])
    whole = {"type": "object", "required": ["spec"], "properties": {"spec": said}}
    plural, _, group = name.partition(".")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}},
            ],
        },
    }


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane that knows both kinds."""
    with ControlPlane(tmp_path_factory.mktemp("secrets"), emulated=emulated, controllers=False) as plane:
        plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}})
        for name, said in KINDS.items():
            plane.admin.create(definition(name, *said))
            wait_for(partial(established, plane.admin, name), f"{name} is served")
        yield plane


def test_the_objects_are_what_their_kinds_ask_for(plane: ControlPlane) -> None:
    """Applied strictly they are taken, nothing of them is dropped or filled in, and another field is refused."""
    made = [each.body for each in Secrets(chart(), "secrets", resolve(spec(secrets=SECRETS))).resources()]
    assert [body["kind"] for body in made] == ["ExternalSecret", "SealedSecret"]
    for body in made:
        plane.admin.apply(body)
        kind = f"{body['apiVersion']}/{body['kind']}"
        found = plane.admin.get(kind, body["metadata"]["name"], "gpu-operator")
        assert found["spec"] == body["spec"]
        wrong = {**body, "spec": {**body["spec"], "storeRef": {"name": "vault"}}}
        with pytest.raises(ApiError, match="storeRef"):
            plane.admin.apply(wrong)
