"""`gitops`: the engine that syncs the render, and from where: the engine's own objects are made of it.

A policy without the section renders no such objects, and nothing that an engine alone reads. What is common to a fleet
(repository, engine) belongs in a layer, the destination in the cluster's file. Who says what goes together is
`checks/gitops/gitops.py`: a layer alone need not be complete.

Each engine has a section of its own here, which its record brings along (`gpustack/gitops/engines/`). Records are
loaded by name, as plugins are: the language knows that an engine has settings, and not what engines do.
"""

import importlib
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from .base import Section, section
from .repository import Repository


class GitOpsSection(Section):
    """The engine that syncs the render."""

    engine: str | None = None
    repository: Repository = section()


def _with_engines() -> type[GitOpsSection]:
    """The section with the name of each engine, and its settings under that name."""
    engines = importlib.import_module("gpustack.gitops.engines").engines()
    names = tuple(each.name for each in engines)
    said = " or ".join(f"`{name}`" for name in names)
    fields: dict[str, Any] = {
        "engine": (Literal[names] | None, Field(default=None, description=f"{said}. Has no default.")),
        **{each.name: (each.settings, section()) for each in engines},
    }
    return create_model("GitOps", __base__=GitOpsSection, __module__=__name__, __doc__=GitOpsSection.__doc__, **fields)


if TYPE_CHECKING:
    GitOps = GitOpsSection
else:
    GitOps = _with_engines()
