"""The verdict on a rendered object, and what a person is told."""

from __future__ import annotations

import copy
import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog.kubernetes import MINORS
from gpustack.compiler import validate as module
from gpustack.compiler.validate import validate
from gpustack.model import Body, dotted
from tests.compiler.schema_objects import BAD, GOOD, UNKNOWN, crd, daemonset, obj


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("minor", [MINORS[0], MINORS[-1]])
def test_good_objects_pass(name: str, minor: str) -> None:
    """What a cluster takes passes, in the oldest and in the newest version."""
    assert validate(GOOD[name], minor) == []


@pytest.mark.parametrize("name", BAD)
def test_bad_objects_are_refused_in_their_place(name: str) -> None:
    """What a cluster would refuse or drop is one error that names the object and the place, and says what to do."""
    body, place = BAD[name]
    (finding,) = validate(body, "1.33")
    assert (finding.rule, finding.severity) == ("GPU901", "error")
    assert finding.what.startswith(f"{body['kind']} ")
    assert f": {place} " in finding.what
    assert finding.remedy


@pytest.mark.parametrize("name", UNKNOWN)
def test_kinds_without_schema_are_errors(name: str) -> None:
    """A kind that can't be checked is never skipped."""
    (finding,) = validate(UNKNOWN[name], "1.33")
    assert (finding.rule, finding.severity) == ("GPU902", "error")
    assert f"no schema for {UNKNOWN[name]['apiVersion']} {UNKNOWN[name]['kind']} in Kubernetes 1.33" in finding.what


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        (daemonset({"resources": {"requets": {}}}), "did you mean requests?"),
        (daemonset({"env": [{"name": "A", "value": 1}]}), 'put it in quotes: "1"'),
        (daemonset(pod={"nodeSelector": {"a": True}}), 'put it in quotes: "true"'),
        (daemonset(pod={"hostPID": "true"}), "remove the quotes: true"),
        (daemonset({"ports": [{"containerPort": "9400"}]}), "remove the quotes: 9400"),
        (daemonset({"args": "--version"}), "write a list, even of one item"),
        (obj("v1", "ConfigMap", data=None), "leave the field out"),
        (obj("apps/v1", "DeamonSet"), "did you mean apps/v1 DaemonSet?"),
        (obj("v1", "Secret", data={"key": "hunter 2!"}), "encode it, or use stringData in a Secret"),
    ],
)
def test_remedy_is_what_to_write(body: Body, remedy: str) -> None:
    """Where it is plain what was meant, the remedy says so."""
    assert [finding.remedy for finding in validate(body, "1.33")] == [remedy]


@pytest.mark.parametrize("kind", ["monitoring.coreos.com/v1 Probe", "kubevirt.io/v1 VirtualMachine"])
def test_a_kind_that_others_define_is_no_misspelt_one(kind: str) -> None:
    """A Probe is none of the kinds that are known; the group alone doesn't make it a PrometheusRule."""
    (finding,) = validate(obj(*kind.split()), "1.33")
    assert finding.remedy == f"run `gpustack schema add FILE` with the CustomResourceDefinition of {kind}"


def test_allowed_values_are_listed() -> None:
    """A finding lists the fields or values that are allowed there; of many fields the nearest."""
    (short,) = validate(daemonset({"resources": {"x": 1}}), "1.33")
    assert short.why == "allowed here: claims, limits, requests"
    (long,) = validate(daemonset(pod={"hostNetworks": True}), "1.33")
    assert "the nearest are hostNetwork," in long.why
    (value,) = validate(BAD["feature rule with an unknown operator"][0], "1.33")
    assert value.why.startswith("allowed: In, NotIn, InRegexp, ")
    (types,) = validate(BAD["boolean for int-or-string"][0], "1.33")
    assert "must be an integer or a string, not true" in types.what


# Source: Kubernetes' release notes of these versions.
NEW_FIELDS = [
    ("1.30", obj("v1", "Service", spec={"ports": [{"port": 1}], "trafficDistribution": "PreferClose"})),
    ("1.32", daemonset(pod={"resources": {"limits": {"cpu": "1"}}})),
    ("1.34", daemonset(pod={"hostnameOverride": "gpu"})),
]


@pytest.mark.parametrize(("since", "body"), NEW_FIELDS)
def test_new_fields_are_refused_for_older_versions(since: str, body: Body) -> None:
    """A field is refused for versions that would drop it, and the remedy names those that have it."""
    for minor in MINORS:
        findings = validate(body, minor)
        if MINORS.index(minor) >= MINORS.index(since):
            assert findings == []
        else:
            (finding,) = findings
            assert f"is not a field of Kubernetes {minor}" in finding.what
            assert f"Kubernetes {since} to {MINORS[-1]} has the field" in finding.remedy


