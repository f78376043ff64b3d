"""What all tests share: cdk8s runs on the Node that the product would choose, no example has a deadline, and whoever
means the newest release says so.

A deadline in wall time fails where other programs run; what must be fast is measured by tests/bench.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from gpustack.catalog import _data, _versions, releases
from gpustack.compiler import node

node.configure(os.environ)
settings.register_profile("gpustack", deadline=None)
settings.load_profile("gpustack")


@pytest.fixture
def newest() -> str:
    """The newest release, whichever that is: tests must hold when a further one is added."""
    return releases.latest()


@pytest.fixture
def as_of_v26_7(monkeypatch: pytest.MonkeyPatch) -> str:
    """The catalogue as it was with v26.7.0, and that name: for facts that end when a further release comes."""
    last, listing = "v26.7.0", _data.listing

    def until(folder: str) -> tuple[str, ...]:
        return tuple(
            name for name in listing(folder) if folder != "releases" or _versions.key(name) <= _versions.key(last)
        )

    monkeypatch.setattr(_data, "listing", until)
    releases.release.cache_clear()
    return last
