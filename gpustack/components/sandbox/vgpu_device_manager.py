"""The vGPU device manager: makes the vGPU devices that a node's nvidia.com/vgpu.config names (operator.md 7.12)."""

from collections.abc import Iterator

from ...api import keys
from ...catalog import texts
from ...catalog.vgpu import CONFIG_MAP
from ...model import Body
from ..component import Component
from ..driver.driver_volumes import HOST_SYS
from ..parts.common_inputs import Common
from ..parts.daemonset import VALIDATIONS, daemonset, driver_install_dir, host_root
from ..parts.kube import config_map
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import Container, Env, Pod, Volume
from ..parts.validation import READY, validator
from .sandbox_inputs import VgpuDeviceManagerInputs

NAME = "nvidia-vgpu-device-manager"
CONFIG_DIR = "/vgpu-config"


class VgpuDeviceManager(Component[VgpuDeviceManagerInputs]):
    """The manager's DaemonSet, the default sets of devices unless the policy replaces them, and its rights."""

    def manifests(self, inputs: VgpuDeviceManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        if inputs.release:
            data = {"config.yaml": texts.vgpu_devices_config(inputs.release)}
            yield config_map(CONFIG_MAP, common.namespace, data)
        scc_of = {keys.SCC: NAME}
        yield daemonset(common, NAME, pod(inputs), deploy="vgpu-device-manager", annotations=scc_of)


def pod(inputs: VgpuDeviceManagerInputs) -> Pod:
    """The manager, once the vGPU manager works."""
    common = inputs.common
    main = main_container(inputs, NAME, environment(inputs))
    config = Volume.config_map("vgpu-config", inputs.config or CONFIG_MAP)
    main.mount(config, CONFIG_DIR).mount(HOST_SYS, "/sys")
    main.mount(host_root(common), "/host", propagation="HostToContainer")
    main.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")
    declared = [config, HOST_SYS, host_root(common), driver_install_dir(common), VALIDATIONS]
    return operand_pod(inputs, NAME, main, [manager_wait(common)], declared)


def environment(inputs: VgpuDeviceManagerInputs) -> Env:
    """The manager's settings; `vgpuDeviceManager.config.default` wins over the policy's env (operator.md 5.2)."""
    env = Env().field("NAMESPACE", "metadata.namespace").field("NODE_NAME", "spec.nodeName")
    env.set("CONFIG_FILE", f"{CONFIG_DIR}/config.yaml").appended()
    return env.update(inputs.env).set("DEFAULT_VGPU_CONFIG", inputs.default)


def manager_wait(common: Common) -> Container:
    """`vgpu-manager-validation`: polls for the file by which the sandbox validator says that the vGPU manager works,
    that of a pod or, since v26.7.0, one that the node brings."""
    files = ["vgpu-manager-ready", *(["host-vgpu-manager-ready"] if common.traits.vgpu_manager_of_the_node else [])]
    condition = " || ".join(f"[ -f {READY}/{file} ]" for file in files)
    poll = f"until {condition}; do echo waiting for the vGPU manager; sleep 5; done"
    container = validator(common, "vgpu-manager-validation", Env(), poll)
    return container.mount(VALIDATIONS, READY, propagation="Bidirectional")
