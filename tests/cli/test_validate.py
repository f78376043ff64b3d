"""gpustack validate: every file that was rendered is there, and kubeconform has looked at all of them."""

from __future__ import annotations

import json

import pytest

from tests.odd import ODD, make_odd
from tests.project import ROOT, Project

TOOL = ROOT / ".tools/bin/kubeconform"
VALIDATOR = "operands/daemonset-nvidia-operator-validator.yaml"


@pytest.fixture
def rendered(project: Project) -> Project:
    """A project with two rendered clusters of different versions of Kubernetes."""
    project.policy("a")
    project.policy("b", cluster={"kubernetesVersion": "1.29"})
    assert project.run("render").code == 0
    return project


def test_valid(rendered: Project) -> None:
    """What render wrote is valid, and all of it was looked at."""
    files = [path for path in rendered.tree() if path.endswith(".yaml")]
    done = rendered.run("validate", "--kubeconform", TOOL)
    assert (done.code, done.out, done.err) == (0, f"{len(files)} files of 2 clusters are valid\n", "")
    document = rendered.run("validate", "a", "--kubeconform", TOOL, "--format", "json").json
    own = [path for path in files if path.startswith("a/")]
    assert document == {"version": 1, "exit": 0, "files": len(own), "findings": []}


def test_invalid_missing_and_unreadable(rendered: Project) -> None:
    """An object that the API server would refuse, a file that the index lists and that is gone, and an index that can't
    be read are findings, exit 2; other clusters are not concerned."""
    file = rendered.dist / "a" / VALIDATOR
    file.write_bytes(file.read_bytes().replace(b"kind: DaemonSet", b"kind: DaemonSett"))
    (rendered.dist / "a/base/namespace-gpu-operator.yaml").unlink()
    done = rendered.run("validate", "--kubeconform", TOOL)
    assert done.code == 2
    assert VALIDATOR in done.err
    assert "namespace-gpu-operator.yaml is missing" in done.err
    (rendered.dist / ".index/b.json").write_text("{")
    found = rendered.run("validate", "b", "--kubeconform", TOOL, "--format", "json")
    assert (found.code, [item["rule"] for item in found.json["findings"]]) == (2, ["GPU024"])


@pytest.mark.parametrize("what", ["same", *ODD])
def test_what_is_no_file(rendered: Project, what: str) -> None:
    """A link, also one to the very object, a pipe or another thing in the place of a file is a finding that says so."""
    file = rendered.dist / "a" / VALIDATOR
    if what == "same":
        file.rename(file.with_name("elsewhere"))
        file.symlink_to("elsewhere")
    else:
        make_odd(file, what)
    done = rendered.run("validate", "a", "--kubeconform", TOOL)
    assert done.code == 2
    assert f"error GPU025: dist/a/{VALIDATOR} is a link, a pipe or another thing that is not a file" in done.err


def test_words(rendered: Project) -> None:
    """Clusters are named as for the other verbs: a glob works, a typo is exit 4, and so is an empty folder."""
    assert rendered.run("validate", "?", "--kubeconform", TOOL).code == 0
    done = rendered.run("validate", "aa", "--kubeconform", TOOL)
    assert (done.code, "dist/ describes a, b" in done.err) == (4, True)
    assert rendered.run("validate", "--out", "nowhere", "--kubeconform", TOOL).code == 4


def test_policies_are_not_needed(rendered: Project) -> None:
    """The second opinion is about files: it needs no policy, and none has to be valid."""
    rendered.write("policies/a.yaml", "}")
    assert rendered.run("validate", "--kubeconform", TOOL).code == 0
    index = json.loads((rendered.dist / ".index/a.json").read_text())
    assert index["kubernetes"] == "1.34"
