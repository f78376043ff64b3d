"""Rules about versions of components that are known to be broken (catalog/data/faults.yaml)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...catalog import _versions, faults
from ...catalog.faults import Fault
from ...cluster.drivers import NodeDriver
from ...cluster.metrics import telemetry
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language import images
from ...policy.language.operand import EnvVar
from ..rule import Hit, hit, rule

SECTIONS = ("toolkit", "devicePlugin", "gfd", "migManager")
"""Those of the device plugin's stack with known faults."""


@rule("GPU414", "error")
def broken_version(cluster: Cluster) -> Iterator[Hit]:
    """A component's version can't work on this platform."""
    yield from _hits(cluster, "error")


@rule("GPU415", "warning")
def known_fault(cluster: Cluster) -> Iterator[Hit]:
    """A component's version has a known fault that shows here."""
    yield from _hits(cluster, "warning")


@rule("GPU416", "note")
def fault_that_depends(cluster: Cluster) -> Iterator[Hit]:
    """A component's version has a limit that may show here."""
    yield from _hits(cluster, "note")


class Shown(NamedTuple):
    """A fault that shows, the path that says the version, and where it shows: in POOL, or in the whole cluster."""

    fault: Fault
    path: str
    pool: Pool | None


def _hits(cluster: Cluster, severity: str) -> Iterator[Hit]:
    for fault, path, pool in shown(cluster):
        if fault.severity == severity:
            name = pool.name if pool else ""
            yield hit(path, "pool" if pool else "cluster", fault=fault.what, use=fault.use, pool=name)


def shown(cluster: Cluster) -> Iterator[Shown]:
    """The known faults that show in CLUSTER."""
    spec, counts = cluster.spec, telemetry(cluster.spec)
    sections = () if cluster.dra else SECTIONS
    parts: list[tuple[str, str, Any]] = [(name, f"spec.{name}", getattr(spec, name)) for name in sections]
    for name, path, part in (*parts, ("dcgmExporter", f"{counts.path}dcgmExporter", counts.exporter)):
        for fault in faults.faults_of(name, images.version(part)) if part.enabled else ():
            if not _avoided(fault, part.env):
                yield from _of_component(cluster, fault, images.version_path(path, part))
    for driver in cluster.running:
        section = spec.driver if driver.number is None else spec.drivers[driver.number]
        for fault in faults.faults_of("driver", driver.version):
            if _of_driver(driver, fault.where) and not _avoided(fault, section.env):
                yield Shown(fault, driver.paths["version"], driver.pool)


def _avoided(fault: Fault, env: Sequence[EnvVar] | None) -> bool:
    """Whether the variables ENV avoid FAULT."""
    return bool(fault.unless_env) and {entry.name for entry in env or ()} >= set(fault.unless_env)


def _of_component(cluster: Cluster, fault: Fault, path: str) -> Iterator[Shown]:
    """The fault, where the cluster or one of its pools has what it needs to show."""
    where = fault.where
    if "platforms" in where and cluster.spec.cluster.platform not in where["platforms"]:
        return
    if "runtime" in where and where["runtime"] not in {pool.engine for pool in cluster.nodes}:
        return
    of_nodes = {"selinux", "systems", "host_driver"} & where.keys()
    if not of_nodes or ("selinux" in where and cluster.platform.os_images):
        yield Shown(fault, path, None)
    elif not (where.get("host_driver") and cluster.drivers_by != "host"):
        yield from (Shown(fault, path, pool) for pool in cluster.pools if _shows(pool, where))


def _shows(pool: Pool, where: Mapping[str, Any]) -> bool:
    if pool.system is None:
        return False
    major = f"{pool.system.id}{pool.system.version.partition('.')[0]}"
    return (not where.get("selinux") or pool.system.selinux) and major in where.get("systems", [major])


def _of_driver(driver: NodeDriver, where: Mapping[str, Any]) -> bool:
    spec, product, said = driver.pool.spec, driver.pool.product, driver.pool.said
    if (
        ("products" in where and (product is None or product.driver not in where["products"]))
        or (where.get("gds") and (driver.brought or not spec.gds.enabled))
        or (where.get("rdma") and not _rdma(driver))
        or ("releases" in where and not _versions.satisfies(spec.release, where["releases"]))
        or ("kernel" in where and not (said.kernel or "").endswith(where["kernel"]))
    ):
        return False
    if "mig" not in where:
        return True
    mig = said.sharing.mig
    if mig is None or where["mig"] == "any":
        return mig is not None
    cut = sum(len(group.indices) for group in mig.devices if group.layout)
    return bool(mig.devices) and (cut < (said.gpusPerNode or 0) or any(not one.layout for one in mig.devices))


def _rdma(driver: NodeDriver) -> bool:
    """Whether nvidia-peermem is loaded with DRIVER."""
    spec, said = driver.pool.spec, driver.pool.said.driver
    if driver.number is not None:
        return bool(spec.drivers[driver.number].rdma.enabled)
    own = said.rdma.enabled if said is not None else None
    return not driver.brought and bool(spec.driver.rdma.enabled if own is None else own)
