"""`nfd`: node feature discovery, which finds the nodes that have GPUs and labels their system."""

from __future__ import annotations

from .base import Section, items, mapping, section
from .daemonsets import Toleration
from .operand import ImageSource, ResourceRequirements
from .types import Labels, ObjectName


class NfdPart(Section):
    """Pods of node feature discovery."""

    resources: ResourceRequirements | None = None
    """CPU and memory of the container. Absent: the built-in ones."""
    tolerations: list[Toleration] = items()
    """Tolerations of the pods, instead of the built-in ones. Absent: the built-in ones."""
    nodeSelector: Labels = mapping()
    """Labels of the nodes that the pods may run on. Absent: any."""
    priorityClassName: ObjectName | None = None
    """PriorityClass of the pods. Absent or empty: the default of the release."""


class Nfd(ImageSource):
    """Node feature discovery: an installation of our own, or one that is there already."""

    enabled: bool | None = None
    """Whether we install it; false where the cluster has one, which then must find PCI devices of class 03 by vendor.
    Absent: true."""
    nodefeaturerules: bool | None = None
    """Whether rules for confidential computing and kernel modules are rendered along. Absent: false."""
    master: NfdPart = section()
    """The part that labels nodes, one per cluster."""
    worker: NfdPart = section()
    """The part that looks at a node, on every node."""
    gc: NfdPart = section()
    """The part that removes what nodes left behind, one per cluster."""
