"""All components, in the order in which a cluster needs them. A new component is one line here.

A component has its construct in `components/<subject>/<module>.py`, and its inputs beside it: `from_cluster` of
`<module>_inputs.py`, or a function called as the module in `<subject>_inputs.py`, which small ones share.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ..cluster.on_demand import resolve

if TYPE_CHECKING:
    from ..cluster.resolve import Cluster
    from ..policy.language.spec import ClusterPolicySpec
    from .component import Component
    from .parts.common_inputs import Inputs


class Entry(NamedTuple):
    """A component: the id it has in the construct tree, its folder and module, and its construct's class name.

    `dra`: it has its place also in a cluster whose GPUs are allocated by DRA. All others are the device plugin's stack,
    which a `gpuCluster` excludes (operator.md 11.1). `guarded`: without one of its objects drivers stop, or nodes
    lose the labels by which they run (reconciler.md L38, A2), so no engine prunes one without asking. `shared`: its
    inputs are with those of others.
    """

    id: str
    subject: str
    module: str
    construct: str
    dra: bool = False
    guarded: bool = False
    shared: bool = False

    def inputs(self, spec: ClusterPolicySpec) -> Inputs | None:
        """What the component needs of SPEC, or None where it is off."""
        cluster = resolve(spec)
        if cluster.dra and not self.dra:
            return None
        place, name = (self.subject, self.module) if self.shared else (self.module, "from_cluster")
        inputs_of: Callable[[Cluster], Inputs | None] = getattr(
            import_module(f"{__package__}.{self.subject}.{place}_inputs"), name
        )
        return inputs_of(cluster)

    @property
    def section(self) -> str:
        """The name that a section of the policy has if the component has one: dcgm_exporter -> dcgmExporter."""
        first, *rest = self.module.split("_")
        return first + "".join(word.capitalize() for word in rest)

    def type(self) -> type[Component[Inputs]]:
        """The construct's class; importing it starts Node."""
        construct: type[Component[Inputs]] = getattr(
            import_module(f"{__package__}.{self.subject}.{self.module}"), self.construct
        )
        return construct


REGISTRY: tuple[Entry, ...] = (
    Entry("namespace", "base", "namespace", "Namespace", dra=True, shared=True),
    Entry("guards", "guards", "guards", "Guards", dra=True),
    Entry("network-policies", "guards", "network_policies", "NetworkPolicies", dra=True),
    Entry("tenancy", "tenancy", "tenancy", "Tenancy", shared=True),
    Entry("runtime-classes", "toolkit", "runtime_classes", "RuntimeClasses"),
    Entry("nfd", "nfd", "nfd", "NodeFeatureDiscovery", dra=True, guarded=True),
    Entry("secrets", "base", "secrets", "Secrets", dra=True, shared=True),
    Entry("extra-objects", "base", "extra_objects", "ExtraObjects", dra=True, shared=True),
    Entry("compat", "base", "compat", "Compat", dra=True, shared=True),
    Entry("configs", "plugin", "configs", "Configs", dra=True),
    Entry("driver", "driver", "driver", "Driver", guarded=True),
    Entry("nvidia-drivers", "driver", "nvidia_drivers", "NvidiaDrivers", dra=True, guarded=True),
    Entry("vgpu-manager", "sandbox", "vgpu_manager", "VgpuManager", guarded=True, shared=True),
    Entry("vfio-manager", "sandbox", "vfio_manager", "VfioManager", shared=True),
    Entry("container-toolkit", "toolkit", "toolkit", "ContainerToolkit"),
    Entry("operator-validator", "validator", "validator", "OperatorValidator"),
    Entry("device-plugin", "plugin", "device_plugin", "DevicePlugin", shared=True),
    Entry("mps", "plugin", "mps", "MpsControlDaemon", shared=True),
    Entry("gfd", "plugin", "gfd", "GpuFeatureDiscovery", shared=True),
    Entry("dcgm", "monitoring", "dcgm", "Dcgm"),
    Entry("dcgm-exporter", "monitoring", "dcgm_exporter", "DcgmExporter"),
    Entry("mig-manager", "mig", "mig_manager", "MigManager"),
    Entry("node-status-exporter", "monitoring", "node_status_exporter", "NodeStatusExporter"),
    Entry("kata-manager", "sandbox", "kata_manager", "KataManager", shared=True),
    Entry("cc-manager", "sandbox", "cc_manager", "CcManager", shared=True),
    Entry("sandbox-validator", "sandbox", "sandbox_validator", "SandboxValidator", shared=True),
    Entry("vgpu-device-manager", "sandbox", "vgpu_device_manager", "VgpuDeviceManager", shared=True),
    Entry("sandbox-device-plugin", "sandbox", "sandbox_device_plugin", "SandboxDevicePlugin", shared=True),
    Entry("kata-device-plugin", "sandbox", "kata_device_plugin", "KataDevicePlugin", shared=True),
    Entry("kubevirt", "sandbox", "kubevirt", "KubeVirt"),
    Entry("openshift-monitoring", "monitoring", "openshift_monitoring", "OpenShiftMonitoring", dra=True),
    Entry("alerts", "monitoring", "alerts", "Alerts", dra=True),
    Entry("dashboards", "monitoring", "dashboards", "Dashboards", dra=True),
    Entry("verify", "verify", "verify", "Verify", dra=True),
    Entry("queues", "tenancy", "queues", "Queues", shared=True),
    Entry("nodes", "nodes", "nodes", "Nodes", dra=True),
    Entry("dra-driver", "dra", "dra_driver", "DraDriver", dra=True),
    Entry("dra-dcgm", "dra", "dra_dcgm", "DraDcgm", dra=True),
    Entry("dra-dcgm-exporter", "dra", "dra_dcgm_exporter", "DraDcgmExporter", dra=True),
    Entry("dra-validator", "dra", "dra_validator", "DraValidator", dra=True),
    Entry("node-labels", "nfd", "node_labels", "NodeLabels", dra=True, guarded=True),
    Entry("node-policies", "reconciler", "node_policies", "NodePolicies", dra=True, guarded=True),
    Entry("prepull", "reconciler", "prepull", "Prepull", dra=True),
    Entry("reconciler", "reconciler", "reconciler", "Reconciler", dra=True),
    Entry("extra-workloads", "base", "extra_objects", "ExtraWorkloads", dra=True, shared=True),
)
