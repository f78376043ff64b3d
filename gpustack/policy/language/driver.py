"""`driver`: the NVIDIA kernel driver that a DaemonSet builds or loads on each node. `drivers`: several in one cluster,
each for the nodes that it selects (the operator's kind NVIDIADriver).
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .base import Own, Section, items, mapping, own, section
from .daemonsets import PodSecurityContext, Toleration
from .forms import form, refuse_as
from .host import GdrCopy, Gds
from .operand import DriverManager, Probe, RestartingProbe, Workload
from .types import Annotations, AtLeast0, DnsSubdomain, IntOrPercent, LabelKey, Labels, ObjectName, Text


def _not_precompiled(value: Any) -> Any:
    if value == "precompiled":
        raise refuse_as("module_type", "precompiled")
    return value


ModuleType = Annotated[Literal["auto", "open", "proprietary"], BeforeValidator(_not_precompiled)]


class Rdma(Section):
    """GPUDirect RDMA: network cards read and write GPU memory directly."""

    enabled: bool | None = None
    """Whether nvidia-peermem is loaded beside the driver. Absent: the default of the release, false."""
    useHostMofed: bool | None = None
    """Whether the network driver (MLNX_OFED, DOCA) is installed on the node, not by a container. Absent: false."""


class RepoConfig(Section):
    """Package sources for the driver container."""

    configMapName: ObjectName | None = None
    """ConfigMap with package source files (`*.list` or `*.repo`), for clusters without internet access. Absent or
    empty: the distribution's own."""


class ConfigMapRef(Section):
    """A ConfigMap, by name."""

    name: ObjectName | None = None
    """Name of the ConfigMap in the operator's namespace. Absent or empty: none."""


class Licensing(Section):
    """The licence of a vGPU guest driver. Physical GPUs need none."""

    secretName: ObjectName | None = None
    """Secret with `gridd.conf` and, with NLS, `client_configuration_token.tok`. Absent or empty: no licence."""
    configMapName: ObjectName | None = None
    """ConfigMap with the same keys; deprecated (the token is a credential): use `secretName`. Absent or empty: none."""
    nlsEnabled: bool | None = None
    """Whether the licence comes from the NVIDIA License System and the token is mounted. Absent: the default of the
    release, true."""


class VirtualTopology(Section):
    """The topology daemon of vGPU guests."""

    config: ObjectName | None = None
    """ConfigMap with `nvidia-topologyd.conf`. Absent or empty: the daemon's own settings."""


class WaitForCompletion(Section):
    """Waiting for workloads before a node's driver is replaced."""

    podSelector: Text | None = None
    """Label selector of the pods to wait for, such as `app=training`. Absent or empty: no waiting."""
    timeoutSeconds: AtLeast0 = own("drivers[].upgradePolicy.waitForCompletion.timeoutSeconds")
    """Seconds after which the wait is given up, and pods are evicted; 0: nobody is, and after an hour another node has
    its turn. Absent: 0."""


class PodDeletion(Section):
    """Removing the pods that use GPUs before a node's driver is replaced."""

    force: bool = own("drivers[].upgradePolicy.podDeletion.force")
    """Whether pods without a controller, which nothing creates again, are removed too. Absent: false."""
    timeoutSeconds: AtLeast0 = own("drivers[].upgradePolicy.podDeletion.timeoutSeconds")
    """Seconds to wait for the pods to end; 0: an hour, then others have their turn. Absent: 300."""
    deleteEmptyDir: bool = own("drivers[].upgradePolicy.podDeletion.deleteEmptyDir")
    """Whether pods with emptyDir volumes are removed, which loses that data. Absent: false."""


class Drain(Section):
    """Draining the whole node, where removing the GPU pods did not suffice."""

    enable: bool = own("drivers[].upgradePolicy.drain.enable")
    """Whether nodes may be drained. Absent: false."""
    force: bool = own("drivers[].upgradePolicy.drain.force")
    """Whether pods without a controller, which nothing creates again, are removed too. Absent: false."""
    podSelector: Text | None = None
    """Label selector of the pods to drain. Absent or empty: all."""
    timeoutSeconds: AtLeast0 = own("drivers[].upgradePolicy.drain.timeoutSeconds")
    """Seconds before the drain counts as failed; 0: an hour. Absent: 300."""
    deleteEmptyDir: bool = own("drivers[].upgradePolicy.drain.deleteEmptyDir")
    """Whether pods with emptyDir volumes are removed, which loses that data. Absent: false."""