def test_new_kinds_are_refused_for_older_versions() -> None:
    """A kind that a later version brought is named as such."""
    body = obj("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", spec={"policyName": "a"})
    assert validate(body, "1.30") == []
    (finding,) = validate(body, "1.29")
    assert finding.rule == "GPU902"
    assert finding.why == "Kubernetes has this kind from 1.30 to 1.37"


def test_all_mistakes_are_told_at_once_in_order() -> None:
    """One run names every mistake of an object, in the order of their places."""
    container = {
        "args": "a",
        "ports": [{"containerPort": str(n)} if n in (2, 10) else {"containerPort": n} for n in range(12)],
    }
    findings = validate(daemonset(container, {"one": 1, "two": 2}), "1.33")
    places = [finding.what.split(": ")[1].split()[0] for finding in findings]
    start = "spec.template.spec"
    inner = f"{start}.containers[0]"
    expected = [f"{start}.one", f"{start}.two", f"{inner}.args"]
    assert places == [*expected, f"{inner}.ports[2].containerPort", f"{inner}.ports[10].containerPort"]


def test_secrets_are_not_shown() -> None:
    """What stands in a Secret never reaches a log."""
    for body in (
        obj("v1", "Secret", data={"key": "hunter 2!"}),
        obj("v1", "Secret", type="hunter 2!", data="hunter 2!"),
    ):
        findings = validate(body, "1.33")
        assert findings
        assert "hunter" not in repr(findings)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"apiVersion": 1, "kind": "Pod"},
        {"apiVersion": "v1", "kind": ["Pod"]},
        {"apiVersion": "v1", "kind": "Pod", "metadata": "x", "spec": []},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {1: "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": datetime.date(2026, 1, 1)}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": b"x"}},
    ],
)
def test_anything_is_answered(body: Body) -> None:
    """Whatever somebody brings as an object is answered with findings, not with an exception."""
    findings = validate(body, "1.33")
    assert findings
    assert {finding.rule for finding in findings} <= {"GPU901"}


def test_refusal_stands_without_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the explaining library has nothing to say, the object is refused all the same."""
    monkeypatch.setattr("jsonschema.Draft7Validator.iter_errors", lambda self, body: iter(()))
    (finding,) = validate(obj("v1", "ConfigMap", x=1), "1.33")
    assert (finding.rule, finding.severity) == ("GPU901", "error")


def _closed(body: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Places of mappings in BODY that have a fixed set of fields."""
    free = {"limits", "requests", "nodeSelector", "labels", "matchLabels", "data", "stringData", "hard", "properties"}
    free |= {"vars", "annotations", "extendedResources", "matchExpressions", "default", "additionalProperties"}
    if isinstance(body, dict):
        if not path or path[-1] not in free:
            yield path
        for key, value in body.items():
            if key != "default":
                yield from _closed(value, (*path, key))
    elif isinstance(body, list):
        for number, value in enumerate(body):
            yield from _closed(value, (*path, number))


@given(st.sampled_from(sorted(GOOD)), st.data(), st.sampled_from(MINORS))
def test_unknown_fields_are_found_anywhere(name: str, data: st.DataObject, minor: str) -> None:
    """A field that nobody knows is refused in any mapping of any object in any version, at its place."""
    body = copy.deepcopy(GOOD[name])
    path = data.draw(st.sampled_from(list(_closed(body))))
    part: Any = body
    for step in path:
        part = part[step]
    part["unheardOf"] = 1
    (finding,) = validate(body, minor)
    assert f": {dotted((*path, 'unheardOf'))} is not a field" in finding.what


def test_crd_schemas_are_checked_to_any_depth() -> None:
    """The recursive part of a CustomResourceDefinition is strict at every depth."""
    schema: dict[str, Any] = {"type": "string", "patern": "x"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"p": schema}}
    (finding,) = validate(crd(schema), "1.33")
    assert ".patern is not a field" in finding.what
    assert finding.remedy == "did you mean pattern?"


def test_validators_are_built_once_and_lazily() -> None:
    """A validator is compiled for each kind that occurs, once; a stack of 75 objects costs as many as it has kinds."""
    module._validator.cache_clear()
    for number in range(25):
        for body in (daemonset(), obj("v1", "ConfigMap", data={"a": str(number)}), obj("v1", "ServiceAccount")):
            assert validate(body, "1.33") == []
    assert module._validator.cache_info().misses == 3


def test_good_objects_cost_no_explanation() -> None:
    """The library that explains is not even loaded while everything is fine."""
    program = (
        "import sys, json; from gpustack.compiler.validate import validate; before = set(sys.modules)\n"
        "assert not {'jsonschema', 'jsonschema_rs'} & before\n"
        f"assert validate(json.loads({json.dumps(json.dumps(GOOD['daemonset']))}), '1.33') == []\n"
        "assert 'jsonschema_rs' in sys.modules and 'jsonschema' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
