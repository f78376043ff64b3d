"""`acceptances.yaml`: findings of a review that somebody accepts: who, until when, and for which content.

Solves: a red check that is waved through once is waved through always. An acceptance is bound to what the finding is
about, before and after, by digests: whatever is pushed later is another finding. It ends by itself.

The file is a list at the project's root; `gpustack accept` writes it:

    - finding: IMP901-0a1b2c3d4e5f
      before: sha256:...
      after: sha256:...
      by: gpu-platform
      until: 2027-03-31          # the last day on which it counts
      why: the node agent of the storage team, reviewed in their repository
"""

from __future__ import annotations

import datetime
import os
import pathlib
from typing import Annotated

from pydantic import AfterValidator

from gpustack.model import Finding, InputError
from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import form
from gpustack.policy.language.types import day
from gpustack.policy.loading.entries import Entries
from gpustack.policy.loading.waiver import WORDS
from gpustack.text.source import decode, load_bytes

NAME = "acceptances.yaml"
"""The file at the project's root."""
FINDING, DIGEST = form("finding_id"), form("digest")


class AcceptanceSpec(Section):
    """One finding that somebody accepts."""

    finding: Annotated[str, FINDING]
    """Id of the finding."""
    before: Annotated[str, DIGEST]
    """Digest of what it is about, as it is merged."""
    after: Annotated[str, DIGEST]
    """Digest of what it is about, as it is proposed."""
    by: Annotated[str, WORDS]
    """Who accepts it: a person or a team."""
    until: Annotated[str, AfterValidator(day)]
    """The last day on which it counts: YYYY-MM-DD."""
    why: Annotated[str, WORDS]
    """Why it is fine, for whoever reads it in a year."""

    @property
    def last(self) -> datetime.date:
        """The last day on which it counts."""
        return datetime.date.fromisoformat(self.until)

    @property
    def words(self) -> str:
        """Who accepts it, until when and why."""
        return f"{self.by}, until {self.until}: {' '.join(self.why.split())}"


ENTRIES = Entries("GPU047", lambda: AcceptanceSpec)


def acceptances(path: pathlib.Path, display: str) -> list[AcceptanceSpec]:
    """What stands in the file PATH, nothing where there is none. Raises InputError with all that is wrong with it."""
    return parsed(decode(load_bytes(path, display), display), display) if os.path.lexists(path) else []


def parsed(text: str, display: str) -> list[AcceptanceSpec]:
    """What the TEXT of the file called DISPLAY says. Raises InputError with all that is wrong with it."""
    wrong: list[Finding] = []
    listed = [spec for _, spec in ENTRIES.read(text, display, wrong)]
    if wrong:
        raise InputError(*wrong)
    return listed
