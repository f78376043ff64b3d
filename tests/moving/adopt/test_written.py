"""What people write around a chart: heredocs, variables, lists of elements, choices, patches. Each is read as the
program reads it that it is for.

The right values are told by Bash (here documents, ${NAME:-default}), Argo CD (ApplicationSet: list and matrix
generators), Ansible (variables; kubernetes.core.helm: set_values), Terraform (conditional expressions), Helm's charts
(dependencies), kubectl (patch) and sigs.k8s.io/yaml, by which Helm and kubectl take the last of equal keys.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.catalog import chart
from gpustack.policy.loading.load import load_values
from tests.project import Project, cache, project

from .test_published import DRIVER_OFF, POLICY
from .test_shapes import Shape, adopt, at, plain

__all__ = ["cache", "project"]

VERSIONED = "VERSION=${VERSION:-v25.10.1}\n"
STDIN = f"""{VERSIONED}cat <<EOF | helm install gpus a/gpu-operator --version "$VERSION" -f - --set mig.strategy=mixed
driver: {{enabled: false}}
mig: {{strategy: single}}
EOF
"""
WRITTEN = """cat > gpu.values <<EOF
driver: {enabled: false}
EOF
helm install gpus nvidia/gpu-operator -f gpu.values
"""
PIPELINE = """deploy:
  variables:
    DRIVER: "false"
  script:
  - helm install gpus nvidia/gpu-operator --set driver.enabled=$DRIVER
"""
PATCHED = """helm install gpus nvidia/gpu-operator --set driver.enabled=false
kubectl patch clusterpolicies.nvidia.com/cluster-policy -n gpu-operator --type merge \\
  -p '{"spec": {"mig": {"strategy": "mixed"}}}'
kubectl patch clusterpolicy/x --type=json \\
  -p "[{\\"op\\": \\"replace\\", \\"path\\": \\"/spec/gfd/enabled\\", \\"value\\": false}]"
"""
SET = """apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: addons}
spec:
  generators:
  - matrix:
      generators:
      - clusters: {}
      - list:
          elements:
          - {chart: gpu-operator, version: v25.10.1, namespace: gpu, values: "driver: {enabled: false}"}
          - {chart: cert-manager, version: v1.1, namespace: certs, values: "crds: {enabled: true}"}
  template:
    metadata: {name: "{{name}}-{{chart}}"}
    spec:
      source: {chart: "{{chart}}", targetRevision: "{{version}}", helm: {values: "{{values}}"}}
      destination: {name: "{{name}}", namespace: "{{.namespace}}"}
"""
PLAY = """- hosts: all
  vars: {operator: v25.10.1, settings: {driver: {enabled: false}}}
  tasks:
  - kubernetes.core.helm:
      name: gpus
      chart_ref: nvidia/gpu-operator
      chart_version: "{{ operator }}"
      values: "{{ settings | default({}) }}"
      set_values:
      - {value: mig.strategy=mixed, value_type: string}
"""
ROLE = {
    "tasks/main.yml": "- kubernetes.core.helm: {name: gpus, chart_ref: a/gpu-operator, values: '{{ settings }}'}\n",
    "defaults/main.yml": "settings: {driver: {enabled: false}}\n",
}
CHOICE = """variable "own" { default = false }
resource "helm_release" "gpu" {
  chart  = "gpu-operator"
  name   = "gpus"
  values = [
    yamlencode({ driver = { enabled = var.own ? true : false }, mig = { strategy = var.own ? "single" : "mixed" } })
  ]
}
"""
CHART = """apiVersion: v2
name: gpu-operator
version: 1.0.0
dependencies: [{name: gpu-operator, version: v25.10.1}]
"""
LEADING = """helm3 -n gpu --debug upgrade --install gpus a/gpu-operator $OPTIONS --set driver.enabled=${DRIVER:-false}
"""
HELD = {
    "apiVersion": "policy.open-cluster-management.io/v1",
    "kind": "Policy",
    "metadata": {"name": "gpus"},
    "spec": {
        "policy-templates": [{"objectDefinition": {"spec": {"object-templates": [{"objectDefinition": POLICY}]}}}]
    },
}
DYNAMIC = """variable "more" { default = [{ name = "mig.strategy", value = "mixed" }] }
resource "helm_release" "gpu" {
  name  = "gpus"
  chart = "gpu-operator"
  dynamic "set" {
    for_each = { "driver.enabled" = "false" }
    content {
      name  = set.key
      value = set.value
    }
  }
  dynamic "set" {
    for_each = var.more
    content {
      name  = set.value.name
      value = set.value["value"]
    }
  }
}
"""
BLUEPRINT = """module "addons" {
  source              = "a/b"
  nvidia_gpu_operator = { set = [{ name = "driver.enabled", value = "false" }] }
}
"""
PROXY = """apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: gpus}
spec:
  chartName: gpu-operator
  valuesTemplate: |
    driver:
      enabled: {{ .Cluster.own }}
    mig: {strategy: mixed}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {values.yaml: 'driver: {enabled: false}'}\n"
