"""The images of a fleet, each once, with what no manifest says of them.

A manifest names the mirror (`cluster.registryMap`); who fills the mirror must know the source. Several sources may be
mirrored to one path, so the way back is not the map alone: of all sources that the map would rewrite to this reference,
it is the one that a section of the policy names. An image that no section names (of `extraObjects`) is rewritten by
nothing.

The suffix of a driver's tag names the operating system, and the kernel where the driver is precompiled. For which CPUs
an image must be there, the pools tell whose nodes have pods of a DaemonSet that names it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...catalog.oses import UnknownOS, os_tag
from ...checks.objects.images import Use, references, uses
from ...model import Body, grouped
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ..impact import nodes


@dataclass(frozen=True, slots=True, order=True)
class System:
    """What a driver image was built for. `kernel` is "" unless the driver is precompiled for one."""

    os: str
    kernel: str


T = TypeVar("T", Use, System, str)


@dataclass(frozen=True, slots=True)
class Found:
    """An image of one cluster. `source` is `reference` unless that is a mirror's. `platforms` are those of the nodes
    that need it, as far as the policy says it."""

    reference: str
    source: str
    uses: tuple[Use, ...]
    systems: tuple[System, ...]
    platforms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the fleet: which clusters have each use, each system, and nodes of each platform that need it."""

    reference: str
    source: str
    uses: Mapping[Use, tuple[str, ...]]
    systems: Mapping[System, tuple[str, ...]]
    platforms: Mapping[str, tuple[str, ...]]

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted({name for names in self.uses.values() for name in names}))

    @property
    def objects(self) -> dict[str, tuple[str, ...]]:
        """The objects that use it, with the clusters where they do."""
        by_object: dict[str, set[str]] = {}
        for use, names in self.uses.items():
            by_object.setdefault(use.object, set()).update(names)
        return {name: tuple(sorted(by_object[name])) for name in sorted(by_object)}


def of_cluster(bodies: Iterable[Body], spec: ClusterPolicySpec) -> list[Found]:
    """The images of the objects BODIES, which SPEC renders to."""
    where: dict[str, set[Use]] = {}
    needed: dict[str, set[str]] = {}
    for body in bodies:
        for reference, use in uses(body):
            where.setdefault(reference, set()).add(use)
            if use.kind == "DaemonSet":
                needed.setdefault(reference, set()).update(platforms(body, spec))
    known = list(dict.fromkeys(references(spec)))
    all_images = []
    for reference in sorted(where):
        source = source_of(reference, spec.cluster.registryMap or {}, known)
        used, on = tuple(sorted(where[reference])), tuple(sorted(needed.get(reference, ())))
        all_images.append(Found(reference, source, used, systems(source, spec, known), on))
    return all_images


def platforms(body: Body, spec: ClusterPolicySpec) -> set[str]:
    """The platforms of the nodes that have pods of the DaemonSet BODY, as far as pools or their GPUs say it."""
    archs = {pool.arch for pool in nodes.pools_of(spec, body)}
    return {f"linux/{arch}" for arch in archs if arch}


def of_fleet(clusters: Mapping[str, Iterable[Found]]) -> list[Image]:
    """The images of all CLUSTERS, given as name and what was found in it."""
    every = ((cluster, image) for cluster in sorted(clusters) for image in clusters[cluster])
    found = grouped(((image.source, image.reference), (cluster, image)) for cluster, image in every)
    made = []
    for (source, reference), seen in sorted(found.items()):
        uses = _having((cluster, image.uses) for cluster, image in seen)
        systems = _having((cluster, image.systems) for cluster, image in seen)
        platforms = _having((cluster, image.platforms) for cluster, image in seen)
        made.append(Image(reference, source, uses, systems, platforms))
    return made


def _having(seen: Iterable[tuple[str, Iterable[T]]]) -> dict[T, tuple[str, ...]]:
    """The clusters that have each of what was SEEN in clusters."""
    having = grouped((one, cluster) for cluster, each in seen for one in each)
    return {one: tuple(having[one]) for one in sorted(having)}


def source_of(reference: str, registry_map: Mapping[str, str], known: Iterable[str]) -> str:
    """The image that REFERENCE mirrors, by REGISTRY_MAP and the references KNOWN to the policy; else itself."""
    names = {images.repository(each) for each in known}
    for prefix in sorted(registry_map):
        mirror = registry_map[prefix].rstrip("/")
        if images.covers(mirror, reference):
            source = prefix.rstrip("/") + reference[len(mirror) :]
            if images.repository(source) in names and images.mirrored(source, registry_map) == reference:
                return source
    return reference


def systems(source: str, spec: ClusterPolicySpec, known: Iterable[str]) -> tuple[System, ...]:
    """The systems of SPEC that SOURCE was built for; none where it isn't one of KNOWN with the suffix of a system."""
    tagged = source.partition("@")[0]
    suffixes = {tagged[len(each) + 1 :] for each in known if tagged.startswith(f"{each}-")}
    built = set[System]()
    for pool in spec.nodePools if suffixes else ():
        try:
            tag = os_tag(pool.os or "", spec.release)
        except UnknownOS:
            continue
        built |= {System(pool.os or "", "")} if tag in suffixes else set()
        built |= {System(pool.os or "", pool.kernel)} if pool.kernel and f"{pool.kernel}-{tag}" in suffixes else set()
    return tuple(sorted(built))
