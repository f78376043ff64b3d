"""The repository's rendered clusters, as a GitOps engine applies them: stage by stage, from the files' own bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from gpustack.model import STAGES
from tests.control_plane.api import Answer, Api, ApiError, Body
from tests.control_plane.cluster import ROOT, wait_for

DIST = ROOT / "dist"
SCHEMAS = ROOT / "schemas/crds"
MANAGER = "gitops"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, eq=False)
class Manifest:
    """One file of dist/."""

    path: Path
    text: bytes
    body: Body

    @property
    def kind(self) -> str:
        """The way Api names kinds."""
        return f"{self.body['apiVersion']}/{self.body['kind']}"

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    def __str__(self) -> str:
        return str(self.path.relative_to(DIST)) if self.path.is_relative_to(DIST) else str(self.path)


def read(path: Path) -> Manifest:
    """One file of dist/: one object."""
    text = path.read_bytes()
    return Manifest(path, text, yaml.load(text, Loader=LOADER))  # noqa: S506  # a safe loader


def clusters() -> list[str]:
    """The clusters in dist/."""
    return sorted(folder.name for folder in DIST.iterdir() if folder.is_dir() and not folder.name.startswith("."))


def kubernetes(cluster: str) -> str:
    """The release that a cluster was rendered for."""
    return str(json.loads((DIST / f".index/{cluster}.json").read_text(encoding="utf-8"))["kubernetes"])


def manifests(folder: Path) -> Iterator[list[Manifest]]:
    """The manifests of a rendered cluster, a list for each stage that there is."""
    stages = [folder / stage for stage in STAGES]
    assert {path for path in folder.iterdir() if path.is_dir()} <= set(stages)
    for stage in stages:
        files = sorted(stage.glob("*.yaml"))
        found = [read(path) for path in files]
        # A namespace comes before what is in it.
        yield sorted(found, key=lambda one: one.body["kind"] != "Namespace")


def schema_name(manifest: Manifest) -> str:
    """The file that schemas/crds has for the manifest's kind, if that is a custom resource."""
    group, _, version = manifest.body["apiVersion"].rpartition("/")
    return f"{manifest.body['kind'].lower()}-{group}-{version}.json"


def foreign_crd(manifest: Manifest) -> Body:
    """A definition for a kind that other software brings along (Prometheus operator, OpenShift, KubeVirt).

    It takes any fields: schemas/ has been asked about those already. What is tested is the rest of the way.
    """
    group, version = manifest.body["apiVersion"].split("/")
    kind = manifest.body["kind"]
    plural = kind.lower() if kind.endswith("s") else f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if manifest.namespace else "Cluster",
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }


def established(api: Api, name: str) -> bool:
    """Whether the definition NAME is served, and discovery, which lags on a busy machine, tells of it."""
    body = api.get("CustomResourceDefinition", name)
    conditions = body.get("status", {}).get("conditions") or []
    if not any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
        return False
    group, kind = body["spec"]["group"], body["spec"]["names"]["kind"]
    return all(api.knows(f"{group}/{one['name']}", kind) for one in body["spec"]["versions"] if one["served"])


def prepare(api: Api, stages: list[list[Manifest]]) -> None:
    """Bring what other software has brought before: the definitions of its kinds, and the namespaces of its objects."""
    everything = [one for stage in stages for one in stage]
    ours = {one.body["spec"]["names"]["kind"] for one in everything if one.body["kind"] == "CustomResourceDefinition"}
    rendered = {one.name for one in everything if one.body["kind"] == "Namespace"}
    for one in everything:
        if one.body["kind"] not in ours and (SCHEMAS / schema_name(one)).is_file():
            _bring(api, one)
        if one.namespace and one.namespace not in rendered:
            make_namespace(api, one.namespace)


def make_namespace(api: Api, name: str) -> None:
    """See to it that there is a namespace."""
    if not api.find("Namespace", name):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _bring(api: Api, manifest: Manifest) -> None:
    api_version, kind = manifest.body["apiVersion"], manifest.body["kind"]
    if not api.knows(api_version, kind):
        name = api.create(foreign_crd(manifest))["metadata"]["name"]
        wait_for(partial(established, api, name), f"{name} is served")
        wait_for(partial(api.knows, api_version, kind), f"{name} is listed")


def apply_all(api: Api, stages: list[list[Manifest]], *, dry_run: bool = False) -> dict[Manifest, Answer | ApiError]:
    """Apply all manifests, each stage after the one before it; what the server answers, refusals too."""
    answers: dict[Manifest, Answer | ApiError] = {}
    for stage in stages:
        for one in stage:
            try:
                answers[one] = api.apply(one.body, one.text, manager=MANAGER, dry_run=dry_run)
            except ApiError as error:
                answers[one] = error
        for one in stage:
            if one.body["kind"] == "CustomResourceDefinition" and not dry_run and isinstance(answers[one], Answer):
                wait_for(partial(established, api, one.name), f"{one.name} is served")
    return answers


def apply_cluster(api: Api, folder: Path) -> list[Manifest]:
    """Apply a rendered cluster; any refusal is an error."""
    stages = list(manifests(folder))
    prepare(api, stages)
    refused = [f"{one}: {answer}" for one, answer in apply_all(api, stages).items() if isinstance(answer, ApiError)]
    assert refused == []
    return [one for stage in stages for one in stage]
