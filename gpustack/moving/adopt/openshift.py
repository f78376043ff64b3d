"""What only OpenShift has: whether it is one, its version, and the images of its driver toolkit."""

from __future__ import annotations

from gpustack.model import Location

from ...api import keys
from .installation import Installation, Leaves, Said
from .pools import labels_of

KINDS = {"ClusterVersion", "ImageStream", "SecurityContextConstraints", "Subscription"}
TOOLKIT = "openshift.driver-toolkit.rhcos"
"""The label of a driver's DaemonSet that names the RHCOS version whose toolkit it builds with (operator.md 8.1)."""


def told(installation: Installation, leaves: Leaves) -> bool:
    """Whether INSTALLATION is on OpenShift: an input says so, or there is what no other platform has."""
    driver_toolkit = leaves.get(("operator", "use_ocp_driver_toolkit"))
    systems = {labels_of(node).get(f"{keys.OS_RELEASE}ID") for node in installation.of_kind("Node")}
    marks = (installation.openshift, driver_toolkit is not None and driver_toolkit.value is True, "rhcos" in systems)
    return any(marks) or any(True for _ in installation.of_kind(*KINDS))


def facts(installation: Installation) -> Leaves:
    """The section `cluster` of an OpenShift cluster; what nothing tells is asked for."""
    at = ("cluster", "openshift")
    made: Leaves = {("cluster", "platform"): Said("openshift", Location(""))}
    versions = [
        body.get("status", {}).get("desired", {}).get("version") for body in installation.of_kind("ClusterVersion")
    ]
    versions += [labels_of(node).get(f"{keys.OS_RELEASE}VERSION_ID") for node in installation.of_kind("Node")]
    version = next((str(each) for each in versions if each), "")
    images: dict[str, str] = {}
    for body in installation.of_kind("DaemonSet"):
        labels = body["metadata"].get("labels") or {}
        containers = body.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
        if TOOLKIT in labels and f"{TOOLKIT}-image-missing" not in labels:
            images.update((labels[TOOLKIT], each["image"]) for each in containers if "driver-toolkit" in each["name"])
    for body in installation.of_kind("ImageStream"):
        for tag in body.get("spec", {}).get("tags", []) if body["metadata"]["name"] == "driver-toolkit" else []:
            images[tag["name"]] = str(tag.get("from", {}).get("name", ""))
    if version:
        made[*at, "version"] = Said(version, Location(""))
    else:
        installation.tell("openshift", "spec.cluster.openshift.version")
    if images:
        made[*at, "driverToolkitImages"] = Said(images, Location(""))
    return made
