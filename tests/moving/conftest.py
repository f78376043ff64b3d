"""What is moved in here was recorded with v26.7.0: to these tests, nothing newer is out."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _recorded(as_of_v26_7: str) -> None:
    """Leads to v26.7.0, also once a further release is there."""
