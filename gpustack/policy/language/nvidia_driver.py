"""`drivers`: several drivers in one cluster, each for the nodes that it selects (the operator's kind NVIDIADriver)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import Own, Section, items, mapping, own, section
from .daemonsets import PodSecurityContext, Toleration
from .driver import ConfigMapRef, ModuleType, Rdma, UpgradePolicy
from .host import GdrCopy, Gds
from .operand import DriverManager, Probe, RestartingProbe, Workload
from .types import Annotations, DnsSubdomain, LabelKey, Labels, ObjectName, Text


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
    """Name of the driver, at most 63 characters: it becomes part of the names of its objects and a label of its
    nodes."""
    default: bool = False
    """Whether it serves the nodes that no other driver selects. Absent: false."""
    driverType: Literal["gpu", "vgpu", "vgpu-host-manager"] = own("drivers[].driverType")
    """Data-centre driver, vGPU guest driver or vGPU host driver. Images of the last two are your own. Absent: gpu."""
    kernelModuleType: ModuleType = own("drivers[].kernelModuleType")
    """Which kernel modules are built: open, proprietary, or the ones that suit GPU and branch. Absent: auto."""
    usePrecompiled: bool = False
    """Whether images with modules built for one kernel are used; `version` is then a branch such as "595". Absent:
    false."""
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
    """GPUDirect RDMA."""
    gds: Gds = section()
    """GPUDirect Storage."""
    gdrcopy: GdrCopy = section()
    """GDRCopy."""
    manager: DriverManager = section()
    """The init container that unloads an old driver first."""
    repoConfig: ConfigMapRef = section()
    """ConfigMap with package sources for building the modules."""
    certConfig: ConfigMapRef = section()
    """ConfigMap with certificates of authorities that the package sources use."""
    licensingConfig: DriverLicensing = section()
    """Licence of a vGPU guest driver."""
    virtualTopologyConfig: ConfigMapRef = section()
    """ConfigMap with the topology file of vGPU guests."""
    kernelModuleConfig: ConfigMapRef = section()
    """ConfigMap with parameters of the kernel modules."""
    secretEnv: ObjectName | None = None
    """Secret whose keys become environment variables of the driver container. Absent or empty: none."""
    upgradePolicy: UpgradePolicy = section()
    """How a new driver reaches the nodes."""
