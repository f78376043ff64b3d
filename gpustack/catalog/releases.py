"""Releases of the GPU operator: the component versions and defaults that a policy's `release` stands for.

One file per release in data/releases/. One release of each line is written out whole; the others name a `base` and hold
what differs (maps merge by key). `images` lists each image once, with the sections of the spec that run it (`in`);
reading spreads them over the tree, together with the chart's pull policy, so that

    release("v26.7.0").defaults["driver"]["manager"]["version"] == "v0.12.0"

To add a release, add a file; nothing lists them elsewhere.

NVIDIA supports the newest release line; the line before it is deprecated, and older ones have reached their end of
support. An upgrade goes to a release of the same line or of the next one (NVIDIA GPU Operator life-cycle policy). So
all of it follows from the dates of the releases, as far as the catalogue knows them.
"""

import datetime
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpustack import model
from gpustack.catalog import _data, _versions
from gpustack.catalog._lookup import UnknownName, nearest
from gpustack.catalog.traits import Traits

PULL_POLICY = "IfNotPresent"
"""What the charts of all releases write beside every image."""

GPU_CLUSTER = "gpuCluster."
"""What sections of the resource GPUCluster begin with in the data."""
NFD_REPOSITORY, NFD_IMAGE = "registry.k8s.io/nfd", "node-feature-discovery"


class UnknownRelease(UnknownName):
    what = "release"


class UnknownImage(UnknownName):
    what = "image section"


@dataclass(frozen=True, slots=True)
class Image:
    """A container image as the spec names it. `repository` and `version` are None where the user has to set them."""

    repository: str | None
    image: str
    version: str | None

    @property
    def reference(self) -> str:
        """repository/image:version, @version for a digest; `image` alone where the others are not set: a full path."""
        if not self.repository and not self.version:
            return self.image
        separator = "@" if (self.version or "").startswith("sha256:") else ":"
        return f"{self.repository}/{self.image}{separator}{self.version}"


