"""Kinds of the user's other software: from a CustomResourceDefinition to a schema, and what a folder may hold."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import kinds as kinds_module
from gpustack.catalog.definitions import Heads, either_case, from_definition, from_schema
from gpustack.catalog.kinds import FOLDER, MOST_FILES, Kinds, SchemaError, kinds_of
from gpustack.compiler.validate import validate
from gpustack.model import Body, InputError

Schema = dict[str, Any]


def definition(*versions: tuple[str, Schema], **spec: Any) -> Body:
    """A CustomResourceDefinition of Widgets with VERSIONS, each with the schema of `spec`."""
    listed = [
        {
            "name": name,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        }
        for name, schema in versions
    ]
    names = {"kind": "Widget", "plural": "widgets"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": listed, **spec},
    }


def folder(root: Path, *bodies: Body) -> Kinds:
    """The kinds of the repository ROOT, which has those of the definitions BODIES."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for made in (made for body in bodies for made in from_definition(body)):
        (root / FOLDER / made.kind.file).write_text(made.text)
    return kinds_of(root)


Judge = Callable[..., list[str]]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """What is wrong with a Widget by the schema of its `spec`."""

    def judged(schema: Schema, value: Any, **more: Any) -> list[str]:
        known = folder(tmp_path, definition(("v1", schema), **more))
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": value}
        return [finding.what for finding in validate(body, "1.34", known)]

    return judged


OBJECT: Schema = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (OBJECT, {"a": "x"}, {"b": "x"}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True, **OBJECT}, {"b": 1, "a": "x"}, {"a": 1}),
        ({"type": "object", "properties": {"a": {"x-kubernetes-preserve-unknown-fields": True}}}, {"a": [1]}, {"b": 1}),
        (
            {"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": True}}},
            {"a": 1},
            {"a": 1.5},
        ),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
                },
            },
            {"a": "10%"},
            {"a": True},
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "1"}),
        (
            {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]},
            {},
            {"a": 1},
        ),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": "x"}, {}),
        ({"type": "string", "pattern": "^(a+)+$"}, "aaa", "a" * 60 + "!"),
        ({"type": "string", "pattern": "^(?i)(abort|warn)?$"}, "aBort", "abor"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, ["a", "b"], ["a", "a"]),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["n"],
            },
            [{"n": "a", "v": "1"}, {"n": "b"}],
            [{"n": "a", "v": "1"}, {"n": "a", "v": "2"}],
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            {"a": "x"},
            {"a": "x", "b": "y"},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
                "anyOf": [{"properties": {"a": {"properties": {"b": {"enum": ["x"]}}}}}],
            },
            {"a": {"b": "x"}},
            {"a": {"b": "y"}},
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}},
            {"kind": "Pod"},
        ),
        ({"type": "string", "nullable": True, "format": "date-time", "description": "x"}, "anything", 1),
        ({"type": "object", "properties": {"description": {"type": "string"}}}, {"description": "x"}, {"title": "x"}),
    ],
)
def test_an_object_is_judged_as_the_api_server_would(judge: Judge, schema: Schema, good: Any, bad: Any) -> None:
    """Unknown fields are refused where they would be pruned, defaults count before what is required, branches say
    something about values and close nothing, lists that are sets and maps hold nothing twice."""
    assert judge(schema, good) == []
    assert judge(schema, bad)


def test_a_definition_that_preserves_unknown_fields_closes_nothing(judge: Judge) -> None:
    """`preserveUnknownFields: true` is the old way to say that nothing is pruned."""
    assert judge(OBJECT, {"b": 1}, preserveUnknownFields=True) == []
    assert judge(OBJECT, {"a": 1}, preserveUnknownFields=True)


def test_an_error_names_the_kind_and_not_kubernetes(tmp_path: Path) -> None:
    """Who wrote a field that isn't there is told which kind lacks it, and the nearest one."""
    known = folder(tmp_path, definition(("v1", {"type": "object", "properties": {"replicas": {"type": "integer"}}})))
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"replica": 1}}
    (finding,) = validate(body, "1.34", known)
    assert finding.what == "Widget a: spec.replica is not a field of example.com/v1 Widget"
    assert (finding.path, finding.remedy) == ("spec.replica", "did you mean replicas?")


