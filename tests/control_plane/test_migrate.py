"""`gpustack migrate plan`, followed word for word on an API server: each step gets done, and no driver is rolled.

The cluster has the DaemonSets that the operator and Helm had written to a real one (tests/fidelity/live), with owners
and with who wrote which field.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.moving.migrate.seen import kinds
from tests.control_plane.api import Body
from tests.control_plane.cluster import BIN, ControlPlane, wait_for
from tests.control_plane.manifests import apply_cluster, established
from tests.control_plane.test_revisions import revisions
from tests.fidelity import live
from tests.fidelity.test_live import ROLLS
from tests.moving.test_migrate import LABELS, ORDER, POOLED, prepared
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

CUSTOM = ("ClusterPolicy", "NVIDIADriver", "GPUCluster")
POD = {"containers": [{"name": "gpu-operator", "image": "example.com/gpu-operator"}]}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of its own, with the kinds that others bring along."""
    with ControlPlane(tmp_path / "control-plane") as found:
        for name in (*CUSTOM, "ServiceMonitor", "PrometheusRule"):
            kind = kinds()[name]
            crd = found.admin.create(definition(name))["metadata"]["name"]
            wait_for(lambda: established(found.admin, crd), f"{kind.plural} are served")  # noqa: B023 - called at once
        found.namespace("gpu-operator")
        yield found


def definition(name: str) -> Body:
    """A definition for the kind NAME, which takes any fields."""
    kind = kinds()[name]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": name, "plural": kind.plural, "singular": name.lower()}
    version = {"name": kind.versions.split()[0], "served": True, "storage": True, "schema": schema}
    scope = "Cluster" if kind.scope == "cluster" else "Namespaced"
    spec = {"group": kind.group, "names": names, "scope": scope, "versions": [version]}
    meta = {"name": f"{kind.plural}.{kind.group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta,
        "spec": spec,
    }


def install(plane: ControlPlane, objects: list[Body]) -> None:
    """Write OBJECTS, the custom resources first, so that what they own can name them."""
    owners: dict[str, str] = {}
    for body in sorted(copy.deepcopy(objects), key=lambda each: each["kind"] not in CUSTOM):
        meta, kind = body["metadata"], kinds()[body["kind"]]
        if body["kind"] in {"Pod", "Node"}:
            continue
        body["apiVersion"] = f"{kind.group}/{kind.versions}".lstrip("/")
        for key in ("uid", "managedFields"):
            meta.pop(key, None)
        body.pop("status", None)
        meta |= {} if kind.scope == "cluster" else {"namespace": "gpu-operator"}
        for owner in meta.get("ownerReferences", []):
            owner["uid"] = owners[owner["name"]]
        if body["kind"] == "Deployment":
            body["spec"] |= {"template": {"metadata": {"labels": LABELS}, "spec": POD}}
        made = plane.admin.create(body | REQUIRED.get(body["kind"], {}), fieldManager=live.manager(body))
        owners[meta["name"]] = made["metadata"]["uid"]


ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gpu-operator"}
REQUIRED: dict[str, Any] = {
    "Service": {"spec": {"ports": [{"port": 8080}]}},
    "RoleBinding": {"roleRef": ROLE},
    "ClusterRoleBinding": {"roleRef": ROLE},
}
"""What the API wants of kinds of which the cluster has the names alone."""


