"""The operator validator: which checks run, in which order, and what they are told (operator.md 7.3)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpustack.components import OperatorValidator
from gpustack.components.parts.validation import FLAGS
from gpustack.components.scripts import argument
from gpustack.components.validator.validator_inputs import ValidatorInputs, features
from gpustack.model import Body
from tests.components.common import common, container, env, grants, pod_of, render, spec, validation

NAME = "nvidia-operator-validator"
STACK = ["toolkit-validation", "cuda-validation", "plugin-validation"]


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the validator's inputs."""
    return render(OperatorValidator, ValidatorInputs(common=common(**(changes or {})), image="main:1", **fields))


def pod(changes: dict[str, Any] | None = None, **fields: Any) -> Body:
    """The validator's pod."""
    return pod_of(rendered(changes, **fields), NAME)


def order(found: Body) -> list[str]:
    """The names of its init containers."""
    return [each["name"] for each in found["initContainers"]]


def test_order() -> None:
    """Driver, toolkit, CUDA, device plugin: each check stands on the one before."""
    assert order(pod()) == ["gpustack-wait-for-driver", "driver-validation", *STACK]


def test_no_plugin_check_without_the_device_plugin() -> None:
    """plugin-validation is dropped with the device plugin; the toolkit's check stays whatever is off (case 49)."""
    assert order(pod({"toolkit": False}, plugin=False))[-2:] == STACK[:2]


def test_features_of_the_driver() -> None:
    """The modules of this render's driver are checked after it, because its own check won't (reconciler.md V3)."""
    found = pod(features=("nvidia-fs", "gdrcopy", "nvidia-peermem"))
    names = [f"gpustack-{name}-validation" for name in ("nvidia-fs", "gdrcopy", "nvidia-peermem")]
    assert order(found) == ["gpustack-wait-for-driver", "driver-validation", *names, *STACK]
    fs = container(found, names[0])
    assert env(fs) == {"COMPONENT": "nvidia-fs", "WITH_WAIT": "true"}
    assert fs["securityContext"] == {"privileged": True, "runAsUser": 0, "seLinuxOptions": {"level": "s0"}}
    assert [mount["mountPath"] for mount in fs["volumeMounts"]] == ["/run/nvidia/validations"]


@pytest.mark.parametrize(("host_driver", "checked"), [("true", False), ("false", True)])
def test_features_are_not_checked_where_the_node_brings_the_driver(
    tmp_path: Path, host_driver: str, checked: bool
) -> None:
    """A node with a driver of its own isn't held back by a module that nobody loads there."""
    (tmp_path / "driver-ready").write_text(f"IS_HOST_DRIVER={host_driver}\nNVIDIA_DRIVER_ROOT=/\n")
    tool = tmp_path / "nvidia-validator"
    tool.write_text("#!/bin/sh\necho checked\n")
    tool.chmod(0o755)
    assert ran(tmp_path, "nvidia-fs") == checked


def ran(node: Path, feature: str) -> bool:
    """Whether the check of FEATURE looks for its module on NODE."""
    text = argument("unless-host-driver").format(flag=FLAGS[feature]).replace("/run/nvidia/validations", str(node))
    done = subprocess.run(
        ["/bin/sh", "-c", text],
        capture_output=True,
        text=True,
        check=True,
        timeout=5,
        env={"PATH": f"{node}:/usr/bin:/bin"},
    )
    return "checked" in done.stdout


@pytest.mark.parametrize(("said", "checked"), [("GDS_ENABLED: true", True), ("GDS_ENABLED: false", False), ("", True)])
def test_features_are_not_checked_where_the_nodes_driver_has_none(tmp_path: Path, said: str, checked: bool) -> None:
    """Drivers of a cluster differ: what the node's own says decides; one that says nothing is checked (14)."""
    (tmp_path / "driver-ready").write_text("IS_HOST_DRIVER=false\n")
    (tmp_path / ".driver-ctr-ready").write_text(f"GDRCOPY_ENABLED: true\n{said}\n" if said else "")
    tool = tmp_path / "nvidia-validator"
    tool.write_text("#!/bin/sh\necho checked\n")
    tool.chmod(0o755)
    assert ran(tmp_path, "nvidia-fs") == checked


def test_features_of_several_drivers() -> None:
    """A module that any driver for containers loads is checked, whoever describes the drivers (10)."""
    pools = [{"name": "a"}, {"name": "b", "driver": {"rdma": {"enabled": True}}}]
    assert features(spec(nodePools=pools)) == ("nvidia-peermem",)
    crd = {"useNvidiaDriverCRD": True}
    listed = [{"name": "a"}, {"name": "b", "gdrcopy": {"enabled": True}}]
    assert features(spec(drivers=listed, driver=crd, gds={"enabled": True})) == ("gdrcopy",)
    host = {"name": "c", "driverType": "vgpu-host-manager", "gdrcopy": {"enabled": True}}
    assert features(spec(drivers=[host], driver=crd)) == ()


