"""Rules about pods' security contexts that the API server refuses although their schema lets them pass.

Seen by applying each value that the language takes to API servers of Kubernetes 1.34 to 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...catalog._versions import numbers
from ...model import Path, dotted
from ..rule import Hit, hit, rule
from .pods import pod_steps
from .references import pod_template

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.spec import ClusterPolicySpec

MOUNT_OPTION_SINCE = (1, 37)
"""The API server takes MountOption from here on: the feature gate SELinuxMount is off before."""


def contexts(spec: ClusterPolicySpec) -> Iterator[tuple[Path, dict[str, Any], bool]]:
    """The security contexts that SPEC gives pods: place, content, and whether the pods are on the host's network."""
    own: list[tuple[Path, Any]] = [(("daemonsets",), spec.daemonsets)]
    own += [(("drivers", index), driver) for index, driver in enumerate(spec.drivers)]
    if cluster := spec.gpuCluster:
        own.append((("gpuCluster", "daemonsets"), cluster.daemonsets))
    for steps, section in own:
        if section is not None and section.podSecurityContext is not None:
            content = section.podSecurityContext.model_dump(exclude_none=True)
            yield ("spec", *steps, "podSecurityContext"), content, False
    for index, body in enumerate(spec.extraObjects):
        pod = (pod_template(body) or {}).get("spec")
        content = pod.get("securityContext") if isinstance(pod, dict) else None
        if isinstance(pod, dict) and isinstance(content, dict):
            place = ("spec", "extraObjects", index, *pod_steps(body), "securityContext")
            yield place, content, pod.get("hostNetwork") is True


@rule("GPU815", "error")
def mount_option(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks for seLinuxChangePolicy MountOption where the API server does not take it."""
    spec = cluster.spec
    version = spec.cluster.kubernetesVersion
    if numbers(version)[:2] >= MOUNT_OPTION_SINCE:
        return
    for path, context, _ in contexts(spec):
        if context.get("seLinuxChangePolicy") == "MountOption":
            yield hit(dotted((*path, "seLinuxChangePolicy")), version=version)


@rule("GPU816", "error")
def host_process(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks to run as Windows host processes, without the host's network."""
    for path, context, host_network in contexts(cluster.spec):
        windows = context.get("windowsOptions")
        if isinstance(windows, dict) and windows.get("hostProcess") is True and not host_network:
            yield hit(
                dotted((*path, "windowsOptions", "hostProcess")),
                remedy="leave it out: these pods run on Linux"
                if path[1] != "extraObjects"
                else "add hostNetwork: true",
            )
