"""Every field of a policy that holds a scalar, as a spec around a value: for tests that hold for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpustack.policy.help.describe import nested
from gpustack.policy.language.base import Section
from gpustack.policy.language.spec import ClusterPolicySpec

Steps = tuple[str | int, ...]

REQUIRED: dict[str, Any] = {
    "alert": "XidFatal",
    "command": ["true"],
    "conditions": {"example.com/a": "True"},
    "encryptedData": {"a": "AgA" + "A" * 700},
    "image": "registry.example.com/a:1",
    "keys": {"a": {"key": "a"}},
    "schedule": "@hourly",
    "store": {"name": "a"},
    "taint": {"key": "example.com/a", "effect": "NoSchedule"},
    "effect": "NoSchedule",
    "hours": 6,
    "indices": [0],
    "key": "example.com/a",
    "kind": "ConfigMap",
    "kubernetesVersion": "1.34",
    "labels": {"app": "a"},
    "max": 1,
    "min": 0,
    "name": "a",
    "nodeClass": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"},
    "nodeSelectorTerms": [],
    "operator": "Exists",
    "origin": "a-7d8f6c5b9",
    "preference": {},
    "reason": "a",
    "release": "v26.7.0",
    "replicas": 2,
    "secretName": "a",
    "resourceName": "nvidia.com/a",
    "selector": "10DE:2331",
    "start": "22:00",
    "text": "true",
    "then": "evict",
    "type": "Localhost",
    "until": "2027-03-31",
    "url": "example.com/a:1",
    "values": ["a"],
    "value": "a",
    "weight": 1,
}
"""A value for each field that a section, or an item of a list, can't be without."""


@dataclass(frozen=True)
class Leaf:
    """A scalar field: its path (0 for an item of a list, `cpu` for a key of a map), the model that declares it and what
    its annotation says."""

    path: Steps
    declared: str
    kind: str


def leaves(model: type[Section] = ClusterPolicySpec, above: Steps = ()) -> Iterator[Leaf]:
    """Every scalar field below MODEL."""
    for name, field in model.model_fields.items():
        kind = str(field.annotation)
        path = (*above, name, *([0] if "list[" in kind else []))
        if inner := nested(field.annotation):
            for part in inner:
                yield from leaves(part, path)
        else:
            declares = next(base for base in reversed(model.__mro__) if name in getattr(base, "model_fields", {}))
            yield Leaf((*path, "cpu") if "dict[" in kind else path, f"{declares.__name__}.{name}", kind)


def around(path: Steps, value: Any, model: type[Section] | None = ClusterPolicySpec) -> Any:
    """Data of MODEL with VALUE at PATH, and with what the sections on the way can't be without."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return [around(tuple(rest), value, model)]
    if model is None or step not in model.model_fields:
        return {step: around(tuple(rest), value, None)}
    found = {name: REQUIRED[name] for name, field in model.model_fields.items() if field.is_required()}
    inner = nested(model.model_fields[step].annotation)
    return {**found, step: around(tuple(rest), value, inner[0] if inner else None)}
