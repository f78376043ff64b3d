"""What several tests of the catalogue need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import _data


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that the catalogue asks for during the test, in order."""
    read: list[str] = []
    really = _data.read

    def recording(path: Path) -> Any:
        read.append(path.relative_to(_data.ROOT).with_suffix("").as_posix())
        return really(path)

    _data.load.cache_clear()
    monkeypatch.setattr(_data, "read", recording)
    return read
