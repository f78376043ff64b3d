"""Who owns which field of an object: what the API server keeps of each manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from tests.control_plane.api import Body


def shared_fields(body: Body, engine: str) -> list[str]:
    """The fields of an object that two managers own, as `one, other: path`; none of the status.

    Managers whose names begin with that of the ENGINE are one: Argo CD writes rights twice, by `kubectl auth reconcile`
    and by apply.
    """
    entries = [one for one in body["metadata"].get("managedFields", []) if one.get("subresource") != "status"]
    owned = [
        (f"{one['manager']} ({one['operation']})", set(leaves(one["fieldsV1"])))
        for one in entries
        if one["operation"] == "Apply" or not one["manager"].startswith(engine)
    ]
    return [
        f"{first}, {second}: {path}"
        for (first, one), (second, other) in combinations(owned, 2)
        for path in sorted(one & other)
    ]


def leaves(fields: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths in a set of fields that have nothing below them."""
    below = {key: value for key, value in fields.items() if key != "."}
    if not below:
        yield path
    for key, value in below.items():
        yield from leaves(value, f"{path}.{key.removeprefix('f:')}")
