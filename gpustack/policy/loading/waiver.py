"""What a waiver says: the model of one item of waivers.yaml, see waivers.py."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..language.base import Section
from ..language.forms import Form
from ..language.types import Day

RULE = Form("rule_id", "id of a rule", "GPU and three digits, such as GPU130", r"GPU[0-9]{3}")
WORDS = Form("words", "text that says something", "at least one letter", r"[\s\S]*[^\W\d_][\s\S]*")
GLOB = Form("cluster_glob", "name of a cluster", "a name, with * and ? for any letters", r"[-a-z0-9.*?]+")


class WaiverSpec(Section):
    rule: Annotated[str, RULE]
    """Id of the rule whose findings are waived."""
    clusters: Annotated[str, GLOB] | Annotated[list[Annotated[str, GLOB]], Field(min_length=1)]
    """Names of the clusters for which it counts, with * and ?. `"*"` means all."""
    path: str = "*"
    """Path of the policy about which the finding is, with * and ?, such as `spec.nodePools[*].kernel`. Absent: any."""
    reason: Annotated[str, WORDS]
    """Why the finding is no reason to stop, for whoever reads it in a year."""
    owner: Annotated[str, WORDS]
    """Who answers for it: a person or a team."""
    expires: Day
    """The last day on which it counts: YYYY-MM-DD. From the next day on it is an error."""
