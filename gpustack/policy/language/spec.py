"""The whole policy: `ClusterPolicy` for a cluster, `PolicyLayer` for what clusters share, and the spec of both.

`extends` is in the file but not here: it is used up when layers are merged, before a model sees the data. A policy that
has been merged and filled with defaults is the *effective spec*, a `ClusterPolicySpec`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import AfterValidator, PrivateAttr

from gpustack.catalog.kinds import NONE, Kinds, kinds_in

from . import host, sandbox
from .alerts import Alerts, Dashboards
from .base import Section, items, mapping, section
from .carried import Carried, one_each
from .cluster import Cluster, ClusterFacts
from .daemonsets import DaemonSets
from .dcgm import Dcgm, DcgmExporter
from .device_plugin import DevicePlugin, Gfd
from .driver import Driver, NvidiaDriver
from .extra import Compat, Manifest, Reference, checked, constructs_in
from .gitops import GitOps
from .gpu_cluster import ComputeDomainsBesideThePlugin, GpuCluster
from .guards import Guards
from .nfd import Nfd
from .node_pools import NodePool, unique_names
from .reconciler import Reconciler
from .sandbox import KubeVirt
from .secrets import SecretSource
from .sharing import Mig, MigManager
from .tenancy import Tenancy
from .types import ClusterName, Labels, Release
from .verify import Validator, Verify

if TYPE_CHECKING:
    from ..loading.constructs import Constructs

API_VERSION = "gpustack.dev/v1alpha1"


class PolicySpec(Section):
    """What a policy or a layer says. Whatever is absent comes from the layers, the platform and the release."""

    release: Release | None = None
    """Release of the GPU operator whose component versions and defaults are taken, such as v26.7.0. Has no default."""
    defaults: Literal["chart", "operator"] | None = None
    """What an absent field of the operator's ClusterPolicy means: `chart`, what the chart of the release writes, or
    `operator`, what the operator makes of an object that no chart wrote (OLM, `kubectl apply`). Absent: chart."""
    cluster: ClusterFacts = section()
    """What the cluster is: its Kubernetes version, platform, container runtime."""
    nodePools: Annotated[list[NodePool], AfterValidator(unique_names)] = items()
    """The nodes that have GPUs, by what tells them apart, and what each group of them gets. Absent: nothing is known
    about the nodes, and all get the same."""
    nfd: Nfd = section()
    """Node feature discovery, which finds the nodes that have GPUs."""
    daemonsets: DaemonSets = section()
    """What holds for the pods of every component."""
    hostPaths: host.HostPaths = section()
    """Where things are on the nodes."""
    driver: Driver = section()
    """The NVIDIA kernel driver."""
    toolkit: host.Toolkit = section()
    """The container toolkit, which teaches the container runtime to hand out GPUs."""
    cdi: host.Cdi = section()
    """The container device interface, by which the runtime injects GPUs."""
    devicePlugin: DevicePlugin = section()
    """The device plugin, which offers a node's GPUs to the kubelet."""
    gfd: Gfd = section()
    """GPU feature discovery, which labels nodes with what their GPUs are."""
    mig: Mig = section()
    """How MIG instances are offered."""
    migManager: MigManager = section()
    """The MIG manager, which cuts GPUs into instances."""
    dcgm: Dcgm = section()
    """The stand-alone DCGM host engine."""
    dcgmExporter: DcgmExporter = section()
    """The exporter of GPU metrics for Prometheus."""
    nodeStatusExporter: host.NodeStatusExporter = section()
    """The exporter of a node's validation state for Prometheus."""
    validator: Validator = section()
    """The pods that prove a node's GPUs usable."""
    gds: host.Gds = section()
    """GPUDirect Storage."""
    gdrcopy: host.GdrCopy = section()
    """GDRCopy, low-latency copies between CPU and GPU memory."""
    operator: host.Operator = section()
    """Settings of the operator that outlive it, such as the name of the RuntimeClass."""
    psa: host.Psa = section()
    """Pod Security admission of the namespace."""
    psp: host.Psp = section()
    """Pod Security policies, which Kubernetes 1.25 removed."""
    sandboxWorkloads: sandbox.SandboxWorkloads = section()
    """GPUs for virtual machines and Kata containers."""
    vgpuManager: sandbox.VgpuManager = section()
    """The vGPU host driver."""
    vgpuDeviceManager: sandbox.VgpuDeviceManager = section()
    """The manager that creates vGPU devices."""
    vfioManager: sandbox.VfioManager = section()
    """The manager that binds GPUs to vfio-pci."""
    sandboxDevicePlugin: sandbox.SandboxDevicePlugin = section()
    """The device plugin for virtual machines of KubeVirt."""
    kataSandboxDevicePlugin: sandbox.KataSandboxDevicePlugin = section()
    """The device plugin for Kata containers."""
    kataManager: sandbox.KataManager = section()
    """The Kata manager, deprecated."""
    ccManager: sandbox.CcManager = section()
    """The manager of confidential computing."""
    extraObjects: list[Manifest] = items()
    """Kubernetes objects that are rendered along, each a whole manifest. Layers merge them by API group, kind,
    namespace (absent: `cluster.namespace`) and name, rules of a PrometheusRule by `alert` or `record`; one with
    `$replace: true` takes the place of a layer's whole. Absent: none."""
    constructs: Annotated[dict[str, dict[str, Any]], AfterValidator(checked)] = mapping()
    """What a team's own constructs are told, each by its name: sections that installed distributions bring. Absent:
    none."""
    references: list[Reference] = items()
    """Objects that others put into the cluster, so that names which point at them are known to exist. Absent: none."""
    secrets: list[SecretSource] = items()
    """From where the Secrets come that the stack names: a secret store, or sealed text. Absent: others bring them."""
    compat: Compat = section()
    """What other software finds of the operator where it looks for one."""
    drivers: list[NvidiaDriver] = items()
    """Drivers for groups of nodes, with `driver.useNvidiaDriverCRD` or `gpuCluster`. Absent: none."""
    gpuCluster: GpuCluster | None = None
    """GPUs by dynamic resource allocation, from Kubernetes 1.34. Absent: the device plugin offers GPUs."""
    computeDomains: ComputeDomainsBesideThePlugin = section()
    """Nodes that share memory over NVLink, beside the device plugin, from Kubernetes 1.34."""
    reconciler: Reconciler | None = None
    """The program in the cluster that labels nodes and rolls drivers and MIG layouts. Absent: none, and nobody labels
    nodes."""
    guards: Guards = section()
    """What the API server refuses to the stack's own accounts, and who may reach its pods."""
    carried: Annotated[list[Carried], AfterValidator(one_each)] = items()
    """What DaemonSets that were there before gpustack keep of what they were, so that their pods go on running. Absent:
    nothing."""
    gitops: GitOps | None = None
    """The engine that syncs the render: its own objects are rendered along. Absent: none."""
    alerts: Alerts | None = None
    """Alerts about GPUs, as a PrometheusRule. Absent: none but those of the reconciler."""
    dashboards: Dashboards | None = None
    """Dashboards about GPUs, for Grafana. Absent: none."""
    verify: Verify | None = None
    """The cluster held against its policy on a schedule. Absent: nothing in the cluster does that."""
    tenancy: Tenancy | None = None
    """Who may use how much of the GPUs. Absent: whoever comes first."""
    kubevirt: KubeVirt | None = None
    """GPUs that KubeVirt lets virtual machines use. Absent: its configuration is left alone."""


