"""Inputs of the vGPU manager."""

from __future__ import annotations

from typing import Any

from ...cluster.resolve import Cluster
from ...policy.language.spec import ClusterPolicySpec
from ..driver.driver_files_inputs import config_map_keys
from ..driver.driver_pools_inputs import VGPU_MANAGER, Target, targets
from ..driver.driver_settings_inputs import Manager, driver_manager
from ..driver.driver_toolkit_inputs import DriverToolkit, openshift_version
from ..driver.driver_view import DriverView
from ..parts.common_inputs import Inputs, OperandInputs, dump, image, operand


class VgpuManagerPod(Inputs):
    """What one DaemonSet runs, and where. `app` is its label and selector."""

    name: str
    app: str
    node_selector: dict[str, str] = {}
    image: str
    toolkit: DriverToolkit | None = None


class VgpuManagerInputs(OperandInputs):
    """`manager` clears the node first; `modules` is a ConfigMap of kernel module parameters with its `module_keys`, ""
    for none. `toolkit_resources` are those of the driver toolkit's sidecar, which is told of `gds` and `gdrcopy` as the
    driver's is. `image` is that of the first pod.

    Without node pools there are no `pods`: rights are there, and nothing runs.
    """

    manager: Manager
    modules: str = ""
    module_keys: tuple[str, ...] = ()
    openshift_version: str = ""
    toolkit_resources: dict[str, Any] | None = None
    gds: bool = False
    gdrcopy: bool = False
    pods: tuple[VgpuManagerPod, ...] = ()


def from_cluster(cluster: Cluster) -> VgpuManagerInputs | None:
    """None where no node serves virtual machines, and where `drivers` has the vGPU manager (operator.md 1.3).

    Raises FindingsError where a pool with vGPUs doesn't say its OS, or nothing says which keys the ConfigMap has.
    """
    spec = cluster.spec
    section = spec.vgpuManager
    if not cluster.sandbox or not section.enabled or spec.driver.useNvidiaDriverCRD:
        return None
    shared = operand(spec, section, "vgpuManager")
    traits = shared["common"].traits
    modules = (section.kernelModuleConfig.name or "") if traits.vgpu_manager_module_config else ""
    path = "vgpuManager.kernelModuleConfig.name"
    secrets = (*(section.driverManager.imagePullSecrets or ()), *shared["pull_secrets"])
    return VgpuManagerInputs(
        **{**shared, "pull_secrets": secrets},
        manager=driver_manager(spec, section.driverManager, "vgpuManager.driverManager"),
        modules=modules,
        module_keys=tuple(config_map_keys(spec, modules, path)) if modules else (),
        openshift_version=openshift_version(spec),
        toolkit_resources=dump(spec.driver.resources),
        gds=bool(spec.gds.enabled),
        gdrcopy=bool(spec.gdrcopy.enabled),
        pods=tuple(vgpu_manager_pod(spec, target) for target in targets(DriverView.section(cluster), VGPU_MANAGER)),
    )


def vgpu_manager_pod(spec: ClusterPolicySpec, target: Target) -> VgpuManagerPod:
    """The pod for TARGET, with the image for its OS."""
    return VgpuManagerPod(
        name=target.name,
        app=target.app,
        node_selector=target.node_selector,
        image=image(spec, spec.vgpuManager, "vgpuManager", suffix=target.os.tag),
        toolkit=target.toolkit,
    )
