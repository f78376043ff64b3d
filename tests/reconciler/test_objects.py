"""What objects say, as the API server writes it."""

from __future__ import annotations

import msgspec
import pytest

from gpustack.api.objects import Node, count


@pytest.mark.parametrize(
    ("quantity", "wanted"),
    [
        ("0", 0),
        ("8", 8),
        ("1k", 1000),
        ("12k", 12000),
        ("3M", 3_000_000),
        ("1500", 1500),
        ("", 0),
        ("k", 0),
        ("1kk", 0),
    ],
)
def test_counts_of_resources(quantity: str, wanted: int) -> None:
    """The API writes a thousand shared GPUs as "1k", its canonical form."""
    assert count(quantity) == wanted


@pytest.mark.parametrize("quantity", ["\u00b2", "-3", "1Ki", "2.5", "9" * 5000, "1e3"])
def test_what_counts_nothing(quantity: str) -> None:
    """Nobody offers it: the API writes whole numbers of devices."""
    assert count(quantity) == 0


def test_a_time_without_a_zone_cannot_be_read() -> None:
    """It could be compared with no other."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"metadata": {"creationTimestamp": "2026-01-05T09:00:00"}}, Node)
