"""The images that an object names, and rules about them: named by a tag, by a digest, by a pin that pins nothing; and
about mirrors: entries of `cluster.registryMap` that stand for nothing, and registries that it leaves out.

A container's `image` is pulled when its pod starts. Others are named in variables (the validator starts pods of
VALIDATOR_IMAGE), in configurations inside a ConfigMap (artifacts of Kata), or in fields of custom resources, and are
pulled later: a mirror without them fails then. There is no list of such places. In a text, whatever is a whole
reference with a registry counts: nothing else that manifests hold looks like one.

Sections of the policy can't name an image without a tag (GPU040), so GPU114 is about `extraObjects` alone.
"""

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...catalog._lookup import nearest
from ...cluster.resolve import Cluster, resolve
from ...model import Body, Place, Resource, dotted, few, leaves, mapping, steps
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ...policy.language.types import IMAGE
from ...policy.loading.place import node
from ..rule import Hit, hit, meant, rule
from ..subjects import Render, Written
from .pods import FOREIGN

_REFERENCE = re.compile(IMAGE.pattern)
_WORD = re.compile(r"[A-Za-z0-9][\w./:@+-]*")
_CONTAINERS = {"containers", "initContainers", "ephemeralContainers"}
NAMES = ("image", "reference")
"""Keys of an image's name, be it without a registry; in other texts only names with one count."""
PARTS = ("repository", "version")
"""Keys beside an `image` that has the rest of its name in them."""


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """An object that names an image, and where in it. `pulled`: by its container, else something starts it later."""

    kind: str
    namespace: str
    name: str
    place: str
    pulled: bool

    @property
    def object(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def uses(body: Body, held: Iterable[tuple[Place, Any]] = ()) -> Iterator[tuple[str, Use]]:
    """Each image that the object BODY names, once for each place. The examples in a CRD's descriptions don't count.
    HELD: its leaves, where they are known."""
    kind, metadata = str(body.get("kind", "")), body.get("metadata") or {}
    if kind == "CustomResourceDefinition":
        return
    namespace, name = str(metadata.get("namespace", "")), str(metadata.get("name", ""))
    for place, text in held or leaves(body):
        if isinstance(text, str) and ("/" in text or place[1] in NAMES) and (found := _named(text, body, place)):
            path = steps(place)
            pulled = path[-1] == "image" and len(path) > 2 and path[-3] in _CONTAINERS
            yield from ((reference, Use(kind, namespace, name, dotted(path), pulled)) for reference in found)


def _named(text: str, body: Body, place: Place) -> Sequence[str]:
    """The images that TEXT names, which stands at PLACE in BODY."""
    above, key = place
    if not (key == "image" or (key == "reference" and above and above[1] == "image")):  # that of a volume, too
        return in_text(text)
    beside = mapping(node(body, steps(place)[:-1])) if key == "image" and "/" not in text else {}
    if any(isinstance(beside.get(each), str) for each in PARTS):
        return ()
    return (text,) if _REFERENCE.fullmatch(text) else in_text(text)


@functools.lru_cache(maxsize=4096)
def in_text(text: str) -> tuple[str, ...]:
    """The whole references with a registry in TEXT, each once: a value of a variable, a configuration, a script."""
    if "/" not in text:
        return ()
    words = dict.fromkeys(word.rstrip(".:-") for word in _WORD.findall(text) if "/" in word)
    found = (word for word in words if images.is_whole(word) and images.registry(word))
    return tuple(word for word in found if _REFERENCE.fullmatch(word))


@rule("GPU114", "warning", over="object")
def image_without_tag(resource: Resource) -> Iterator[Hit]:
    """An image with neither tag nor digest."""
    for reference, use in uses(resource.body, resource.leaves):
        if not images.is_tagged(reference):
            yield hit(use.place, object=use.object, reference=reference)


@rule("GPU115", "warning", over="render")
def by_tag_alone(render: Render) -> Iterator[Hit]:
    """An image by its tag alone in a cluster whose images are by digest."""
    if not render.spec.cluster.imageDigests:
        return
    ours = (resource.body for resource in render.resources if resource.origin not in FOREIGN)
    by_tag = sorted({reference for body in ours for reference, _ in tagged(body)})
    if by_tag:
        yield hit("spec.cluster.imageDigests", "rendered", images=", ".join(by_tag))
    for index, body in enumerate(render.spec.extraObjects):
        for reference, place in tagged(body):
            yield hit(f"{dotted(('spec', 'extraObjects', index))}.{place}", "brought", reference=reference)


def tagged(body: Body) -> Iterator[tuple[str, str]]:
    """The images in BODY that have a tag and no digest, with their places."""
    for reference, use in uses(body):
        if images.is_tagged(reference) and not images.digest_of(reference):
            yield reference, use.place


@rule("GPU116", "warning", over="origins")
def pin_of_nothing(written: Written) -> Iterator[Hit]:
    """A digest for an image that the policy doesn't name."""
    own = [str(path[2]) for path in written.merged.own if path[:2] == ("cluster", "imageDigests") and len(path) == 3]
    mirrors = written.spec.cluster.registryMap
    known = sorted({images.mirrored(each, mirrors) for each in references(written.spec)}) if own else []
    for name in own:
        if not any(name == each or name.startswith(f"{each}-") for each in known):
            yield hit(dotted(("spec", "cluster", "imageDigests", name)), remedy=meant(nearest(name, known)), name=name)


@rule("GPU111", "warning")
def mirror_of_nothing(cluster: Cluster) -> Iterator[Hit]:
    """A mirror for a registry or path that no image of the policy comes from."""
    mirrors = cluster.spec.cluster.registryMap
    known = list(references(cluster.spec)) if mirrors else []
    there, hosts = images.prefixes(known), ", ".join(dict.fromkeys(filter(None, map(images.registry, known))))
    for prefix in mirrors:
        if not any(images.covers(prefix, reference) for reference in known):
            path = dotted(("spec", "cluster", "registryMap", prefix))
            yield hit(path, remedy=meant(nearest(prefix, there)), prefix=prefix, hosts=hosts)


def _come(names: Sequence[str]) -> str:
    return f"{few(names, 3)} {'comes' if len(names) == 1 else 'come'}"


@rule("GPU117", "note", over="render")
def not_mirrored(render: Render) -> Iterator[Hit]:
    """A registry that `cluster.registryMap` leaves out, where it maps others."""
    mirrors = {host_of(f"{mirror}/") for mirror in render.spec.cluster.registryMap.values()}
    if not mirrors:
        return
    mirror = min(mirrors)
    ours = (resource.body for resource in render.resources if resource.origin not in FOREIGN)
    for host, names in sorted(outside(ours, mirrors).items()):
        yield hit("spec.cluster.registryMap", "rendered", come=_come(names), host=host, mirror=mirror)
    for index, body in enumerate(render.spec.extraObjects):
        for host, names in sorted(outside([body], mirrors).items()):
            yield hit(dotted(("spec", "extraObjects", index)), "brought", come=_come(names), host=host, mirror=mirror)


def outside(bodies: Iterable[Body], mirrors: Collection[str]) -> dict[str, list[str]]:
    """The images of BODIES by the registry that they come from, less those of MIRRORS."""
    by_host: dict[str, set[str]] = {}
    for body in bodies:
        for reference, _ in uses(body):
            if host_of(reference) not in mirrors:
                by_host.setdefault(host_of(reference), set()).add(reference)
    return {host: sorted(names) for host, names in by_host.items()}


def host_of(image: str) -> str:
    """The registry that IMAGE comes from: Docker Hub where it names none."""
    return images.registry(image) or "docker.io"


def references(spec: ClusterPolicySpec) -> Iterator[str]:
    """Every image that SPEC names, in sections on or off and whole, before mirrors and the suffixes of systems."""
    for name in images.SECTIONS:
        section: Any = spec
        for step in name.split("."):
            section = getattr(section, step, None)
        yield from _composed(section)
    for driver in spec.drivers:
        for part in (driver, driver.manager, driver.gds, driver.gdrcopy):
            yield from _composed(part)
    for resolved in resolve(spec).drivers:
        if reference := images.composed(*(resolved.values[name] for name in ("repository", "image", "version"))):
            yield reference
    for pool in spec.nodePools:
        yield from _composed(pool.driver.manager if pool.driver else None)
    yield from whole(spec)


def whole(spec: ClusterPolicySpec) -> Iterator[str]:
    """The images that SPEC names by whole references, outside of sections."""
    if spec.cluster.openshift:
        yield from spec.cluster.openshift.driverToolkitImages.values()
    if spec.verify and spec.verify.acceptance:
        yield spec.verify.acceptance.image
    yield from (each.artifacts.url for each in spec.kataManager.config.runtimeClasses if each.artifacts)


def _composed(section: Any) -> Iterator[str]:
    """The reference that SECTION makes; none where a part is missing."""
    if reference := images.composed(*(getattr(section, name, None) for name in ("repository", "image", "version"))):
        yield reference
