"""The sidecar that hands a node its own device-plugin configuration (operator.md 7.4).

`devicePlugin.config.name` is a ConfigMap with several named configurations; the node label
nvidia.com/device-plugin.config picks one. An init container writes the picked file before the main container starts, a
sidecar rewrites it when the label changes and sends a signal. The device plugin, GFD and the MPS daemon share this.
"""

from collections.abc import Mapping
from typing import Any

from ...api import keys
from ..parts.common_inputs import named_after
from ..parts.pod import PRIVILEGED, Container, Env, Pod, Volume
from .plugin_inputs import PluginConfig

CONFIG_FILE = "/config/config.yaml"


def add_config_manager(
    pod: Pod, config: PluginConfig, *, process: str, init_resources: Mapping[str, Any] | None
) -> None:
    """Let the first container of POD read its configuration; PROCESS is what the sidecar signals on a change.

    That its environment says where is the component's to do: each has its own order of settings.
    """
    chosen = Volume.empty_dir("config")
    taken = {"config", *(volume.name for volume in pod.declared)}
    available = Volume.config_map(named_after(config.config_map, "available-configs", taken), config.config_map)
    pod.declared = [*pod.declared, available, chosen]
    main = pod.containers[0]
    init = Container(
        "config-manager-init", config.image, config.pull_policy, command=["config-manager"], resources=init_resources
    )
    init.env = manager_env(config, oneshot=True, signal="", process="")
    sidecar = Container(
        "config-manager", config.image, config.pull_policy, command=["config-manager"], security=PRIVILEGED
    )
    sidecar.env = manager_env(config, oneshot=False, signal="1", process=process)
    sidecar.resources = main.resources
    for container in (main, init, sidecar):
        container.mount(chosen, "/config").mount(available, "/available-configs")
    pod.init.append(init)
    pod.containers.append(sidecar)
    pod.share_process_namespace = True
    pod.config_digest = config.content


def manager_env(config: PluginConfig, *, oneshot: bool, signal: str, process: str) -> Env:
    """What the sidecar's program is told; without a signal it runs once and ends."""
    env = Env().set("ONESHOT", oneshot).set("KUBECONFIG", "").field("NODE_NAME", "spec.nodeName")
    env.set("NODE_LABEL", keys.PLUGIN_CONFIG).set("CONFIG_FILE_SRCDIR", "/available-configs")
    env.set("CONFIG_FILE_DST", CONFIG_FILE).set("DEFAULT_CONFIG", config.default)
    env.set("SEND_SIGNAL", not oneshot).set("SIGNAL", signal).set("PROCESS_TO_SIGNAL", process)
    return env.appended().set("FALLBACK_STRATEGIES", "empty")
