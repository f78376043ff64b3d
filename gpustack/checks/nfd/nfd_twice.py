"""Rules about the installation of node feature discovery: one that another chart brings along, and an old one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog._versions import numbers
from ...policy.language import images
from ...policy.language.cluster import on_openshift
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster

LEAST = (0, 17)
"""The first version that doesn't flood the API server (bug-reports.md B27)."""


@rule("GPU209", "warning")
def discovery_of_the_network_operator(cluster: Cluster) -> Iterator[Hit]:
    """Node feature discovery, which the chart of NVIDIA's network operator brings as well."""
    spec = cluster.spec
    if spec.cluster.networkOperator is True and spec.nfd.enabled is not False and not on_openshift(spec.cluster):
        yield hit("spec.cluster.networkOperator")


@rule("GPU212", "warning")
def old_discovery(cluster: Cluster) -> Iterator[Hit]:
    """A node feature discovery that can flood the API server."""
    spec = cluster.spec
    version, path = images.version(spec.nfd), images.version_path("spec.nfd", spec.nfd)
    if spec.nfd.enabled is not False and not on_openshift(spec.cluster) and () < numbers(version)[:2] < LEAST:
        yield hit(path, version=version)
