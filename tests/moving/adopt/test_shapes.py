"""Each shape that settings are kept in is read as the program reads it that they are for, and nothing else is read.

Where values come from is told by the documentation of Helm (values files), Flux (helmreleases), Argo CD
(user-guide/helm), Fleet (ref-fleet-yaml), helmfile, Terraform's provider of Helm, and OLM; names of fields by
the chart (NVIDIA/gpu-operator) and operator.md.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustack.model import InputError
from gpustack.moving.adopt.inputs import read_all
from gpustack.moving.adopt.spec import draft
from gpustack.moving.adopt.write import text_of
from gpustack.policy.loading.load import load_values
from gpustack.text.read import parse
from tests.project import Project, Ran

OFF = "driver: {enabled: false}\n"
FLUX = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpu, namespace: flux-system}
spec:
  targetNamespace: gpu-system
  chart: {spec: {chart: gpu-operator, version: v26.7.0}}
  valuesFrom:
  - {kind: ConfigMap, name: values}
  - {kind: Secret, name: more, valuesKey: more.yaml}
  - {kind: ConfigMap, name: values, valuesKey: strategy, targetPath: mig.strategy}
  values: {driver: {enabled: false}, gfd: {enabled: "${GFD:=false}"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values}
data: {values.yaml: "driver: {enabled: true}\\ndcgm: {enabled: true}\\n", strategy: mixed}
---
apiVersion: v1
kind: Secret
metadata: {name: more}
stringData: {more.yaml: "toolkit: {enabled: false}"}
"""
ARGO = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: gpu}
spec:
  destination: {namespace: gpu-system}
  sources:
  - repoURL: https://helm.example.com
    chart: gpu-operator
    targetRevision: v26.7.0
    helm:
      valueFiles: [$values/cluster/gpu.yaml]
      values: |
        dcgm:
          enabled: true
      valuesObject: {toolkit: {enabled: false}}
      parameters: [{name: driver.enabled, value: "false"}]
  - {repoURL: https://git.example.com, ref: values}
"""
TERRAFORM = """
variable "strategy" { default = "mixed" }
locals { plugin = { enabled = false } }
resource "helm_release" "gpu" {
  name = "gpu"
  chart = "gpu-operator"
  version = "v26.7.0"
  namespace = "gpu-system"
  values = [
    file("${path.module}/values.yaml"),
    <<-EOT
    dcgm:
      enabled: true
    EOT
    ,
    yamlencode({ toolkit = { enabled = false }, devicePlugin = local.plugin }),
  ]
  set {
    name  = "mig.strategy"
    value = var.strategy
  }
}
"""
OLM = """
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: gpu, namespace: nvidia-gpu-operator}
spec: {name: gpu-operator-certified, startingCSV: gpu-operator-certified.v26.7.0}
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: gpu-cluster-policy}
spec: {operator: {}, daemonsets: {}, driver: {enabled: false}, toolkit: {}, devicePlugin: {}, dcgmExporter: {}}
"""
CSV = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "ClusterServiceVersion",
    "metadata": {
        "name": "gpu-operator-certified.v26.7.0",
        "annotations": {"alm-examples": json.dumps([yaml.safe_load(OLM.partition("---")[2])])},
    },
    "spec": {"version": "26.7.0"},
}
HELM = {
    "name": "gpu",
    "namespace": "gpu-system",
    "config": {"driver": {"enabled": False}},
    "chart": {"metadata": {"name": "gpu-operator", "version": "v26.7.0", "appVersion": "v26.7.0"}},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "helm.sh/release.v1",
    "metadata": {"name": "sh.helm.release.v1.gpu.v1", "labels": {"status": "deployed"}},
    "data": {"release": base64.b64encode(base64.b64encode(gzip.compress(json.dumps(HELM).encode()))).decode()},
}
CRD = "driver: {nvidiaDriverCRD: {enabled: true}, version: 580.126.20, rdma: {enabled: true}}\n"
DRIVER = {
    "name": "default",
    "default": True,
    "version": "580.126.20",
    "repository": "nvcr.io/nvidia",
    "image": "driver",
}
PLUGIN = "version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
NAMED = "devicePlugin: {config: {name: shared, default: any}}\n"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"any": PLUGIN}}


@dataclass
class Shape:
    """FILES, and what the policy says that is made of the first NAMED of them; by paths with dots."""

    files: dict[str, str]
    wanted: dict[str, Any]
    named: int = 1
    answers: list[str] = field(default_factory=list)
    code: int = 0


SHAPES = {
    "values": Shape({"values.yaml": OFF}, {"driver.enabled": False}),
    "values, the later file wins": Shape(
        {"a.yaml": "driver: {enabled: true}\nmig: {strategy: mixed}\n", "b.yaml": OFF},
        {"driver.enabled": False, "mig.strategy": "mixed"},
        named=2,
    ),
    "texts that Helm writes without quotes": Shape(
        {"values.yaml": 'driver: {enabled: "false"}\ndcgmExporter: {version: 4}\n'},
        {"driver.enabled": False, "dcgmExporter.version": "4"},
    ),
    "a chart that bundles it": Shape(
        {"values.yaml": f"global: {{x: 1}}\ngpu-operator:\n  {OFF}"}, {"driver.enabled": False}
    ),
    "under another name": Shape(
        {"values.yaml": f"gpus:\n  {OFF}  toolkit: {{enabled: false}}\n"}, {"toolkit.enabled": False}
    ),
    "names of the chart": Shape(
        {"values.yaml": f"{OFF}node-feature-discovery: {{worker: {{tolerations: [{{operator: Exists}}]}}}}\n"},
        {"nfd.worker.tolerations": [{"operator": "Exists"}]},
    ),
    "the NVIDIADriver of the chart": Shape(
        {"values.yaml": CRD},
        {"driver.useNvidiaDriverCRD": True, **{f"drivers.0.{key}": value for key, value in DRIVER.items()}},
        answers=["nodePools[0].os=ubuntu22.04"],
    ),
    "Flux": Shape(
        {"release.yaml": FLUX},
        {
            "driver.enabled": False,
            "dcgm.enabled": True,
            "toolkit.enabled": False,
            "gfd.enabled": False,
            "mig.strategy": "mixed",
            "cluster.namespace": "gpu-system",
            "release": "v26.7.0",
            "nfd.helmRelease": "gpu",
            "daemonsets.labels": {"helm.sh/chart": "gpu-operator-v26.7.0"},
        },
    ),
    "Argo CD": Shape(
        {"app.yaml": ARGO, "gpu.yaml": "mig: {strategy: mixed}\n"},
        {
            "driver.enabled": False,
            "dcgm.enabled": True,
            "toolkit.enabled": False,
            "mig.strategy": "mixed",
            "cluster.namespace": "gpu-system",
            "nfd.helmRelease": "gpu",
        },
        named=2,
    ),
    "Argo CD without a values file": Shape({"app.yaml": ARGO}, {"driver.enabled": False}, code=2),
    "Fleet": Shape(
        {
            "fleet.yaml": "namespace: gpu-system\nhelm: {chart: gpu-operator, valuesFiles: [values.yaml]}\n",
            "values.yaml": OFF,
        },
        {"driver.enabled": False, "cluster.namespace": "gpu-system"},
    ),
    "helmfile": Shape(
        {
            "helmfile.yaml": "releases:\n- {name: gpu, chart: nvidia/gpu-operator, version: v26.7.0, "
            "values: [values.yaml, {mig: {strategy: mixed}}], set: [{name: toolkit.enabled, value: false}]}\n",
            "values.yaml": OFF,
        },
        {"driver.enabled": False, "mig.strategy": "mixed", "toolkit.enabled": False},
    ),
    "Terraform": Shape(
        {"main.tf": TERRAFORM, "values.yaml": OFF},
        {
            "driver.enabled": False,
            "dcgm.enabled": True,
            "toolkit.enabled": False,
            "devicePlugin.enabled": False,
            "mig.strategy": "mixed",
            "cluster.namespace": "gpu-system",
            "nfd.helmRelease": "gpu",
        },
    ),
    "Terraform, a variable answered": Shape(
        {"main.tf": TERRAFORM, "values.yaml": OFF}, {"mig.strategy": "none"}, answers=["var.strategy=none"]
    ),
    "OLM": Shape(
        {"olm.yaml": OLM},
        {"defaults": "operator", "cluster.platform": "openshift", "release": "v26.7.0", "driver.enabled": False},
        answers=["cluster.openshift.version=4.18.1"],
    ),
    "OLM's example": Shape(
        {"csv.json": json.dumps(CSV)},
        {"defaults": "operator", "cluster.platform": "openshift", "driver.enabled": False},
        answers=["cluster.openshift.version=4.18.1"],
    ),
    "a release of Helm": Shape(
        {"secret.json": json.dumps(SECRET)}, {"driver.enabled": False, "cluster.namespace": "gpu-system"}
    ),
    "a ConfigMap beside": Shape(
        {
            "values.yaml": f"{OFF}devicePlugin: {{config: {{name: shared, default: any}}}}\n",
            "plugin.yaml": json.dumps(CONFIG),
        },
        {"nodePools.0.name": "any", "nodePools.0.sharing.timeSlicing.replicas": 4, "devicePlugin.config.name": None},
        named=2,
    ),
    "a ConfigMap elsewhere": Shape(
        {"values.yaml": f"{OFF}{NAMED}"},
        {"references.0.kind": "ConfigMap", "references.0.name": "shared"},
    ),
    "an answer": Shape(
        {"values.yaml": OFF}, {"cluster.kubernetesVersion": "1.34"}, answers=["cluster.kubernetesVersion=1.34"]
    ),
}


def adopt(project: Project, shape: Shape, *more: str) -> Ran:
    """Adopt what SHAPE is."""
    for name, text in shape.files.items():
        project.write(name, text)
    answers = [word for answer in shape.answers for word in ("--set", answer)]
    named = list(shape.files)[: shape.named]
    return project.run("adopt", *named, "--out", "policies/x.yaml", "--format", "json", *answers, *more)


def at(spec: Any, path: str) -> Any:
    """What stands at PATH of SPEC."""
    for step in path.split("."):
        spec = spec[int(step)] if isinstance(spec, list) else spec[step]
    return spec


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_read(name: str, project: Project) -> None:
    """Each value is in the effective spec of a policy that renders."""
    shape = SHAPES[name]
    ran = adopt(project, shape)
    assert ran.code == shape.code, (ran.out, ran.err)
    spec = yaml.safe_load((project.folder / "policies/x.yaml").read_text())["spec"]
    found = load_values(spec).model_dump()
    for path, value in shape.wanted.items():
        have = at(found, path)
        assert value.items() <= have.items() if isinstance(value, dict) else have == value or value == plain(have), path
    assert ran.json["findings"] == []


def plain(value: Any) -> Any:
    """VALUE without what nobody set."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_each_value_says_where_it_is_from(project: Project) -> None:
    """The line is that of the file, also of a text in another text."""
    adopt(project, SHAPES["Argo CD"])
    written = (project.folder / "policies/x.yaml").read_text()
    lines = {line.split("#")[0].strip(): line.partition("# ")[2] for line in written.splitlines() if "#" in line}
    assert lines["strategy: mixed"] == "gpu.yaml:1"
    assert written.count("# app.yaml:15\n") == 1, "dcgm.enabled, in the text of `values`"


