"""What a Prometheus says of rules and monitors that are rendered: what it lacks is named, and what it has is not."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.live.objects import of_prometheus
from gpustack.live.state import of_files
from gpustack.model import Body

NS = "gpu-operator"
WHERE = {"name": "gpustack-alerts", "namespace": NS}
RULES: Body = {
    "kind": "PrometheusRule",
    "metadata": WHERE,
    "spec": {"groups": [{"name": "g", "rules": [{"record": "a"}, {"alert": "B"}, {"alert": "B"}]}]},
}
MONITOR: Body = {
    "kind": "ServiceMonitor",
    "metadata": {"name": "exporter", "namespace": NS},
    "spec": {"selector": {"matchLabels": {"app": "exporter"}}},
}
LOADED = [{"name": "a", "health": "ok"}, {"name": "B", "health": "ok"}, {"name": "B", "health": "unknown"}]


def pod(name: str, ready: str = "True") -> Body:
    """A pod of the exporter."""
    metadata = {"name": name, "namespace": NS, "labels": {"app": "exporter"}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def said(rules: list[Any] | None = None, up: float = 2, **error: str) -> list[tuple[str, str]]:
    """What is told where the group has RULES and so many targets answer; or where there was an ERROR."""
    state = of_files([pod("a"), pod("b"), pod("c", "False")])
    groups = [{"name": "g", "rules": LOADED if rules is None else rules}, {"name": "other", "rules": []}]
    state.prometheus = error or {"rules": groups, "up": {"exporter": up}}
    return [(hit.id, hit.what) for hit in of_prometheus([RULES, MONITOR], NS, state)]


def test_all_is_there() -> None:
    """As many rules of each name, and as many targets as pods are ready; without an answer nothing is said."""
    assert said() == []
    assert said(up=3) == []
    assert list(of_prometheus([RULES, MONITOR], NS, of_files([pod("a")]))) == []


@pytest.mark.parametrize(
    ("rules", "up", "told"),
    [
        ([], 2, ("LIV801", "PrometheusRule gpu-operator/gpustack-alerts: 3 of 3 rules are not loaded: a, B")),
        (LOADED[:2], 2, ("LIV801", "PrometheusRule gpu-operator/gpustack-alerts: 1 of 3 rules are not loaded: B")),
        (
            [*LOADED[:2], {"name": "B", "health": "err", "lastError": "many-to-many matching"}],
            2,
            ("LIV802", "PrometheusRule gpu-operator/gpustack-alerts: B: many-to-many matching"),
        ),
        (None, 1, ("LIV803", "ServiceMonitor gpu-operator/exporter: 1 of 2 pods that are ready answer")),
    ],
)
def test_what_lacks_is_named(rules: list[Any] | None, up: float, told: tuple[str, str]) -> None:
    """A rule that is not loaded, once for each time that it is rendered; one that can't be evaluated; a pod that is not
    scraped."""
    assert said(rules, up) == [told]


def test_a_prometheus_that_could_not_be_asked() -> None:
    """Says why, and nothing of rules."""
    assert said(error="m/p:9090: forbidden") == [("LIV804", "m/p:9090: forbidden")]
