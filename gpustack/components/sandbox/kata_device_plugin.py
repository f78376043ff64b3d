"""The device plugin for Kata containers: offers GPUs that are bound to vfio-pci (operator.md 7.16)."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.kube import rule
from ..parts.operand import operand_access, reads_version
from .sandbox_device_plugin import plugin, plugin_daemonset, wait
from .sandbox_inputs import KataDevicePluginInputs

NAME = "nvidia-kata-sandbox-device-plugin"


class KataDevicePlugin(Component[KataDevicePluginInputs]):
    """The plugin's DaemonSet and its rights: it can run GPU feature discovery in a pod, under its own account."""

    def manifests(self, inputs: KataDevicePluginInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(
            common,
            NAME,
            role=[
                rule("", "pods", "create get list watch delete"),
                rule("nfd.k8s-sigs.io", "nodefeatures", "create get list watch update"),
            ],
            cluster=[*reads_version(common), rule("", "nodes pods", "get")],
        )
        main = plugin(inputs, NAME)
        main.env.field("POD_SERVICE_ACCOUNT", "spec.serviceAccountName")
        yield plugin_daemonset(inputs, NAME, main, [wait(common, "vm-passthrough", "vfio-pci")])
