"""What several tests of the catalogue need."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog import _data


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that the catalogue asks for during the test, in order."""
    read: list[str] = []
    load = _data.load

    def recording(name: str) -> Any:
        read.append(name)
        return load(name)

    monkeypatch.setattr(_data, "load", recording)
    return read
