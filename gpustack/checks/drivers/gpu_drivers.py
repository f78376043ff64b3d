"""Rules about a driver, the GPUs under it and the CUDA of its nodes' workloads (`nodePools[].cuda`): versions that go
together, kernel modules that load.
"""

from collections.abc import Iterator
from typing import Any

from ...api.keys import DEPLOY
from ...catalog import drivers, releases
from ...catalog._versions import numbers
from ...catalog.drivers import Minimum
from ...cluster.drivers import NodeDriver, older
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language import images
from ..rule import Hit, hit, rule

HOST = "vgpu-host-manager"
BRANCH = 3
"""How many digits the name of a branch has (580)."""
AUTO_FROM = 570
"""The first branch that knows kernelModuleType auto (drivers.yaml kernel_modules)."""
BOARD = 8
"""How many GPUs the boards with NVSwitch have, from A100 on (NVIDIA AI Enterprise, NVSwitch: platform support)."""


def about(driver: NodeDriver, path: str, case: str = "", /, **more: Any) -> Hit:
    """A hit at PATH about DRIVER; what holds of several pools is told once. Its texts may name MORE, the driver's
    $version, the $product, $system and $pool_name of its nodes, and as $version_path or $repository_path where a field
    of it stands."""
    pool = driver.pool.said
    words = {"version": driver.version, "product": pool.gpuProduct, "system": pool.os, "pool_name": pool.name}
    paths = {f"{field}_path": at for field, at in driver.paths.items()}
    return hit(path, case, **{"pool": pool.name, **words, **paths, **more})


@rule("GPU420", "error")
def driver_without_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The driver does not support the GPU: it is too old for it, or too new."""
    for driver, need in _needs(cluster):
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
    where, need, product = images.version_path(path, section), drivers.minimum(pool.product), pool.said.gpuProduct
    for limit, which, wrong in (
        (need.last_branch, "last", need.last_branch and int(branch) > int(need.last_branch[1:])),
        (need.first_branch, "first", need.first_branch and int(branch) < int(need.first_branch[1:])),
    ):
        if wrong:
            yield hit(where, "host", version=version, product=product, limit=limit, which=which, pool=pool.name)


def _needs(cluster: Cluster) -> Iterator[tuple[NodeDriver, Minimum]]:
    """The drivers of nodes with a known GPU, and what that asks of them."""
    for driver in cluster.running:
        if driver.pool.product is not None and driver.numbers and not driver.vgpu:
            yield driver, drivers.minimum(driver.pool.product)


def _unsupported(driver: NodeDriver, need: Minimum) -> Iterator[Hit]:
    path, release, brought = driver.paths["version"], driver.pool.spec.release, driver.brought
    first, last = need.first_branch or "", need.last_branch or ""
    if last and driver.numbers[0] > int(last[1:]):
        known = next((name for name in drivers.listed_versions(release) if name[:3] == last[1:]), "a version of it")
        at, listed = driver.pool.path, driver.pool.cluster.listed
        yield about(driver, path, "own" if brought else "list" if listed else "last", branch=last, known=known, at=at)
    elif not need.uncertain and first and driver.numbers[0] < int(first[1:]):
        brings = releases.release(release).image("driver").version or ""
        yield about(driver, path, "of host" if brought else "first", branch=first, release=release, brings=brings)
    elif not need.uncertain and need.version and older(driver.numbers, need.version):
        newer = _newer(driver, f"{need.version} or newer")
        yield about(driver, path, "version", least=need.version, newer=newer)


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
        path, product = driver.paths["kernelModuleType"], driver.pool.product
        need = drivers.minimum(product).modules if product is not None and not driver.vgpu else "either"
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
    for driver, need in _needs(cluster):
        first = need.mig_version
        if first and not need.uncertain and older(driver.numbers, first) and driver.pool.said.sharing.mig is not None:
            yield about(driver, driver.paths["version"], first=first, newer=_newer(driver, f"{first} or newer"))


@rule("GPU424", "warning")
def perhaps_without_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The driver may not support the GPU, or not MIG on it; the sources are not sure."""
    for driver, need in _needs(cluster):
        branch = need.first_branch[1:] if need.first_branch else ""
        for first, what in ((need.version or branch, ""), (need.mig_version, "MIG on ")) if need.uncertain else ():
            if first and older(driver.numbers, first) and (not what or driver.pool.said.sharing.mig is not None):
                path, newer = driver.paths["version"], _newer(driver, f"{first} or newer")
                yield about(driver, path, what=what, first=first, uncertain=need.uncertain, newer=newer)
                break


