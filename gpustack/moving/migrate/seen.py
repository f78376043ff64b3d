"""What was seen of a cluster that is to be handed over, and of what nobody looked at: the two are never mixed up.

The objects are read by what `adopt` reads: its documents, or a look at the cluster with the further kinds of a move.
In a dump a kind that no object is of counts as not looked at; a cluster that was asked has none of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gpustack.api import expectations
from gpustack.catalog import _data
from gpustack.live.state import labels
from gpustack.model import Body, Finding, InputError, Location, docs, printable
from gpustack.reconciler.shell.cluster import Cluster

from ...api import keys
from ..adopt.documents import Item
from ..adopt.inputs import context, live, objects, read_all
from ..adopt.installation import understood

CUSTOM = ("ClusterPolicy", "NVIDIADriver", "GPUCluster")
"""Kinds of the operator's custom resources."""
RELEASE = "meta.helm.sh/release-name"
"""Helm's annotation of what a release holds."""


def facts() -> Any:
    """The data file of this room."""
    return _data.read(Path(__file__).with_name("facts.yaml"))


class Kind(NamedTuple):
    """A kind that is looked at; see `kinds` in the data file."""

    group: str
    versions: str
    plural: str
    scope: str
    when: str

    @property
    def resource(self) -> str:
        """As kubectl wants it, group and all."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def built_in(self) -> bool:
        """Whether every cluster has it."""
        return self.group in {"", "apps"} or (self.group.endswith(".k8s.io") and self.when != "dra")


def kinds() -> dict[str, Kind]:
    """The kinds by name."""
    return {name: Kind(*row) for name, row in facts()["kinds"].items()}


@dataclass
class Seen:
    """OBJECTS of the kinds LOOKED at; `unread` has why a kind could not be looked at. `release` is Helm's, `version`
    the operator's, each "" where nothing tells it."""

    objects: list[Body]
    looked: set[str]
    live: bool = False
    namespace: str = ""
    release: str = ""
    version: str = ""
    unread: dict[str, str] = field(default_factory=dict)

    def of(self, *names: str) -> Iterator[Body]:
        """The objects of the kinds NAMES."""
        return (body for body in self.objects if body["kind"] in names)

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """An object; without NAMESPACE of any."""
        named = (body for body in self.of(kind) if body["metadata"]["name"] == name)
        return next((body for body in named if namespace in ("", space(body))), None)

    def wanted(self, *, monitoring: bool, openshift: bool) -> list[str]:
        """The kinds that the operator makes objects of in such a cluster."""
        conditions = {"always"} | ({"monitoring"} if monitoring else set()) | ({"openshift"} if openshift else set())
        conditions |= {"dra"} if any(self.of("GPUCluster")) else set()
        conditions |= {"classic"} if any(self.of("ClusterPolicy")) else set()
        return [name for name, kind in kinds().items() if kind.when in conditions]

    @property
    def operators(self) -> list[Body]:
        """The operator's Deployments."""
        return [
            body
            for body in self.of("Deployment")
            if body["metadata"]["name"] == context.CHART or labels(body).get(keys.COMPONENT) == context.CHART
        ]


def space(body: Body) -> str:
    """The namespace of BODY, "" where it has none."""
    return str(body["metadata"].get("namespace") or "")


def notes(body: Body) -> dict[str, Any]:
    """The annotations of BODY."""
    return body["metadata"].get("annotations") or {}


def in_cluster(body: Body) -> bool:
    """Whether BODY comes from an API server, and not from a file that somebody wrote."""
    return any(body["metadata"].get(key) for key in ("uid", "resourceVersion", "creationTimestamp"))


def dumped(sources: Sequence[str], namespace: str = "") -> Seen:
    """What the files SOURCES hold of a cluster, the operator in NAMESPACE. Raises InputError for nothing."""
    made = gathered(sources, ())
    made.namespace = namespace or made.namespace
    if not made.objects:
        remedy = f"name what kubectl get ... -o yaml prints; {docs('moving-in.md')} has the commands"
        what = f"{', '.join(sources[:3])} holds no object of a cluster"
        raise InputError.of("GPU936", what, remedy=remedy)
    return made


