"""The parts of KubeVirt's and the HyperConverged operator's objects that gpustack renders, as JSON schemas by hand.

Both objects have hundreds of fields, and no Go module with them is served. gpustack applies a few of them beside their
owner's, so these few are all that the schemas know: a whole KubeVirt object is not its business. Sources: the types
PermittedHostDevices, PciHostDevice and MediatedHostDevice of kubevirt.io/api (v1) and of HCO's api/v1beta1.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, Schema, array, obj

BOOLEAN: Schema = {"type": "boolean"}
SELECTOR: Schema = {"type": "string", "pattern": "^[0-9A-F]{4}:[0-9A-F]{4}$"}
RESOURCE: Schema = {"type": "string", "pattern": "^[a-z0-9.-]+/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"}


def permitted(pci_key: str, **more: Schema) -> Schema:
    """Return the type PermittedHostDevices, with PCI_KEY for the PCI id and MORE fields of each device."""
    shared = {"resourceName": RESOURCE, "externalResourceProvider": BOOLEAN, **more}
    pci = obj(f"resourceName {pci_key}", **{pci_key: SELECTOR}, **shared)
    mediated = obj("mdevNameSelector resourceName", mdevNameSelector=STRING, **shared)
    return obj(pciHostDevices=array(pci), mediatedDevices=array(mediated))


KUBEVIRT: dict[tuple[str, str], Schema] = {
    ("kubevirt.io/v1", "KubeVirt"): obj(
        "spec",
        spec=obj(
            configuration=obj(
                developerConfiguration=obj(featureGates=array(STRING)),
                permittedHostDevices=permitted("pciVendorSelector"),
            )
        ),
    ),
    ("hco.kubevirt.io/v1beta1", "HyperConverged"): obj(
        "spec",
        spec=obj(
            featureGates=obj(disableMDevConfiguration=BOOLEAN),
            permittedHostDevices=permitted("pciDeviceSelector", disabled=BOOLEAN),
        ),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
