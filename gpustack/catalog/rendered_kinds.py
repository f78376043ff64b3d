"""Which kinds gpustack renders at all, whatever the policy."""

from __future__ import annotations

from typing import NamedTuple

from gpustack.catalog import _data


class RenderedKind(NamedTuple):
    """A kind that some policy is rendered to. `group` is "" for the core API."""

    group: str
    kind: str
    namespaced: bool


def rendered_kinds() -> tuple[RenderedKind, ...]:
    """All of them."""
    facts = _data.load("rendered-kinds")
    return tuple(
        RenderedKind(group, kind, scope == "namespaced")
        for scope in ("cluster", "namespaced")
        for group, kind in facts[scope]
    )