BUNDLED = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpus}
spec:
  chart: {spec: {chart: ./charts/gpu-operator}}
  values: {gpu-operator: {enabled: true, driver: {enabled: false}}, other: {a: 1}}
"""
NAMED = {"nfd.helmRelease": "gpus"}
SHAPES = {
    "values from standard input": Shape({"up.sh": STDIN}, {**DRIVER_OFF, **NAMED, "mig.strategy": "mixed"}),
    "values that the script writes": Shape({"up.sh": WRITTEN}, {**DRIVER_OFF, **NAMED}),
    "variables of a pipeline": Shape({"ci.yml": PIPELINE}, {**DRIVER_OFF, **NAMED}),
    "patches behind the command": Shape(
        {"up.sh": PATCHED}, {**DRIVER_OFF, "mig.strategy": "mixed", "gfd.enabled": False}
    ),
    "elements of a list that name the chart": Shape({"set.yaml": SET}, {**DRIVER_OFF, "cluster.namespace": "gpu"}),
    "variables of a play": Shape({"play.yml": PLAY}, {**DRIVER_OFF, **NAMED, "mig.strategy": "mixed"}),
    "variables of a role": Shape(ROLE, {**DRIVER_OFF, **NAMED}, named=2),
    "a choice": Shape({"main.tf": CHOICE}, {**DRIVER_OFF, **NAMED, "mig.strategy": "mixed"}),
    "a choice, answered": Shape(
        {"main.tf": CHOICE},
        {"driver.enabled": True, "mig.strategy": "single"},
        answers=["var.own=true", "nodePools[0].os=ubuntu22.04"],
    ),
    "options before the command": Shape({"up.sh": LEADING}, {**DRIVER_OFF, **NAMED, "cluster.namespace": "gpu"}),
    "an object inside of another": Shape({"policy.yaml": yaml.safe_dump(HELD)}, DRIVER_OFF),
    "dynamic blocks": Shape({"main.tf": DYNAMIC}, {**DRIVER_OFF, **NAMED, "mig.strategy": "mixed"}),
    "a module with set alone": Shape({"main.tf": BLUEPRINT}, DRIVER_OFF),
    "a template in a text": Shape(
        {"proxy.yaml": PROXY}, {**DRIVER_OFF, "mig.strategy": "mixed"}, answers=["Cluster.own=false"]
    ),
    "a ConfigMap that nobody names": Shape({"map.yaml": MAP}, DRIVER_OFF),
    "a chart that bundles it, in a HelmRelease": Shape({"release.yaml": BUNDLED}, DRIVER_OFF),
    "a key that stands twice": Shape(
        {"values.yaml": "driver: {enabled: true}\ngfd: {enabled: false}\ndriver: {enabled: false}\n"}, DRIVER_OFF
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_read(name: str, project: Project) -> None:
    """Each value is in the effective spec, and nothing is left to be answered."""
    shape = SHAPES[name]
    ran = adopt(project, shape)
    assert (ran.code, ran.json["open"]) == (0, []), ran.out
    found = plain(load_values(spec_of(ran)).model_dump())
    assert {path: at(found, path) for path in shape.wanted} == shape.wanted


def spec_of(ran: Any) -> Any:
    """The spec of the policy that was written."""
    return yaml.safe_load(ran.json["policy"])["spec"]


def test_the_chart_is_the_dependency_and_not_who_bundles_it(project: Project) -> None:
    """A chart that is called like the operator's has a version of its own."""
    files = {"Chart.yaml": CHART, "values.yaml": "gpu-operator: {driver: {enabled: false}}\n"}
    assert adopt(project, Shape(files, {}, named=2)).json["runs"] == "v25.10.1"


