"""The registries to test with: our strict one always, Debian's where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback_registry import debian, docker_registry, strict
from tests.project import cache, project

__all__ = ["cache", "project"]


@pytest.fixture(params=["strict", "debian"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty registry listens."""
    if request.param == "strict":
        with strict() as registry:
            yield registry.host
        return
    program = debian()
    if program is None:
        pytest.skip("no docker-registry: tools/docker_registry.sh")
    with docker_registry(program, tmp_path) as found:
        yield found
