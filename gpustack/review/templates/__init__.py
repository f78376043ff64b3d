"""HTML, CSS, JavaScript and SVG of the report and of pictures: files that editors and linters know as what they are."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def template(name: str) -> str:
    """The file NAME."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