@dataclass(frozen=True, slots=True)
class Release:
    """One release. The ranges are inclusive minor versions, as documented for that release.

    `defaults` is the whole spec tree that the chart writes for an empty values file: no labels of Helm, nothing about
    a cluster, no null. It is shared by all callers: read-only. `default_spec()` gives a copy to change. `gpu_cluster`
    is what the chart writes into GPUCluster and nowhere else, for those who choose it; empty in a release that doesn't
    know it. `traits` says how its objects differ from those of other releases."""

    name: str
    date: str
    defaults: Mapping[str, Any] = field(repr=False)
    gpu_cluster: Mapping[str, Any] = field(repr=False)
    images: Mapping[str, Image] = field(repr=False)
    nfd_version: str
    kubernetes_range: tuple[str, str]
    openshift_range: tuple[str, str]
    containerd_range: tuple[str, str]
    notes: tuple[str, ...]
    traits: Traits

    @property
    def line(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def nfd_image(self) -> Image:
        return Image(NFD_REPOSITORY, NFD_IMAGE, self.nfd_version)

    def image(self, section: str) -> Image:
        """The image of a section of the spec: "driver", "driver.manager". UnknownImage where the release has none."""
        try:
            return self.images[section]
        except KeyError:
            raise UnknownImage(section, nearest(section, self.images)) from None

    def default_spec(self) -> dict[str, Any]:
        copied: dict[str, Any] = _data.copy(self.defaults)
        return copied


def names() -> list[str]:
    """All releases, oldest first."""
    return sorted(_data.listing("releases"), key=_versions.key)


def latest() -> str:
    """The newest release."""
    return names()[-1]


@functools.cache
def release(name: str) -> Release:
    """The release called NAME; UnknownRelease names the nearest ones."""
    if name not in _data.listing("releases"):
        raise UnknownRelease(name, _nearest(name))
    data = written(name)
    images: dict[str, Image] = {}
    defaults: dict[str, Any] = _data.copy(data["defaults"])
    gpu_cluster: dict[str, Any] = _data.copy(data.get("gpu_cluster", {}))
    for entry in data["images"].values():
        image = Image(entry["repository"], entry["image"], entry["version"])
        for section in entry["in"]:
            images[section] = image
            tree = gpu_cluster if section.startswith(GPU_CLUSTER) else defaults
            _data.put(tree, section.removeprefix(GPU_CLUSTER), fields(image))
    return _data.made(
        Release,
        data,
        name=name,
        defaults=defaults,
        gpu_cluster=gpu_cluster,
        images=images,
        nfd_version=data["nfd"],
        kubernetes_range=tuple(data["kubernetes"]),
        openshift_range=tuple(data["openshift"]),
        containerd_range=tuple(data["containerd"]),
        traits=Traits.of(name),
    )


def operator_spec(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the operator of the release NAME itself makes of a ClusterPolicy that says SAID and that no chart wrote: its
    defaults (data/operator-defaults.yaml), and the release's image in each section that names none at all."""
    data = _data.load("operator-defaults")
    spec: dict[str, Any] = _data.copy(data["spec"])
    for section, values in data["sections"].items():
        if _section(said, section) is not None:
            _data.put(spec, section, values)
    for section, image in release(name).images.items():
        written = _section(said, section) or {}
        named = any(written.get(part) for part in ("repository", "image", "version"))
        if not (named or section.startswith(GPU_CLUSTER)):
            _data.put(spec, section, fields(image))
    return spec


def _section(said: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """The section at the dotted PATH of SAID, or None."""
    node: Any = said
    for step in path.split("."):
        node = node.get(step) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else None


def written(name: str) -> dict[str, Any]:
    """The data of release NAME with those of its bases below."""
    data: dict[str, Any] = _data.load(f"releases/{name}")
    if "base" not in data:
        return data
    own = {key: value for key, value in data.items() if key != "base"}
    return _data.merge(_data.copy(written(data["base"])), own)


def fields(image: Image) -> dict[str, str]:
    """IMAGE as the spec says it."""
    parts = {"repository": image.repository, "image": image.image, "version": image.version}
    return {key: value for key, value in parts.items() if value} | {"imagePullPolicy": PULL_POLICY}


def _nearest(name: str) -> list[str]:
    """Releases of the same line or year, newest first; else those around it in time; for a text, what looks like it."""
    newest_first = names()[::-1]
    written = re.search(r"\d+(?:\.\d+)*", name)
    numbers = written[0].split(".") if written else []
    for length in range(len(numbers), 0, -1):
        start = "v" + ".".join(numbers[:length])
        near = [known for known in newest_first if known == start or known.startswith(f"{start}.")]
        if near:
            return near[:3]
    if not numbers:
        return nearest(name, newest_first) or newest_first[:1]
    wanted = model.numbers(written[0]) if written else ()
    older = [known for known in newest_first if _versions.key(known) < wanted]
    newer = [known for known in newest_first if _versions.key(known) > wanted]
    return older[:1] + newer[-1:]


@dataclass(frozen=True, slots=True)
class LifeCycle:
    """Since when a release is deprecated, and since when its support has ended; None where neither is known."""

    deprecated: datetime.date | None
    ended: datetime.date | None


def lines() -> list[str]:
    """The release lines, oldest first: v25.10, v26.3, ..."""
    return list(dict.fromkeys(release(name).line for name in names()))


def life_cycle(name: str) -> LifeCycle:
    """The life cycle of release NAME. UnknownRelease where it is not known."""
    known = lines()
    place = known.index(release(name).line)
    starts = [datetime.date.fromisoformat(release(of_line(line)[0]).date) for line in known[place + 1 :]]
    return LifeCycle(starts[0] if starts else None, starts[1] if len(starts) > 1 else None)


def of_line(line: str) -> list[str]:
    """The releases of LINE, oldest first."""
    return [name for name in names() if release(name).line == line]


def steps(name: str) -> list[str]:
    """The releases to go over from release NAME to the newest, which comes last: the newest of each line on the way."""
    known = lines()
    place = known.index(release(name).line)
    return [newest for line in known[place:] if (newest := of_line(line)[-1]) != name]
