"""Quantities are compared by how much they are, and written as the API server writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.text.quantities import canonical, in_words, size, too_long, too_much

UNITS = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"])
QUANTITIES = st.builds(lambda number, unit: f"{number}{unit}", st.integers(0, 10**6), UNITS)


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


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (1, "1"),
        (0, "0"),
        ("0Gi", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("1000M", "1G"),
        ("1500M", "1500M"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1000Mi", "1000Mi"),
        ("0.5Ki", "512"),
        ("0.9765625Ki", "1k"),
        ("0.1Gi", "107374182400m"),
        ("10000", "10k"),
        ("1234567", "1234567"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("12E-1", "1200e-3"),
        ("0.1n", "1n"),
        ("+1", "1"),
        (".5", "500m"),
        ("1.", "1"),
    ],
)
def test_canonical_form(quantity: int | str, expected: str) -> None:
    """What Kubernetes gives back: Quantity.String() of apimachinery, whose rules are in its documentation."""
    assert canonical(quantity) == expected


@given(QUANTITIES)
def test_canonical_form_is_as_much(quantity: str) -> None:
    """Nothing is lost but parts of a nano, and a second time changes nothing."""
    written = canonical(quantity)
    assert size(quantity) <= size(written) < size(quantity) + Fraction(1, 10**9)
    assert canonical(written) == written


@pytest.mark.parametrize("quantity", ["1e1000000", "1E-999999999", "9" * 5000, f"0.{'1' * 5000}", 10**100, "1e65"])
def test_what_no_number_is_is_refused_at_once(quantity: int | str) -> None:
    """An exponent or digits that would take minutes and megabytes to work out are no quantity."""
    for read in (size, canonical):
        with pytest.raises(ValueError, match="not a quantity"):
            read(quantity)
    assert too_much(str(quantity))


@pytest.mark.parametrize(
    ("quantity", "fits"), [("9223372036854775807", True), ("9223372036854775808", False), ("7Ei", True), ("8Ei", False)]
)
def test_the_largest_quantity(quantity: str, fits: bool) -> None:
    """What is above 2**63 - 1 the API server takes for that (apimachinery, ParseQuantity): it would show as changed."""
    assert (not too_much(quantity)) is fits


@pytest.mark.parametrize(
    ("duration", "fits"), [("292y", True), ("293y", False), ("9" * 5000 + "s", False), ("0", True)]
)
def test_the_longest_duration(duration: str, fits: bool) -> None:
    """Prometheus counts nanoseconds in 64 bits, which is 292 years."""
    assert (not too_long(duration)) is fits


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        *(
            ("30m", "30 minutes"),
            ("1h", "an hour"),
            ("60m", "an hour"),
            ("90m", "1 hour 30 minutes"),
            ("1m", "a minute"),
        ),
        *(("3600s", "an hour"), ("1w", "7 days"), ("10h", "10 hours"), ("1500ms", "1 second 500 milliseconds")),
        *(("0s", "a moment"), ("0", "a moment")),
    ],
)
def test_durations_in_words(duration: str, words: str) -> None:
    """The same time in the same words, however it is written."""
    assert in_words(duration) == words
