"""The operator validator: proves that a node's driver, toolkit, CUDA and device plugin work, in turn (operator.md 7.3).

Its init containers write the `*-ready` files that all other operands wait for, so a pod that hangs here tells which
part of the node is broken. It runs in every cluster, whatever else is on.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.daemonset import VALIDATIONS, daemonset, driver_install_dir, host_dev_char, host_root
from ..parts.operand import operand_access
from ..parts.pod import Container, Env, Pairs, Pod
from ..parts.validation import READY, driver_checks, feature_check, own_feature_check, validator, verdict
from .validator_inputs import ValidatorInputs

NAME = "nvidia-operator-validator"
PART_OF = {"app.kubernetes.io/part-of": "gpu-operator"}


class OperatorValidator(Component[ValidatorInputs]):
    """The validator's DaemonSet and its rights.

    Its workload pods copy the DaemonSet's owners; a rendered one has none, so the operator's rights on finalizers of
    its custom resources have no use here."""

    def manifests(self, inputs: ValidatorInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        waits = "toolkit-validation"
        yield daemonset(common, NAME, pod(inputs), deploy="operator-validator", part_of=PART_OF, gpu_container=waits)


def pod(inputs: ValidatorInputs) -> Pod:
    """The checks, and the word that they passed. Files that say "ready" go with the pod."""
    common, install_dir = inputs.common, driver_install_dir(inputs.common, "")
    driver = driver_checks(common, install_dir, root_first=True)
    checks = [*driver, *feature_checks(inputs), *stack_checks(inputs)]
    template = verdict(inputs, NAME, "everything on this node is validated", checks, leaves="*-ready")
    template.declared = [VALIDATIONS, install_dir, host_root(common), host_dev_char(common)]
    return template


def feature_checks(inputs: ValidatorInputs) -> Iterator[Container]:
    """The checks of the modules beside the driver, as the release has them."""
    check = feature_check if inputs.common.traits.features_in_driver_validation else own_feature_check
    yield from (check(inputs.common, feature) for feature in inputs.features)


def stack_checks(inputs: ValidatorInputs) -> Iterator[Container]:
    """The checks of what stands on the driver. They fail at once and rely on the restart of the pod."""
    toolkit = Env({"NVIDIA_VISIBLE_DEVICES": "all", "WITH_WAIT": "false", "COMPONENT": "toolkit"})
    yield stack_check(inputs, "toolkit-validation", toolkit, inputs.common.validation.toolkit_env)
    cuda = Env({"WITH_WAIT": "false", "COMPONENT": "cuda"})
    yield stack_check(inputs, "cuda-validation", workload_env(inputs, cuda), inputs.cuda_env)
    if inputs.plugin:
        plugin = Env({"COMPONENT": "plugin", "WITH_WAIT": "false", "WITH_WORKLOAD": "false"})
        plugin.set("MIG_STRATEGY", inputs.mig_strategy)
        yield stack_check(inputs, "plugin-validation", workload_env(inputs, plugin), inputs.plugin_env)


def stack_check(inputs: ValidatorInputs, name: str, env: Env, policy_env: Pairs) -> Container:
    """One of these checks; POLICY_ENV wins over ENV."""
    return validator(inputs.common, name, env.policy(policy_env)).mount(VALIDATIONS, READY, propagation="Bidirectional")


def workload_env(inputs: ValidatorInputs, env: Env) -> Env:
    """What a check needs to start a workload pod of its own: image, credentials and RuntimeClass of that pod."""
    check = inputs.common.validation
    env.field("NODE_NAME", "spec.nodeName").field("OPERATOR_NAMESPACE", "metadata.namespace").appended()
    env.set("VALIDATOR_IMAGE", check.image).set("VALIDATOR_IMAGE_PULL_POLICY", check.pull_policy)
    if check.pull_secrets:
        env.set("VALIDATOR_IMAGE_PULL_SECRETS", ",".join(check.pull_secrets))
    if inputs.common.operand_runtime_class:
        env.set("VALIDATOR_RUNTIME_CLASS", inputs.common.operand_runtime_class)
    return env
