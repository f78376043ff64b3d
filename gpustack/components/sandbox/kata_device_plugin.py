"""The device plugin for Kata containers: offers GPUs that are bound to vfio-pci (operator.md 7.16)."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.common_inputs import OperandInputs
from ..parts.operand import operand_access
from .sandbox_device_plugin import plugin, plugin_daemonset, wait

NAME = "nvidia-kata-sandbox-device-plugin"


class KataDevicePlugin(Component[OperandInputs]):
    """The plugin's DaemonSet and its rights."""

    def manifests(self, inputs: OperandInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        main = plugin(inputs, NAME)
        main.env.field("POD_SERVICE_ACCOUNT", "spec.serviceAccountName")
        yield plugin_daemonset(inputs, NAME, main, [wait(common, "vm-passthrough", "vfio-pci")])
