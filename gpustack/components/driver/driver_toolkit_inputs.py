"""Which images of OpenShift's driver toolkit a cluster needs: headers and compilers, one image per RHCOS version.

Driver and vGPU manager build their kernel modules in it (operator.md 8.1). Without it they would install kernel headers
from package sources, which RHCOS nodes can't reach without a subscription.
"""

from __future__ import annotations

from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, served
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
    whatever it serves, as the operator does it: a DaemonSet whose nodes serve something else has no pods.
    """
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
