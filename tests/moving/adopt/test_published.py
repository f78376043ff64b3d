"""Shapes as people publish them, each read as the program reads it that it is for.

The right values are told by the documentation of Helm (`helm install`, "The format and limitations of --set", values
files are YAML 1.1), Flux (helmreleases: chartRef; helmcharts, ocirepositories), K3s (HelmChartConfig, and `set` wins),
kustomize (configMapGenerator, helmCharts), Terraform (templatefile, merge; the provider of Helm: `set`), Ansible
(kubernetes.core.helm), Argo CD (parameters), Helm's charts (alias) and GPU feature discovery (labels of slices).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from gpustack.model import Location
from gpustack.moving.adopt.inputs.sets import pairs, put, typed
from gpustack.moving.adopt.installation import Leaves
from gpustack.policy.loading.load import load_values
from tests.project import Project

from .test_shapes import OFF, Shape, adopt, at, plain

ENV = [{"name": "CONTAINERD_SOCKET", "value": "/run/k3s/containerd/containerd.sock"}]
DRIVER_OFF = {"driver.enabled": False}
SOCKET: dict[str, Any] = {**DRIVER_OFF, "toolkit.env": ENV}
SCRIPT = """#!/bin/sh
VERSION=v25.10.1
helm repo add nvidia https://charts.example.com/nvidia && helm repo update
helm upgrade --install gpus nvidia/gpu-operator \\
  --version=$VERSION -n gpu-system --wait --set driver.enabled=false \\
  --set toolkit.env[0].name=CONTAINERD_SOCKET,toolkit.env[0].value=/run/k3s/containerd/containerd.sock \\
  --set-string 'daemonsets.labels.example\\.com/a=1' --set dcgm.version=${DCGM:-4.1} -f values.yaml && echo done
"""
CHART_REF = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpus}
spec:
  chartRef: {kind: KIND, name: nvidia}
  values: {driver: {enabled: false}}
---
"""
SOURCE = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: KIND\nmetadata: {name: nvidia}\n"
K3S = """apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: gpus}
spec:
  chart: gpu-operator
  valuesContent: "driver: {enabled: true}\\nmig: {strategy: single}"
  set: {driver.enabled: "false"}
---
apiVersion: helm.cattle.io/v1
kind: HelmChartConfig
metadata: {name: gpus}
spec: {valuesContent: "mig: {strategy: mixed}\\ndriver: {enabled: true}"}
"""
GENERATED = "configMapGenerator: [{name: values, files: [values.yaml=own.txt]}]\nresources: [release.yaml]\n"
RELEASE = """apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: gpu-operator}
spec:
  chart: {spec: {chart: gpu-operator}}
  valuesFrom: [{kind: ConfigMap, name: values}]
"""
TERRAFORM = """
locals { base = { driver = { enabled = false } } }
variable "replicas" { default = 4 }
resource "helm_release" "gpu" {
  for_each  = toset(["a"])
  name      = "gpu-${each.key}"
  namespace = kubernetes_namespace.gpu.metadata[0].name
  chart     = "gpu-operator"
  values = [
    yamlencode(merge(local.base, { mig = { strategy = "mixed" } })),
    templatefile("gpu.tpl", { replicas = var.replicas }),
  ]
  set = [
    { name = "toolkit.env[0].name", value = "CONTAINERD_SOCKET" },
    { name = "toolkit.env[0].value", value = "/run/k3s/containerd/containerd.sock" },
  ]
}
"""
MODULE = """
module "addons" {
  source = "aws-ia/eks-blueprints-addons/aws"
  helm_releases = {
    gpus = { chart = "gpu-operator", chart_version = "v25.10.1", values = ["driver: {enabled: false}"] }
  }
}
"""
ANSIBLE = """- hosts: all
  tasks:
  - kubernetes.core.helm:
      name: gpus
      chart_ref: nvidia/gpu-operator
      chart_version: v25.10.1
      release_namespace: gpu-system
      values: {driver: {enabled: false}}
"""
K0S = """apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
metadata: {name: k0s}
spec:
  extensions: {helm: {charts: [{chartname: nvidia/gpu-operator, values: "driver: {enabled: false}"}]}}
"""
ARGO: dict[str, Any] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "gpu"}}
PARAMETERS = [
    {"name": "driver.enabled", "value": "false"},
    {"name": "toolkit.env[0].name", "value": "CONTAINERD_SOCKET"},
    {"name": "toolkit.env[0].value", "value": "/run/k3s/containerd/containerd.sock"},
]
ARGO["spec"] = {"source": {"chart": "gpu-operator", "helm": {"parameters": PARAMETERS}}}
JSON = {"chart": "gpu-operator", "name": "gpu", "set": [{"name": "driver.enabled", "value": "false"}]}
ALIAS = "apiVersion: v2\nname: all\ndependencies: [{name: gpu-operator, alias: nvidia, version: v25.10.1}]\n"
POLICY = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "x"},
    "spec": {
        "driver": {"enabled": False},
        **{each: {} for each in ("operator", "daemonsets", "toolkit", "devicePlugin", "dcgmExporter")},
    },
}

