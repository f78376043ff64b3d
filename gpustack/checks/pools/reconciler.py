"""Rules about the reconciler: what it needs, what is in vain without it, how it empties nodes, what never happens."""

from collections.abc import Iterable, Iterator
from typing import get_args

from ...catalog import health, kubernetes, time_zones
from ...catalog.time_zones import UnknownTimeZone
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language import guards
from ...policy.language.node_pools import Day, Window
from ...policy.language.reconciler import Reconciler, guard, labelling, runs
from ...policy.language.spec import ClusterPolicySpec
from ...policy.language.verify import Verify
from ..rule import POOLS, Hit, hit, meant, rule
from ..subjects import Written

BY_DISCOVERY = {"labelling"}
"""The fields of `reconciler` that count without the program."""
BY_VERIFY = {"image", "repository", "version", "imagePullPolicy", "imagePullSecrets", "nodeSelector", "tolerations"}
"""Those that count for `verify` on a schedule."""


def program(cluster: Cluster) -> Reconciler | None:
    """The section of the reconciler's program, None where it doesn't run."""
    return cluster.spec.reconciler if runs(cluster.spec) else None


@rule("GPU820", "error")
def no_image(cluster: Cluster) -> Iterator[Hit]:
    """A reconciler without an image."""
    said, verify = cluster.spec.reconciler, cluster.spec.verify
    if program(cluster) and not (said and said.image):
        yield hit("spec.reconciler", "pausing" if cluster.pausing else "free")
    elif verify and verify.schedule and not (said and said.image):
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
    for pool in () if runs(cluster.spec) else cluster.pools:
        if pool.said.upgrade is not None:
            yield hit(f"{pool.path}.upgrade", pool_name=pool.name)


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
    section = said.health if (said := program(cluster)) else None
    if section is not None and section.owner is None:
        for why in health.rivals(cluster.spec.cluster.platform, section.detectors):
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
    every = [("driver", cluster.spec.driver.upgradePolicy)]
    if cluster.listed:
        every = [(f"drivers[{at}]", driver.upgradePolicy) for at, driver in enumerate(cluster.spec.drivers)]
    shares: list[tuple[str, int | str | None]]
    shares = [(f"spec.{path}.upgradePolicy.maxUnavailable", each.maxUnavailable) for path, each in every]
    for pool in cluster.pools:
        if own := pool.said.upgrade:
            shares.append((f"{pool.path}.upgrade.maxUnavailable", own.maxUnavailable))
            shares.append((f"{pool.path}.upgrade.zoneMaxUnavailable", own.zoneMaxUnavailable))
    for path, share in shares if runs(cluster.spec) else ():
        if share in (0, "0%"):
            yield hit(path, share=share)


@rule("GPU831", "warning")
def more_than_the_cluster_allows(cluster: Cluster) -> Iterator[Hit]:
    """A pool that may do more at a time than the whole cluster."""
    limits = cluster.spec.driver.upgradePolicy
    parallel = limits.maxParallelUpgrades
    for pool in cluster.pools if runs(cluster.spec) and not cluster.listed else ():
        own = pool.said.upgrade
        for name, asked, field, most, what in (
            ("maxParallel", own and own.maxParallel, "maxParallelUpgrades", parallel or None, "in an operation"),
            ("maxUnavailable", own and own.maxUnavailable, "maxUnavailable", limits.maxUnavailable, "out of service"),
        ):
            if isinstance(asked, int) and isinstance(most, int) and asked > most:
                path = f"{pool.path}.upgrade.{name}"
                yield hit(path, pool_name=pool.name, asked=asked, what=what, most=most, limit=field)


@rule("GPU838", "warning")
def program_stopped(cluster: Cluster) -> Iterator[Hit]:
    """A reconciler of which no copy is to run."""
    if (said := program(cluster)) and said.replicas == 0:
        yield hit("spec.reconciler.replicas")


@rule("GPU846", "warning")
def images_for_nobody(cluster: Cluster) -> Iterator[Hit]:
    """Images that are pulled beforehand, and no driver that is rolled."""
    rolled = any(pool.workload == "container" and pool.budget.automatic for pool in cluster.nodes)
    if (said := program(cluster)) and said.prepull is not None and not (rolled and cluster.container_drivers):
        yield hit("spec.reconciler.prepull")


