"""Rules about dates: until when releases and driver branches are supported. And about what is known to be broken.

No rule knows the date: a hit says from which day on it counts, and before which (rule.py).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from ...catalog import drivers, life_cycle, releases
from ...catalog.drivers import Branch
from ...cluster.drivers import NodeDriver
from ...cluster.resolve import Cluster
from ..drivers.about import about
from ..rule import Hit, hit, rule

KNOWN_ON = datetime.date(2026, 8, 1)
"""When branches without a date had ended: data/drivers.yaml says `ended` of that month."""
SOON = datetime.timedelta(days=92)


@rule("GPU410", "warning")
def release_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The release has reached its end of support."""
    spec = cluster.spec
    ended = life_cycle.life_cycle(spec.release).ended
    if ended is not None:
        *_, before, line = life_cycle.lines()
        yield hit(
            "spec.release",
            release=spec.release,
            ended=ended,
            line=line,
            before=before,
            to=_steps(spec.release),
            since=ended,
        )


@rule("GPU411", "note")
def deprecated_release(cluster: Cluster) -> Iterator[Hit]:
    """The release is deprecated, or there is a newer patch of it."""
    spec = cluster.spec
    cycle = life_cycle.life_cycle(spec.release)
    if (since := cycle.deprecated) is not None:
        ended = cycle.ended
        yield hit(
            "spec.release",
            "ending" if ended is None else "ended",
            release=spec.release,
            since=since,
            until=ended,
            deprecated=since,
            ended=ended,
            newest=life_cycle.lines()[-1],
            to=_steps(spec.release),
        )
        return
    newest = life_cycle.of_line(releases.release(spec.release).line)[-1]
    if newest != spec.release:
        since = datetime.date.fromisoformat(releases.release(newest).date)
        yield hit("spec.release", "patch", release=spec.release, newest=newest, since=since)


def _steps(name: str) -> str:
    """Where to go from release NAME, one line at a time."""
    first, *others = life_cycle.steps(name)
    return f"{first}, and from there to {', then '.join(others)}: one line at a time" if others else first


@rule("GPU412", "warning")
def branch_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch has reached its end of life."""
    for driver, branch, path in branches(cluster):
        if branch.ended or branch.end_of_life is not None:
            yield about(
                driver,
                path,
                branch=branch.name,
                end=_end(branch),
                supported=_supported(driver.spec.release),
                since=_end(branch),
            )


@rule("GPU413", "note")
def branch_ends_soon(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch reaches its end of life within three months."""
    for driver, branch, path in branches(cluster):
        if branch.end_of_life is not None:
            end = _end(branch)
            yield about(
                driver,
                path,
                branch=branch.name,
                end=end,
                others=_supported(driver.spec.release, but=branch.number),
                since=end - SOON,
                until=end,
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
            yield about(driver, driver.paths["version"], near=" and ".join(unknown.nearest))


def branches(cluster: Cluster) -> Iterator[tuple[NodeDriver, Branch, str]]:
    """Drivers with their branches, and with the path of the version."""
    for driver in cluster.running:
        if driver.branch is not None:
            yield driver, driver.branch, driver.paths["version"]


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
