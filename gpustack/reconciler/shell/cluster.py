"""The seam to the API server: five requests, as a protocol, and the errors that they end in.

client.py is the real one; nothing else in the program knows how a request is made.
Errors form one tree::

    ApiError             the request failed; `status` is the HTTP status, 0 where none came
    |-- NotFound         404
    |-- Conflict         409: a precondition did not hold, or the object is there already
    |-- Gone             410: a watch or a page is too old; list anew
    |-- TooMany          429: wait `retry_after` seconds; of an eviction, a disruption budget has nothing left
    |-- Forbidden        401 or 403
    `-- Unreachable      no answer: whether a write happened is not known
        `-- NoLogin      the program has nothing to log in with, so it did not ask
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar

from ...api import node_policy as policy
from ...api import objects, pods

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""The name of a namespace."""

T = TypeVar("T", bound=objects.Object)


class ApiError(Exception):
    """The API server did not do what it was asked."""

    def __init__(self, message: str, status: int = 0, reason: str = "", causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.reason, self.causes = status, reason, causes


class NotFound(ApiError):
    """There is no such object."""


class Conflict(ApiError):
    """The object has changed since it was read, or is another one, or exists already."""


class Gone(ApiError):
    """The resource version is no longer served."""


class TooMany(ApiError):
    """Not now. `retry_after` is in seconds; 0 where the server names no time."""

    def __init__(self, message: str, retry_after: float = 0.0, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message, 429, "TooManyRequests", causes)
        self.retry_after = retry_after


class Forbidden(ApiError):
    """The program's ServiceAccount may not do this."""


class Unreachable(ApiError):
    """The connection failed or timed out."""


class NoLogin(Unreachable):
    """There are no credentials to log in with: a token file, or the plugin that is to print a token, holds none."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of object: where its API is, and the slim model that it is read with."""

    model: type[T]
    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True
    page: int = 100
    """Objects in a page of a list, at first."""
    most: int = 0
    """A list of more is an error; 0: any number. For what anybody may create."""
    lean: Callable[[T], T | None] | None = None
    """Makes an object of a list as small as it is needed, None to leave it out. For what anybody may create."""

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version


NODES = Kind(objects.Node, "", "v1", "nodes", "Node", namespaced=False)
PODS = Kind(pods.Pod, "", "v1", "pods", "Pod")
DAEMONSETS = Kind(pods.DaemonSet, "apps", "v1", "daemonsets", "DaemonSet")
REVISIONS = Kind(pods.ControllerRevision, "apps", "v1", "controllerrevisions", "ControllerRevision")
DEPLOYMENTS = Kind(objects.Deployment, "apps", "v1", "deployments", "Deployment")
CLAIMS = Kind(objects.Claim, "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
CONFIG_MAPS = Kind(objects.ConfigMap, "", "v1", "configmaps", "ConfigMap")
LEASES = Kind(objects.Lease, "coordination.k8s.io", "v1", "leases", "Lease")
POLICIES = Kind(policy.NodePolicy, policy.GROUP, policy.VERSION, "nodepolicies", "NodePolicy", namespaced=False)
EVENTS = Kind(objects.Object, "events.k8s.io", "v1", "events", "Event")


def leaned(kind: Kind[T], items: Iterable[T]) -> Iterable[T]:
    """ITEMS as a list of KIND has them."""
    made = map(kind.lean, items) if kind.lean else items
    return (each for each in made if each is not None)


def within(kind: Kind[Any], number: int) -> None:
    """Refuse a list of more objects than KIND says. Raises `ApiError`."""
    if kind.most and number > kind.most:
        raise ApiError(f"there are more than {kind.most} {kind.plural}, and somebody has to look why")


@dataclass(frozen=True)
class Listing(Generic[T]):
    """What a list answered. `date` is the API server's clock."""

    items: tuple[T, ...]
    resource_version: str = ""
    date: datetime | None = None


@dataclass(frozen=True)
class Change(Generic[T]):
    """A line of a watch. A bookmark carries nothing but a newer resource version."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T


Body = Mapping[str, Any]


@dataclass(frozen=True)
class Selection:
    """Which objects of a kind: in a namespace ("" for all), by labels, by fields."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


@dataclass(frozen=True)
class Answer:
    """What a write answered: the object's new resource version and UID, and the API server's clock."""

    resource_version: str = ""
    uid: str = ""
    date: datetime | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """What a look at a cluster asks for: lists, and trials of what it would create. Both raise `ApiError`."""

    async def list(self, kind: Kind[T], which: Selection = EVERYTHING) -> Listing[T]:
        """All objects of KIND that WHICH selects, as of now: a consistent read, in pages where there are many."""

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        *,
        namespace: str = "",
        of: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Create an object, or post BODY to the SUBRESOURCE of the object OF: `eviction` of a pod."""


class Cluster(Source, Protocol):
    """The five requests. All raise `ApiError`."""

    def watch(self, kind: Kind[T], which: Selection, resource_version: str) -> AsyncGenerator[Change[T], None]:
        """What happens after RESOURCE_VERSION, until the server ends the request. Raises `Gone`."""

    async def patch(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", subresource: str = ""
    ) -> Answer:
        """Merge BODY into the object. A metadata.resourceVersion in it is a precondition: else `Conflict`."""

    async def delete(self, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "", version: str = "") -> None:
        """Delete the object that has UID, in that version: another one of that name or a later one is a `Conflict`."""
