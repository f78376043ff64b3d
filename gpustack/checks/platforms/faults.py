"""Rules about versions of components that are known to be broken (catalog/data/faults.yaml)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...catalog import _versions, faults
from ...catalog.faults import Fault
from ...cluster.drivers import NodeDriver, system_of
from ...cluster.metrics import telemetry
from ...cluster.mig_layouts import product_of
from ...cluster.resolve import Cluster, resolve
from ...policy.language import images
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ..rule import POOLS, Hit, rule

SECTIONS = ("toolkit", "devicePlugin", "gfd", "migManager", "dcgmExporter")


@rule("GPU414", "error")
def broken_version(cluster: Cluster) -> Iterator[Hit]:
    """A component's version can't work on this platform."""
    yield from _hits(cluster.spec, "error")


@rule("GPU415", "warning")
def known_fault(cluster: Cluster) -> Iterator[Hit]:
    """A component's version has a known fault that shows here."""
    yield from _hits(cluster.spec, "warning")


@rule("GPU416", "note")
def fault_that_depends(cluster: Cluster) -> Iterator[Hit]:
    """A component's version has a limit that may show here."""
    yield from _hits(cluster.spec, "note")


class Shown(NamedTuple):
    """A fault that shows, the path that says the version, and where it shows: in POOL, or in the whole cluster."""

    fault: Fault
    path: str
    pool: NodePool | None


def _hits(spec: ClusterPolicySpec, severity: str) -> Iterator[Hit]:
    for fault, path, pool in shown(spec):
        if fault.severity == severity:
            what, why = f"{fault.what} ({POOLS})" if pool else fault.what, "it is a known fault of this version"
            yield Hit(path, what, why, f"use {fault.use}", pool=pool.name if pool else "")


def shown(spec: ClusterPolicySpec) -> Iterator[Shown]:
    """The known faults that show in SPEC."""
    cluster = resolve(spec)
    for section in ("dcgmExporter",) if cluster.dra else SECTIONS:
        path, part = _section(spec, section)
        if not part.enabled:
            continue
        for fault in faults.faults_of(section, images.version(part)):
            told = {entry.name for entry in part.env or ()}
            if not (fault.unless_env and told >= set(fault.unless_env)):
                yield from _of_component(spec, fault, images.version_path(path, part))
    for driver in cluster.running:
        for fault in faults.faults_of("driver", driver.version):
            if _of_driver(spec, driver, fault.where) and not _avoided(spec, driver, fault):
                yield Shown(fault, driver.paths["version"], driver.pool)


def _section(spec: ClusterPolicySpec, name: str) -> tuple[str, Any]:
    """Where the section NAME that counts stands in SPEC, and what it says."""
    if name == "dcgmExporter":
        counts = telemetry(spec)
        return f"{counts.path}{name}", counts.exporter
    return f"spec.{name}", getattr(spec, name)


def _of_component(spec: ClusterPolicySpec, fault: Fault, path: str) -> Iterator[Shown]:
    """The fault, where the cluster or one of its pools has what it needs to show."""
    where = fault.where
    if "platforms" in where and spec.cluster.platform not in where["platforms"]:
        return
    if "runtime" in where and not _runs(spec, where["runtime"]):
        return
    of_nodes = {"selinux", "systems", "host_driver"} & where.keys()
    if not of_nodes or ("selinux" in where and resolve(spec).platform.os_images):
        yield Shown(fault, path, None)
    else:
        yield from (Shown(fault, path, pool) for pool in spec.nodePools if _shows(spec, pool, where))


def _runs(spec: ClusterPolicySpec, runtime: str) -> bool:
    return runtime in ({pool.engine for pool in resolve(spec).pools} or {resolve(spec).engine})


def _shows(spec: ClusterPolicySpec, pool: NodePool, where: Mapping[str, Any]) -> bool:
    system = system_of(pool)
    if system is None or (where.get("host_driver") and (spec.driver.enabled or resolve(spec).listed)):
        return False
    major = f"{system.id}{system.version.partition('.')[0]}"
    return (not where.get("selinux") or system.selinux) and major in where.get("systems", [major])


def _of_driver(spec: ClusterPolicySpec, driver: NodeDriver, where: Mapping[str, Any]) -> bool:
    product, mig = product_of(driver.pool), driver.pool.sharing.mig
    if "products" in where and (product is None or product.driver not in where["products"]):
        return False
    if where.get("gds") and (driver.brought or not spec.gds.enabled):
        return False
    if where.get("rdma") and not _rdma(spec, driver):
        return False
    if "releases" in where and not _versions.satisfies(spec.release, where["releases"]):
        return False
    if "kernel" in where and not (driver.pool.kernel or "").endswith(where["kernel"]):
        return False
    if "mig" not in where:
        return True
    if mig is None or where["mig"] == "any":
        return mig is not None
    cut = sum(len(group.indices) for group in mig.devices if group.layout)
    return bool(mig.devices) and (cut < (driver.pool.gpusPerNode or 0) or any(not one.layout for one in mig.devices))


def _rdma(spec: ClusterPolicySpec, driver: NodeDriver) -> bool:
    """Whether nvidia-peermem is loaded with DRIVER."""
    if driver.number is not None:
        return bool(spec.drivers[driver.number].rdma.enabled)
    if driver.brought:
        return False
    own = driver.pool.driver.rdma.enabled if driver.pool.driver is not None else None
    return bool(spec.driver.rdma.enabled if own is None else own)


def _avoided(spec: ClusterPolicySpec, driver: NodeDriver, fault: Fault) -> bool:
    """Whether variables of DRIVER avoid FAULT."""
    env = (spec.driver if driver.number is None else spec.drivers[driver.number]).env
    return bool(fault.unless_env) and {entry.name for entry in env or ()} >= set(fault.unless_env)