@pytest.mark.parametrize("name", ["../outside.yaml", "link.yaml"])
def test_nothing_outside_is_read(name: str, project: Project) -> None:
    """Neither by .. nor by a link: such a values file is asked for."""
    (project.folder.parent / "outside.yaml").write_text("driver: {version: secret}\n")
    (project.folder / "link.yaml").symlink_to(project.folder.parent / "outside.yaml")
    fleet = f"helm: {{chart: gpu-operator, valuesFiles: [{name}], values: {{driver: {{enabled: false}}}}}}\n"
    ran = adopt(project, Shape({"fleet.yaml": fleet}, {}))
    assert ran.code == 2
    assert [each["path"] for each in ran.json["open"]] == [name]
    assert "secret" not in ran.out


def test_what_has_no_effect_is_told(project: Project) -> None:
    """A key that nothing reads stays out, with the one that may be meant, which it isn't changed into."""
    ran = adopt(project, Shape({"values.yaml": f"{OFF}devicePluin: {{enabled: false}}\n"}, {}))
    assert [(each["path"], each["line"]) for each in ran.json["dropped"]] == [("spec.devicePluin", 2)]
    assert "had no effect; meant spec.devicePlugin?" in ran.json["policy"]
    assert yaml.safe_load(ran.json["policy"])["spec"].get("devicePlugin") is None


