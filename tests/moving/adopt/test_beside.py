"""What lies beside an installation is told as what it is, and taken where an answer says so; nothing is guessed.

Which ConfigMap does what is told by the operator's custom resource (operator.md: devicePlugin.config,
migManager.config, dcgmExporter.config, driver.kernelModuleConfig, ...), how a file becomes one by kubectl (create
configmap --from-file) and kustomize (configMapGenerator).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from gpustack.policy.loading.load import load_values
from tests.project import Project, Ran

from .test_shapes import OFF, Shape, adopt, at

SLICES = """version: v1
flags: {migStrategy: none}
sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
"""
MIG = "version: v1\nmig-configs:\n  all-disabled:\n  - {devices: all, mig-enabled: false}\n"
METRICS = "# Format\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n"


def of(kind: str, name: str, api: str = "v1", **more: Any) -> str:
    """An object as JSON, which is YAML too."""
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name, **more.pop("metadata", {})}, **more})


def config_map(key: str, text: str) -> str:
    """The ConfigMap `beside` with TEXT at KEY."""
    return of("ConfigMap", "beside", data={key: text})


CONFIGURATIONS = {
    "device plugin": ("any", SLICES, ["devicePlugin.config.name=beside", "devicePlugin.config.default=any"]),
    "MIG manager": ("config.yaml", MIG, ["migManager.config.name=beside"]),
    "DCGM's metrics": ("dcgm-metrics.csv", METRICS, ["dcgmExporter.config.name=beside"]),
    "kernel modules": (
        "nvidia.conf",
        "NVreg_RestrictProfilingToAdminUsers=0\n",
        ["driver.kernelModuleConfig.name=beside"],
    ),
    "package repositories": ("a.repo", "[a]\nbaseurl=file:///a\n", ["driver.repoConfig.configMapName=beside"]),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_nobody_names_is_taken_by_its_answer(name: str, project: Project) -> None:
    """Alone it says nothing of an installation: then it is told as what it is, with the answer that takes it; with that
    answer the policy renders it along, and the chart's defaults count, which is told."""
    key, text, answers = CONFIGURATIONS[name]
    file = {"beside.yaml": config_map(key, text)}
    refused = project.run("adopt", *adopted_files(project, file), "--out", "policies/x.yaml", "--format", "json")
    said = refused.json["findings"][0]
    assert (refused.code, said["rule"]) == (4, "GPU049")
    assert " ".join(f"--set {each}" for each in answers) in said["why"]
    assert "nodePools[0].os" in said["remedy"]
    ran = adopt(project, Shape(file, {}, answers=[*answers, "nodePools[0].os=ubuntu22.04"]))
    assert ran.code == 0, (ran.out, ran.err)
    assert written(project)["extraObjects"][0]["data"] == {key: text}
    assert [each["path"] for each in ran.json["assumed"]][:1] == ["spec"]


def adopted_files(project: Project, files: dict[str, str]) -> list[str]:
    """FILES, written, by their names."""
    for name, text in files.items():
        project.write(name, text)
    return list(files)


def written(project: Project) -> dict[str, Any]:
    """The effective spec of what was written."""
    spec = yaml.safe_load((project.folder / "policies/x.yaml").read_text())["spec"]
    return load_values(spec).model_dump()


def dropped(ran: Ran) -> dict[str, str]:
    """What RAN left out, and what to do with it."""
    return {each["path"]: each["remedy"] for each in ran.json["dropped"]}


def test_a_configuration_without_effect_is_told(project: Project) -> None:
    """Values that don't name the ConfigMap beside them leave it without effect: so it stays out, and that is said."""
    ran = adopt(project, Shape({"values.yaml": OFF, "beside.yaml": config_map("config.yaml", MIG)}, {}, named=2))
    assert dropped(ran) == {"ConfigMap beside": "--set migManager.config.name=beside takes it"}
    assert written(project)["extraObjects"] == []


def test_what_runs_is_not_told(project: Project) -> None:
    """A dump has every ConfigMap of the namespace, the operator's own too."""
    own = of("ConfigMap", "beside", metadata={"uid": "1"}, data={"config.yaml": MIG})
    ran = adopt(project, Shape({"values.yaml": OFF, "beside.yaml": own}, {}, named=2))
    assert dropped(ran) == {}


