"""The driver: builds or loads NVIDIA's kernel modules on each node and lends the node its user space (operator.md 7.1).

Which DaemonSets there are, and why they are called and selected so: driver_pools_inputs.py, and driver_inputs.py for
those of node pools with a driver of their own. They are updated by deleting pods (OnDelete), node by node, never by
Kubernetes itself: a driver can't be replaced under running workloads.
"""

from collections.abc import Iterator, Mapping

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.common_inputs import Common
from ..parts.daemonset import daemonset, with_revision
from ..parts.kube import config_map
from ..parts.operand import operand_access
from ..parts.pod import Pod
from ..scripts import script
from .driver_features import toolkit_labels
from .driver_inputs import DriverInputs
from .driver_pod import MAIN, component, pod
from .driver_pools_inputs import NAME as DAEMONSET
from .driver_settings_inputs import ACCOUNT as NAME
from .driver_settings_inputs import DriverCommon, DriverPod
from .driver_volumes import ENTRYPOINT, HOST_MANAGER, trusted_authorities


class Driver(Component[DriverInputs]):
    """The DaemonSets of the driver, its startup probe, and its rights."""

    stage = "driver"

    def manifests(self, inputs: DriverInputs) -> Iterator[Body]:
        common, settings = inputs.common, inputs.settings
        yield from operand_access(common, NAME, evicts=inputs.evicts)
        if common.traits.driver_probe_script:
            yield startup_probe(common, {"app": DAEMONSET, **component(settings)})
        if any(each.trusted_ca for each in (settings, *(pool.settings for pool in inputs.pools))):
            yield trusted_authorities(common.namespace)
        yield from (with_revision(body) if inputs.revisions else body for body in daemonsets(inputs))


def daemonsets(inputs: DriverInputs) -> Iterator[Body]:
    """The DaemonSets of the cluster's driver, and those of node pools that have their own."""
    common, settings, others = inputs.common, inputs.settings, [pool.owner for pool in inputs.pools]
    for target in inputs.pods:
        yield driver_daemonset(common, settings, target, pod(common, settings, target, others))
    for pool in inputs.pools:
        yield driver_daemonset(common, pool.settings, pool.pod, pod(common, pool.settings, pool.pod))


def startup_probe(common: Common, labels: Mapping[str, str]) -> Body:
    """The ConfigMap with the script that tells whether the driver is up; with LABELS."""
    text = script("driver-startup-probe" if common.traits.driver_daemons_status else "driver-startup-probe-plain")
    return config_map(ENTRYPOINT, common.namespace, {"startup-probe.sh": text}, labels=labels)


def driver_daemonset(
    common: Common,
    settings: DriverCommon,
    target: DriverPod,
    template: Pod,
    *,
    labels: Mapping[str, str] | None = None,
    pod_labels: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Body:
    """The DaemonSet for TARGET, which runs TEMPLATE. LABELS, POD_LABELS and NOTES, on pods, are the driver's own."""
    shared = {**component(settings), "nvidia.com/precompiled": str(settings.precompiled).lower(), **target.labels}
    built, of_pod = toolkit_labels(target.toolkit) if target.toolkit else ({}, {})
    return daemonset(
        common,
        target.name,
        template,
        app=target.app,
        deploy="vgpu-manager" if settings.type == HOST_MANAGER else "driver",
        labels={**shared, **built, **(labels or {})},
        pod_labels={**shared, **of_pod, **(pod_labels or {})},
        annotations={keys.SCC: target.account},
        pod_annotations={"kubectl.kubernetes.io/default-container": MAIN, **(notes or {})},
        update="on-delete",
    )
