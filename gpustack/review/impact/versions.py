"""IMP7xx: steps between releases of the GPU stack, driver branches and versions of Kubernetes."""

import functools
from collections.abc import Iterator

from ...catalog import drivers
from ...catalog import releases as catalogue
from ...checks.language.off import VIRTUAL
from ...checks.platforms import faults
from ...cluster.resolve import resolve
from ...model import few, numbers
from ...policy.language.spec import ClusterPolicySpec
from .. import releases
from . import nodes
from .engines import shown
from .pods import images
from .rule import Hit, rule
from .subject import Subject, is_driver
from .tags import older, split
from .tiers import OUTAGE, PLANNED

SHOWN = 4


def release_step(subject: Subject) -> tuple[str, str] | None:
    """The releases before and after, where they differ."""
    if subject.before is None or subject.after is None:
        return None
    one, two = subject.before.release, subject.after.release
    return (one, two) if one and two and one != two else None


@rule("IMP701", 2)
def older_release(subject: Subject) -> Iterator[Hit]:
    """The release of the GPU stack goes back."""
    step = release_step(subject)
    if step and releases.newer(step[0], step[1]):
        yield Hit("", f"release {step[0]} -> {step[1]}")


@rule("IMP702", 3)
def other_release(subject: Subject) -> Iterator[Hit]:
    """The release of the GPU stack changes."""
    step = release_step(subject)
    if step is None:
        return
    difference = releases.compare(*step)
    paths = [each.path for each in difference.defaults if each.flips]
    flips = [*_flips(subject.before, subject.after, paths)] if subject.before and subject.after else []
    one, two = (_branches(side) for side in (subject.before, subject.after))
    branch = f", driver branch {one} -> {two}" if one and two and one != two else ""
    yield Hit("", f"release {step[0]} -> {step[1]}{branch}")
    if flips:
        yield Hit("", f"defaults that flip with release {step[1]}: {few(flips, SHOWN, '; ')}")
    for words in difference.behaviour[:SHOWN]:
        yield Hit("", f"release {step[1]}: {words}")


def _flips(before: ClusterPolicySpec, after: ClusterPolicySpec, paths: list[str]) -> Iterator[str]:
    """Those of PATHS that flip from BEFORE to AFTER: what a policy says itself stays, and what is off does nothing."""
    for path in paths:
        one, two = (functools.reduce(getattr, path.split("."), spec) for spec in (before, after))
        virtual = (path.partition(".")[0],) in (*VIRTUAL, ("sandboxWorkloads",))
        if one != two and (resolve(after).sandbox or not virtual):
            yield f"{path} {shown(one)} -> {shown(two)}"


def _branches(spec: ClusterPolicySpec | None) -> str:
    """The branches of the drivers that SPEC brings to nodes, "" for none."""
    if spec is None:
        return ""
    cluster = resolve(spec)
    versions = {each.version for each in cluster.drivers}
    if not cluster.pools and cluster.drivers_by != "host":
        told = [each.version for each in spec.drivers] if cluster.listed else [spec.driver.version]
        versions = {each or catalogue.release(spec.release).image("driver").version or "" for each in told}
    return ", ".join(sorted({version.partition(".")[0] for version in versions if numbers(version)}))


def driver_steps(subject: Subject) -> Iterator[tuple[str, str, str, tuple[int, int] | None]]:
    """Each driver DaemonSet whose driver gets another version: where, both versions, and on how many nodes."""
    for change in subject.changed("DaemonSet"):
        if is_driver(change.old):
            old, new = images(change.old), images(change.new)
            for name in sorted(old.keys() & new.keys()):
                one, two = (split(side[name])[1].partition("-")[0] for side in (old, new))
                if one != two and "driver" in name and "manager" not in name and numbers(one) and numbers(two):
                    yield str(change.identity), one, two, nodes.kept(subject.before, subject.after, change.old)


def backwards(subject: Subject) -> list[tuple[str, str, str, tuple[int, int] | None]]:
    """Those of them that go back."""
    return [step for step in driver_steps(subject) if numbers(step[2]) < numbers(step[1])]


@rule("IMP703", 2)
def older_driver(subject: Subject) -> Iterator[Hit]:
    """A driver goes back to an older version."""
    for where, one, two, spread in backwards(subject):
        yield Hit(where, f"driver {one} -> {two}", spread)


@rule("IMP704", 3)
def driver_branch(subject: Subject) -> Iterator[Hit]:
    """A driver changes its branch."""
    for where, one, two, spread in driver_steps(subject):
        if one.partition(".")[0] != two.partition(".")[0]:
            yield Hit(where, f"driver {one} -> {two}: branch {_branch(one)} -> {_branch(two)}", spread)


@rule("IMP707", 3)
def host_driver(subject: Subject) -> Iterator[Hit]:
    """Nodes are said to bring another driver."""
    if subject.before is None or subject.after is None or subject.before is subject.after:
        return
    old, cluster = {pool.name: pool.runs for pool in resolve(subject.before).pools}, resolve(subject.after)
    for pool in cluster.pools:
        one, two = old.get(pool.name), pool.runs
        if one and two and one.brought and two.brought and one.version != two.version:
            steps = f": branch {_branch(one.version)} -> {_branch(two.version)}" if one.branch != two.branch else ""
            what = f"driver {one.version} -> {two.version} of the nodes' own{steps}"
            yield Hit(f"pool {pool.name}", what, nodes.number([pool]))


def _branch(version: str) -> str:
    try:
        branch = drivers.branch(version)
    except drivers.UnknownBranch:
        return f"{version.partition('.')[0]}, which the catalogue doesn't know"
    until = f", supported until {branch.end_of_life}" if branch.end_of_life else ""
    return f"{branch.name} ({branch.type}{until})"


@rule("IMP706", 2, 3)
def known_fault(subject: Subject) -> Iterator[Hit]:
    """A component comes to a version, or to nodes and settings, with a known fault."""
    if subject.before is None or subject.after is None or subject.before is subject.after:
        return
    had = {(each.fault.name, each.pool.name if each.pool else "") for each in faults.shown(resolve(subject.before))}
    for fault, path, pool in faults.shown(resolve(subject.after)):
        if (fault.name, pool.name if pool else "") not in had:
            where = f"pool {pool.name}" if pool else path
            spread = nodes.number([pool]) if pool else None
            tier = PLANNED if fault.severity == "note" else OUTAGE
            yield Hit(where, fault.what, spread, remedy=f"use {fault.use}", tier=tier)
    if resolve(subject.after).offer.writes_etc_nvidia and not resolve(subject.before).offer.writes_etc_nvidia:
        what = "the toolkit writes into /etc/nvidia of containers with GPUs: those with a read-only mount there"
        remedy = "run `gpustack lint --workloads` over what runs there (GPU790)"
        yield Hit("spec.toolkit", f"{what} don't start", remedy=remedy, tier=PLANNED)


@rule("IMP705", 3)
def kubernetes(subject: Subject) -> Iterator[Hit]:
    """The policy says another version of Kubernetes."""
    if subject.before is not None and subject.after is not None:
        one, two = subject.before.cluster.kubernetesVersion, subject.after.cluster.kubernetesVersion
        if one != two and not older(str(one), str(two)):  # which IMP905 tells
            yield Hit("", f"Kubernetes {one} -> {two}")
