"""The device plugin: tells the kubelet which GPUs, MIG instances and shared replicas the node has (operator.md 7.4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.common_inputs import named_after
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset, driver_install_dir, host_root
from ..parts.kube import config_map
from ..parts.operand import from_script, operand_access, operand_pod
from ..parts.pod import PRIVILEGED, Container, Env, Pod, Volume
from ..parts.template import template
from ..parts.validation import toolkit_wait
from ..scripts import entrypoint, script
from .plugin_inputs import DevicePluginInputs, PluginConfig

NAME = "nvidia-device-plugin"
DAEMONSET = "nvidia-device-plugin-daemonset"
ENTRYPOINT = "nvidia-device-plugin-entrypoint"
CONFIG_FILE = "/config/config.yaml"


class DevicePlugin(Component[DevicePluginInputs]):
    """The device plugin's DaemonSet and entry point, and its rights. The plugin itself asks the kubelet alone."""

    def manifests(self, inputs: DevicePluginInputs) -> Iterator[Body]:
        common = inputs.common
        configured = inputs.config is not None
        yield from operand_access(common, NAME, token=configured, configured=configured)
        entry = "device-plugin" if common.traits.plugin_detects_modules else "device-plugin-plain"
        yield config_map(ENTRYPOINT, common.namespace, {"entrypoint.sh": script(entry)}, labels={"app": DAEMONSET})
        yield daemonset(
            common,
            DAEMONSET,
            pod(inputs),
            deploy="device-plugin",
            annotations={keys.SCC: "hostmount-anyuid"},
            gpu_container=NAME,
        )


def pod(inputs: DevicePluginInputs) -> Pod:
    """The plugin's pod: it talks to the kubelet by its socket folder and to the driver by the driver's files."""
    common = inputs.common
    main = from_script(inputs, NAME, environment(inputs), ENTRYPOINT)
    main.mount(KUBELET_SOCKETS, "/var/lib/kubelet/device-plugins")
    main.mount(VALIDATIONS, "/run/nvidia/validations")
    main.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")
    main.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    main.mount(CDI_ROOT, "/var/run/cdi")
    main.mount(mps_shm(inputs.mps_root), "/dev/shm")  # noqa: S108 - where MPS clients look
    main.mount(mps_root(inputs.mps_root), "/mps")
    declared = [
        *(entrypoint(ENTRYPOINT), KUBELET_SOCKETS, VALIDATIONS, driver_install_dir(common), host_root(common)),
        *(CDI_ROOT, mps_root(inputs.mps_root), mps_shm(inputs.mps_root)),
    ]
    made = operand_pod(inputs, NAME, main, [toolkit_wait(common, VALIDATIONS)], declared)
    if inputs.config:
        add_config_manager(made, inputs.config, process=NAME, init_resources=inputs.resources)
    return made


KUBELET_SOCKETS = Volume.host("device-plugin", "/var/lib/kubelet/device-plugins")


def mps_root(path: str) -> Volume:
    """The folder PATH of the node that MPS daemons and their clients share."""
    return Volume.host("mps-root", path, "DirectoryOrCreate")


def mps_shm(path: str) -> Volume:
    """The shared memory below PATH."""
    return Volume.host("mps-shm", f"{path}/shm")


def environment(inputs: DevicePluginInputs) -> Env:
    """The plugin's settings; the policy's `devicePlugin.env` wins over all of them."""
    common = inputs.common
    env = Env(template(__file__, "environment", mps_root=inputs.mps_root)).appended()
    if inputs.gds:
        env.set("GDS_ENABLED", True).set("MOFED_ENABLED", True)
    if inputs.gdrcopy:
        env.set("GDRCOPY_ENABLED", True)
    if inputs.config:
        env.set("CONFIG_FILE", CONFIG_FILE)
    mig_env(env, inputs.mig_strategy)
    if common.cdi:
        env.set("CDI_ENABLED", True).set("DEVICE_LIST_STRATEGY", "cdi-annotations,cdi-cri").set(
            "CDI_ANNOTATION_PREFIX", "cdi.k8s.io/"
        )
        if common.toolkit:
            env.set("NVIDIA_CDI_HOOK_PATH", f"{common.install_dir}/toolkit/nvidia-cdi-hook")
    return env.policy(inputs.env)


def mig_env(env: Env, strategy: str) -> Env:
    """How MIG devices are advertised; without MIG (strategy none) nothing monitors them (operator.md 7.4)."""
    if strategy:
        env.set("MIG_STRATEGY", strategy)
    if strategy != "none":
        env.set("NVIDIA_MIG_MONITOR_DEVICES", "all")
    return env


def add_config_manager(
    pod: Pod, config: PluginConfig, *, process: str, init_resources: Mapping[str, Any] | None
) -> None:
    """Let the first container of POD read the configuration of its node; PROCESS is signalled on a change (operator.md
    7.4). GFD and the MPS daemon share this.

    `devicePlugin.config.name` is a ConfigMap with several named configurations; the node label
    nvidia.com/device-plugin.config picks one. An init container writes the picked file before the main container
    starts, a sidecar rewrites it when the label changes and sends a signal. That the main container's environment says
    where is the component's to do: each has its own order of settings."""
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
