"""Each test gets a project of its own; what one compiles, the others find in the cache."""

from __future__ import annotations

from tests.project import cache, project

__all__ = ["cache", "project"]