PUBLISHED = {
    "a script": Shape(
        {"up.sh": SCRIPT, "values.yaml": "mig: {strategy: mixed}\ndriver: {enabled: true}\n"},
        SOCKET
        | {"mig.strategy": "mixed", "cluster.namespace": "gpu-system", "nfd.helmRelease": "gpus"}
        | {"dcgm.version": "4.1", "daemonsets.labels": {"example.com/a": "1"}},
    ),
    "a page": Shape(
        {"README.md": "# x\n\n    helm install --generate-name gpu-operator --set driver.enabled=false\n"}, DRIVER_OFF
    ),
    "a Makefile": Shape(
        {"Makefile": "DRIVER ?= false\ngpu:\n\t@helm install x a/gpu-operator --set driver.enabled=$(DRIVER)\n"},
        DRIVER_OFF,
    ),
    "a Makefile, answered": Shape(
        {"Makefile": "gpu:\n\t@helm install x a/gpu-operator --set driver.enabled=$(DRIVER)\n"},
        DRIVER_OFF,
        answers=["DRIVER=false"],
    ),
    "a pipeline": Shape(
        {"ci.yaml": "jobs:\n- run: |\n    helm install x a/gpu-operator --set-json 'driver={\"enabled\":false}'\n"},
        DRIVER_OFF,
    ),
    "a heredoc": Shape({"x.sh": f"oc apply -f - <<'EOF'\n{json.dumps(POLICY)}\nEOF\n"}, DRIVER_OFF),
    "a list": Shape({"x.json": json.dumps([POLICY])}, DRIVER_OFF),
    "Flux, a chart in a registry": Shape(
        {
            "x.yaml": f"{CHART_REF}{SOURCE}spec: {{url: oci://x/gpu-operator, ref: {{tag: 25.10.1}}}}\n".replace(
                "KIND", "OCIRepository"
            )
        },
        DRIVER_OFF | {"nfd.helmRelease": "gpus"},
    ),
    "Flux, a chart by reference": Shape(
        {
            "x.yaml": f"{CHART_REF}{SOURCE}spec: {{chart: gpu-operator, version: v25.10.1}}\n".replace(
                "KIND", "HelmChart"
            )
        },
        DRIVER_OFF | {"nfd.helmRelease": "gpus"},
    ),
    "Flux, the chart elsewhere": Shape({"x.yaml": CHART_REF}, DRIVER_OFF),
    "Flux, a generated ConfigMap": Shape(
        {"in/kustomization.yaml": GENERATED, "in/release.yaml": RELEASE, "in/own.txt": OFF}, DRIVER_OFF, named=2
    ),
    "K3s": Shape({"x.yaml": K3S}, DRIVER_OFF | {"mig.strategy": "mixed"}),
    "Argo CD's parameters": Shape({"x.json": json.dumps(ARGO)}, SOCKET),
    "Terraform": Shape(
        {"main.tf": TERRAFORM, "gpu.tpl": "dcgm: {hostPort: ${replicas}}\n"},
        SOCKET | {"mig.strategy": "mixed", "dcgm.hostPort": 4},
    ),
    "Terraform's modules": Shape({"main.tf": MODULE}, DRIVER_OFF),
    "Terraform as JSON": Shape({"main.tf.json": json.dumps({"resource": {"helm_release": {"gpu": JSON}}})}, DRIVER_OFF),
    "Ansible": Shape({"x.yml": ANSIBLE}, DRIVER_OFF | {"cluster.namespace": "gpu-system", "nfd.helmRelease": "gpus"}),
    "k0s": Shape({"x.yaml": K0S}, DRIVER_OFF),
    "kustomize with a chart": Shape(
        {"kustomization.yaml": "helmCharts: [{name: gpu-operator, valuesInline: {driver: {enabled: false}}}]\n"},
        DRIVER_OFF,
    ),
    "an alias": Shape({"Chart.yaml": ALIAS, "values.yaml": f"nvidia:\n  {OFF}"}, DRIVER_OFF, named=2),
    "YAML 1.1": Shape(
        {"values.yaml": "driver: {enabled: no}\ntoolkit: {enabled: off}\n"}, DRIVER_OFF | {"toolkit.enabled": False}
    ),
    "a template of Go": Shape(
        {"values.yaml.gotmpl": "driver:\n  enabled: {{ .Values.driver | default true }}\n"},
        DRIVER_OFF,
        answers=[".Values.driver=false"],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_read(name: str, project: Project) -> None:
    """Each value is in the effective spec of a policy that renders, and nothing is left to be answered."""
    shape = PUBLISHED[name]
    ran = adopt(project, shape)
    assert ran.code == 0, (ran.out, ran.err)
    found = load_values(yaml.safe_load(ran.json["policy"])["spec"]).model_dump()
    for path, value in shape.wanted.items():
        have = plain(at(found, path))
        assert value.items() <= have.items() if isinstance(value, dict) else have == value, path


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("null", None), ("12", 12), ("0", 0), ("012", "012"), ("1.5", "1.5"), ("{a,1}", ["a", 1])],
)
def test_what_set_takes(text: str, value: Any) -> None:
    """Types are those of `helm --set`."""
    assert typed(text) == value


