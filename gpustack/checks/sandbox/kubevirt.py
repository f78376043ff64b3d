"""Rules about what KubeVirt is told of the devices: its feature gate, who offers them, and by which names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import gpus, kubevirt
from ...cluster.resolve import resolve
from ...policy.language.cluster import on_openshift
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.spec import ClusterPolicySpec


@rule("GPU158", "note")
def feature_gate(cluster: Cluster) -> Iterator[Hit]:
    """KubeVirt's feature gate for host devices, left to others."""
    spec = cluster.spec
    section = spec.kubevirt
    if section is None or section.featureGates is not None or section.target == "hyperconverged":
        return
    if section.target == "kubevirt" or not on_openshift(spec.cluster):
        yield hit("spec.kubevirt.featureGates")


@rule("GPU160", "error")
def two_providers(cluster: Cluster) -> Iterator[Hit]:
    """A device that two device plugins offer."""
    for path, _, _, external in nvidia_devices(cluster.spec):
        if not external:
            yield hit(path)


@rule("GPU161", "warning")
def wrong_resource(cluster: Cluster) -> Iterator[Hit]:
    """A resource name that the device plugin doesn't offer."""
    for path, given, formed, external in nvidia_devices(cluster.spec):
        if external and given != formed:
            yield hit(f"{path}.resourceName", formed=formed, given=given)


def nvidia_devices(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str, bool]]:
    """Devices under spec.kubevirt that our plugin offers: path, resource in the policy, resource as the plugin forms
    it, and whether KubeVirt is told that it is not its own.
    """
    section = spec.kubevirt
    if section is None or not resolve(spec).offered_to_kubevirt:
        return
    for index, pci in enumerate(section.pciDevices):
        vendor, _, device = pci.selector.partition(":")
        if vendor == gpus.VENDOR:
            formed = kubevirt.pci_resource(device) if kubevirt.known(device) else pci.resourceName
            yield f"spec.kubevirt.pciDevices[{index}]", pci.resourceName, formed, bool(pci.externalResourceProvider)
    for index, mediated in enumerate(section.mediatedDevices):
        if mediated.name.startswith(("NVIDIA ", "GRID ")):
            formed, external = kubevirt.vgpu_resource(mediated.name), bool(mediated.externalResourceProvider)
            yield f"spec.kubevirt.mediatedDevices[{index}]", mediated.resourceName, formed, external