class UpgradePolicy(Section):
    """How a new driver reaches the nodes."""

    autoUpgrade: bool = own("drivers[].upgradePolicy.autoUpgrade")
    """Whether nodes are upgraded one after the other without help. Absent: the default of the release, true."""
    maxParallelUpgrades: AtLeast0 = own("drivers[].upgradePolicy.maxParallelUpgrades")
    """How many nodes are upgraded at a time; 0 is no limit. Absent: 1."""
    maxUnavailable: IntOrPercent = own("drivers[].upgradePolicy.maxUnavailable")
    """How many GPU nodes may be unavailable at a time, for whatever reason: a number, or a percentage rounded up.
    Absent: 25%."""
    waitForCompletion: WaitForCompletion = section()
    podDeletion: PodDeletion = section()
    drain: Drain = section()


class DriverSettings(Workload):
    """What a driver is made of: fields of the whole cluster's driver that a node pool may override."""

    kernelModuleType: ModuleType | None = None
    """Which kernel modules are built: open, proprietary, or the ones that suit GPU and branch. Absent: auto."""
    usePrecompiled: bool | None = None
    """Whether images with modules for one kernel are used; `version` is then a branch such as "595". Absent: false."""
    rdma: Rdma = section()
    manager: DriverManager = section()
    repoConfig: RepoConfig = section()
    certConfig: ConfigMapRef = section()
    """ConfigMap with certificates of authorities that the package sources use."""
    licensingConfig: Licensing = section()
    virtualTopology: VirtualTopology = section()
    kernelModuleConfig: ConfigMapRef = section()
    """ConfigMap with one `<module>.conf` of parameters per kernel module, such as `nvidia.conf`."""
    secretEnv: ObjectName | None = None
    """Secret whose keys become environment variables of the driver container. Absent or empty: none."""
    hostVersion: Annotated[str, form("driver_version")] | None = None
    """Version of the driver that the nodes bring, where none is installed: as `nvidia-smi` prints it, such as
    580.126.20, or a branch in quotes. For checks and `gpustack verify`; nothing is rendered of it. Absent: not
    known."""

    @property
    def installs(self) -> bool:
        """Whether it says anything of a driver that is installed."""
        said = self.model_dump(exclude={"hostVersion"}, exclude_none=True, exclude_defaults=True)
        return any(said.values())  # a spec that comes from the cache has no model_fields_set


class Driver(DriverSettings):
    """The NVIDIA kernel driver of all nodes that no other driver serves."""

    enabled: bool | None = None
    """Whether the driver is installed by a container; false where the node image brings it. Absent: the default of the
    release and the platform."""
    useNvidiaDriverCRD: bool | None = None
    """Whether drivers are described by `drivers` instead of this section. Absent: false."""
    useOpenKernelModules: bool | None = None
    """Without effect since v25.3, when `kernelModuleType` replaced it. Absent: not set."""
    startupProbe: RestartingProbe | None = None
    """How long the driver may take to build and load. Absent: the default of the release, 60 s and then 120 checks 10 s
    apart."""
    livenessProbe: RestartingProbe | None = None
    """There in the operator's API, but its operator fails when it is set. Absent: none."""
    readinessProbe: Probe | None = None
    """There in the operator's API, but its operator fails when it is set. Absent: none."""
    upgradePolicy: UpgradePolicy = section()


class NodeRequirement(Section):
    """A condition on a label or field of nodes."""

    key: LabelKey
    """Label or field."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How it is compared with the values."""
    values: list[Text] | None = None
    """Values to compare with; none for Exists and DoesNotExist. Absent: none."""


class NodeSelectorTerm(Section):
    """Conditions that hold together."""

    matchExpressions: list[NodeRequirement] | None = None
    """Conditions on labels. Absent: none."""
    matchFields: list[NodeRequirement] | None = None
    """Conditions on fields of the Node. Absent: none."""


