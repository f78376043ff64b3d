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
from .forms import form
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
from .types import Labels, Release
from .verify import Validator, Verify

if TYPE_CHECKING:
    from ..loading.constructs import Constructs


class PolicySpec(Section):
    """What a policy or a layer says. Whatever is absent comes from the layers, the platform and the release."""

    release: Release | None = None
    """Release of the GPU operator whose component versions and defaults are taken, such as v26.7.0. Has no default."""
    defaults: Literal["chart", "operator"] | None = None
    """What an absent field of the operator's ClusterPolicy means: `chart`, what the chart of the release writes, or
    `operator`, what the operator makes of an object that no chart wrote (OLM, `kubectl apply`). Absent: chart."""
    cluster: ClusterFacts = section()
    nodePools: Annotated[list[NodePool], AfterValidator(unique_names)] = items()
    """The nodes that have GPUs, by what tells them apart, and what each group of them gets. Absent: nothing is known
    about the nodes, and all get the same."""
    nfd: Nfd = section()
    daemonsets: DaemonSets = section()
    hostPaths: host.HostPaths = section()
    driver: Driver = section()
    toolkit: host.Toolkit = section()
    """The container toolkit, which teaches the container runtime to hand out GPUs."""
    cdi: host.Cdi = section()
    devicePlugin: DevicePlugin = section()
    gfd: Gfd = section()
    mig: Mig = section()
    migManager: MigManager = section()
    dcgm: Dcgm = section()
    dcgmExporter: DcgmExporter = section()
    nodeStatusExporter: host.NodeStatusExporter = section()
    validator: Validator = section()
    gds: host.Gds = section()
    gdrcopy: host.GdrCopy = section()
    operator: host.Operator = section()
    psa: host.Psa = section()
    psp: host.Psp = section()
    sandboxWorkloads: sandbox.SandboxWorkloads = section()
    vgpuManager: sandbox.VgpuManager = section()
    vgpuDeviceManager: sandbox.VgpuDeviceManager = section()
    vfioManager: sandbox.VfioManager = section()
    sandboxDevicePlugin: sandbox.SandboxDevicePlugin = section()
    kataSandboxDevicePlugin: sandbox.KataSandboxDevicePlugin = section()
    kataManager: sandbox.KataManager = section()
    ccManager: sandbox.CcManager = section()
    extraObjects: list[Manifest] = items()
    """Kubernetes objects that are rendered along, each a whole manifest. Layers merge them by API group, kind,
    namespace (absent: `cluster.namespace`) and name, rules of a PrometheusRule by `alert` or `record`; one with
    `$replace: true` takes the place of a layer's whole. Absent: none."""
    constructs: Annotated[dict[str, dict[str, Any]], AfterValidator(checked)] = mapping()
    """What a team's own constructs are told, by name: sections that installed distributions bring. Absent: none."""
    references: list[Reference] = items()
    """Objects that others put into the cluster, so that names which point at them are known to exist. Absent: none."""
    secrets: list[SecretSource] = items()
    """From where the Secrets come that the stack names: a secret store, or sealed text. Absent: others bring them."""
    compat: Compat = section()
    drivers: list[NvidiaDriver] = items()
    """Drivers for groups of nodes, with `driver.useNvidiaDriverCRD` or `gpuCluster`. Absent: none."""
    gpuCluster: GpuCluster | None = None
    """GPUs by dynamic resource allocation, from Kubernetes 1.34. Absent: the device plugin offers GPUs."""
    computeDomains: ComputeDomainsBesideThePlugin = section()
    reconciler: Reconciler | None = None
    """The program in the cluster that labels nodes and rolls drivers and MIG layouts. Absent: none, and nobody labels
    nodes."""
    guards: Guards = section()
    carried: Annotated[list[Carried], AfterValidator(one_each)] = items()
    """What DaemonSets from before gpustack keep of what they were, so that pods go on running. Absent: nothing."""
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
    """The effective spec of one cluster; `kinds` and `known_constructs` are what it was validated with."""

    release: Release
    cluster: Cluster = section()
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

    name: Annotated[str, form("cluster_name")]
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
