from typing import Any

from .base.compat import Compat as Compat
from .base.extra_objects import ExtraObjects as ExtraObjects
from .base.extra_objects import ExtraWorkloads as ExtraWorkloads
from .base.namespace import Namespace as Namespace
from .base.secrets import Secrets as Secrets
from .dra.dra_dcgm import DraDcgm as DraDcgm
from .dra.dra_dcgm_exporter import DraDcgmExporter as DraDcgmExporter
from .dra.dra_driver import DraDriver as DraDriver
from .dra.dra_validator import DraValidator as DraValidator
from .driver.driver import Driver as Driver
from .driver.nvidia_drivers import NvidiaDrivers as NvidiaDrivers
from .guards.guards import Guards as Guards
from .guards.network_policies import NetworkPolicies as NetworkPolicies
from .mig.mig_manager import MigManager as MigManager
from .monitoring.alerts import Alerts as Alerts
from .monitoring.dashboards import Dashboards as Dashboards
from .monitoring.dcgm import Dcgm as Dcgm
from .monitoring.dcgm_exporter import DcgmExporter as DcgmExporter
from .monitoring.node_status_exporter import NodeStatusExporter as NodeStatusExporter
from .monitoring.openshift_monitoring import OpenShiftMonitoring as OpenShiftMonitoring
from .nfd.nfd import NodeFeatureDiscovery as NodeFeatureDiscovery
from .nfd.node_labels import NodeLabels as NodeLabels
from .nodes.nodes import Nodes as Nodes
from .plugin.configs import Configs as Configs
from .plugin.device_plugin import DevicePlugin as DevicePlugin
from .plugin.gfd import GpuFeatureDiscovery as GpuFeatureDiscovery
from .plugin.mps import MpsControlDaemon as MpsControlDaemon
from .reconciler.node_policies import NodePolicies as NodePolicies
from .reconciler.prepull import Prepull as Prepull
from .reconciler.reconciler import Reconciler as Reconciler
from .sandbox.cc_manager import CcManager as CcManager
from .sandbox.kata_device_plugin import KataDevicePlugin as KataDevicePlugin
from .sandbox.kata_manager import KataManager as KataManager
from .sandbox.kubevirt import KubeVirt as KubeVirt
from .sandbox.sandbox_device_plugin import SandboxDevicePlugin as SandboxDevicePlugin
from .sandbox.sandbox_validator import SandboxValidator as SandboxValidator
from .sandbox.vfio_manager import VfioManager as VfioManager
from .sandbox.vgpu_device_manager import VgpuDeviceManager as VgpuDeviceManager
from .sandbox.vgpu_manager import VgpuManager as VgpuManager
from .tenancy.queues import Queues as Queues
from .tenancy.tenancy import Tenancy as Tenancy
from .toolkit.runtime_classes import RuntimeClasses as RuntimeClasses
from .toolkit.toolkit import ContainerToolkit as ContainerToolkit
from .validator.validator import OperatorValidator as OperatorValidator
from .verify.verify import Verify as Verify

__all__: list[str]

def __getattr__(name: str) -> Any: ...
