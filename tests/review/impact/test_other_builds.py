"""What passed as planned or routine: rights and paths that a policy brings, other builds, amounts, limits, checks."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER
from tests.review.impact.requests import Request, Values, judge, request
from tests.review.impact.test_requests import HOT, RULES, extra, group, sized, thing, upgrade, workload


def monitor(**values: Any) -> Values:
    """The exporter's ServiceMonitor."""
    return {"dcgmExporter": {"serviceMonitor": values}}


def own_monitor(**values: Any) -> Values:
    """An own ServiceMonitor."""
    endpoint = {"port": "metrics", **values}
    return extra(
        thing(RULES, "ServiceMonitor", spec={"selector": {"matchLabels": {"a": "b"}}, "endpoints": [endpoint]})
    )


def plugin(**values: Any) -> Values:
    """The device plugin's resources."""
    return {"devicePlugin": {"resources": values}}


def image(tag: str) -> Values:
    """An own tool."""
    return extra(workload(image=f"registry.example.com/tools/a:{tag}"))


def unchecked(part: str) -> Values:
    """A part of the DRA driver without its health check."""
    return {"gpuCluster": {"draDriver": {part: {"kubeletPlugin": {"healthcheck": {"enabled": False}}}}}}


def pod_labels(*allowed: str) -> Values:
    """The exporter with labels of pods."""
    return {"dcgmExporter": {"enablePodLabels": True, "podLabelAllowlistRegex": list(allowed)}}


HELD, NRI, GDS = upgrade(autoUpgrade=False), {"cdi": {"nriPluginEnabled": True}}, {"gds": {"enabled": True}}
LIMITS = {"limits": {"memory": "256Mi", "cpu": "1"}}
NAMED = pod_labels("^app$")
CASES: dict[str, tuple[int, Request]] = {
    "drivers that nobody rolls": (POWER, request("train-dgx", HELD)),
    "drivers that nobody rolls, beside a component": (POWER, request("lab-a100", {**HELD, **GDS})),
    "drivers that nobody rolls, beside a release": (POWER, Request("train-dgx", HELD, {"release": "v26.3.1"})),
    "path of the host": (POWER, request("lab-a100", NRI)),
    "path of the host beside a component": (POWER, request("lab-a100", {**NRI, **GDS})),
    "path of a component": (PLANNED, request("lab-a100", {"dcgmExporter": {"hpcJobMapping": {"enabled": True}}})),
    "scraped each second": (OUTAGE, request("lab-a100", monitor(interval="1s", scrapeTimeout="1s"))),
    "scraped five times as seldom": (OUTAGE, request("lab-a100", monitor(interval="150s"))),
    "less than half the time to answer": (OUTAGE, request("lab-a100", monitor(scrapeTimeout="4s"))),
    "more time than between two scrapes": (OUTAGE, request("lab-a100", monitor(scrapeTimeout="31s"))),
    "own target each second": (OUTAGE, request("lab-a100", own_monitor(interval="1s"), own_monitor())),
    "own target with a second": (OUTAGE, request("lab-a100", own_monitor(scrapeTimeout="1s"), own_monitor())),
    "own rules twelve times as often": (
        OUTAGE,
        request("lab-a100", extra(group(HOT, interval="5s")), extra(group(HOT, interval="1m"))),
    ),
    "Flux sixty times as often": (OUTAGE, request("train-dgx", {"gitops": {"flux": {"interval": "10s"}}})),
    "exporter each second": (
        OUTAGE,
        request("lab-a100", {"dcgmExporter": {"env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "1000"}]}}),
    ),
    "limit that goes": (OUTAGE, request("lab-a100", extra(workload()), sized(**LIMITS))),
    "one limit of two that goes": (OUTAGE, request("lab-a100", sized(limits={"cpu": "1"}), sized(**LIMITS))),
    "limit of a component that goes": (OUTAGE, Request("lab-a100", {}, plugin(**LIMITS))),
    "request that goes": (PLANNED, request("lab-a100", extra(workload()), sized(requests={"memory": "256Mi"}))),
    "health check off": (POWER, request("dra-gb200", unchecked("gpus"))),
    "health check of domains off": (POWER, request("dra-gb200", unchecked("computeDomains"))),
    "all labels by default": (OUTAGE, request("lab-a100", {"dcgmExporter": {"enablePodLabels": True}})),
    "one label more": (PLANNED, request("lab-a100", pod_labels("^app$", "^team$"), NAMED)),
    **{
        f"labels by {allowed}": (OUTAGE, request("lab-a100", pod_labels(*allowed), NAMED))
        for allowed in ([".*"], [".+"], ["[a-z]"], ["^app$|"], ["[a-m]", "[n-z]"], ["^[^z]"], [])
    },
    **{
        f"{old} -> {new}": (tier, request("lab-a100", image(new), image(old)))
        for old, new, tier in (
            ("1.2.0", "1.2.0-rc1", OUTAGE),
            ("1.2.0-rc2", "1.2.0-rc1", OUTAGE),
            ("1.2.0-rc.1", "1.2.0-beta.4", OUTAGE),
            ("1.2.0", "1.3.0-rc1", PLANNED),
            ("1.2.0-rc1", "1.2.0", PLANNED),
            ("1.2.0", "1.3.0-evil", POWER),
            ("1.2.0", "1.2.1-pr666.fork", POWER),
            ("1.2.0", "1.3.0-666", POWER),
            ("1.2.0", "1.3.0-rc1-evil", POWER),
            ("1.2.0-ubi9", "1.3.0-ubi9", PLANNED),
            ("1.2.0-ubi9", "1.3.0", PLANNED),
            ("1", "1-evil", POWER),
        )
    },
    **{
        f"{section} {version}": (tier, request("lab-a100", {section: {"version": version}}))
        for section, version, tier in (
            ("dcgmExporter", "4.6.1-4.8.4-evil", POWER),
            ("dcgmExporter", "4.6.1-4.8.4-distroless", PLANNED),
            ("driver", "595.95.01-evil", POWER),
            ("toolkit", "v1.20.0-rc.1", OUTAGE),
            ("dcgm", "4.6.0-2-ubuntu24.04", PLANNED),
        )
    },
    **{
        f"label {key}": (tier, request("lab-a100", {"daemonsets": {"labels": {key: "x"}}}))
        for key, tier in (
            ("cost-center", PLANNED),
            ("example.com/team", PLANNED),
            ("example.com/netpol-db", POWER),  # whoever allows pods something picks them by some label
            ("allow-egress", POWER),
            ("aadpodidbinding", POWER),
            ("shift.example.org/x", POWER),
            ("app", POWER),
            ("sidecar.istio.io/inject", POWER),
            ("admission.datadoghq.com/enabled", POWER),
        )
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_has_its_tier(name: str) -> None:
    """Issue 12: power by an allow-list, amounts within bounds, and inert labels no alarm."""
    tier, asked = CASES[name]
    assert judge(asked)[0].tier == tier
