"""Rules about the support matrix: a release beside the cluster's Kubernetes, OpenShift, operating systems and runtimes.

Outside of what NVIDIA documents, things may work all the same, so that is a warning; where they can't, an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import oses, releases
from ...catalog._versions import numbers
from ...policy.language.cluster import on_openshift, platform_of
from ..rule import POOLS, Hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.node_pools import NodePool
    from ...policy.language.spec import ClusterPolicySpec

Numbers = tuple[int, ...]

NRI_CONTAINERD = ((1, 7, 30), (2, 1))
"""The first containerd with an NRI that the plugin can use: of line 1.7, and of later ones (platforms.yaml nri)."""
NRI_CRIO = (1, 34)
CDI_CONTAINERD = (1, 7)
"""The first containerd that knows CDI (support-matrix.yaml containerd_cdi)."""
CDI_DOCKER = (25,)
"""The first Docker that knows CDI (NVIDIA/nvidia-container-toolkit CHANGELOG.md, v1.15.0-rc.1)."""


def outside(have: Numbers, low: str, high: str) -> bool:
    """Whether the version HAVE is outside of the lines LOW to HIGH."""
    first, last = numbers(low), numbers(high)
    return bool(have) and not (first <= have[: len(first)] and have[: len(last)] <= last)


def runtimes(spec: ClusterPolicySpec) -> dict[str, tuple[str, Numbers]]:
    """What the policy says about container runtimes, by path: containerd, cri-o or docker, and its version. The same of
    several pools counts once, and the cluster's where not every pool has its own.
    """
    said = [(f"spec.nodePools[{index}].containerRuntime", pool.containerRuntime) for index, pool in _pools(spec)]
    if not said or not all(text for _, text in said) or spec.cluster.containerRuntime in {text for _, text in said}:
        said.insert(0, ("spec.cluster.containerRuntime", spec.cluster.containerRuntime))
    by_path, seen = {}, set[str]()
    for path, text in said:
        if text and text not in seen:
            seen.add(text)
            name, _, version = text.partition("://")
            by_path[path] = "cri-o" if name == "crio" else name, numbers(version)
    return by_path


def _pools(spec: ClusterPolicySpec) -> Iterator[tuple[int, NodePool]]:
    yield from enumerate(spec.nodePools)


def shown(version: Numbers) -> str:
    """VERSION as people write it."""
    return ".".join(map(str, version))


@rule("GPU400", "warning")
def kubernetes_in_range(cluster: Cluster) -> Iterator[Hit]:
    """The release is not documented for the cluster's version of Kubernetes."""
    spec = cluster.spec
    if on_openshift(spec.cluster):
        return
    low, high = releases.release(spec.release).kubernetes_range
    have = numbers(spec.cluster.kubernetesVersion)
    platform = platform_of(spec.cluster)
    narrower = platform.kubernetes_max.get(releases.release(spec.release).line)
    what, limit = f"release {spec.release}", high
    if narrower and not outside(have, low, high):
        what, limit = f"release {spec.release} on {platform.title}", narrower
    if outside(have, low, limit):
        newer = have > numbers(limit)
        yield Hit(
            "spec.cluster.kubernetesVersion",
            f"{what} is documented for Kubernetes {low} to {limit}, and the cluster has {shown(have[:2])}",
            remedy=_other_release(have)
            if newer
            else "upgrade the cluster, or choose a release that is documented for it",
        )


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
        yield Hit(
            "spec.cluster.openshift.version",
            f"release {spec.release} is documented for OpenShift {low} to {high}, and the cluster has {shown(have)}",
        )


