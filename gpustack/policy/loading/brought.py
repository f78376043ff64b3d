"""What the policy repository brings along, by which its policies mean something: kinds of other software
(schemas/crds/), and constructs of the team's own (constructs.allow.yaml).

Both are read once for a run, and both count wherever something is kept: `Brought.digest` is part of the store's salt.
Most repositories have neither, and a warm render asks each time: so nothing is imported here for what isn't there.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpustack.catalog.kinds import NONE, Kinds, kinds_of

if TYPE_CHECKING:
    from gpustack.policy.loading.constructs import Constructs

LIST = "constructs.allow.yaml"
"""The file at the project's root that lists the distributions with constructs."""
LOCK = "gpustack.lock"
"""The file there that lists the versions of gpustack: versions.py."""
LIMITS: dict[pathlib.Path, bytes] = {}
"""Either list by its path, as the base has it, where there is a base: what isn't in both runs nowhere."""


@dataclass(frozen=True)
class Brought:
    """KINDS and CONSTRUCTS of a repository; None where it has no list of them."""

    kinds: Kinds = NONE
    constructs: Constructs | None = None

    @property
    def digest(self) -> str:
        """Names both by their content, "" for nothing."""
        parts = [self.kinds.digest, self.constructs.digest if self.constructs else ""]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest() if any(parts) else ""

    @property
    def context(self) -> dict[str, Any]:
        """What a policy is validated with, so that it knows them."""
        from gpustack.policy.loading import constructs

        return {"kinds": self.kinds, "constructs": self.constructs or constructs.NONE}


def brought_by(root: pathlib.Path) -> Brought:
    """What the repository ROOT brings along. Raises InputError for what can't be used."""
    if not os.path.lexists(root / LIST):
        return Brought(kinds_of(root))
    from gpustack.policy.loading.constructs import constructs_of

    return Brought(kinds_of(root), constructs_of(root))