def test_the_plan_is_followed_word_for_word(plane: ControlPlane, project: Project) -> None:
    """Whoever runs the commands of the step that is next, again and again, comes to the end: every step is done, the
    custom resources and the drivers are there, and no DaemonSet has another revision but the one that is told.
    """
    install(plane, prepared(project, POOLED))
    before = revisions(plane.admin, live.daemonsets(POOLED))
    config = plane.kubeconfig("admin", plane.token)
    path = os.pathsep.join((str(BIN), str(ROOT / ".venv/bin"), os.environ["PATH"]))
    environment = {**project.environment(), "PATH": path, "HOME": str(project.folder)}
    done: list[str] = []
    while len(done) <= len(ORDER):
        ran = project.run(
            "migrate", "plan", "x", "--kubeconfig", config, "--format", "json", env={"HOME": str(project.folder)}
        )
        assert (ran.code, ran.json["promise"]["level"]) == (0, "kept"), ran.out
        step = next((each for each in ran.json["steps"] if each["state"] == "next"), None)
        if step is None:
            break
        done.append(step["id"])
        for command in step["commands"]:
            words = ["bash", "-c", command]
            told = subprocess.run(
                words, cwd=project.folder, env=environment, capture_output=True, text=True, check=False
            )
            assert told.returncode == 0 or " diff " in command, f"{command}\n{told.stderr}"
    assert done == [each for each in ORDER if each not in {"policy", "suspend", "reconciler"}]
    after = revisions(plane.admin, live.daemonsets(POOLED))
    assert {name for name in after if after[name] != before[name]} == set(ROLLS)
    assert not plane.admin.find("Deployment", "gpu-operator", "gpu-operator")
    assert plane.admin.find("nvidia.com/v1alpha1/NVIDIADriver", "default")


def test_the_api_server_says_what_an_apply_would_make_of_what_runs(plane: ControlPlane, project: Project) -> None:
    """`adopt --try`: by a dry run the drivers would be what they are, the operands that roll are those of the facts,
    and nothing is written.
    """
    objects = prepared(project, POOLED)
    install(plane, objects)
    nodes = {"apiVersion": "v1", "kind": "List", "items": [each for each in objects if each["kind"] == "Node"]}
    project.write("nodes.json", json.dumps(nodes))
    config = plane.kubeconfig("admin", plane.token)
    before = plane.admin.list("DaemonSet", "gpu-operator")
    words = ("adopt", "nodes.json", "--kubeconfig", config, "--try", "--out", "y.yaml", "--format", "json")
    ran = project.run(*words, "--set", "cluster.platform=generic")
    assert (ran.json["tried"], ran.json["findings"]) == (True, []), ran.out
    told = {each["name"]: each["fields"] for each in ran.json["daemonSets"]}
    assert {name for name, fields in told.items() if fields} == set(ROLLS) & set(told)
    assert sum("driver" in name for name in told) == 1
    after = plane.admin.list("DaemonSet", "gpu-operator")
    # The controllers still write into their states, so versions and states change without anybody else.
    metas = ("uid", "generation", "labels", "annotations", "ownerReferences")
    written = [[[each["spec"], *map(each["metadata"].get, metas)] for each in bodies] for bodies in (before, after)]
    assert written[0] == written[1]
    files = project.run("adopt", "dump.json", "--try")
    assert (files.code, "--context" in files.err) == (4, True)


def test_the_whole_stack_is_taken_away_as_the_page_says(plane: ControlPlane, project: Project) -> None:
    """The commands of docs/moving-out.md, after which nothing that was rendered is there, its namespace and kinds
    included."""
    project.policy("prod-eu-1", file="policies/prod-eu-1.yaml", gfd={"enabled": True}, nfd={"enabled": True})
    assert project.run("render").code == 0
    rendered = apply_cluster(plane.admin, project.folder / "dist/prod-eu-1")
    assert len(rendered) > 20
    text = (ROOT / "docs/moving-out.md").read_text("utf-8").partition("## Taking the whole stack away")[2]
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    config = plane.kubeconfig("admin", plane.token)
    script = f'set -e\nkubectl() {{ command kubectl --kubeconfig {config} "${{@:3}}"; }}\n{block}'
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    words = ["bash", "-c", script]
    told = subprocess.run(words, cwd=project.folder, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert "delete" in told.stdout, told.stderr
    gone = [one for one in rendered if plane.admin.knows(one.body["apiVersion"], one.kind)]
    wait_for(lambda: not any(plane.admin.find(one.kind, one.name, one.namespace) for one in gone), "all is gone", 90)
