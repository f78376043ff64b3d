"""Does a field of the operator's API change what is rendered?

A field has an effect when another valid value of it, in a policy where what it is about is on, changes the objects of
some component. To ask that of six hundred fields in seconds, nothing is compiled as a whole: components whose inputs
are equal render equal objects, so only the others are rendered, and those without cdk8s.

What is tried stands in coverage.yaml: policies, an item for each list, what a field needs to count, and values where
one of the right type won't do.
"""

from __future__ import annotations

import copy
import fnmatch
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from gpustack.catalog.fields import FieldFacts, fields
from gpustack.components.parts.common_inputs import Inputs
from gpustack.components.registry import REGISTRY
from gpustack.model import Body, GpustackError
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part

Tree = dict[str, Any]
PREFIX = {"ClusterPolicy": "", "NVIDIADriver": "drivers[].", "GPUCluster": "gpuCluster."}
"""Where the fields of a kind are in a policy."""

GENERIC: Mapping[str, list[Any]] = {
    "boolean": [True, False],
    "integer": [7, 1, 51000],
    "int-or-string": [7],
    "array": [["changed"], [5]],
    "object": [{"changed": "1"}],
    "string": ["changed", "/changed", "7s", "7"],
}
"""Other values by type. Which of them are valid is for the language to say."""


@dataclass(frozen=True)
class Policy:
    """A policy in which fields are tried: as its author writes it, as it is compiled, and the inputs of the components
    that are on.
    """

    name: str
    spec: Tree
    effective: ClusterPolicySpec = field(repr=False)
    inputs: dict[str, Inputs] = field(repr=False)

    @classmethod
    def of(cls, name: str, spec: Tree) -> Policy:
        """The policy that says SPEC. Raises ValidationError or GpustackError where it can't be rendered."""
        merged, findings = assemble([Part("policy", name, spec)])
        if findings:
            raise GpustackError(*findings)
        effective = ClusterPolicySpec.model_validate(merged.spec)
        found = {entry.id: inputs for entry in REGISTRY if (inputs := entry.inputs(effective)) is not None}
        return cls(name, spec, effective, found)


@functools.cache
def settings() -> Tree:
    """What coverage.yaml says."""
    found: Tree = yaml.safe_load(Path(__file__).with_name("coverage.yaml").read_text(encoding="utf-8"))
    return found


@functools.cache
def policies(kind: str) -> tuple[Policy, ...]:
    """The policies in which fields of KIND are tried, in this order; each says more than what it is based on."""
    specs: dict[str, Tree] = {}
    for name, entry in settings()["policies"].items():
        specs[name] = copy.deepcopy(specs[entry["based_on"]]) if "based_on" in entry else {}
        for path, value in entry["says"].items():
            put(specs[name], path, copy.deepcopy(value))
    wanted = [name for name, entry in settings()["policies"].items() if kind in entry.get("for", [])]
    return tuple(Policy.of(name, specs[name]) for name in wanted)


def effect(kind: str, path: str) -> str | None:
    """The policy in which another value of the field PATH of KIND changes what is rendered, or None."""
    where, facts = PREFIX[kind] + path, fields(kind)[path]
    for base in policies(kind):
        start = prepared(base, where)
        if any(differ(start, changed) for changed in variants(start, where, facts)):
            return base.name
    return None


def prepared(base: Policy, path: str) -> Policy:
    """BASE with what the field PATH needs to count: an item in each list on the way to it, and what is listed."""
    needs: Tree = {}
    for index in range(len(path)):
        place = path[: index + 2]
        if place.endswith("[]") and get(base.spec, place) is None:
            needs[place.removesuffix("[]")] = [matching("items", place)]
    for key, value in (matching("needs", path) or {}).items():
        needs[key.replace("^", path.rpartition(".")[0])] = value
    if not needs:
        return base
    spec = copy.deepcopy(base.spec)
    for key, value in needs.items():
        put(spec, key, copy.deepcopy(value))
    return Policy.of(base.name, spec)


def variants(start: Policy, path: str, facts: FieldFacts) -> Iterator[Policy]:
    """Valid policies that differ from START in the field PATH alone."""
    now = get(start.spec, path)
    for value in matching("values", path) or facts.enum or GENERIC[facts.type]:
        if value == now:
            continue
        spec = copy.deepcopy(start.spec)
        put(spec, path, value)
        try:
            yield Policy.of(start.name, spec)
        except (ValidationError, GpustackError):
            continue


def differ(one: Policy, other: Policy) -> bool:
    """Whether some component renders other objects for the one policy than for the other."""
    for component in one.inputs.keys() | other.inputs.keys():
        old, new = one.inputs.get(component), other.inputs.get(component)
        if old != new and (old is None or new is None or bodies(component, old) != bodies(component, new)):
            return True
    return False


_bodies: dict[tuple[str, str], list[Body]] = {}


def bodies(component: str, inputs: Inputs) -> list[Body]:
    """What COMPONENT renders of INPUTS, without a construct tree: `manifests` reads its inputs and nothing else."""
    key = (component, inputs.digest())
    if key not in _bodies:
        entry = next(entry for entry in REGISTRY if entry.id == component)
        _bodies[key] = list(entry.type().manifests(cast(Any, None), inputs))
    return _bodies[key]


def matching(table: str, path: str) -> Any:
    """The value of the first glob in TABLE of coverage.yaml that PATH matches, or None. Only * and ? are special."""
    return next((value for glob, value in settings()[table].items() if matches(path, glob)), None)


def matches(path: str, glob: str) -> bool:
    """Whether PATH matches GLOB, in which only * and ? are special."""
    return fnmatch.fnmatchcase(path, glob.replace("[", "[[]"))


def steps(path: str) -> list[str | int]:
    """PATH as steps; "[]" is the first item."""
    found: list[str | int] = []
    for part in path.split("."):
        name, brackets, _ = part.partition("[]")
        found += [name, 0] if brackets else [name]
    return found


def get(tree: Any, path: str) -> Any:
    """The value at PATH of TREE, or None."""
    for step in steps(path):
        if isinstance(step, int):
            tree = tree[step] if isinstance(tree, list) and len(tree) > step else None
        else:
            tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def put(tree: Any, path: str, value: Any) -> None:
    """Set PATH of TREE to VALUE, with the sections that this takes; null is absence, as in a policy."""
    *way, last = steps(path)
    for step in way:
        tree = tree[step] if isinstance(step, int) else tree.setdefault(step, {})
    tree[last] = value
