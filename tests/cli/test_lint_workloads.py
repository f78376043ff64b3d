"""gpustack lint --workloads: tenants' manifests, as the person at the keyboard and a CI server see what is said."""

from __future__ import annotations

import json
import os
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from gpustack.cli.formats import FORMATS
from tests.project import Project, policy

POOL = {"name": "training", "os": "ubuntu22.04", "gpusPerNode": 8}
ON: dict[str, Any] = {"devicePlugin": {"enabled": True}, "gfd": {"enabled": True}, "nodePools": [POOL]}
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    image: registry.example.com/train:1
    resources:
      limits:
        nvidia.com/gpu: %s
"""


@pytest.fixture
def clusters(project: Project) -> Project:
    """Two clusters, of 8 and of 4 GPUs per node."""
    project.write("policies/large.yaml", policy("large", **ON))
    project.write("policies/small.yaml", policy("small", **{**ON, "nodePools": [{**POOL, "gpusPerNode": 4}]}))
    return project


RULES_AND_MONITORS = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: gpus}
spec:
  groups:
  - name: gpus
    rules:
    - {alert: Links, expr: nvidia_nvlink_errors > 0}
    - {record: nvidia_ours, expr: up}
    - {alert: Ours, expr: nvidia_ours > 0}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: gpus}
spec:
  podMetricsEndpoints: [{port: metrics, relabelings: [{action: hashmod, sourceLabels: [pod], targetLabel: a}]}]
---
apiVersion: nvidia.com/v1alpha1
kind: NVIDIADriver
metadata: {name: a100}
spec: {driverType: gpu}
"""


def test_rules_monitors_and_objects_of_the_operator(clusters: Project) -> None:
    """What is said of these in extraObjects is said of tenants' own, at its place: a metric that nothing serves
    (bug-reports.md B55), what the Prometheus operator refuses, what only NVIDIA's operator reads."""
    clusters.write("team/alerts.yaml", RULES_AND_MONITORS)
    found = clusters.run("lint", "--workloads", "team", "--cluster", "large", "--format", "json").json["findings"]
    assert {(one["rule"], one["path"], one["line"]) for one in found} == {
        ("GPU606", "spec.groups[0].rules[0].expr", 8),
        ("GPU620", "spec.podMetricsEndpoints[0].relabelings[0]", 16),
        ("GPU208", "", 18),
    }


def test_text(clusters: Project) -> None:
    """A finding stands at the tenant's file, line and column, with the line itself; errors make exit code 2."""
    clusters.write("team/pod.yaml", POD % 16)
    done = clusters.run("lint", "--workloads", "team", "--cluster", "large")
    assert done.code == 2
    place, shown, mark, *rest = done.out.splitlines()
    assert place == "team/pod.yaml:10:25: error GPU703: Pod train asks for 16 nvidia.com/gpu, and no node has that"
    assert shown == "   10 |         nvidia.com/gpu: 16"
    assert mark == "      |                         ^"
    assert rest[-1] == "1 cluster: 1 error"


def test_what_fits(clusters: Project) -> None:
    """Exit code 0, and a line that says so; the policies' own findings are not told."""
    clusters.write("team/pod.yaml", POD % 8)
    done = clusters.run("lint", "--workloads", "team", "--cluster", "large")
    assert (done.code, done.out, done.err) == (0, "1 cluster: nothing to say\n", "")


def test_numbers_in_quotes(clusters: Project) -> None:
    """A text in the place of a number is refused by the API server, whoever brings the object (policy/v1: IntOrString
    of a PodDisruptionBudget is a percentage where it is a text)."""
    budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: train}\nspec: {minAvailable: %s}\n"
    for value, rules in (('"1"', ["GPU206"]), ("1", []), ('"50%"', [])):
        clusters.write("team/budget.yaml", budget % value)
        done = clusters.run("lint", "--workloads", "team", "--cluster", "large", "--format", "json")
        assert [found["rule"] for found in done.json["findings"]] == rules


def test_several_clusters(clusters: Project) -> None:
    """A name, a glob or a file each; a finding names the clusters that it is about."""
    clusters.write("team/pod.yaml", POD % 8)
    done = clusters.run("lint", "--workloads", "team/pod.yaml", "--cluster", "*", "--format", "json")
    assert done.code == 2
    assert done.json["clusters"] == ["large", "small"]
    assert [(found["rule"], found["clusters"]) for found in done.json["findings"]] == [("GPU703", ["small"])]


def test_reports(clusters: Project) -> None:
    """The same outputs as for policies."""
    clusters.write("team/pod.yaml", POD % 16)
    words = ["--report", "sarif=out/a.sarif", "--report", "junit=out/a.xml"]
    assert clusters.run("lint", "--workloads", "team", "--cluster", "small", *words).code == 2
    assert '"uri": "team/pod.yaml"' in (clusters.folder / "out/a.sarif").read_text()
    suites = ElementTree.parse(clusters.folder / "out/a.xml").getroot()  # noqa: S314 - we wrote it
    assert [suite.get("name") for suite in suites] == ["small"]


