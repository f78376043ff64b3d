"""The driver that the nodes of a pool get, why that one, and where the policy says what about it.

Three parts of the policy describe drivers: the section `driver`, `driver` of a pool, which overrides fields of it, and
`drivers`. Here is the one answer to which of them a pool's nodes get; `Pool.driver` has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..catalog import drivers, releases
from ..model import numbers
from ..policy.language import images
from .ownership import is_default

if TYPE_CHECKING:
    from ..policy.language.operand import EnvVar
    from ..policy.language.spec import ClusterPolicySpec
    from .pool import Pool

Source = Literal["section", "list", "host"]
"""Who describes drivers: the section `driver` (with what pools override of it), the list `drivers`, or nobody, because
the nodes bring theirs."""

NVIDIA = "nvcr.io/nvidia"
"""Where NVIDIA publishes images of drivers."""

Version = tuple[int, ...]


@dataclass(frozen=True)
class NodeDriver:
    """The driver of the nodes of POOL.

    `values` are the driver's fields, `paths` where each of them stands, or would. `number` is its place in `drivers`,
    None where the section describes it. `path` is what says that this pool gets this driver, `why` says it in words.
    One that the nodes have `brought` has a version and nothing else that is known."""

    pool: Pool
    values: dict[str, Any]
    paths: dict[str, str]
    number: int | None
    path: str
    why: str
    brought: bool = False

    @property
    def owner(self) -> str:
        """What the node label says that assigns the driver to these nodes; "" where there is nothing to choose from."""
        spec = self.pool.spec
        if self.number is None:
            return self.pool.name if self.pool.said.driver is not None else ""
        return spec.drivers[self.number].name if releases.release(spec.release).traits.driver_owner_label else ""

    @property
    def for_containers(self) -> bool:
        """Whether it drives GPUs for containers; the vGPU host manager drives those of virtual machines."""
        return self.pool.workload == "container" and self.values.get("driverType") != "vgpu-host-manager"

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
        match = re.match(r"\d{3,}(?:\.\d+)*", self.version)
        return numbers(match[0]) if match and not self.digest else ()

    @cached_property
    def branch(self) -> drivers.Branch | None:
        """The branch of the version, None where the catalogue doesn't know it."""
        try:
            return drivers.branch(str(self.numbers[0])) if self.numbers else None
        except drivers.UnknownBranch:
            return None


def older(have: Version, least: str) -> bool:
    """Whether a version with the numbers HAVE is older than LEAST. A branch alone is as new as it may be."""
    want = tuple(int(part) for part in least.split("."))
    return bool(have) and have < want[: len(have)]


MODULES = "KERNEL_MODULE_TYPE"
FIELDS = ("repository", "image", "version", "kernelModuleType", "usePrecompiled")


def driver_of(pool: Pool) -> NodeDriver | None:
    """The driver that POOL gets; None where its nodes bring theirs, or serve machines without one of `drivers`."""
    source = pool.cluster.drivers_by
    if source == "list":
        default = [number for number, driver in enumerate(pool.spec.drivers) if is_default(pool.spec, driver)]
        every = [*pool.claims, *default]
        return listed(pool, every[0]) if every else None
    return overridden(pool) if source == "section" and pool.workload == "container" else None


def brought(pool: Pool) -> NodeDriver | None:
    """The driver that nodes of POOL bring; None where its version is not said, or they serve virtual machines."""
    own = pool.said.driver.hostVersion if pool.said.driver is not None else None
    version = own or pool.spec.driver.hostVersion
    if version is None or pool.workload != "container":
        return None
    path = f"{pool.path}.driver.hostVersion" if own else "spec.driver.hostVersion"
    values = {**dict.fromkeys(FIELDS), "version": version}
    return NodeDriver(pool, values, dict.fromkeys(FIELDS, path), None, path, "the nodes bring it", True)


def listed(pool: Pool, number: int) -> NodeDriver:
    """Number NUMBER of `drivers` as the driver of POOL."""
    driver = pool.spec.drivers[number]
    values = {name: getattr(driver, name) for name in (*FIELDS, "driverType")}
    paths = {name: f"spec.drivers[{number}].{name}" for name in FIELDS}
    path, why = f"spec.drivers[{number}].default", "no other driver selects the nodes, and it is the default"
    if number in pool.claims:
        path, why = f"spec.drivers[{number}]", "it has no nodeSelector, so it takes all nodes"
        if driver.nodeSelector:
            path, why = f"{path}.nodeSelector", f"its nodeSelector matches the labels of pool {pool.name}"
    by_image(values, paths)
    by_variable(driver.env, f"spec.drivers[{number}].env", values, paths)
    return NodeDriver(pool, values, paths, number, path, why)


def overridden(pool: Pool) -> NodeDriver:
    """The section `driver`, with what POOL says over it. An image that is named whole replaces all of the reference."""
    section, own, where = pool.spec.driver, pool.said.driver, f"{pool.path}.driver"
    values: dict[str, Any] = {name: getattr(section, name) for name in FIELDS}
    paths = {name: f"spec.driver.{name}" for name in FIELDS}
    if own is not None:
        if images.stands_alone(own.model_dump(include={"repository", "image", "version"})):
            values |= {"repository": None, "version": None}
        given = {name: value for name in FIELDS if (value := getattr(own, name)) is not None}
        values |= given
        paths |= {name: f"{where}.{name}" for name in given}
    by_image(values, paths)
    by_variable(section.env, "spec.driver.env", values, paths)
    if own is None:
        return NodeDriver(pool, values, paths, None, "spec.driver", "the section driver is for all nodes")
    by_variable(own.env, f"{where}.env", values, paths)
    return NodeDriver(pool, values, paths, None, where, f"pool {pool.name} overrides the cluster's driver")


def by_image(values: dict[str, Any], paths: dict[str, str]) -> None:
    """Put into VALUES and PATHS the version that an image has which is named whole."""
    if not values["repository"] and not values["version"] and ":" in (values["image"] or ""):
        values["version"], paths["version"] = values["image"].rpartition(":")[2], paths["image"]


def by_variable(env: Sequence[EnvVar] | None, path: str, values: dict[str, Any], paths: dict[str, str]) -> None:
    """Put into VALUES and PATHS what the container's variables, ENV at PATH, say over its fields (operator.md 5.2)."""
    for index, entry in enumerate(env or ()):
        if entry.name == MODULES and entry.value:
            values["kernelModuleType"], paths["kernelModuleType"] = entry.value, f"{path}[{index}].value"


class Features(NamedTuple):
    """What a driver's pods bring beside the driver."""

    rdma: bool
    gds: bool
    gdrcopy: bool


def container_drivers(spec: ClusterPolicySpec, source: Source) -> list[Features]:
    """The drivers that a render of SPEC, in which SOURCE describes drivers, brings to nodes for containers."""
    if source == "list":
        own = (driver for driver in spec.drivers if driver.driverType != "vgpu-host-manager")
        return [Features(bool(each.rdma.enabled), each.gds.enabled, each.gdrcopy.enabled) for each in own]
    if source == "host":
        return []
    rdma = [pool.driver.rdma.enabled for pool in spec.nodePools if pool.driver is not None]
    switches = [spec.driver.rdma.enabled, *(switch for switch in rdma if switch is not None)]
    return [Features(bool(switch), spec.gds.enabled, spec.gdrcopy.enabled) for switch in switches]
