"""GPU feature discovery: labels each node with its GPU's product, memory, MIG layout and sharing (operator.md 7.6)."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.daemonset import RUN_NVIDIA, daemonset
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import Env, Pod, Volume
from ..parts.validation import toolkit_wait
from .device_plugin import CONFIG_FILE, add_config_manager, mig_env
from .plugin_inputs import GfdInputs

NAME = "gpu-feature-discovery"
ACCOUNT = "nvidia-gpu-feature-discovery"
PART_OF = {"app.kubernetes.io/part-of": "nvidia-gpu"}
FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"


class GpuFeatureDiscovery(Component[GfdInputs]):
    """GFD's DaemonSet and its rights: it writes NodeFeature objects of its own node."""

    def manifests(self, inputs: GfdInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, ACCOUNT)
        yield daemonset(common, NAME, pod(inputs), deploy=NAME, part_of=PART_OF, gpu_container=NAME)


def pod(inputs: GfdInputs) -> Pod:
    """GFD's pod."""
    main = main_container(inputs, NAME, environment(inputs), command=["gpu-feature-discovery"])
    features, system = Volume.host("output-dir", FEATURES), Volume.host("host-sys", "/sys")
    main.mount(features, FEATURES).mount(system, "/sys", read_only=True)
    init = [toolkit_wait(inputs.common, RUN_NVIDIA)]
    template = operand_pod(inputs, ACCOUNT, main, init, [features, system, RUN_NVIDIA])
    if inputs.config:
        add_config_manager(template, inputs.config, process=NAME, init_resources=inputs.resources)
    return template


def environment(inputs: GfdInputs) -> Env:
    """GFD's settings.

    Here the policy's env comes first: MIG strategy and configuration win over it (operator.md 5.2)."""
    env = Env({"GFD_SLEEP_INTERVAL": "60s", "GFD_FAIL_ON_INIT_ERROR": "true"}).field("NAMESPACE", "metadata.namespace")
    env.field("NODE_NAME", "spec.nodeName")
    if inputs.common.traits.gfd_names_its_pod:
        env.field("POD_NAME", "metadata.name")
        if inputs.common.openshift:
            env.set("USE_NODE_FEATURE_API", False)
    env.update(inputs.env)
    if inputs.config:
        env.set("CONFIG_FILE", CONFIG_FILE)
    return mig_env(env, inputs.mig_strategy)
