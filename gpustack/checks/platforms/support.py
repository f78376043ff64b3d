"""Rules about what NVIDIA supports: a release beside the cluster's Kubernetes, OpenShift, operating systems and
runtimes, and until when releases and driver branches are.

Outside of what NVIDIA documents, things may work all the same, so that is a warning; where they can't, an error. No
rule knows the date: a hit says from which day on it counts, and before which (rule.py).
"""

import datetime
from collections.abc import Iterator

from ...catalog import drivers, oses, releases
from ...catalog._versions import numbers
from ...catalog.drivers import Branch
from ...cluster.drivers import NodeDriver
from ...cluster.resolve import Cluster
from ...policy.language.spec import ClusterPolicySpec
from ..drivers.gpu_drivers import about
from ..rule import Hit, hit, rule

Numbers = tuple[int, ...]

NRI_CONTAINERD = ((1, 7, 30), (2, 1))
"""The first containerd with an NRI that the plugin can use: of line 1.7, and of later ones (GPU Operator, NRI)."""
NRI_CRIO = (1, 34)
CDI_CONTAINERD = (1, 7)
"""The first containerd that knows CDI (bug-reports.md B07)."""
CDI_DOCKER = (25,)
"""The first Docker that knows CDI (NVIDIA/nvidia-container-toolkit CHANGELOG.md, v1.15.0-rc.1)."""


def outside(have: Numbers, low: str, high: str) -> bool:
    """Whether the version HAVE is outside of the lines LOW to HIGH."""
    first, last = numbers(low), numbers(high)
    return bool(have) and not (first <= have[: len(first)] and have[: len(last)] <= last)


def runtimes(spec: ClusterPolicySpec) -> dict[str, tuple[str, Numbers]]:
    """What the policy says about container runtimes, by path: containerd, cri-o or docker, and its version. The same of
    several pools counts once, and the cluster's where not every pool has its own."""
    said = [(f"spec.nodePools[{at}].containerRuntime", pool.containerRuntime) for at, pool in enumerate(spec.nodePools)]
    if not said or not all(text for _, text in said) or spec.cluster.containerRuntime in {text for _, text in said}:
        said.insert(0, ("spec.cluster.containerRuntime", spec.cluster.containerRuntime))
    first = {text: path for path, text in reversed(said) if text}
    parts = {first[text]: text.partition("://") for _, text in said if text}
    return {path: ("cri-o" if name == "crio" else name, numbers(of)) for path, (name, _, of) in parts.items()}


def shown(version: Numbers) -> str:
    """VERSION as people write it."""
    return ".".join(map(str, version))


@rule("GPU400", "warning")
def kubernetes_in_range(cluster: Cluster) -> Iterator[Hit]:
    """The release is not documented for the cluster's version of Kubernetes."""
    release, platform, have = cluster.spec.release, cluster.platform, numbers(cluster.spec.cluster.kubernetesVersion)
    if platform.own_versions:
        return
    low, high = releases.release(release).kubernetes_range
    narrower = platform.kubernetes_max.get(releases.release(release).line)
    what, limit = f"release {release}", high
    if narrower and not outside(have, low, high):
        what, limit = f"release {release} on {platform.title}", narrower
    if outside(have, low, limit):
        path, remedy = "spec.cluster.kubernetesVersion", _other_release(have) if have > numbers(limit) else ""
        yield hit(path, remedy=remedy, what=what, low=low, high=limit, has=shown(have[:2]))


def _other_release(have: Numbers) -> str:
    for name in releases.names():
        if not outside(have, *releases.release(name).kubernetes_range):
            return f"set spec.release: {name} or newer, which is documented for it, before the cluster is upgraded"
    return "wait for a release that is documented for it, or try it on a cluster that nobody depends on"


@rule("GPU401", "warning")
def openshift_in_range(cluster: Cluster) -> Iterator[Hit]:
    """The release is not documented for the cluster's version of OpenShift."""
    spec = cluster.spec
    have = numbers(spec.cluster.openshift.version if spec.cluster.openshift else None)
    low, high = releases.release(spec.release).openshift_range
    if outside(have, low, high):
        yield hit("spec.cluster.openshift.version", release=spec.release, low=low, high=high, has=shown(have))


@rule("GPU402", "warning")
def system_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The nodes' operating system is not in the release's support table."""
    spec = cluster.spec
    listed = oses.os_names(spec.release)
    known = {*listed, *(oses.os_tag(name, spec.release) for name in listed)}
    for driver in cluster.drivers:
        system = driver.pool.system if driver.nvidias and driver.pool.said.os not in known else None
        if system is not None and system.published and system.id != "rhcos":
            table = ", ".join(name for name in listed if name.startswith(system.id))
            yield about(driver, f"{driver.pool.path}.os", release=spec.release, title=system.name, table=table)


@rule("GPU403", "warning")
def runtime_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The container runtime, or its version, is not in the release's support table."""
    spec = cluster.spec
    low, high = releases.release(spec.release).containerd_range
    for path, (name, version) in runtimes(spec).items():
        if name == "docker":
            yield hit(path, "docker", release=spec.release)
        elif name == "containerd" and outside(version, low, high):
            yield hit(path, "containerd", release=spec.release, low=low, high=high, version=shown(version))
    for pool in cluster.pools:
        if pool.runtime.startswith("cri") and pool.said.os in WITHOUT_CRIO:
            yield hit(f"{pool.path}.os", "crio", system=pool.said.os, pool_name=pool.name)


