"""Secrets come from a store or from sealed text; no value of one is rendered, shown or taken for sealed."""

from __future__ import annotations

import base64
import itertools
from typing import Any

import pytest
from pydantic import ValidationError

from gpustack.cluster.resolve import resolve
from gpustack.components.base.secrets import Secrets
from gpustack.model import Body
from tests.components.common import chart, spec
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

NUMBERS = itertools.count()
SEALED = base64.b64encode((256).to_bytes(2, "big") + bytes(range(256)) + bytes(40)).decode()
"""As kubeseal makes it: the length of the sealed session key, the key, the text and its mark."""
STORE = {"store": {"name": "vault"}, "keys": {"token": {"key": "gpu/token"}}}
PULL = "kubernetes.io/dockerconfigjson"


def objects(*secrets: Body) -> list[Body]:
    """What is rendered for SECRETS."""
    cluster = resolve(spec(secrets=list(secrets)))
    return [each.body for each in Secrets(chart(), f"s-{next(NUMBERS)}", cluster).resources()]


def test_a_store() -> None:
    """The ExternalSecret of external-secrets.io/v1, with what its API would fill in."""
    remote = {".dockerconfigjson": {"key": "gpu/registry", "property": "auth", "version": "3"}}
    said = {"name": "registry", "type": PULL, "external": {"store": {"name": "vault"}, "keys": remote}}
    (found,) = objects(said)
    assert (found["apiVersion"], found["kind"]) == ("external-secrets.io/v1", "ExternalSecret")
    assert found["metadata"]["namespace"] == "gpu-operator"
    assert found["spec"]["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "vault"}
    assert found["spec"]["refreshInterval"] == "1h"
    assert found["spec"]["target"]["name"] == "registry"
    assert found["spec"]["target"]["template"]["type"] == PULL
    assert found["spec"]["data"] == [
        {
            "secretKey": ".dockerconfigjson",
            "remoteRef": {
                "key": "gpu/registry",
                "property": "auth",
                "version": "3",
                "conversionStrategy": "Default",
                "decodingStrategy": "None",
                "metadataPolicy": "None",
            },
        }
    ]


@pytest.mark.parametrize(
    ("scope", "notes"),
    [
        ("strict", None),
        ("namespace-wide", {"sealedsecrets.bitnami.com/namespace-wide": "true"}),
        ("cluster-wide", {"sealedsecrets.bitnami.com/cluster-wide": "true"}),
    ],
)
def test_sealed_text(scope: str, notes: Body | None) -> None:
    """The SealedSecret, whose scope is an annotation of it and of the Secret."""
    sealed = {"encryptedData": {"token": SEALED}, "scope": scope}
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    (found,) = objects({"name": "key", "namespace": "argocd", "labels": labels, "sealed": sealed})
    assert found["spec"]["encryptedData"] == {"token": SEALED}
    template = found["spec"]["template"]["metadata"]
    assert (template["name"], template["namespace"], template["labels"]) == ("key", "argocd", labels)
    assert found["metadata"].get("annotations") == template.get("annotations") == notes


@pytest.mark.parametrize(
    ("secrets", "place"),
    [
        ([{"name": "a"}], (0,)),
        ([{"name": "a", "external": STORE, "sealed": {"encryptedData": {"token": SEALED}}}], (0,)),
        ([{"name": "a", "type": PULL, "external": STORE}], (0, "type")),
        ([{"name": "a", "external": {**STORE, "keys": {}}}], (0, "external", "keys")),
        ([{"name": "a", "external": STORE, "labels": {"a b": "c"}}], (0, "labels", "a b", "[key]")),
        ([{"name": "a", "sealed": {"encryptedData": {"token": "hunter2"}}}], (0, "sealed", "encryptedData", "token")),
        (
            [{"name": "a", "sealed": {"encryptedData": {"token": base64.b64encode(bytes(600)).decode()}}}],
            (0, "sealed", "encryptedData", "token"),
        ),
    ],
)
def test_what_would_bring_no_secret(secrets: list[Body], place: tuple[Any, ...]) -> None:
    """It is refused while reading, at its place."""
    with pytest.raises(ValidationError) as refused:
        spec(secrets=secrets)
    assert [error["loc"] for error in refused.value.errors()] == [("secrets", *place)]


POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: c}
spec:
  release: v26.7.0
  cluster: {kubernetesVersion: "1.35", platform: generic}
  nodePools: [{name: a, os: ubuntu24.04, gpuProduct: NVIDIA-L4, gpusPerNode: 1, count: 1}]
  driver:
    imagePullSecrets: [registry]
    licensingConfig: {secretName: licence}
  secrets:
  - name: licence
    sealed:
      encryptedData:
        gridd.conf: %s
