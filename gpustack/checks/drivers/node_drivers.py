"""The driver that the nodes of each pool get, and where the policy says what about it.

Three parts of the policy describe drivers: the section `driver`, `driver` of a pool, which overrides fields of it, and
`drivers`. Rules about a driver and the nodes under it ask here, so that each is written once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...catalog import drivers, gpus, oses, releases
from ...cluster.ownership import in_charge, owners
from ...cluster.workloads import workload
from ...model import numbers
from ...policy.language import images

if TYPE_CHECKING:
    from ...policy.language.node_pools import NodePool
    from ...policy.language.spec import ClusterPolicySpec
    from ..rule import Hit

NVIDIA = "nvcr.io/nvidia"
"""Where NVIDIA publishes images of drivers."""

Version = tuple[int, ...]


@dataclass(frozen=True)
class NodeDriver:
    """The driver of the nodes of POOL, number INDEX.

    `values` are the driver's fields, `paths` where each of them stands, or would.
    """

    spec: ClusterPolicySpec
    index: int
    pool: NodePool
    values: dict[str, Any]
    paths: dict[str, str]

    @property
    def version(self) -> str:
        return self.values["version"] or ""

    @property
    def precompiled(self) -> bool:
        return bool(self.values["usePrecompiled"])

    @property
    def modules(self) -> str:
        """Which kernel modules are asked for: auto, open or proprietary."""
        return self.values["kernelModuleType"] or "auto"

    @property
    def vgpu(self) -> bool:
        """Whether it is the driver of a vGPU guest, for whose GPUs the tables of physical ones say nothing."""
        return self.values.get("driverType") == "vgpu" or "-grid" in self.version

    @property
    def nvidias(self) -> bool:
        """Whether the image is one that NVIDIA publishes, mirrored or not."""
        image, repository = self.values["image"] or "", self.values["repository"] or ""
        if "/" in image and not repository:
            return image.startswith(f"{NVIDIA}/driver")
        return repository == NVIDIA and image == "driver"

    @property
    def digest(self) -> bool:
        """Whether the image is named by a digest, which says nothing about what is in it."""
        return "sha256:" in self.version or "sha256:" in (self.values["image"] or "")

    @cached_property
    def numbers(self) -> Version:
        """The version as numbers: (595, 91, 7), of a branch (595,); empty where it says nothing."""
        found = re.match(r"\d{3,}(?:\.\d+)*", self.version)
        return numbers(found[0]) if found and not self.digest else ()

    @cached_property
    def branch(self) -> drivers.Branch | None:
        """The branch of the version, None where the catalogue doesn't know it."""
        return branch_of(self.numbers)

    @cached_property
    def product(self) -> gpus.Product | None:
        """The GPU of the nodes, None where the pool doesn't say it, or the catalogue doesn't know it."""
        return product_of(self.pool)

    @cached_property
    def system(self) -> oses.OperatingSystem | None:
        """The operating system of the nodes, None where the pool doesn't say it, or the catalogue doesn't know it."""
        return system_of(self.pool)


def branch_of(numbers: Version) -> drivers.Branch | None:
    """The branch of a version with NUMBERS, or None."""
    try:
        return drivers.branch(str(numbers[0])) if numbers else None
    except drivers.UnknownBranch:
        return None


def product_of(pool: NodePool) -> gpus.Product | None:
    """The GPU of POOL, or None where it isn't said or the catalogue doesn't know it."""
    try:
        return gpus.product(pool.gpuProduct) if pool.gpuProduct else None
    except gpus.UnknownProduct:
        return None


def system_of(pool: NodePool) -> oses.OperatingSystem | None:
    """The operating system of POOL, or None where it isn't said or the catalogue doesn't know it."""
    try:
        return oses.operating_system(pool.os) if pool.os else None
    except oses.UnknownOS:
        return None


def older(have: Version, least: str) -> bool:
    """Whether a version with the numbers HAVE is older than LEAST. A branch alone is as new as it may be."""
    want = tuple(int(part) for part in least.split("."))
    return bool(have) and have < want[: len(have)]


FIELDS = ("repository", "image", "version", "kernelModuleType", "usePrecompiled")


def node_drivers(spec: ClusterPolicySpec) -> Iterator[NodeDriver]:
    """The driver of each pool that serves containers and gets one from this policy."""
    listed = in_charge(spec)
    if not listed and not spec.driver.enabled:
        return
    chosen = owners(spec) if listed else []
    for index, pool in enumerate(spec.nodePools):
        if workload(spec, pool) != "container":
            continue
        if not listed:
            yield overridden(spec, index, pool)
        elif (number := chosen[index]) is not None and spec.drivers[number].driverType != "vgpu-host-manager":
            driver = spec.drivers[number]
            values = {name: getattr(driver, name) for name in (*FIELDS, "driverType")}
            paths = {name: f"spec.drivers[{number}].{name}" for name in FIELDS}
            yield NodeDriver(spec, index, pool, {**values, **defaults(spec, values)}, paths)


def overridden(spec: ClusterPolicySpec, index: int, pool: NodePool) -> NodeDriver:
    """The section `driver`, with what POOL says of its own over it. An image that is named whole replaces all of the
    reference.
    """
    values: dict[str, Any] = {name: getattr(spec.driver, name) for name in FIELDS}
    paths = {name: f"spec.driver.{name}" for name in FIELDS}
    if pool.driver is not None:
        if images.stands_alone(pool.driver.model_dump(include={"repository", "image", "version"})):
            values |= {"repository": None, "version": None}
        for name in FIELDS:
            if getattr(pool.driver, name) is not None:
                values[name] = getattr(pool.driver, name)
                paths[name] = f"spec.nodePools[{index}].driver.{name}"
    if not values["repository"] and not values["version"] and ":" in (values["image"] or ""):
        values["version"] = values["image"].rpartition(":")[2]
    return NodeDriver(spec, index, pool, values, paths)


def defaults(spec: ClusterPolicySpec, values: dict[str, Any]) -> dict[str, str | None]:
    """What one of `drivers` lacks of its image: the release's, unless it names an image itself."""
    if values["image"] or (values["driverType"] or "gpu") != "gpu":
        return {}
    known = releases.release(spec.release).image("driver")
    found = {"repository": known.repository, "image": known.image, "version": known.version}
    return {name: value for name, value in found.items() if not values[name]}


POOLS = "{pools}"
"""Stands in what a hit says for the node pools that it is about: see `joined`."""


def joined(found: Iterable[tuple[NodePool, Hit]]) -> Iterator[Hit]:
    """The hits about pools, those that say the same of several pools as one; their names take the place of POOLS."""
    names: dict[Hit, list[str]] = {}
    for pool, hit in found:
        names.setdefault(hit, []).append(pool.name)
    for hit, about in names.items():
        text = f"node pool {about[0]}" if len(about) == 1 else f"node pools {', '.join(about[:-1])} and {about[-1]}"
        yield replace(hit, what=hit.what.replace(POOLS, text))
