"""The PrometheusRule about GPUs: what is in it, by which labels it is found, and that it keeps the rules of others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import alerts, dcgm
from gpustack.checks.rule import all_rules
from gpustack.cluster.resolve import resolve
from gpustack.components.monitoring.alerts import node_pool, shown
from gpustack.components.monitoring.alerts_inputs import AlertsInputs, PoolInputs, from_cluster
from gpustack.components.plugin.configs_inputs import metrics_map
from gpustack.components.registry import REGISTRY
from gpustack.policy.configurations.dcgm_csv import read_metrics
from gpustack.policy.configurations.promql import named
from gpustack.review.impact.table import named_in
from gpustack.text.quantities import in_words
from tests.components.common import render, spec
from tests.components.monitoring.promtool import POOLS, rules
from tests.components.reconciler.common import IMAGE

ROOT = Path(__file__).parents[3]
MONITORED: dict[str, Any] = {"monitoring": True}
FAULTS: dict[str, Any] = {"conditions": [{"type": "A", "then": "drain"}]}
WHOLE: dict[str, Any] = {"reconciler": {"image": IMAGE, "health": FAULTS}, "verify": {"schedule": "@hourly"}}


def found(alerts_said: dict[str, Any], **sections: Any) -> dict[str, list[dict[str, Any]]]:
    """The rules of each alert, by its name."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for each in rules(alerts_said, **sections)["groups"][0]["rules"]:
        by_name.setdefault(each.get("alert", each.get("record")), []).append(each)
    return by_name


def test_what_an_alert_tells() -> None:
    """How urgent it is and for whom, in the policy's words; where the runbook is; and why it was silenced."""
    said = {
        "labels": {"team": "gpu"},
        "severities": {"page": "p1"},
        "runbooks": "https://example.com/r/",
        "rules": {"RowRemapFailed": {"severity": "page", "lasts": "1h"}},
        "silence": [{"alert": "RowRemapFailed", "reason": "ordered", "until": "2026-12-24"}],
    }
    (rule,) = found(said)["GPUStackRowRemapFailed"]
    assert (rule["labels"], rule["for"]) == ({"severity": "p1", "team": "gpu"}, "1h")
    assert rule["annotations"]["runbook_url"] == "https://example.com/r/row-remap-failed.md"
    assert rule["annotations"]["silenced"] == "ordered"
    assert rule["expr"].endswith("and on () (vector(time()) >= 1798156800)"), "2026-12-25T00:00:00Z"
    (plain,) = found({})["GPUStackRowRemapFailed"]
    assert plain["labels"] == {"severity": "warning"}
    assert plain["annotations"]["runbook"] == "gpustack's docs/runbooks/row-remap-failed.md"


def test_a_pool_of_which_nothing_is_said() -> None:
    """It is counted with the others: by itself it would take nodes away from them, and no review would show why."""
    assert found({"rules": {"XidFatal": {"perPool": {"a": {}, "b": {"lasts": None}}}}}) == found({})


