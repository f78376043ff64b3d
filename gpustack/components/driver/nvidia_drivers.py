"""`drivers`: several drivers in one cluster, each on nodes of its own (operator.md 10).

The pods are those of driver_pod.py, with the rules for `drivers`. What is particular here: labels, tolerations,
priority and the like are the driver's own and not those of `daemonsets`; rights are made per driver and OS, under the
operator's names; and the ConfigMap of the startup probe, over which the operator's drivers fight, is there once.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.common_inputs import Common
from ..parts.daemonset import daemonset, with_revision
from ..parts.operand import operand_access
from .driver import driver_labels, startup_probe
from .driver_pod import MAIN, component, pod
from .driver_settings_inputs import ACCOUNT, DriverPod
from .driver_volumes import HOST_MANAGER, trusted_authorities
from .nvidia_drivers_inputs import NvidiaDriverInputs, NvidiaDriversInputs

STATE = {"nvidia.com/gpu-operator.state": "state-driver"}
"""The operator's label on everything that belongs to an NVIDIADriver."""


class NvidiaDrivers(Component[NvidiaDriversInputs]):
    """The DaemonSets of all drivers, their startup probe, and the rights of each driver on each OS."""

    stage = "driver"

    def manifests(self, inputs: NvidiaDriversInputs) -> Iterator[Body]:
        common = inputs.common
        settings = [driver.settings for driver in inputs.drivers]
        on_nodes = next((each for each in settings if each.type != HOST_MANAGER), settings[0])
        if common.traits.driver_probe_script:
            yield startup_probe(common, {**component(on_nodes), **STATE})
        if any(each.trusted_ca for each in settings):
            yield trusted_authorities(common.namespace, STATE)
        for driver in inputs.drivers:
            for account in dict.fromkeys(target.account for target in driver.pods):
                yield from operand_access(common, account, like=ACCOUNT, labels=STATE, evicts=inputs.evicts)
        yield from (with_revision(body) if inputs.revisions else body for body in daemonsets(inputs))


def daemonsets(inputs: NvidiaDriversInputs) -> Iterator[Body]:
    """The DaemonSets of all drivers."""
    for driver in inputs.drivers:
        for target in driver.pods:
            yield driver_daemonset(inputs.common, driver, target)


def driver_daemonset(common: Common, driver: NvidiaDriverInputs, target: DriverPod) -> Body:
    """The DaemonSet of DRIVER for TARGET. HOST_ROOT is not set: only the volume follows `hostPaths.rootFS` (10.3)."""
    labels, of_pod = driver_labels(driver.settings, target)
    whole = common.traits.driver_labels_on_daemonset
    own = common.model_copy(
        update={
            "labels": {},
            "annotations": driver.annotations if whole else {},
            "priority_class": driver.priority_class,
            "tolerations": driver.tolerations,
            "security_context": driver.security_context,
            "root_fs": "/",
        }
    )
    return daemonset(
        own,
        target.name,
        pod(common, driver.settings, target),
        app=target.app,
        deploy="vgpu-manager" if driver.settings.type == HOST_MANAGER else "driver",
        labels={**labels, **STATE, **(driver.labels if whole else {})},
        pod_labels={**of_pod, **driver.labels},
        annotations={keys.SCC: target.account},
        pod_annotations={"kubectl.kubernetes.io/default-container": MAIN, **({} if whole else driver.annotations)},
        update="on-delete",
    )