def test_what_the_schema_cannot_say_is_said() -> None:
    """Rules in CEL and patterns that only Go reads are not checked, and the file says so."""
    schema = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.a != ''"}],
        "properties": {"a": {"type": "string", "pattern": r"^\A[[:alpha:]]\z(?P<n>x)$"}},
    }
    (made,) = from_definition(definition(("v1", schema)))
    assert made.kind.unchecked == (
        "1 rule in CEL (x-kubernetes-validations)",
        "the pattern of spec.a, which only Go reads",
    )


def test_every_version_that_is_served_has_a_file() -> None:
    """Versions differ in their schemas, and one that isn't served can't be applied."""
    body = definition(("v1", OBJECT), ("v1beta1", {"type": "object", "properties": {"old": {"type": "string"}}}))
    body["spec"]["versions"].append({**body["spec"]["versions"][0], "name": "v1alpha1", "served": False})
    found = {made.kind.api_version: made.kind for made in from_definition(body)}
    assert set(found) == {"example.com/v1", "example.com/v1beta1"}
    assert found["example.com/v1beta1"].schema["properties"]["spec"]["properties"].keys() == {"old"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v1beta1"}, "no API server since 1.22"),
        ({"spec": {}}, "its names is missing"),
        ({"spec": {"names": {"kind": "X"}, "versions": []}}, "serves no version"),
    ],
)
def test_definitions_that_cannot_be_used_are_refused(change: Body, why: str) -> None:
    """The reason is in the words of the definition."""
    with pytest.raises(SchemaError, match=why):
        from_definition({**definition(("v1", OBJECT)), **change})


def test_a_json_schema_refers_to_places_in_its_own_file(tmp_path: Path) -> None:
    """References are written out; one to elsewhere, or in a circle, is refused."""
    heads = Heads("example.com", "v1", "Widget", "Cluster")
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}}
    raw = {"type": "object", "properties": {"spec": {"$ref": "#/definitions/x"}}, "definitions": {"x": inner}}
    made = from_schema(raw, heads)
    assert made.kind.schema["properties"]["spec"]["properties"] == {"a": {"type": "integer"}}
    for reference in ("https://example.com/x.json", "other.json#/x", "file:///etc/passwd", "#/nowhere", "#"):
        with pytest.raises(SchemaError):
            from_schema({"type": "object", "properties": {"spec": {"$ref": reference}}}, heads)
    bomb: Schema = {"type": "object", "definitions": {"a0": {"type": "string"}}}
    for n in range(1, 40):
        both = {"$ref": f"#/definitions/a{n - 1}"}
        bomb["definitions"][f"a{n}"] = {"type": "object", "properties": {"x": both, "y": both}}
    bomb["properties"] = {"spec": {"$ref": "#/definitions/a39"}}
    start = time.monotonic()
    with pytest.raises(SchemaError, match="stand for more than"):
        from_schema(bomb, heads)
    assert time.monotonic() - start < 20
    del tmp_path


