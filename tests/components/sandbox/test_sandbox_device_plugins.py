"""The device plugins for virtual machines of KubeVirt and for Kata containers (operator.md 7.15, 7.16)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import KataDevicePlugin, SandboxDevicePlugin
from gpustack.components.sandbox import sandbox_inputs
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec
from tests.components.sandbox.common import machines

KUBEVIRT, KATA = "nvidia-sandbox-device-plugin", "nvidia-kata-sandbox-device-plugin"


def bodies(name: str, **sections: Any) -> dict[str, Body]:
    """The objects of plugin NAME for a policy with virtual machines and SECTIONS."""
    if name == KUBEVIRT:
        inputs = sandbox_inputs.sandbox_device_plugin(resolve(machines(**sections)))
        assert inputs is not None
        return render(SandboxDevicePlugin, inputs)
    kata = sandbox_inputs.kata_device_plugin(resolve(machines(sandboxWorkloads={"mode": "kata"}, **sections)))
    assert kata is not None
    return render(KataDevicePlugin, kata)


def pod(name: str, **sections: Any) -> Body:
    """The pod of plugin NAME."""
    return pod_of(bodies(name, **sections), f"{name}-daemonset")


def test_the_mode_chooses_the_plugin() -> None:
    """kubevirt or kata, never both, and none without sandboxWorkloads (1.3)."""
    for mode, there in (("kubevirt", (True, False)), ("kata", (False, True))):
        policy = machines(sandboxWorkloads={"mode": mode})
        found = (
            sandbox_inputs.sandbox_device_plugin(resolve(policy)),
            sandbox_inputs.kata_device_plugin(resolve(policy)),
        )
        assert tuple(inputs is not None for inputs in found) == there
    assert sandbox_inputs.sandbox_device_plugin(resolve(spec())) is None
    assert sandbox_inputs.kata_device_plugin(resolve(spec())) is None


def test_v25_10_knows_no_mode() -> None:
    """There the plugin for KubeVirt is deployed whatever the mode says (operator-releases.md 6.11)."""
    policy = machines(release="v25.10.1", sandboxWorkloads={"mode": "kata"}, kataSandboxDevicePlugin={"enabled": True})
    assert sandbox_inputs.sandbox_device_plugin(resolve(policy)) is not None
    assert sandbox_inputs.kata_device_plugin(resolve(policy)) is None


@pytest.mark.parametrize("name", [KUBEVIRT, KATA])
def test_nodes(name: str) -> None:
    """Each has a deploy label of its own (2.2) and finds the kubelet where it always is (5.4)."""
    found = pod(name, hostPaths={"kubeletRootDir": "/data/kubelet"})
    assert found["nodeSelector"] == {f"nvidia.com/gpu.deploy.{name.removeprefix('nvidia-')}": "true"}
    folder = "/var/lib/kubelet/device-plugins"
    assert mounts(found, f"{name}-ctr")[folder]["from"]["hostPath"] == {"path": folder}


def test_environment() -> None:
    """Both know node and namespace; Kata's also its account, under which it may start pods (7.16)."""
    assert set(env(container(pod(KUBEVIRT), f"{KUBEVIRT}-ctr"))) == {"NODE_NAME", "POD_NAMESPACE"}
    assert env(container(pod(KATA), f"{KATA}-ctr"))["POD_SERVICE_ACCOUNT"] == "spec.serviceAccountName"


def test_v25_10_form() -> None:
    """A command, and neither environment nor CDI folder (operator-releases.md 6.11)."""
    main = container(pod(KUBEVIRT, release="v25.10.1"), f"{KUBEVIRT}-ctr")
    assert main["command"] == ["nvidia-kubevirt-gpu-device-plugin"]
    assert "env" not in main
    assert "/var/run/cdi" not in mounts(pod(KUBEVIRT, release="v25.10.1"), f"{KUBEVIRT}-ctr")


def test_rights() -> None:
    """KubeVirt's plugin has no client for the API server; Kata's runs GPU feature discovery in pods of its own."""
    assert set(bodies(KUBEVIRT)) == {f"ServiceAccount/{KUBEVIRT}", f"DaemonSet/{KUBEVIRT}-daemonset"}
    assert "pods:create" in grants(bodies(KATA)[f"Role/{KATA}"])
    on_openshift = {"cluster": {"platform": "openshift"}, "nodePools": []}
    scc = "securitycontextconstraints=privileged:use"
    assert grants(bodies(KUBEVIRT, **on_openshift)[f"Role/{KUBEVIRT}"]) == {scc}


@pytest.mark.parametrize(
    ("workload", "file", "passes"),
    [("vm-passthrough", "vfio-pci", True), ("vm-vgpu", "", True), ("vm-passthrough", "", False)],
)
def test_waits(workload: str, file: str, passes: bool, tmp_path: Path) -> None:
    """A wait passes at once where the node serves something else, and else waits for the validator's file (7.15)."""
    (tmp_path / "workload-type").write_text(workload)
    if file:
        (tmp_path / f"{file}-ready").touch()
    text = container(pod(KUBEVIRT), "vfio-pci-validation")["args"][0]
    text = text.replace("/run/nvidia/validations", str(tmp_path)).replace("sleep 5", "exit 3")
    done = subprocess.run(["sh", "-c", text], check=False, capture_output=True)
    assert done.returncode == (0 if passes else 3)


def test_pull_secrets() -> None:
    """The validator's first, then the plugin's, each once (4)."""
    inputs = sandbox_inputs.sandbox_device_plugin(
        resolve(machines(sandboxDevicePlugin={"imagePullSecrets": ["b", "a"]}))
    )
    assert inputs is not None
    check = common().validation.model_copy(update={"pull_secrets": ("a",)})
    inputs = inputs.model_copy(update={"common": inputs.common.model_copy(update={"validation": check})})
    found = pod_of(render(SandboxDevicePlugin, inputs), f"{KUBEVIRT}-daemonset")["imagePullSecrets"]
    assert found == [{"name": "a"}, {"name": "b"}]
