"""The GitOps engines that gpustack knows: a module each, named as the engine is in a policy, with its record ENGINE."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...policy.language.gitops import GitOps
    from ..engine import Engine


@functools.cache
def names() -> tuple[str, ...]:
    """The engines, in order; loads none of them."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@functools.cache
def engine(name: str) -> Engine[Any]:
    """The record of the engine NAME. KeyError for one that gpustack doesn't know."""
    if name not in names():
        raise KeyError(name)
    record: Engine[Any] = importlib.import_module(f".{name}", __name__).ENGINE
    return record


def engines() -> tuple[Engine[Any], ...]:
    """All records, in the order of their names."""
    return tuple(engine(name) for name in names())


def unasked() -> Engine[Any]:
    """The engine whose media types an artifact gets where nothing says who reads it."""
    return next(each for each in engines() if each.unasked)


def chosen(given: GitOps | None) -> Engine[Any] | None:
    """The engine that the section GIVEN names."""
    return engine(given.engine) if given is not None and given.engine is not None else None


def title(name: str) -> str:
    """What people call the engine NAME, which another gpustack may have rendered for."""
    return engine(name).title if name in names() else name


def wanted(which: str) -> dict[str, str]:
    """What the engines want of an object for the purpose WHICH: verbatim, large or partial."""
    return {key: value for each in engines() for key, value in getattr(each, which).items()}
