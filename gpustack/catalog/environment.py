"""What is known of environment variables of the stack's programs."""

from gpustack.catalog import _data

SOURCE = "file="
"""What a path in a list of sources stands behind."""


def paths_in(name: str, value: str) -> list[str]:
    """The paths that the variable NAME with VALUE names; none where it is not known to hold any, or is empty."""
    facts = _data.load("environment")
    if name in facts["sources"]:
        return [part.strip().removeprefix(SOURCE) for part in value.split(",") if part.strip().startswith(SOURCE)]
    return [value] if value and name in facts["paths"] else []
