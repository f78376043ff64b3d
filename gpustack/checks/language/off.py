"""What of a policy is off, so that settings in it change nothing: by its own switch, or by somebody else's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...catalog import releases
from ...cluster.resolve import Cluster
from ...model import Path, dotted
from ...policy.language.spec import ClusterPolicySpec
from ...policy.loading.layers import Merged

VIRTUAL: tuple[Path, ...] = (
    *(("vgpuManager",), ("vgpuDeviceManager",), ("vfioManager",), ("sandboxDevicePlugin",)),
    *(("kataSandboxDevicePlugin",), ("kataManager",), ("ccManager",)),
    *(("validator", "vfioPCI"), ("validator", "vgpuManager"), ("validator", "vgpuDevices")),
)
"""What only clusters with virtual machines have."""
MONITORED: tuple[Path, ...] = (("dcgmExporter", "serviceMonitor"), ("gpuCluster", "dcgmExporter", "serviceMonitor"))
UNLESS_SWITCHED_ON = {("computeDomains",), ("hpcJobMapping",)}
"""Sections, or the ends of their paths, that are off where neither the policy nor a default says `enabled`."""
DESCRIBED_ELSEWHERE: tuple[Path, ...] = (("driver",), ("gds",), ("gdrcopy",))
"""What describes the driver unless `drivers` do."""


class Off(NamedTuple):
    """A part of a policy that is off: its path, why it is, and what would switch it on."""

    path: Path
    why: str
    remedy: str


def off(merged: Merged, path: Path, others: Mapping[str, Sequence[Off]]) -> Off | None:
    """What is off and has the value at PATH in it: one of OTHERS (`others_of`), or the outermost section; else None."""
    for reason in others.get(str(path[0]), ()):
        if path[: len(reason.path)] == reason.path and path != ("driver", "useNvidiaDriverCRD"):
            return reason
    section: Any = merged.spec
    for length, step in enumerate(path[:-1], 1):
        section = section[step]
        switch = section.get("enabled") if isinstance(section, dict) else None
        if switch is True:
            continue
        place = path[:length]
        if switch is False or place in UNLESS_SWITCHED_ON or place[-1:] in UNLESS_SWITCHED_ON:
            return None if path == (*place, "enabled") else by_itself(merged, place)
    return None


def by_itself(merged: Merged, path: Path) -> Off:
    """The section at PATH, whose own switch is off."""
    who = merged.origin((*path, "enabled"))
    if who is None:
        by = "nothing switches it on"
    else:
        by = "this policy switches it off" if who.kind == "policy" else f"{who.file} switches it off"
    return Off(path, f"{by}, so nothing of it is rendered", f"set spec.{dotted(path)}.enabled: true")


def others_of(cluster: Cluster) -> dict[str, list[Off]]:
    """What in CLUSTER is off for the sake of another field, by the section that it is in."""
    by_section: dict[str, list[Off]] = {}
    for each in (*_virtual_machines(cluster), *_by_others(cluster)):
        by_section.setdefault(str(each.path[0]), []).append(each)
    return by_section


def _by_others(cluster: Cluster) -> Iterator[Off]:
    if cluster.listed and not cluster.dra:
        why = "spec.driver.useNvidiaDriverCRD is true, so spec.drivers describes the drivers"
        yield from (Off(path, why, "say it in spec.drivers") for path in DESCRIBED_ELSEWHERE)
    if not cluster.platform.os_images:
        yield Off(("operator", "use_ocp_driver_toolkit"), "the cluster is not OpenShift", "set spec.cluster.openshift")
    elif toolkit_runs_the_driver(cluster.spec):
        why = "OpenShift's driver toolkit starts the driver by a command of its own, as with the operator"
        yield Off(("driver", "args"), why, "set spec.operator.use_ocp_driver_toolkit: false")
    if not cluster.spec.cluster.monitoring:
        why = "nobody says what collects metrics in the cluster, so there is no ServiceMonitor"
        yield from (Off(path, why, "set spec.cluster.monitoring: true, or whose operator it is") for path in MONITORED)


def toolkit_runs_the_driver(spec: ClusterPolicySpec) -> bool:
    """Whether every driver of the nodes runs with OpenShift's driver toolkit (operator.md 3): all pools say their
    RHCOS."""
    images = spec.cluster.openshift.driverToolkitImages if spec.cluster.openshift else {}
    if not images or not spec.operator.use_ocp_driver_toolkit or spec.driver.usePrecompiled:
        return False
    return bool(spec.nodePools) and all(pool.ostreeVersion for pool in spec.nodePools)


def _virtual_machines(cluster: Cluster) -> list[Off]:
    if cluster.dra:
        why = "it is for virtual machines, and gpuCluster knows none"
        return [Off(path, why, "leave out spec.gpuCluster") for path in VIRTUAL]
    if not cluster.sandbox:
        why = "it is for virtual machines, and spec.sandboxWorkloads.enabled is not true"
        return [Off(path, why, "set spec.sandboxWorkloads.enabled: true") for path in VIRTUAL]
    if cluster.kata:
        why = "spec.sandboxWorkloads.mode is kata, and it is for KubeVirt"
        return [Off(("sandboxDevicePlugin",), why, "set spec.sandboxWorkloads.mode: kubevirt")]
    why = "it is for Kata containers, and spec.sandboxWorkloads.mode is not kata"
    confidential = releases.release(cluster.spec.release).traits.cc_manager_for_kata
    names = ("kataSandboxDevicePlugin", "ccManager") if confidential else ("kataSandboxDevicePlugin",)
    return [Off((name,), why, "set spec.sandboxWorkloads.mode: kata") for name in names]
