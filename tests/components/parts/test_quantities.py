"""The most of several containers' resources."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpustack.components.dra.dra_driver_inputs import most
from gpustack.text.quantities import size

UNITS = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2"])
QUANTITIES = st.builds(lambda number, unit: f"{number}{unit}", st.integers(0, 10**6), UNITS)
RESOURCES = st.dictionaries(
    st.sampled_from(["requests", "limits"]), st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES)
)


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
