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
    """A component: the id it has in the construct tree, its module and its construct's class name."""

    id: str
    module: str
    construct: str

    def inputs(self, spec: ClusterPolicySpec) -> Inputs | None:
        """What the component needs of SPEC, or None where it is off."""
        found: Callable[[ClusterPolicySpec], Inputs | None] = import_module(
            f"{__package__}.inputs.{self.module}"
        ).from_spec
        return found(spec)

    def type(self) -> type[Component[Inputs]]:
        """The construct's class; importing it starts Node."""
        found: type[Component[Inputs]] = getattr(import_module(f"{__package__}.{self.module}"), self.construct)
        return found


REGISTRY: tuple[Entry, ...] = (
    Entry("namespace", "namespace", "Namespace"),
    Entry("runtime-classes", "runtime_classes", "RuntimeClasses"),
    Entry("nfd", "nfd", "NodeFeatureDiscovery"),
    Entry("extra-objects", "extra_objects", "ExtraObjects"),
    Entry("configs", "configs", "Configs"),
    Entry("driver", "driver", "Driver"),
    Entry("container-toolkit", "toolkit", "ContainerToolkit"),
    Entry("operator-validator", "validator", "OperatorValidator"),
    Entry("device-plugin", "device_plugin", "DevicePlugin"),
    Entry("mps", "mps", "MpsControlDaemon"),
    Entry("gfd", "gfd", "GpuFeatureDiscovery"),
    Entry("dcgm", "dcgm", "Dcgm"),
    Entry("dcgm-exporter", "dcgm_exporter", "DcgmExporter"),
    Entry("mig-manager", "mig_manager", "MigManager"),
    Entry("node-status-exporter", "node_status_exporter", "NodeStatusExporter"),
    Entry("extra-workloads", "extra_objects", "ExtraWorkloads"),
)
