"""The device plugins for virtual machines: what they have in common, and that for KubeVirt (operator.md 7.15).

They offer each kind of GPU that is bound to vfio-pci, and each vGPU type, to the kubelet under a name of its own.
"""

from collections.abc import Iterator

from ...api import keys
from ...cluster.pool import Workload
from ...model import Body
from ..component import Component
from ..parts.common_inputs import Common, OperandInputs
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import Container, Env, Volume
from ..parts.validation import READY, validator
from ..plugin.device_plugin import KUBELET_SOCKETS
from ..scripts import argument

NAME = "nvidia-sandbox-device-plugin"


class SandboxDevicePlugin(Component[OperandInputs]):
    """The plugin's DaemonSet and its identity: it talks to the kubelet alone, so it needs no rights in the cluster."""

    def manifests(self, inputs: OperandInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, token=False)
        main = plugin(inputs, NAME, VFIO)
        if not common.traits.sandbox_plugin_writes_cdi:
            main.command = ["nvidia-kubevirt-gpu-device-plugin"]
        waits = [wait(common, "vm-passthrough", "vfio-pci"), wait(common, "vm-vgpu", "vgpu-devices")]
        yield plugin_daemonset(inputs, NAME, main, waits, VFIO)


VFIO = Volume.host("vfio", "/dev/vfio")


def plugin(inputs: OperandInputs, name: str, *devices: Volume) -> Container:
    """The container of the plugin NAME. It finds the devices in the node's /sys, which every container sees, and
    hands out those of DEVICES, folders that are where they are on the node."""
    env = Env()
    main = main_container(inputs, f"{name}-ctr", env.policy(inputs.env))
    main.mount(KUBELET_SOCKETS, "/var/lib/kubelet/device-plugins")
    for volume in devices:
        main.mount(volume, volume.path)
    if inputs.common.traits.sandbox_plugin_writes_cdi:
        env.field("NODE_NAME", "spec.nodeName").field("POD_NAMESPACE", "metadata.namespace")
        main.mount(CDI_ROOT, "/var/run/cdi")
    return main


def plugin_daemonset(
    inputs: OperandInputs, name: str, main: Container, waits: list[Container], *devices: Volume
) -> Body:
    """The DaemonSet of the plugin NAME, which runs MAIN after WAITS; DEVICES as in `plugin`."""
    common = inputs.common
    cdi = [CDI_ROOT] if common.traits.sandbox_plugin_writes_cdi else []
    pod = operand_pod(inputs, name, main, waits, [KUBELET_SOCKETS, VALIDATIONS, *devices, *cdi])
    deploy = name.removeprefix("nvidia-")
    return daemonset(common, f"{name}-daemonset", pod, deploy=deploy, annotations={keys.SCC: name})


def wait(common: Common, workload: Workload, component: str) -> Container:
    """`<COMPONENT>-validation`: a shell that polls for the file by which the sandbox validator says that COMPONENT is
    ready, on nodes that serve WORKLOAD."""
    script = argument("wait-for-sandbox").format(workload=workload, component=component)
    container = validator(common, f"{component}-validation", Env({"NVIDIA_VISIBLE_DEVICES": "void"}), script)
    return container.mount(VALIDATIONS, READY, propagation="HostToContainer")
