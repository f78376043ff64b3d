"""Which driver DaemonSets a cluster needs, and which nodes each is for.

A driver image fits one operating system, a precompiled one also one kernel. The operator looks at one node and gives
its OS to all (operator.md 3, cases 39 and 40); node pools say what every node runs, so each gets the image that fits.

One OS: one DaemonSet `nvidia-driver-daemonset`, as the operator's. Several: one per OS tag. The first OS in policy
order keeps that name, so that a pool of another OS appended to the policy neither renames nor restarts the drivers of
the others: their DaemonSet only gains a node selector, which its nodes already match. The further ones are called
`nvidia-driver-daemonset-<osTag>`, and so are their `app` label and selector.

The selector of the further ones is the decision here. With the shared one (app=nvidia-driver-daemonset) two DaemonSets
would claim the same pods whenever pods lose their owner, and orphaning is how an installation is moved without
unloading drivers: a pod adopted by the DaemonSet of another OS runs on a node which that does not select, so it is
deleted at once, driver and all. The price: what looks for driver pods by app=nvidia-driver-daemonset (the operator's
upgrade controller, operator.md 12) finds only the first's. The label app.kubernetes.io/component=nvidia-driver finds
all, and the anti-affinity goes by it. A selector cannot be changed later, so this holds for good.

Precompiled: one per kernel, with the operator's names and its shared selector (7.1), so that each is adopted in place.
With OpenShift's driver toolkit: one per RHCOS version, with the operator's names and selectors (8.1).

Pools that serve virtual machines need no driver for containers, and only those with vGPUs need the vGPU manager. The
operator knows no such difference. Here a pool must say its system only where it counts, and where no pool counts, all
that say theirs do: a node that somebody labels for another workload finds its DaemonSet. Kernels and RHCOS versions are
taken from every pool, like the operator's.

On OpenShift, driver and vGPU manager build their kernel modules in images of the driver toolkit, which has headers and
compilers: one image per RHCOS version (operator.md 8.1). Without it they would install kernel headers from package
sources, which RHCOS nodes can't reach without a subscription.
"""

import re
from typing import NamedTuple

from ...api import keys
from ...catalog.oses import UnknownOS, nearest_os, os_id, os_tag
from ...cluster.ownership import image_selector
from ...cluster.pool import Pool, Workload
from ...model import Finding, FindingsError
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, served
from ..refusals import refused
from .driver_view import DriverView

RHCOS_LABEL = "feature.node.kubernetes.io/system-os_release.OSTREE_VERSION"
"""NFD's node label with the version of RHCOS."""


class DriverToolkit(Inputs):
    """The toolkit of one RHCOS version; `image` is "" where `cluster.openshift.driverToolkitImages` has none for it."""

    rhcos: str
    image: str = ""


def toolkit_images(spec: ClusterPolicySpec) -> dict[str, str]:
    """The images that manifests name, by RHCOS version."""
    images = spec.cluster.openshift.driverToolkitImages if spec.cluster.openshift else {}
    return {version: served(spec, image) for version, image in images.items()}


def driver_toolkits(view: DriverView) -> list[DriverToolkit]:
    """The toolkits for the RHCOS versions of the node pools, in policy order; none where the toolkit is not used.

    It is used on OpenShift, unless `operator.use_ocp_driver_toolkit` is false, where there are images of it, and where
    a pool says its `ostreeVersion`. A precompiled driver turns it off for all (operator.md 3). Every pool counts,
    whatever it serves, as the operator does it: a DaemonSet whose nodes serve something else has no pods."""
    spec, images = view.spec, toolkit_images(view.spec)
    wanted = view.cluster.platform.os_images and spec.operator.use_ocp_driver_toolkit
    if not wanted or not images or view.driver.usePrecompiled:
        return []
    versions = dict.fromkeys(pool.said.ostreeVersion for pool in view.pools if pool.said.ostreeVersion)
    return [DriverToolkit(rhcos=version, image=images.get(version, "")) for version in versions]


def openshift_version(spec: ClusterPolicySpec) -> str:
    """Major and minor version of OpenShift as driver containers want it ("4.18"); "" where it is not known."""
    version = (spec.cluster.openshift.version if spec.cluster.openshift else None) or ""
    return ".".join(version.split(".")[:2])


NAME = "nvidia-driver-daemonset"
ARCHITECTURE = re.compile(r"(x86_64|aarch64)(?:_64k)?")


class System(NamedTuple):
    """ID and VERSION_ID of /etc/os-release ("rhel", "9.4"), and the suffix of driver images for it ("rhel9")."""

    id: str
    version: str
    tag: str

    @property
    def text(self) -> str:
        return self.id + self.version

    @property
    def selector(self) -> dict[str, str]:
        """The node labels, as NFD sets them, of all nodes whose driver image has this tag."""
        return image_selector(self.id, self.version, self.tag)


class Target(NamedTuple):
    """One DaemonSet: its name, its `app` label and selector, the nodes it selects, and what they run.

    `kernel` is "" unless the driver is precompiled, `toolkit` what OpenShift's driver toolkit builds with."""

    name: str
    app: str
    node_selector: dict[str, str]
    os: System
    kernel: str = ""
    toolkit: DriverToolkit | None = None

    @property
    def image_suffix(self) -> str:
        """What is appended to the version of the driver's image (operator.md 4)."""
        return f"{self.kernel}-{self.os.tag}" if self.kernel else self.os.tag


class Installer(NamedTuple):
    """Who is installed on nodes: the name of its only or first DaemonSet, its policy section, its workload."""

    name: str
    section: str
    workload: Workload


