"""Lists at the project's root of what people decided, entry by entry (entries.py): findings of a review that somebody
accepts, files below dist/ that may stay; and what a waiver says (waivers.py).

`acceptances.yaml` says who accepts a finding, until when, and for which content, before and after, by digests: a red
check that is waved through once is waved through always, and what is pushed later is another finding.

    - finding: IMP901-0a1b2c3d4e5f
      before: sha256:...
      after: sha256:...
      by: gpu-platform
      until: 2027-03-31          # the last day on which it counts
      why: the node agent of the storage team, reviewed in their repository

`dist.allow.yaml` has files that no policy renders to and that are to stay, each by its content: whatever lies in dist/
is applied, so what isn't rendered is refused, and a file that changes is refused again until its new digest is here.

    - path: dist/prod-eu-1/base/namespace-extra.yaml
      sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
      why: until the team's own repository is synced
"""

import datetime
import os
import pathlib
from typing import Annotated

from pydantic import Field

from gpustack.model import Finding, InputError
from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import form
from gpustack.policy.language.types import Day
from gpustack.policy.loading.entries import Entries
from gpustack.text.source import decode, load_bytes

WORDS, GLOB = form("words"), form("cluster_glob")


class WaiverSpec(Section):
    rule: Annotated[str, form("rule_id")]
    """Id of the rule whose findings are waived."""
    clusters: Annotated[str, GLOB] | Annotated[list[Annotated[str, GLOB]], Field(min_length=1)]
    """Names of the clusters for which it counts, with * and ?. `"*"` means all."""
    path: str = "*"
    """Path of the policy about which the finding is, with * and ?, such as `spec.nodePools[*].kernel`. Absent: any."""
    reason: Annotated[str, WORDS]
    """Why the finding is not a reason to stop, for whoever reads it in a year."""
    owner: Annotated[str, WORDS]
    """Who answers for it: a person or a team."""
    expires: Day
    """The last day on which it counts: YYYY-MM-DD. From the next day on it is an error."""


WAIVED = Entries("GPU030", WaiverSpec)
"""waivers.py reads them."""
ACCEPTANCES = "acceptances.yaml"
"""The file at the project's root."""
DIGEST = form("digest")


class AcceptanceSpec(Section):
    """One finding that somebody accepts."""

    finding: Annotated[str, form("finding_id")]
    """Id of the finding."""
    before: Annotated[str, DIGEST]
    """Digest of what it is about, as it is merged."""
    after: Annotated[str, DIGEST]
    """Digest of what it is about, as it is proposed."""
    by: Annotated[str, WORDS]
    """Who accepts it: a person or a team."""
    until: Day
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


ACCEPTED = Entries("GPU047", AcceptanceSpec)


def acceptances(path: pathlib.Path, display: str) -> list[AcceptanceSpec]:
    """What stands in the file PATH, nothing where there is none. Raises InputError with all that is wrong with it."""
    return parsed(decode(load_bytes(path, display), display), display) if os.path.lexists(path) else []


def parsed(text: str, display: str) -> list[AcceptanceSpec]:
    """What the TEXT of the file called DISPLAY says. Raises InputError with all that is wrong with it."""
    wrong: list[Finding] = []
    listed = [spec for _, spec in ACCEPTED.read(text, display, wrong)]
    if wrong:
        raise InputError(*wrong)
    return listed


ALLOW_LIST = "dist.allow.yaml"
"""The file at the project's root."""

SHA256 = form("sha256")


class AllowedSpec(Section):
    """One file that may stay."""

    path: Annotated[str, form("allowed_path")]
    """Where it is, from the project's root on, such as `dist/prod/base/extra.yaml`. It is not a pattern."""
    sha256: Annotated[str, SHA256]
    """The digest of its content."""
    why: Annotated[str, WORDS]
    """Why no policy renders to it, for whoever reads it in a year."""


ALLOWED = Entries("GPU977", AllowedSpec)


def allowed(root: pathlib.Path) -> dict[str, AllowedSpec]:
    """The files that may stay by the project in ROOT, by path. InputError with all that is wrong with the list."""
    return ALLOWED.of_file(root / ALLOW_LIST, ALLOW_LIST, "path", lambda entry: entry.path)
