"""gpustack schema add, remove and list, and what the other verbs make of kinds that were added."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from gpustack.compiler.validate import _known_kinds
from gpustack.model import Body
from gpustack.review.steering import steers
from tests.cli.test_diff import commit, git
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

POOL: Body = {
    "apiVersion": "karpenter.example/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpus"},
    "spec": {"weight": 1, "requirements": [{"label": "zone", "operator": "In", "values": ["a"]}]},
}
DASHBOARD: Body = {
    "apiVersion": "board.example/v1",
    "kind": "Board",
    "metadata": {"name": "gpus"},
    "spec": {"json": "{}"},
}
KUBECONFORM = {"PATH": os.pathsep.join((os.environ["PATH"], str(ROOT / ".tools" / "bin")))}


def definition(group: str, kind: str, scope: str, spec: Body, *versions: str) -> Body:
    """A CustomResourceDefinition as `kubectl get crd -o yaml` prints it, less what nobody needs."""
    schema = {
        "type": "object",
        "description": "Prose.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": spec},
        },
    }
    listed = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in versions or ("v1",)
    ]
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": listed},
    }


REQUIREMENT = {
    "label": {"type": "string"},
    "operator": {"type": "string"},
    "values": {"type": "array", "items": {"type": "string"}},
}
POOLS = definition(
    "karpenter.example",
    "NodePool",
    "Cluster",
    {
        "weight": {"type": "integer"},
        "requirements": {
            "type": "array",
            "items": {"type": "object", "properties": REQUIREMENT},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["label"],
        },
    },
    "v1",
    "v1beta1",
)
BOARDS = definition("board.example", "Board", "Namespaced", {"json": {"type": "string"}})


def add(project: Project, *bodies: Body, name: str = "crds.yaml") -> Any:
    """Add the definitions BODIES, of one file."""
    project.write(name, yaml.safe_dump_all(bodies))
    return project.run("schema", "add", name)


def test_without_a_schema_the_error_says_the_command(project: Project) -> None:
    """A kind that nobody knows is refused with the command that makes it known, and the kind."""
    project.policy("a", extraObjects=[POOL])
    ran = project.run("render")
    assert ran.code == 2
    assert "no schema for karpenter.example/v1 NodePool" in ran.err
    assert "gpustack schema add FILE" in ran.err
    assert "CustomResourceDefinition of karpenter.example/v1 NodePool" in ran.err


def test_added_kinds_are_rendered_and_validated_by_both(project: Project) -> None:
    """They are rendered with the namespace that their scope asks for, and kubeconform skips none of them."""
    project.policy("a", extraObjects=[POOL, DASHBOARD])
    ran = add(project, POOLS, BOARDS)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "added: karpenter.example/v1 NodePool, Cluster\n"
        "added: karpenter.example/v1beta1 NodePool, Cluster\n"
        "added: board.example/v1 Board, Namespaced\n"
    )
    assert project.run("render").code == 0
    pool = yaml.safe_load((project.dist / "a/operands/nodepool-gpus.yaml").read_text())
    board = yaml.safe_load((project.dist / "a/operands/board-gpus.yaml").read_text())
    assert "namespace" not in pool["metadata"]
    assert board["metadata"]["namespace"] == "gpu-operator"
    ran = project.run("validate", env=KUBECONFORM)
    assert (ran.code, ran.err) == (0, "")


def test_what_is_wrong_is_told_with_its_place(project: Project) -> None:
    """A field that isn't there, and a namespace of what has none, are errors at the line of the policy."""
    add(project, POOLS, BOARDS)
    project.policy("a", extraObjects=[{**POOL, "spec": {"wieght": 1}}])
    ran = project.run("render")
    assert ran.code == 2
    assert "GPU901: NodePool gpus: spec.wieght is not a field of karpenter.example/v1 NodePool" in ran.err
    assert "did you mean weight?" in ran.err
    project.policy("a", extraObjects=[{**POOL, "metadata": {"name": "gpus", "namespace": "x"}}])
    ran = project.run("render")
    assert ran.code == 4
    assert "spec.extraObjects[0].metadata.namespace" in ran.err


def test_kubeconform_judges_by_the_same_schemas(project: Project) -> None:
    """What somebody writes into dist/ is refused by the second opinion too."""
    add(project, POOLS)
    project.policy("a", extraObjects=[POOL])
    project.run("render")
    path = project.dist / "a/operands/nodepool-gpus.yaml"
    path.write_text(path.read_text().replace("weight: 1", "wieght: 1"))
    ran = project.run("validate", env=KUBECONFORM)
    assert ran.code == 2
    assert "GPU903" in ran.err


def test_a_changed_schema_counts_at_once(project: Project) -> None:
    """The cache holds nothing against a schema that is another by now: what it lets pass, and what it refuses."""
    add(project, POOLS)
    project.policy("a", extraObjects=[POOL])
    assert project.run("render").code == 0
    narrow = definition("karpenter.example", "NodePool", "Cluster", {"weight": {"type": "integer"}}, "v1")
    ran = add(project, narrow)
    assert ran.out.splitlines() == [
        "updated: karpenter.example/v1 NodePool, Cluster",
        "removed: karpenter.example/v1beta1 NodePool, Cluster (nodepools.karpenter.example serves it no longer)",
    ]
    assert "requirements is not a field" in project.run("check").err
    add(project, POOLS)
    assert project.run("check").code == 0


