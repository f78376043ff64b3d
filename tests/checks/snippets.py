"""Snippets of rules' pages as policies, and what the rules say about them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from gpustack.checks.rule import Rule, all_rules
from gpustack.checks.subjects import Written
from gpustack.compiler.cache import Store
from gpustack.compiler.stack import RefusedError, compile_stack
from gpustack.model import Finding
from gpustack.policy.loading.load import Loaded, load, spec_key
from tests.checks.frame import framed

EVERY = frozenset(rule.id for rule in all_rules())


@functools.cache
def loaded(snippet: str) -> Loaded:
    """The policy of a cluster that says what SNIPPET says."""
    document = {
        "apiVersion": "gpustack.dev/v1alpha1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "example"},
        "spec": framed(yaml.safe_load(snippet)),
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        return load(path, root=path.parent)


def rule_of(check: Callable[..., Any]) -> Rule:
    """The rule that CHECK is registered as."""
    return next(rule for rule in all_rules() if rule.check is check)


def said(rule: Rule, snippet: str, store: Store) -> list[Finding]:
    """What RULE says about SNIPPET."""
    policy = loaded(snippet)
    if rule.over == "spec":
        return list(rule.findings(policy.spec))
    if rule.over == "origins":
        return list(rule.findings(Written(policy.spec, policy.merged)))
    return [finding for finding in findings(snippet, store) if finding.rule == rule.id]


def findings(snippet: str, store: Store) -> tuple[Finding, ...]:
    """What all rules say about the spec of SNIPPET and what it renders to, and why it can't be rendered."""
    policy = loaded(snippet)
    try:
        return compile_stack(policy.spec, spec_key(policy.merged), store, EVERY).findings
    except RefusedError as error:
        return (*error.findings, *error.beside)
