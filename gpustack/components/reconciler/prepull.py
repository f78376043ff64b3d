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
from ..parts.kube import metadata
from ..parts.pod import RESTRICTED, Env, sparse
from .prepull_inputs import PrepullInputs

APP = "gpustack-images"
DRIVER = "app.kubernetes.io/instance"
"""Label: whose images they are."""
NOBODY = 65534
"""The user that the pods run as; on OpenShift the namespace says which."""
SLEEP = ["sleep", "2147483647"]
NO_GPU = Env({"NVIDIA_VISIBLE_DEVICES": "void"}).body()
"""Where NVIDIA's is the default runtime, images that ask for GPUs get none."""
ALIKE = ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")
"""What the pods have in common with the driver's."""
ALONE = {"automountServiceAccountToken": False, "enableServiceLinks": False, "terminationGracePeriodSeconds": 1}
RESOURCES = {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}}


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
    nodes = {key: value for key, value in (spec.get("affinity") or {}).items() if key == "nodeAffinity"}
    selector = {"app": APP, DRIVER: short(meta["name"])}
    user = {} if inputs.openshift else {"runAsUser": NOBODY, "runAsGroup": NOBODY}
    run = {"command": SLEEP, "env": NO_GPU, "resources": RESOURCES, "securityContext": {**RESTRICTED, **user}}
    containers = [
        {**{key: each[key] for key in ("name", "image", "imagePullPolicy") if key in each}, **run}
        for each in sorted(_images(body).values(), key=lambda one: str(one["name"]))
    ]
    same = {key: spec[key] for key in ALIKE if key in spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(f"{meta['name']}-images", meta["namespace"], labels=selector),
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": metadata("", labels={**selector, keys.IMAGES: images(body)}),
                "spec": {**same, **sparse(affinity=nodes), **ALONE, "containers": containers},
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": inputs.at_once}},
        },
    }
