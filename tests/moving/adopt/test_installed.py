"""How people install the chart, beyond the usual: pipelines, plays, templates, objects in texts, and several clusters.

What each program makes of its file is told by its documentation: GitHub (workflow syntax), GitLab and YAML (folded
scalars), Ansible (command, kubernetes.core.k8s), Flux (Kustomization, postBuild), Terraform (.tfvars, lookup,
templatefile), Argo CD (generators, ignoreMissingValueFiles), Fleet (targetCustomizations, first match), kustomize
(additionalValuesFiles), Sveltos and Crossplane (valuesFrom), K3s (valuesSecrets), node feature discovery (customization
guide) and the device plugin (api/config/v1).
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from gpustack.components.plugin.configs_inputs import PLUGIN
from gpustack.model import Finding
from gpustack.moving.adopt import worse
from gpustack.moving.adopt.documents import filled
from gpustack.moving.adopt.inputs.argocd import generated
from gpustack.policy.loading.load import load_values
from tests.project import Project

from .test_shapes import CONFIG, NAMED, OFF, Shape, adopt, at, plain

INSTALLED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("installed.yaml").read_text("utf-8"))
FLEET = """
defaultNamespace: gpu
helm: {chart: gpu-operator, version: v25.10.1, values: {driver: {enabled: false}, mig: {strategy: single}}}
targetCustomizations:
- {name: prod, helm: {version: v26.3.0, values: {mig: {strategy: mixed}}}}
- {name: edge, namespace: edge, helm: {values: {toolkit: {enabled: false}}}}
- {name: none, doNotDeploy: true}
"""
SET = """
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: gpu}
spec:
  generators:
  - matrix:
      generators:
      - list: {elements: [{cluster: a, values: {strategy: mixed}}, {cluster: b, values: {strategy: single}}]}
      - list: {elements: [{version: v25.10.1}]}
  template:
    metadata: {name: "gpu-{{.cluster}}"}
    spec:
      source:
        chart: gpu-operator
        targetRevision: "{{.version}}"
        helm: {valuesObject: {driver: {enabled: false}, mig: {strategy: "{{.values.strategy}}"}}}
      destination: {namespace: gpu}
"""


@pytest.mark.parametrize("name", INSTALLED)
def test_what_people_write_is_read(name: str, project: Project) -> None:
    """Each value is in the effective spec of a policy that renders, and nothing is left to be answered."""
    case = INSTALLED[name]
    named = len(case.get("named", case["files"]))
    ran = adopt(project, Shape(case["files"], {}, named=named, answers=case.get("answers", [])))
    assert ran.code == 0, (ran.out, ran.err)
    found = load_values(yaml.safe_load(ran.json["policy"])["spec"]).model_dump()
    for path, value in case["wanted"].items():
        assert plain(at(found, path)) == value, path


def policies(ran: Any) -> dict[str, Any]:
    """The effective spec of each cluster by name, and the Helm release's name that its policy has."""
    return {each["name"]: yaml.safe_load(each["policy"])["spec"] for each in ran.json["clusters"]}


