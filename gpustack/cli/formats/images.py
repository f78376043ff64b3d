"""The images of a fleet as text, as a list to copy by, as JSON, and as a CycloneDX 1.6 bill of materials.

The bill of materials has no serial number and no time: equal fleets have equal ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ... import __version__
from ...model import grouped
from ...policy.language.images import digest_of, registry, repository, tag_of
from ...review.diff.ranges import fold, summary
from ...review.images.inventory import Image
from ...review.images.lock import Locked, key_of
from ..common import counted
from ..text import as_json, picked, printable

FEW = 4
"""So many clusters, or ranges of them, are named without being counted."""


Locks = Mapping[str, Locked] | None
"""What images.lock says; None where there is none."""


def written(images: Sequence[Image], clusters: Sequence[str], locks: Locks, how: str) -> str:
    """The IMAGES of CLUSTERS in the format HOW, with a line end at the end."""
    if how == "json":  # keys are only ever added
        listed = [as_data(image, lock_of(image, locks)) for image in images]
        return as_json({"version": 1, "clusters": clusters, "images": listed}) + "\n"
    if how == "cyclonedx":
        return as_json(bill(images, clusters, locks)) + "\n"
    lines = to_copy(images) if how == "list" else text(images, clusters, locks)
    return "".join(f"{printable(line)}\n" for line in lines)


def to_copy(images: Sequence[Image]) -> Iterator[str]:
    """What must be copied to run without the internet: where from, and where to; twice the same without a mirror."""
    for image in images:  # no program that copies takes a tag and a digest; a copy keeps its digest under the tag
        source, target, digest = image.source, image.reference, digest_of(image.source)
        fetched = f"{repository(source)}@{digest}" if digest else source
        yield f"{fetched} {target.partition('@')[0] if tag_of(target) else target}"


def lock_of(image: Image, locks: Locks) -> Locked | None:
    """What IMAGE is locked to."""
    return locks.get(key_of(image.reference)) if locks else None


def text(images: Sequence[Image], clusters: Sequence[str], locks: Locks) -> Iterator[str]:
    """For people: who uses it, clusters with the same objects together."""
    total = len(clusters)
    for image in images:
        yield image.source
        if image.reference != image.source:
            yield f"  mirror: {image.reference}"
        if image.systems:
            built = (f"{each.os} with kernel {each.kernel}" if each.kernel else each.os for each in image.systems)
            yield f"  built for: {', '.join(built)}"
        if image.platforms:
            yield f"  needed on: {', '.join(image.platforms)}"
        if locks is not None:
            entry = lock_of(image, locks)
            yield f"  locked: {entry.digest}, for {', '.join(sorted(entry.platforms))}" if entry else "  not locked"
        if not any(use.pulled for use in image.uses):
            yield "  named, and pulled when something starts it"
        for names, objects in grouped((names, name) for name, names in image.objects.items()).items():
            folded = fold(names)
            who = ", ".join(folded) if len(folded) <= FEW and len(names) < total else summary(names, total)
            yield f"  {who}: {', '.join(objects)}"
        yield ""
    yield f"{counted(len(images), 'image')} in {counted(total, 'cluster')}"


def as_data(image: Image, locked: Locked | None) -> dict[str, Any]:
    systems, uses = image.systems.items(), image.uses.items()
    used = {use: picked(use, "kind namespace name path=place pulled") for use in image.uses}
    return {
        **picked(image, "source reference"),
        "registry": registry(image.source) or None,
        "repository": repository(image.source),
        "tag": tag_of(image.source) or None,
        "digest": digest_of(image.reference) or None,
        "systems": [{"os": each.os, "kernel": each.kernel or None, "clusters": names} for each, names in systems],
        "platforms": [{"platform": name, "clusters": names} for name, names in image.platforms.items()],
        "locked": {"digest": locked.digest, "platforms": dict(sorted(locked.platforms.items()))} if locked else None,
        "uses": [{**used[use], "namespace": use.namespace or None, "clusters": names} for use, names in uses],
    }


def bill(images: Sequence[Image], clusters: Sequence[str], locks: Locks) -> dict[str, Any]:
    """A CycloneDX 1.6 document: images are containers, and each cluster depends on those that it uses."""
    parts: dict[str, list[Image]] = {}
    by_cluster: dict[str, list[str]] = {name: [] for name in clusters}
    for image in images:
        ref = package_url(image.source)
        parts.setdefault(ref, []).append(image)
        for name in image.clusters:
            by_cluster[name].append(ref)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "gpustack", "version": __version__}]},
            "component": {"type": "platform", "bom-ref": "fleet", "name": "GPU stacks"},
        },
        "components": [
            *({"type": "platform", "bom-ref": f"cluster:{name}", "name": name} for name in clusters),
            *(component(ref, same, locks) for ref, same in parts.items()),
        ],
        "dependencies": [
            {"ref": "fleet", "dependsOn": [f"cluster:{name}" for name in clusters]},
            *({"ref": f"cluster:{name}", "dependsOn": sorted(set(by_cluster[name]))} for name in clusters),
        ],
    }


def component(ref: str, images: Sequence[Image], locks: Locks) -> dict[str, Any]:
    """The component of one source, which may have several mirrors; with digests by platform where the locks agree."""
    source = images[0].source
    version = tag_of(source) or digest_of(source)
    made: dict[str, Any] = {"type": "container", "bom-ref": ref, "name": repository(source), "purl": ref}
    if version:
        made["version"] = version
    locked = {lock.digest: lock for image in images if (lock := lock_of(image, locks))}
    if digest := digest_of(source) or (next(iter(locked)) if len(locked) == 1 else ""):
        made["hashes"] = [{"alg": "SHA-256", "content": digest.partition(":")[2]}]
    properties = [("gpustack:mirror", image.reference) for image in images if image.reference != source]
    built = dict.fromkeys((each.os, each.kernel) for image in images for each in image.systems)
    properties += [("gpustack:kernel", f"{os} {kernel}") if kernel else ("gpustack:os", os) for os, kernel in built]
    if len(locked) == 1:
        platforms = next(iter(locked.values())).platforms
        properties += [(f"gpustack:digest:{name}", digest) for name, digest in sorted(platforms.items())]
    if properties:
        made["properties"] = [{"name": name, "value": value} for name, value in properties]
    return made


def package_url(reference: str) -> str:
    """REFERENCE as a package URL of the type oci: the digest is its version, registry and tag are qualifiers."""
    name, digest = repository(reference), digest_of(reference)
    qualifiers = {"repository_url": name, "tag": tag_of(reference)}
    asked = "&".join(f"{key}={quote(value, safe='/')}" for key, value in qualifiers.items() if value)
    version = f"@{quote(digest, safe='')}" if digest else ""
    return f"pkg:oci/{name.rpartition('/')[2]}{version}?{asked}"
