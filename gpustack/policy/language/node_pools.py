"""`nodePools`: the nodes that have GPUs, by what tells them apart, and what each group of them gets."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gpustack.model import INT32

from .autoscaling import Autoscaling, Readiness
from .base import Section, items, mapping, section
from .driver import DriverSettings
from .forms import form, refuse_as, refuse_at
from .host import NodeHost
from .sharing import Sharing
from .types import (
    AtLeast0,
    AtLeast1,
    ContainerRuntime,
    DnsLabel,
    IntOrPercent,
    Kernel,
    LabelKey,
    Labels,
    LabelValue,
    NodeText,
    OperatingSystem,
    OstreeVersion,
    TimeZone,
)

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class Count(Section):
    """How many nodes a pool has. A number in the policy is both bounds."""

    min: AtLeast0
    """The fewest nodes, where an autoscaler changes their number."""
    max: AtLeast0
    """The most nodes."""

    @model_validator(mode="before")
    @classmethod
    def _from_a_number(cls, data: Any) -> Any:
        if type(data) is int and 0 <= data <= INT32:
            return {"min": data, "max": data}
        if not isinstance(data, (dict, cls)):
            raise refuse_as("count", "no number", value=repr(data))
        return data

    def model_post_init(self, _: Any) -> None:
        if self.min > self.max:
            raise refuse_as("count", "order", min=self.min, max=self.max)


class Taint(Section):
    """A taint of a pool's nodes. Components must tolerate it: see `daemonsets.tolerations`."""

    key: LabelKey
    """Key of the taint."""
    value: LabelValue | None = None
    """Value of the taint. Absent or empty: none."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods that do not tolerate it."""


class Window(Section):
    """A time at which nodes may be taken out of service."""

    days: list[Day] = items()
    """Days on which it opens. Absent: every day."""
    start: Annotated[str, form("time_of_day")]
    """When it opens, in quotes: "22:00"."""
    hours: int = Field(ge=1, le=168)
    """How many hours it stays open, 1 to 168."""
    timeZone: TimeZone = "UTC"
    """Time zone of `start`, such as Europe/Berlin. Absent: UTC."""

    @property
    def minute(self) -> int:
        """When it opens, in minutes from midnight on."""
        hour, minute = map(int, self.start.split(":"))
        return 60 * hour + minute

    def model_post_init(self, _: Any) -> None:
        for index, day in enumerate(self.days):
            if day in self.days[:index]:
                raise refuse_at(("days", index), refuse_as("days", "twice", day=day), day)


class PoolUpgrade(Section):
    """When and how fast nodes are taken out of service for a new driver or MIG layout, by the `reconciler`."""

    maxUnavailable: IntOrPercent | None = None
    """How many nodes of the pool may be unavailable at a time, for whatever reason: a number, or a percentage rounded
    up. Absent: as for the whole cluster."""
    maxParallel: AtLeast1 | None = None
    """How many nodes of the pool are worked on at a time. Absent: as for the whole cluster."""
    zoneMaxUnavailable: IntOrPercent | None = None
    """As `maxUnavailable`, for each value of the label topology.kubernetes.io/zone. Absent: no limit of its own."""
    windows: list[Window] = items()
    """Times at which nodes may be taken out of service; nobody is evicted after the end. Absent: those of
    `reconciler.windows`."""
    soakSeconds: AtLeast0 | None = None
    """How long after a node of a roll-out is done the next of the pool waits; 0 is not at all. Absent:
    `reconciler.soakSeconds`."""


class Vgpu(Section):
    """The parts that a pool's GPUs are lent to virtual machines in, where its nodes serve `vm-vgpu`."""

    config: NodeText | None = None
    """Name of a set of devices in the configuration of the vGPU device manager, such as `A10-24Q`: what the label
    `nvidia.com/vgpu.config` says. Absent: `vgpuDeviceManager.config.default`."""


class NodePool(Section):
    """GPU nodes that are alike. A node belongs to the pool whose nodeSelector, os, kernel and ostreeVersion match."""

    name: DnsLabel
    """Name of the pool, once per policy. Layers merge pools by it."""
    count: Count | None = None
    """How many nodes there are: a number, or `{min: 0, max: 8}` under an autoscaler. For reports. Absent: not known."""
    nodeSelector: Labels = mapping()
    """Labels that the pool's nodes have before anything of NVIDIA runs on them. Absent: any node with a GPU."""
    taints: list[Taint] = items()
    """Taints of the nodes, so that missing tolerations are found. Absent: not known."""
    arch: Literal["amd64", "arm64"] | None = None
    """CPU architecture. Absent: that of the CPU that the GPU comes on one board with (GB200: arm64), else not known."""
    os: OperatingSystem | None = None
    """Operating system as in image tags: `ubuntu22.04`, `rhel9.4`, `rhcos4.18`. Pools of several systems get a driver
    each. Absent: not known."""
    kernel: Kernel | None = None
    """Kernel release, as `uname -r` prints it, `+` and all; needed for precompiled drivers. Absent: not known."""
    ostreeVersion: OstreeVersion | None = None
    """Version of RHCOS on OpenShift, which picks the driver toolkit's image. Absent: not known."""
    containerRuntime: ContainerRuntime | None = None
    """Container runtime of the nodes, as `cluster.containerRuntime`. Absent: the cluster's."""
    gpuProduct: NodeText | None = None
    """GPU product that is expected there, as in the label `nvidia.com/gpu.product`. For checks, never a selector.
    Absent: not known."""
    gpusPerNode: AtLeast1 | None = None
    """How many GPUs a node has. Absent: not known."""
    cuda: Annotated[str, form("cuda_version")] | None = None
    """Newest CUDA that workloads there need, in quotes: "13.0". For checks of the driver. Absent: not known."""
    workload: Literal["container", "vm-passthrough", "vm-vgpu"] | None = None
    """What the nodes serve, with `sandboxWorkloads.enabled`. Absent: `sandboxWorkloads.defaultWorkload`."""
    vgpu: Vgpu = section()
    sharing: Sharing = section()
    driver: DriverSettings | None = None
    """What differs about the driver there; an `image` with path and tag is a whole reference. Absent: nothing."""
    upgrade: PoolUpgrade | None = None
    """When and how fast the `reconciler` takes nodes out of service. Absent: as `driver.upgradePolicy` says."""
    autoscaling: Autoscaling = section()
    readiness: Readiness | None = None
    """What the Node Readiness Controller waits for before it lets pods onto nodes. Absent: nothing."""
    host: NodeHost = section()


def unique_names(pools: list[NodePool]) -> list[NodePool]:
    """Return POOLS, or refuse the first whose name another has."""
    names = [pool.name for pool in pools]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise refuse_at((index, "name"), refuse_as("pool_name", "twice", name=name), name)
    return pools
