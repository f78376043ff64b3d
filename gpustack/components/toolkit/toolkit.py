"""The container toolkit: installs NVIDIA's runtime on a node and has the container runtime use it (operator.md 7.2)."""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.common_inputs import Common, OperandInputs
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset, driver_install_dir, host_dev_char, host_root
from ..parts.kube import config_map
from ..parts.operand import from_script, operand_access, operand_pod
from ..parts.pod import PRIVILEGED_S0, Pod, Volume
from ..parts.validation import driver_checks
from ..scripts import entrypoint, script
from .environment import configure_runtime, environment

NAME = "nvidia-container-toolkit"
DAEMONSET = "nvidia-container-toolkit-daemonset"
ENTRYPOINT = "nvidia-container-toolkit-entrypoint"
OCI_HOOKS = "/usr/share/containers/oci/hooks.d"


class ContainerToolkit(Component[OperandInputs]):
    """The toolkit's DaemonSet, its entry point and its rights."""

    def manifests(self, inputs: OperandInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        start = {"entrypoint.sh": script("container-toolkit")}
        yield config_map(ENTRYPOINT, common.namespace, start, labels={"app": DAEMONSET})
        scc = {keys.SCC: "hostmount-anyuid"}
        yield daemonset(common, DAEMONSET, pod(inputs), deploy="container-toolkit", annotations=scc)


def pod(inputs: OperandInputs) -> Pod:
    """The toolkit, once the node's driver works."""
    common = inputs.common
    main = from_script(inputs, "nvidia-container-toolkit-ctr", environment(inputs), ENTRYPOINT, PRIVILEGED_S0)
    main.mount(TOOLKIT_ROOT, "/run/nvidia/toolkit")
    main.mount(VALIDATIONS, "/run/nvidia/validations")
    main.mount(install_dir(common), common.install_dir)
    main.mount(oci_hooks(common), OCI_HOOKS)
    main.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")
    main.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    main.mount(CDI_ROOT, "/var/run/cdi")
    configure_runtime(common, main)
    init = driver_checks(common, driver_install_dir(common))
    return operand_pod(inputs, NAME, main, init, volumes(common), host_pid=True)


TOOLKIT_ROOT = Volume.host("toolkit-root", "/run/nvidia/toolkit", "DirectoryOrCreate")


def install_dir(common: Common) -> Volume:
    """Where the toolkit is installed on the node."""
    return Volume.host("toolkit-install-dir", common.install_dir)


def oci_hooks(common: Common) -> Volume:
    """Where the node's CRI-O looks for OCI hooks: on OpenShift, whose /usr is read-only, below /run."""
    path = OCI_HOOKS if common.runtime == "crio" and not common.openshift else "/run/containers/oci/hooks.d"
    return Volume.host("crio-hooks", path)


def volumes(common: Common) -> list[Volume]:
    """The volumes in the operator's order, less those for the container runtime, which it appends."""
    return [
        entrypoint(ENTRYPOINT),
        TOOLKIT_ROOT,
        VALIDATIONS,
        driver_install_dir(common),
        host_root(common),
        install_dir(common),
        oci_hooks(common),
        host_dev_char(common),
        CDI_ROOT,
    ]
