"""`reconciler`: the program in the cluster that labels nodes, rolls drivers and changes MIG layouts.

Without it nobody sets the labels that everything else waits for, unless `labelling: nodeFeatureRule` lets node feature
discovery do so. That takes no program, and does for clusters in which nothing pauses labels and nothing is rolled out.

`reconciler.health`: what is done with nodes whose conditions tell of a fault of a GPU. Who sees the fault is somebody
else's installation: node-problem-detector, NVSentinel, an agent of the cloud. A section that nobody could act on, or in
which a rule never counts, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from . import guards
from .base import Own, Section, items, mapping, own, section
from .daemonsets import Toleration
from .forms import Number, form, refuse_as, refuse_at
from .node_pools import Taint, Window
from .operand import ImageSource, ResourceRequirements
from .types import (
    AtLeast0,
    AtLeast1,
    Day,
    DnsLabel,
    ImageName,
    ImageRepository,
    ImageTagOrDigest,
    IntOrPercent,
    LabelKey,
    Labels,
    LabelValue,
    ObjectName,
)

if TYPE_CHECKING:
    from .spec import ClusterPolicySpec

Labelling = Literal["program", "nodeFeatureRule", "none"]
Minutes = Annotated[int, Field(ge=60, le=86400)]
"""Seconds, from a minute to a day."""


class Deadlines(Section):
    """How long a step may take on a node before it counts as failed, in seconds."""

    driver: Minutes = own("reconciler.deadlines.driver")
    """From the end of the old driver to a ready new one. Absent: 5400, as driver manager and driver may wait for many
    things, 5 to 20 minutes each."""
    mig: Minutes = own("reconciler.deadlines.mig")
    """From a new MIG layout's command to its success; where the MIG manager may reboot, as long again. Absent: 1800."""
    verifying: Annotated[int, Field(ge=600, le=86400)] = own("reconciler.deadlines.verifying")
    """From there to a validator that has succeeded and GPUs that the kubelet offers, from 10 minutes on: a validator
    that nothing else restarts is made to run again after 5. Absent: 900."""


class PodRule(Section):
    """What becomes of pods that use a GPU of a node that is to be worked on."""

    labels: Annotated[Labels, Field(min_length=1)]
    """The pods' labels, all of them."""
    namespace: DnsLabel | None = None
    """The pods' namespace. Absent: any."""
    then: Literal["leave", "wait", "evict", "delete"]
    """`leave`: they count as none that uses one, for pods that open no GPU though it looks so; a driver that they hold
    in use does not unload. `wait`: nobody is evicted before they have ended, as with
    `driver.upgradePolicy.waitForCompletion`. `evict`: as without a rule. `delete`: they are deleted, whatever a
    PodDisruptionBudget says, whether or not something makes them anew, and with what they have in an emptyDir."""


class LabelOrder(Section):
    """Nodes by a label: those with the first value go first, those with none of them last."""

    key: LabelKey
    """The label."""
    values: Annotated[list[LabelValue], Field(min_length=1)]
    """Its values, in the order in which nodes have their turn."""


class NodeOrder(Section):
    """Which nodes of a roll-out have their turn first. Broken nodes go before all others, and nodes of the zone where
    the fewest are out of service before those of another."""

    labels: list[LabelOrder] = items()
    """By labels; the first decides before the second. Absent: no label counts."""
    leastUsed: bool = own("reconciler.order.leastUsed")
    """Whether, of the nodes whose turn comes next, those with the fewest pods that use a GPU go first. Absent: false,
    they go by name."""


class Kured(Section):
    """kured's DaemonSet, whose annotation `weave.works/kured-node-lock` is its lock. The program gets the right to see
    it, and none to change it."""

    namespace: DnsLabel = "kube-system"
    """Its namespace. Absent: kube-system."""
    name: ObjectName = "kured"
    """Its name. Absent: kured."""


