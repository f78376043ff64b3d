"""Rules about the reconciler: what it needs to run, what says something in vain without it, and what never happens."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import health, kubernetes, time_zones
from ...catalog.time_zones import UnknownTimeZone
from ...cluster.resolve import Cluster, resolve
from ...policy.language import guards
from ...policy.language.node_pools import Window
from ...policy.language.reconciler import labelling, runs
from ...policy.language.spec import ClusterPolicySpec
from ...policy.language.verify import Verify
from ..rule import Hit, hit, meant, rule
from ..subjects import Written

BY_DISCOVERY = {"labelling"}
"""The fields of `reconciler` that count without the program."""
BY_VERIFY = {"image", "repository", "version", "imagePullPolicy", "imagePullSecrets", "nodeSelector", "tolerations"}
"""Those that count for `verify` on a schedule."""


@rule("GPU820", "error")
def no_image(cluster: Cluster) -> Iterator[Hit]:
    """A reconciler without an image."""
    spec, looks = cluster.spec, cluster.spec.verify and cluster.spec.verify.schedule
    image = spec.reconciler and spec.reconciler.image
    if spec.reconciler is not None and runs(spec) and not image:
        yield hit("spec.reconciler", "pausing" if cluster.pausing else "free")
    elif looks and not image:
        yield hit("spec.verify.schedule", "verify")


@rule("GPU845", "error")
def untested_nodes(cluster: Cluster) -> Iterator[Hit]:
    """A taint that waits for the acceptance test, and that the reconciler takes away before."""
    said = cluster.spec.verify.acceptance if cluster.spec.verify else None
    for taint in cluster.spec.reconciler.startupTaints if cluster.spec.reconciler and said else ():
        if said and (taint.key, taint.effect) == (said.taint.key, said.taint.effect):
            yield hit("spec.verify.acceptance.taint", key=taint.key)


@rule("GPU821", "error")
def upgrade_without_program(cluster: Cluster) -> Iterator[Hit]:
    """A pool's budget or windows, and nobody to keep to them."""
    spec = cluster.spec
    for index, pool in enumerate(() if runs(spec) else spec.nodePools):
        if pool.upgrade is not None:
            yield hit(f"spec.nodePools[{index}].upgrade", pool_name=pool.name)


@rule("GPU822", "error")
def labels_that_are_paused(cluster: Cluster) -> Iterator[Hit]:
    """Labels by node feature discovery, and a component that takes labels off nodes."""
    if labelling(cluster.spec) == "nodeFeatureRule":
        for section, who in cluster.pausing:
            off = f", or spec.{section}.enabled: false" if section != "drivers" else ""
            yield hit("spec.reconciler.labelling", who=who, off=off)


@rule("GPU824", "note", over="origins")
def settings_of_no_program(written: Written) -> Iterator[Hit]:
    """Settings of the reconciler's program where there is none."""
    section = written.spec.reconciler
    if section is None or runs(written.spec):
        return
    counts = BY_DISCOVERY | (BY_VERIFY if written.spec.verify and written.spec.verify.schedule else set())
    for name in type(section).model_fields:
        said = name not in counts and written.by_user(f"spec.reconciler.{name}")
        if said and getattr(section, name) not in ("", [], {}):
            yield hit(f"spec.reconciler.{name}")


@rule("GPU828", "error")
def unknown_time_zones(cluster: Cluster) -> Iterator[Hit]:
    """A window, or a schedule, in a time zone that doesn't exist."""
    for path, window in _windows(cluster.spec):
        try:
            time_zones.known(window.timeZone)
        except UnknownTimeZone as error:
            yield hit(f"{path}.timeZone", remedy=meant(error.nearest), zone=repr(window.timeZone))


@rule("GPU844", "error")
def two_repair_nodes(cluster: Cluster) -> Iterator[Hit]:
    """Nodes with a faulty GPU are taken out of service, and somebody else may do so by himself."""
    spec = cluster.spec
    section = spec.reconciler.health if spec.reconciler and runs(spec) else None
    if section is None or section.owner is not None:
        return
    for why in health.rivals(spec.cluster.platform, section.detectors):
        yield hit("spec.reconciler.health", why=why)


def _windows(spec: ClusterPolicySpec) -> Iterator[tuple[str, Window | Verify]]:
    if spec.verify:
        yield "spec.verify", spec.verify
    for index, window in enumerate(spec.reconciler.windows if spec.reconciler else ()):
        yield f"spec.reconciler.windows[{index}]", window
    for position, pool in enumerate(spec.nodePools):
        for index, window in enumerate(pool.upgrade.windows if pool.upgrade else ()):
            yield f"spec.nodePools[{position}].upgrade.windows[{index}]", window