def test_adding_twice_changes_nothing(project: Project) -> None:
    """The same definition gives the same bytes, from YAML, JSON, a list, and in whatever order."""
    add(project, POOLS, BOARDS)
    before = {path.name: path.read_bytes() for path in (project.folder / "schemas/crds").iterdir()}
    project.write("list.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [BOARDS, POOLS]}))
    ran = project.run("schema", "add", "list.json")
    assert {line.partition(":")[0] for line in ran.out.splitlines()} == {"unchanged"}
    assert before == {path.name: path.read_bytes() for path in (project.folder / "schemas/crds").iterdir()}


def test_standard_input(project: Project) -> None:
    """`kubectl get crd -o yaml | gpustack schema add -`."""
    done = subprocess.run(
        [os.sys.executable, "-m", "gpustack", "schema", "add", "-"],  # type: ignore[attr-defined]
        cwd=project.folder,
        env=project.environment(),
        input=yaml.safe_dump(BOARDS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "added: board.example/v1 Board, Namespaced\n")


def test_list_and_remove(project: Project) -> None:
    """They take a kind, a kind with its version, and the name of the definition; what isn't there is refused."""
    add(project, POOLS, BOARDS)
    found = project.run("schema", "list", "--format", "json").json["kinds"]
    assert [(each["kind"], each["apiVersion"], each["definition"]) for each in found] == [
        ("Board", "board.example/v1", "boards.board.example"),
        ("NodePool", "karpenter.example/v1", "nodepools.karpenter.example"),
        ("NodePool", "karpenter.example/v1beta1", "nodepools.karpenter.example"),
    ]
    ran = project.run("schema", "remove", "v1beta1/NodePool")
    assert ran.out == "removed: karpenter.example/v1beta1 NodePool, Cluster\n"
    assert project.run("schema", "remove", "boards.board.example").code == 0
    ran = project.run("schema", "remove", "Board")
    assert ran.code == 4
    assert "it has NodePool" in ran.err
    assert project.run("schema", "list").out == "karpenter.example/v1 NodePool, Cluster\n"


def test_nothing_is_written_where_a_definition_cannot_be_used(project: Project) -> None:
    """One bad definition of a file, and no file is there."""
    bad = {**BOARDS, "spec": {**BOARDS["spec"], "scope": "Both"}}
    ran = add(project, POOLS, bad)
    assert ran.code == 4
    assert "boards.board.example: its scope is Both" in ran.err
    assert not (project.folder / "schemas").exists()
    project.write("values.yaml", "a: 1\n")
    ran = project.run("schema", "add", "values.yaml")
    assert "no CustomResourceDefinition and no JSON schema is in it" in ran.err
    ran = project.run("schema", "add", "nowhere.yaml")
    assert (ran.code, "does not exist" in ran.err) == (4, True)


def test_what_gpustack_knows_is_left(project: Project) -> None:
    """A bundle that has ServiceMonitors too: gpustack's own schema of them stays the one that counts."""
    monitors = definition("monitoring.coreos.com", "ServiceMonitor", "Namespaced", {})
    ran = add(project, monitors, BOARDS)
    assert "left: monitoring.coreos.com/v1 ServiceMonitor, Namespaced (gpustack has a schema of it)" in ran.out
    assert [path.name for path in (project.folder / "schemas/crds").iterdir()] == ["board-board.example-v1.json"]


def test_json_schemas_need_what_they_do_not_say(project: Project) -> None:
    """Of a JSON schema nobody knows the scope, and of some not the kind."""
    raw = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"json": {"type": "string"}}}}}
    project.write("board.json", json.dumps(raw))
    ran = project.run("schema", "add", "board.json")
    assert "--api-version and --kind and --scope" in ran.err
    words = ("--api-version", "board.example/v1", "--kind", "Board", "--scope", "Namespaced")
    assert project.run("schema", "add", "board.json", *words).code == 0
    project.policy("a", extraObjects=[DASHBOARD])
    assert project.run("render").code == 0


ARGOCD = {
    "engine": "argocd",
    "argocd": {"destination": {"name": "a"}},
    "repository": {"url": "https://git.example.com/gpu.git"},
}


def test_app_projects_permit_them(project: Project) -> None:
    """Argo CD syncs a kind only where its project permits it, in the list for its scope."""
    add(project, POOLS, BOARDS)
    project.policy("a", extraObjects=[POOL, DASHBOARD], gitops=ARGOCD)
    assert project.run("render").code == 0
    (path,) = (project.dist / ".gitops/argocd/a").glob("appproject-*.yaml")
    spec = yaml.safe_load(path.read_text())["spec"]
    assert {"group": "karpenter.example", "kind": "NodePool"} in spec["clusterResourceWhitelist"]
    assert {"group": "board.example", "kind": "Board"} in spec["namespaceResourceWhitelist"]