@pytest.mark.parametrize(
    ("name", "text", "answer", "data"),
    [
        ("metrics.csv", METRICS, "dcgmExporter.config.name=metrics", {"dcgm-metrics.csv": METRICS}),
        ("mig.yaml", MIG, "migManager.config.name=mig", {"config.yaml": MIG}),
    ],
)
def test_a_file_is_the_config_map_that_is_made_of_it(
    name: str, text: str, answer: str, data: dict[str, str], project: Project
) -> None:
    """By the file's name, with the key that its reader looks for."""
    ran = adopt(project, Shape({"values.yaml": OFF, name: text}, {}, answers=[answer], named=2))
    assert ran.code == 0, (ran.out, ran.err)
    assert [each["data"] for each in written(project)["extraObjects"]] == [data]


def test_a_file_is_the_config_map_that_an_overlay_makes_of_it(project: Project) -> None:
    """With the name and the key of the generator; the overlay isn't built, as it names a file that isn't there."""
    overlay = "resources: [gone.yaml]\nconfigMapGenerator:\n- {name: shared, files: [any=more/slices.yaml]}\n"
    files = {
        "kustomization.yaml": overlay,
        "more/slices.yaml": SLICES,
        "values.yaml": f"{OFF}devicePlugin: {{config: {{name: shared}}}}\n",
    }
    adopt(project, Shape(files, {}, named=3))
    (brought,) = written(project)["extraObjects"]
    assert (brought["metadata"]["name"], brought["data"]) == ("shared", {"any": SLICES})


