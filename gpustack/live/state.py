"""What was seen of a cluster, and of what nobody could look: the two are never mixed up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..api.expectations import Kind, kind_of
from ..model import Body

if TYPE_CHECKING:
    from ..reconciler.shell import cluster as api
    from ..reconciler.shell.client import Client


def raw(kind: Kind) -> api.Kind[Any]:
    """KIND for a client, objects as they come."""
    from ..reconciler.shell.cluster import Kind as Raw

    model, (group, _, version) = dict[str, Any], kind.api_version.rpartition("/")
    return Raw(model, group, version, kind.plural, kind.kind, namespaced=bool(kind.namespace))


@dataclass
class State:
    """The OBJECTS of a cluster by kind, and why some kinds weren't read. Of a kind in neither nothing is said."""

    objects: dict[Kind, dict[tuple[str, str], Body]] = field(default_factory=dict)
    unread: dict[Kind, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    """What containers of pods printed, by the pod's name, where files have that."""
    prometheus: Mapping[str, Any] = field(default_factory=dict)
    """What a Prometheus said: groups of `rules`, targets that are `up` by job, or the `error`. Empty: nobody asked."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """What the API server says of its version, or the `error`. Empty: nobody asked."""
    settled: set[tuple[Kind, tuple[str, str]]] = field(default_factory=set)
    """Objects that an apply would leave as they are, as the API server says, however they look."""

    @cached_property
    def events(self) -> Mapping[tuple[str, str], list[str]]:
        """What events say, by namespace and name of what they are about: reason and message."""
        said: dict[tuple[str, str], list[str]] = {}
        for each in self.of("Event"):
            about = (each.get("regarding") or each.get("involvedObject") or {}).get("name", "")
            text = f"{each.get('reason')} {each.get('note') or each.get('message')}"
            said.setdefault((name_of(each)[0], about), []).append(text)
        return said

    @property
    def version(self) -> str:
        """The version of Kubernetes by which the API server acts, as 1.36: that which it emulates, else its own, behind
        which clouds write a plus; "" where it isn't known."""
        emulated = [self.server.get(key) for key in ("emulationMajor", "emulationMinor")]
        said = emulated if all(emulated) else [self.server.get(key) for key in ("major", "minor")]
        found = re.fullmatch(r"(\d+\.\d+)\+?", ".".join(map(str, said)))
        return found[1] if found else ""

    def of(self, kind: str, namespace: str | None = None) -> Iterator[Body]:
        """The objects of a kind, of any version; in NAMESPACE, or in all."""
        every = {name: body for key, of in self.objects.items() if key.kind == kind for name, body in of.items()}
        return (body for (where, _), body in every.items() if namespace in (None, where))

    def looked(self, kind: str) -> bool:
        """Whether objects of a kind were looked at."""
        return any(key.kind == kind for key in self.objects)

    def find(self, body: Body) -> Body | None:
        """What stands in the cluster for BODY; None for nothing, or where nobody looked."""
        wanted = kind_of(body)
        for key, bodies in self.objects.items():
            same = key.api_version.rpartition("/")[0] == wanted.api_version.rpartition("/")[0]
            if same and (key.kind, key.namespace) == (wanted.kind, wanted.namespace):
                return bodies.get(name_of(body))
        return None


def labels(body: Body) -> Mapping[str, str]:
    """The labels of BODY."""
    return body["metadata"].get("labels") or {}


def called(body: Body) -> str:
    """BODY in a sentence: its kind, its namespace and its name."""
    return f"{body['kind']} {'/'.join(filter(None, name_of(body)))}"


def name_of(body: Body) -> tuple[str, str]:
    """The namespace and the name of BODY."""
    return str(body["metadata"].get("namespace") or ""), str(body["metadata"]["name"])


async def look(cluster: Client, kinds: Sequence[Kind]) -> State:
    """List KINDS in CLUSTER. What one may not list, and what the cluster doesn't know, is noted."""
    from ..reconciler.shell import cluster as api

    state = State()
    try:
        state.server = await cluster.version()
    except api.ApiError as error:
        state.server = {"error": str(error)}
    for each in kinds:
        try:
            bodies = (await cluster.list(raw(each), api.Selection(namespace=each.namespace))).items
        except api.NotFound:
            bodies = ()
        except api.Forbidden as error:
            state.unread[each] = str(error)
            continue
        head = {"apiVersion": each.api_version, "kind": each.kind}
        state.objects[each] = {name_of(body): {**head, **body} for body in bodies}
    return state


def of_files(bodies: Iterable[Mapping[str, Any]]) -> State:
    """What the objects BODIES of a dump tell. Kinds that no object is of count as not looked at."""
    state = State()
    for body in bodies:
        if isinstance(body.get("serverVersion"), dict):
            state.server = body["serverVersion"]
        metadata = body.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
            state.objects.setdefault(kind_of(dict(body)), {})[name_of(dict(body))] = dict(body)
    return state
