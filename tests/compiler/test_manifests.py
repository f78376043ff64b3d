"""Manifests of tenants: every object of every file, and where its parts stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.compiler.manifests import files, read
from gpustack.model import InputError

TWO = """\
# the first
apiVersion: v1
kind: Pod
metadata: {name: a}
---
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: b
spec:
  template:
    spec:
      containers:
      - name: main
        resources:
          limits: {nvidia.com/gpu: 2}
"""


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    """A file with TEXT."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_several_documents(tmp_path: Path) -> None:
    """Each document is an object, and places count from the top of the file."""
    first, second = read(write(tmp_path, TWO), "a.yaml")
    assert (first.body["kind"], second.body["kind"]) == ("Pod", "Deployment")
    path = 'spec.template.spec.containers[0].resources.limits["nvidia.com/gpu"]'
    assert str(second.locate(path)) == "a.yaml:17:36"
    assert str(second.locate("spec.template.spec.tolerations")) == "a.yaml:13:5"
    assert str(first.locate("metadata.name")) == "a.yaml:4:18"
    assert str(first.locate("")) == "a.yaml:2:1"


def test_lists(tmp_path: Path) -> None:
    """What `kubectl get -o yaml` prints: the items are the objects."""
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- 3\n"
    (found,) = read(write(tmp_path, text), "a.yaml")
    assert found.body["metadata"] == {"name": "a"}
    assert str(found.locate("metadata.name")) == "a.yaml:6:20"


def test_json(tmp_path: Path) -> None:
    """JSON is YAML."""
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "a"}\n}\n'
    (found,) = read(write(tmp_path, text, "a.json"), "a.json")
    assert str(found.locate("metadata.name")) == "a.json:4:23"


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "replicas: 2\nimage: {tag: x}\n", "- a\n- b\n", "kind: Pod\n", "x\n"]
)
def test_what_is_no_object_is_passed_over(tmp_path: Path, text: str) -> None:
    """Values files, lists and the like are somebody else's."""
    assert read(write(tmp_path, text), "a.yaml") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{- if .Values.gpu }}\napiVersion: v1\nkind: Pod\n{{- end }}\n", 1),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", 4),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  {{- toYaml .Values.spec | nindent 2 }}\n", 5),
    ],
)
def test_templates_say_what_they_are(tmp_path: Path, text: str, line: int) -> None:
    """A template of Helm is no YAML; the message says so, and what to do."""
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, text), "a.yaml")
    (finding,) = caught.value.findings
    assert (finding.rule, finding.location and finding.location.line) == ("GPU035", line)
    assert "helm template" in finding.remedy


def test_quoted_templates_are_texts(tmp_path: Path) -> None:
    """What is valid YAML is read, whatever is in its texts."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ inputs.name }}'}\n"
    assert len(read(write(tmp_path, text), "a.yaml")) == 1


def test_broken_files_say_where(tmp_path: Path) -> None:
    """As for policies: line, column, why."""
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, "apiVersion: v1\nkind: Pod\n\tmetadata: {}\n"), "a.yaml")
    assert str(caught.value.findings[0].location) == "a.yaml:3:1"


def test_files_of_a_folder(tmp_path: Path) -> None:
    """All of them, in order, without hidden ones and other kinds."""
    for name in ("b/c.yml", "a.yaml", "b/a.json", "b/README.md", ".git/x.yaml", "b/.hidden.yaml"):
        write(tmp_path, TWO, name)
    assert [path.relative_to(tmp_path).as_posix() for path in files(tmp_path)] == ["a.yaml", "b/a.json", "b/c.yml"]
    assert files(tmp_path / "a.yaml") == [tmp_path / "a.yaml"]
    with pytest.raises(InputError):
        files(tmp_path / "nothing")
