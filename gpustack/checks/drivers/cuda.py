"""Rules about CUDA: what a pool's workloads need (`nodePools[].cuda`), the driver's CUDA, and the GPU's."""

from collections.abc import Iterator

from ...catalog import drivers
from ...catalog._versions import numbers
from ...cluster.mig_layouts import product_of
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule
from .about import about


@rule("GPU430", "error")
def cuda_before_its_driver(cluster: Cluster) -> Iterator[Hit]:
    """Workloads need a CUDA that the driver does not run."""
    for driver in cluster.running:
        needed, branch = driver.pool.cuda, driver.branch
        if needed and branch is not None and branch.cuda is not None and numbers(needed)[0] > branch.cuda:
            first = next(known for known in drivers.branches() if (known.cuda or 99) >= numbers(needed)[0])
            yield about(
                driver,
                f"spec.nodePools[{driver.index}].cuda",
                needed=needed,
                runs=branch.newest_cuda or branch.cuda,
                first=first.name,
                pool="",
            )


@rule("GPU431", "warning")
def newer_minor_cuda(cluster: Cluster) -> Iterator[Hit]:
    """Workloads need a newer minor version of CUDA than the driver came with."""
    for driver in cluster.running:
        needed, newest = driver.pool.cuda, driver.branch.newest_cuda if driver.branch is not None else None
        if not needed or not newest or not numbers(needed) > numbers(newest):
            continue
        if numbers(needed)[0] == numbers(newest)[0]:
            known = [
                branch for branch in drivers.branches() if branch.newest_cuda and branch.number > driver.numbers[0]
            ]
            first = next((branch for branch in known if numbers(branch.newest_cuda or "") >= numbers(needed)), None)
            path = f"spec.nodePools[{driver.index}].cuda"
            yield about(
                driver,
                path,
                "first" if first else "none",
                needed=needed,
                newest=newest,
                first=first and first.name,
                pool="",
            )


@rule("GPU432", "warning")
def cuda_of_another_gpu(cluster: Cluster) -> Iterator[Hit]:
    """The CUDA of a pool's workloads makes no code for its GPUs."""
    for index, pool in enumerate(cluster.spec.nodePools):
        product = product_of(pool)
        if product is None or not pool.cuda:
            continue
        first, dropped = drivers.cuda_range(product)
        path, have = f"spec.nodePools[{index}].cuda", numbers(pool.cuda)
        if first and have < numbers(first):
            yield hit(path, "early", cuda=pool.cuda, product=product.name, pool_name=pool.name, first=first)
        elif dropped and have >= numbers(dropped):
            yield hit(
                path,
                "late",
                cuda=pool.cuda,
                product=product.name,
                pool_name=pool.name,
                dropped=dropped,
                capability=product.compute_capability,
            )
