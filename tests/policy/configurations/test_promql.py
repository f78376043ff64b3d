"""Names in Prometheus expressions are found, whatever surrounds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.policy.configurations.promql import named


@pytest.mark.parametrize(
    ("expression", "metrics"),
    [
        ("up", ["up"]),
        ("DCGM_FI_DEV_GPU_TEMP > 85", ["DCGM_FI_DEV_GPU_TEMP"]),
        ('rate(a_total{job="b"}[5m]) / on (x) group_left (y) c offset 5m', ["a_total", "c"]),
        ("sum by (pod) (a) and b unless c or d", ["a", "b", "c", "d"]),
        ("sum without (pod) (a)", ["a"]),
        ("sum(a) by (pod)", ["a"]),
        ("max_over_time(a[1h:5m] @ end()) == bool 1e3", ["a"]),
        ('{__name__="a", x!="b"}', ["a"]),
        ('{"a.b", x="c"}', ["a.b"]),
        ("a # b is a comment\n* c", ["a", "c"]),
        ('label_replace(a, "b", "$1", "c", "(.*)")', ["a"]),
        ("absent(a:b:rate5m)", ["a:b:rate5m"]),
        ("-Inf < NaN", []),
    ],
)
def test_metrics(expression: str, metrics: list[str]) -> None:
    """Metrics are told from functions, keywords, labels and texts."""
    assert [metric.name for metric in named(expression).metrics] == metrics


def test_places_and_functions() -> None:
    """Where a metric stands in a text of several lines, and what is called on it."""
    found = named('a > 1\n  and increase(b{c="d"}[5m]) > (e)')
    assert [(metric.name, metric.place, metric.function) for metric in found.metrics] == [
        ("a", (1, 1), ""),
        ("b", (2, 16), "increase"),
        ("e", (2, 33), ""),
    ]


def test_labels() -> None:
    """Labels that are compared have a text, those that group have none."""
    found = named('sum by (a, b) (m{c!="x", d=~"y.*"}) * on (e) n')
    assert [(label.name, label.value) for label in found.labels] == [
        ("a", None),
        ("b", None),
        ("c", "x"),
        ("d", "y.*"),
        ("e", None),
    ]


@given(st.text(alphabet="aA_(){}[]\"'`=~!,#\n 5", max_size=60))
def test_any_text_is_answered(text: str) -> None:
    """What is no PromQL gives some answer."""
    named(text)
