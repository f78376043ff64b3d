"""The constructs in a cdk8s app of somebody else's."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import cdk8s
import pytest
import yaml

import gpustack.components
from gpustack.cluster import from_policy, from_values
from gpustack.components import DevicePlugin
from gpustack.components.component import Component, Manifest
from gpustack.components.plugin.plugin_inputs import DevicePluginInputs
from gpustack.components.registry import REGISTRY
from gpustack.model import KIND_STAGE, STAGES, InputError
from tests.components.common import common
from tests.project import ROOT, Project


def test_example(tmp_path: Path) -> None:
    """The example app runs as it stands and writes the plugin's objects beside the user's own, each whole and once,
    with what others need before them."""
    command = [sys.executable, str(ROOT / "examples/own_app/main.py"), str(tmp_path / "out")]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=Project(tmp_path, tmp_path).environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (tmp_path / "out").iterdir()
    bodies = list(yaml.safe_load_all(file.read_text()))
    names = [f"{body['kind']}/{body['metadata']['name']}" for body in bodies]
    assert sorted(names) == [
        "ClusterRole/nvidia-device-plugin",
        "ClusterRoleBinding/nvidia-device-plugin",
        "ConfigMap/gpu-sharing",
        "ConfigMap/nvidia-device-plugin-entrypoint",
        "DaemonSet/nvidia-device-plugin-daemonset",
        "ServiceAccount/nvidia-device-plugin",
    ]
    assert names.index("ConfigMap/gpu-sharing") < names.index("DaemonSet/nvidia-device-plugin-daemonset")
    (daemonset,) = (body for body in bodies if body["kind"] == "DaemonSet")
    spec = daemonset["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["containers"]] == ["nvidia-device-plugin", "config-manager"]
    assert {volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume} == {
        "nvidia-device-plugin-entrypoint",
        "gpu-sharing",
    }


def test_bodies_are_the_same_on_both_ways() -> None:
    """What cdk8s synthesises in a user's app is what the compiler takes without asking Node."""
    app = cdk8s.Testing.app()
    chart = cdk8s.Chart(app, "c", disable_resource_name_hashes=True)
    made = DevicePlugin(chart, "x", DevicePluginInputs(common=common(), image="plugin:1"))
    assert cdk8s.Testing.synth(chart) == [resource.body for resource in made.resources()]


def test_a_cluster_is_enough() -> None:
    """A component makes its own inputs of a cluster, which comes from plain data or from a policy file: what it adds is
    what the compiler renders, and nothing where it is off."""
    values = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}, "mig": {"strategy": "mixed"}}
    cluster = from_values(values)
    chart = cdk8s.Chart(cdk8s.Testing.app(), "c", disable_resource_name_hashes=True)
    for entry in REGISTRY:
        inputs = entry.inputs(cluster.spec)
        construct = getattr(gpustack.components, entry.construct)
        made = construct(chart, f"{entry.id}-of-cluster", cluster).resources()
        assert made == (construct(chart, f"{entry.id}-of-inputs", inputs).resources() if inputs else [])
    off = from_values({**values, "devicePlugin": {"enabled": False}})
    assert DevicePlugin(chart, "off", off).resources() == []


def test_a_cluster_from_a_policy_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's layers count, and what is wrong is told as the verbs tell it."""
    project.layer("base", mig={"strategy": "mixed"})
    path = project.policy("a", extends=["base"])
    monkeypatch.chdir(project.folder)
    assert from_policy(path).spec.mig.strategy == "mixed"
    assert from_policy("policies/a.yaml").spec.release == "v26.7.0"
    with pytest.raises(InputError, match="mgi"):
        from_values({"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}, "mgi": {}})


def test_a_construct_of_somebody_elses_has_inputs() -> None:
    """A subclass of theirs takes a cluster as ours does; one that is no component of ours says what to do."""

    class Other(Component[Any]):
        def manifests(self, inputs: Any) -> Any:
            yield from ()

    class Mine(DevicePlugin):
        pass

    cluster = from_values({"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}})
    chart = cdk8s.Chart(cdk8s.Testing.app(), "c")
    assert Mine(chart, "mine", cluster).resources()
    with pytest.raises(TypeError, match="make its inputs yourself"):
        Other(chart, "other", cluster)


def test_every_component_is_public() -> None:
    """Each component of the registry can be imported by name, is a construct, and says a stage that exists."""
    assert set(gpustack.components.__all__) == {entry.construct for entry in REGISTRY}
    for entry in REGISTRY:
        construct = getattr(gpustack.components, entry.construct)
        assert issubclass(construct, Component)
        assert construct is entry.type()
        assert construct.stage in STAGES
        assert construct.__doc__
    with pytest.raises(AttributeError, match="Nothing"):
        _ = gpustack.components.Nothing
    assert set(KIND_STAGE.values()) <= set(STAGES)


def test_type_checkers_know_every_component() -> None:
    """What a type checker is told to import is what the registry has, from the same modules."""
    told = ast.parse(Path(gpustack.components.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    ours = [node for node in told if isinstance(node, ast.ImportFrom) and node.level]
    named = {(node.module, each.name) for node in ours for each in node.names}
    assert named == {(f"{entry.subject}.{entry.module}", entry.construct) for entry in REGISTRY}


def test_names_are_told_without_node(project: Project) -> None:
    """Asking what there is starts no Node; that waits for the first construct."""
    code = "import sys, gpustack.components as c; print(len(c.__all__), 'jsii' in sys.modules)"
    assert project.python(code).out == f"{len(REGISTRY)} False\n"


def test_tree() -> None:
    """Objects hang in the user's tree under names that tell them, so that two of one name in a component are
    refused."""
    chart = cdk8s.Chart(cdk8s.Testing.app(), "c")
    made = DevicePlugin(chart, "x", DevicePluginInputs(common=common(), image="plugin:1"))
    children = made.node.children
    assert all(isinstance(child, Manifest) for child in children)
    assert "DaemonSet-gpu-operator.nvidia-device-plugin-daemonset" in [child.node.id for child in children]
    with pytest.raises(RuntimeError, match="already"):
        Manifest(made, made.resources()[0].body, "operands")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder to run programs in."""
    return Project(tmp_path, tmp_path / "cache")
