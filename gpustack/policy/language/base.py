"""The base of every policy section, and how a section declares its parts.

Solves: a policy is read by people and by two dozen components, so a path such as `driver.rdma.enabled` must be the
same text in the file, in an error, in the docs and in the code. That is why attributes are camelCase (ruff N815 is
off for this package): aliases would give every path a second spelling.

What a section promises:

- unknown keys and values of another type are refused: "true" is not a boolean, and 595 not a version;
- null counts as absent, and absent leaves are None; what is absent takes the default of release and platform, which
  `defaults.py` puts in before a model sees the data;
- what no field alone can tell is refused by `model_post_init`: combinations, and amounts that don't fit each other;
- an absent section, list or map is an empty one, so that code reads `spec.driver.rdma.enabled` without asking at each
  step. Where presence itself means something (`resources`, a probe, `gpuCluster`) the attribute is None when absent;
- instances are frozen.

The text below an attribute is its description. Models are built when the first policy is validated (`defer_build`),
and descriptions are read from the source only for the schema and the docs: `describe.py`.
"""

import dataclasses
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from gpustack.catalog import defaults

from .forms import absent


class Section(BaseModel):
    """Base of all sections."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        # The same as a before-validator, without the time that pydantic takes to inspect one per class.
        return core_schema.no_info_before_validator_function(absent, handler(source))


def section() -> Any:
    """The default of a nested section: an empty one, made by its model (an instance here would build it at import)."""
    return Field(default_factory=_dict, validate_default=True)


def items() -> Any:
    """The default of a list: an empty one."""
    return Field(default_factory=_list)


def mapping() -> Any:
    """The default of a map: an empty one."""
    return Field(default_factory=_dict)


# pydantic asks a factory for its signature: those of `list` and `dict` stand in texts, which takes ten times as long.
def _dict() -> dict[str, Any]:
    return {}


def _list() -> list[Any]:
    return []


def own(path: str) -> Any:
    """The default of a field that gpustack sets itself: the one for PATH in catalog/data/defaults.yaml."""
    return Field(default_factory=lambda: defaults.values()[path])


@dataclasses.dataclass(frozen=True, slots=True)
class Own:
    """An annotation for a text of which "", which charts write for "not set", is gpustack's own default for PATH."""

    path: str

    def fill(self, value: Any) -> Any:
        return defaults.values()[self.path] if value == "" else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self.fill, handler(source))
