"""Rules about a driver and the GPUs under it: versions that support them, kernel modules that load on them."""

from collections.abc import Iterator
from typing import Any

from ...api.keys import DEPLOY
from ...catalog import drivers, releases
from ...catalog.drivers import Minimum
from ...cluster.drivers import NodeDriver, older
from ...cluster.mig_layouts import product_of
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...model import numbers
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule
from .about import about

HOST = "vgpu-host-manager"
BRANCH = 3
"""How many digits the name of a branch has (580)."""
AUTO_FROM = 570
"""The first branch that knows kernelModuleType auto (drivers.yaml kernel_modules)."""
BOARD = 8
"""How many GPUs the boards with NVSwitch have, from A100 on (NVIDIA AI Enterprise, NVSwitch: platform support)."""


@rule("GPU420", "error")
def driver_without_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The driver does not support the GPU: it is too old for it, or too new."""
    for driver, need in _needs(cluster.spec):
        yield from _unsupported(driver, need)
    for pool in cluster.pools:
        yield from _unsupported_host(cluster, pool)


def _unsupported_host(cluster: Cluster, pool: Pool) -> Iterator[Hit]:
    """The vGPU host driver of POOL, where its branch is too old or too new for the GPU."""
    section: Any = cluster.spec.vgpuManager
    path = "spec.vgpuManager"
    if cluster.listed:
        if pool.driver is None or pool.driver.number is None or pool.driver.values.get("driverType") != HOST:
            return
        section, path = cluster.spec.drivers[pool.driver.number], f"spec.drivers[{pool.driver.number}]"
    elif not section.enabled:
        return
    version = images.version(section)
    branch = version.partition(".")[0]
    if pool.product is None or pool.workload != "vm-vgpu" or not branch.isdecimal() or len(branch) != BRANCH:
        return
    need = drivers.minimum(pool.product)
    for limit, which, wrong in (
        (need.last_branch, "last", need.last_branch and int(branch) > int(need.last_branch[1:])),
        (need.first_branch, "first", need.first_branch and int(branch) < int(need.first_branch[1:])),
    ):
        if wrong:
            where = images.version_path(path, section)
            yield hit(
                where, "host", version=version, product=pool.said.gpuProduct, limit=limit, which=which, pool=pool.name
            )


def _needs(spec: ClusterPolicySpec) -> Iterator[tuple[NodeDriver, Minimum]]:
    """The drivers of nodes with a known GPU, and what that asks of them."""
    for driver in resolve(spec).running:
        if driver.product is not None and driver.numbers and not driver.vgpu:
            yield driver, drivers.minimum(driver.product)


def _unsupported(driver: NodeDriver, need: Minimum) -> Iterator[Hit]:
    path = driver.paths["version"]
    first = int(need.first_branch[1:]) if need.first_branch else 0
    if need.last_branch and driver.numbers[0] > int(need.last_branch[1:]):
        listed = [name for name in drivers.listed_versions(driver.spec.release) if name[:3] == need.last_branch[1:]]
        version = listed[0] if listed else "a version of it"
        how = f"set spec.nodePools[{driver.index}].driver.version to {version}"
        if resolve(driver.spec).listed:
            how = f"add one with version {version} to spec.drivers, with a nodeSelector for them"
        why = f"{need.last_branch} is the last driver branch for GPUs of this generation"
        remedy = f"give these pools a driver of {need.last_branch}: {how}"
        if driver.brought:
            remedy = _newer(driver, f"driver of {need.last_branch}")
    elif not need.uncertain and driver.numbers[0] < first:
        why = f"it needs a driver of branch {need.first_branch} or newer"
        brought = releases.release(driver.spec.release).image("driver").version or ""
        remedy = (
            f"set {path} to a version of {need.first_branch} or newer, or leave it out: release "
            f"{driver.spec.release} brings {brought}"
        )
        if driver.brought:
            remedy = _newer(driver, f"driver of {need.first_branch} or newer")
    elif not need.uncertain and need.version and older(driver.numbers, need.version):
        why = f"the first version with support for it is {need.version}"
        remedy = _newer(driver, f"{need.version} or newer")
    else:
        return
    yield about(driver, path, "guest", why=why, remedy=remedy)


def _newer(driver: NodeDriver, version: str) -> str:
    """What to do for DRIVER to be of VERSION."""
    path = driver.paths["version"]
    if driver.brought:
        return f"give the nodes an image with {version}, and say so in {path}"
    return f"set {path} to {version}"


@rule("GPU421", "error")
def modules_for_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The kernel modules that are asked for do not load on the GPU."""
    for driver in cluster.drivers:
        path = driver.paths["kernelModuleType"]
        need = drivers.minimum(driver.product).modules if driver.product is not None and not driver.vgpu else "either"
        other = {"open": "proprietary", "proprietary": "open"}.get(driver.modules)
        if other and need == other:
            yield about(driver, path, "product", modules=driver.modules, other=other)
        elif driver.modules == "proprietary" and driver.branch is not None and driver.branch.open_only:
            yield about(driver, path, "branch", branch=driver.branch.name)


