"""Whose driver a node gets, where a policy has several: `drivers`, or `driver` of a node pool.

A node gets the driver that its label nvidia.com/gpu-operator.driver.owner names: the name of one of `drivers`, or of
the pool whose `driver` overrides the cluster's (drivers.py has the choice). A DaemonSet selects the label.
So moving a node to another driver is a decision about that node, taken when it may lose its driver, and not a change of
a selector, which would take the driver from all nodes at once (reconciler.md L38).

The API tells which nodes a driver selects by their labels (operator.md 2.3). Here it is told by what a pool says of its
nodes, so two drivers for one node are found while compiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..api import keys
from ..catalog import releases
from ..catalog.oses import UnknownOS, os_id, os_tag
from .scheduling import arch_of

if TYPE_CHECKING:
    from ..policy.language.driver import NvidiaDriver
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec


def is_default(spec: ClusterPolicySpec, driver: NvidiaDriver) -> bool:
    """Whether DRIVER takes the nodes that no other one selects; releases before v26.7.0 ignore the field."""
    return bool(driver.default) and releases.release(spec.release).traits.driver_owner_label


def node_labels(spec: ClusterPolicySpec, pool: NodePool) -> dict[str, str]:
    """The labels of nodes of POOL, as far as the policy tells: its own, and those of NFD and NVIDIA for the rest."""
    known = {
        keys.PRESENT: "true",
        keys.ARCH: arch_of(pool),
        keys.PRODUCT: pool.gpuProduct,
        keys.WORKLOAD: pool.workload,
        keys.KERNEL: pool.kernel,
        f"{keys.OS_RELEASE}OSTREE_VERSION": pool.ostreeVersion,
        **os_labels(pool.os or "", spec.release),
    }
    return {**{key: value for key, value in known.items() if value}, **pool.nodeSelector}


def os_labels(os: str, release: str) -> dict[str, str]:
    """NFD's labels for OS ("rhel9.4"). Without VERSION_ID where OS is named by the major version alone ("rhel9")."""
    try:
        name, version = os_id(os)
    except UnknownOS:
        return {}
    major, dot, _ = version.partition(".")
    labels = {f"{keys.OS_RELEASE}ID": name, f"{keys.OS_RELEASE}VERSION_ID.major": major}
    short = not dot and os_tag(f"{os}.0", release) == os
    return labels if short else {**labels, f"{keys.OS_RELEASE}VERSION_ID": version}


def image_selector(name: str, version: str, tag: str) -> dict[str, str]:
    """NFD's labels of all nodes whose driver images end in TAG: those of the system NAME VERSION, and where images are
    made for its major version, of the others of that."""
    major = version.partition(".")[0]
    key, value = ("VERSION_ID.major", major) if tag == name + major else ("VERSION_ID", version)
    return {f"{keys.OS_RELEASE}ID": name, f"{keys.OS_RELEASE}{key}": value}