def test_clusters_that_one_input_lists(project: Project) -> None:
    """Each customization of Fleet and each element of an ApplicationSet is a cluster, with what it says over the rest;
    one that isn't deployed is none."""
    project.write("fleet.yaml", FLEET)
    project.write("set.yaml", SET)
    ran = project.run("adopt", "--fleet", "fleet.yaml", "set.yaml", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    found = policies(ran)
    assert set(found) == {"prod", "edge", "a", "b"}
    strategies = {name: spec.get("mig", {}).get("strategy", "single") for name, spec in found.items()}
    assert strategies == {"prod": "mixed", "edge": "single", "a": "mixed", "b": "single"}
    assert {name: spec["cluster"].get("namespace") for name, spec in found.items()} == {
        **dict.fromkeys(("prod", "a", "b"), "gpu"),
        "edge": "edge",
    }
    assert (found["edge"]["toolkit"]["enabled"], "toolkit" in found["prod"]) == (False, False)
    assert {each["name"]: each["runs"] for each in ran.json["clusters"]}["prod"] == "v26.3.0"
    assert found["a"]["nfd"]["helmRelease"] == "gpu-a"


def test_clusters_that_a_generator_finds_are_told(project: Project) -> None:
    """Nobody here looks into Git or at Argo CD's clusters: this is told, and variables of theirs are asked for."""
    text = SET.replace("- list: {elements: [{version: v25.10.1}]}", "- git: {files: [{path: a.json}]}")
    ran = adopt(project, Shape({"set.yaml": text}, {}))
    assert ran.code == 2
    assert any("`git`" in each["why"] for each in ran.json["assumed"])
    assert [each["path"] for each in ran.json["open"]] == ["mig.strategy"]


def test_elements_are_merged_by_their_keys() -> None:
    """As Argo CD does: what matches is laid over the first generator's, and one that matches nothing is no more."""
    lists = [
        {"list": {"elements": [{"c": "a", "v": 1}, {"c": "b"}]}},
        {"list": {"elements": [{"c": "a", "v": 2}, {"c": "z"}]}},
    ]
    found = generated({"merge": {"mergeKeys": ["c"], "generators": lists}})
    assert found == [{"c": "a", "v": 2}, {"c": "b"}]


@pytest.mark.parametrize(
    ("text", "answer", "left"),
    [
        ("{{- if .a }}\nx\n{{- else }}\ny\n{{- end }}\nz", "true", "x z"),
        ("{{ if not .a }}\nx\n{{ else }}\ny\n{{ end }}\nz", "true", "y z"),
        ("%{ if a ~}\nx\n%{ endif ~}\nz", "false", "z"),
        ("{{ if .a }}\n{{ range .b }}\nx\n{{ end }}\n{{ end }}\nz", "false", "z"),
        ("{{ if .a }}\n{{ if .b }}\nx\n{{ end }}\n{{ end }}\nz", "true", "{{ if .b }} x {{ end }} z"),
    ],
)
def test_conditions_are_decided_by_answers(text: str, answer: str, left: str) -> None:
    """What an answer decides; conditions that it doesn't stay, and lines keep their numbers."""
    made = filled(text, {"a": answer})
    assert " ".join(made.split()) == left
    assert made.count("\n") == text.count("\n")


def test_conditions_that_nobody_decides_are_told(project: Project) -> None:
    """What stands below them counts, and that is said."""
    values = "driver:\n  enabled: false\n{{- if .mixed }}\nmig:\n  strategy: {{ .strategy }}\n{{- end }}\n"
    ran = adopt(project, Shape({"values.yaml.gotmpl": values}, {}, answers=["strategy=mixed"]))
    assert [each["line"] for each in ran.json["assumed"] if "nobody decides" in each["why"]] == [3]
    assert yaml.safe_load(ran.json["policy"])["spec"]["mig"] == {"strategy": "mixed"}


def test_a_plain_command_is_an_installation(project: Project) -> None:
    """With the chart's defaults a driver is installed, so its system is asked for; what only a shell knows is told."""
    ran = adopt(project, Shape({"up.sh": "helm install gpus nvidia/gpu-operator $MORE --wait\n"}, {}))
    assert (ran.code, {each["rule"] for each in ran.json["findings"]}) == (2, {"GPU103"})
    assert any(each["path"] == "${MORE}" for each in ran.json["assumed"])
    ran = adopt(
        project, Shape({"up.sh": "helm install g a/gpu-operator --set-file a.b=x.txt --set driver.enabled=false"}, {})
    )
    assert [each["path"] for each in ran.json["open"]] == ["a.b"]


def test_values_by_a_key_that_is_not_known_are_told(project: Project) -> None:
    """They may say what the chart makes of a driver."""
    task = {"tasks": [{"x": {"chart": "nvidia/gpu-operator", "version": "v25.10.1", "more_values": "driver: {}"}}]}
    ran = adopt(project, Shape({"x.yaml": json.dumps(task)}, {}))
    assert [each["path"] for each in ran.json["open"]] == ["more_values"]


def test_another_projects_subscription_tells_nothing(project: Project) -> None:
    """Open Cluster Management has a kind of that name."""
    body = {"apiVersion": "apps.open-cluster-management.io/v1", "kind": "Subscription", "metadata": {"name": "x"}}
    project.write("x.yaml", json.dumps({**body, "spec": {"name": "gpu-operator"}}))
    ran = project.run("adopt", "x.yaml", "--format", "json")
    assert (ran.code, "openshift" in ran.out) == (4, False)


def test_a_file_of_a_folder_that_cannot_be_read_is_told(project: Project) -> None:
    """It is of the folder, and not of what was named: the others are read."""
    project.write("in/values.yaml", OFF)
    project.write("in/broken.yaml", "a: [\n")
    ran = project.run("adopt", "in", "--format", "json")
    assert (ran.code, [each["path"] for each in ran.json["open"]]) == (2, ["in/broken.yaml"])
    assert project.run("adopt", "in/broken.yaml").code == 4


RULE = {
    "name": "nic",
    "labels": {"nic": "true"},
    "matchFeatures": [{"feature": "pci.device", "matchExpressions": {"vendor": {"op": "In", "value": ["15b3"]}}}],
}


def custom(*rules: Any) -> str:
    """Values with RULES of node feature discovery's worker."""
    worker = {"config": {"sources": {"custom": list(rules)}}}
    return json.dumps({"driver": {"enabled": False}, "node-feature-discovery": {"worker": worker}})


def test_rules_of_the_worker_are_a_node_feature_rule(project: Project) -> None:
    """As they are, templates included, but for fields that the worker doesn't know; an old form is told."""
    templated = {**RULE, "name": "t", "labelsTemplate": "{{ range .pci.device }}v-{{ .vendor }}=1\n{{ end }}"}
    values = custom({**RULE, "taints": [{"key": "a"}]}, templated, {"name": "old", "matchOn": [{"nodename": ["a"]}]})
    ran = adopt(project, Shape({"values.yaml": values}, {}))
    (rule,) = yaml.safe_load(ran.json["policy"])["spec"]["extraObjects"]
    assert (rule["kind"], rule["spec"]["rules"]) == ("NodeFeatureRule", [RULE, templated])
    assert [each["path"].rpartition(".")[2] for each in ran.json["dropped"]] == ["taints"]
    assert [each["path"].rpartition(".")[2] for each in ran.json["open"]] == ["custom[2]"]
    off = adopt(project, Shape({"values.yaml": custom(RULE)[:-1] + ', "nfd": {"enabled": false}}'}, {}))
    assert "extraObjects" not in yaml.safe_load(off.json["policy"])["spec"]


def test_rules_of_a_worker_that_runs(project: Project) -> None:
    """The ConfigMap that the chart wrote for it has them, where there are no values."""
    config = {"sources": {"custom": [RULE], "pci": {"deviceLabelFields": ["vendor"]}}}
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x-worker-conf"}}
    found["data"] = {"nfd-worker.conf": yaml.safe_dump(config)}
    ran = adopt(project, Shape({"values.yaml": OFF, "map.json": json.dumps(found)}, {}, named=2))
    (rule,) = yaml.safe_load(ran.json["policy"])["spec"]["extraObjects"]
    assert (rule["spec"]["rules"], ran.json["dropped"]) == ([RULE], [])


def plugin(**sharing: Any) -> str:
    """A configuration of the device plugin."""
    return json.dumps({"version": "v1", "sharing": sharing})


SLICED: dict[str, Any] = {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}], "failRequestsGreaterThanOne": True}
KEPT: dict[str, dict[str, str]] = {
    "several": {"any": plugin(timeSlicing=SLICED), "other": plugin()},
    "no default": {"other": plugin(timeSlicing=SLICED)},
    "flags": {
        "any": json.dumps({"version": "v1", "flags": {"migStrategy": "none"}, "sharing": {"timeSlicing": SLICED}})
    },
    "two numbers": {
        "any": plugin(
            timeSlicing={"resources": [*SLICED["resources"], {"name": "nvidia.com/mig-1g.10gb", "replicas": 2}]}
        )
    },
}