OBJECTS = {
    "NodeFeatureRule": of("NodeFeatureRule", "gpus", "nfd.k8s-sigs.io/v1alpha1", spec={"rules": []}),
    "PrometheusRule": of("PrometheusRule", "dcgm", "monitoring.coreos.com/v1", spec={"groups": []}),
    "ResourceQuota": of("ResourceQuota", "gpu-quota", spec={"hard": {"pods": "100"}}),
    "KubeVirt": of("KubeVirt", "kubevirt", "kubevirt.io/v1", spec={"configuration": {"pciVendorSelector": "10DE:1"}}),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_others_are_told(kind: str, project: Project) -> None:
    """Beside values each is left out with what to do; alone nothing is made of it until somebody says that the chart's
    defaults run."""
    ran = adopt(project, Shape({"values.yaml": OFF, "other.yaml": OBJECTS[kind]}, {}, named=2))
    assert [path.split()[0] for path in dropped(ran)] == [kind]
    assert all(dropped(ran).values())
    assert adopt(project, Shape({"other.yaml": OBJECTS[kind]}, {})).code == 4
    ran = adopt(project, Shape({"other.yaml": OBJECTS[kind]}, {}, answers=["driver.enabled=false"]))
    assert (ran.code, ran.json["assumed"][0]["path"]) == (0, "spec")


@pytest.mark.parametrize("text", [of("Deployment", "web", "apps/v1"), "config: {map: {a: b}}\n", "a: 1\n"])
def test_no_answer_makes_settings_of_anything_else(text: str, project: Project) -> None:
    """A file that has nothing to do with the operator, or is another chart's, is refused whatever is answered."""
    ran = adopt(project, Shape({"other.yaml": text}, {}, answers=["driver.enabled=false"]))
    assert (ran.code, ran.json["findings"][0]["rule"]) == (4, "GPU049")
    assert "apiVersion: gpustack.dev" not in ran.out, "nobody adopts a policy"


def test_the_namespaces_labels_of_pod_security_are_kept(project: Project) -> None:
    """The render has them, or the stack's pods are refused where the cluster's default is another."""
    labels = {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    files = {"values.yaml": OFF, "namespace.yaml": of("Namespace", "gpu-operator", metadata=labels)}
    assert adopt(project, Shape(files, {}, named=2)).code == 0
    assert written(project)["psa"]["enabled"] is True


APPLICATION = """apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: gpu}
spec:
  destination: {namespace: gpus}
  source: {repoURL: https://charts.example.com, SOURCE}
"""
WRONGLY_TAKEN: dict[str, tuple[dict[str, str], list[str], dict[str, Any]]] = {
    "a section of the chart is no chart that bundles it": (
        {"values.yaml": "validator: {driver: {env: [{name: A, value: b}]}, toolkit: {env: []}}\n" + OFF},
        [],
        {"driver.enabled": False},
    ),
    "an Application's values file is called as it is itself": (
        {"gpu.yaml": APPLICATION.replace("SOURCE", "chart: gpu-operator, helm: {valueFiles: [prod/gpu.yaml]}")},
        ["prod/gpu.yaml"],
        {},
    ),
    "an Application of a folder that isn't there": (
        {"app.yaml": APPLICATION.replace("SOURCE", "path: charts/gpu-operator")},
        ["gpu"],
        {},
    ),
    "values of a chart of one's own": (
        {
            "values.yaml": "olm: {subscription: {name: gpu-operator-certified, channel: stable}}\n"
            "clusterPolicy: {usePrecompiled: true}\n"
        },
        ["values.yaml", "spec.cluster.openshift.version"],
        {"nfd.helmRelease": "gpu-operator"},
    ),
    "a custom resource in a template": (
        {
            "policy.yaml": of(
                "ClusterPolicy",
                "x",
                "nvidia.com/v1",
                spec={
                    **{key: {} for key in ("operator", "daemonsets", "toolkit", "devicePlugin", "dcgmExporter")},
                    "driver": {"enabled": False, "version": "${VERSION}"},
                },
            )
        },
        ["driver.version"],
        {"driver.enabled": False},
    ),
    "a custom resource without a name": (
        {"driver.yaml": of("NVIDIADriver", "gpus-${VERSION}", "nvidia.com/v1alpha1", spec={"driverType": "gpu"})},
        ["metadata.name"],
        {"drivers.0.name": "driver-1"},
    ),
    "an old OpenShift, by a key that had no effect": (
        {
            "policy.yaml": of(
                "ClusterPolicy",
                "x",
                "nvidia.com/v1",
                spec={
                    **{key: {} for key in ("operator", "daemonsets", "toolkit", "devicePlugin", "dcgmExporter")},
                    "driver": {"enabled": False, "use_ocp_driver_toolkit": True},
                },
            )
        },
        ["spec.cluster.openshift.version"],
        {"cluster.platform": "openshift"},
    ),
}


@pytest.mark.parametrize("name", WRONGLY_TAKEN)
def test_what_was_taken_for_something_else(name: str, project: Project) -> None:
    """What is missing is asked for, by its path, and what is said is the policy's."""
    files, asked, wanted = WRONGLY_TAKEN[name]
    ran = adopt(project, Shape(files, {}))
    assert [each["path"] for each in ran.json["open"]] == asked, ran.out
    found = written(project)
    assert {path: at(found, path) for path in wanted} == wanted


def test_a_text_that_a_program_makes_of_data_is_read(project: Project) -> None:
    """JSON.stringify and its like make a text of what is written out."""
    data = "default: JSON.stringify({version: 'v1', flags: {migStrategy: 'none'}}, null, 2)"
    config = f"devicePlugin: {{config: {{name: 'x', default: 'default', data: {{{data}}}}}}}"
    program = f"new Release('x', {{chart: 'gpu-operator', values: {{driver: {{enabled: false}}, {config}}}}})\n"
    assert adopt(project, Shape({"index.ts": program}, {})).code == 0
    text = written(project)["devicePlugin"]["config"]["data"]["default"]
    assert json.loads(text) == {"version": "v1", "flags": {"migStrategy": "none"}}


def test_patches_of_the_operators_own_deployment_ask_nothing(project: Project) -> None:
    """gpustack renders no operator, so such a patch is left out; any other is asked for."""
    release = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpu-operator}
spec:
  chart: {spec: {chart: gpu-operator}}
  values: {driver: {enabled: false}}
  postRenderers: [{kustomize: {patches: [{target: {kind: KIND, name: gpu-operator}, patch: a}]}}]
"""
    for kind, where in (("Deployment", "dropped"), ("ClusterPolicy", "open")):
        ran = adopt(project, Shape({"release.yaml": release.replace("KIND", kind)}, {}))
        assert [each["path"] for each in ran.json[where]] == ["spec.postRenderers"]


def test_what_keeps_a_policy_from_rendering_says_its_answer(project: Project) -> None:
    """In the form in which adopt takes it; the answer is an answer."""
    ran = adopt(project, Shape({"values.yaml": "mig: {strategy: mixed}\n"}, {}))
    assert "--set 'nodePools[0].os=ubuntu22.04'" in ran.json["findings"][0]["remedy"]
    answered = adopt(
        project, Shape({"values.yaml": "mig: {strategy: mixed}\n"}, {}, answers=["nodePools[0].os=ubuntu22.04"])
    )
    assert (answered.code, answered.json["findings"]) == (0, [])


def test_nodes_of_rhcos_are_openshifts(project: Project) -> None:
    """Without its version the driver would be another than the operator's there, so it is asked for."""
    ran = adopt(project, Shape({"values.yaml": "mig: {strategy: mixed}\n"}, {}, answers=["nodePools[0].os=rhcos4.18"]))
    assert [each["path"] for each in ran.json["open"]] == ["spec.cluster.openshift.version"]


def test_the_network_operators_values_are_told(project: Project) -> None:
    """Its chart has an `nfd` too, which makes nothing of it the GPU operator's."""
    ran = adopt(
        project,
        Shape({"values.yaml": "nfd: {enabled: true}\nofedDriver: {deploy: true}\nnvIpam: {deploy: true}\n"}, {}),
    )
    assert ran.code == 4
    assert "Network Operator" in ran.json["findings"][0]["why"]


SALT = """gpu-operator:
  helm.release_present:
  - name: gpus
  - chart: nvidia/gpu-operator
  - namespace: gpu-system
  - version: v25.10.1
  - set: [driver.enabled=false, mig.strategy=mixed]
"""


def test_a_state_of_salt_is_read(project: Project) -> None:
    """Its arguments are a list of maps with one key each."""
    ran = adopt(project, Shape({"gpus.yaml": SALT}, {}))
    assert (ran.code, ran.json["runs"]) == (0, "v25.10.1")
    found = written(project)
    wanted = {
        "driver.enabled": False,
        "mig.strategy": "mixed",
        "cluster.namespace": "gpu-system",
        "nfd.helmRelease": "gpus",
    }
    assert {path: at(found, path) for path in wanted} == wanted


def test_a_name_that_is_too_long_is_a_file_that_is_not_there(project: Project) -> None:
    """Named, or said in a file: as any other that isn't there."""
    name = f"{'a' * 5000}.yaml"
    ran = project.run("adopt", name, "--format", "json")
    assert (ran.code, ran.json["findings"][0]["rule"]) == (4, "GPU001")
    fleet = f"helm: {{chart: gpu-operator, valuesFiles: [{name}], values: {{driver: {{enabled: false}}}}}}\n"
    assert [each["path"] for each in adopt(project, Shape({"fleet.yaml": fleet}, {})).json["open"]] == [name]


OUTSIDE = {
    "Argo CD": APPLICATION.replace("SOURCE", "chart: gpu-operator, helm: {valueFiles: [NAME]}"),
    "helmfile": "releases: [{name: gpu, chart: nvidia/gpu-operator, values: [NAME]}]\n",
    "Terraform": 'resource "helm_release" "x" {\n  chart = "gpu-operator"\n  values = [file("NAME")]\n}\n',
    "a script": "helm install gpus nvidia/gpu-operator -f NAME\n",
    "Flux, of an overlay": "",
}


@pytest.mark.parametrize("name", ["../outside.yaml", "link.yaml", "ABSOLUTE"])
@pytest.mark.parametrize("shape", OUTSIDE)
def test_no_input_reads_outside_of_its_folder(shape: str, name: str, project: Project) -> None:
    """Neither by .. nor by a link nor by the whole path, whatever names the file."""
    outside = project.folder.parent / "outside.yaml"
    outside.write_text("driver: {enabled: false, version: secret}\n")
    (project.folder / "link.yaml").symlink_to(outside)
    name = str(outside) if name == "ABSOLUTE" else name
    files = {
        f"in.{'tf' if shape == 'Terraform' else 'sh' if shape == 'a script' else 'yaml'}": OUTSIDE[shape].replace(
            "NAME", name
        )
    }
    if not OUTSIDE[shape]:
        generator = f"configMapGenerator: [{{name: values, files: [values.yaml={name}]}}]\n"
        release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: gpu-operator}\nspec: "
        release += "{chart: {spec: {chart: gpu-operator}}, valuesFrom: [{kind: ConfigMap, name: values}]}\n"
        files = {"kustomization.yaml": f"{generator}resources: [release.yaml]\n", "release.yaml": release}
    ran = adopt(project, Shape(files, {}, named=len(files)))
    assert "secret" not in ran.out + (project.folder / "policies/x.yaml").read_text()
    assert ran.json["open"]
