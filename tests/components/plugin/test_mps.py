"""The MPS control daemon (operator.md 7.5)."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components import MpsControlDaemon
from gpustack.components.plugin.plugin_inputs import DevicePluginInputs, PluginConfig, mps
from gpustack.model import Body
from tests.components.common import common, container, env, mounts, pod_of, render, spec

NAME = "nvidia-device-plugin-mps-control-daemon"
MAIN = "mps-control-daemon-ctr"
CONFIG = PluginConfig(config_map="configs", default="any", image="plugin:1")


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the daemon's inputs."""
    return render(MpsControlDaemon, DevicePluginInputs(common=common(**(changes or {})), image="plugin:1", **fields))


def test_identity() -> None:
    """It runs as the device plugin (6, case 01), and has no identity of its own, which no pod would use."""
    for found in (rendered(), rendered({"openshift": True})):
        assert set(found) == {f"DaemonSet/{NAME}"}
        assert pod_of(found, NAME)["serviceAccountName"] == "nvidia-device-plugin"


def test_pod() -> None:
    """It runs where GFD has found MPS possible, sees the node's processes, and mounts its memory before it starts."""
    body = pod_of(rendered(mig_strategy="single"), NAME)
    assert body["nodeSelector"] == {"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/mps.capable": "true"}
    assert (body["hostPID"], body["runtimeClassName"]) == (True, "nvidia")
    assert [each["name"] for each in body["initContainers"]] == ["toolkit-validation", "mps-control-daemon-mounts"]
    first, main = container(body, "mps-control-daemon-mounts"), container(body, MAIN)
    assert (first["command"], main["command"]) == (["mps-control-daemon", "mount-shm"], ["mps-control-daemon"])
    assert mounts(body, "mps-control-daemon-mounts")["/mps"]["mountPropagation"] == "Bidirectional"
    assert env(main) == {
        "NODE_NAME": "spec.nodeName",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "MIG_STRATEGY": "single",
        "NVIDIA_MIG_MONITOR_DEVICES": "all",
    }
    found = mounts(body, MAIN)
    assert found["/dev/shm"]["from"]["hostPath"] == {"path": "/run/nvidia/mps/shm"}  # noqa: S108 - where clients look
    assert found["/mps"]["from"]["hostPath"] == {"path": "/run/nvidia/mps", "type": "DirectoryOrCreate"}
    assert mounts(body, "toolkit-validation")["/run/nvidia"]["from"]["hostPath"]["type"] == "Directory"


def test_mps_root() -> None:
    """Another root moves both volumes (case 60)."""
    found = mounts(pod_of(rendered(mps_root="/x"), NAME), MAIN)
    assert [found[path]["from"]["hostPath"]["path"] for path in ("/mps", "/dev/shm")] == ["/x", "/x/shm"]  # noqa: S108


def test_named_configurations() -> None:
    """The config manager comes last of the init containers and signals the daemon; with the host's processes in view
    the containers needn't share theirs (7.4, 7.5)."""
    body = pod_of(rendered(config=CONFIG), NAME)
    assert [each["name"] for each in body["initContainers"]][-1] == "config-manager-init"
    assert env(container(body, "config-manager"))["PROCESS_TO_SIGNAL"] == "/usr/bin/mps-control-daemon"
    assert env(container(body, MAIN))["CONFIG_FILE"] == "/config/config.yaml"
    assert "shareProcessNamespace" not in body


def test_policy() -> None:
    """It goes with the device plugin: image, resources, root and network, but neither args nor env (5.2, 7.5)."""
    assert mps(resolve(spec(devicePlugin={"enabled": False}))) is None
    section = {
        "args": ["--x"],
        "env": [{"name": "A", "value": "b"}],
        "hostNetwork": True,
        "resources": {"limits": {"cpu": "1"}},
    }
    found = mps(resolve(spec(devicePlugin=section, gds={"enabled": True})))
    assert found is not None
    assert (found.args, found.env, found.gds) == ((), (), False)
    assert (found.host_network, found.resources) == (True, {"limits": {"cpu": "1"}})
    body = pod_of(render(MpsControlDaemon, found), NAME)
    assert (
        container(body, MAIN)["resources"]
        == container(body, "mps-control-daemon-mounts")["resources"]
        == found.resources
    )
    plain = mps(resolve(spec()))
    assert plain == mps(resolve(spec(devicePlugin={"args": ["--x"], "env": [{"name": "A", "value": "b"}]})))
