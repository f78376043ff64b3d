"""The GPU stack as typed cdk8s constructs.

Each works in anybody's cdk8s app::

    from gpustack.components import DevicePlugin
    from gpustack.components.inputs.device_plugin import DevicePluginInputs

    DevicePlugin(chart, "device-plugin", DevicePluginInputs(common=..., image="..."))

The names are looked up on first use, because importing a construct starts Node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import REGISTRY

if TYPE_CHECKING:
    from .cc_manager import CcManager as CcManager
    from .dcgm import Dcgm as Dcgm
    from .dcgm_exporter import DcgmExporter as DcgmExporter
    from .device_plugin import DevicePlugin as DevicePlugin
    from .dra_dcgm import DraDcgm as DraDcgm
    from .dra_dcgm_exporter import DraDcgmExporter as DraDcgmExporter
    from .dra_driver import DraDriver as DraDriver
    from .dra_validator import DraValidator as DraValidator
    from .driver import Driver as Driver
    from .gfd import GpuFeatureDiscovery as GpuFeatureDiscovery
    from .guards import Guards as Guards
    from .kata_device_plugin import KataDevicePlugin as KataDevicePlugin
    from .kata_manager import KataManager as KataManager
    from .kubevirt import KubeVirt as KubeVirt
    from .mig_manager import MigManager as MigManager
    from .mps import MpsControlDaemon as MpsControlDaemon
    from .network_policies import NetworkPolicies as NetworkPolicies
    from .nfd import NodeFeatureDiscovery as NodeFeatureDiscovery
    from .node_labels import NodeLabels as NodeLabels
    from .node_policies import NodePolicies as NodePolicies
    from .node_status_exporter import NodeStatusExporter as NodeStatusExporter
    from .nvidia_drivers import NvidiaDrivers as NvidiaDrivers
    from .openshift_monitoring import OpenShiftMonitoring as OpenShiftMonitoring
    from .reconciler import Reconciler as Reconciler
    from .sandbox_device_plugin import SandboxDevicePlugin as SandboxDevicePlugin
    from .sandbox_validator import SandboxValidator as SandboxValidator
    from .toolkit import ContainerToolkit as ContainerToolkit
    from .validator import OperatorValidator as OperatorValidator
    from .vfio_manager import VfioManager as VfioManager
    from .vgpu_device_manager import VgpuDeviceManager as VgpuDeviceManager
    from .vgpu_manager import VgpuManager as VgpuManager

_MODULES = {entry.construct: entry.module for entry in REGISTRY}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - names come from the registry


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
