"""`nodePools[].autoscaling` and `readiness`: who brings a pool's nodes up, and who lets pods onto them.

Solves: an autoscaler decides on nodes that aren't there, by what it is told of them. What the policy says of a pool
anyway (labels, taints, how GPUs are cut and shared) is told to it from here, and nothing of that is a field again. The
fields are Karpenter's and the Node Readiness Controller's own (nodes.md 1.4, 3).
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import Section, items, mapping
from .forms import TextAt, form, refuse_as, refuse_at
from .types import AtLeast1, DnsSubdomain, LabelKey, LabelValue, NodeText, Quantities

Status = Literal["True", "False", "Unknown"]
VALUES = {"In": (1, 1000), "NotIn": (1, 1000), "Gt": (1, 1), "Lt": (1, 1), "Exists": (0, 0), "DoesNotExist": (0, 0)}
"""How many values each operator takes (Karpenter's NodePool, spec.template.spec.requirements)."""
SpanOrNever = Annotated[str, form("span_or_never")]


class NodeClass(Section):
    """Who has the settings that only the cloud knows: an object of Karpenter's provider."""

    name: DnsSubdomain
    """Its name."""
    kind: Annotated[str, form("kind")] | None = None
    """Its kind. Absent: EC2NodeClass on EKS, AKSNodeClass on AKS."""
    group: DnsSubdomain | None = None
    """Its API group. Absent: that of the kind."""

    def model_post_init(self, _: Any) -> None:
        if (self.kind is None) != (self.group is None):
            raise refuse_as("node_class", "half")


class Requirement(Section):
    """What else instances of the pool have to be."""

    key: LabelKey
    """A label that Karpenter or its provider knows of instances."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the label's value relates to `values`."""
    values: list[LabelValue] = items()
    """The values. Absent: none, for Exists and DoesNotExist."""

    def model_post_init(self, _: Any) -> None:
        least, most = VALUES[self.operator]
        if not least <= len(self.values) <= most:
            count = {0: "no values", 1: "one value"}[most] if most < 2 else "at least one value"
            raise refuse_as("requirement", "values", operator=self.operator, count=count)
        if self.operator in {"Gt", "Lt"} and not self.values[0].isdigit():
            raise refuse_as("requirement", "number", value=self.values[0])


class Karpenter(Section):
    """A NodePool of Karpenter (1.7 or later). Karpenter is somebody else's installation."""

    nodeClass: Annotated[NodeClass, TextAt("name")]
    """The node class, by its name, or with kind and group. Somebody else makes it."""
    instanceTypes: list[NodeText] = items()
    """Instance types that may be taken. Absent: those that `nodeSelector` or `requirements` leave."""
    capacityTypes: list[Literal["on-demand", "spot", "reserved"]] = items()
    """How they may be paid for. Absent: Karpenter's choice, which is on-demand."""
    requirements: list[Requirement] = items()
    """What else they have to be. Absent: nothing more."""
    limits: Quantities = mapping()
    """The most of each resource beside the number of nodes, which is `count`. Absent: no more limits."""
    consolidate: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = "WhenEmpty"
    """Which nodes Karpenter takes away to save money. Absent: WhenEmpty."""
    consolidateAfter: SpanOrNever = "10m"
    """How long they have to be so before, or `Never`. Absent: 10m."""
    expireAfter: SpanOrNever = "Never"
    """How old a node may become. Karpenter heeds no budget when a node expires. Absent: Never."""
    terminationGracePeriod: Annotated[str, form("span")] | None = None
    """How long pods may hold up a node that goes; after that budgets and `do-not-disrupt` count no more. Absent: as
    long as they do."""
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Which pool is tried first where several fit: the highest. Absent: 0."""


class NodeGroup(Section):
    """A node group that cluster-autoscaler scales. `gpustack nodes` prints what to write on it."""

    kind: Literal["aws", "azure", "gke", "aks", "clusterApi"] | None = None
    """What it is: an Auto Scaling group (`aws`), a scale set of your own (`azure`), a node pool of GKE or AKS, or a
    MachineDeployment (`clusterApi`). Absent: that of the platform."""
    resources: Quantities = mapping()
    """What a node offers besides GPUs: `cpu`, `memory`, `ephemeral-storage`. Absent: what the cloud says of the
    instance type; `clusterApi` needs cpu and memory."""
    maxPods: AtLeast1 | None = None
    """Pods on a node, for `clusterApi`. Absent: 110."""

    def model_post_init(self, _: Any) -> None:
        for name in self.resources:
            if name not in {"cpu", "memory", "ephemeral-storage"}:
                raise refuse_at(("resources", name), refuse_as("node_group", "resource", name=name), name)


class Autoscaling(Section):
    """Who changes the number of the pool's nodes: one of the two. Nothing set: nobody, or nobody is told."""

    karpenter: Karpenter | None = None
    """Karpenter, by a NodePool that is rendered. Absent: not Karpenter."""
    nodeGroup: NodeGroup | None = None
    """cluster-autoscaler, by tags or annotations of the node group. Absent: not cluster-autoscaler."""

    def model_post_init(self, _: Any) -> None:
        if self.karpenter and self.nodeGroup:
            raise refuse_as("autoscaling", "both")


class Readiness(Section):
    """A NodeReadinessRule: the Node Readiness Controller, which is somebody else's installation, keeps a taint on nodes
    until conditions hold that others set, such as node-problem-detector."""

    conditions: Annotated[dict[Annotated[str, form("condition_type")], Status], Field(min_length=1, max_length=32)]
    """The conditions, by their types, and what each has to be: `{example.com/GpuReady: "True"}`."""
    taint: Annotated[str, form("readiness_taint")] = "readiness.k8s.io/gpu"
    """Key of the taint, whose effect is NoSchedule. Absent: readiness.k8s.io/gpu."""
    mode: Literal["bootstrap-only", "continuous"] = "bootstrap-only"
    """Whether it comes back when a condition no longer holds. Absent: bootstrap-only."""
    dryRun: bool = False
    """Whether the controller says what it would do, and does nothing. Absent: false."""
