"""The vGPU device manager (operator.md 7.12, 9.4)."""

from __future__ import annotations

from typing import Any

from gpustack.catalog import texts
from gpustack.catalog.traits import Traits
from gpustack.cluster.resolve import resolve
from gpustack.components import VgpuDeviceManager
from gpustack.components.plugin.configs_inputs import from_cluster as configs
from gpustack.components.sandbox.sandbox_inputs import VgpuDeviceManagerInputs, vgpu_device_manager
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec
from tests.components.sandbox.common import machines

NAME, DEFAULT = "nvidia-vgpu-device-manager", "default-vgpu-devices-config"


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the manager's inputs."""
    return render(VgpuDeviceManager, VgpuDeviceManagerInputs(common=common(**(changes or {})), image="vdm:1", **fields))


def inputs(**section: Any) -> VgpuDeviceManagerInputs:
    """The inputs for a policy whose SECTION vgpuDeviceManager is this."""
    found = vgpu_device_manager(resolve(machines(vgpuDeviceManager=section)))
    assert found is not None
    return found


def test_default_sets() -> None:
    """The release's sets are rendered as the catalogue has them, mounted and named `default` (7.12)."""
    bodies = rendered(release="v26.7.0")
    assert bodies[f"ConfigMap/{DEFAULT}"]["data"] == {"config.yaml": texts.vgpu_devices_config("v26.7.0")}
    pod = pod_of(bodies, NAME)
    assert mounts(pod, NAME)["/vgpu-config"]["from"]["configMap"] == {"name": DEFAULT}
    assert env(container(pod, NAME))["DEFAULT_VGPU_CONFIG"] == "default"


def test_own_sets() -> None:
    """A ConfigMap of the policy replaces them; one inline is rendered under a name of ours."""
    named = inputs(config={"name": "mine", "default": "half"})
    assert (named.config, named.default, named.release) == ("mine", "half", "")
    assert f"ConfigMap/{DEFAULT}" not in rendered(config="mine")
    policy = machines(vgpuDeviceManager={"config": {"data": {"config.yaml": "version: v1\n"}}})
    maps = configs(resolve(policy))
    assert maps is not None
    assert maps.config_maps == {"gpustack-vgpu-devices-config": {"config.yaml": "version: v1\n"}}
    found = vgpu_device_manager(resolve(policy))
    assert found is not None
    assert found.config == "gpustack-vgpu-devices-config"


def test_the_default_set_wins_over_the_environment() -> None:
    """DEFAULT_VGPU_CONFIG is the one variable that the policy's env can't set (5.2)."""
    pod = pod_of(rendered(env=(("DEFAULT_VGPU_CONFIG", "x"), ("NAMESPACE", "y")), default="half"), NAME)
    found = env(container(pod, NAME))
    assert (found["DEFAULT_VGPU_CONFIG"], found["NAMESPACE"]) == ("half", "y")


def test_it_waits_for_the_vgpu_manager() -> None:
    """That of a pod or of the node; releases before v26.7 know only the former (row 31)."""

    def wait(changes: dict[str, Any]) -> str:
        return str(container(pod_of(rendered(changes), NAME), "vgpu-manager-validation")["args"][0])

    assert "/vgpu-manager-ready" in wait({})
    assert "/host-vgpu-manager-ready" in wait({})
    assert "/host-vgpu-manager-ready" not in wait({"traits": Traits.of("v26.3.3")})


def test_rights() -> None:
    """It lists the pods that hold devices, and watches and labels its node."""
    bodies = rendered()
    assert grants(bodies[f"Role/{NAME}"]) == {"pods:list"}
    assert grants(bodies[f"ClusterRole/{NAME}"]) == {"nodes:get", "nodes:list", "nodes:watch", "nodes:update"}


def test_when_it_is_there() -> None:
    """With sandboxWorkloads on, unless it is switched off (1.3)."""
    assert vgpu_device_manager(resolve(spec())) is None
    assert vgpu_device_manager(resolve(machines(vgpuDeviceManager={"enabled": False}))) is None
    assert inputs().release == "v26.7.0"