def test_an_overlay_is_not_built(project: Project) -> None:
    """A kustomization.yaml is told, with what to do; nothing that it names is fetched or run."""
    files = {"kustomization.yaml": "resources: [https://example.com/x]\n", "values.yaml": OFF}
    ran = adopt(project, Shape(files, {}, named=2))
    assert (ran.code, [each["path"] for each in ran.json["open"]]) == (2, ["kustomization.yaml"])


def test_variables_are_asked_for(project: Project) -> None:
    """A value with a variable that nobody fills in stays out, with how to fill it in; then it is carried."""
    values = {"driver": {"enabled": False}, "gfd": {"version": "${GFD}"}, "dcgm": {"version": "{{ .dcgm }}"}}
    shape = Shape({"values.yaml": json.dumps(values)}, {})
    asked = adopt(project, shape).json
    filled = adopt(project, shape, "--set", "GFD=v0.1.0", "--set", "dcgm=4.1").json
    assert [(each["path"], each["remedy"]) for each in asked["open"]] == [
        ("gfd.version", "--set GFD=VALUE"),
        ("dcgm.version", "--set dcgm=VALUE"),
    ]
    assert "gfd" not in yaml.safe_load(asked["policy"])["spec"]
    spec = yaml.safe_load(filled["policy"])["spec"]
    assert (spec["gfd"], spec["dcgm"], filled["open"]) == ({"version": "v0.1.0"}, {"version": "4.1"}, [])