@rule("GPU425", "error")
def gds_needs_open_modules(cluster: Cluster) -> Iterator[Hit]:
    """GPUDirect Storage is on, and the driver builds the proprietary kernel modules."""
    spec, gds = cluster.spec, images.version(cluster.spec.gds)
    if spec.drivers or not spec.gds.enabled or numbers(gds) < drivers.gds_open_from():
        return
    for driver in cluster.drivers:
        product = driver.pool.product
        only = product is not None and drivers.minimum(product).modules == "proprietary"
        if driver.modules == "proprietary" or (only and not driver.vgpu):
            path = "spec.gds.enabled" if only else driver.paths["kernelModuleType"]
            yield about(driver, path, "only" if only else "chosen", gds=gds, pool="")


@rule("GPU426", "note")
def fabric_manager(cluster: Cluster) -> Iterator[Hit]:
    """The GPUs of a pool hang together by NVSwitch, and the nodes bring their driver."""
    if "fabric_manager" in cluster.platform.brings:
        return
    for pool in cluster.pools:
        installs = pool.driver is not None and pool.driver.for_containers
        managed = installs and pool.said.nodeSelector.get(f"{DEPLOY}driver") != "false"
        seen_to = managed or pool.said.host.fabricManager or pool.workload != "container"
        whole = (pool.said.gpusPerNode or BOARD) >= BOARD
        if not seen_to and pool.product and pool.product.nvswitch and whole:
            yield hit(f"{pool.path}.gpuProduct", product=pool.product.name, pool_name=pool.name)


@rule("GPU430", "error")
def cuda_before_its_driver(cluster: Cluster) -> Iterator[Hit]:
    """Workloads need a CUDA that the driver does not run."""
    for driver in cluster.running:
        needed, branch = driver.pool.said.cuda, driver.branch
        if needed and branch is not None and branch.cuda is not None and numbers(needed)[0] > branch.cuda:
            first = next(known for known in drivers.branches() if (known.cuda or 99) >= numbers(needed)[0])
            path, runs = f"{driver.pool.path}.cuda", branch.newest_cuda or branch.cuda
            yield about(driver, path, needed=needed, runs=runs, first=first.name, pool="")


@rule("GPU431", "warning")
def newer_minor_cuda(cluster: Cluster) -> Iterator[Hit]:
    """Workloads need a newer minor version of CUDA than the driver came with."""
    for driver in cluster.running:
        needed, newest = driver.pool.said.cuda, driver.branch.newest_cuda if driver.branch is not None else None
        if needed and newest and numbers(needed) > numbers(newest) and numbers(needed)[0] == numbers(newest)[0]:
            known = [each for each in drivers.branches() if each.newest_cuda and each.number > driver.numbers[0]]
            first = next((each.name for each in known if numbers(each.newest_cuda or "") >= numbers(needed)), "")
            path = f"{driver.pool.path}.cuda"
            yield about(driver, path, "first" if first else "none", needed=needed, newest=newest, first=first, pool="")


@rule("GPU432", "warning")
def cuda_of_another_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The CUDA of a pool's workloads makes no code for its GPUs."""
    for pool in cluster.pools:
        product, cuda = pool.product, pool.said.cuda
        if product is None or not cuda:
            continue
        path, name, able = f"{pool.path}.cuda", product.name, product.compute_capability
        first, dropped = drivers.cuda_range(product)
        if first and numbers(cuda) < numbers(first):
            yield hit(path, "early", cuda=cuda, product=name, pool_name=pool.name, first=first)
        elif dropped and numbers(cuda) >= numbers(dropped):
            yield hit(path, "late", cuda=cuda, product=name, pool_name=pool.name, dropped=dropped, capability=able)
