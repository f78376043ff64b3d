"""Inputs of what serves virtual machines and Kata containers: a function for each component, called as it is."""

from typing import Any

from ...catalog.releases import release
from ...catalog.vgpu import CONFIG_MAP
from ...cluster.pool import Workload
from ...cluster.resolve import Cluster
from ...policy.language.sandbox import KataManagerConfig, VfioManager, VgpuManager
from ...policy.language.spec import ClusterPolicySpec
from ...text.emit import emit_value
from ..driver.driver_files_inputs import Mounted, keyed
from ..driver.driver_pools_inputs import VGPU_MANAGER, openshift_version, targets
from ..driver.driver_settings_inputs import DriverPod, Manager, driver_manager
from ..driver.driver_view import DriverView
from ..parts.common_inputs import Inputs, OperandInputs, Pairs, dump, image, operand, pairs, served
from ..plugin.configs_inputs import vgpu_config_map


class VfioManagerInputs(OperandInputs):
    """`manager` clears the node first."""

    manager: Manager


def vfio_manager(cluster: Cluster) -> VfioManagerInputs | None:
    """None where no node serves virtual machines, and where the nodes bind their GPUs themselves."""
    spec = cluster.spec
    section = spec.vfioManager
    if not cluster.sandbox or not section.enabled:
        return None
    return VfioManagerInputs(**clearing(spec, section, "vfioManager"))


def clearing(spec: ClusterPolicySpec, section: VfioManager | VgpuManager, path: str) -> dict[str, Any]:
    """The fields of the policy SECTION at PATH whose pods clear the node first."""
    shared, manager = operand(spec, section, path), section.driverManager
    secrets = (*(manager.imagePullSecrets or ()), *shared["pull_secrets"])
    return {**shared, "pull_secrets": secrets, "manager": driver_manager(spec, manager, f"{path}.driverManager")}


class VgpuManagerInputs(OperandInputs):
    """`manager` clears the node first. `toolkit_resources` are those of the driver toolkit's sidecar, which is told of
    `gds` and `gdrcopy` as the driver's is. `image` is that of the first pod; their `files` are parameters of kernel
    modules.

    Without node pools there are no `pods`: rights are there, and nothing runs."""

    manager: Manager
    openshift_version: str = ""
    toolkit_resources: dict[str, Any] | None = None
    gds: bool = False
    gdrcopy: bool = False
    pods: tuple[DriverPod, ...] = ()


def vgpu_manager(cluster: Cluster) -> VgpuManagerInputs | None:
    """None where no node serves virtual machines, and where `drivers` has the vGPU manager (operator.md 1.3).

    Raises FindingsError where a pool with vGPUs doesn't say its OS, or nothing says which keys the ConfigMap has."""
    spec = cluster.spec
    section = spec.vgpuManager
    if not cluster.sandbox or not section.enabled or spec.driver.useNvidiaDriverCRD:
        return None
    shared = clearing(spec, section, "vgpuManager")
    traits = shared["common"].traits
    modules = (section.kernelModuleConfig.name or "") if traits.vgpu_manager_module_config else ""
    to = Mounted("modules", "kernel-module-config", "/drivers", ("driver",))
    files = (keyed(spec, modules, "vgpuManager.kernelModuleConfig.name", to),) if modules else ()
    return VgpuManagerInputs(
        **shared,
        openshift_version=openshift_version(spec),
        toolkit_resources=dump(spec.driver.resources),
        gds=bool(spec.gds.enabled),
        gdrcopy=bool(spec.gdrcopy.enabled),
        pods=tuple(
            DriverPod(
                name=target.name,
                app=target.app,
                node_selector=target.node_selector,
                image=image(spec, section, "vgpuManager", suffix=target.os.tag),
                files=files,
                toolkit=target.toolkit,
            )
            for target in targets(DriverView.section(cluster), VGPU_MANAGER)
        ),
    )


DEFAULT_NAME = "default"


class VgpuDeviceManagerInputs(OperandInputs):
    """`config` is a ConfigMap of the policy, "" for the default one, which differs between releases; `default` the set
    of devices of nodes that no label gives one.

    What the ConfigMap holds isn't an input, on purpose: pods that restart for it would delete and make the devices of
    all nodes at once. A new set comes to a node by its label."""

    config: str = ""
    default: str = DEFAULT_NAME
    release: str = ""