HEAD: Schema = {
    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
    "x-gpustack-scope": "Cluster",
    "type": "object",
}
NAME = "widget-example.com-v1.json"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        json.dumps({**HEAD, "$ref": "https://example.com/x"}),
        json.dumps({**HEAD, "properties": {"a": {"$ref": "#"}}}),
        json.dumps({**HEAD, "if": {}, "then": {}}),
        json.dumps({**HEAD, "patternProperties": {"^(a+)+$": {}}}),
        json.dumps({**HEAD, "properties": {"a": {"pattern": "(?=a)"}}}),
        json.dumps({**HEAD, "properties": {"a": {"pattern": "x{1000}{1000}{1000}{1000}"}}}),
        json.dumps({**HEAD, "properties": {"a": {"minLength": -1}}}),
        json.dumps({**HEAD, "properties": {"a": {"multipleOf": 0}}}),
        json.dumps({**HEAD, "properties": {"a": {"type": "widget"}}}),
        json.dumps({**HEAD, "properties": {"a": {"enum": []}}}),
        json.dumps({**HEAD, "allOf": []}),
        json.dumps({**HEAD, "required": "a"}),
        json.dumps({**HEAD, "x-gpustack-scope": "Both"}),
        json.dumps({**HEAD, "x-kubernetes-group-version-kind": [{"group": "../x", "version": "v1", "kind": "Widget"}]}),
        json.dumps({**HEAD, "minimum": float("nan")}),
        json.dumps(HEAD)[:-1] + ', "properties": ' + '{"a": {"properties": ' * 5000 + "{}" + "}}" * 5000 + "}",
        json.dumps({**HEAD, "x-kubernetes-group-version-kind": [{"group": "a.b", "version": "v1", "kind": "Other"}]}),
    ],
)
def test_a_file_in_other_words_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever a pull request puts there, nothing is fetched, nothing runs for long, and the answer names the file."""
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / NAME).write_text(text)
    with pytest.raises(InputError) as caught:
        kinds_of(tmp_path).of("example.com/v1", "Widget")
    (finding,) = caught.value.findings
    assert finding.rule == "GPU910"
    assert finding.location is not None
    assert finding.location.file == f"{FOLDER}/{NAME}"
    assert "gpustack schema add" in finding.remedy


def test_only_plain_files_of_a_bounded_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link, a pipe, too large a file, too many of them and a folder that is a link are refused."""
    where = tmp_path / FOLDER
    where.mkdir(parents=True)
    other = tmp_path / "other.json"
    other.write_text("{}")
    makers: list[Callable[[Path], object]] = [
        lambda path: path.symlink_to(other),
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(b" " * (kinds_module.LARGEST + 1)),
    ]
    for make in makers:
        make(where / NAME)
        with pytest.raises(InputError):
            kinds_of(tmp_path)
        (where / NAME).rename(tmp_path / f"gone-{time.monotonic_ns()}")
    monkeypatch.setattr(kinds_module, "MOST_FILES", 3)
    assert MOST_FILES > 3
    for number in range(4):
        (where / f"{number}.json").write_text("{}")
    with pytest.raises(InputError, match="can't be used"):
        kinds_of(tmp_path)
    where.rename(tmp_path / "elsewhere")
    where.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not a folder"):
        kinds_of(tmp_path)


def test_kinds_that_gpustack_knows_are_never_taken_from_there(tmp_path: Path) -> None:
    """A schema that would let any DaemonSet or ServiceMonitor pass counts for nothing."""
    (tmp_path / FOLDER).mkdir(parents=True)
    for group, kind in (("apps", "DaemonSet"), ("monitoring.coreos.com", "ServiceMonitor")):
        heads = [{"group": group, "version": "v1", "kind": kind}]
        text = json.dumps({**HEAD, "x-kubernetes-group-version-kind": heads})
        (tmp_path / FOLDER / f"{kind.lower()}-{group}-v1.json").write_text(text)
        known = kinds_of(tmp_path)
        assert known.of(f"{group}/v1", kind) is None
        body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"anything": 1}}
        assert validate(body, "1.34", known)
        assert known.namespaced(f"{group}/v1", kind)
    assert list(kinds_of(tmp_path).all()) == []


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    """Equal files, equal digest; any change is another, and no file has none."""
    first = folder(tmp_path / "a", definition(("v1", OBJECT)))
    second = folder(tmp_path / "b", definition(("v1", OBJECT)))
    third = folder(tmp_path / "c", definition(("v1", {"type": "object"})))
    assert first.digest == second.digest != third.digest
    assert kinds_of(tmp_path / "none").digest == ""


def test_flags_of_go_are_put_in_letters() -> None:
    """Only a flag at the start is known; classes keep theirs."""
    assert either_case("^(?i)a[b-]c$") == "^[aA][bB-][cC]$"
    assert either_case("abc") == "abc"
