"""Whatever the policy says, engines' objects have fields alone that each version knows which the docs name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.compiler.cache import Store, own_digest
from gpustack.gitops.plan import objects, roots
from gpustack.model import Body
from tests.gitops.common import ARGOCD, FLUX, URL, compiled, plan, policy

KNOWN = yaml.safe_load((Path(__file__).parent / "engine_fields.yaml").read_text("utf-8"))
OCI = {"url": "oci://registry.example.com/gpu", "revision": "v1"}
EVERYTHING: dict[str, dict[str, Any]] = {
    "argocd": ARGOCD,
    "argocd-by-hand": {**ARGOCD, "argocd": {**ARGOCD["argocd"], "autoSync": False, "project": "own"}},
    "argocd-oci": {**ARGOCD, "repository": OCI},
    "flux": {**FLUX, "flux": {"secretName": "a", "interval": "1h", "serviceAccountName": "b", "prune": False}},
    "flux-tag": {**FLUX, "repository": {"url": URL, "revision": "refs/tags/v1"}},
    "flux-commit": {**FLUX, "repository": {"url": URL, "revision": "a" * 40}},
    "flux-many": {**FLUX, "flux": {"kubeConfig": {"secretName": "a"}, "serviceAccountName": "b"}},
    "flux-source": {"engine": "flux", "flux": {"source": {"kind": "GitRepository", "name": "flux-system"}}},
    "argocd-oci-digest": {**ARGOCD, "repository": {**OCI, "revision": f"sha256:{'a' * 64}"}},
    "flux-oci-digest": {**FLUX, "repository": {**OCI, "revision": f"sha256:{'a' * 64}"}},
    "flux-oci": {**FLUX, "repository": OCI, "flux": {"secretName": "a"}},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all stacks."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def fields(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields in VALUE, as engine_fields.yaml writes them."""
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            yield below
            yield from fields(item, below)
    elif isinstance(value, list):
        for item in value:
            yield from fields(item, f"{path}[]")


def unknown(body: Body) -> set[str]:
    """The fields of an engine's object that some version doesn't know."""
    return set(fields(body["spec"])) - set(KNOWN[body["kind"]])


@pytest.mark.parametrize("gitops", EVERYTHING.values(), ids=EVERYTHING)
def test_fields_are_known_to_all_versions(store: Store, gitops: dict[str, Any]) -> None:
    """Argo CD 2.14 and 3.0 to 3.2, Flux 2.6 to 2.9: rendered objects, and what bootstrap prints."""
    made = plan(compiled(policy(gitops), store))
    bodies = [body for body in (*objects(made, "prod"), *roots(made, "prod")) if body["kind"] != "ConfigMap"]
    assert {f"{body['kind']}: {field}" for body in bodies for field in unknown(body)} == set()


def test_an_unknown_field_is_found() -> None:
    """A field that came with Argo CD 3.1 is one that not all of them know."""
    automated = {"syncPolicy": {"automated": {"enabled": True, "prune": True}}}
    assert unknown({"kind": "Application", "spec": automated}) == {"syncPolicy.automated.enabled"}
