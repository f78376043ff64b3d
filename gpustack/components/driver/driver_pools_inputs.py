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
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ...catalog.drivers import UnknownOS, os_id, os_tag
from ...cluster.ownership import image_selector
from ...cluster.resolve import resolve
from ...cluster.workloads import Workload
from ...model import Finding, FindingsError
from .driver_toolkit_inputs import RHCOS_LABEL, DriverToolkit, driver_toolkits

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec

NAME = "nvidia-driver-daemonset"
OS_LABEL = "feature.node.kubernetes.io/system-os_release."
KERNEL_LABEL = "feature.node.kubernetes.io/kernel-version.full"
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

    `kernel` is "" unless the driver is precompiled, `toolkit` what OpenShift's driver toolkit builds with.
    """

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


def targets(spec: ClusterPolicySpec, who: Installer = DRIVER) -> list[Target]:
    """The DaemonSets of WHO for the node pools of SPEC, in policy order; none without pools.

    Raises FindingsError with everything that the pools fail to say or contradict each other in.
    """
    precompiled, findings = who is DRIVER and bool(spec.driver.usePrecompiled), list[Finding]()
    counts, systems = resolve(spec).serving(who.workload), list[tuple[int, System]]()
    for index, pool in enumerate(spec.nodePools):
        try:
            systems.append((index, parse(pool.os or "", spec.release)))
        except UnknownOS as error:
            if index in counts:
                findings.append(unknown_os(index, pool.name, error, who))
        if precompiled and not pool.kernel and index in counts:
            findings.append(unknown_kernel(index, pool.name))
    if findings:
        raise FindingsError(*findings)
    if precompiled:
        return per_kernel(spec, [(index, system) for index, system in systems if spec.nodePools[index].kernel])
    if toolkits := driver_toolkits(spec):
        return per_rhcos(spec, systems, toolkits, who)
    return per_os([system for index, system in systems if index in counts or not counts], who)


def parse(os: str, release: str) -> System:
    """The system that a policy calls OS ("ubuntu22.04"). UnknownOS where there is no version behind the name."""
    return System(*os_id(os), os_tag(os, release))


def per_rhcos(
    spec: ClusterPolicySpec, systems: list[tuple[int, System]], toolkits: list[DriverToolkit], who: Installer
) -> list[Target]:
    """One target per RHCOS version, for the system of the first pool that has it (operator.md 8.1)."""
    found = []
    for toolkit in toolkits:
        system = next((known for index, known in systems if spec.nodePools[index].ostreeVersion == toolkit.rhcos), None)
        if system:
            name = f"{who.name}-{toolkit.rhcos}"
            found.append(Target(name, name, {RHCOS_LABEL: toolkit.rhcos}, system, toolkit=toolkit))
    return found


def per_os(systems: list[System], who: Installer = DRIVER) -> list[Target]:
    """One target per OS tag; the only or first one keeps the operator's name and selector (see above)."""
    found = list({system.tag: system for system in systems}.values())
    if len(found) < 2:
        return [Target(who.name, who.name, {}, system) for system in found]
    names = [who.name, *(f"{who.name}-{system.tag}" for system in found[1:])]
    return [Target(name, name, system.selector, system) for name, system in zip(names, found, strict=True)]


def per_kernel(spec: ClusterPolicySpec, systems: list[tuple[int, System]]) -> list[Target]:
    """One target per kernel. It alone selects the nodes, so one kernel on two systems is refused (operator.md 3)."""
    found: dict[str, Target] = {}
    for index, system in systems:
        kernel = spec.nodePools[index].kernel or ""
        known = found.get(kernel)
        if known is None:
            name = kernel_name(kernel, system, {target.name for target in found.values()})
            found[kernel] = Target(name, NAME, {KERNEL_LABEL: kernel}, system, kernel)
        elif known.os != system:
            raise FindingsError(two_systems(index, kernel, known.os, system))
    return list(found.values())


def kernel_name(kernel: str, system: System, taken: set[str]) -> str:
    """The DaemonSet's name for KERNEL: the operator's (operator.md 7.1), unless that is TAKEN.

    The operator leaves the architecture out, and so gives the x86_64 and the aarch64 build of a kernel one DaemonSet.
    Here the second gets its architecture behind the name.
    """
    name = f"{NAME}-{sanitised(kernel)}-{system.text}"
    architecture = ARCHITECTURE.search(kernel)
    suffixes = ["", *([f"-{architecture[1].replace('_', '-')}"] if architecture else []), f"-{len(taken)}"]
    return next(found for suffix in suffixes if (found := name + suffix) not in taken)


def sanitised(kernel: str) -> str:
    """KERNEL as a part of an object's name: without architecture, "_" as ".", lower case.

    What no name can hold ("..", ".-") becomes one dot; the operator would fail there.
    """
    text = ARCHITECTURE.sub("", kernel).replace("_", ".").lower()
    return re.sub(r"[-.]*\.[-.]*", ".", text).strip(".")


def unknown_os(index: int, pool: str, error: UnknownOS, who: Installer | None = DRIVER) -> Finding:
    """The finding that nothing tells which image pool INDEX needs of WHO; None is one of `drivers`."""
    path = f"spec.nodePools[{index}].os"
    what = f"the os {error.name!r} of node pool {pool} has no version" if error.name else f"node pool {pool} has no os"
    example = error.nearest[0] if error.name and error.nearest else "ubuntu22.04"
    return Finding(
        "GPU051",
        "error",
        f"{what}, so there is no driver image for its nodes",
        path=path,
        why="driver images are built for one operating system, and their tags end in its name",
        remedy=f"set {path} to ID and VERSION_ID of /etc/os-release in one word, such as {example}"
        + (f"; where the node's image brings the driver, set spec.{who.section}.enabled: false" if who else ""),
    )


def unknown_kernel(index: int, pool: str) -> Finding:
    """The finding that nothing tells which precompiled image pool INDEX needs."""
    return Finding(
        "GPU052",
        "error",
        f"node pool {pool} has no kernel, so there is no precompiled driver for its nodes",
        path=f"spec.nodePools[{index}].kernel",
        why="with spec.driver.usePrecompiled each kernel has an image and a DaemonSet of its own",
        remedy=f"set spec.nodePools[{index}].kernel to what `uname -r` prints there, "
        "or spec.driver.usePrecompiled: false",
    )


def two_systems(index: int, kernel: str, first: System, second: System) -> Finding:
    """The finding that pool INDEX has KERNEL with another system than a pool before it."""
    return Finding(
        "GPU053",
        "error",
        f"kernel {kernel} is said to run on {first.text} and on {second.text}",
        path=f"spec.nodePools[{index}].kernel",
        why="the kernel alone selects the nodes of a precompiled driver, so one image would have to fit both systems",
        remedy=f"correct os or kernel of spec.nodePools[{index}], or set spec.driver.usePrecompiled: false",
    )
