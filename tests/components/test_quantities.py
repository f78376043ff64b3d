"""Quantities are compared by how much they are, whatever they are written in."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.components.inputs.quantities import most, size

UNITS = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2"])
QUANTITIES = st.builds(lambda number, unit: f"{number}{unit}", st.integers(0, 10**6), UNITS)
RESOURCES = st.dictionaries(
    st.sampled_from(["requests", "limits"]), st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES)
)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (2, Fraction(2)),
        ("1500m", Fraction(3, 2)),
        ("1.5", Fraction(3, 2)),
        ("1.", Fraction(1)),
        ("1Gi", Fraction(2**30)),
        ("1G", Fraction(10**9)),
        ("1k", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("12E-1", Fraction(6, 5)),
    ],
)
def test_units(quantity: int | str, expected: Fraction) -> None:
    """Decimal and binary units and exponents, as the API server reads them."""
    assert size(quantity) == expected


def test_what_is_no_quantity() -> None:
    """Policies hold quantities only, so anything else is a defect."""
    with pytest.raises(ValueError, match="1GB"):
        size("1GB")


@given(st.lists(RESOURCES, max_size=3))
def test_the_most_holds_all(resources: list[dict[str, dict[str, str]]]) -> None:
    """Every request and limit fits into the result, which has no other resource and no limit below its request."""
    found = most(*resources) or {}
    for part in ("requests", "limits"):
        given_here = [(name, quantity) for each in resources for name, quantity in each.get(part, {}).items()]
        assert set(found.get(part, {})) == {name for name, _ in given_here}
        assert all(size(quantity) <= size(found[part][name]) for name, quantity in given_here)
    limits = found.get("limits", {})
    assert all(size(request) <= size(limits.get(name, request)) for name, request in found.get("requests", {}).items())


def test_nothing_is_none() -> None:
    """Without resources there is no field."""
    assert most(None, {}) is None
