"""images.lock: the digests of the images that a fleet names, as the registries had them when it was written.

A tag may be moved, a digest can't. The file stands beside policies/, sorted, and is reviewed like any other. With the
layer `locked-images` (`cluster.imageDigests`) the digests get into the manifests as well.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ...model import InputError
from ...policy.language import images
from .inventory import Image

FILE = "images.lock"
LAYER = "locked-images"
_HEAD = (
    "# Written by `gpustack lock`: what the tags of the fleet's images stood for. `gpustack lock --check` compares.\n"
)
_LAYER_HEAD = (
    f"# Written by `gpustack lock` along with {FILE}. Clusters that have it in `extends` get their images by digest.\n"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Locked:
    """What an image stood for: the digest on all platforms, and that of each platform."""

    digest: str
    platforms: Mapping[str, str]


def key_of(reference: str) -> str:
    """How REFERENCE stands in the file: its tag without the digest that a lock put behind it, so that the tag is looked
    up anew. Where there is a digest alone, that is it."""
    return reference.partition("@")[0] if images.tag_of(reference) else reference


def written(locked: Mapping[str, Locked]) -> str:
    """The file that holds LOCKED."""
    rows = ((name, each.digest, dict(sorted(each.platforms.items()))) for name, each in sorted(locked.items()))
    images = {name: {"digest": digest, "platforms": platforms} for name, digest, platforms in rows}
    return _HEAD + yaml.safe_dump({"version": 1, "images": images}, sort_keys=False, width=1000)


def layer(locked: Mapping[str, Locked]) -> str:
    """The layer that pins LOCKED. Images that are named by a digest need no pin."""
    pins = {name: locked[name].digest for name in sorted(locked) if images.tag_of(name)}
    head = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyLayer", "metadata": {"name": LAYER}}
    body = {**head, "spec": {"cluster": {"imageDigests": pins}}}
    return _LAYER_HEAD + yaml.safe_dump(body, sort_keys=False, width=1000)


def read(data: Mapping[str, Any], file: str) -> dict[str, Locked]:
    """What stands in the lock DATA. Raises InputError for what `written` doesn't write."""
    listed = data.get("images")
    if data.get("version") != 1 or not isinstance(listed, dict) or set(data) != {"version", "images"}:
        raise _unreadable(file, "it doesn't have the keys `version: 1` and `images`")
    return {name: _entry(entry, name, file) for name, entry in listed.items()}


def _entry(entry: Any, name: str, file: str) -> Locked:
    if isinstance(entry, dict) and set(entry) == {"digest", "platforms"} and isinstance(entry["platforms"], dict):
        digests = [entry["digest"], *entry["platforms"].values()]
        if all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in digests):
            return Locked(entry["digest"], dict(entry["platforms"]))
    raise _unreadable(file, f"the entry of {name} is not a digest and digests by platform")


def _unreadable(file: str, why: str) -> InputError:
    remedy = "run `gpustack lock`, which writes it anew"
    return InputError.of("GPU965", f"{file} can't be read as a lock", why=why, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Lacking:
    """An image that has nothing for a platform of nodes that need it, in CLUSTERS."""

    name: str
    platform: str
    clusters: tuple[str, ...]


def lacking(locked: Mapping[str, Locked], used: Iterable[Image]) -> list[Lacking]:
    """What the images USED don't have for the nodes that need them, by what LOCKED says of their platforms."""
    gone: dict[tuple[str, str], set[str]] = {}
    for image in used:
        name = key_of(image.reference)
        for platform, clusters in image.platforms.items() if name in locked else ():
            if platform not in locked[name].platforms:
                gone.setdefault((name, platform), set()).update(clusters)
    return [Lacking(*key, tuple(sorted(gone[key]))) for key in sorted(gone)]


def by_tag_alone(used: Iterable[Image]) -> list[str]:
    """The clusters of which no image of USED has a digest."""
    clusters: dict[str, bool] = {}
    for image in used:
        for name in image.clusters:
            clusters[name] = clusters.get(name, False) or bool(images.digest_of(image.reference))
    return sorted(name for name, pinned in clusters.items() if not pinned)


@dataclass(frozen=True, slots=True)
class Difference:
    """How a lock differs from what the fleet needs: images that it lacks, that nobody needs, whose tag was moved."""

    missing: tuple[str, ...]
    unused: tuple[str, ...]
    moved: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unused or self.moved)


def compare(before: Mapping[str, Locked], needed: Iterable[str], now: Mapping[str, Locked]) -> Difference:
    """What differs between the lock BEFORE and the images NEEDED; NOW is what registries say of those asked for."""
    wanted = set(needed)
    moved = {name for name, locked in before.items() if name in now and now[name] != locked}
    return Difference(*(tuple(sorted(names)) for names in (wanted - before.keys(), before.keys() - wanted, moved)))
