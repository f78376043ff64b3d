"""The MPS control daemon: shares a GPU between processes on nodes whose configuration asks for it (operator.md 7.5).

It runs wherever GFD has set nvidia.com/mps.capable=true, as the device plugin's ServiceAccount: both read the same
node label through the same sidecar.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.daemonset import RUN_NVIDIA, daemonset
from ..parts.operand import main_container, operand_pod
from ..parts.pod import Env, Pod
from ..parts.validation import toolkit_wait
from . import device_plugin
from .device_plugin import CONFIG_FILE, add_config_manager, mig_env, mps_root, mps_shm
from .plugin_inputs import DevicePluginInputs

NAME = "nvidia-device-plugin-mps-control-daemon"
MAIN = "mps-control-daemon-ctr"


class MpsControlDaemon(Component[DevicePluginInputs]):
    """The MPS control daemon's DaemonSet. The operator also makes an account of that name, which no pod uses."""

    def manifests(self, inputs: DevicePluginInputs) -> Iterator[Body]:
        common = inputs.common
        template = pod(inputs)
        template.node_selector = {keys.MPS_CAPABLE: "true"}
        yield daemonset(
            common,
            NAME,
            template,
            deploy="device-plugin",
            annotations={keys.SCC: "hostmount-anyuid"},
            gpu_container=MAIN,
        )


def pod(inputs: DevicePluginInputs) -> Pod:
    """The daemon's pod; a first container mounts the shared memory that its clients use."""
    root, shm = mps_root(inputs.mps_root), mps_shm(inputs.mps_root)
    env = Env().field("NODE_NAME", "spec.nodeName").set("NVIDIA_VISIBLE_DEVICES", "all")
    env.set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")
    if inputs.config:
        env.set("CONFIG_FILE", CONFIG_FILE)
    main = main_container(inputs, MAIN, mig_env(env, inputs.mig_strategy), command=["mps-control-daemon"])
    main.mount(shm, "/dev/shm").mount(root, "/mps")  # noqa: S108 - where MPS clients look
    command = ["mps-control-daemon", "mount-shm"]
    mounts = main_container(inputs, "mps-control-daemon-mounts", Env(), command=command)
    mounts.mount(root, "/mps", propagation="Bidirectional")
    init = [toolkit_wait(inputs.common, RUN_NVIDIA), mounts]
    template = operand_pod(inputs, device_plugin.NAME, main, init, [RUN_NVIDIA, root, shm], host_pid=True)
    if inputs.config:
        add_config_manager(
            template, inputs.config, process="/usr/bin/mps-control-daemon", init_resources=inputs.resources
        )
    return template
