"""What the suite's modules share."""

from __future__ import annotations

import pytest

from gpustack.compiler.cache import Store, own_digest


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for the session: cases share most components."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())
