"""Two sides of a comparison at random: fleets whose clusters differ in what real ones differ in.

Clusters have a namespace of their own, which may change; objects come, go, are renamed and move to another stage;
lists are known by their merge keys; quantities are spelled in two ways; Secrets hold what nobody may see; and Argo CD's
objects carry the cluster's name. Names are odd on purpose: a cluster is called like its branch, like a namespace, or
like a part of another name, and a text holds by itself what stands for a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

from gpustack.model import Body
from gpustack.review.diff.objects import Identity, Rendered
from gpustack.review.diff.sides import Side, Texts

CLUSTERS = ("prod-1", "prod-2", "main", "ns-1")
NAMESPACES = ("ns-1", "gpu-operator", "main")
HIDDEN = "never-to-be-seen"
SPELLED = {"1": "1", "1000m": "1", "2": "2", "1Gi": "1Gi"}
"""Quantities, and what each is as one spelling; the API's rules of quantities."""
NAMES = st.sampled_from("ab")
TEXTS = st.sampled_from(["x", "y", "ns-1", "prod-1", "<namespace>", "a\nb", "a\nc"])
SCALARS = st.one_of(st.booleans(), st.integers(-1, 1), TEXTS)
ENV = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"value": SCALARS}), max_size=3)
LIMITS = st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", 1, "1000m", "2"]), "memory": st.just("1Gi")})
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"env": ENV, "resources": st.builds(dict, limits=LIMITS)}),
    max_size=3,
    unique_by=lambda container: str(container["name"]),
)


class Cluster(NamedTuple):
    """A cluster of one side: its objects by file, and those of its engine."""

    stack: Mapping[str, Body]
    engine: Mapping[str, Body]


@st.composite
def clusters(draw: st.DrawFn, name: str, shapes: list[list[tuple[str, str, str, Any]]]) -> Cluster:
    """The cluster NAME, of one of SHAPES."""
    space = draw(st.sampled_from(NAMESPACES))
    stack: dict[str, Body] = {}
    for stage, kind, called, spec in draw(st.sampled_from(shapes)):
        body = made(kind, called, space, spec)
        stack[f"{stage}/{kind.lower()}-{body['metadata']['name']}.yaml"] = body
    engine: dict[str, Body] = {}
    if draw(st.booleans()):
        source = {"path": f"dist/{name}", "targetRevision": draw(st.sampled_from(["main", "v2"]))}
        destination = {"name": name, "namespace": space}
        body = made("Application", f"gpustack-{name}", "argocd", {"source": source, "destination": destination})
        engine[f".gitops/argocd/{name}/application-gpustack-{name}.yaml"] = body
    return Cluster(stack, engine)


def made(kind: str, name: str, space: str, spec: Any) -> Body:
    """An object of KIND in the namespace SPACE."""
    meta: Body = {"name": name, "namespace": space}
    if kind == "Secret":
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": {name: f"{HIDDEN} {spec!r}"}}
    if kind == "Namespace":
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": space}, "spec": spec}
    if kind == "ClusterRoleBinding":
        subjects = [{"kind": "ServiceAccount", "namespace": space, "name": each} for each in sorted(spec)]
        return {"apiVersion": "rbac/v1", "kind": kind, "metadata": {"name": name}, "subjects": subjects}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


SPECS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional={"containers": CONTAINERS, "x": SCALARS})


@st.composite
def objects(draw: st.DrawFn) -> list[tuple[str, str, str, Any]]:
    """What is in a cluster: stage, kind, name and spec of each object. Few specs, so that some are renames."""
    specs = draw(st.lists(SPECS, min_size=1, max_size=2))
    kinds = st.sampled_from(["DaemonSet", "DaemonSet", "Secret", "Namespace", "ClusterRoleBinding"])
    named = draw(
        st.lists(st.tuples(kinds, NAMES), max_size=3, unique_by=lambda one: one if one[0] != "Namespace" else one[0])
    )
    stage = st.sampled_from(["base", "driver"])
    return [(draw(stage), kind, name, draw(st.sampled_from(specs))) for kind, name in named]


def turned(spec: dict[str, Any]) -> dict[str, Any]:
    """SPEC with its containers the other way round."""
    return {**spec, "containers": spec["containers"][::-1]} if "containers" in spec else spec


class Fleet(NamedTuple):
    """Both sides by cluster; one that a side lacks is not a key."""

    before: Mapping[str, Cluster]
    after: Mapping[str, Cluster]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Both sides of up to four clusters of few shapes, as in a fleet that is cut from templates."""
    both: list[dict[str, Cluster]] = []
    shapes = draw(st.lists(objects(), min_size=1, max_size=2))
    for _ in range(2):
        names = draw(st.sets(st.sampled_from(CLUSTERS), min_size=1))
        both.append({name: draw(clusters(name, shapes)) for name in sorted(names)})
        shapes = [
            [(stage, kind, name, turned(spec)) for stage, kind, name, spec in shapes[0]],
            *shapes[1:],
            draw(objects()),
        ]
    return Fleet(*both)


def respelled(value: Any, key: str = "") -> Any:
    """VALUE with each quantity spelled in another way."""
    if isinstance(value, dict):
        return {name: respelled(item, "quantity" if key == "limits" else name) for name, item in value.items()}
    if isinstance(value, list):
        return [respelled(item) for item in value]
    return {"1": 1, "1000m": "1", "2": "2000m", "1Gi": "1024Mi"}[str(value)] if key == "quantity" else value


def side(of: Mapping[str, Cluster]) -> Side:
    """OF as a side of a comparison, as files."""
    texts = Texts()

    def files(bodies: Mapping[str, Body]) -> dict[str, str]:
        return {file: texts.name(written(body)) for file, body in bodies.items()}

    stacks = {name: files(cluster.stack) for name, cluster in of.items()}
    return Side(stacks, texts, engine={name: files(cluster.engine) for name, cluster in of.items()})


def written(body: Body) -> str:
    """BODY as YAML: its metadata as gpustack writes it, the rest as JSON, which is YAML, too."""
    meta = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in body["metadata"].items())
    rest = "".join(f"{key}: {json.dumps(value)}\n" for key, value in body.items() if key != "metadata")
    return f"metadata:\n{meta}{rest}"


def by_identity(cluster: Cluster | None) -> dict[Identity, Rendered]:
    """The objects of CLUSTER."""
    found: dict[Identity, Rendered] = {}
    for engine, bodies in (("", cluster.stack), ("argocd", cluster.engine)) if cluster else ():
        found |= {Identity.of(body, engine): Rendered(body, file) for file, body in bodies.items()}
    return found


def plain(objects: Mapping[Identity, Rendered]) -> str:
    """OBJECTS as text that is the same for what is the same: 1 is not true, and quantities are spelled in one way."""

    def value(of: Any, key: str = "") -> Any:
        if isinstance(of, dict):
            return {name: value(item, "quantity" if key == "limits" else name) for name, item in of.items()}
        if isinstance(of, list):
            return [value(item) for item in of]
        return SPELLED[str(of)] if key == "quantity" else of

    rows = [[identity, found.file, value(found.body)] for identity, found in objects.items()]
    return json.dumps(sorted(rows, key=lambda row: row[0]), sort_keys=True)