def vgpu_device_manager(cluster: Cluster) -> VgpuDeviceManagerInputs | None:
    """None where no node serves virtual machines, and where something else makes the devices."""
    spec = cluster.spec
    section = spec.vgpuDeviceManager
    if not cluster.sandbox or not section.enabled:
        return None
    config = vgpu_config_map(spec).name
    return VgpuDeviceManagerInputs(
        **operand(spec, section, "vgpuDeviceManager"),
        config=config,
        default=section.config.default or DEFAULT_NAME,
        release=spec.release if config in ("", CONFIG_MAP) else "",
    )


class CcManagerInputs(OperandInputs):
    """`mode` is that of GPUs on nodes whose label nvidia.com/cc.mode says none: on, off, devtools or "" (not set)."""

    mode: str = ""


def cc_manager(cluster: Cluster) -> CcManagerInputs | None:
    """None where no node serves Kata containers; releases before v26.3 run it for all virtual machines."""
    spec = cluster.spec
    section = spec.ccManager
    for_all = not release(spec.release).traits.cc_manager_for_kata
    if not cluster.sandbox or not section.enabled or not (for_all or cluster.kata):
        return None
    return CcManagerInputs(**operand(spec, section, "ccManager"), mode=section.defaultMode or "")


class KataRuntimeClass(Inputs):
    """A RuntimeClass and the labels of the nodes that it may run on, beside those of the manager's nodes."""

    name: str
    node_selector: dict[str, str] = {}


class KataManagerInputs(OperandInputs):
    """`config` is the manager's configuration file, `artifacts` the node's folder for guest kernels and images."""

    config: str
    artifacts: str
    classes: tuple[KataRuntimeClass, ...] = ()


def kata_manager(cluster: Cluster) -> KataManagerInputs | None:
    """None where no node serves virtual machines, and in releases that never deploy it (operator-releases.md 6.13)."""
    spec = cluster.spec
    section = spec.kataManager
    if not cluster.sandbox or not section.enabled or release(spec.release).traits.no_kata_manager:
        return None
    classes = section.config.runtimeClasses
    return KataManagerInputs(
        **operand(spec, section, "kataManager"),
        config=emit_value(configuration(spec, section.config)),
        artifacts=section.config.artifactsDir,
        classes=tuple(KataRuntimeClass(name=each.name, node_selector=dict(each.nodeSelector)) for each in classes),
    )


def configuration(spec: ClusterPolicySpec, section: KataManagerConfig) -> dict[str, Any]:
    """The policy's SECTION as the manager's file: with its default, images by their mirrors, and nothing empty."""
    classes = [each.model_dump(exclude_none=True) for each in section.runtimeClasses]
    for each in classes:
        if not each["nodeSelector"]:
            del each["nodeSelector"]
        if "artifacts" in each:
            each["artifacts"] = {key: value for key, value in each["artifacts"].items() if value}
            each["artifacts"]["url"] = served(spec, each["artifacts"]["url"])
    content = {"artifactsDir": section.artifactsDir}
    return {**content, "runtimeClasses": classes} if classes else content


class SandboxValidatorInputs(OperandInputs):
    """`workload`: what nodes without a label serve; `cc_manager`: whether GPUs' confidential computing is checked."""

    workload: Workload = "container"
    cc_manager: bool = False
    vfio_env: Pairs = ()
    vgpu_manager_env: Pairs = ()
    vgpu_devices_env: Pairs = ()


def sandbox_validator(cluster: Cluster) -> SandboxValidatorInputs | None:
    """None where no node serves virtual machines."""
    spec = cluster.spec
    if not cluster.sandbox:
        return None
    section = spec.validator
    return SandboxValidatorInputs(
        **operand(spec, section, "validator"),
        workload=cluster.default_workload,
        cc_manager=bool(spec.ccManager.enabled),
        vfio_env=pairs(section.vfioPCI.env),
        vgpu_manager_env=pairs(section.vgpuManager.env),
        vgpu_devices_env=pairs(section.vgpuDevices.env),
    )


def sandbox_device_plugin(cluster: Cluster) -> OperandInputs | None:
    """None where no node serves virtual machines, and where they are Kata's."""
    spec = cluster.spec
    if not cluster.offered_to_kubevirt:
        return None
    return OperandInputs(**operand(spec, spec.sandboxDevicePlugin, "sandboxDevicePlugin"))


def kata_device_plugin(cluster: Cluster) -> OperandInputs | None:
    """None where no node serves Kata containers."""
    spec = cluster.spec
    section = spec.kataSandboxDevicePlugin
    if not cluster.sandbox or not section.enabled or not cluster.kata:
        return None
    return OperandInputs(**operand(spec, section, "kataSandboxDevicePlugin"))
