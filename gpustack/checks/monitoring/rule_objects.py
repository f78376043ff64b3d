"""Rules about PrometheusRules that a policy brings along: what makes the Prometheus operator refuse one as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.resolve import Cluster
from ...model import dotted
from ...policy.configurations import go_template, promql
from ..rule import Hit, rule

LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
OF_ALERTS = ("for", "keep_firing_for", "annotations")
"""What a rule has that alerts, and none that records."""
Where = tuple[str | int, ...]


@rule("GPU612", "error")
def refused_as_a_whole(cluster: Cluster) -> Iterator[Hit]:
    """A PrometheusRule that the Prometheus operator refuses."""
    for index, body in enumerate(cluster.spec.extraObjects):
        content = body.get("spec") if body["kind"] == "PrometheusRule" else None
        groups = content.get("groups") if isinstance(content, dict) else None
        known: set[str] = set()
        for place, group in enumerate(groups if isinstance(groups, list) else []):
            where: Where = ("spec", "extraObjects", index, "spec", "groups", place)
            if not isinstance(group, dict):
                continue
            if str(group.get("name")) in known:
                yield _hit((*where, "name"), f"two groups are called {group['name']}", "give each a name of its own")
            known.add(str(group.get("name")))
            rules = group.get("rules")
            for at, one in enumerate(rules if isinstance(rules, list) else []):
                if isinstance(one, dict):
                    yield from _of_rule((*where, "rules", at), one)


def _hit(where: Where, what: str, remedy: str) -> Hit:
    why = "the Prometheus operator leaves out the whole object, with all of its rules"
    return Hit(dotted(where), what, why, remedy)


def _of_rule(where: Where, one: Mapping[str, Any]) -> Iterator[Hit]:
    """What is wrong with the rule ONE."""
    name = str(one.get("alert") or one.get("record") or "a rule")
    if bool(one.get("alert")) == bool(one.get("record")):
        yield _hit(where, "a rule has both alert and record, or neither", "give it one of the two")
    if problem := promql.wrong(str(one.get("expr", ""))):
        remedy = "correct it; where your Prometheus knows more than this parser, waive the finding"
        yield _hit((*where, "expr"), f"{name}: Prometheus can't read the expression: {problem}", remedy)
    if one.get("record"):
        if not SERIES.fullmatch(str(one["record"])):
            yield _hit((*where, "record"), f"{name} is not a valid series name", "write letters, digits, _ and :")
        for key in OF_ALERTS:
            if key in one:
                yield _hit((*where, key), f"{name} records a series, and has {key}", f"take {key} out")
    for key in ("labels", "annotations"):
        given = one.get(key)
        for label, text in given.items() if isinstance(given, dict) else ():
            if not LABEL.fullmatch(str(label)) or label == "__name__":
                yield _hit(
                    (*where, key, label), f"{name}: {label} is not a valid label name", "write letters, digits and _"
                )
            if one.get("alert") and (problem := go_template.wrong(str(text))):
                what = f"{name}: Prometheus can't read the template in {label}: {problem}"
                yield _hit((*where, key, label), what, "correct it: {{ $labels.pod }}, {{ $value | humanize }}")
