"""What single rules over the spec say about part of a policy."""

from __future__ import annotations

import functools

from gpustack.checks.rule import all_rules
from gpustack.model import Finding
from tests.checks.snippets import loaded


@functools.cache
def said(rule: str, snippet: str) -> tuple[Finding, ...]:
    """What the rule called RULE says about SNIPPET, YAML that stands in the spec of rules' pages."""
    (found,) = (each for each in all_rules() if each.id == rule and each.over == "spec")
    return tuple(found.findings(loaded(snippet).spec))


def paths(rule: str, snippet: str) -> list[str]:
    """The places that RULE finds in SNIPPET."""
    return [finding.path for finding in said(rule, snippet)]