@rule("GPU837", "note")
def nothing_to_roll(cluster: Cluster) -> Iterator[Hit]:
    """A budget or windows for nodes that nothing takes out of service."""
    for pool in cluster.pools if runs(cluster.spec) else ():
        installs = pool.driver is not None and pool.workload == "container"
        cuts = cluster.mig_manager and "mig-manager" in pool.components
        able = pool.product is None or pool.product.mig_capable
        if pool.said.upgrade is not None and not installs and not (cuts and able):
            yield hit(f"{pool.path}.upgrade", pool_name=pool.name)


DAYS = get_args(Day)


@rule("GPU840", "error")
def deletes_unguarded(cluster: Cluster) -> Iterator[Hit]:
    """A right to delete pods in all namespaces, and no guard that refuses any."""
    said = program(cluster)
    if said is None or guard(cluster.spec) == "Deny":
        return
    why, mend = _unguarded(cluster.spec)
    rules = [f"spec.reconciler.podRules[{at}].then" for at, each in enumerate(said.podRules) if each.then == "delete"]
    deletes = {path: f"set {path}: evict" for path in rules}
    if said.ignoreBudgetsAfterSeconds is not None:
        path = "spec.reconciler.ignoreBudgetsAfterSeconds"
        deletes[path] = f"leave out {path}"
    for path, without in deletes.items():
        yield hit(path, why=why, remedy=f"{without}; or {mend}" if mend else without)


def _unguarded(spec: ClusterPolicySpec) -> tuple[str, str]:
    """Why no guard refuses anything by SPEC, and how one does; "" where the API server has none."""
    if not guards.knows_policies(spec):
        minor = kubernetes.minor(spec.cluster.kubernetesVersion)
        return f"Kubernetes {minor} has no admission policies, which would; 1.30 is the first that has", ""
    off = {}
    if spec.reconciler is not None and not spec.reconciler.admissionPolicy:
        off["reconciler.admissionPolicy: false"] = "set spec.reconciler.admissionPolicy: true"
    if (mode := guards.mode(spec)) != "Deny":
        off[f"guards.mode: {mode}"] = "set spec.guards.mode: Deny"
    why = f"access rights can't say which pods; a guard does, and with {' and '.join(off)} it refuses nothing"
    return why, " and ".join(off.values())


@rule("GPU841", "warning")
def rule_that_never_counts(cluster: Cluster) -> Iterator[Hit]:
    """A rule about pods all of which an earlier one takes."""
    every = said.podRules if (said := program(cluster)) else []
    for index, each in enumerate(every):
        for at, other in enumerate(every[:index]):
            if other.labels.items() <= each.labels.items() and other.namespace in (None, each.namespace):
                yield hit(f"spec.reconciler.podRules[{index}]", then=each.then, at=at, other_then=other.then)
                break


@rule("GPU842", "warning")
def soaks_longer_than_windows(cluster: Cluster) -> Iterator[Hit]:
    """A node that soaks for longer than nodes may be taken out of service."""
    short: dict[str, list[tuple[Pool, int]]] = {}
    for pool in cluster.nodes if runs(cluster.spec) else ():
        own = pool.said.upgrade
        place = f"{pool.path}.upgrade" if own and own.soakSeconds is not None else "spec.reconciler"
        if (span := 60 * _longest(pool.budget.windows)) and span < pool.budget.soak:
            short.setdefault(f"{place}.soakSeconds", []).append((pool, span))
    for path, every in short.items():
        longest = min(span for _, span in every)
        for pool, _ in every:
            whose, name = ("the cluster", "") if pool.index is None else (POOLS, pool.name)
            yield hit(path, seconds=pool.budget.soak, whose=whose, longest=longest, pool=name)


def _longest(windows: Iterable[Window]) -> int:
    """For how many minutes WINDOWS of one time zone, those that meet as one, are open at most; 0 for always."""
    longest, day, every = 0, 24 * 60, list(windows)
    for zone in {each.timeZone for each in every}:
        opens = sorted(
            ((7 * week + DAYS.index(name)) * day + each.minute, each.hours * 60)
            for each in every
            for name in each.days or DAYS
            for week in (0, 1)
            if each.timeZone == zone
        )
        first = end = -1
        for begin, lasts in opens:
            first = begin if begin > end else first
            end = max(end, begin + lasts)
            longest = max(longest, end - first)
    return longest if longest < 7 * day else 0


@rule("GPU843", "warning")
def value_twice_in_an_order(cluster: Cluster) -> Iterator[Hit]:
    """A value that stands twice in the order of nodes."""
    for index, each in enumerate(said.order.labels if (said := program(cluster)) else ()):
        for at, value in enumerate(each.values):
            if value in each.values[:at]:
                yield hit(f"spec.reconciler.order.labels[{index}].values[{at}]", value=repr(value), key=each.key)