def test_set_changes_one_item() -> None:
    """An index changes that item of the list, commas part values but for those in braces, and a dot may be escaped."""
    leaves: Leaves = {}
    for name, text in pairs(r"a[0].b=1,c={x,y},d\.e=f"):
        put(leaves, name, typed(text), Location("x"))
    put(leaves, "a[0].z", 2, Location("x"))
    said = {path: each.value for path, each in leaves.items()}
    assert said == {("a",): [{"b": 1, "z": 2}], ("c",): ["x", "y"], ("d.e",): "f"}


@pytest.mark.parametrize(
    "text", ["alerts: {enabled: true}\n", "nodePools: []\n", "nfd: {worker: {nodeSelector: {a: b}}}\n"]
)
def test_a_value_that_only_a_policy_has(text: str, project: Project) -> None:
    """The chart doesn't read what only a policy can say: it had no effect there, and isn't carried over."""
    ran = adopt(project, Shape({"values.yaml": OFF + text}, {}))
    assert [each["why"].partition(":")[0] for each in ran.json["dropped"]] == ["had no effect"]
    assert set(yaml.safe_load(ran.json["policy"])["spec"]) == {"release", "cluster", "driver"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("index.ts", 'new k8s.helm.v3.Release("x", { chart: "gpu-operator" });\n', "is a program"),
        (
            "main.tf",
            'resource "helm_release" "x" {\n chart = "gpu-operator"\n values = [join("", v)]\n}\n',
            "not known",
        ),
        (
            "main.tf",
            'resource "helm_release" "x" {\n chart = "gpu-operator"\n dynamic "set" {\n }\n}\n',
            "dynamic block",
        ),
        ("x.yml", ANSIBLE.replace("{driver: {enabled: false}}", '"{{ x | from_yaml }}"'), "fills in"),
        ("x.sh", "helm install x a/gpu-operator --version v25.10.1 --set 'driver.enabled=false\n", "can't be read"),
        (
            "y.sh",
            "helm install x a/gpu-operator\nkubectl patch clusterpolicies.nvidia.com/cluster-policy\n",
            "is patched",
        ),
        ("values.yaml", OFF + "".join(f"k{number}: 1\n" for number in range(6000)), "more than 5000"),
    ],
)
def test_what_is_not_read_is_told(name: str, text: str, told: str, project: Project) -> None:
    """Neither a traceback nor silence: what is missing is said."""
    ran = adopt(project, Shape({name: text}, {}))
    assert ran.code in {2, 4}
    assert told in ran.out


def test_slices_are_no_gpus(project: Project) -> None:
    """With the strategy `single` the label counts slices, so nothing is said of GPUs."""
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}
    meta = {"name": "a", "labels": {**labels, "nvidia.com/gpu.count": "56"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    ran = adopt(project, Shape({"node.json": json.dumps(node), "values.yaml": OFF}, {}, named=2))
    assert "gpusPerNode" not in yaml.safe_load(ran.json["policy"])["spec"]["nodePools"][0]
