"""The resources of containers that run one after the other: the most that any of them asks for."""

from __future__ import annotations

from typing import Any

from ...text.quantities import size


def most(*resources: dict[str, Any] | None) -> dict[str, Any] | None:
    """For each resource the largest of RESOURCES' requests and the largest of their limits; None where all are empty.

    A limit below the request that another one brought is raised to it: the API server refuses the pair otherwise.
    """
    merged: dict[str, dict[str, Any]] = {}
    for part in ("requests", "limits"):
        for one in resources:
            for name, quantity in ((one or {}).get(part) or {}).items():
                known = merged.setdefault(part, {}).get(name)
                if known is None or size(quantity) > size(known):
                    merged[part][name] = quantity
    limits = merged.get("limits", {})
    for name, request in merged.get("requests", {}).items():
        if name in limits and size(request) > size(limits[name]):
            limits[name] = request
    return merged or None