"""


def test_names_and_keys_are_checked(project: Project) -> None:
    """What a component names is looked for among these, with its keys."""
    project.write("policies/c.yaml", POLICY % SEALED)
    ran = project.run("lint")
    missing = [line for line in (ran.out + ran.err).splitlines() if "GPU201" in line or "GPU202" in line]
    words = ("'registry'", "'client_configuration_token.tok'")
    assert all(word in line for word, line in zip(words, missing, strict=True)), missing


def test_what_is_not_sealed_is_not_shown(project: Project) -> None:
    """A value that somebody put in the place of sealed text is refused, and in no message."""
    project.write("policies/c.yaml", POLICY % "hunter2")
    ran = project.run("lint")
    assert ran.code != 0
    assert "hunter2" not in ran.out + ran.err
    assert "gridd.conf" in ran.out + ran.err


@pytest.mark.parametrize(
    "wrong",
    [
        "{name: a, data: {token: hunter2}}",
        "{name: a, sealed: hunter2}",
        "{name: a, sealed: {encryptedData: hunter2}}",
        "{name: a, sealed: {encryptedData: {token: 8675309}}}",
        "{name: a, external: {store: {name: vault}, keys: {token: hunter2}}}",
        "{name: a, external: {store: {name: vault}, keys: {token: {key: gpu/token, value: hunter2}}}}",
        "{name: a, type: Opaque, sealed: {encryptedData: {token: hunter2",
    ],
)
def test_a_value_in_the_wrong_place_is_not_shown(project: Project, wrong: str) -> None:
    """Whoever misreads where a value is said writes the value there: it is in no message and in no line of the file."""
    project.write("policies/c.yaml", (POLICY % SEALED).partition("  secrets:")[0] + f"  secrets: [{wrong}]\n")
    ran = project.run("lint")
    assert ran.code != 0
    assert "hunter2" not in ran.out + ran.err
    assert "8675309" not in ran.out + ran.err
    assert "policies/c.yaml:1" in ran.out + ran.err


def test_what_is_not_sealed_is_refused_under_extra_objects(project: Project) -> None:
    """A SealedSecret that somebody wrote himself is held to the same."""
    extra = """\
  extraObjects:
  - {apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: a}, spec: {encryptedData: {token: %s}}}
"""
    for text, refused in (("hunter2", True), (SEALED, False)):
        project.write("policies/c.yaml", (POLICY % SEALED).partition("  driver:")[0] + extra % text)
        ran = project.run("render")
        assert ("GPU043" in ran.out + ran.err) is refused
        assert "hunter2" not in ran.out + ran.err
    assert not [name for name, text in project.tree().items() if b"hunter2" in text]


def test_a_pull_secret_has_the_key_of_one(project: Project) -> None:
    """The kubelet reads .dockerconfigjson and nothing else."""
    keys = "external: {store: {name: vault}, keys: {token: {key: gpu/registry}}}"
    project.write("policies/c.yaml", (POLICY % SEALED) + f"  - {{name: registry, {keys}}}\n")
    ran = project.run("lint")
    assert [line for line in (ran.out + ran.err).splitlines() if "GPU202" in line and "'.dockerconfigjson'" in line]
