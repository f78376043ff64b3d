"""Objects that anybody may create, as small as they are needed.

Solves: whoever may create pods may fill each with 1.5 MiB of labels, environment or claims, and a node may have
hundreds of them. What is kept of a pod is what a rule looks at; each page of a list is cut to that before the next is
asked for (client.py), so memory is bounded whatever tenants do.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from ...api import keys
from ...api.objects import Claim, Metadata
from ...api.pods import MIRROR, Container, Pod, PodResourceClaim, PodSpec, PodStatus, Requirements, Volume
from ..core import selectors
from ..core.pods import CLIENT
from .cluster import CLAIMS, PODS, Kind

MOST_PODS = 3000
"""Pods of a node that have not ended. A kubelet runs some hundreds; anybody can name a node in a pod."""
MOST_CLAIMS = 64
"""ResourceClaims of a pod. One with more is taken for a user of a GPU, unread."""
PAGE = 50
"""Pods in a page at first."""
TOO_MANY = "(more claims than are read)"
"""Stands for the rest; no claim has such a name, so it is never found free."""


@dataclass(frozen=True)
class Interest:
    """What the rules of the moment look at in pods beyond what they always do: label keys, names of resources."""

    labels: Collection[str]
    resources: Collection[str]

    def pods(self) -> Kind[Pod]:
        """Pods of anybody, lean, without those that have ended."""
        return replace(PODS, page=PAGE, most=MOST_PODS, lean=self.lean)

    def lean(self, pod: Pod) -> Pod | None:
        """POD without what nobody looks at; None where it has ended."""
        if pod.finished:
            return None
        labels, claims = {"app", keys.DRAIN_SKIP, *self.labels}, sorted(set(pod.claims))
        if len(claims) > MOST_CLAIMS:
            claims[MOST_CLAIMS:] = [TOO_MANY]
        metadata = Metadata(
            name=pod.metadata.name,
            namespace=pod.metadata.namespace,
            uid=pod.metadata.uid,
            resourceVersion=pod.metadata.resourceVersion,
            labels={key: value for key, value in pod.labels.items() if key in labels},
            annotations={MIRROR: "x"} if pod.mirror else {},
            creationTimestamp=pod.metadata.creationTimestamp,
            deletionTimestamp=pod.metadata.deletionTimestamp,
            deletionGracePeriodSeconds=pod.metadata.deletionGracePeriodSeconds,
            ownerReferences=[pod.metadata.controller] if pod.metadata.controller else [],
        )
        spec = PodSpec(
            nodeName=pod.spec.nodeName,
            runtimeClassName=pod.spec.runtimeClassName,
            nodeSelector={key: value for key, value in pod.spec.nodeSelector.items() if key == CLIENT},
            containers=self._asks(pod),
            volumes=[Volume(emptyDir={})] if any(each.emptyDir is not None for each in pod.spec.volumes) else [],
            resourceClaims=[PodResourceClaim(resourceClaimName=name) for name in claims],
            terminationGracePeriodSeconds=pod.spec.terminationGracePeriodSeconds,
        )
        return Pod(metadata=metadata, spec=spec, status=PodStatus(phase=pod.status.phase))

    def _asks(self, pod: Pod) -> list[Container]:
        """One container that asks for what all of them ask for, as far as somebody looks at it."""
        names: set[str] = set()
        for container in (*pod.spec.containers, *pod.spec.initContainers):
            for wanted in (container.resources.limits, container.resources.requests):
                names |= self.resources & wanted.keys()
                names |= {next((name for name in wanted if name.startswith(keys.NVIDIA)), "")}
        limits = dict.fromkeys(sorted(names - {""})[:MOST_CLAIMS], "1")
        return [Container(resources=Requirements(limits=limits))] if limits else []


def interest(selections: Collection[str], resources: Collection[str]) -> Interest:
    """What is looked at where pods are told by these label selectors and by these resources."""
    labels = frozenset(key for text in selections for key in selectors.keys(text))
    return Interest(labels, frozenset(resources))


def free_claims(names: Collection[str], version: str) -> Kind[Claim]:
    """The ResourceClaims among NAMES that hold no GPU, in that version of their API."""

    def lean(claim: Claim) -> Claim | None:
        kept = claim.name in names and not claim.holds_gpu
        return Claim(metadata=Metadata(name=claim.name)) if kept else None

    return replace(CLAIMS, version=version, page=PAGE, lean=lean)
