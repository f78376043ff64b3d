"""The MIG manager: brings GPUs into the MIG layout that the node's label nvidia.com/mig.config names (operator.md 7.9).

It generates the layouts from what the driver reports, and falls back to the default ConfigMap where the driver reports
none; a policy's own ConfigMap replaces both (reconciler.md 3.5).
"""

from collections.abc import Iterator

from ...api import keys
from ...catalog import texts
from ...model import Body
from ..component import Component
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset, driver_install_dir, host_root
from ..parts.kube import config_map
from ..parts.operand import from_script, operand_access, operand_pod
from ..parts.pod import Env, Pod, Volume
from ..parts.validation import toolkit_wait
from ..scripts import entrypoint, script
from .mig_manager_inputs import DEFAULT_CONFIG, DEFAULT_GPU_CLIENTS, MigManagerInputs

NAME = "nvidia-mig-manager"
ENTRYPOINT = "nvidia-mig-manager-entrypoint"
CONFIG_DIR = "/mig-parted-config"


class MigManager(Component[MigManagerInputs]):
    """The MIG manager's DaemonSet, its entry point, the defaults that the policy doesn't replace, and its rights."""

    def manifests(self, inputs: MigManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        yield config_map(ENTRYPOINT, common.namespace, {"entrypoint.sh": script("mig-manager")}, labels={"app": NAME})
        if inputs.config in ("", DEFAULT_CONFIG):
            yield config_map(DEFAULT_CONFIG, common.namespace, {"config.yaml": texts.mig_parted_config()})
        if inputs.gpu_clients in ("", DEFAULT_GPU_CLIENTS):
            yield config_map(DEFAULT_GPU_CLIENTS, common.namespace, {"clients.yaml": texts.gpu_clients()})
        if inputs.kept:
            rendered = {keys.LAYOUTS_WANTED: inputs.kept, keys.LAYOUTS_DIGESTS: inputs.digests}
            yield config_map(keys.LAYOUTS, common.namespace, rendered)
        yield daemonset(common, NAME, pod(inputs), deploy="mig-manager", gpu_container=NAME)


def pod(inputs: MigManagerInputs) -> Pod:
    """The manager, once the toolkit works."""
    common = inputs.common
    main = from_script(inputs, NAME, environment(inputs), ENTRYPOINT)
    main.mount(VALIDATIONS, "/run/nvidia/validations")
    main.mount(HOST_SYS, "/sys")
    # Writable: with a driver of the node itself, the manager installs itself there and stops services.
    main.mount(host_root(common), "/host", propagation="HostToContainer")
    main.mount(clients(inputs), "/gpu-clients")
    main.mount(layouts(inputs), CONFIG_DIR)
    if not discovers(inputs):
        main.mounts.insert(3, main.mounts.pop())
    main.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")
    main.mount(CDI_ROOT, "/var/run/cdi")
    init = [toolkit_wait(common, VALIDATIONS)]
    return operand_pod(inputs, NAME, main, init, volumes(inputs), host_pid=True, host_ipc=True)


HOST_SYS = Volume.host("host-sys", "/sys", "Directory")


def volumes(inputs: MigManagerInputs) -> list[Volume]:
    """The volumes in the operator's order; layouts have moved in it."""
    common, mounted = inputs.common, layouts(inputs)
    before, behind = ([], [mounted]) if discovers(inputs) else ([mounted], [])
    first = [entrypoint(ENTRYPOINT), HOST_SYS, *before, VALIDATIONS, driver_install_dir(common), host_root(common)]
    return [*first, clients(inputs), *behind, CDI_ROOT]


def clients(inputs: MigManagerInputs) -> Volume:
    """The ConfigMap of programs that a change of layout stops."""
    return Volume.config_map("gpu-clients", inputs.gpu_clients or DEFAULT_GPU_CLIENTS)


def discovers(inputs: MigManagerInputs) -> bool:
    """Whether the manager asks the GPUs of its node for their profiles, and needs the ConfigMap as a fallback only."""
    return inputs.common.traits.mig_manager_discovers_layouts


def layouts(inputs: MigManagerInputs) -> Volume:
    """The ConfigMap of layouts; the default one under another name, by which the manager knows it as a fallback. That
    which the reconciler keeps holds back the pod until there is a file in it."""
    if inputs.kept:
        return Volume.config_map("mig-parted-config", keys.LAYOUTS, items={keys.LAYOUTS_FILE: "config.yaml"})
    items = {} if inputs.config or not discovers(inputs) else {"config.yaml": "config-default.yaml"}
    return Volume.config_map("mig-parted-config", inputs.config or DEFAULT_CONFIG, items=items)


def environment(inputs: MigManagerInputs) -> Env:
    """The manager's settings; the policy's `migManager.env` wins over all of them."""
    common = inputs.common
    env = Env().field("NODE_NAME", "spec.nodeName")
    if discovers(inputs):
        env.field("POD_NAME", "metadata.name").field("POD_NAMESPACE", "metadata.namespace")
    else:
        env.set("CONFIG_FILE", f"{CONFIG_DIR}/config.yaml")
    env.set("GPU_CLIENTS_FILE", "/gpu-clients/clients.yaml")
    env.field("DEFAULT_GPU_CLIENTS_NAMESPACE", "metadata.namespace").appended()
    if inputs.config:
        env.set("CONFIG_FILE", f"{CONFIG_DIR}/config.yaml")
    elif discovers(inputs):
        env.set("DEFAULT_CONFIG_FILE", f"{CONFIG_DIR}/config-default.yaml")
    if common.cdi:
        env.set("CDI_ENABLED", True)
        if common.toolkit:
            env.set("NVIDIA_CDI_HOOK_PATH", f"{common.install_dir}/toolkit/nvidia-cdi-hook")
    return env.policy(inputs.env)
