"""All components, in the order in which a cluster needs them. A new component is one line here.

`module` names both files of a component: `components/inputs/<module>.py` with `from_spec`, and
`components/<module>.py` with the construct.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..policy.spec import ClusterPolicySpec
    from .component import Component
    from .inputs.common import Inputs


class Entry(NamedTuple):
    """A component: the id it has in the construct tree, its module and its construct's class name.

    `dra`: it has its place also in a cluster whose GPUs are allocated by DRA. All others are the device plugin's stack,
    which a `gpuCluster` excludes (operator.md 11.1). `guarded`: without one of its objects drivers stop, or nodes
    lose the labels by which they run (reconciler.md L38, A2), so no engine prunes one without asking.
    """

    id: str
    module: str
    construct: str
    dra: bool = False
    guarded: bool = False

    def inputs(self, spec: ClusterPolicySpec) -> Inputs | None:
        """What the component needs of SPEC, or None where it is off."""
        if spec.gpuCluster is not None and not self.dra:
            return None
        found: Callable[[ClusterPolicySpec], Inputs | None] = import_module(
            f"{__package__}.inputs.{self.module}"
        ).from_spec
        return found(spec)

    def type(self) -> type[Component[Inputs]]:
        """The construct's class; importing it starts Node."""
        found: type[Component[Inputs]] = getattr(import_module(f"{__package__}.{self.module}"), self.construct)
        return found


REGISTRY: tuple[Entry, ...] = (
    Entry("namespace", "namespace", "Namespace", dra=True),
    Entry("guards", "guards", "Guards", dra=True),
    Entry("network-policies", "network_policies", "NetworkPolicies", dra=True),
    Entry("runtime-classes", "runtime_classes", "RuntimeClasses"),
    Entry("nfd", "nfd", "NodeFeatureDiscovery", dra=True, guarded=True),
    Entry("extra-objects", "extra_objects", "ExtraObjects", dra=True),
    Entry("configs", "configs", "Configs", dra=True),
    Entry("driver", "driver", "Driver", guarded=True),
    Entry("nvidia-drivers", "nvidia_drivers", "NvidiaDrivers", dra=True, guarded=True),
    Entry("vgpu-manager", "vgpu_manager", "VgpuManager", guarded=True),
    Entry("vfio-manager", "vfio_manager", "VfioManager"),
    Entry("container-toolkit", "toolkit", "ContainerToolkit"),
    Entry("operator-validator", "validator", "OperatorValidator"),
    Entry("device-plugin", "device_plugin", "DevicePlugin"),
    Entry("mps", "mps", "MpsControlDaemon"),
    Entry("gfd", "gfd", "GpuFeatureDiscovery"),
    Entry("dcgm", "dcgm", "Dcgm"),
    Entry("dcgm-exporter", "dcgm_exporter", "DcgmExporter"),
    Entry("mig-manager", "mig_manager", "MigManager"),
    Entry("node-status-exporter", "node_status_exporter", "NodeStatusExporter"),
    Entry("kata-manager", "kata_manager", "KataManager"),
    Entry("cc-manager", "cc_manager", "CcManager"),
    Entry("sandbox-validator", "sandbox_validator", "SandboxValidator"),
    Entry("vgpu-device-manager", "vgpu_device_manager", "VgpuDeviceManager"),
    Entry("sandbox-device-plugin", "sandbox_device_plugin", "SandboxDevicePlugin"),
    Entry("kata-device-plugin", "kata_device_plugin", "KataDevicePlugin"),
    Entry("kubevirt", "kubevirt", "KubeVirt"),
    Entry("openshift-monitoring", "openshift_monitoring", "OpenShiftMonitoring", dra=True),
    Entry("dra-driver", "dra_driver", "DraDriver", dra=True),
    Entry("dra-dcgm", "dra_dcgm", "DraDcgm", dra=True),
    Entry("dra-dcgm-exporter", "dra_dcgm_exporter", "DraDcgmExporter", dra=True),
    Entry("dra-validator", "dra_validator", "DraValidator", dra=True),
    Entry("node-labels", "node_labels", "NodeLabels", dra=True, guarded=True),
    Entry("node-policies", "node_policies", "NodePolicies", dra=True, guarded=True),
    Entry("reconciler", "reconciler", "Reconciler", dra=True),
    Entry("extra-workloads", "extra_objects", "ExtraWorkloads", dra=True),
)
