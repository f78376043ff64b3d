"""No line with a value of a Secret is ever shown."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
import yaml

from gpustack.model import Finding, InputError
from gpustack.text.positions import locate
from gpustack.text.read import parse
from gpustack.text.secrets import hides

SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "s",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData": {"a": "hunter2"}}'},
    },
    "stringData": {"a": "hunter2", "b": "one\nhunter2\n"},
    "data": {"c": "aHVudGVyMgo="},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"shown": "value"}}
WORDS = ("hunter2", "aHVudGVyMgo=")


def shown(text: str) -> list[str]:
    """The lines of TEXT that may be shown."""
    return [line for number, line in enumerate(text.split("\n"), 1) if not hides(text, number)]


@pytest.mark.parametrize("keys", list(itertools.permutations(SECRET))[::7])
@pytest.mark.parametrize("flow", [False, None])
def test_wherever_it_stands(keys: tuple[str, ...], flow: bool | None) -> None:
    """Whatever the order of the keys and the style: no value is shown, and the ConfigMap beside it is."""
    secret = {key: SECRET[key] for key in keys}
    text = yaml.safe_dump(
        {"spec": {"extraObjects": [CONFIG, secret, copy.deepcopy(CONFIG)]}}, sort_keys=False, default_flow_style=flow
    )
    lines = shown(text)
    assert not any(word in line for word in WORDS for line in lines)
    assert sum("shown" in line and "value" in line for line in lines) == 2
    assert any("kind: Secret" in line for line in lines) is ("kind: Secret\n" in text)


@pytest.mark.parametrize("indent", [None, 1])
def test_json(indent: int | None) -> None:
    """JSON is YAML, on one line or on many."""
    text = json.dumps({"spec": {"extraObjects": [SECRET]}}, indent=indent)
    assert not any(word in line for word in WORDS for line in shown(text))


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {a: hunter2}\nobject:\n  kind: Secret\n  data: *b\n",
        "- kind: Secret\n  stringData:\n    a: hunter2\n   b: broken\n",
        "- stringData:\n    a: hunter2\n  kind: Secret\n---\nkind: Secret\ndata: {a: hunter2}\n",
        "kind: Secret\ndata:\n  a: |\n    hunter2\n\n    hunter2\n",
    ],
)
def test_odd_texts(text: str) -> None:
    """Behind an alias, in a text that is not YAML, in a second document, in a block."""
    assert not any("hunter2" in line for line in shown(text))


@pytest.mark.parametrize(
    "text",
    ["references: [{kind: Secret, name: a}]\n", "kind: ConfigMap\ndata: {a: b}\n", "references: [{kind: Secret\n"],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    """A reference to a Secret has no value in it, and a ConfigMap no secret."""
    assert "\n".join(shown(text)) == text


@pytest.mark.parametrize(
    "value",
    ["123456789012345678901234567890", "!hunter2", "*hunter2", '"hunter2', "[hunter2, {", "{hunter2: }: }", ".inf"],
)
def test_what_cant_be_read_is_not_shown(value: str) -> None:
    """A password that is no text to YAML is refused without being told, in sentences and lines."""
    text = f"kind: ClusterPolicy\nspec:\n  extraObjects:\n  - kind: Secret\n    stringData:\n      a: {value}\n"
    with pytest.raises(InputError) as caught:
        parse(text, "a.yaml")
    for finding in caught.value.findings:
        assert said(finding).isdisjoint({value, "hunter2"})
        assert value not in " ".join(said(finding))
        assert finding.location is not None
        assert finding.location.line is not None


def said(finding: Finding) -> set[str]:
    """The words of FINDING and of the line that it shows."""
    line = (finding.location.text if finding.location else "") or ""
    return set(" ".join((finding.what, finding.why, finding.remedy, line)).split())


def test_places_of_a_text_that_has_no_such_path() -> None:
    """The top of the file may be a line of the Secret as well."""
    text = json.dumps({"spec": {"extraObjects": [SECRET]}})
    for path in (("spec", "extraObjects", 0), ("nothing",), ("spec",)):
        assert locate(text, "a.yaml", path).text is None