def test_waivers(clusters: Project) -> None:
    """A waiver beside the policies counts, and a policy's own lint doesn't call it useless."""
    waiver = "rule: GPU703\n  clusters: small\n  reason: they know\n  owner: team\n  expires: 2027-01-01\n"
    clusters.write("policies/waivers.yaml", f"- {waiver}")
    clusters.write("team/pod.yaml", POD % 16)
    done = clusters.run("lint", "--workloads", "team", "--cluster", "small")
    assert done.code == 0
    assert "waived by: team" in done.out
    assert clusters.run("lint", "--workloads", "team", "--cluster", "large").code == 2
    assert "GPU032" not in clusters.run("lint").out


def test_files_that_can_not_be_read(clusters: Project) -> None:
    """One finding each, and the others are looked at; exit code 4."""
    clusters.write("team/a.yaml", "{{ .Values.x }}\n")
    clusters.write("team/b.yaml", POD % 16)
    done = clusters.run("lint", "--workloads", "team", "--cluster", "large", "--format", "json")
    assert done.code == 4
    assert [found["rule"] for found in done.json["findings"]] == ["GPU035", "GPU703"]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--workloads", "team"], "GPU026"),
        (["--cluster", "large"], "GPU026"),
        (["large", "--workloads", "team", "--cluster", "large"], "GPU026"),
        (["--workloads", "", "--cluster", "large"], "GPU026"),
        (["--workloads", "nothing", "--cluster", "large"], "GPU034"),
        (["--workloads", "empty", "--cluster", "large"], "GPU036"),
        (["--workloads", "team", "--cluster", "other"], "GPU021"),
    ],
)
def test_bad_input(clusters: Project, words: list[str], rule: str) -> None:
    """What can't be done is told at once: exit code 4."""
    clusters.write("team/pod.yaml", POD % 8)
    clusters.write("empty/values.yaml", "replicas: 2\n")
    done = clusters.run("lint", *words, "--format", "json")
    assert (done.code, [found["rule"] for found in done.json["findings"]]) == (4, [rule])


def test_workloads_of_the_policy_itself(clusters: Project) -> None:
    """The same rules look at extraObjects, in every lint and render."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 9}}}]},
    }
    clusters.write("policies/own.yaml", policy("own", **ON, extraObjects=[body]))
    done = clusters.run("lint", "own", "--format", "json")
    found = next(found for found in done.json["findings"] if found["rule"] == "GPU703")
    assert found["path"] == 'spec.extraObjects[0].spec.containers[0].resources.limits["nvidia.com/gpu"]'
    assert (found["file"], found["severity"]) == ("policies/own.yaml", "error")


def test_a_policy_that_can_not_be_used_hides_no_other(clusters: Project) -> None:
    """It is a finding in every report, and the other clusters are looked at; exit code 4."""
    clusters.write("policies/broken.yaml", policy("broken", driver={"enabled": "yes"}))
    clusters.write("team/pod.yaml", POD % 8)
    words = ["lint", "--workloads", "team", "--cluster", "broken", "--cluster", "small", "--report", "json=out.json"]
    done = clusters.run(*words, "--format", "json")
    assert (done.code, done.out) == (4, (clusters.folder / "out.json").read_text())
    assert [(found["rule"], found["clusters"]) for found in done.json["findings"]] == [
        ("GPU017", []),
        ("GPU703", ["small"]),
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_names_of_files_that_are_no_text(clusters: Project, name: str) -> None:
    """A file's name may hold bytes that are no UTF-8, line ends and control characters: every report is written."""
    for odd in (b"bad\xff.yaml", b"two\nlines.yaml", b"esc\x1b.yaml"):
        clusters.write(f"team/{os.fsdecode(odd)}", POD % 16)
    words = ["lint", "--workloads", "team", "--cluster", "large", "--format", name, "--report", f"{name}=out"]
    assert clusters.run(*words).code == 2
    written = (clusters.folder / "out").read_text(encoding="utf-8")
    assert written.count("GPU703") >= 3
    assert "\x1b" not in written.replace("file=team/esc\x1b.yaml", "")
    if name == "sarif":
        assert '"uri": "team/bad%FF.yaml"' in written


def test_long_lines_make_no_long_reports(clusters: Project) -> None:
    """A program may write all its objects on one line: a report holds a part of it, not all of it for each finding."""
    pods = [json.loads(json.dumps(yaml.safe_load(POD % 16))) for _ in range(300)]
    clusters.write("team/all.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    done = clusters.run("lint", "--workloads", "team", "--cluster", "large", "--format", "sarif")
    assert done.out.count('"snippet"') == 300
    assert len(done.out) < 500_000