@understood("what the cluster holds")
def gathered(sources: Sequence[str], items: Sequence[Item]) -> Seen:
    """The objects in SOURCES and ITEMS, as `adopt` reads them. Raises InputError for other forms."""
    dump = read_all(sources, {}, items)
    told, known = dump.installation, kinds()
    every = [checked(each) for each in dump.items if each.text_at("kind") and each.text_at("metadata", "name")]
    holders = {name for name, kind in known.items() if kind.when == "holder"}
    bodies = [body for body in every if in_cluster(body) or body["kind"] in holders]
    seen = Seen(bodies, {body["kind"] for body in bodies if body["kind"] in known and in_cluster(body)})
    running = seen.operators
    versions = [labels(body).get("app.kubernetes.io/version") for body in running]
    version = next((str(each) for each in versions if each), str(told.version.value) if told.version else "")
    seen.version = f"v{version}" if version[:1].isdigit() else version
    seen.namespace = next((space(body) for body in running if space(body)), told.namespace)
    own = [notes(body) for body in (*running, *seen.of(*CUSTOM))]
    seen.release = next((str(each[RELEASE]) for each in own if each.get(RELEASE)), told.helm_release)
    return seen


def checked(item: Item) -> Body:
    """The object ITEM, with the group of its kind where a list left that out. Raises InputError for names that no
    object can have: they would become words of commands."""
    kind, body = item.text_at("kind"), item.data
    for at in ("name", "namespace"):
        plain_name(body["metadata"].get(at) or "", kind, item.where())
    known = kinds().get(kind)
    if body.get("apiVersion") or known is None:
        return dict(body)
    version = known.versions.split()[0]
    return {**body, "apiVersion": f"{known.group}/{version}" if known.group else version}


def plain_name(name: object, kind: str, where: Location | None = None) -> None:
    """Raise InputError where NAME can't be that of an object of KIND."""
    if not isinstance(name, str) or printable(name) != name or set("/%\t") & set(name):
        what = f"an object of kind {kind} is called {name!r}, as none can be"
        raise InputError(Finding("GPU050", "error", what, location=where, remedy="dump the cluster again"))


async def look(cluster: Cluster, namespace: str, default: str) -> Seen:
    """The cluster itself; NAMESPACE is the operator's, "" to take what its objects say, else DEFAULT. What one may not
    list is noted, and counts as not looked at."""
    from gpustack.reconciler.shell.cluster import Forbidden

    items = await live.look(cluster, namespace, default)
    first = gathered((), items)
    where = namespace or first.namespace or default
    known, unread = {each.kind for each in (*live.OF_THE_CLUSTER, *live.OF_THE_NAMESPACE)}, dict[str, str]()
    for name, kind in kinds().items():
        if name in known:
            continue
        try:
            for version in kind.versions.split():
                api, at = f"{kind.group}/{version}".lstrip("/"), where if kind.scope == "operator" else ""
                bodies = await live.listed(cluster, expectations.Kind(api, name, at))
                items += bodies
                if bodies:
                    break
        except Forbidden as error:
            unread[name] = str(error)
    seen = gathered((), items)
    seen.live, seen.looked, seen.unread = True, set(kinds()) - set(unread), unread
    seen.namespace = where
    return seen


def operator_kind(body: Body) -> bool:
    """Whether BODY is one of the operator's custom resources, and not another project's of that name."""
    return body["kind"] in CUSTOM and str(body.get("apiVersion", "")).startswith(keys.NVIDIA)


def package(body: Body) -> bool:
    """Whether BODY is OLM's of the operator: its Subscription, or its version and no copy of it."""
    if body["kind"] == "Subscription":
        return bool((body.get("spec") or {}).get("name") in objects.OPERATOR)
    copied = "olm.copiedFrom" in labels(body)
    mine = body["metadata"]["name"].startswith(tuple(objects.OPERATOR))
    return body["kind"] == "ClusterServiceVersion" and mine and not copied