WITHOUT_CRIO = {"ubuntu26.04"}
"""Systems whose row of the support table has no CRI-O, with v26.7."""


@rule("GPU404", "error")
def cdi_needs_a_newer_runtime(cluster: Cluster) -> Iterator[Hit]:
    """CDI is on, and the container runtime is too old to know it."""
    spec = cluster.spec
    least = {"containerd": CDI_CONTAINERD, "docker": CDI_DOCKER}
    for path, (name, version) in runtimes(spec).items() if spec.cdi.enabled else ():
        if name in least and version and version < least[name]:
            title = "Docker" if name == "docker" else name
            yield hit(path, title=title, least=shown(least[name]), version=shown(version))


@rule("GPU405", "warning")
def nri_needs_a_newer_runtime(cluster: Cluster) -> Iterator[Hit]:
    """The NRI plugin is on, and the release or the runtime is older than it was made for."""
    spec = cluster.spec
    if not spec.cdi.nriPluginEnabled:
        return
    if not releases.release(spec.release).traits.toolkit_nri_namespace:
        yield hit("spec.cdi.nriPluginEnabled", "release", release=spec.release)
    old, new = NRI_CONTAINERD
    for path, (name, said) in runtimes(spec).items():
        version = said or (numbers(spec.cluster.kubernetesVersion)[:2] if name == "cri-o" else ())
        has = version[: len(new)] >= new or (version[:2] == old[:2] and version >= old)
        lacking = name == "containerd" and version and not has
        if lacking or (name == "cri-o" and () < version < NRI_CRIO):
            yield hit(path, "runtime", name=name, version=shown(version))


@rule("GPU406", "note")
def cloud_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The release's support table has no row for the cloud."""
    release, listed = cluster.spec.release, cluster.platform.listed
    if listed is not None and numbers(release)[:2] > numbers(listed.until):
        path = "spec.cluster.platform"
        yield hit(path, cloud=listed.name, release=release, until_then=listed.until, ask=listed.ask)


KNOWN_ON = datetime.date(2026, 8, 1)
"""When branches without a date had ended: data/drivers.yaml says `ended` of that month."""
SOON = datetime.timedelta(days=92)


@rule("GPU410", "warning")
def release_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The release has reached its end of support."""
    release = cluster.spec.release
    ended = releases.life_cycle(release).ended
    if ended is not None:
        *_, before, line = releases.lines()
        to = _steps(release)
        yield hit("spec.release", since=ended, release=release, ended=ended, line=line, before=before, to=to)


@rule("GPU411", "note")
def deprecated_release(cluster: Cluster) -> Iterator[Hit]:
    """The release is deprecated, or there is a newer patch of it."""
    path, release = "spec.release", cluster.spec.release
    cycle = releases.life_cycle(release)
    if (since := cycle.deprecated) is not None:
        ended, newest, to = cycle.ended, releases.lines()[-1], _steps(release)
        if ended is None:
            yield hit(path, "ending", since=since, release=release, deprecated=since, newest=newest, to=to)
        else:
            yield hit(path, "ended", since=since, until=ended, release=release, deprecated=since, ended=ended, to=to)
        return
    newest = releases.of_line(releases.release(release).line)[-1]
    if newest != release:
        since = datetime.date.fromisoformat(releases.release(newest).date)
        yield hit(path, "patch", release=release, newest=newest, since=since)


def _steps(name: str) -> str:
    """Where to go from release NAME, one line at a time."""
    first, *others = releases.steps(name)
    return f"{first}, and from there to {', then '.join(others)}: one line at a time" if others else first


@rule("GPU412", "warning")
def branch_without_support(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch has reached its end of life."""
    for driver, branch, path in branches(cluster):
        if branch.ended or branch.end_of_life is not None:
            end, supported = _end(branch), _supported(cluster.spec.release)
            yield about(driver, path, branch=branch.name, end=end, supported=supported, since=end)


@rule("GPU413", "note")
def branch_ends_soon(cluster: Cluster) -> Iterator[Hit]:
    """The driver's branch reaches its end of life within three months."""
    for driver, branch, path in branches(cluster):
        if branch.end_of_life is not None:
            end, others = _end(branch), _supported(cluster.spec.release, but=branch.number)
            yield about(driver, path, branch=branch.name, end=end, others=others, since=end - SOON, until=end)


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
    """The production and long-term branches, all BUT one, that RELEASE documents, with their end and a version."""
    by_number: dict[int, str] = {}
    for version in drivers.listed_versions(release):
        branch = drivers.branch(version)
        if branch.end_of_life is not None and not branch.ended and branch.type != "NFB" and branch.number != but:
            by_number.setdefault(branch.number, f"{branch.name} until {branch.end_of_life}, such as {version}")
    return "; ".join(text for _, text in sorted(by_number.items()))
