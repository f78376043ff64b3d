"""`tenancy`: who may use how much of the GPUs, and what the pods of those who share them may not do.

Solves: a quota over a name that no node offers bounds nothing, and one that leaves out a name leaves it free. So a
tenant is given GPUs or slices of a pool, and the names follow from what the nodes of that pool offer.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gpustack.model import INT32
from gpustack.text.quantities import size

from .base import Section, items, mapping, own, section
from .forms import form, refuse_as, refuse_at
from .types import AtLeast1, DnsLabel, DnsSubdomain, Quantities

NVIDIA = "nvidia.com/"
HIGHEST = 1_000_000_000
"""What a PriorityClass of a user may be at most; more is the system's (kubernetes.io/docs/concepts/scheduling-eviction/
pod-priority-preemption)."""
PLENTY: dict[str, int | str] = {"cpu": "100k", "memory": "1Pi", "ephemeral-storage": "1Pi"}
"""Not a limit anybody wants, but Kueue admits no job that asks for something that its queue doesn't name."""
AS_SHARED = "gpu"
"""What slices are called that are not part of a GPU: shares of a whole one."""


class Part(Section):
    """What a tenant is given of a pool: one of the three."""

    gpus: AtLeast1 | None = None
    """Whole GPUs, where the pool's are neither cut nor shared. Absent: not said so."""
    slices: dict[str, AtLeast1] = mapping()
    """Parts of GPUs: by MIG profile (`3g.40gb: 2`), or `gpu` for shares of GPUs that are shared and not cut.
    Absent: not said so."""
    share: Annotated[str, form("share")] | None = None
    """A part of all that the pool offers, such as 25%, rounded down. Needs the pool's `count`; under an autoscaler it
    is of the most. Absent: not said so."""

    def model_post_init(self, _: Any) -> None:
        if sum(map(bool, (self.gpus, self.slices, self.share))) != 1:
            raise refuse_as("tenant_part", "one")


def _of_containers(amounts: dict[str, Any]) -> dict[str, Any]:
    for name in amounts:
        if name.startswith(NVIDIA):
            raise refuse_at((name,), refuse_as("limit_range", "gpu", name=name), name)
    for name in amounts:
        if name not in PLENTY:
            raise refuse_at((name,), refuse_as("limit_range", "other", name=name, known=", ".join(PLENTY)), name)
    return amounts


def _beside_gpus(amounts: dict[str, Any]) -> dict[str, Any]:
    for name in amounts:
        if name.startswith(NVIDIA):
            raise refuse_at((name,), refuse_as("beside", "gpu", name=name), name)
    return {**PLENTY, **amounts}


def _not_the_systems(name: str) -> str:
    if name.startswith("system-"):
        raise refuse_as("priority_name", "system")
    return name


ORDER = (("defaultRequest", "default"), ("default", "max"), ("defaultRequest", "max"))
Amounts = Annotated[Quantities, AfterValidator(_of_containers)]


class ContainerLimits(Section):
    """What a LimitRange gives to containers of the namespace, and bounds: processors, memory, ephemeral storage."""

    default: Amounts = mapping()
    """Limits of a container that has none. Absent: none."""
    defaultRequest: Amounts = mapping()
    """Requests of a container that has none. Absent: none."""
    max: Amounts = mapping()
    """The most that a container may have. Absent: no bound."""

    def model_post_init(self, _: Any) -> None:
        for less, more in ORDER:
            smaller, larger = getattr(self, less), getattr(self, more)
            for name in smaller.keys() & larger.keys():
                if size(smaller[name]) > size(larger[name]):
                    words = {"less": less, "name": name, "small": smaller[name], "more": more, "large": larger[name]}
                    raise refuse_at((less, name), refuse_as("limit_range", "order", **words), smaller[name])


