"""How a policy names an image: by repository, name and version, or whole, in the field `image` alone.

The operator takes `image` for a whole reference where repository and version are empty (operator.md 4). Its chart fills
both in, so somebody who writes a whole reference would get nvcr.io/nvidia/registry.example.com/mine:1:v1.20.0. Here the
release's repository and version make way for a reference that can't be anything but whole (`defaults.whole_images`).
What the user wrote stays, and is refused where no image can be meant.

Mirrors (`cluster.registryMap`) go by the composed reference.
"""

from collections.abc import Iterable, Mapping
from typing import Any

PARTS = ("repository", "version")
"""What stands beside `image`."""

SECTIONS = tuple(
    """
    driver driver.manager toolkit devicePlugin gfd dcgm dcgmExporter migManager nodeStatusExporter validator gds
    gdrcopy nfd computeDomains reconciler operator.initContainer vgpuManager vgpuManager.driverManager
    vgpuDeviceManager vfioManager vfioManager.driverManager sandboxDevicePlugin kataSandboxDevicePlugin kataManager
    ccManager gpuCluster.draDriver gpuCluster.dcgm gpuCluster.dcgmExporter
    """.split()
)
"""The sections that name an image, less those in lists."""


def is_whole(image: str) -> bool:
    """Whether IMAGE is a whole reference by its looks: a path, and a tag or a digest."""
    return "/" in image and is_tagged(image)


def is_tagged(image: str) -> bool:
    """Whether a tag or a digest ends IMAGE, which may begin with a registry."""
    name = image.rpartition("/")[2]
    return ":" in name or "@" in name


def repository(reference: str) -> str:
    """REFERENCE without its tag and its digest."""
    path, slash, name = reference.partition("@")[0].rpartition("/")
    return path + slash + name.partition(":")[0]


def tag_of(reference: str) -> str:
    """The tag of REFERENCE, or ""."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[2]


def digest_of(reference: str) -> str:
    """The digest of REFERENCE, or ""."""
    return reference.partition("@")[2]


def registry(image: str) -> str:
    """The registry that IMAGE begins with ("nvcr.io", "localhost:5000"), or ""."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def version(section: Any) -> str:
    """The version of the image that SECTION, a component of an effective spec, names: its own, or the tag of an image
    that is named whole. "" where neither says it, as with a digest."""
    return section.version or tag_of(section.image or "")


def version_path(path: str, section: Any) -> str:
    """Where SECTION, which stands at PATH, says its version."""
    return f"{path}.version" if section.version or not tag_of(section.image or "") else f"{path}.image"


def stands_alone(section: Mapping[str, Any]) -> bool:
    """Whether SECTION, as somebody wrote it, names its image whole and says nothing else of it."""
    image = section.get("image")
    return isinstance(image, str) and is_whole(image) and not any(section.get(part) for part in PARTS)


def made_way(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """BELOW without repository and version of an image that ABOVE names whole, here and in the sections within."""
    gone = PARTS if stands_alone(above) else ()
    return {
        key: made_way(value, above[key]) if isinstance(value, dict) and isinstance(above.get(key), dict) else value
        for key, value in below.items()
        if key not in gone
    }


def composed(repository: str | None, image: str | None, version: str | None) -> str | None:
    """The reference that the three make, None where a part is missing; a version that is a digest goes behind "@"."""
    if image and not repository and not version:
        return image if is_tagged(image) else None
    if repository and image and version:
        return f"{repository}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"
    return None


def covers(prefix: str, reference: str) -> bool:
    """Whether PREFIX of a `registryMap` is about REFERENCE: the same registry and path, by whole segments."""
    head = prefix.rstrip("/")
    rest = reference[len(head) :]
    return reference.startswith(head) and (rest[:1] == "/" or (rest[:1] in ":@" and "/" not in rest))


def mirrored(reference: str, registry_map: Mapping[str, str]) -> str:
    """REFERENCE with the longest prefix of REGISTRY_MAP that covers it replaced by its mirror."""
    for prefix in sorted(registry_map, key=len, reverse=True):
        if covers(prefix, reference):
            return registry_map[prefix].rstrip("/") + reference[len(prefix.rstrip("/")) :]
    return reference


def pinned(reference: str, digests: Mapping[str, str]) -> str:
    """REFERENCE with the digest that DIGESTS has for it behind its tag; one that has a digest keeps that."""
    return f"{reference}@{digests[reference]}" if reference in digests and "@" not in reference else reference


def prefixes(references: Iterable[str]) -> list[str]:
    """Every prefix that covers one of REFERENCES, the images themselves included, the short ones first."""
    covering = dict[str, None]()
    for reference in references:
        path, _, name = reference.partition("@")[0].rpartition("/")
        segments = [*filter(None, path.split("/")), name.partition(":")[0]]
        covering.update(dict.fromkeys("/".join(segments[:length]) for length in range(1, len(segments) + 1)))
    return sorted(covering, key=lambda prefix: (prefix.count("/"), prefix))
