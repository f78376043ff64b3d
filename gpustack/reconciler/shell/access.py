"""What the program must be allowed to do, asked of the API server at start.

Solves: a verb that is missing from a Role shows, if nobody looks, in the middle of an operation, on the node that it
happened to. So the program does not start without all of them, and says which are missing (reconciler.md T20).
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from ...api import keys
from ...api.objects import Object
from . import cluster, events, lease
from .cluster import ApiError, Cluster, Forbidden, Kind

REVIEWS = Kind(
    Object, "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

OURS = "."
"""Stands for the namespace that the program works in."""


@dataclass(frozen=True)
class Right:
    """A verb on a kind, or on a subresource of it; in a namespace, or everywhere for ""."""

    verb: str
    kind: Kind[Any]
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def attributes(self) -> dict[str, str]:
        """As a review asks for it."""
        made = {"verb": self.verb, "group": self.kind.group, "version": self.kind.version, "resource": self.kind.plural}
        made |= {"subresource": self.subresource, "namespace": self.namespace, "name": self.name}
        return {key: value for key, value in made.items() if value}

    def __str__(self) -> str:
        of = f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural
        group = f".{self.kind.group}" if self.kind.group else ""
        return f"{self.verb} {of}{group}" + (f" in {self.namespace}" if self.namespace else "")


RIGHTS: tuple[Right, ...] = (
    *(Right(verb, cluster.NODES) for verb in ("list", "watch", "patch")),
    *(Right(verb, cluster.POLICIES) for verb in ("list", "watch")),
    Right("patch", cluster.POLICIES, "status"),
    Right("list", cluster.PODS),
    Right("create", cluster.PODS, "eviction"),
    *(Right(verb, cluster.PODS, namespace=OURS) for verb in ("watch", "delete")),
    *(
        Right(verb, kind, namespace=OURS)
        for kind in (cluster.DAEMONSETS, cluster.REVISIONS, cluster.DEPLOYMENTS)
        for verb in ("list", "watch")
    ),
    *(Right(verb, cluster.CONFIG_MAPS, namespace=OURS, name=keys.LAYOUTS) for verb in ("list", "watch", "patch")),
    Right("create", cluster.LEASES, namespace=OURS),
    *(Right(verb, cluster.LEASES, namespace=OURS, name=lease.NAME) for verb in ("list", "patch")),
    Right("create", cluster.EVENTS, namespace=events.NAMESPACE),
    Right("list", cluster.CLAIMS),
)
"""Everything that the program asks for."""


async def missing(client: Cluster, namespace: str, maintenance: str = "", kured: str = "") -> list[str]:
    """The rights that the program lacks, in words; with those on Leases in the namespace MAINTENANCE and on the
    DaemonSet KURED, as namespace and name, if any."""
    verbs = ("create", "list", "watch", "patch") if maintenance else ()
    shared = [Right(verb, cluster.LEASES, namespace=maintenance) for verb in verbs]
    where, _, name = kured.partition("/")
    shared += [Right(verb, cluster.DAEMONSETS, namespace=where, name=name) for verb in ("list", "watch") if kured]

    async def denied(right: Right) -> str:
        review = {"spec": {"resourceAttributes": right.attributes()}}
        try:
            answer = await client.create(REVIEWS, review)
        except Forbidden:
            return ""  # it may not ask: what is missing will show
        status = answer.body.get("status")
        if not isinstance(status, dict):
            raise ApiError(f"the API server does not say whether one may {right}")
        return "" if status.get("allowed") else str(right)

    ours = (replace(each, namespace=namespace) if each.namespace == OURS else each for each in RIGHTS)
    return [text for text in await asyncio.gather(*map(denied, (*ours, *shared))) if text]
