"""Rules about mirrors: entries of `cluster.registryMap` that stand for nothing, and registries that it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...catalog._lookup import nearest
from ...cluster.resolve import Cluster, resolve
from ...model import Body, dotted, few
from ...policy.language import images
from ..objects.image_uses import uses
from ..objects.pods import FOREIGN
from ..rule import Hit, hit, meant, rule

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec
    from ..subjects import Render


@rule("GPU111", "warning")
def mirror_of_nothing(cluster: Cluster) -> Iterator[Hit]:
    """A mirror for a registry or path that no image of the policy comes from."""
    spec = cluster.spec
    if not spec.cluster.registryMap:
        return
    known = list(references(spec))
    there = images.prefixes(known)
    for prefix in spec.cluster.registryMap:
        if any(images.covers(prefix, reference) for reference in known):
            continue
        near, hosts = nearest(prefix, there), dict.fromkeys(filter(None, map(images.registry, known)))
        yield hit(
            dotted(("spec", "cluster", "registryMap", prefix)),
            remedy=meant(near),
            prefix=prefix,
            hosts=", ".join(hosts),
        )


def _come(names: Sequence[str]) -> str:
    return f"{few(names, 3)} {'comes' if len(names) == 1 else 'come'}"


@rule("GPU117", "note", over="render")
def not_mirrored(render: Render) -> Iterator[Hit]:
    """A registry that `cluster.registryMap` leaves out, where it maps others."""
    registry_map = render.spec.cluster.registryMap
    if not registry_map:
        return
    mirrors = {host_of(f"{mirror}/") for mirror in registry_map.values()}
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
    """Every image that SPEC names, in sections on or off and by whole references, before mirrors and the suffixes of
    operating systems.
    """
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
