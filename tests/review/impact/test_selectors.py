"""A label that says whose something is, is harmless as long as nothing in the render picks anything by it."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.review.impact.subject import picks_differently, requirements
from gpustack.review.impact.tiers import OUTAGE, PLANNED, ROUTINE
from tests.review.impact.requests import Request, judge, laid
from tests.review.impact.test_requests import dashboard, extra, thing

NET = "networking.k8s.io/v1"


def network(**selector: Any) -> Any:
    """A NetworkPolicy for the pods that SELECTOR picks."""
    return thing(NET, "NetworkPolicy", "n", spec={"podSelector": selector})


def expression(how: str, *values: str, key: str = "team") -> Any:
    """A NetworkPolicy that asks for the label KEY."""
    return network(matchExpressions=[{"key": key, "operator": how, **({"values": list(values)} if values else {})}])


SERVICE = thing("v1", "Service", "s", spec={"selector": {"team": "frozen"}, "ports": [{"port": 1}]})
BUDGET = thing(
    "policy/v1", "PodDisruptionBudget", "b", spec={"maxUnavailable": 0, "selector": {"matchLabels": {"team": "frozen"}}}
)
CILIUM = {"endpointSelector": {"matchLabels": {"k8s:team": "frozen"}}}
AFFINITY: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"team": "frozen"}}}
        ]
    }
}


@pytest.mark.parametrize(
    ("body", "old", "new", "tier"),
    [
        (network(matchLabels={"team": "frozen"}), "gpu", "frozen", OUTAGE),
        (network(matchLabels={"team": "frozen"}), "frozen", "gpu", OUTAGE),
        (network(matchLabels={"team": "frozen"}), None, "frozen", OUTAGE),
        (network(matchLabels={"team": "frozen"}), "frozen", None, OUTAGE),
        (network(matchLabels={"team": "frozen"}), "gpu", "ml", PLANNED),
        (network(matchLabels={"project": "frozen"}), "gpu", "frozen", PLANNED),
        (expression("NotIn", "gpu"), "gpu", "ml", OUTAGE),
        (expression("In", "gpu", "ml"), "gpu", "ml", PLANNED),
        (expression("Exists"), None, "ml", OUTAGE),
        (expression("DoesNotExist"), "ml", None, OUTAGE),
        (expression("Exists"), "gpu", "ml", PLANNED),
        (SERVICE, "gpu", "frozen", OUTAGE),
        (BUDGET, "gpu", "frozen", OUTAGE),
        (dashboard('{"label": "team"}'), "gpu", "frozen", PLANNED),
    ],
)
def test_a_label_that_something_picks_by(body: Any, old: str | None, new: str | None, tier: int) -> None:
    """Pods that begin or cease to match a selector are an outage; a value that changes no answer is planned."""
    base = {**extra(body), **({"daemonsets": {"labels": {"team": old}}} if old else {})}
    after = laid(base, {"daemonsets": {"labels": {"team": new}}}) if new else extra(body)
    found, changes = judge(Request("lab-a100", after, base))
    assert changes
    assert found.tier == tier
    if tier == OUTAGE:
        assert "spec.daemonsets.labels.team" in {effect.where for effect in found.red}


def test_labels_of_a_monitor() -> None:
    """A Prometheus of the render that picks monitors by a label of theirs finds one more, or one less."""
    prometheus = thing(
        "monitoring.coreos.com/v1", "Prometheus", "p", spec={"serviceMonitorSelector": {"matchLabels": {"team": "x"}}}
    )
    assert picks_differently(requirements(prometheus), "team", None, "x")
    over = {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"team": "y"}}}}
    base = extra(network(matchLabels={"team": "x"}))
    assert judge(Request("lab-a100", laid(base, over), base))[0].tier == ROUTINE
    over = {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"team": "x"}}}}
    assert judge(Request("lab-a100", laid(base, over), base))[0].tier == OUTAGE


@pytest.mark.parametrize(
    ("selecting", "old", "new", "otherwise"),
    [
        (CILIUM, "gpu", "frozen", True),
        (CILIUM, "gpu", "ml", False),
        ({"spec": {"selector": "team == 'frozen'"}}, "gpu", "ml", True),
        ({"affinity": AFFINITY}, "gpu", "frozen", True),
        ({"spec": {"nodeSelector": {"team": "frozen"}}}, "gpu", "frozen", False),
        ({"expression": "object.metadata.labels['team'] == 'x'"}, "gpu", "ml", True),
        ({"matchExpressions": [{"key": "team", "operator": "Near"}]}, "gpu", "ml", True),
    ],
)
def test_every_form_of_a_selector(selecting: Any, old: Any, new: Any, otherwise: bool) -> None:
    """Maps, requirements and texts, wherever they stand; what isn't understood counts as an answer that changes."""
    assert picks_differently(requirements(selecting), "team", old, new) is otherwise
