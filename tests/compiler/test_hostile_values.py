"""Impossible values in a policy: whatever stands in whichever field, it is rendered or refused, at once and with a
place.
"""

from __future__ import annotations

import functools
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from gpustack.compiler import node
from gpustack.compiler.cache import Store
from gpustack.compiler.stack import compile_stack
from gpustack.model import Finding, FindingsError, InputError
from gpustack.policy.help.describe import nested
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.load import load, spec_key
from gpustack.policy.loading.place import place
from tests.policy.leaves import Leaf, Steps, around, leaves

LONGEST = 2.0
"""Seconds."""
SENTENCE = 6000
"""Characters of the longest sentence that anybody is told; a list of known names may be long."""

DIGITS = "9" * 5000
VALUES: dict[str, Any] = {
    "digits": DIGITS,
    "number": int("9" * 4000),
    "version": f"v1.{DIGITS}",
    "percentage": f"{DIGITS}%",
    "duration": f"{DIGITS}s",
    "profile": f"1g.{DIGITS}gb",
    "exponent": "1e1000000",
    "NUL": "a\0b",
    "surrogate": "a\ud800b",
    "nothing": "",
    "space": " \n",
    "long": "a" * 100_000,
    "long name": "a" * 300,
    "path": "/" + "a/" * 5000,
    "negative": -1,
    "64 bits": 2**63 - 1,
    "32 bits": 2**31,
    "fraction": 1.5,
    "large fraction": 1e300,
    "boolean": True,
}
NOT_JSON = {"float": "1e400", "infinity": ".inf", "not a number": ".nan", "hexadecimal": f"0x{DIGITS}"}
"""What YAML alone can say."""


OF_NUMBERS = ("digits", "number", "negative", "64 bits", "32 bits", "fraction", "large fraction", "boolean", "nothing")
OF_SWITCHES = ("digits", "number", "NUL", "nothing", "fraction")

FIELDS = {leaf.declared: leaf for leaf in reversed(list(leaves()))}
"""Every scalar field, where it stands first: sections share the models of what they have in common."""
GROUPS = 8
"""Tests that the fields are dealt out to."""


def values_for(leaf: Leaf) -> dict[str, Any]:
    """The values that may matter to the field LEAF."""
    if "str" in leaf.kind or "Any" in leaf.kind:
        return VALUES
    return {name: VALUES[name] for name in (OF_NUMBERS if "int" in leaf.kind else OF_SWITCHES)}


@functools.cache
def store(folder: Path) -> Store:
    """One store for all renders."""
    node.configure()
    return Store(folder, "s" * 64)


def spec(path: Steps, value: Any) -> dict[str, Any]:
    """A spec with VALUE at PATH, in a section that is on."""
    found: dict[str, Any] = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}
    (section, content) = next((key, item) for key, item in around(path, value).items() if key == path[0])
    models = nested(ClusterPolicySpec.model_fields[section].annotation)
    switch = {"enabled": True} if models and "enabled" in models[0].model_fields else {}
    if isinstance(content, dict):
        content = {**found.get(section, {}), **switch, **content}
    return {**found, section: content}


def outcome(folder: Path, content: str, cache: Path) -> list[Finding]:
    """What the policy with the spec CONTENT is refused with; nothing where it renders."""
    file = folder / "a.yaml"
    head = "apiVersion: gpustack.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: "
    file.write_text(head + content + "\n", encoding="utf-8")
    try:
        loaded = load(file, root=folder)
    except InputError as error:
        return error.findings
    try:
        compile_stack(loaded.spec, spec_key(loaded.merged), store(cache))
    except FindingsError as error:
        return [place(loaded, finding) for finding in error.findings if finding.severity == "error"]
    return []


def check(folder: Path, content: str, cache: Path) -> None:
    """Whatever becomes of CONTENT, it is told at once, with a place, in sentences that a person can read."""
    start = time.process_time()
    for finding in outcome(folder, content, cache):
        said = f"{finding.what} {finding.why} {finding.remedy}"
        assert finding.location is not None, finding
        assert finding.location.line is not None, finding
        assert len(said) < SENTENCE, said[:200]
        assert not re.search(r"[^\s]{1600}", said)
        said.encode()
    assert time.process_time() - start < LONGEST


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store is."""
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_value_in_any_field(group: int, tmp_path: Path, cache: Path) -> None:
    """Renders or is refused: no other exception, no second too many, no finding without a place."""
    for leaf in list(FIELDS.values())[group::GROUPS]:
        for name, value in values_for(leaf).items():
            try:
                check(tmp_path, json.dumps(spec(leaf.path, value)), cache)
            except Exception as error:
                raise AssertionError(f"{name} at {leaf.path}") from error


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("path", [("release",), ("nodePools", 0, "gpusPerNode"), ("driver", "version")])
def test_numbers_of_yaml(path: Steps, value: str, tmp_path: Path, cache: Path) -> None:
    """Numbers that JSON can't hold are refused where they stand."""
    content = json.dumps(spec(path, "VALUE")).replace('"VALUE"', value)
    assert outcome(tmp_path, content, cache)
    check(tmp_path, content, cache)


BODIES = [
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"name": "m", "port": 1}]}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "tolerations": [{"key": "a", "operator": "Lt", "value": "1"}],
                    "containers": [
                        {
                            "name": "a",
                            "image": "a.example.com/a:1",
                            "env": [{"name": "A", "value": "b"}],
                            "ports": [{"containerPort": 1}],
                            "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "1"}},
                            "startupProbe": {"exec": {"command": ["a"]}, "periodSeconds": 1},
                        }
                    ],
                },
            },
        },
    },
]


def places(value: Any, above: Steps = ()) -> list[Steps]:
    """The places of the scalars in VALUE."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, item in items for found in places(item, (*above, key))]
    return [above]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(body["kind"]))
def test_any_value_in_an_object(body: dict[str, Any], tmp_path: Path, cache: Path) -> None:
    """The same for objects that the policy brings along."""
    for path in places(body):
        for name in ("digits", "exponent", "NUL", "long name", "number", "negative", "64 bits", "boolean", "nothing"):
            value = VALUES[name]
            changed = json.loads(json.dumps(body))
            target = changed
            for step in path[:-1]:
                target = target[step]
            target[path[-1]] = value
            found = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}, "extraObjects": [changed]}
            try:
                check(tmp_path, json.dumps(found), cache)
            except Exception as error:
                raise AssertionError(f"{name} at {path}") from error
