"""What fleet.yaml and the rollout of a change say: the models of both, see rings.py."""

import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from ..language.base import Section, items, mapping, section
from ..language.forms import form, refuse_as
from ..language.types import DnsLabel, Duration, Labels, Moment
from .decisions import GLOB, WORDS

VERSION = form("gpustack_version")


def moment(text: str) -> datetime.datetime:
    """What TEXT says as RFC 3339, in UTC. ValueError for anything else, without a zone, or far from anybody's days."""
    made = datetime.datetime.fromisoformat(text)
    if made.tzinfo is None or not 2000 <= made.year < 2200:
        raise ValueError(f"{text} is not such a moment")
    return made.astimezone(datetime.UTC)


class Require(Section):
    """What must hold in every cluster of a ring before a change leaves it."""

    verified: bool = True
    """Whether `gpustack verify` must have seen each cluster since, without an error. Absent: it must."""
    findings: Literal["none", "warnings"] = "warnings"
    """What it may find: `none`, or `warnings`. Absent: warnings."""


class Ring(Section):
    """Clusters that get a change at the same time."""

    name: DnsLabel
    """Name of the ring."""
    clusters: list[Annotated[str, GLOB]] = items()
    """Names of clusters, with * and ?. A cluster is in the first ring that names it. Absent: see `labels`."""
    labels: Labels = mapping()
    """Labels, all of which a cluster's policy has in its metadata. Absent: see `clusters`."""
    soak: Duration = "0s"
    """How long a change stays in the ring at least: 24h. Absent: not at all."""
    require: Require = section()


class FleetSpec(Section):
    """The rings of the fleet, the one that gets a change first at the top."""

    rings: Annotated[list[Ring], Field(min_length=1)]
    """The rings."""


class Renderer(Section):
    """What a change says beside its spec."""

    gpustack: Annotated[str, VERSION] | None = None
    """The version of gpustack in gpustack.lock that renders clusters which have the change. Absent: as without it."""


class Rollout(Section):
    """How far a change (`kind: PolicyChange`) has come. `gpustack promote` writes it."""

    ring: DnsLabel | None = None
    """The last ring that has it; those before have it too. Absent: no cluster has it yet."""
    since: Moment | None = None
    """When it came there, RFC 3339."""
    hold: Annotated[str, WORDS] | None = None
    """Why it goes no further. Absent: it may."""

    def model_post_init(self, _: Any) -> None:
        if (self.ring is None) is not (self.since is None):
            raise refuse_as("rollout", "half")
        try:
            self.came  # noqa: B018 - whether there is such a moment
        except ValueError:
            raise refuse_as("rollout", "no moment", since=self.since) from None

    @property
    def came(self) -> datetime.datetime | None:
        """When it came to its ring, as it says itself."""
        return moment(self.since) if self.since else None