class Tenant(Section):
    """Who has a namespace of the cluster, and how much of its GPUs."""

    name: DnsLabel
    """Name of the tenant, and of its queue. Layers merge tenants by it."""
    namespace: DnsLabel | None = None
    """The namespace of its pods. Absent: called like the tenant."""
    createNamespace: bool = False
    """Whether the namespace is rendered. It is never pruned. Absent: false, somebody else makes it."""
    pools: dict[DnsLabel, Part] = mapping()
    """What it may use, by the name of the node pool. Absent: nothing."""
    maxPerPod: AtLeast1 | None = None
    """How many GPUs or slices one pod may ask for. Absent: no bound but the quota."""
    priorities: list[DnsSubdomain] = items()
    """PriorityClasses that its pods may have. Absent: any, so also the one that evicts all others."""
    limits: ContainerLimits | None = None
    """Defaults and bounds of its containers, as a LimitRange. Absent: none."""

    @property
    def home(self) -> str:
        """The namespace of its pods."""
        return self.namespace or self.name


class Priority(Section):
    """A PriorityClass for pods that use GPUs."""

    name: Annotated[DnsSubdomain, AfterValidator(_not_the_systems)]
    """Name of the class."""
    value: Annotated[int, Field(ge=-INT32, le=HIGHEST)]
    """The higher, the sooner a pod is placed. Kubernetes never changes it: a new value needs a new name."""
    preempts: bool = True
    """Whether pods of the class evict others to find room. Absent: true."""
    description: str = ""
    """What it is for. Absent: nothing is said."""


class Queues(Section):
    """Queues in front of the tenants' quotas. The program is somebody else's installation."""

    kind: Literal["kueue", "kai"]
    """`kueue`: a ResourceFlavor for each pool, a ClusterQueue and a LocalQueue for each tenant (Kueue 0.15 or later).
    `kai`: a Queue of the KAI scheduler for each tenant, which counts whole GPUs."""
    cohort: DnsLabel = "gpus"
    """Name of the cohort, or of the queue above all others. Absent: gpus."""
    borrow: bool = True
    """Whether a tenant may use what others leave idle, until they want it. Absent: true."""
    localQueue: DnsLabel = "default"
    """Name of the LocalQueue in each namespace; jobs without a queue go to one called default. Absent: default."""
    beside: Annotated[Quantities, AfterValidator(_beside_gpus)] = Field(default_factory=lambda: dict(PLENTY))
    """How much of what else jobs ask for each tenant has in each pool; Kueue admits no job that asks for something
    that its queue doesn't name. Absent: more processors and memory than there are."""


class Admission(Section):
    """What pods in the tenants' namespaces may not do, as a ValidatingAdmissionPolicy: see the docs for the list."""

    mode: Literal["Audit", "Deny", "Off"] = own("tenancy.admission.mode")
    """`Audit` warns who sent the pod and notes it in the audit log, `Deny` refuses it, `Off` renders nothing. Absent:
    Audit, so that you see first whom it would hit."""
    sharingOptIn: bool = own("tenancy.admission.sharingOptIn")
    """Whether pods that ask for shared GPUs need the label gpustack.dev/shares-gpu: "true". Absent: true."""


class Exceptions(Section):
    """What lets the stack's own pods through, which are privileged, where other policy engines refuse such pods. Pod
    Security is `psa`."""

    kyverno: list[DnsSubdomain] = items()
    """Policies of Kyverno from which the stack's namespace is excepted, by a PolicyException; its controllers have to
    take those of that namespace. Absent: none."""
    gatekeeper: bool = False
    """Whether the stack's namespace has the label by which Gatekeeper leaves it out; Gatekeeper's option
    --exempt-namespace has to name it. Absent: false."""


class Tenancy(Section):
    """Who may use how much of the GPUs."""

    tenants: list[Tenant] = items()
    """The tenants. Absent: none."""
    priorities: list[Priority] = items()
    """PriorityClasses that are rendered. Absent: none."""
    queues: Queues | None = None
    """Queues of Kueue or the KAI scheduler. Absent: none."""
    admission: Admission = section()
    exceptions: Exceptions = section()

    def model_post_init(self, _: Any) -> None:
        for path, what, key, names in (
            ("tenants", "tenants are called", "name", [each.name for each in self.tenants]),
            ("tenants", "tenants have the namespace", "namespace", [each.home for each in self.tenants]),
            ("priorities", "priorities are called", "name", [each.name for each in self.priorities]),
        ):
            for index, name in enumerate(names):
                if name in names[:index]:
                    inherited = key == "namespace" and self.tenants[index].namespace is None
                    error = refuse_as("twice", "name", what=what, name=name, key=key)
                    raise refuse_at((path, index, "name" if inherited else key), error, name)
