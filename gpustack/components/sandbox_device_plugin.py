"""The device plugins for virtual machines: what they have in common, and that for KubeVirt (operator.md 7.15).

They offer each kind of GPU that is bound to vfio-pci, and each vGPU type, to the kubelet under a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Body
from ..policy.workloads import Workload
from .component import Component
from .daemonset import CDI_ROOT, VALIDATIONS, daemonset
from .inputs.common import Common, OperandInputs
from .inputs.sandbox_device_plugin import SandboxDevicePluginInputs
from .kube import PRIVILEGED_SCC, access
from .pod import PRIVILEGED, Container, Env, Pod, Volume, unique
from .scc import scc
from .validation import READY, validator

NAME = "nvidia-sandbox-device-plugin"


class SandboxDevicePlugin(Component[SandboxDevicePluginInputs]):
    """The plugin's DaemonSet and its identity: it talks to the kubelet alone, so it needs no rights in the cluster."""

    def manifests(self, inputs: SandboxDevicePluginInputs) -> Iterator[Body]:
        common = inputs.common
        yield from access(NAME, common.namespace, role=[PRIVILEGED_SCC] if common.openshift else [])
        if common.openshift:
            yield scc(NAME, common.namespace)
        main = plugin(inputs, NAME)
        main.mount(Volume.host("vfio", "/dev/vfio"), "/dev/vfio")
        if not common.traits.sandbox_plugin_writes_cdi:
            main.command = ["nvidia-kubevirt-gpu-device-plugin"]
        waits = [wait(common, "vm-passthrough", "vfio-pci"), wait(common, "vm-vgpu", "vgpu-devices")]
        yield plugin_daemonset(inputs, NAME, main, waits)


def plugin(inputs: OperandInputs, name: str) -> Container:
    """The container of the plugin NAME. It finds the devices in the node's /sys, which every container sees."""
    env = Env()
    main = Container(
        f"{name}-ctr",
        inputs.image,
        inputs.pull_policy,
        args=inputs.args,
        env=env.policy(inputs.env),
        security=PRIVILEGED,
        resources=inputs.resources,
    )
    main.mount(Volume.host("device-plugin", "/var/lib/kubelet/device-plugins"), "/var/lib/kubelet/device-plugins")
    if inputs.common.traits.sandbox_plugin_writes_cdi:
        env.field("NODE_NAME", "spec.nodeName").field("POD_NAMESPACE", "metadata.namespace")
        main.mount(CDI_ROOT, "/var/run/cdi")
    return main


def plugin_daemonset(inputs: OperandInputs, name: str, main: Container, waits: list[Container]) -> Body:
    """The DaemonSet of the plugin NAME, which runs MAIN after WAITS."""
    common = inputs.common
    pod = Pod(
        name,
        {},
        [main],
        init=waits,
        host_network=inputs.host_network,
        pull_secrets=unique([*common.validation.pull_secrets, *inputs.pull_secrets]),
    )
    deploy = name.removeprefix("nvidia-")
    return daemonset(common, f"{name}-daemonset", pod, deploy=deploy, annotations={"openshift.io/scc": name})


def wait(common: Common, workload: Workload, component: str) -> Container:
    """`<COMPONENT>-validation`: a shell that polls for the file by which the sandbox validator says that COMPONENT is
    ready, on nodes that serve WORKLOAD.
    """
    kind, ready = f"{READY}/workload-type", f"{READY}/{component}-ready"
    container = validator(common, f"{component}-validation", Env({"NVIDIA_VISIBLE_DEVICES": "void"}))
    container.args = [
        "\n".join(
            (
                f"until [ -f {kind} ]; do echo waiting for the sandbox validator; sleep 5; done",
                f'if [ "$(cat {kind})" != {workload} ]; then exit 0; fi',
                f"until [ -f {ready} ]; do echo waiting for {component}; sleep 5; done",
            )
        )
    ]
    return container.mount(VALIDATIONS, READY, propagation="HostToContainer")
