"""Rules about dates: until when releases and driver branches are supported. And about what is known to be broken.

No rule knows the date: a hit says from which day on it counts, and before which (rule.py).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import drivers, life_cycle, releases
from ...cluster.resolve import resolve
from ..rule import POOLS, Hit, hit, rule

if TYPE_CHECKING:
    from ...catalog.drivers import Branch
    from ...cluster.resolve import Cluster
    from ...policy.language.node_pools import NodePool
    from ...policy.language.spec import ClusterPolicySpec

KNOWN_ON = datetime.date(2026, 8, 1)
"""When branches without a date had ended: data/drivers.yaml says `ended` of that month."""
SOON = datetime.timedelta(days=92)


@rule("GPU410", "warning")
def release_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The release has reached its end of support."""
    spec = cluster.spec
    ended = life_cycle.life_cycle(spec.release).ended
    if ended is not None:
        yield Hit(
            "spec.release",
            f"release {spec.release} has been without support since {ended}",
            f"NVIDIA supports {life_cycle.lines()[-1]}, and {life_cycle.lines()[-2]} as deprecated; older ones get no "
            "fixes",
            _upgrade(spec.release),
            since=ended,
        )


@rule("GPU411", "note")
def deprecated_release(cluster: Cluster) -> Iterator[Hit]:
    """The release is deprecated, or there is a newer patch of it."""
    spec = cluster.spec
    cycle = life_cycle.life_cycle(spec.release)
    if cycle.deprecated is not None:
        yield Hit(
            "spec.release",
            f"release {spec.release} has been deprecated since {cycle.deprecated}",
            f"a newer line is out; support ends when the next one after {life_cycle.lines()[-1]} appears"
            if cycle.ended is None
            else f"a newer line is out; support ended on {cycle.ended}",
            _upgrade(spec.release),
            since=cycle.deprecated,
            until=cycle.ended,
        )
        return
    newest = life_cycle.of_line(releases.release(spec.release).line)[-1]
    if newest != spec.release:
        yield Hit(
            "spec.release",
            f"release {spec.release} has a newer patch, {newest}",
            "patches fix faults and change no settings",
            f"set spec.release: {newest}",
            since=datetime.date.fromisoformat(releases.release(newest).date),
        )


def _upgrade(name: str) -> str:
    """What to do about release NAME: where to go, one line at a time."""
    first, *others = life_cycle.steps(name)
    then = f", and from there to {', then '.join(others)}: one line at a time" if others else ""
    return f"upgrade to {first}{then}"


@rule("GPU412", "warning")
def branch_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch has reached its end of life."""
    spec = cluster.spec
    for path, branch, pool in branches(spec):
        if branch.ended or branch.end_of_life is not None:
            yield Hit(
                path,
                f"driver branch {branch.name} has been without support since {_end(branch)} ({POOLS})",
                remedy=f"choose a driver of a branch that is supported: {_supported(spec.release)}",
                since=_end(branch),
                pool=pool.name,
            )


@rule("GPU413", "note")
def branch_ends_soon(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch reaches its end of life within three months."""
    spec = cluster.spec
    for path, branch, pool in branches(spec):
        if branch.end_of_life is not None:
            yield Hit(
                path,
                f"support of driver branch {branch.name} ends on {_end(branch)} ({POOLS})",
                remedy=f"plan the change to another branch: {_supported(spec.release, but=branch.number)}",
                since=_end(branch) - SOON,
                until=_end(branch),
                pool=pool.name,
            )


@rule("GPU417", "warning")
def unknown_branch(cluster: Cluster) -> Iterator[Hit]:
    """A driver of a branch that the catalogue doesn't know."""
    for driver in cluster.running:
        if driver.branch is not None or driver.digest or not driver.version:
            continue
        try:
            drivers.branch(str(driver.numbers[0]) if driver.numbers else driver.version)
        except drivers.UnknownBranch as unknown:
            yield hit(
                driver.paths["version"],
                version=driver.version,
                near=" and ".join(unknown.nearest),
                pool=driver.pool.name,
            )


def branches(spec: ClusterPolicySpec) -> Iterator[tuple[str, Branch, NodePool]]:
    """The branches of drivers, with the path of the version and the pool whose nodes run it."""
    for driver in resolve(spec).running:
        if driver.branch is not None:
            yield driver.paths["version"], driver.branch, driver.pool


def _end(branch: Branch) -> datetime.date:
    """The first day without support: the one after the month in which it ends."""
    if branch.end_of_life is None:
        return KNOWN_ON
    year, month = (int(part) for part in branch.end_of_life.split("-"))
    return datetime.date(year + month // 12, month % 12 + 1, 1)


def _supported(release: str, but: int = 0) -> str:
    """The production and long-term branches, all BUT one, that the documentation of RELEASE lists, with their end and a
    version.
    """
    by_number: dict[int, str] = {}
    for version in drivers.listed_versions(release):
        branch = drivers.branch(version)
        if branch.end_of_life is not None and not branch.ended and branch.type != "NFB" and branch.number != but:
            by_number.setdefault(branch.number, f"{branch.name} until {branch.end_of_life}, such as {version}")
    return "; ".join(text for _, text in sorted(by_number.items()))
