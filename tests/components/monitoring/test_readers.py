"""Monitors and rules as VictoriaMetrics and Google's managed Prometheus have them (monitoring.md 1, 2): the same that
the Prometheus operator is told, and nothing that they don't know."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.api.expectations import kind_of
from gpustack.model import MONITORS, RULES, Body
from tests.project import Project, cache, project, tree

__all__ = ["cache", "project"]

READERS = ("victoria-metrics", "google-managed")
WANTED: dict[str, Any] = {
    "driver": {"enabled": True},
    "toolkit": {"enabled": True},
    "devicePlugin": {"enabled": True},
    "dcgmExporter": {"enabled": True, "serviceMonitor": {"interval": "60s", "scrapeTimeout": "10s"}},
    "nodeStatusExporter": {"enabled": True},
    "reconciler": {"image": "registry.example.com/r:1"},
    "nodePools": [{"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-L4", "gpusPerNode": 1, "count": 4}],
    "alerts": {},
}


def rendered(project: Project, reader: object, **more: Any) -> dict[str, Body]:
    """What is rendered for a READER, by kind and name."""
    cluster = {"kubernetesVersion": "1.34", "monitoring": reader, "monitoringLabels": {"team": "gpu"}}
    project.policy("c", **{**WANTED, "cluster": cluster, **more})
    ran = project.run("render")
    assert ran.code == 0, ran.err
    bodies = [yaml.safe_load(text) for path, text in tree(project.dist / "c").items() if Path(path).suffix == ".yaml"]
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


def monitoring(bodies: Mapping[str, Body]) -> set[str]:
    """Those of BODIES that scrape or alert."""
    return {name for name, body in bodies.items() if body["kind"] in (*MONITORS, *RULES)}


def test_victoria_metrics(project: Project) -> None:
    """The fields of a ServiceMonitor, relabelings under their own name; rules as they are."""
    own = {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    exporter = {
        **WANTED["dcgmExporter"],
        "serviceMonitor": {"relabelings": [own], "honorLabels": True, "interval": "60s"},
    }
    found = rendered(project, "victoria-metrics", dcgmExporter=exporter)
    names = ("gpustack-reconciler", "nvidia-dcgm-exporter", "nvidia-node-status-exporter")
    assert monitoring(found) == {"VMRule/gpustack-alerts", *(f"VMServiceScrape/{name}" for name in names)}
    monitor = found["VMServiceScrape/nvidia-dcgm-exporter"]
    assert monitor["apiVersion"] == "operator.victoriametrics.com/v1beta1"
    assert monitor["metadata"]["labels"] == {"app": "nvidia-dcgm-exporter", "team": "gpu"}
    assert monitor["spec"] == {
        "endpoints": [
            {
                "port": "gpu-metrics",
                "path": "/metrics",
                "interval": "60s",
                "scrapeTimeout": "10s",
                "honorLabels": True,
                "relabelConfigs": [own],
            }
        ],
        "jobLabel": "app",
        "namespaceSelector": {"matchNames": ["gpu-operator"]},
        "selector": {"matchLabels": {"app": "nvidia-dcgm-exporter"}},
    }


def test_googles(project: Project) -> None:
    """Pods by their labels and the number of their port, and rules of the cluster, which see other namespaces too."""
    found = rendered(project, "google-managed")
    names = ("gpustack-reconciler", "nvidia-dcgm-exporter", "nvidia-node-status-exporter")
    assert monitoring(found) == {"ClusterRules/gpustack-alerts", *(f"PodMonitoring/{name}" for name in names)}
    for name, port, pace in zip(
        names, (8080, 9400, 8000), ({}, {"interval": "60s", "timeout": "10s"}, {}), strict=True
    ):
        assert found[f"PodMonitoring/{name}"]["spec"] == {
            "selector": {"matchLabels": {"app": name}},
            "endpoints": [{"port": port, "path": "/metrics", "interval": "30s", **pace}],
            "targetLabels": {"metadata": ["container", "pod"]},
        }
    rules = found["ClusterRules/gpustack-alerts"]
    assert (rules["apiVersion"], "namespace" in rules["metadata"]) == ("monitoring.googleapis.com/v1", False)
    assert [each["interval"] for each in rules["spec"]["groups"]] == ["1m"]
    assert {kind_of(found[name]).plural for name in monitoring(found)} == {"clusterrules", "podmonitorings"}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("section", ["alerts", "no alerts"])
def test_the_same_alerts(project: Project, reader: str, section: str) -> None:
    """For every reader the rules that the Prometheus operator gets, with a section `alerts` and without."""
    more = {} if section == "alerts" else {"alerts": None}

    def rules(bodies: Mapping[str, Body]) -> list[Any]:
        return [group["rules"] for body in bodies.values() if body["kind"] in RULES for group in body["spec"]["groups"]]

    plain = rules(rendered(project, True, **more))
    assert plain
    assert rules(rendered(project, reader, **more)) == plain


@pytest.mark.parametrize(
    ("monitor", "path"),
    [
        ({"honorLabels": True}, "honorLabels"),
        ({"relabelings": [{"sourceLabels": ["a"], "targetLabel": "b"}]}, "relabelings"),
    ],
)
def test_what_google_does_not_know_is_refused(project: Project, monitor: dict[str, Any], path: str) -> None:
    """With the field and what to do; OpenShift's Prometheus reads neither's objects."""
    cluster = {"kubernetesVersion": "1.34", "monitoring": "google-managed"}
    project.policy("c", dcgmExporter={"enabled": True, "serviceMonitor": monitor}, cluster=cluster)
    found = [each for each in project.run("lint", "--format", "json").json["findings"] if each["rule"] == "GPU624"]
    assert [(each["path"], bool(each["remedy"])) for each in found] == [
        (f"spec.dcgmExporter.serviceMonitor.{path}", True)
    ]
    project.policy("c", cluster={**cluster, "platform": "openshift", "openshift": {"version": "4.20.1"}})
    assert "GPU624" in project.run("lint").out


def test_a_word_that_nobody_knows(project: Project) -> None:
    """Is refused with those that are known."""
    project.policy("c", cluster={"kubernetesVersion": "1.34", "monitoring": "victoria"})
    refused = project.run("lint")
    assert "victoria-metrics" in refused.out + refused.err


@pytest.mark.parametrize("reader", READERS)
def test_a_review_knows_them(project: Project, reader: str) -> None:
    """What scraped and alerted for another reader is told to go; a pace is not."""

    def told(one: object, two: object, pace: str) -> tuple[str, str]:
        for name, who, each in (("old", one, "60s"), ("new", two, pace)):
            exporter = {**WANTED["dcgmExporter"], "serviceMonitor": {"interval": each}}
            rendered(project, who, dcgmExporter=exporter)
            project.dist.rename(project.folder / name)
        ran = project.run("diff", "old", "new", "--format", "json")
        for name in ("old", "new"):
            shutil.rmtree(project.folder / name)
        return ran.out, ran.err

    went, _ = told(True, reader, "60s")
    assert "IMP604" in went
    quicker, _ = told(reader, reader, "30s")
    assert "IMP604" not in quicker
    assert json.loads(quicker)
