"""The sandbox validator: proves that a node is fit for virtual machines (operator.md 7.13, 14).

Its init containers run on every such node; what does not fit the node's workload passes at once. They write the files
that the device plugins and the vGPU device manager wait for. None of them asks who owns the vGPU manager's DaemonSet
(the trap of the driver's check, validation.py): they look for its files and devices on the node.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.common_inputs import DEFAULT_DRIVER_DIR
from ..parts.daemonset import VALIDATIONS, daemonset, host_root
from ..parts.operand import operand_access
from ..parts.pod import PRIVILEGED_ROOT, Container, Env, Pairs, Pod, Volume
from ..parts.validation import DRIVER_CHECK, READY, own_feature_check, validator, verdict
from ..validator.validator import PART_OF
from .sandbox_inputs import SandboxValidatorInputs

NAME = "nvidia-sandbox-validator"


class SandboxValidator(Component[SandboxValidatorInputs]):
    """The validator's DaemonSet and its rights."""

    def manifests(self, inputs: SandboxValidatorInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        yield daemonset(common, NAME, pod(inputs), deploy="sandbox-validator", part_of=PART_OF)


def pod(inputs: SandboxValidatorInputs) -> Pod:
    """The checks, and the word that they passed. Whatever lies in the folder of results goes with the pod."""
    template = verdict(inputs, NAME, "this node is fit for virtual machines", checks(inputs), leaves="*")
    template.declared = [VALIDATIONS, DRIVER, host_root(inputs.common)]
    return template


# Not hostPaths.driverInstallDir: the vGPU manager installs nowhere else.
DRIVER = Volume.host("driver-install-path", DEFAULT_DRIVER_DIR)


def checks(inputs: SandboxValidatorInputs) -> Iterator[Container]:
    """The checks. The first is there wherever `ccManager` is on, also where no such manager runs (operator.md 1.3)."""
    root = host_root(inputs.common)
    if inputs.cc_manager:
        yield own_feature_check(inputs.common, "cc-manager")
    vfio = workload_check(inputs, "vfio-pci", inputs.vfio_env)
    vfio.mount(root, "/host", read_only=True, propagation="HostToContainer")
    yield vfio.mount(VALIDATIONS, READY, propagation="Bidirectional")
    manager = workload_check(inputs, "vgpu-manager", inputs.vgpu_manager_env)
    manager.mount(root, "/host", read_only=True, propagation="HostToContainer")
    manager.mount(DRIVER, DEFAULT_DRIVER_DIR, propagation="HostToContainer")
    yield manager.mount(VALIDATIONS, READY, propagation="Bidirectional")
    devices = workload_check(inputs, "vgpu-devices", inputs.vgpu_devices_env)
    devices.security = PRIVILEGED_ROOT
    yield devices.mount(VALIDATIONS, READY, propagation="Bidirectional")


def workload_check(inputs: SandboxValidatorInputs, component: str, policy_env: Pairs) -> Container:
    """A check that depends on what the node serves."""
    env = Env({"WITH_WAIT": "true", "COMPONENT": component}).field("NODE_NAME", "spec.nodeName")
    env.appended().set("DEFAULT_GPU_WORKLOAD_CONFIG", inputs.workload).policy(policy_env)
    return validator(inputs.common, f"{component}-validation", env, security=DRIVER_CHECK)
