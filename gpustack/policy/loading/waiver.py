"""What a waiver says: the model of one item of waivers.yaml, see waivers.py."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..language.base import Section
from ..language.forms import form
from ..language.types import Day

RULE, WORDS, GLOB = form("rule_id"), form("words"), form("cluster_glob")


class WaiverSpec(Section):
    rule: Annotated[str, RULE]
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
