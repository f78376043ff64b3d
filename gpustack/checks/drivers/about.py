"""What hits about the driver of a pool have in common: their words, and the pool for which they are told."""

from typing import Any

from ...cluster.drivers import NodeDriver
from ..rule import Hit, hit


def about(driver: NodeDriver, path: str, case: str = "", /, **more: Any) -> Hit:
    """A hit at PATH about DRIVER; what holds of several pools is told once. Its texts may name MORE, the driver's
    $version, the $product, $system and $pool_name of its nodes, and as $version_path or $repository_path where a field
    of it stands.
    """
    pool = driver.pool
    words = {"version": driver.version, "product": pool.gpuProduct, "system": pool.os, "pool_name": pool.name}
    paths = {f"{field}_path": at for field, at in driver.paths.items()}
    return hit(path, case, **{"pool": pool.name, **words, **paths, **more})
