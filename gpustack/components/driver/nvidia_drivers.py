"""`drivers`: several drivers in one cluster, each on nodes of its own (operator.md 10).

The pods are those of driver_pod.py, with the rules for `drivers`. What is particular here: labels, tolerations,
priority and the like are the driver's own and not those of `daemonsets`; rights are made per driver and OS, under the
operator's names; and the ConfigMap of the startup probe, over which the operator's drivers fight, is there once.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.daemonset import with_revision
from ..parts.operand import operand_access
from .driver import driver_daemonset, startup_probe
from .driver_pod import component, pod
from .driver_settings_inputs import ACCOUNT
from .driver_volumes import HOST_MANAGER, trusted_authorities
from .nvidia_drivers_inputs import NvidiaDriversInputs

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
    """The DaemonSets of all drivers. HOST_ROOT is not set: only the volume follows `hostPaths.rootFS` (10.3)."""
    common, whole = inputs.common, inputs.common.traits.driver_labels_on_daemonset
    for driver in inputs.drivers:
        settings, notes = driver.settings, driver.annotations
        own = common.model_copy(
            update={
                "labels": {},
                "annotations": notes if whole else {},
                "priority_class": driver.priority_class,
                "tolerations": driver.tolerations,
                "security_context": driver.security_context,
                "root_fs": "/",
            }
        )
        labels = {**STATE, **driver.labels} if whole else STATE
        for target in driver.pods:
            template, more = pod(common, settings, target), {} if whole else notes
            yield driver_daemonset(own, settings, target, template, labels=labels, pod_labels=driver.labels, notes=more)