@pytest.mark.parametrize("kind", ["timeSlicing", "mps"])
@pytest.mark.parametrize("inline", [True, False])
def test_sharing_is_said_by_the_pool(kind: str, project: Project, *, inline: bool) -> None:
    """The text's one configuration, the default, becomes the pool's, which is called like it: a label of a node chooses
    the same. Nodes without a label get the same number of shares."""
    text = plugin(**{kind: SLICED})
    brought = {**CONFIG, "data": {"any": text}}
    config = {"name": "shared", "default": "any", **({"create": True, "data": {"any": text}} if inline else {})}
    values = json.dumps({"driver": {"enabled": False}, "devicePlugin": {"config": config}})
    ran = adopt(project, Shape({"values.yaml": values, "map.json": json.dumps(brought)}, {}, named=1 if inline else 2))
    assert (ran.code, len(ran.json["sharing"])) == (0, 1)
    spec = yaml.safe_load(ran.json["policy"])["spec"]
    refuses = {} if kind == "mps" else {"failRequestsGreaterThanOne": True}  # MPS does so by itself
    assert spec["nodePools"] == [{"name": "any", "sharing": {kind: {"replicas": 4, **refuses}}}]
    assert (spec["devicePlugin"], spec.get("extraObjects", [])) == ({"config": {"default": "any"}}, [])
    assert project.run("render").code == 0
    tree = {
        path.rpartition("/")[2]: parsed
        for path, text in project.tree().items()
        if "plugin" in path
        for parsed in [text.decode()]
    }
    assert '"4"' not in tree["configmap-gpustack-device-plugin-config.yaml"]
    daemons = yaml.safe_load(tree["daemonset-nvidia-device-plugin-daemonset.yaml"])["spec"]["template"]["spec"]
    (default,) = {
        each["value"]
        for box in daemons["initContainers"]
        for each in box.get("env", [])
        if each["name"] == "DEFAULT_CONFIG"
    }
    assert default == "any"