def test_images_of_the_chart_follow_the_release(project: Project) -> None:
    """What v25.10.1's chart wrote isn't pinned, what one chose is (older-charts.yaml); --keep-release keeps all."""
    objects = {"driver": {"version": "580.105.08"}, "toolkit": {"version": "v1.18.1"}, "gfd": {"version": "v0.18.0"}}
    values = {"driver": {"enabled": False}, **{key: objects[key] for key in ("toolkit", "gfd")}}
    release = yaml.safe_load(FLUX.split("---", maxsplit=1)[0])
    release["spec"] |= {"values": values, "valuesFrom": []}
    release["spec"]["chart"]["spec"]["version"] = "v25.10.1"
    shape = Shape({"release.yaml": json.dumps(release)}, {})
    moved = adopt(project, shape).json
    kept = adopt(project, shape, "--keep-release").json
    assert moved["release"] == "v26.7.0"
    assert [each["path"] for each in moved["changed"] if "image" in each["why"]] == ["spec.toolkit"]
    assert yaml.safe_load(moved["policy"])["spec"]["gfd"] == {"version": "v0.18.0"}
    assert kept["release"] == kept["runs"] == "v25.10.1"
    assert kept["changed"] == []


def test_no_driver_is_lost_silently(project: Project) -> None:
    """A driver of which no input says the operating system keeps the policy from rendering (GPU103)."""
    ran = adopt(project, Shape({"values.yaml": "toolkit: {enabled: true}\n"}, {}))
    assert ran.code == 2
    assert [each["rule"] for each in ran.json["findings"]] == ["GPU103"]


def test_another_policy_is_not_written_over(project: Project) -> None:
    """adopt replaces what it wrote, and nothing else."""
    shape = Shape({"values.yaml": OFF}, {})
    assert adopt(project, shape).code == 0
    assert adopt(project, shape).code == 0
    project.write("policies/x.yaml", "kind: ClusterPolicy\n")
    ran = adopt(project, shape)
    assert (ran.code, ran.json["findings"][0]["rule"]) == (4, "GPU049")


@pytest.mark.parametrize(
    "text", ["version: v1\nsharing: {}\n", "kind: Service\napiVersion: v1\nmetadata: {name: x}\n", "a: 1\n", "[1]\n"]
)
def test_what_tells_nothing_is_refused(text: str, project: Project) -> None:
    """Files without an installation are bad input, said in one finding."""
    ran = adopt(project, Shape({"x.yaml": text}, {}))
    assert (ran.code, [each["rule"] for each in ran.json["findings"]]) == (4, ["GPU049"])


