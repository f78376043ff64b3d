"""The base of every component, and the one kind of construct that carries a Kubernetes object.

Tree, names and dependencies are cdk8s'. Bodies stay in Python: cdk8s runs in a Node process, and moving bodies across
costs three quarters of a render (facts: 57 objects take 0.04 s this way, 0.5 s as generated typed constructs). A
`Manifest` therefore tells cdk8s its kind and name, and hands out its body only when somebody asks: `to_json()` for
`app.synth()` in a user's own app, `resource()` for our compiler, without a crossing.
"""

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

import cdk8s
from constructs import Construct

from ..cluster.resolve import Cluster
from ..model import KIND_STAGE, Body, Resource, Stage
from .parts.common_inputs import Inputs, Whole
from .parts.hygiene import clean
from .registry import REGISTRY

I = TypeVar("I", bound=Inputs)  # noqa: E741 - the one type parameter of this module


class Manifest(cdk8s.ApiObject):
    """A Kubernetes object whose body is a plain dict, with what hygiene.py gives to every object."""

    def __init__(self, scope: Construct, body: Body, stage: Stage, id: str = "") -> None:  # noqa: A002 - cdk8s' own
        meta = body["metadata"]
        super().__init__(
            scope,
            id or id_of(body),
            api_version=body["apiVersion"],
            kind=body["kind"],
            metadata=metadata(meta["name"], meta.get("namespace")),
        )
        self._body = clean(body)
        self._stage = KIND_STAGE.get(body["kind"], stage)

    def to_json(self) -> Any:
        """The body; asked for by Node when a user's app is synthesised."""
        return self._body

    def resource(self, origin: str) -> Resource:
        return Resource(self._body, self._stage, origin)


def id_of(body: Body) -> str:
    """What BODY is called in the tree, if nothing else has its kind, namespace and name."""
    meta = body["metadata"]
    space = f"{meta['namespace']}." if "namespace" in meta else ""
    return f"{body['kind']}-{space}{meta['name']}"


@lru_cache(maxsize=4096)
def metadata(name: str, namespace: str | None) -> cdk8s.ApiObjectMetadata:
    """Name and namespace as cdk8s wants them; a value, so equal ones are shared.

    Making one takes as long as telling Node about the object: cdk8s checks the type of each of its fields."""
    return cdk8s.ApiObjectMetadata(name=name, namespace=namespace)


class Component(Construct, Generic[I]):
    """A component of the GPU stack: `Component(scope, id, cluster)` adds its objects below SCOPE, none where it is off
    in that cluster; `Component(scope, id, inputs)` those of inputs that are made by hand.

    A subclass says in which `stage` its objects are applied (kinds of KIND_STAGE have their own) and yields their
    bodies. It reads nothing but `inputs`: equal inputs must give equal bodies."""

    stage: ClassVar[Stage] = "operands"

    def __init__(self, scope: Construct, id: str, given: I | Cluster) -> None:  # noqa: A002 - cdk8s' own name for it
        super().__init__(scope, id)
        known: set[str] = set()
        self._manifests = []
        inputs: I | None = self._inputs(given) if isinstance(given, Cluster) else given
        for body in self.manifests(inputs) if inputs is not None else ():
            name = id_of(body)
            if name in known:  # kinds of two API groups may have one name
                name = f"{name}@{str(body['apiVersion']).rpartition('/')[0]}"
            known.add(name)
            self._manifests.append(Manifest(self, body, self.stage, name))

    @classmethod
    def _inputs(cls, cluster: Cluster) -> Any:
        """What the component needs of CLUSTER, None where it is off. Raises TypeError for one that isn't registered."""
        names = [each.__name__ for each in cls.__mro__ if each.__module__.startswith(f"{__package__}.")]
        entry = next((entry for entry in REGISTRY if entry.construct in names), None)
        if entry is None:
            raise TypeError(f"{cls.__name__} is not a component of gpustack: make its inputs yourself")
        return entry.inputs(cluster.spec)

    @abstractmethod
    def manifests(self, inputs: I) -> Iterator[Body]:
        """Yield the bodies of this component's objects."""

    def resources(self) -> list[Resource]:
        """What this component rendered, without asking Node."""
        origin = type(self).__name__
        return [manifest.resource(origin) for manifest in self._manifests]


class Given(Component[Whole]):
    """A component whose objects follow from the policy alone."""

    def manifests(self, inputs: Whole) -> Iterator[Body]:
        yield from inputs.bodies