class Prepull(Section):
    """Images of drivers on the nodes before they are taken out of service: a DaemonSet for each of a driver, whose pods
    run these images without rights or mounts, and do nothing."""

    maxUnavailable: Annotated[int | str, Number(form("some_nodes"), least=1)] = "100%"
    """How many nodes pull at a time: a number, or a percentage rounded up. Those that can't get an image count:
    where so many can't, no other one gets it. Absent: 100%, all at once."""
    timeoutSeconds: Minutes = 3600
    """How long a node waits for the images of its next driver before `then` counts. Absent: 3600."""
    then: Literal["wait", "begin"] = "wait"
    """What becomes of it after that: it keeps its driver and waits on (`wait`), or has its turn all the same, and the
    images are pulled once it is empty (`begin`). Either is told by an Event. Absent: wait."""


KUBELET = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
"""Conditions that Kubernetes acts on itself (kubernetes.io/docs/reference/node/node-status)."""
Seconds = Annotated[int, Field(ge=0, le=86400)]
Share = Annotated[str, form("share")]


def _of_others(name: str) -> str:
    if name in KUBELET:
        raise refuse_as("health", "kubelet", name=name)
    return name


class Condition(Section):
    """What a condition of a node means; of several for one type the first counts that the condition matches."""

    type: Annotated[LabelKey, AfterValidator(_of_others)]
    """Type of the condition."""
    status: Literal["True", "False"] = "True"
    """With which it tells of a fault. Absent: "True"."""
    reasons: list[str] = items()
    """Patterns of its reason, as in a shell; one has to fit. Absent: any reason."""
    messages: list[str] = items()
    """Patterns of its message, such as `*RESTART_VM*`. Absent: any message."""
    then: Literal["report", "cordon", "drain"]
    """`report`: it is told. `cordon`: no new pod comes, and those that are there go on. `drain`: those that use a GPU
    are evicted, within their PodDisruptionBudgets."""
    request: Literal["none", "reset", "reboot"] = "none"
    """What the annotation `gpustack.dev/requested` asks for once no pod uses a GPU of the node. Absent: none."""
    heartbeatSeconds: AtLeast0 = 0
    """After how long without a heartbeat nobody knows whether it still holds; 0: it has no heartbeat. Absent: 0."""

    def model_post_init(self, _: Any) -> None:
        if self.then == "report" and self.request != "none":
            raise refuse_at(("request",), refuse_as("health", "request", request=self.request), self.request)

    def hides(self, other: Condition) -> bool:
        """Whether OTHER, which comes after it, never counts."""
        texts = (self.reasons, self.messages)
        wider = texts in (([], []), (other.reasons, other.messages))
        return wider and (self.type, self.status) == (other.type, other.status)


