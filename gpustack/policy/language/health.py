"""`reconciler.health`: what is done with nodes whose conditions tell of a fault of a GPU, and for how many of them.

Who sees the fault is somebody else's installation: node-problem-detector, NVSentinel, an agent of the cloud. A section
that nobody could act on, or in which a rule never counts, is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from .base import Section, items
from .forms import form, refuse_as, refuse_at
from .types import AtLeast0, AtLeast1, Day, DnsLabel, LabelKey

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
