"""`devicePlugin`: the plugin that offers a node's GPUs to the kubelet, and its named configurations, which `gfd`, GPU
feature discovery, follows as it labels nodes.
"""

from typing import Annotated

from .base import Own, Section, mapping, own, section
from .operand import Operand
from .types import ConfigData, HostPath, LabelValue, ObjectName


class NamedConfigs(Section):
    """A ConfigMap whose keys are configurations that nodes choose from."""

    name: ObjectName | None = None
    """Name of the ConfigMap in the operator's namespace. Absent or empty: none, nodes get the plain behaviour."""
    create: bool = False
    """Whether the ConfigMap is rendered from `data`; else it exists already. Absent: true where there is `data`."""
    data: ConfigData = mapping()
    """The configurations by name, each the text of one configuration file. Absent: none."""


class DevicePluginConfig(NamedConfigs):
    """Configurations of the device plugin and of GPU feature discovery. `nodePools[].sharing` writes them for you."""

    default: LabelValue | None = None
    """The configuration of nodes without the label `nvidia.com/device-plugin.config`; where all pools share by
    `nodePools[].sharing`, the name of one of them. Absent or empty: the plain behaviour."""


class PluginMps(Section):
    """Multi-process service, run by a control daemon beside the plugin on nodes that share by MPS."""

    root: Annotated[HostPath, Own("devicePlugin.mps.root")] = own("devicePlugin.mps.root")
    """Folder on the node for the pipes and logs of MPS. Absent or empty: /run/nvidia/mps."""


class DevicePlugin(Operand):
    """The device plugin, which offers a node's GPUs to the kubelet."""

    config: DevicePluginConfig = section()
    mps: PluginMps = section()


class Gfd(Operand):
    """GPU feature discovery, which labels nodes with what is offered: it follows `devicePlugin.config`."""