@pytest.fixture
def merged(project: Project) -> Project:
    """A project in Git with a NodePool."""
    add(project, POOLS)
    (project.folder / "crds.yaml").unlink()
    project.policy("a", extraObjects=[POOL])
    git(project.folder, "init", "-q")
    assert project.run("render").code == 0
    commit(project)
    return project


def test_items_are_told_by_the_keys_of_the_definition(merged: Project) -> None:
    """A list whose items its definition knows by `label` is compared item by item: one is new, none is another."""
    more = {"label": "arch", "operator": "In", "values": ["arm64"]}
    spec = {**POOL["spec"], "requirements": [more, *POOL["spec"]["requirements"]]}
    merged.policy("a", extraObjects=[{**POOL, "spec": spec}])
    text = json.dumps(merged.run("diff", "--base", "HEAD", "--format", "json").json)
    assert '"op": "add", "path": ["spec", "requirements", {"label": "arch"}]' in text
    assert '"op": "replace"' not in text


def test_a_new_object_of_an_added_kind_is_power(merged: Project) -> None:
    """Nobody knows what a custom resource does: it is never routine, and a change of it isn't either."""
    merged.policy("a", extraObjects=[{**POOL, "spec": {"weight": 2}}])
    ran = merged.run("diff", "--base", "HEAD", "--format", "json")
    tiers = [each["tier"] for each in ran.json["impact"] if "NodePool" in json.dumps(each)]
    assert tiers
    assert max(tiers) < 4
    assert min(tiers) == 1


def test_a_change_of_a_schema_is_told(merged: Project) -> None:
    """schemas/crds/ steers the review: what a file of it says lets objects pass."""
    assert steers("schemas/crds/nodepool-karpenter.example-v1.json")
    merged.run("schema", "remove", "v1beta1/NodePool")
    ran = merged.run("diff", "--base", "HEAD", "--format", "json")
    (effect,) = [each for each in ran.json["impact"] if each["rule"] == "IMP002"]
    assert effect["tier"] == 1
    assert "schemas/crds/nodepool-karpenter.example-v1beta1.json" in json.dumps(effect)


def test_each_side_is_judged_by_its_own_schemas(merged: Project) -> None:
    """The base is read with the schemas of the base: one that is removed now doesn't make it unreadable."""
    git(merged.folder, "rm", "-rq", "--cached", "dist")
    (merged.folder / ".gitignore").write_text("dist\n")
    commit(merged)
    merged.policy("a")
    assert merged.run("schema", "remove", "NodePool").code == 0
    ran = merged.run("diff", "--base", "HEAD", "--format", "json")
    assert ran.code == 1
    assert "NodePool" in ran.out


def test_a_hostile_file_is_an_error_for_whoever_needs_it(merged: Project, tmp_path: Path) -> None:
    """A link in the folder stops the render in a sentence, for every verb."""
    path = merged.folder / "schemas/crds/nodepool-karpenter.example-v1.json"
    path.unlink()
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    path.symlink_to(secret)
    for verb in ("render", "check", "lint", "validate"):
        ran = merged.run(verb, env=KUBECONFORM)
        assert ran.code == 4
        assert "GPU910" in ran.err
        assert "hunter2" not in ran.err


def test_a_pattern_that_backtracks_is_answered_at_once(project: Project) -> None:
    """Neither the verdict nor the explanation reads patterns with an engine that may take for ever."""
    add(project, definition("board.example", "Board", "Namespaced", {"json": {"type": "string", "pattern": "^(a+)+$"}}))
    project.policy("a", extraObjects=[{**DASHBOARD, "spec": {"json": "a" * 5000 + "!"}}])
    with mock.patch("re.search", side_effect=AssertionError("Python's own engine")):
        ran = project.run("render")
    assert ran.code == 2
    assert "it must match ^(a+)+$" in ran.err


def test_kinds_of_other_software_may_have_the_names_of_kubernetes(project: Project) -> None:
    """Volcano has Jobs and a cloud has Roles: what rules and references know of Kubernetes' kinds isn't held against
    them, whatever is in them."""
    kinds = sorted({name.split()[1] for name in _known_kinds("1.34")} - {"NodeFeatureDiscovery"})
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    bodies = [definition("other.example", kind, "Namespaced", {}) for kind in kinds]
    for body in bodies:
        body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = loose
    add(project, *bodies)
    template = {"spec": {"containers": [{"name": "a", "image": "registry.example/a:1"}], "volumes": "x"}}
    inside = {"selector": {"a": 1}, "ports": [1], "template": template, "groups": [{"rules": "x"}], "jobTemplate": 1}
    odd = {"rules": [1, "x", {"verbs": 1}], "subjects": [{"a": 1}], "roleRef": "x", "data": "x", "spec": inside}
    objects = [
        {"apiVersion": "other.example/v1", "kind": kind, "metadata": {"name": f"{kind.lower()}-{number}"}, **content}
        for kind in kinds
        for number, content in enumerate(({}, odd))
    ]
    project.policy("a", extraObjects=objects, gitops=ARGOCD)
    ran = project.run("render")
    assert (ran.code, [line for line in ran.err.splitlines() if "error" in line]) == (0, [])
