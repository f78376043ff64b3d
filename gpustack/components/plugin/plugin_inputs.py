"""Inputs of the device plugin, of MPS and of GPU feature discovery: a function for each component, called as it is."""

from ...cluster.resolve import Cluster
from ...policy.language.base import own
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, OperandInputs, image, operand, pull_policy
from .configs_inputs import plugin_config_map


class PluginConfig(Inputs):
    """The named configurations: the ConfigMap, the entry for nodes without the label, and the image of the sidecar.

    `content` names the content where it is known, so that a change of it restarts the pods."""

    config_map: str
    default: str = ""
    image: str
    pull_policy: str = "IfNotPresent"
    content: str = ""


class DevicePluginInputs(OperandInputs):
    """`mig_strategy` is none, single, mixed or "" (not set); `config` is None without named configurations."""

    mig_strategy: str = ""
    config: PluginConfig | None = None
    mps_root: str = own("devicePlugin.mps.root")
    gds: bool = False
    gdrcopy: bool = False


def device_plugin(cluster: Cluster) -> DevicePluginInputs | None:
    """The inputs for CLUSTER, or None where the device plugin is off."""
    spec = cluster.spec
    section = spec.devicePlugin
    if not section.enabled:
        return None
    return DevicePluginInputs(
        **operand(spec, section, "devicePlugin"),
        mig_strategy=spec.mig.strategy or "",
        config=plugin_config(spec),
        mps_root=section.mps.root,
        gds=bool(spec.gds.enabled),
        gdrcopy=bool(spec.gdrcopy.enabled),
    )


def plugin_config(spec: ClusterPolicySpec) -> PluginConfig | None:
    """Where the named configurations are, or None; the sidecar runs the device plugin's image (operator.md 7.6)."""
    section, config = spec.devicePlugin, plugin_config_map(spec)
    if not config.name:
        return None
    return PluginConfig(
        config_map=config.name,
        default=config.default,
        content=config.digest,
        image=image(spec, section, "devicePlugin"),
        pull_policy=pull_policy(section.imagePullPolicy),
    )


def mps(cluster: Cluster) -> DevicePluginInputs | None:
    """The device plugin's inputs, without what only the plugin itself reads; None where it is off."""
    plugin = device_plugin(cluster)
    return plugin and plugin.model_copy(update={"env": (), "args": (), "gds": False, "gdrcopy": False})


class GfdInputs(OperandInputs):
    """`mig_strategy` and `config` as for the device plugin: GFD labels what the plugin advertises."""

    mig_strategy: str = ""
    config: PluginConfig | None = None


def gfd(cluster: Cluster) -> GfdInputs | None:
    """The inputs for CLUSTER, or None where GFD is off."""
    spec = cluster.spec
    section = spec.gfd
    if not section.enabled:
        return None
    return GfdInputs(**operand(spec, section, "gfd"), mig_strategy=spec.mig.strategy or "", config=plugin_config(spec))