DRIVER = Installer(NAME, "driver", "container")
VGPU_MANAGER = Installer("nvidia-vgpu-manager-daemonset", "vgpuManager", "vm-vgpu")


def targets(view: DriverView, who: Installer = DRIVER) -> list[Target]:
    """The DaemonSets of WHO for the pools of VIEW, in policy order; none without pools.

    Raises FindingsError with everything that the pools fail to say or contradict each other in."""
    precompiled, findings = who is DRIVER and bool(view.driver.usePrecompiled), list[Finding]()
    counts = [pool for pool in view.pools if pool.workload == who.workload]
    systems: list[tuple[Pool, System]] = []
    for pool in view.pools:
        try:
            systems.append((pool, parse(pool.said.os or "", view.spec.release)))
        except UnknownOS as error:
            if pool in counts:
                findings.append(unknown_os(pool, error, who))
        if precompiled and not pool.said.kernel and pool in counts:
            findings.append(unknown_kernel(pool, view))
    if findings:
        raise FindingsError(*findings)
    if precompiled:
        return per_kernel(view, [(pool, system) for pool, system in systems if pool.said.kernel])
    if toolkits := driver_toolkits(view):
        return per_rhcos(systems, toolkits, who)
    return per_os([system for pool, system in systems if pool in counts or not counts], who)


def parse(os: str, release: str) -> System:
    """The system that a policy calls OS ("ubuntu22.04"). UnknownOS where there is no version behind the name."""
    return System(*os_id(os), os_tag(os, release))


def per_rhcos(systems: list[tuple[Pool, System]], toolkits: list[DriverToolkit], who: Installer) -> list[Target]:
    """One target per RHCOS version, for the system of the first pool that has it (operator.md 8.1)."""
    targets = []
    for toolkit in toolkits:
        system = next((known for pool, known in systems if pool.said.ostreeVersion == toolkit.rhcos), None)
        if system:
            name = f"{who.name}-{toolkit.rhcos}"
            targets.append(Target(name, name, {RHCOS_LABEL: toolkit.rhcos}, system, toolkit=toolkit))
    return targets


def per_os(systems: list[System], who: Installer = DRIVER) -> list[Target]:
    """One target per OS tag; the only or first one keeps the operator's name and selector (see above)."""
    distinct = list({system.tag: system for system in systems}.values())
    if len(distinct) < 2:
        return [Target(who.name, who.name, {}, system) for system in distinct]
    names = [who.name, *(f"{who.name}-{system.tag}" for system in distinct[1:])]
    return [Target(name, name, system.selector, system) for name, system in zip(names, distinct, strict=True)]


def per_kernel(view: DriverView, systems: list[tuple[Pool, System]]) -> list[Target]:
    """One target per kernel. It alone selects the nodes, so one kernel on two systems is refused (operator.md 3)."""
    by_kernel: dict[str, Target] = {}
    for pool, system in systems:
        kernel = pool.said.kernel or ""
        known = by_kernel.get(kernel)
        if known is None:
            name = kernel_name(kernel, system, {target.name for target in by_kernel.values()})
            by_kernel[kernel] = Target(name, NAME, {keys.KERNEL: kernel}, system, kernel)
        elif known.os != system:
            place, switch = f"nodePools[{pool.index}].kernel", view.at("driver.usePrecompiled")
            first, second, of = known.os.text, system.text, pool.path
            raise FindingsError(
                refused("GPU053", place, kernel=kernel, first=first, second=second, pool=of, switch=switch)
            )
    return list(by_kernel.values())


def kernel_name(kernel: str, system: System, taken: set[str]) -> str:
    """The DaemonSet's name for KERNEL: the operator's (operator.md 7.1), unless that is TAKEN.

    The operator leaves the architecture out, and so gives the x86_64 and the aarch64 build of a kernel one DaemonSet.
    Here the second gets its architecture behind the name."""
    name = f"{NAME}-{sanitised(kernel)}-{system.text}"
    architecture = ARCHITECTURE.search(kernel)
    suffixes = ["", *([f"-{architecture[1].replace('_', '-')}"] if architecture else []), f"-{len(taken)}"]
    return next(candidate for suffix in suffixes if (candidate := name + suffix) not in taken)


def sanitised(kernel: str) -> str:
    """KERNEL as a part of an object's name: without architecture, "_" as ".", lower case.

    What no name can hold ("..", ".-") becomes one dot; the operator would fail there."""
    text = ARCHITECTURE.sub("", kernel).replace("_", ".").lower()
    return re.sub(r"[-.]*\.[-.]*", ".", text).strip(".")


def unknown_os(pool: Pool, error: UnknownOS, who: Installer | None = DRIVER) -> Finding:
    """The finding that nothing tells which image POOL needs of WHO; None is one of `drivers`."""
    name = pool.name
    what = f"the os {error.name!r} of node pool {name} has no version" if error.name else f"node pool {name} has no os"
    system = next(iter(pool.cluster.platform.systems), "ubuntu22.04")
    example = next(iter((error.name and error.nearest) or nearest_os(system)))
    off = f"; where the node's image brings the driver, set spec.{who.section}.enabled: false" if who else ""
    return refused("GPU051", f"nodePools[{pool.index}].os", what=what, example=example, off=off)


def unknown_kernel(pool: Pool, view: DriverView) -> Finding:
    """The finding that nothing tells which precompiled image of VIEW POOL needs."""
    return refused("GPU052", f"nodePools[{pool.index}].kernel", pool=pool.name, switch=view.at("driver.usePrecompiled"))
