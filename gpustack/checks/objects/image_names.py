"""Rules about how images are named: by a tag, by a digest, and by a pin that pins nothing.

Sections of the policy can't name an image without a tag (GPU040), so that is about `extraObjects` alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog._lookup import nearest
from ...model import Body, Resource, dotted
from ...policy.language import images
from ..platforms.mirrors import references
from ..rule import Hit, hit, meant, rule
from ..subjects import Render, Written
from .image_uses import uses
from .pods import FOREIGN


@rule("GPU114", "warning", over="object")
def image_without_tag(resource: Resource) -> Iterator[Hit]:
    """An image with neither tag nor digest."""
    for reference, use in uses(resource.body):
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
    cluster = written.spec.cluster
    own = [str(path[2]) for path in written.merged.own if path[:2] == ("cluster", "imageDigests") and len(path) == 3]
    if not own:
        return
    known = sorted({images.mirrored(reference, cluster.registryMap) for reference in references(written.spec)})
    for name in own:
        if any(name == each or name.startswith(f"{each}-") for each in known):
            continue
        yield hit(dotted(("spec", "cluster", "imageDigests", name)), remedy=meant(nearest(name, known)), name=name)