class PreferredTerm(Section):
    """Conditions that make a node preferred."""

    preference: NodeSelectorTerm
    """The conditions."""
    weight: int = Field(ge=1, le=100)
    """How much they count, 1 to 100."""


class RequiredTerms(Section):
    """Terms of which one has to hold."""

    nodeSelectorTerms: list[NodeSelectorTerm]
    """The terms."""


class NodeAffinity(Section):
    """Kubernetes' node affinity."""

    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredTerm] | None = None
    """Terms that make nodes preferred. Absent: none."""
    requiredDuringSchedulingIgnoredDuringExecution: RequiredTerms | None = None
    """Terms of which a node has to meet one. Absent: none."""


class DriverLicensing(Section):
    """The licence of a vGPU guest driver."""

    name: ObjectName | None = None
    """ConfigMap with `gridd.conf` and the token; deprecated, use `secretName`. Absent or empty: none."""
    secretName: ObjectName | None = None
    """Secret with `gridd.conf` and, with NLS, `client_configuration_token.tok`. Absent or empty: no licence."""
    nlsEnabled: bool = True
    """Whether the licence comes from the NVIDIA License System. Absent: true."""


class NvidiaDriver(Workload):
    """A driver for some of the cluster's nodes."""

    name: DnsSubdomain
    """Name of the driver, at most 63 characters: a part of the names of its objects, and a label of its nodes."""
    default: bool = False
    """Whether it serves the nodes that no other driver selects. Absent: false."""
    driverType: Literal["gpu", "vgpu", "vgpu-host-manager"] = own("drivers[].driverType")
    """Data-centre driver, vGPU guest driver or vGPU host driver. Images of the last two are your own. Absent: gpu."""
    kernelModuleType: ModuleType = own("drivers[].kernelModuleType")
    """Which kernel modules are built: open, proprietary, or the ones that suit GPU and branch. Absent: auto."""
    usePrecompiled: bool = False
    """Whether images with modules for one kernel are used; `version` is then a branch such as "595". Absent: false."""
    useOpenKernelModules: bool | None = None
    """Without effect since v25.3, when `kernelModuleType` replaced it. Absent: not set."""
    nodeSelector: Labels = mapping()
    """Labels of the nodes that it serves. Absent: all, or for the default driver those that no other one selects."""
    nodeAffinity: NodeAffinity | None = None
    """There in the operator's API, but without effect. Absent: none."""
    labels: Labels = mapping()
    """Labels of the DaemonSet and its pods. Absent: none."""
    annotations: Annotations = mapping()
    """Annotations of the DaemonSet and its pods. Absent: none."""
    tolerations: list[Toleration] = items()
    """Tolerations of the pods, besides the built-in one for the taint `nvidia.com/gpu`. Absent: none."""
    priorityClassName: Annotated[ObjectName, Own("drivers[].priorityClassName")] = own("drivers[].priorityClassName")
    """PriorityClass of the pods. Absent or empty: system-node-critical."""
    podSecurityContext: PodSecurityContext | None = None
    """Security context of the pods. Absent: none."""
    startupProbe: RestartingProbe | None = None
    """How long the driver may take to build and load. Absent: 60 s and then 120 checks 10 s apart."""
    livenessProbe: RestartingProbe | None = None
    """There in the operator's API, but without effect. Absent: none."""
    readinessProbe: Probe | None = None
    """There in the operator's API, but without effect. Absent: none."""
    rdma: Rdma = section()
    gds: Gds = section()
    gdrcopy: GdrCopy = section()
    manager: DriverManager = section()
    repoConfig: ConfigMapRef = section()
    """ConfigMap with package sources for building the modules."""
    certConfig: ConfigMapRef = section()
    """ConfigMap with certificates of authorities that the package sources use."""
    licensingConfig: DriverLicensing = section()
    virtualTopologyConfig: ConfigMapRef = section()
    """ConfigMap with the topology file of vGPU guests."""
    kernelModuleConfig: ConfigMapRef = section()
    """ConfigMap with parameters of the kernel modules."""
    secretEnv: ObjectName | None = None
    """Secret whose keys become environment variables of the driver container. Absent or empty: none."""
    upgradePolicy: UpgradePolicy = section()
