"""What the policy repository brings along, by which its policies mean something: kinds of other software
(schemas/crds/), and constructs of the team's own (constructs.allow.yaml).

Both are read once for a run, and both count wherever something is kept: `Brought.digest` is part of the store's salt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpustack.catalog import kinds as catalog_kinds
from gpustack.catalog.kinds import Kinds, kinds_of
from gpustack.policy.loading import constructs as own_constructs
from gpustack.policy.loading.constructs import Constructs, constructs_of

if TYPE_CHECKING:
    import pathlib


@dataclass(frozen=True)
class Brought:
    """KINDS and CONSTRUCTS of a repository."""

    kinds: Kinds = catalog_kinds.NONE
    constructs: Constructs = own_constructs.NONE

    @property
    def digest(self) -> str:
        """Names both by their content, "" for nothing."""
        parts = [self.kinds.digest, self.constructs.digest]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest() if any(parts) else ""

    @property
    def context(self) -> dict[str, Any]:
        """What a policy is validated with, so that it knows them."""
        return {"kinds": self.kinds, "constructs": self.constructs}


def brought_by(root: pathlib.Path) -> Brought:
    """What the repository ROOT brings along. Raises InputError for what can't be used."""
    return Brought(kinds_of(root), constructs_of(root))