def test_elements_that_differ_are_asked_for(project: Project) -> None:
    """What the clusters of a list don't agree on stays a variable; the answer fills it in."""
    elements = "[{cluster: a, own: 'true'}, {cluster: b, own: 'false'}]"
    text = f"""apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: gpus}}
spec:
  generators: [{{list: {{elements: {elements}}}}}]
  template:
    spec: {{source: {{chart: gpu-operator, helm: {{valuesObject: {{driver: {{enabled: '{{{{.own}}}}'}}}}}}}}}}
"""
    ran = adopt(project, Shape({"set.yaml": text}, {}))
    assert [each["path"] for each in ran.json["open"]] == ["driver.enabled"]
    answered = adopt(project, Shape({"set.yaml": text}, {}, answers=["own=false"]))
    assert (answered.code, spec_of(answered)["driver"]) == (0, {"enabled": False})


@pytest.mark.parametrize(
    "patch",
    [
        '-p "$PATCH"',
        "--patch-file x.yaml",
        '--type json -p \'[{"op": "remove", "path": "/spec/driver"}]\'',
        "-p '{broken'",
    ],
)
def test_a_patch_that_cannot_be_read_is_told(patch: str, project: Project) -> None:
    """It isn't passed over: what runs is another than what was read."""
    text = f"helm install a a/gpu-operator --set driver.enabled=false\nkubectl patch clusterpolicy/x {patch}\n"
    ran = adopt(project, Shape({"up.sh": text}, {}))
    assert (ran.code, [each["why"] for each in ran.json["open"]]) == (
        2,
        ["the ClusterPolicy is patched here, which is not read"],
    )


def test_a_cluster_policy_of_another_project_is_left_alone(project: Project) -> None:
    """Kyverno has a kind of that name."""
    text = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: {driver: {enabled: false}}\n"
    assert adopt(project, Shape({"kyverno.yaml": text}, {})).json["findings"][0]["rule"] == "GPU049"


def test_a_reference_to_an_object_is_none(project: Project) -> None:
    """What names its owner doesn't bring it along: the owner is read where it stands, once."""
    owner = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "x", "uid": "u", "controller": True}
    meta = {"name": "a", "namespace": "gpu-operator", "ownerReferences": [owner]}
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    labels = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}
    policy = {**POLICY, "metadata": {"name": "x", **labels}}
    text = yaml.safe_dump_all([policy, body])
    assert "defaults" not in spec_of(adopt(project, Shape({"dump.yaml": text}, {})))


def test_a_variable_inside_a_list_is_asked_for(project: Project) -> None:
    """By its name, and not as a value of a wrong form."""
    text = "driver: {enabled: false}\ntoolkit: {env: [{name: A, value: '${SOCKET}'}]}\n"
    (told,) = adopt(project, Shape({"values.yaml": text}, {})).json["open"]
    assert (told["path"], "SOCKET" in told["remedy"]) == ("toolkit.env", True)


def test_a_drivers_version_that_somebody_wrote_is_kept(project: Project) -> None:
    """Also where it is the old chart's own: the chart of that version would install it, and another one rolls drivers.
    In a copy of all the chart's values nobody has chosen it.
    """
    old = {name: chart.image("v25.10.1", name) for name in ("driver", "toolkit", "devicePlugin", "dcgmExporter", "gfd")}
    version = {name: str(image).rpartition(":")[2] for name, image in old.items()}
    release = {"Chart.yaml": "name: a\ndependencies: [{name: gpu-operator, version: v25.10.1}]\n"}
    for names, kept in ((["driver"], True), (list(old), False)):
        lines = "".join(f"  {name}: {{version: {version[name]!r}}}\n" for name in names)
        files = {**release, "values.yaml": f"gpu-operator:\n{lines}"}
        ran = adopt(project, Shape(files, {}, named=2, answers=["nodePools[0].os=ubuntu22.04"]))
        assert ran.json["runs"] == "v25.10.1"
        assert spec_of(ran).get("driver") == ({"version": version["driver"]} if kept else None)