@rule("GPU402", "warning")
def system_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The nodes' operating system is not in the release's support table."""
    spec = cluster.spec
    listed = oses.os_names(spec.release)
    known = {*listed, *(oses.os_tag(name, spec.release) for name in listed)}
    for driver in cluster.drivers:
        system = driver.system if driver.nvidias and driver.pool.os not in known else None
        if system is not None and system.published and system.id != "rhcos":
            yield Hit(
                f"spec.nodePools[{driver.index}].os",
                f"release {spec.release} is not documented for {system.name} ({POOLS})",
                "its support table has " + ", ".join(name for name in listed if name.startswith(system.id)),
                pool=driver.pool.name,
            )


@rule("GPU403", "warning")
def runtime_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The container runtime, or its version, is not in the release's support table."""
    spec = cluster.spec
    low, high = releases.release(spec.release).containerd_range
    for path, (name, version) in runtimes(spec).items():
        if name == "docker":
            yield Hit(
                path,
                f"release {spec.release} is not documented for Docker",
                "the support tables list containerd and CRI-O; since Kubernetes 1.24 Docker needs cri-dockerd",
                "move the nodes to containerd, or see that pods get GPUs there before you rely on it",
            )
        elif name == "containerd" and outside(version, low, high):
            yield Hit(
                path,
                f"release {spec.release} is documented for containerd {low} to {high}, and this is {shown(version)}",
                "NVIDIA tests and supports the release with these versions only",
                "choose another release or another containerd, or see that pods get GPUs before you rely on it",
            )
    for index, pool in _pools(spec):
        runtime = pool.containerRuntime or spec.cluster.containerRuntime or ""
        if runtime.startswith("cri") and pool.os in WITHOUT_CRIO:
            yield Hit(
                f"spec.nodePools[{index}].os",
                f"CRI-O on {pool.os} is in no support table (node pool {pool.name})",
                "the table of v26.7 lists containerd alone for this system",
                "use containerd there, or see that pods get GPUs before you rely on it",
            )


WITHOUT_CRIO = {"ubuntu26.04"}
"""Systems whose row of the support table has no CRI-O (support-matrix.yaml runtimes_v26_7)."""


@rule("GPU404", "error")
def cdi_needs_a_newer_runtime(cluster: Cluster) -> Iterator[Hit]:
    """CDI is on, and the container runtime is too old to know it."""
    spec = cluster.spec
    least = {"containerd": CDI_CONTAINERD, "docker": CDI_DOCKER}
    for path, (name, version) in runtimes(spec).items() if spec.cdi.enabled else ():
        if name in least and version and version < least[name]:
            title = "Docker" if name == "docker" else name
            yield Hit(
                path,
                f"CDI needs {title} {shown(least[name])} or newer, and this is {shown(version)}",
                remedy=f"set spec.cdi.enabled: false, or upgrade {title} first",
            )


@rule("GPU405", "warning")
def nri_needs_a_newer_runtime(cluster: Cluster) -> Iterator[Hit]:
    """The NRI plugin is on, and the release or the runtime is older than it was made for."""
    spec = cluster.spec
    if not spec.cdi.nriPluginEnabled:
        return
    if not releases.release(spec.release).traits.toolkit_nri_namespace:
        yield Hit(
            "spec.cdi.nriPluginEnabled",
            f"the container toolkit of release {spec.release} has no NRI plugin",
            "the plugin came with v26.3.0; pods would get no GPU from it",
            "set spec.release: v26.3.0 or newer, or leave out spec.cdi.nriPluginEnabled",
        )
    default: dict[str, tuple[str, Numbers]] = (
        {"spec.cdi.nriPluginEnabled": ("cri-o", ())} if on_openshift(spec.cluster) else {}
    )
    for path, (name, said) in (runtimes(spec) or default).items():
        version = said or (numbers(spec.cluster.kubernetesVersion)[:2] if name == "cri-o" else ())
        if (name == "containerd" and version and not _has_nri(version)) or (
            name == "cri-o" and () < version < NRI_CRIO
        ):
            yield Hit(
                path,
                f"the NRI plugin needs containerd 1.7.30 or 2.1, or CRI-O 1.34, and this is {name} {shown(version)}",
                "with the plugin nothing else tells the runtime about GPUs, so pods might get none",
                "upgrade the runtime, or set spec.cdi.nriPluginEnabled: false",
            )


def _has_nri(version: Numbers) -> bool:
    old, new = NRI_CONTAINERD
    return version[: len(new)] >= new or (version[:2] == old[:2] and version >= old)


@rule("GPU406", "note")
def cloud_in_table(cluster: Cluster) -> Iterator[Hit]:
    """The release's support table has no row for the cloud."""
    spec = cluster.spec
    listed = platform_of(spec.cluster).listed
    if listed is not None and numbers(spec.release)[:2] > numbers(listed.until):
        yield Hit(
            "spec.cluster.platform",
            f"{listed.name} is not in the support table of release {spec.release}",
            f"it was listed until {listed.until}",
            f"ask {listed.ask} or NVIDIA before you rely on support; nothing has to change in the policy",
        )
