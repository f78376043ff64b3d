"""Objects whose form stands in a data file, with values put in."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.components.parts.template import filled, template

HOSTILE = "$name: {a: [&x '\"]}\n---\n- ${other} $$"
"""What would be something else as YAML, or as a template."""


def test_a_value_is_nothing_but_itself() -> None:
    """What a policy says is neither read as YAML nor as a template, wherever it stands, and whatever is in it."""
    form = {"whole": "$value", "part": "x-$value", "$value": 1, "list": ["$value"], "map": "$labels"}
    made = filled(form, {"value": HOSTILE, "labels": {HOSTILE: (HOSTILE,)}})
    assert made == {
        "whole": HOSTILE,
        "part": f"x-{HOSTILE}",
        HOSTILE: 1,
        "list": [HOSTILE],
        "map": {HOSTILE: [HOSTILE]},
    }


def test_what_is_empty_is_left_out() -> None:
    """A field whose only value is a word without content is not there; False and 0 say something, and what the file
    itself has stays."""
    form = {"a": "$none", "b": "$text", "c": "$map", "d": "$no", "e": "$zero", "f": {"g": "$none"}, "h": [], "i": ""}
    made = filled(form, {"none": None, "text": "", "map": {}, "no": False, "zero": 0})
    assert made == {"d": False, "e": 0, "f": {}, "h": [], "i": ""}


def test_a_word_that_nobody_says_is_an_error() -> None:
    """A form never comes out with a name in the place of a value."""
    with pytest.raises(KeyError):
        filled({"a": "$word"}, {})
    with pytest.raises(KeyError):
        filled({"a": "x-$word"}, {})


def test_each_object_is_its_own(tmp_path: Path) -> None:
    """Who changes an object changes neither the form nor the value that was put in."""
    tmp_path.joinpath("module.yaml").write_text("form: {labels: $labels, ports: [{port: 1}]}\n", encoding="utf-8")
    module, labels = str(tmp_path / "module.py"), {"a": "b"}
    first = template(module, "form", labels=labels)
    first["labels"]["a"] = first["ports"][0]["port"] = "changed"
    assert template(module, "form", labels=labels) == {"labels": {"a": "b"}, "ports": [{"port": 1}]}
