"""Rules about how the reconciler empties nodes: a right without its guard, and what never happens or hardly ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from ...catalog import kubernetes
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language import guards
from ...policy.language.node_pools import Day, Window
from ...policy.language.reconciler import Reconciler, guard, runs
from ...policy.language.spec import ClusterPolicySpec
from ..rule import POOLS, Hit, hit, rule

DAYS = get_args(Day)


@rule("GPU840", "error")
def deletes_unguarded(cluster: Cluster) -> Iterator[Hit]:
    """A right to delete pods in all namespaces, and no guard that refuses any."""
    spec = cluster.spec
    if spec.reconciler is None or not runs(spec) or guard(spec) == "Deny":
        return
    why, mend = _unguarded(spec)
    for path, without in _deletes(spec.reconciler):
        yield hit(path, why=why, remedy=f"{without.format(path)}; or {mend}" if mend else without.format(path))


def _deletes(section: Reconciler) -> Iterator[tuple[str, str]]:
    """Where SECTION lets pods of others be deleted, and how it no longer does."""
    for index, each in enumerate(section.podRules):
        if each.then == "delete":
            yield f"spec.reconciler.podRules[{index}].then", "set {}: evict"
    if section.ignoreBudgetsAfterSeconds is not None:
        yield "spec.reconciler.ignoreBudgetsAfterSeconds", "leave out {}"


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
    spec = cluster.spec
    every = spec.reconciler.podRules if spec.reconciler is not None and runs(spec) else []
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
    """For how many minutes WINDOWS, those that meet as one, are open at most; 0 for always. Those of another time zone
    are looked at by themselves.
    """
    longest, day, every = 0, 24 * 60, list(windows)
    for zone in {each.timeZone for each in every}:
        opens = sorted(
            ((7 * week + DAYS.index(name)) * day + _minute(each.start), each.hours * 60)
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


def _minute(start: str) -> int:
    hour, _, minute = start.partition(":")
    return 60 * int(hour) + int(minute)


@rule("GPU843", "warning")
def value_twice_in_an_order(cluster: Cluster) -> Iterator[Hit]:
    """A value that stands twice in the order of nodes."""
    spec = cluster.spec
    for index, each in enumerate(spec.reconciler.order.labels if spec.reconciler is not None and runs(spec) else ()):
        for at, value in enumerate(each.values):
            if value in each.values[:at]:
                yield hit(f"spec.reconciler.order.labels[{index}].values[{at}]", value=repr(value), key=each.key)
