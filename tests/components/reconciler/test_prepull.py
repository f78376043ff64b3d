"""The DaemonSets that pull the images of drivers beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.api import keys
from gpustack.cluster.resolve import resolve
from gpustack.components import Driver, NvidiaDrivers, Prepull
from gpustack.components.driver import driver_inputs, nvidia_drivers_inputs
from gpustack.components.reconciler import prepull_inputs
from gpustack.model import Body
from tests.components.common import render
from tests.components.reconciler.common import POOL, policy, specs

ON: dict[str, Any] = {"prepull": {}}


def pulling(reconciler: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """The DaemonSets, by the name of the driver's."""
    found = prepull_inputs.from_cluster(resolve(policy(ON if reconciler is None else reconciler, **sections)))
    bodies = render(Prepull, found) if found else {}
    return {key.removeprefix("DaemonSet/").removesuffix("-images"): body for key, body in bodies.items()}


def drivers(**sections: Any) -> dict[str, Body]:
    """The drivers' DaemonSets by name."""
    cluster = resolve(policy(ON, **sections))
    made: dict[str, Body] = {}
    if found := driver_inputs.from_cluster(cluster):
        made |= render(Driver, found)
    if several := nvidia_drivers_inputs.from_cluster(cluster):
        made |= render(NvidiaDrivers, several)
    return {key.partition("/")[2]: body for key, body in made.items() if key.startswith("DaemonSet/")}


def pod(body: Body) -> Any:
    """The pod that BODY runs."""
    return body["spec"]["template"]["spec"]


def images(body: Body) -> set[str]:
    """All images of BODY."""
    return {each["image"] for each in (*pod(body).get("initContainers", ()), *pod(body)["containers"])}


MANY: dict[str, Any] = {
    "gds": {"enabled": True},
    "gdrcopy": {"enabled": True},
    "driver": {"rdma": {"enabled": True}, "imagePullSecrets": ["registry"]},
    "nodePools": [POOL, {"name": "b", "os": "ubuntu24.04"}],
    "daemonsets": {"tolerations": [{"key": "x", "operator": "Exists"}]},
}
SEVERAL: dict[str, Any] = {
    "driver": {"useNvidiaDriverCRD": True},
    "drivers": [
        {"name": "one", "nodeSelector": {"a": "b"}},
        {"name": "other", "default": True, "version": "580.95.05"},
    ],
}


@pytest.mark.parametrize("sections", [{}, MANY, SEVERAL], ids=["plain", "many", "several"])
def test_what_is_pulled(sections: dict[str, Any]) -> None:
    """All images of each driver, once each, on the nodes where it runs, by the same secrets; a driver pod is not looked
    for among them."""
    own, others = pulling(**sections), drivers(**sections)
    assert own.keys() == others.keys() != set()
    for name, body in own.items():
        assert images(body) == images(others[name])
        assert len(pod(body)["containers"]) == len(images(body))
        for key in ("nodeSelector", "tolerations", "imagePullSecrets", "priorityClassName"):
            assert pod(body).get(key) == pod(others[name]).get(key)
        labels = body["spec"]["template"]["metadata"]["labels"]
        assert keys.COMPONENT not in labels
        assert body["spec"]["selector"]["matchLabels"].items() < labels.items()
    selectors = [tuple(sorted(body["spec"]["selector"]["matchLabels"].items())) for body in own.values()]
    assert len(set(selectors)) == len(selectors)


@pytest.mark.parametrize("openshift", [False, True])
def test_nothing_but_an_image(openshift: bool) -> None:
    """No right, no mount, nothing of the host, no GPU and next to no resources; replaced by Kubernetes itself."""
    cluster = {"cluster": {"platform": "openshift", "openshift": {"version": "4.20"}}} if openshift else {}
    pools = [{"name": "a", "os": "rhcos4.20" if openshift else "ubuntu22.04"}]
    for body in pulling(**cluster, nodePools=pools).values():
        found = pod(body)
        assert not {"hostPID", "hostNetwork", "volumes", "serviceAccountName", "initContainers"} & found.keys()
        assert found["automountServiceAccountToken"] is False
        for each in found["containers"]:
            security = each["securityContext"]
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert (security["runAsNonRoot"], security["readOnlyRootFilesystem"]) == (True, True)
            assert ("runAsUser" in security) != openshift  # there the namespace says which
            assert each["command"][0] == "sleep"
            assert each["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
            assert each["resources"]["limits"] == {"memory": "32Mi"}
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}
        assert body["spec"]["updateStrategy"] == strategy


def test_node_policies_name_the_images() -> None:
    """By the label that the pods have, another one for other images and the same for what changes none; without the
    field, and where no driver is rendered, there is nothing of it."""
    sections: dict[str, Any] = {"driver": {"version": "580.95.05"}}
    ((name, body),) = pulling(**sections).items()
    label = body["spec"]["template"]["metadata"]["labels"][keys.IMAGES]
    (spec,) = specs({"prepull": {"timeoutSeconds": 600, "then": "begin"}}, **sections).values()
    (said,) = spec["driver"]["daemonSets"]
    assert (said["name"], said["images"]) == (name, label)
    assert spec["upgrade"]["prepull"] == {"timeoutSeconds": 600, "then": "begin"}
    (other,) = pulling(driver={"version": "580.105.08"}).values()
    assert other["spec"]["template"]["metadata"]["labels"][keys.IMAGES] != label
    (same,) = pulling(driver={**sections["driver"], "env": [{"name": "A", "value": "b"}]}).values()
    assert same == body
    (without,) = specs({}, **sections).values()
    assert "images" not in without["driver"]["daemonSets"][0]
    assert "prepull" not in without["upgrade"]
    for most in ("20%", 3):
        (some,) = pulling({"prepull": {"maxUnavailable": most}}, **sections).values()
        assert some["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": most}
    assert pulling({}) == pulling(driver={"enabled": False}) == {}
