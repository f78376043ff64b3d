"""The NodeFeatureRules that the policy brings along, and the labels that they put on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..model import Path, dotted

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec


def rules_of(spec: ClusterPolicySpec) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The rules in NodeFeatureRules of SPEC's extraObjects, with their paths. What is not a rule at all is left out:
    validation refuses it.
    """
    for index, body in enumerate(spec.extraObjects):
        content = body.get("spec") if body["kind"] == "NodeFeatureRule" else None
        rules = content.get("rules") if isinstance(content, dict) else None
        for position, rule in enumerate(rules if isinstance(rules, list) else []):
            if isinstance(rule, dict):
                yield ("spec", "extraObjects", index, "spec", "rules", position), rule


def labels_of_rules(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str]]:
    """Path, key and value of each label; none whose value is taken from a feature (`@...`)."""
    for path, rule in rules_of(spec):
        labels = rule.get("labels")
        for key, value in labels.items() if isinstance(labels, dict) else ():
            if isinstance(value, str) and value and not value.startswith("@"):
                yield dotted((*path, "labels", key)), key, value
