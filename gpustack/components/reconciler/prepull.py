"""Images of drivers on the nodes before these are taken out of service (`reconciler.prepull`).

Solves: a node that is emptied before the image of its new driver is there stands idle while that is pulled, and without
a driver where it can't be. So the images of each driver DaemonSet are pulled by pods of another one, on the same nodes,
which run them and do nothing: they have no rights, no mounts and nothing of the host. A pod that is ready has them; by
its label the reconciler knows which.

Nothing but its image may be needed of a container, so all run `sleep`: every driver's image has a shell, and the driver
manager's, whose base has none, brings busybox (reconciler.md D16).
"""

import hashlib
from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..driver import driver, nvidia_drivers
from ..driver.driver_inputs import DriverInputs
from ..driver.nvidia_drivers_inputs import NvidiaDriversInputs
from ..parts.pod import RESTRICTED
from ..parts.template import template
from .prepull_inputs import PrepullInputs

NOBODY = 65534
"""The user that the pods run as; on OpenShift the namespace says which."""
ALIKE = ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")


class Prepull(Component[PrepullInputs]):
    """A DaemonSet for each of a driver."""

    stage = "reconciler"

    def manifests(self, inputs: PrepullInputs) -> Iterator[Body]:
        for body in drivers(inputs.driver, inputs.drivers):
            yield daemonset(body, inputs)


def drivers(section: DriverInputs | None, several: NvidiaDriversInputs | None) -> Iterator[Body]:
    """The driver DaemonSets that the reconciler rolls."""
    own, others = driver.daemonsets(section) if section else (), nvidia_drivers.daemonsets(several) if several else ()
    for body in (*own, *others):
        if body["spec"]["template"]["metadata"]["labels"].get(keys.COMPONENT) == "nvidia-driver":
            yield body


def images(body: Body) -> str:
    """Names the images of the DaemonSet BODY."""
    return short(" ".join(sorted(_images(body))))


def short(text: str) -> str:
    """TEXT as a label's value."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _images(body: Body) -> dict[str, Body]:
    """The containers of BODY, the first with each image."""
    spec = body["spec"]["template"]["spec"]
    return {each["image"]: each for each in reversed([*spec.get("initContainers", ()), *spec["containers"]])}


def daemonset(body: Body, inputs: PrepullInputs) -> Body:
    """The DaemonSet that pulls the images of BODY."""
    meta, spec = body["metadata"], body["spec"]["template"]["spec"]
    selector = {"app": "gpustack-images", "app.kubernetes.io/instance": short(meta["name"])}  # whose images they are
    security = RESTRICTED if inputs.openshift else {**RESTRICTED, "runAsUser": NOBODY, "runAsGroup": NOBODY}
    containers = [
        template(__file__, "container", **{"imagePullPolicy": "", **each, "security": security})
        for each in sorted(_images(body).values(), key=lambda one: str(one["name"]))
    ]
    return template(
        __file__,
        "daemonset",
        **{key: spec.get(key) for key in ALIKE},
        name=meta["name"],
        namespace=meta["namespace"],
        selector=selector,
        labels={**selector, keys.IMAGES: images(body)},
        affinity={key: value for key, value in spec.get("affinity", {}).items() if key == "nodeAffinity"},
        containers=containers,
        at_once=inputs.at_once,
    )
