"""What is said about `carried` that isn't what it says, has no place, or has no purpose any more."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.drivers.carried import what_is_carried_has_a_place, what_is_carried_still_holds
from gpustack.checks.subjects import Render
from gpustack.model import Finding, Resource
from tests.checks.snippets import rule_of
from tests.components.common import spec

NAME = "nvidia-mig-manager"


def resource(name: str, annotations: dict[str, str] | None = None) -> Resource:
    """A DaemonSet NAME with one init container of gpustack and one text."""
    init = {"name": "gpustack-wait-for-driver", "image": "i"}
    pod = {"initContainers": [init], "containers": [{"name": "a", "args": ["x"]}], "volumes": [{"name": "v"}]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"template": {"spec": pod}},
    }
    return Resource(body, "operands", "test")


def told(rule: Any, carried: dict[str, Any], *rendered: Resource) -> list[Finding]:
    """What RULE says where an entry is CARRIED."""
    entry = {"name": NAME, "origin": "x", **carried}
    return list(rule_of(rule).findings(Render(spec(carried=[entry]), "1.34", (), (), lambda: rendered)))


@pytest.mark.parametrize(
    ("carried", "path"),
    [
        ({"called": "other"}, "spec.carried[0].called"),
        ({"name": "gone"}, "spec.carried[0].name"),
        ({"without": ["a"]}, "spec.carried[0].without[0]"),
        ({"without": ["gpustack-wait-for-driver", "gpustack-x"]}, "spec.carried[0].without[1]"),
        ({"texts": {"containers.a.args.1": {"text": "y"}}}, 'spec.carried[0].texts["containers.a.args.1"]'),
        ({"volumes": ["v", "w"]}, "spec.carried[0].volumes[1]"),
        ({"digest": "1"}, "spec.carried[0].digest"),
    ],
    ids=str,
)
def test_what_has_no_place_is_refused(carried: dict[str, Any], path: str) -> None:
    """Each with its place in the policy, and what to do; nothing else is said about it."""
    (hit,) = told(what_is_carried_has_a_place, carried, resource(NAME))
    assert hit.path == path
    assert hit.remedy
    if carried.keys() != {"called"}:
        assert told(what_is_carried_still_holds, carried, resource(NAME)) == []


def test_what_has_dropped_out_is_told_once() -> None:
    """An entry whose template is another is of no use; one that holds, or is only a name, is."""
    carried = {"texts": {"containers.a.args.0": {"text": "y"}}}
    (hit,) = told(what_is_carried_still_holds, carried, resource(NAME))
    assert hit.path == "spec.carried[0]"
    held = resource(NAME, {"gpustack.dev/carried": "x"})
    assert told(what_is_carried_still_holds, carried, held) == told(what_is_carried_has_a_place, carried, held) == []
    assert told(what_is_carried_still_holds, {"called": "b"}, resource("b")) == []


def test_a_name_is_kept_where_the_rest_goes() -> None:
    """The remedy says so: taking the whole entry out would rename the DaemonSet."""
    carried = {"called": "b", "texts": {"containers.a.args.0": {"text": "y"}}}
    (hit,) = told(what_is_carried_still_holds, carried, resource("b"))
    assert "b" in hit.remedy
    assert "called" in hit.remedy