def test_sentences_follow_the_numbers() -> None:
    """What an alert says of times and thresholds is what the policy says, for a pool too, and no description has a time
    that a policy can change."""
    said = {
        "ValidatorWaiting": {"lasts": "2h", "perPool": {"a": {"lasts": "90m"}}},
        "ReconcilerRolloutStands": {"threshold": 7200},
        "AllocatedIdle": {"lasts": "1d", "threshold": 5},
        "NodeGpuHot": {"threshold": 10, "perPool": {"a": {"threshold": 0}}},
    }
    for name, texts in {
        "ValidatorWaiting": ["has waited for 2 hours:", "has waited for 1 hour 30 minutes:"],
        "ReconcilerRolloutStands": ["For 2 hours no node of policy {{ $labels.policy }}"],
        "AllocatedIdle": ["less than 5 % busy for a day and the hour before."],
        "NodeGpuHot": ["is within 10 degrees of the temperature", "is at the temperature"],
    }.items():
        rules_of = found({"rules": said}, **WHOLE)[f"GPUStack{name}"]
        told = [rule["annotations"]["description"] for rule in rules_of]
        assert all(text in sentence for text, sentence in zip(texts, told, strict=True)), told
    for one in alerts.alerts().values():
        text = one.told("3d", dict.fromkeys(one.set, 86400))
        assert in_words(one.lasts) not in text, one.name
        assert "$lasts" not in text
        assert "$threshold" not in text


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"alerts": {}}, "gpustack-alerts"),
        ({"alerts": {"enabled": False}}, "gpustack-reconciler-alerts"),
        ({}, "gpustack-reconciler-alerts"),
    ],
    ids=["asked for", "off", "not asked for"],
)
def test_where_prometheus_looks(asked: dict[str, Any], rule: str) -> None:
    """Every monitor and rule of the stack has the labels by which Prometheus selects; the exporter's has more. Alerts
    on the reconciler are in one rule, with all others where the policy asks for those.
    """
    policy = spec(
        nodePools=POOLS,
        nodeStatusExporter={"enabled": True},
        cluster={**MONITORED, "monitoringLabels": {"release": "prom"}},
        dcgmExporter={"serviceMonitor": {"enabled": True, "additionalLabels": {"more": "1"}}},
        **WHOLE,
        **asked,
    )
    labels = {
        body["metadata"]["name"]: body["metadata"]["labels"]
        for entry in REGISTRY
        if entry.subject in {"monitoring", "reconciler"} and (inputs := entry.inputs(policy)) is not None
        for body in render(entry.type(), inputs).values()
        if body["apiVersion"] == "monitoring.coreos.com/v1"
    }
    assert set(labels) == {"nvidia-dcgm-exporter", "nvidia-node-status-exporter", "gpustack-reconciler", rule}
    assert {each["release"] for each in labels.values()} == {"prom"}
    assert [name for name, each in labels.items() if "more" in each] == ["nvidia-dcgm-exporter"]


def test_no_alerts_unless_asked_for() -> None:
    """None without the section, with it switched off, and where no Prometheus operator is."""
    said: tuple[dict[str, Any], ...] = (
        {},
        {"alerts": {"enabled": False}},
        {"alerts": {}, "cluster": {"monitoring": False}},
    )
    for sections in said:
        assert from_cluster(resolve(spec(**{"cluster": MONITORED, "nodePools": POOLS, **sections}))) is None


def test_what_can_not_fire_is_left_out() -> None:
    """Without an exporter there are no alerts over its series, without known GPUs none that GPUs are missing."""
    assert "GPUStackXidFatal" not in found({}, dcgmExporter={"enabled": False})
    assert "GPUStackGpusMissing" not in found({}, nodePools=[{"name": "a"}])
    assert {"GPUStackXidFatal", "GPUStackGpusMissing"} <= found({}).keys()