def test_env_of_each_check() -> None:
    """`validator.<check>.env` reaches the check of that name, `validator.env` and `args` the main container only."""
    found = pod(
        {"validation": validation(driver_env=(("D", "1"),), toolkit_env=(("T", "1"),))},
        env=(("M", "1"),),
        args=("--x",),
        cuda_env=(("C", "1"),),
        plugin_env=(("P", "1"), ("WITH_WORKLOAD", "true")),
    )
    own = {
        name: {"D", "T", "C", "P", "M"} & set(env(container(found, name)))
        for name in ["driver-validation", *STACK, NAME]
    }
    assert own == {"driver-validation": {"D"}, STACK[0]: {"T"}, STACK[1]: {"C"}, STACK[2]: {"P"}, NAME: {"M"}}
    assert env(container(found, "plugin-validation"))["WITH_WORKLOAD"] == "true"
    assert container(found, NAME)["args"] == ["--x"]


def test_workload_pods() -> None:
    """Checks that start a pod are told its image, pull policy, pull secrets and RuntimeClass, and the MIG strategy."""
    check = validation(image="v:1", pull_policy="Always", pull_secrets=("a", "b"))
    found = pod({"validation": check, "runtime_class": "custom"}, mig_strategy="mixed")
    for name in ("cuda-validation", "plugin-validation"):
        variables = env(container(found, name))
        assert variables["VALIDATOR_IMAGE"] == "v:1"
        assert variables["VALIDATOR_IMAGE_PULL_POLICY"] == "Always"
        assert variables["VALIDATOR_IMAGE_PULL_SECRETS"] == "a,b"
        assert variables["VALIDATOR_RUNTIME_CLASS"] == "custom"
    assert env(container(found, "plugin-validation"))["MIG_STRATEGY"] == "mixed"
    assert "MIG_STRATEGY" not in env(container(found, "cuda-validation"))


@pytest.mark.parametrize("changes", [{"nri": True}, {"runtime": "crio", "cdi": False}])
def test_no_runtime_class(changes: dict[str, Any]) -> None:
    """Where pods get no RuntimeClass, workload pods get none; an unset pull policy is passed on as empty (5.5)."""
    found = pod({**changes, "validation": validation(pull_policy="")})
    assert "runtimeClassName" not in found
    variables = env(container(found, "cuda-validation"))
    assert "VALIDATOR_RUNTIME_CLASS" not in variables
    assert variables["VALIDATOR_IMAGE_PULL_POLICY"] == ""


def test_nri_annotation() -> None:
    """With NRI the toolkit's check is the container that gets the GPUs (5.5)."""
    template = rendered({"nri": True})[f"DaemonSet/{NAME}"]["spec"]["template"]
    key = "nvidia.cdi.k8s.io/container.toolkit-validation"
    assert template["metadata"]["annotations"] == {key: "management.nvidia.com/gpu=all"}


def test_driver_folder_has_no_type() -> None:
    """The validator must not make the driver's folder on a node that has none: its hostPath has no type (7.3)."""
    sources = {volume["name"]: volume["hostPath"] for volume in pod()["volumes"]}
    assert sources["driver-install-dir"] == {"path": "/run/nvidia/driver"}


def test_rights() -> None:
    """It handles its workload pods, lists DaemonSets, reads its node; nothing on the operator's own resources (6)."""
    found = rendered()
    assert grants(found[f"Role/{NAME}"]) == {
        *(f"pods:{verb}" for verb in ("create", "get", "list", "delete")),
        *(f"daemonsets:{verb}" for verb in ("get", "list")),
    }
    assert grants(found[f"ClusterRole/{NAME}"]) == {"nodes:get"}


def test_features_of_a_policy() -> None:
    """A feature is checked where its switch is on and this render brings the driver; useHostMofed alone is no RDMA."""
    on: dict[str, Any] = {"gds": {"enabled": True}, "gdrcopy": {"enabled": True}}
    assert features(spec(**on, driver={"rdma": {"enabled": True}})) == ("nvidia-fs", "gdrcopy", "nvidia-peermem")
    assert features(spec(**on, driver={"rdma": {"useHostMofed": True}})) == ("nvidia-fs", "gdrcopy")
    assert features(spec(**on, driver={"enabled": False, "rdma": {"enabled": True}})) == ()


@pytest.mark.parametrize(("release", "known"), [("v25.10.1", False), ("v26.3.0", True), ("v26.7.0", True)])
def test_peermem_is_checked_by_validators_that_can(release: str, known: bool) -> None:
    """Before v26.3.0 the validator has no check nvidia-peermem: its pod would never start (operator-releases.md 10)."""
    assert ("nvidia-peermem" in features(spec(release, driver={"rdma": {"enabled": True}}))) == known
