"""The vGPU manager: the host driver that lends parts of a GPU to virtual machines (operator.md 7.11).

There is a DaemonSet per OS, and with OpenShift's driver toolkit one per RHCOS version, as with the driver
(driver_pools_inputs.py). The operator replaces its pods one by one whatever runs on the node; so does this, until the
policy says `daemonsets.updateStrategy: OnDelete`.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..driver import driver_features
from ..driver.driver_features import clear_node, evicts
from ..driver.driver_pools_inputs import DriverToolkit
from ..driver.driver_settings_inputs import DriverPod
from ..driver.driver_volumes import DEV_LOG, FIRMWARE, FIRMWARE_PATH, HOST_SYS, OS_RELEASE, RUN_NVIDIA, mount_files
from ..parts.daemonset import daemonset, host_root
from ..parts.operand import operand_access
from ..parts.pod import PRIVILEGED_S0, Container, Env, Pod, Volume
from .sandbox_inputs import VgpuManagerInputs

NAME = "nvidia-vgpu-manager"
MAIN = "nvidia-vgpu-manager-ctr"
VAR_LOG = Volume.host("var-log", "/var/log", "Directory")
CGROUP = Volume.host("cgroup", "/sys/fs/cgroup", "Directory")
VFIO = Volume.host("vfio", "/dev/vfio", "Directory")


class VgpuManager(Component[VgpuManagerInputs]):
    """The vGPU manager's DaemonSets and its rights, which are those of the container that clears the node first."""

    stage = "driver"

    def manifests(self, inputs: VgpuManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, evicts=evicts(inputs.manager))
        for target in inputs.pods:
            labels, pod_labels = driver_features.toolkit_labels(target.toolkit) if target.toolkit else ({}, {})
            yield daemonset(
                common,
                target.name,
                pod(inputs, target),
                app=target.app,
                deploy="vgpu-manager",
                labels=labels,
                pod_labels=pod_labels,
                annotations={keys.SCC: NAME},
                pod_annotations={"kubectl.kubernetes.io/default-container": MAIN},
            )


def pod(inputs: VgpuManagerInputs, target: DriverPod) -> Pod:
    """The manager's pod. It shares the node's processes and memory: the manager runs a process per vGPU."""
    main = manager(inputs, target)
    containers = [main, sidecar(inputs, main, target.toolkit)] if target.toolkit else [main]
    return Pod(
        NAME,
        target.node_selector,
        containers,
        init=[clear_node(inputs.common, inputs.manager, inputs.resources)],
        declared=[
            *(RUN_NVIDIA, OS_RELEASE, CGROUP, VFIO, host_root(inputs.common), HOST_SYS),
            *(VAR_LOG, DEV_LOG, FIRMWARE_PATH, FIRMWARE),
        ],
        host_pid=True,
        host_ipc=True,
        host_network=inputs.host_network,
        pull_secrets=inputs.pull_secrets,
        grace_period=120,
    )


def manager(inputs: VgpuManagerInputs, target: DriverPod) -> Container:
    """The container that installs the host driver and runs its daemons."""
    env = Env().appended()
    if inputs.openshift_version:
        env.set("OPENSHIFT_VERSION", inputs.openshift_version)
    container = Container(
        MAIN,
        target.image,
        inputs.pull_policy,
        command=["nvidia-driver"],
        args=inputs.args or ["init"],
        env=env.update(inputs.env),
        security=PRIVILEGED_S0,
        resources=inputs.resources,
    )
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional").mount(OS_RELEASE, "/host-etc/os-release")
    container.mount(VFIO, VFIO.path).mount(CGROUP, CGROUP.path)
    mount_shared(container)
    mount_files(container, "driver", target)
    return container


def sidecar(inputs: VgpuManagerInputs, main: Container, toolkit: DriverToolkit) -> Container:
    """The driver toolkit's container, beside MAIN."""
    env = driver_features.toolkit_env(toolkit)
    for name, on in (("GDS_ENABLED", inputs.gds), ("GDRCOPY_ENABLED", inputs.gdrcopy)):
        if on:
            env.set(name, True)
    container = driver_features.build_with_toolkit(main, toolkit, env, resources=inputs.toolkit_resources)
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    mount_shared(container)
    return container


def mount_shared(container: Container) -> None:
    """Mount what the manager and the driver toolkit both need of the node."""
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log")
    container.mount(FIRMWARE_PATH, FIRMWARE_PATH.path).mount(FIRMWARE, "/lib/firmware")