def test_a_platform_changes_nothing_that_runs(project: Project) -> None:
    """What the preset of a platform would change is written out, what it has anyway isn't (platforms/rke2.yaml)."""
    ran = adopt(project, Shape({"values.yaml": OFF}, {}, answers=["cluster.platform=rke2"]))
    spec = yaml.safe_load(ran.json["policy"])["spec"]
    whole = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.36"}, "driver": {"enabled": False}}
    preset = {**whole, "cluster": {"kubernetesVersion": "1.36", "platform": "rke2"}}
    before, after = load_values(whole).model_dump(), load_values(preset).model_dump()
    found = load_values(spec).model_dump()
    assert before["toolkit"] != after["toolkit"], "the preset has paths of its own"
    assert {key: value for key, value in found.items() if key != "cluster"} == {
        key: value for key, value in before.items() if key != "cluster"
    }


def test_drivers_alone(project: Project) -> None:
    """An NVIDIADriver without its ClusterPolicy counts, which is told; its nodes are a pool (operator.md 2.3)."""
    driver: dict[str, Any] = {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "gold"}}
    driver["spec"] = {"driverType": "gpu", "image": "driver", "repository": "nvcr.io/nvidia", "version": "580.126.20"}
    driver["spec"]["nodeSelector"] = {"example.com/driver": "gold"}
    ran = adopt(project, Shape({"x.json": json.dumps(driver)}, {}, answers=["nodePools[0].os=ubuntu22.04"]))
    spec = yaml.safe_load(ran.json["policy"])["spec"]
    assert (ran.code, ran.json["changed"]) == (0, [])
    assert spec["nodePools"] == [{"name": "gold", "nodeSelector": {"example.com/driver": "gold"}, "os": "ubuntu22.04"}]
    assert spec["drivers"][0]["version"] == "580.126.20"
    assert "spec.driver.useNvidiaDriverCRD" in [each["path"] for each in ran.json["assumed"]]


def test_a_copy_of_all_old_values_is_told(project: Project) -> None:
    """Versions that no known chart wrote are kept, and named as what an old copy may have put there."""
    sections = ("toolkit", "devicePlugin", "gfd", "dcgm", "dcgmExporter")
    values = {"driver": {"enabled": False}, **{section: {"version": "v0.1.0"} for section in sections}}
    ran = adopt(project, Shape({"values.yaml": json.dumps(values)}, {}))
    assert (ran.code, [each["path"] for each in ran.json["open"]]) == (2, ["images"])
    assert yaml.safe_load(ran.json["policy"])["spec"]["gfd"] == {"version": "v0.1.0"}


ODD: list[Any] = [
    None,
    [],
    {},
    "",
    0,
    True,
    "x",
    [1],
    {"a": None},
    "${V}",
    [[]],
    1.5,
    {"a": {"b": [{}]}},
    "a: [",
    "---",
]


@given(st.sampled_from([name for name in SHAPES if "Terraform" not in name]), st.randoms(use_true_random=False))
def test_whatever_stands_there(name: str, chance: Random) -> None:
    """Wherever something else stands than belongs there, there is a policy or an error that says where."""
    shape = SHAPES[name]
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for file, text in shape.files.items():
            documents = list(yaml.safe_load_all(text))
            changed = chance.choice(documents)
            spot(changed, chance)
            Path(file).write_text(yaml.safe_dump_all(documents))
        with contextlib.suppress(InputError):
            made = draft(read_all(list(shape.files), {}).installation, {}, keep=chance.random() < 0.5)
            parse(text_of("x", made.spec, made.leaves, ["head"]), "x")


def spot(data: Any, chance: Random) -> None:
    """Put something odd at a place of DATA, the deeper the likelier."""
    keys = list(data) if isinstance(data, dict) else range(len(data))
    key = chance.choice(list(keys))
    if isinstance(data[key], dict | list) and data[key] and chance.random() < 0.8:
        spot(data[key], chance)
    else:
        data[key] = copy.deepcopy(chance.choice(ODD))
