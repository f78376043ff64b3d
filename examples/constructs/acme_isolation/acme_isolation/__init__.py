"""The section `isolation` of a policy: who may reach the pods of which namespaces.

    constructs:
      isolation:
        namespaces: [team-a, team-b]
        allowed: [monitoring]

Importing this module starts no Node: the construct is named, and imported when something is rendered.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Isolation(BaseModel):
    """Namespaces whose pods are reached from within, and from the namespaces that are allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    construct: ClassVar[str] = "acme_isolation.policies:IsolationPolicies"

    namespaces: list[str] = Field(min_length=1)
    allowed: list[str] = []
