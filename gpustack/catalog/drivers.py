"""Drivers: branches, minimum versions, kernel modules.

What concerns operating systems (`os_tag` and its like) lives in oses.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpustack.catalog import _data, _versions, releases
from gpustack.catalog._lookup import UnknownName
from gpustack.model import numbers, whole

if TYPE_CHECKING:
    from gpustack.catalog.gpus import Product

_facts = functools.partial(_data.load, "drivers")


class UnknownBranch(UnknownName):
    what = "driver branch"


@dataclass(frozen=True, slots=True)
class Branch:
    """A driver branch. `type` is LTSB, PB or NFB; `end_of_life` a month (2028-06), None where it is not known. `ended`:
    support had ended in August 2026. `cuda` is the highest CUDA major version, `newest_cuda` ("13.0") the newest CUDA
    that it runs without limits. `last_for`: families that no later branch supports. `open_only`: it has no proprietary
    kernel modules."""

    name: str
    type: str
    end_of_life: str | None
    cuda: int | None
    ended: bool = False
    newest_cuda: str | None = None
    last_for: tuple[str, ...] = ()
    open_only: bool = False
    uncertain: str | None = None

    @property
    def number(self) -> int:
        return int(self.name[1:])


@dataclass(frozen=True, slots=True)
class Minimum:
    """What a GPU asks of its driver. None where there is no such limit, or it is not known. `modules`: which kernel
    modules it takes (either, open, proprietary). `first_branch` and `last_branch` bound the branches; `version` is the
    first version, `mig_version` the first with MIG."""

    modules: str
    first_branch: str | None
    last_branch: str | None
    mig_version: str | None
    version: str | None = None
    uncertain: str | None = None


@functools.cache
def branches() -> tuple[Branch, ...]:
    """All branches, oldest first."""
    return tuple(
        _data.made(Branch, facts, name=name, end_of_life=facts["eol"]) for name, facts in _facts()["branches"].items()
    )


def branch(version: str) -> Branch:
    """The branch of a driver version or by its name: 580.126.20, 580, R580. UnknownBranch names its neighbours."""
    text = version.removeprefix("R").partition(".")[0]
    if found := next((known for known in branches() if text == known.name[1:]), None):
        return found
    number = whole(text)
    if number is None:
        raise UnknownBranch(version, [known.name for known in branches()[-3:]])
    by_distance = sorted(branches(), key=lambda known: abs(known.number - number))
    raise UnknownBranch(version, [known.name for known in by_distance[:2]])


def minimum(product: str | Product) -> Minimum:
    """What a GPU product asks of its driver. UnknownProduct where the product is not known."""
    from gpustack.catalog import gpus  # most who name a driver image ask about its system only

    gpu = gpus.product(product) if isinstance(product, str) else product
    facts = dict(_facts()["minimum"]["by_family"][gpu.family])
    facts |= _facts()["minimum"]["by_product"][gpu.driver] if gpu.driver else {}
    last = next((known.name for known in branches() if gpu.family in known.last_for), None)
    more = {"first_branch": facts.get("branch"), "last_branch": last, "mig_version": facts.get("mig")}
    return _data.made(Minimum, facts, **more)


def cuda_range(product: str | Product) -> tuple[str | None, str | None]:
    """The first CUDA whose compiler makes code for a GPU product, and the first that doesn't any more; None for no
    limit, and where it is not known. UnknownProduct where the product is not known."""
    from gpustack.catalog import gpus

    gpu = gpus.product(product) if isinstance(product, str) else product
    limits = _facts()["capabilities"].get(gpu.compute_capability, {})
    return limits.get("from"), limits.get("before")


def first_branch_on(os: str) -> Branch | None:
    """The first branch with images of NVIDIA's for OS ("ubuntu24.04"), None where all have some, or none is known."""
    name = _of_system("images", os)
    return branch(name) if name else None


def last_images_for(os: str) -> tuple[str, ...]:
    """The last version of each branch with an image of NVIDIA's for OS, oldest first; empty where images go on."""
    return tuple(_of_system("last_images", os) or ())


def built(number: int) -> tuple[str, ...]:
    """The versions of branch NUMBER that had driver containers, oldest first; empty where nothing is known."""
    listed = [name for names in _facts()["listed"].values() for name in names]
    known = {*(name for names in _facts()["built"] for name in names), *listed}
    return tuple(sorted((name for name in known if name.startswith(f"{number}.")), key=_versions.key))


def _of_system(table: str, os: str) -> Any:
    """The entry of TABLE for OS, or for its ID and major version (rhel10 for rhel10.1)."""
    facts = _facts()[table]
    return facts.get(os) or facts.get(os.partition(".")[0])


def listed_versions(release: str) -> tuple[str, ...]:
    """The driver versions that the documentation of RELEASE's line lists. UnknownRelease for any other."""
    return tuple(_versions.of_line(_facts()["listed"], releases.release(release).line))


def precompiled_branches(release: str, os: str, kernel: str) -> tuple[int, ...]:
    """The branches of which RELEASE has precompiled images for KERNEL (5.15.0-105-generic) on OS; empty for none."""
    series = _versions.of_line(_facts()["precompiled"], releases.release(release).line).get(os, {})
    listed = series.get(".".join(kernel.split(".")[:2]), series.get("any", ()))
    return tuple(listed)


def kernel_flavors(os: str) -> tuple[str, ...]:
    """The kernel flavors (suffixes of the kernel's name) that have precompiled images on OS; empty for none."""
    return tuple(_facts()["kernel_flavors"].get(os, ()))


def gds_open_from() -> tuple[int, ...]:
    """The first nvidia-fs, of GPUDirect Storage, that builds with the open kernel modules alone, as numbers."""
    return numbers(_facts()["kernel_modules"]["open_required_from"])
