"""`nfd`: node feature discovery, which finds the nodes that have GPUs and labels their system."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from .base import Own, Section, items, mapping, own, section
from .daemonsets import Toleration
from .forms import form, refuse_as
from .operand import ImageSource, ResourceRequirements
from .types import DnsLabel, DnsSubdomain, Labels, ObjectName

OPEN_NAMESPACES = ("feature.node.kubernetes.io", "profile.node.kubernetes.io")
"""Label namespaces, with those below, that node feature discovery may use although Kubernetes owns their domain."""


def reserved(namespace: str) -> bool:
    """Whether the label NAMESPACE is Kubernetes' own: labels there decide what the cluster does with a node."""
    name, owned = f".{namespace}", (".kubernetes.io", ".k8s.io")
    return name.endswith(owned) and not name.endswith(tuple(f".{suffix}" for suffix in OPEN_NAMESPACES))


def _not_reserved(namespace: str) -> str:
    if reserved(namespace):
        raise refuse_as("label_namespace", "reserved", namespace=namespace)
    return namespace


class NfdPart(Section):
    """Pods of node feature discovery."""

    resources: ResourceRequirements | None = None
    """CPU and memory of the container. Absent, in whole or in part: as the sub-chart of NVIDIA's chart has it."""
    tolerations: list[Toleration] | None = None
    """Tolerations of the pods, instead of the built-in ones; an empty list: no tolerations. Absent: the built-in ones;
    the worker's are those for the control plane and `nvidia.com/gpu`, and what `daemonsets.tolerations` says."""
    nodeSelector: Labels = mapping()
    """Labels of the nodes that the pods may run on. Absent: any."""
    priorityClassName: Annotated[ObjectName, Own("daemonsets.priorityClassName")] = own("daemonsets.priorityClassName")
    """PriorityClass of the pods. Absent or empty: system-node-critical."""


class Nfd(ImageSource):
    """Node feature discovery, which finds nodes that have GPUs: an installation of our own, or one that is there."""

    enabled: bool = True
    """Whether we install it; false where the cluster has one, which then must find PCI devices of class 03 by vendor.
    On OpenShift it asks the operator of OpenShift's catalogue for an instance. Absent: true; on OpenShift false."""
    nodefeaturerules: bool = False
    """Whether the rule is rendered along that labels nodes by the loaded kernel modules of GPUDirect and GDRCopy, also
    where the cluster brings node feature discovery. Absent: false."""
    helmRelease: DnsLabel = own("nfd.helmRelease")
    """Name of the Helm release of the GPU operator whose node feature discovery is taken over in place: it is part of
    names and selectors. Absent: gpu-operator."""
    labelNamespaces: list[Annotated[DnsSubdomain, AfterValidator(_not_reserved)]] = items()
    """Further namespaces in which rules and other finders may label nodes, such as `example.com`. Allowed anyway are
    `feature.node.kubernetes.io`, `profile.node.kubernetes.io`, `nvidia.com` and those of NodeFeatureRules in
    `extraObjects`; labels in all others are dropped. Absent: none."""
    pciClasses: list[Annotated[str, form("pci_class")]] = items()
    """Further PCI classes whose devices are labelled by vendor, besides network and display devices. Absent: none."""
    onGpuNodes: Literal["never", "avoid"] = own("nfd.onGpuNodes")
    """Whether the parts that serve every node, master and gc, may run on a node with GPUs: `never`, unless it is one of
    the control plane; `avoid` where there may be no other; a `nodeSelector` of their own wins over both. Absent:
    never."""
    master: NfdPart = section()
    """The part that labels nodes, one per cluster."""
    worker: NfdPart = section()
    """The part that looks at a node, on every node."""
    gc: NfdPart = section()
    """The part that removes what nodes left behind, one per cluster."""
