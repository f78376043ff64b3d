"""Rules about images of drivers: whether there is one for the nodes, and how its tag is put together.

The tag is <version>-<system>, of a precompiled driver <branch>-<kernel>-<system>. What is said about NVIDIA's images
holds for mirrors of them too; who builds images of their own knows which there are.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ...api.keys import DEPLOY
from ...catalog import drivers, oses
from ...cluster.drivers import NodeDriver
from ...cluster.resolve import Cluster
from ...model import numbers
from ..rule import Hit, hit, rule
from .gpu_drivers import about

DIGEST = "sha256:"


@rule("GPU435", "error")
def no_image_for_the_system(cluster: Cluster) -> Iterator[Hit]:
    """There is no published driver image for the nodes' operating system."""
    for driver in _published(cluster):
        system, at = driver.pool.system, f"{driver.pool.path}.os"
        first = drivers.first_branch_on(driver.pool.said.os or "")
        if system is not None and system.driver_image != "vendor" and not system.published:
            own = cluster.spec.cluster.openshift
            renamed = oses.openshift(own.version or "").get("os") if own and system.id == "rhcos" else None
            if renamed:
                yield about(driver, at, "renamed", right=renamed)
            else:
                yield about(driver, at, "none", because=f"NVIDIA publishes none for {system.name}")
        elif first is not None and driver.numbers and driver.numbers[0] < first.number:
            yield about(driver, at, "none", because=f"there are images for it from {first.name} on")
        elif last := _after_the_last(driver):
            yield about(driver, at, "none", because=f"NVIDIA stopped building for it; the last one is {last}")


def _after_the_last(driver: NodeDriver) -> str:
    """The last version that NVIDIA built for the system of DRIVER, where that is older; else ""."""
    versions = drivers.last_images_for(driver.pool.said.os or "")
    if not versions or not driver.numbers:
        return ""
    same = next((name for name in versions if numbers(name)[0] == driver.numbers[0]), "")
    if same:
        return same if driver.numbers > numbers(same) else ""
    return versions[-1] if driver.numbers[0] > numbers(versions[-1])[0] else ""


@rule("GPU482", "warning")
def no_such_version(cluster: Cluster) -> Iterator[Hit]:
    """The catalogue knows no driver container of this version."""
    for driver in _published(cluster):
        known = drivers.built(driver.numbers[0]) if len(driver.numbers) > 1 else ()
        if known and not driver.vgpu and driver.numbers not in {numbers(name) for name in known}:
            yield about(driver, driver.paths["version"], known=" or ".join(reversed(known[-3:])))


def _published(cluster: Cluster) -> Iterator[NodeDriver]:
    """The drivers whose image is one of NVIDIA's, named by its tag, on nodes that aren't labelled to run none."""
    named = (driver for driver in cluster.drivers if driver.nvidias and not driver.digest)
    return (driver for driver in named if driver.pool.said.nodeSelector.get(f"{DEPLOY}driver") != "false")


@rule("GPU436", "warning")
def perhaps_no_image(cluster: Cluster) -> Iterator[Hit]:
    """Nobody can vouch that there is a driver image for the nodes' operating system."""
    for driver in _published(cluster):
        system = driver.pool.system
        if driver.pool.said.os is not None and (system is None or system.driver_image == "vendor"):
            yield about(driver, f"{driver.pool.path}.os", "unknown" if system is None else "vendor")


@rule("GPU437", "error")
def system_in_the_version(cluster: Cluster) -> Iterator[Hit]:
    """A version ends in the operating system, which is appended to it anyway."""
    for path, version in versions(cluster):
        match = re.fullmatch(rf"(.+)-(?:signed-)?((?:{'|'.join(oses.os_ids())})\d[\w.]*)", version)
        if match:
            yield hit(path, version=version, system=match[2], plain=match[1])


def versions(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The versions to which a system is appended, by path, of what is on."""
    sections: list[tuple[str, Any]] = [*cluster.described, ("spec.vgpuManager", cluster.spec.vgpuManager)]
    of_all = [("spec", cluster.spec)] if cluster.drivers_by == "section" else []
    beside = cluster.described if cluster.listed else of_all
    sections += [(f"{path}.{name}", getattr(each, name)) for path, each in beside for name in ("gds", "gdrcopy")]
    for path, section in sections:
        name, _, tag = (section.image or "").rpartition(":")
        if not getattr(section, "enabled", True):
            continue
        if section.version:
            yield f"{path}.version", section.version
        elif "/" in name and "/" not in tag:
            yield f"{path}.image", tag


@rule("GPU438", "error")
def precompiled_by_branch(cluster: Cluster) -> Iterator[Hit]:
    """A precompiled driver is asked for by its whole version."""
    for driver in _published(cluster):
        if driver.precompiled and not driver.version.isdigit():
            branch = driver.numbers[:1] and driver.numbers[0]
            yield about(driver, driver.paths["version"], "branch" if branch else "none", branch=branch)


@rule("GPU439", "warning")
def branch_without_precompiled(cluster: Cluster) -> Iterator[Hit]:
    """The version is a branch, and the driver is not precompiled."""
    for driver in _published(cluster):
        if not driver.precompiled and driver.version.isdigit():
            yield about(driver, driver.paths["version"])


@rule("GPU440", "warning")
def no_precompiled_image(cluster: Cluster) -> Iterator[Hit]:
    """No precompiled image is documented for the branch, the kernel and the operating system of a pool."""
    for driver in _published(cluster):
        os, kernel, system = driver.pool.said.os or "", driver.pool.said.kernel or "", driver.pool.system
        if not driver.precompiled or not kernel or not driver.numbers:
            continue
        if system is None or system.driver_image == "vendor":
            continue  # GPU436
        branches = drivers.precompiled_branches(cluster.spec.release, os, kernel)
        flavors = drivers.kernel_flavors(os)
        flavor = next((name for name in sorted(flavors, key=len, reverse=True) if kernel.endswith(f"-{name}")), "")
        if not branches:
            why = f"there are none for {os} with kernel {'.'.join(kernel.split('.')[:2])}"
        elif not flavor:
            why = f"there are some for kernels of the flavors {', '.join(flavors)}"
        elif driver.numbers[0] not in branches:
            why = f"for this kernel there are some of the branches {', '.join(map(str, branches))}"
        else:
            continue
        yield about(driver, f"{driver.pool.path}.kernel", branch=driver.numbers[0], kernel=kernel, because=why)


@rule("GPU441", "error")
def one_digest_for_many_systems(cluster: Cluster) -> Iterator[Hit]:
    """A driver is named by a digest, and its nodes run several operating systems."""
    systems: dict[str, dict[str, str]] = {}
    for driver in cluster.drivers:
        path = next((driver.paths[name] for name in ("version", "image") if DIGEST in (driver.values[name] or "")), "")
        if path and driver.pool.said.os:
            with suppress(oses.UnknownOS):
                tag = oses.os_tag(driver.pool.said.os, cluster.spec.release)
                systems.setdefault(path, {})[tag] = driver.pool.name
    for path, tags in systems.items():
        if len(tags) > 1:
            where = " and ".join(f"{tag} (node pool {pool})" for tag, pool in tags.items())
            yield hit(path, where=where)
