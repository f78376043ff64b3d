"""What a policy carries into the template of a DaemonSet, and when it doesn't (docs/revisions.md)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.api import keys
from gpustack.cluster.resolve import resolve
from gpustack.components import MigManager
from gpustack.components.driver import nvidia_drivers_inputs as nvidia_drivers
from gpustack.components.driver.nvidia_drivers import daemonsets
from gpustack.components.mig.mig_manager_inputs import from_cluster
from gpustack.components.parts.carried import template_hash
from gpustack.model import Body
from gpustack.policy.language.carried import called
from tests.components.common import render, spec

NAME = "nvidia-mig-manager"
WAIT = "initContainers.toolkit-validation.args.0"


def manager(**carried: Any) -> Body:
    """The DaemonSet of the MIG manager that is CARRIED."""
    entry = [{"name": NAME, "origin": "nvidia-mig-manager-1", **carried}] if carried else []
    inputs = from_cluster(resolve(spec(carried=entry)))
    assert inputs is not None
    return render(MigManager, inputs)[f"DaemonSet/{NAME}"]


def pod(body: Body) -> Body:
    """The PodSpec of BODY."""
    found: Body = body["spec"]["template"]["spec"]
    return found


def driver(**carried: Any) -> Body:
    """The DaemonSet of the only one of `drivers`."""
    made = spec(
        driver={"useNvidiaDriverCRD": True},
        drivers=[{"name": "a", "default": True}],
        nodePools=[{"name": "p", "os": "ubuntu22.04"}],
    )
    plain = nvidia_drivers.from_cluster(resolve(made))
    assert plain is not None
    entry = {"name": plain.drivers[0].pods[0].name, "origin": "x", **carried}
    inputs = nvidia_drivers.from_cluster(resolve(made.model_copy(update={"carried": spec(carried=[entry]).carried})))
    assert inputs is not None
    return next(daemonsets(inputs))


def test_a_text_takes_the_place_of_ours() -> None:
    """Word for word, and the DaemonSet says what it was taken from."""
    body = manager(texts={WAIT: {"text": "sleep 1\n"}})
    assert pod(body)["initContainers"][0]["args"] == ["sleep 1\n"]
    assert body["metadata"]["annotations"][keys.CARRIED] == "nvidia-mig-manager-1"
    assert keys.CARRIED not in body["spec"]["template"]["metadata"].get("annotations", {})


def test_tolerations_and_volumes_are_as_they_were() -> None:
    """Tolerations replace the policy's; volumes that aren't named follow in their order."""
    body = manager(tolerations=[{"operator": "Exists"}], volumes=["cdi-root", "host-sys"])
    assert pod(body)["tolerations"] == [{"operator": "Exists"}]
    before = [volume["name"] for volume in pod(manager())["volumes"]]
    rest = [name for name in before if name not in ("cdi-root", "host-sys")]
    assert [volume["name"] for volume in pod(body)["volumes"]] == ["cdi-root", "host-sys", *rest]


@pytest.mark.parametrize(
    "carried",
    [
        {"texts": {"initContainers.toolkit-validation.args.1": {"text": "x"}}},
        {"texts": {"containers.other.args.0": {"text": "x"}}},
        {"without": ["toolkit-validation"]},
        {"without": ["gpustack-wait-for-driver"]},
        {"volumes": ["nothing"]},
        {"digest": "1"},
    ],
    ids=str,
)
def test_what_has_no_place_is_not_carried(carried: dict[str, Any]) -> None:
    """Nothing of the entry is, so that no half of it runs; only containers of gpustack can be left out."""
    assert manager(**carried, tolerations=[]) == manager()


def test_it_holds_while_the_template_is_the_same() -> None:
    """With the hash of what it makes it is carried, with another it isn't, and without it always is."""
    texts = {WAIT: {"text": "sleep 1"}}
    whole = manager(texts=texts)
    right = template_hash(whole["spec"]["template"])
    assert manager(texts=texts, template=right) == whole
    assert manager(texts=texts, template="0" * 16) == manager()


def test_a_driver_keeps_its_name_and_digest() -> None:
    """The name is in its label and selector too, and stays when everything else has dropped out."""
    name = "nvidia-gpu-driver-ubuntu22.04-f58848b7c"
    body = driver(called=name, digest="7")
    labels = body["spec"]["template"]["metadata"]["labels"]
    assert body["metadata"]["name"] == body["spec"]["selector"]["matchLabels"]["app"] == labels["app"] == name
    variables = [each for c in [*pod(body)["initContainers"], *pod(body)["containers"]] for each in c.get("env", [])]
    assert {each["value"] for each in variables if each["name"] == "DRIVER_CONFIG_DIGEST"} == {"7"}
    later = driver(called=name, digest="7", template="0" * 16)
    assert later["metadata"]["name"] == name
    assert keys.CARRIED not in later["metadata"]["annotations"]


def test_other_names_are_their_own() -> None:
    """`called` is looked up by what gpustack calls the DaemonSet."""
    made = spec(carried=[{"name": "a", "origin": "x", "called": "b"}])
    assert (called(made, "a"), called(made, "b"), called(made, "c")) == ("b", "b", "c")