@rule("GPU422", "warning")
def auto_on_an_old_branch(cluster: Cluster) -> Iterator[Hit]:
    """The type of kernel modules is auto, and the driver is older than that."""
    for driver in cluster.drivers:
        if driver.modules == "auto" and driver.numbers and driver.numbers[0] < AUTO_FROM:
            yield about(driver, driver.paths["kernelModuleType"], first=AUTO_FROM)


@rule("GPU423", "error")
def mig_before_its_driver(cluster: Cluster) -> Iterator[Hit]:
    """A pool's GPUs are to be cut by MIG, and the driver is older than MIG on them."""
    for driver, need in _needs(cluster.spec):
        late = need.mig_version and not need.uncertain and older(driver.numbers, need.mig_version)
        if late and driver.pool.sharing.mig is not None:
            yield about(
                driver,
                driver.paths["version"],
                first=need.mig_version,
                newer=_newer(driver, f"{need.mig_version} or newer"),
            )


@rule("GPU424", "warning")
def perhaps_without_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The driver may not support the GPU, or not MIG on it; the sources are not sure."""
    for driver, need in _needs(cluster.spec):
        if not need.uncertain:
            continue
        branch = need.first_branch[1:] if need.first_branch else ""
        for first, what in ((need.version or branch, ""), (need.mig_version, "MIG on ")):
            if first and older(driver.numbers, first) and (not what or driver.pool.sharing.mig is not None):
                newer = _newer(driver, f"{first} or newer")
                yield about(
                    driver, driver.paths["version"], what=what, first=first, uncertain=need.uncertain, newer=newer
                )
                break


@rule("GPU425", "error")
def gds_needs_open_modules(cluster: Cluster) -> Iterator[Hit]:
    """GPUDirect Storage is on, and the driver builds the proprietary kernel modules."""
    spec = cluster.spec
    if spec.drivers or not spec.gds.enabled:
        return
    numbers = _numbers(images.version(spec.gds))
    for driver in cluster.drivers:
        only = driver.product is not None and drivers.minimum(driver.product).modules == "proprietary"
        if (driver.modules == "proprietary" or (only and not driver.vgpu)) and numbers >= drivers.gds_open_from():
            yield about(
                driver,
                "spec.gds.enabled" if only else driver.paths["kernelModuleType"],
                "only" if only else "chosen",
                gds=images.version(spec.gds),
                pool="",
            )


def _numbers(version: str) -> tuple[int, ...]:
    return numbers(version.removeprefix("v").partition("-")[0])


@rule("GPU426", "note")
def fabric_manager(cluster: Cluster) -> Iterator[Hit]:
    """The GPUs of a pool hang together by NVSwitch, and the nodes bring their driver."""
    spec = cluster.spec
    own = f"{DEPLOY}driver"
    managed = {driver.index for driver in cluster.drivers if driver.pool.nodeSelector.get(own) != "false"}
    platform = cluster.platform
    if "fabric_manager" in platform.brings:
        return
    for index, pool in enumerate(spec.nodePools):
        product, whole = product_of(pool), (pool.gpusPerNode or BOARD) >= BOARD
        seen_to = index in managed or pool.host.fabricManager or cluster.of(pool).workload != "container"
        if not seen_to and product and product.nvswitch and whole:
            yield hit(f"spec.nodePools[{index}].gpuProduct", product=product.name, pool_name=pool.name)