@rule("GPU829", "error")
def admission_policy_of_old_kubernetes(cluster: Cluster) -> Iterator[Hit]:
    """Admission policies asked for on an API server that has none."""
    spec = cluster.spec
    minor, old = kubernetes.minor(spec.cluster.kubernetesVersion), not guards.knows_policies(spec)
    if old and spec.reconciler is not None and spec.reconciler.admissionPolicy:
        yield hit("spec.reconciler.admissionPolicy", "reconciler", minor=minor)
    if old and spec.guards.mode in {"Deny", "Audit"}:
        yield hit("spec.guards.mode", "guards", minor=minor)
    if old and spec.tenancy and spec.tenancy.tenants and spec.tenancy.admission.mode == "Deny":
        yield hit("spec.tenancy.admission.mode", "tenants", minor=minor)


@rule("GPU830", "warning")
def nothing_may_be_unavailable(cluster: Cluster) -> Iterator[Hit]:
    """A budget of 0 nodes."""
    spec = cluster.spec
    for path, share in _budgets(spec) if runs(spec) else ():
        if share in (0, "0%"):
            yield hit(f"spec.{path}", share=share)


def _budgets(spec: ClusterPolicySpec) -> Iterator[tuple[str, int | str | None]]:
    """Every share of nodes that may be unavailable, and where it stands."""
    if resolve(spec).listed:
        for index, driver in enumerate(spec.drivers):
            yield f"drivers[{index}].upgradePolicy.maxUnavailable", driver.upgradePolicy.maxUnavailable
    else:
        yield "driver.upgradePolicy.maxUnavailable", spec.driver.upgradePolicy.maxUnavailable
    for index, pool in enumerate(spec.nodePools):
        if pool.upgrade is not None:
            for name in ("maxUnavailable", "zoneMaxUnavailable"):
                yield f"nodePools[{index}].upgrade.{name}", getattr(pool.upgrade, name)


@rule("GPU831", "warning")
def more_than_the_cluster_allows(cluster: Cluster) -> Iterator[Hit]:
    """A pool that may do more at a time than the whole cluster."""
    spec = cluster.spec
    limits = spec.driver.upgradePolicy
    parallel = limits.maxParallelUpgrades
    for index, pool in enumerate(spec.nodePools if runs(spec) and not cluster.listed else ()):
        own = pool.upgrade
        for name, asked, field, most, what in (
            ("maxParallel", own and own.maxParallel, "maxParallelUpgrades", parallel or None, "in an operation"),
            ("maxUnavailable", own and own.maxUnavailable, "maxUnavailable", limits.maxUnavailable, "out of service"),
        ):
            if isinstance(asked, int) and isinstance(most, int) and asked > most:
                path = f"spec.nodePools[{index}].upgrade.{name}"
                yield hit(path, pool_name=pool.name, asked=asked, what=what, most=most, limit=field)


@rule("GPU838", "warning")
def program_stopped(cluster: Cluster) -> Iterator[Hit]:
    """A reconciler of which no copy is to run."""
    spec = cluster.spec
    if spec.reconciler is not None and runs(spec) and spec.reconciler.replicas == 0:
        yield hit("spec.reconciler.replicas")


@rule("GPU846", "warning")
def images_for_nobody(cluster: Cluster) -> Iterator[Hit]:
    """Images that are pulled beforehand, and no driver that is rolled."""
    section = cluster.spec.reconciler
    if section is None or section.prepull is None or not runs(cluster.spec):
        return
    brought = bool(cluster.container_drivers)
    if not any(brought and pool.workload == "container" and pool.budget.automatic for pool in cluster.nodes):
        yield hit("spec.reconciler.prepull")


@rule("GPU837", "note")
def nothing_to_roll(cluster: Cluster) -> Iterator[Hit]:
    """A budget or windows for nodes that nothing takes out of service."""
    for pool in cluster.pools if runs(cluster.spec) else ():
        if pool.said.upgrade is None:
            continue
        installs = pool.driver is not None and pool.workload == "container"
        cuts = pool.cluster.mig_manager and "mig-manager" in pool.components
        product = pool.product
        if not installs and not (cuts and (product is None or product.mig_capable)):
            yield hit(f"{pool.path}.upgrade", pool_name=pool.name)