@pytest.mark.parametrize("name", KEPT)
def test_a_text_that_no_pool_can_say_is_kept(name: str, project: Project) -> None:
    """With the reason."""
    brought = {**CONFIG, "data": KEPT[name]}
    ran = adopt(project, Shape({"values.yaml": f"{OFF}{NAMED}", "map.json": json.dumps(brought)}, {}, named=2))
    spec = yaml.safe_load(ran.json["policy"])["spec"]
    assert spec["devicePlugin"]["config"]["name"] == "shared"
    assert spec["extraObjects"][0]["data"] == KEPT[name]
    assert [each["path"] for each in ran.json["sharing"]] == ["spec.devicePlugin.config"]


def told(rolls: dict[str, list[str]], bodies: list[dict[str, Any]], *rules: str) -> Any:
    """What was adopted: with ROLLS of DaemonSets, BODIES that are rendered, and findings of RULES."""
    findings = [Finding(rule, "error", "x") for rule in rules]
    return SimpleNamespace(rolls=rolls, bodies=bodies, findings=findings)


def test_sharing_that_makes_anything_else_is_not_written() -> None:
    """Pods that run and would be replaced, a rule that refuses it, or an object that isn't the configuration's."""
    same = {"kind": "Service", "metadata": {"name": "a"}}
    reader = {"kind": "DaemonSet", "metadata": {"name": "b"}, "spec": {"map": "shared"}}
    before, ours = told({"b": []}, [same, reader]), json.loads(json.dumps(reader).replace("shared", PLUGIN))
    assert worse(before, told({"b": []}, [same, ours]), "shared") == ""
    assert worse(before, told({"b": ["spec"]}, [same, ours]), "shared") == "pods that run would be replaced: b"
    assert worse(before, told({"b": []}, [same, ours], "GPU1"), "shared") == "it would be refused by GPU1"
    assert worse(before, told({"b": []}, [{**same, "x": 1}, ours]), "shared") == "other objects would change: Service a"
