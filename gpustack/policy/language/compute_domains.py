"""`computeDomains`: nodes that share memory over NVLink, beside a device plugin that keeps the GPUs.

The operator has compute domains with `gpuCluster` only, where GPUs are allocated by DRA as well. Racks such as GB200
NVL72 are run the other way round too: pods ask the device plugin for GPUs, as everywhere else in the fleet, and a
ComputeDomain for the memory channel between their nodes. This section is for them; with `gpuCluster` it is refused,
because there compute domains are `gpuCluster.draDriver.computeDomains`.
"""

from __future__ import annotations

from .base import mapping, section
from .gpu_cluster import DraContainer, FeatureGates, KubeletPlugin
from .operand import ImageSource


class ComputeDomainsBesideThePlugin(ImageSource):
    """Compute domains from the DRA driver, while the device plugin offers the GPUs."""

    enabled: bool | None = None
    """Whether compute domains are offered, on the nodes of the pools whose GPUs can have them. Absent: false."""
    featureGates: FeatureGates = mapping()
    """Features of the DRA driver that are switched on or off, by name. Absent: the driver's own defaults."""
    controller: DraContainer = section()
    """The controller, one per cluster."""
    kubeletPlugin: KubeletPlugin = section()
    """The part that runs on the nodes."""
