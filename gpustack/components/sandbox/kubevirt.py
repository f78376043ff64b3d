"""KubeVirt's permission for GPUs, as a part of an object that somebody else owns.

The object holds only the fields that are ours, so it must be applied by server-side apply: a client-side apply would
take it for the whole. It must never be deleted along either: deleting KubeVirt's object uninstalls KubeVirt and ends
all virtual machines. Annotations tell every engine so.

KubeVirt's lists are replaced as one (listType atomic), so all devices must be in this one object. The HyperConverged
operator merges its lists by selector and leaves room for others.
"""

from collections.abc import Iterator
from typing import Any

from ...gitops.engines import wanted
from ...model import Body
from ..component import Component
from ..parts.kube import object_of
from ..parts.pod import sparse
from .kubevirt_inputs import Device, KubeVirtInputs


class KubeVirt(Component[KubeVirtInputs]):
    """The part of the KubeVirt or HyperConverged object that permits GPUs."""

    def manifests(self, inputs: KubeVirtInputs) -> Iterator[Body]:
        whose = hyperconverged if inputs.target == "hyperconverged" else kubevirt
        api_version, kind, spec = whose(inputs)
        yield object_of(api_version, kind, inputs.name, spec, inputs.namespace, annotations=wanted("partial"))


def kubevirt(inputs: KubeVirtInputs) -> tuple[str, str, Body]:
    """KubeVirt's own object. Without the last gate KubeVirt deletes mediated devices that it did not make."""
    gates: list[str] = []
    if inputs.gates is not None:
        ours = ["HostDevices", *(["DisableMDEVConfiguration"] if inputs.keep_mediated else [])]
        gates = list(dict.fromkeys([*inputs.gates, *ours]))
    configuration = sparse(
        developerConfiguration=sparse(featureGates=gates), permittedHostDevices=devices(inputs, "pciVendorSelector")
    )
    return "kubevirt.io/v1", "KubeVirt", {"configuration": configuration}


def hyperconverged(inputs: KubeVirtInputs) -> tuple[str, str, Body]:
    """The HyperConverged operator's object: the same under other names."""
    gates = {"disableMDevConfiguration": True} if inputs.keep_mediated else {}
    spec = sparse(featureGates=gates, permittedHostDevices=devices(inputs, "pciDeviceSelector"))
    return "hco.kubevirt.io/v1beta1", "HyperConverged", spec


def devices(inputs: KubeVirtInputs, pci_key: str) -> Body:
    """The permitted devices, with PCI_KEY for the PCI id."""
    return sparse(
        pciHostDevices=[device(pci_key, item) for item in inputs.pci],
        mediatedDevices=[device("mdevNameSelector", item) for item in inputs.mediated],
    )


def device(key: str, item: Device) -> dict[str, Any]:
    """One device. Who offers it is spelled out: where two do, virtual machines get a GPU that is in use."""
    return {key: item.selector, "resourceName": item.resource, "externalResourceProvider": item.external}
