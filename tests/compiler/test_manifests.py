"""Manifests of tenants: every object of every file, and where its parts stand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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


def test_json_as_programs_write_it(tmp_path: Path) -> None:
    """Programs that write ASCII make two escapes of a character beyond 16 bits; a backslash before is none of them."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": {"x": "\\\U0001f600 \\ud83d"}}}
    (found,) = read(write(tmp_path, json.dumps(body), "a.json"), "a.json")
    assert found.body == body


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
    """A template of Helm is not YAML; the message says so, and what to do."""
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
    found, unreadable = files(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a.yaml", "b/a.json", "b/c.yml"]
    assert unreadable == []
    assert files(tmp_path / "a.yaml") == ([tmp_path / "a.yaml"], [])
    with pytest.raises(InputError):
        files(tmp_path / "nothing")


def test_a_folder_that_can_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without permission, or that vanished meanwhile, is a finding: it isn't passed over in silence."""
    write(tmp_path, TWO)
    (tmp_path / "locked").mkdir()
    scan = os.scandir

    def refusing(path: str) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found, (unreadable,) = files(tmp_path)
    assert [path.name for path in found] == ["a.yaml"]
    assert (unreadable.rule, unreadable.location and unreadable.location.file) == ("GPU001", str(tmp_path / "locked"))


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """As with kubectl: a link may lead out of the folder, or back into it."""
    write(tmp_path, TWO)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert files(tmp_path)[0] == [tmp_path / "a.yaml"]


@pytest.mark.parametrize(("name", "what"), [("pipe", "a named pipe"), ("loop", "leads back to itself")])
def test_what_is_no_file_is_told(tmp_path: Path, name: str, what: str) -> None:
    """What was named and is neither a folder nor a file says what it is, and nobody waits for it."""
    path = tmp_path / f"{name}.yaml"
    os.mkfifo(path) if name == "pipe" else path.symlink_to(path)
    assert files(path) == ([path], [])
    with pytest.raises(InputError) as caught:
        read(path, "a.yaml")
    assert what in caught.value.findings[0].what


LIST, NEW = "apiVersion: v1\nkind: List\nitems:\n", "\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  spec: {}\n", "a.yaml:4:20"),
        (f"{LIST}- {LIST.strip().replace(NEW, NEW + '  ')}\n  - {POD}", "a.yaml:7:50"),
    ],
)
def test_lists_of_one_kind_and_lists_in_lists(tmp_path: Path, text: str, place: str) -> None:
    """The API server's own lists leave out the kind of their items; a list may hold lists."""
    (found,) = read(write(tmp_path, text), "a.yaml")
    assert (found.body["apiVersion"], found.body["kind"]) == ("v1", "Pod")
    assert str(found.locate("metadata.name")) == place


def test_numbers_are_what_kubectl_makes_of_them(tmp_path: Path) -> None:
    """A mode that begins with a zero is octal, as in the object that kubectl would send: 0440 is 288."""
    text = "apiVersion: v1\nkind: Pod\nspec: {volumes: [{secret: {defaultMode: 0440}}]}\n"
    (found,) = read(write(tmp_path, text), "a.yaml")
    assert found.body["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o440
