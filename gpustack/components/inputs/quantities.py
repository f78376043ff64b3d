"""Comparing Kubernetes quantities: which of 1500m and 2, of 1Gi and 1G is more."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

UNITS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
UNITS |= {unit: Fraction(1000 ** (power + 1)) for power, unit in enumerate("kMGTPE")}
UNITS |= {f"{unit}i": Fraction(1024 ** (power + 1)) for power, unit in enumerate("KMGTPE")}
QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")


def size(quantity: int | str) -> Fraction:
    """How much QUANTITY is. Policies hold only what the API server reads (policy/types.py)."""
    found = QUANTITY.fullmatch(str(quantity))
    if found is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, exponent, unit = found.groups()
    return Fraction(f"{number.rstrip('.')}{exponent or ''}") * UNITS[unit or ""]


def most(*resources: dict[str, Any] | None) -> dict[str, Any] | None:
    """For each resource the largest of RESOURCES' requests and the largest of their limits; None where all are empty.

    A limit below the request that another one brought is raised to it: the API server refuses the pair otherwise.
    """
    merged: dict[str, dict[str, Any]] = {}
    for part in ("requests", "limits"):
        for found in resources:
            for name, quantity in ((found or {}).get(part) or {}).items():
                known = merged.setdefault(part, {}).get(name)
                if known is None or size(quantity) > size(known):
                    merged[part][name] = quantity
    limits = merged.get("limits", {})
    for name, request in merged.get("requests", {}).items():
        if name in limits and size(request) > size(limits[name]):
            limits[name] = request
    return merged or None
