"""`dist.allow.yaml`: files below dist/ that no policy renders to and that are to stay, each by its content.

Solves: whatever lies in dist/ is applied, so what isn't rendered is refused; and a team may need such a file for a
while. The list names its path, the digest of its content and the reason, and stands where a review shows it: a file
that changes is refused again until somebody writes its new digest here.

    - path: dist/prod-eu-1/base/namespace-extra.yaml
      sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
      why: until the team's own repository is synced
"""

from __future__ import annotations

import pathlib
from typing import Annotated

from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import form
from gpustack.policy.loading.entries import Entries
from gpustack.policy.loading.waiver import WORDS

NAME = "dist.allow.yaml"
"""The file at the project's root."""

SHA256, PATH = form("sha256"), form("allowed_path")


class AllowedSpec(Section):
    """One file that may stay."""

    path: Annotated[str, PATH]
    """Where it is, from the project's root on, such as `dist/prod/base/extra.yaml`. It is not a pattern."""
    sha256: Annotated[str, SHA256]
    """The digest of its content."""
    why: Annotated[str, WORDS]
    """Why no policy renders to it, for whoever reads it in a year."""


ENTRIES = Entries("GPU977", lambda: AllowedSpec)


def allowed(root: pathlib.Path) -> dict[str, AllowedSpec]:
    """The files that may stay by the project in ROOT, by path; none where it has no such list.

    Raises InputError with everything that is wrong with it.
    """
    return ENTRIES.of_file(root / NAME, NAME, "path", lambda entry: entry.path)
