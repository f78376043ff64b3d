"""The cc-manager: turns confidential computing of GPUs on and off, as nvidia.com/cc.mode says (operator.md 7.17)."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..driver.driver_volumes import HOST_SYS, RUN_NVIDIA
from ..parts.daemonset import daemonset
from ..parts.operand import main_container, operand_access
from ..parts.pod import PRIVILEGED_S0, Env, Pod
from .sandbox_inputs import CcManagerInputs
from .vfio_manager import RESOURCES

NAME = "nvidia-cc-manager"
READY_FILE = "/run/nvidia/validations/.cc-manager-ctr-ready"
CAPABLE_DEVICES = "0x2322,0x2331"
"""PCI ids of GPUs that can, as far as releases before v26.3 know; newer ones ask the GPU."""


class CcManager(Component[CcManagerInputs]):
    """The manager's DaemonSet and its rights."""

    def manifests(self, inputs: CcManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        yield daemonset(common, NAME, pod(inputs), select_by="name", deploy="cc-manager")


def pod(inputs: CcManagerInputs) -> Pod:
    """The manager, which waits for nothing: a GPU changes its mode before anything uses it."""
    resources, end = inputs.resources or RESOURCES, ["/bin/rm", "-f", READY_FILE]
    main = main_container(inputs, NAME, environment(inputs), PRIVILEGED_S0, resources=resources, pre_stop=end)
    main.mount(HOST_SYS, "/sys").mount(RUN_NVIDIA, "/run/nvidia")
    selector = {}
    if not inputs.common.traits.cc_manager_for_kata:
        main.command = ["k8s-cc-manager"]
        main.pre_stop = ["/bin/sh", "-c", f"rm -f {READY_FILE}"]
        selector = {"nvidia.com/cc.capable": "true"}
    return Pod(
        NAME,
        selector,
        [main],
        declared=[HOST_SYS, RUN_NVIDIA],
        host_network=inputs.host_network,
        pull_secrets=inputs.pull_secrets,
        grace_period=30,
    )


def environment(inputs: CcManagerInputs) -> Env:
    """The manager's settings; the policy's `ccManager.env` wins over all of them."""
    env = Env().field("NODE_NAME", "spec.nodeName")
    if not inputs.common.traits.cc_manager_for_kata:
        env.set("CC_CAPABLE_DEVICE_IDS", CAPABLE_DEVICES)
    env.set("NVIDIA_VISIBLE_DEVICES", "void")
    if inputs.mode:
        env.set("DEFAULT_CC_MODE", inputs.mode)
    return env.policy(inputs.env)
