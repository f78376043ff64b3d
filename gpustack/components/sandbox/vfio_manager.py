"""The vfio-manager: takes a node's GPUs from their driver and binds them to vfio-pci (operator.md 7.14)."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..driver.driver_features import clear_node, evicts
from ..driver.driver_volumes import HOST_SYS, RUN_NVIDIA
from ..parts.daemonset import daemonset, host_root
from ..parts.kube import config_map
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import PRIVILEGED_S0, Env, Pod, Volume
from ..scripts import script
from .sandbox_inputs import VfioManagerInputs

NAME = "nvidia-vfio-manager"
SLEEP = "while true; do sleep 86400; done"
SCRIPT = "/bin/vfio-manage.sh"
RESOURCES = {"limits": {"memory": "200Mi"}, "requests": {"cpu": "100m", "memory": "200Mi"}}


class VfioManager(Component[VfioManagerInputs]):
    """The vfio-manager's DaemonSet and its rights, which are those of the container that clears the node first."""

    stage = "driver"

    def manifests(self, inputs: VfioManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, evicts=evicts(inputs.manager))
        if not common.traits.vfio_manager_program:
            yield config_map(NAME, common.namespace, {"vfio-manage.sh": script("vfio-manage")}, labels={"app": NAME})
        yield daemonset(common, NAME, pod(inputs), select_by="name", deploy="vfio-manager")


def pod(inputs: VfioManagerInputs) -> Pod:
    """The manager binds once and then waits to be ended, when it gives the GPUs back."""
    common = inputs.common
    program = "vfio-manage" if common.traits.vfio_manager_program else SCRIPT
    main = main_container(
        inputs,
        NAME,
        Env().policy(inputs.env),
        PRIVILEGED_S0,
        command=["/bin/sh", "-c"],
        args=inputs.args or [f"{program} bind --all && {SLEEP}"],
        resources=inputs.resources or RESOURCES,
        pre_stop=["/bin/sh", "-c", f"{program} unbind --all"],
    )
    declared = [HOST_SYS, RUN_NVIDIA, host_root(common)]
    if common.traits.vfio_manager_program:
        # The program looks for kernel modules in the image's /lib/modules, and for drivers below HOST_ROOT.
        main.env.set("HOST_ROOT", "/host")
        modules = Volume.host("host-lib-modules", "/lib/modules", "Directory")
        main.mount(HOST_SYS, "/sys").mount(modules, "/lib/modules", read_only=True)
        declared.insert(1, modules)
        if not common.traits.vfio_manager_unbinds:
            # One word with blanks, which no program is called: nothing is unbound, as with that release's operator.
            main.pre_stop = [f"{program} unbind --all"]
    else:
        source = Volume.config_map(NAME, NAME, mode=0o700)
        main.mount(source, SCRIPT, read_only=True, sub_path="vfio-manage.sh").mount(HOST_SYS, "/sys")
        declared.insert(0, source)
    main.mount(host_root(common), "/host")
    init = [clear_node(common, inputs.manager, inputs.resources)]
    return operand_pod(inputs, NAME, main, init, declared, pull_secrets=inputs.pull_secrets, grace_period=30)