class ClusterPolicySpec(PolicySpec):
    """The effective spec of one cluster. `kinds` and `known_constructs` are what the policy repository brings along,
    by which it was validated.
    """

    release: Release
    """Release of the GPU operator whose component versions and defaults are taken, such as v26.7.0. Has no default."""
    cluster: Cluster = section()
    """What the cluster is: its Kubernetes version, platform, container runtime."""
    _kinds: Kinds = PrivateAttr(default=NONE)

    _known_constructs: object = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        self._kinds = kinds_in(context)
        self._known_constructs = constructs_in(context)

    @property
    def kinds(self) -> Kinds:
        return self._kinds

    @property
    def known_constructs(self) -> Constructs | None:
        return cast("Constructs | None", self._known_constructs)  # pydantic would ask for the type itself


class Metadata(Section):
    """Name of a policy."""

    name: ClusterName
    """Name of the cluster, layer or change; for a cluster also the name of its folder below dist/."""
    labels: Labels = mapping()
    """Labels of the cluster, by which rings may name it (`policies/fleet.yaml`). Absent: none. Layers and changes have
    none."""


class PolicyLayer(Section):
    """What several clusters share. `extends` of a cluster names it."""

    apiVersion: Literal["gpustack.dev/v1alpha1"]
    """Version of the language."""
    kind: Literal["PolicyLayer"]
    """PolicyLayer."""
    metadata: Metadata | None = None
    """Name of the layer. Absent: that of its file, without .yaml."""
    spec: PolicySpec = section()
    """What clusters take over from it."""


class ClusterPolicy(Section):
    """The policy of one cluster, merged with its layers."""

    apiVersion: Literal["gpustack.dev/v1alpha1"]
    """Version of the language."""
    kind: Literal["ClusterPolicy"]
    """ClusterPolicy."""
    metadata: Metadata
    """Name of the cluster."""
    spec: ClusterPolicySpec
    """What the cluster's GPU stack is."""