class Health(Section):
    """What is done with nodes whose conditions tell of a fault of a GPU."""

    owner: Literal["reconciler", "platform", "nvsentinel"] | None = None
    """Who takes such nodes out of service. With another owner than `reconciler` the program only reports. Absent:
    reconciler; where somebody else may do so by himself it has to be said."""
    detectors: list[Literal["nvsentinel", "nodeProblemDetector", "aks", "eks"]] = items()
    """Whose conditions are known: what each means stands in the docs. Absent: none but `conditions`."""
    logMonitorNamespace: DnsLabel | None = None
    """Namespace of node-problem-detector, where its rules about GPUs are rendered, as a ConfigMap. Absent: it has some
    already."""
    conditions: list[Condition] = items()
    """What further conditions mean, or these of a detector instead. Absent: nothing further."""
    reportOnlyUntil: Day | None = None
    """The last day on which faults are only reported: YYYY-MM-DD, in UTC. Absent: 30 days after the first NodePolicy of
    the cluster was made."""
    maxNodes: AtLeast1 = 3
    """How many nodes may be out of service for a fault at a time, in all pools together; budgets of roll-outs count
    besides. Absent: 3."""
    maxShare: Share = "10%"
    """The same as a part of all nodes with a GPU, rounded up; the smaller one counts. Absent: 10%."""
    breakerShare: Share = "20%"
    """Where more nodes than this part, and more than one, tell of a fault at once, nothing is done about any: it is the
    detector that is believed to be at fault. Absent: 20%."""
    holdSeconds: Seconds = 120
    """How long a fault must be told of without a break before anything is done. Absent: 120."""
    settleSeconds: Seconds = 600
    """How long none may be told of before a node is given back. Absent: 600."""
    requestSeconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """How long a reset or a reboot is waited for; after that the node's slot is another's. Absent: 3600."""

    @property
    def acts(self) -> bool:
        """Whether the program takes nodes out of service."""
        return self.owner in {None, "reconciler"}

    def model_post_init(self, _: Any) -> None:
        if not (self.detectors or self.conditions):
            raise refuse_as("health", "nothing")
        if self.logMonitorNamespace and "nodeProblemDetector" not in self.detectors:
            raise refuse_at(("logMonitorNamespace",), refuse_as("health", "monitor"), self.logMonitorNamespace)
        if int(self.maxShare.rstrip("%")) > int(self.breakerShare.rstrip("%")):
            error = refuse_as("health", "never", most=self.maxShare, breaker=self.breakerShare)
            raise refuse_at(("maxShare",), error, self.maxShare)
        for index, each in enumerate(self.conditions):
            hidden = any(other.hides(each) for other in self.conditions[:index])
            if hidden or (each.then != "report" and not self.acts):
                error = refuse_as("health", "hidden" if hidden else "owner", type=each.type, owner=self.owner)
                raise refuse_at(("conditions", index, "then"), error, each.then)


