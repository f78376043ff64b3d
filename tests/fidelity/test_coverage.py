"""Every field of the operator's API has an effect here, or a reason why it can't have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.catalog.fields import kinds, leaves
from gpustack.checks.rule import rules_over

from . import coverage

Reasons = dict[str, dict[str, str]]
NO_EFFECT: Reasons = yaml.safe_load(Path(__file__).with_name("no-effect.yaml").read_text(encoding="utf-8"))
FIELDS = [(kind, path) for kind in kinds() for path in leaves(kind)]


def excused(kind: str, path: str) -> bool:
    """Whether the list says that the field PATH of KIND has no effect."""
    return any(coverage.matches(path, glob) for glob in NO_EFFECT[kind])


@pytest.mark.parametrize(("kind", "path"), FIELDS, ids=[f"{kind}-{path}" for kind, path in FIELDS])
def test_field(kind: str, path: str) -> None:
    """Another value of the field changes what is rendered; or it can't, and the list says why."""
    if excused(kind, path):
        assert coverage.effect(kind, path) is None, "it has an effect: take it from no-effect.yaml"
    else:
        assert coverage.effect(kind, path) is not None, "it has no effect: render it, or say in no-effect.yaml why not"


@pytest.mark.parametrize("kind", [*kinds(), "pages"])
def test_policies_are_accepted(kind: str) -> None:
    """Fields are tried in policies that no rule refuses: what can't be rendered says nothing about a field."""
    for policy in coverage.policies(kind):
        found = [finding for rule in rules_over("spec") for finding in rule.findings(policy.effective)]
        assert [finding.what for finding in found if finding.severity == "error"] == [], policy.name


def test_all_fields_are_tried() -> None:
    """The lists of fields are whole: as many as the operator's API has in v26.7.0."""
    assert {kind: len(leaves(kind)) for kind in kinds()} == {
        "ClusterPolicy": 391,
        "NVIDIADriver": 123,
        "GPUCluster": 104,
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_reason_is_needed(kind: str) -> None:
    """An excuse for no field, or without a reason, is none."""
    for glob, reason in NO_EFFECT[kind].items():
        assert any(coverage.matches(path, glob) for path in leaves(kind)), glob
        assert reason.endswith("."), glob


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        ("gfd.args", ["-x"], False),
        ("gds.args", ["-x"], True),
        ("gfd.enabled", False, False),
        ("devicePlugin.version", "v9", False),
        ("devicePlugin.version", "v0.20.0", True),
    ],
)
def test_a_difference_is_found(path: str, value: Any, same: bool) -> None:
    """The comparison can fail: a changed argument, image or switch is seen, and what the operator ignores is not."""
    (first, *_) = coverage.policies("ClusterPolicy")
    spec: dict[str, Any] = yaml.safe_load(yaml.safe_dump(first.spec))
    coverage.put(spec, path, value)
    assert coverage.differ(first, coverage.Policy.of("changed", spec)) is not same


def test_fields_count_with_what_they_need() -> None:
    """A field is compared with a policy that says what it needs, not with one that lacks that too."""
    (first, *_) = coverage.policies("ClusterPolicy")
    start = coverage.prepared(first, "driver.licensingConfig.nlsEnabled")
    assert coverage.get(start.spec, "driver.licensingConfig.secretName") == "licence"
    assert coverage.get(first.spec, "driver.licensingConfig.secretName") is None
    assert coverage.differ(first, start)