def test_promises_are_what_capacity_says() -> None:
    """All that a node of the pool offers together: 8 GPUs cut into 1 and 2 instances are 24."""
    cut = {**POOLS[1], "sharing": {"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 2}}}}
    series = found({}, nodePools=[POOLS[0], cut], mig={"strategy": "mixed"})["gpustack:promised_gpus"]
    assert [(one["labels"]["pool"], one["expr"]) for one in series] == [("a", "vector(8)"), ("b", "vector(24)")]


def test_labels_of_nodes() -> None:
    """As kube-state-metrics writes them: letters, digits and _, in lower case (its internal/store/utils.go)."""
    assert shown("example.com/gpuPool") == "label_example_com_gpu_pool"
    assert shown("feature.node.kubernetes.io/system-os_release.VERSION_ID") == (
        "label_feature_node_kubernetes_io_system_os_release_version_id"
    )


def test_a_pool_without_labels_has_the_rest() -> None:
    """A node with GPUs is of the only pool, or of the one without labels, whatever labels are shown."""
    two = AlertsInputs(namespace="n", rules=(), pools=(PoolInputs(name="a", labels={"x": "1"}), PoolInputs(name="b")))
    assert node_pool(two).startswith('label_replace(group by (node) (kube_node_labels{label_x="1"}), "pool", "a"')
    assert node_pool(two).endswith('(kube_node_status_capacity{resource=~"nvidia_com_.+"}), "pool", "b", "", "")')
    one = AlertsInputs(namespace="n", rules=(), pools=(PoolInputs(name="a"),))
    assert node_pool(one).startswith(
        'label_replace(group by (node) (kube_node_status_capacity{resource=~"nvidia_com_.+"})'
    )


def test_counters_are_switched_on() -> None:
    """The exporter serves what its image's list has and what alerts need; a list of the policy stays as it is, and
    without alerts we add no list."""
    sections: dict[str, Any] = {"cluster": MONITORED, "nodePools": POOLS}
    rows = read_metrics((metrics_map(resolve(spec(**sections, alerts={}))).data or {})["dcgm-metrics.csv"])
    assert rows.problems == ()
    served = {row.name for row in rows.rows}
    assert served == {each.name for each in dcgm.default_counters()} | {
        name for one in alerts.alerts().values() if not one.why_off for name in one.counters
    }
    assert metrics_map(resolve(spec(**sections))).name == ""
    for config in ({"name": "mine"}, {"data": {"dcgm-metrics.csv": "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature"}}):
        own = metrics_map(resolve(spec(**sections, alerts={}, dcgmExporter={"config": config})))
        assert "DCGM_EXP_XID_ERRORS_COUNT" not in str(own.data)


CUT = {**POOLS[1], "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}
LICENSED = {"nodePools": [POOLS[0], CUT], "driver": {"licensingConfig": {"secretName": "licensing"}}}


def test_others_rules_hold_for_ours() -> None:
    """What is found in PrometheusRules that policies bring along is found in none of ours: metrics that nobody serves,
    wrong labels, expressions and templates that Prometheus can't read."""
    said = {"rules": {name: {"enabled": True} for name in alerts.alerts()}}
    about = [one for one in all_rules() if one.id in {f"GPU{number}" for number in (533, *range(604, 613))}]
    assert len(about) == 10
    names = set()
    for sections in ({**LICENSED, **WHOLE}, {"gpuCluster": {"dcgmExporter": {"enabled": True}}}):
        ours = rules(said, **sections)
        names |= {each["alert"] for each in ours["groups"][0]["rules"] if "alert" in each}
        kind = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule"}
        body = {**kind, "metadata": {"name": "ours"}, "spec": ours}
        policy = spec(**{"nodePools": POOLS, **sections}, cluster=MONITORED, alerts=said, extraObjects=[body])
        assert [str(each) for one in about for each in one.findings(policy)] == []
    assert names == {f"GPUStack{name}" for name in alerts.alerts()}


@pytest.mark.parametrize("name", list(alerts.alerts()))
def test_every_alert_is_whole(name: str) -> None:
    """It has words, a runbook that names it, records that exist, counters that the exporter knows, and every metric of
    the exporter that it reads is among them or in the image's list. The runbook's title has the
    name as policies say it. What a number may be is known, and the default is among it."""
    one = alerts.alert(name)
    page = (ROOT / "docs" / "runbooks" / f"{one.page}.md").read_text(encoding="utf-8")
    assert f"`GPUStack{name}`" in page
    assert name in re.findall(r"\w+", page.splitlines()[0]), "as policies say it"
    assert all(word in page for word in ("**Means.**", "**Look at", "**Do.**"))
    assert one.summary
    assert one.description
    assert named_in("alerts", f"GPUStack{name}"), "the review takes the name for one of ours"
    text = " ".join([one.bad, *(alerts.records()[record] for record in one.records)])
    read = {metric.name for metric in named(text.replace("$", "")).metrics if metric.name.startswith("DCGM_")}
    assert read == set(one.counters)
    assert not one.pooled or one.over
    assert one.set.keys() - {"nodes", "percent"} == one.limits.keys()
    assert all(limit["min"] <= one.set[number] <= limit["max"] for number, limit in one.limits.items())


def test_summaries_hold_for_any_number() -> None:
    """A policy may say from how many nodes on an alert fires: a summary says no number that isn't the policy's."""
    summaries = [one.summary for one in alerts.alerts().values() if "nodes" in one.set]
    assert len(summaries) == 5
    assert [text for text in summaries if re.search(r"\b(several|many|two|some)\b", text, re.IGNORECASE)] == []


def test_no_page_is_about_what_is_gone() -> None:
    """Each runbook belongs to an alert."""
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"}
    assert pages == {one.page for one in alerts.alerts().values()}