class Reconciler(ImageSource):
    """The program in the cluster that labels nodes and rolls drivers and MIG layouts."""

    repository: ImageRepository | None = None
    """Registry and path before the image's name. Absent: `image` is a whole reference."""
    image: ImageName | None = None
    """The image that you have built with the project's Containerfile; there is none to pull. With `repository` and
    `version` empty, a whole reference. Absent: none, which is refused unless `labelling` is `nodeFeatureRule`."""
    version: ImageTagOrDigest | None = None
    """Tag or `sha256:` digest of the image. Absent: `image` is a whole reference."""
    replicas: AtLeast0 = own("reconciler.replicas")
    """How many copies run; one of them works at a time. 0 stops the program and takes nothing away: the first step of
    `gpustack reconciler uninstall`. Absent: 2."""
    resources: ResourceRequirements | None = None
    """CPU and memory of each copy. Absent, or what is not said of it: requests of 50m and 64Mi, a limit of 256Mi of
    memory. 1,000 nodes with 30 pods each, 100 of them worked on at a time, took 147 MB at most; what is known of 5,000
    idle ones 139 MB."""
    priorityClassName: Annotated[ObjectName, Own("reconciler.priorityClassName")] = own("reconciler.priorityClassName")
    """PriorityClass of its pods. Absent or empty: system-cluster-critical."""
    nodeSelector: Labels = mapping()
    """Labels of the nodes that it may run on. Absent: any node, those without GPUs first."""
    tolerations: list[Toleration] | None = None
    """Tolerations of its pods, instead of the built-in ones for control planes and the taint `nvidia.com/gpu`; an empty
    list: no tolerations. Absent: the built-in ones."""
    labelling: Labelling = own("reconciler.labelling")
    """Who sets the labels of nodes: the program, rules of node feature discovery without any program
    (`nodeFeatureRule`, for clusters whose nodes bring their driver and have no MIG manager), or your own tooling
    (`none`; the program rolls drivers and MIG layouts only). Absent: program."""
    admissionPolicy: bool = True
    """Whether the API server holds the program to its own labels, annotations, cordons and `startupTaints`, on GPU
    nodes: access rights can't say so. Absent: true from Kubernetes 1.30 on, which is the first to know such
    policies."""
    flowSchema: bool = own("reconciler.flowSchema")
    """Whether its lease is renewed ahead of other requests when the API server is busy. Absent: true."""
    windows: list[Window] = items()
    """Times at which nodes may be taken out of service, for pools that say none of their own. Absent: any time."""
    startupTaints: list[Taint] = items()
    """Taints with which the platform brings up nodes, removed from a node when its GPUs are proved. Pods of the stack
    must tolerate them. Absent: none."""
    installParallel: AtLeast1 = own("reconciler.installParallel")
    """How many new nodes are set up at a time; they serve nobody yet, so no budget counts them. Absent: 50."""
    clientNamespaces: list[DnsLabel] = items()
    """Namespaces whose DaemonSets with the nodeSelector `nvidia.com/gpu.deploy.client: "true"` are left to the driver
    manager and the MIG manager, which take their pods off a node themselves. In any other namespace such pods count as
    what they are, users of GPUs. Whoever can create a DaemonSet in one of them decides when a node can be worked on.
    Absent: none."""
    breakerFailures: IntOrPercent = own("reconciler.breakerFailures")
    """Failed nodes of one roll-out that stop it until somebody looks: a number, or a percentage of the nodes of the
    NodePolicy, rounded up; 0 is never. Absent: 3."""
    firstAlone: bool = own("reconciler.firstAlone")
    """Whether the first node of each driver and MIG layout, on each GPU product and kernel, goes alone, until it works.
    Absent: true."""
    soakSeconds: AtLeast0 = own("reconciler.soakSeconds")
    """How long after a node of a roll-out is done the next of its NodePolicy waits, so that trouble shows that comes
    under load only. New nodes, repairs and further attempts at a node that has failed don't wait. Absent: 0, the next
    follows at once."""
    prepull: Prepull | None = None
    """Images of drivers are pulled before nodes are taken out of service; an empty section will do. Absent: when the
    new driver's pod starts, on a node that has none by then."""
    podRules: list[PodRule] = items()
    """Rules for pods that use a GPU; the first that a pod matches counts. With one that says `delete` the program may
    delete pods, as the API server holds it to. Absent: all are evicted."""
    ignoreBudgetsAfterSeconds: AtLeast0 | None = None
    """How long PodDisruptionBudgets may hold up a node whose turn it is, before its pods are deleted and not evicted.
    With it the program may delete pods that use a GPU. Absent: they hold it up as long as they refuse."""
    order: NodeOrder = section()
    maintenanceLeaseNamespace: DnsLabel | None = None
    """Namespace of the Leases `node-NAME` by which maintenance of nodes is shared, as medik8s' node maintenance and its
    remediations do in `medik8s-leases`: nothing begins on a node whose Lease another one holds, and the program holds
    it while it works on the node. With it the program may write Leases there. Absent: none."""
    kured: Kured | None = None
    """kured, with which maintenance is shared: no node is begun while its lock says that it reboots as many as it may;
    an empty section will do. Absent: a node that kured reboots is left alone where kured annotates it, and it may
    reboot others meanwhile."""
    maxAttempts: AtLeast1 = own("reconciler.maxAttempts")
    """How often a change is tried on a node before the node stays out of service. Absent: 3."""
    health: Health | None = None
    """What is done with nodes whose conditions tell of a fault of a GPU. Absent: nobody looks at conditions."""
    labelGraceSeconds: AtLeast0 = own("reconciler.labelGraceSeconds")
    """How long a GPU must be gone from a node before the node's labels are removed. Absent: 900."""
    deadlines: Deadlines = section()


def labelling(spec: ClusterPolicySpec) -> Labelling | None:
    """Who sets the labels of nodes; None where the policy has no reconciler, and people do."""
    return None if spec.reconciler is None else spec.reconciler.labelling


def runs(spec: ClusterPolicySpec) -> bool:
    """Whether the program runs."""
    return labelling(spec) in {"program", "none"}


def guard(spec: ClusterPolicySpec) -> guards.Mode:
    """How the API server holds the program to its own: Off where no guard of it is rendered."""
    unguarded = spec.reconciler is not None and not spec.reconciler.admissionPolicy
    return "Off" if unguarded else guards.mode(spec)
