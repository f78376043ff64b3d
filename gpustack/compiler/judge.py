"""What rules found becomes what a person is told: the date and the waivers are applied, and equal findings grouped.

Everything before this is pure and kept; here is the only place that knows which day it is and what a team decided to
live with. A waived finding is a note that says who waived it and why.
"""

import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..checks.rule import TENANTS, all_rules, rules_over
from ..model import Finding, few, grouped
from ..policy.loading.waivers import Waiver
from .refusals import said

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class GroupedFinding:
    """A finding, located in the first of the clusters that it is about. One about no cluster has none."""

    finding: Finding
    clusters: tuple[str, ...]


def due(finding: Finding, today: datetime.date | None) -> bool:
    """Whether FINDING counts TODAY. Where nobody says which day it is, only what counts on all days does."""
    if today is None:
        return finding.since is None and finding.until is None
    return (finding.since is None or finding.since <= today) and (finding.until is None or today < finding.until)


def group(items: Iterable[tuple[S, Finding]]) -> list[tuple[Finding, list[S]]]:
    """Equal findings once, with everything that they are about."""
    return [*grouped((finding, about) for about, finding in items).items()]


def also(item: GroupedFinding) -> Finding:
    """The finding, with the other clusters that it is about in its first sentence."""
    if len(item.clusters) < 2:
        return item.finding
    return dataclasses.replace(item.finding, what=f"{item.finding.what} (also in {few(item.clusters[1:], 3)})")


class Decisions:
    """The waivers of the folders that policies lie in, on the day TODAY (None: none of them ever expires).

    `waive` applies them and remembers which were of use; `complaints` is asked last."""

    def __init__(self, waivers: Mapping[Path, Iterable[Waiver]], today: datetime.date | None) -> None:
        self.today = today
        self._waivers = {folder: list(listed) for folder, listed in waivers.items()}
        self._used: set[int] = set()

    @property
    def rules(self) -> frozenset[str]:
        """The ids of the rules that may be waived somewhere."""
        return frozenset(waiver.rule for listed in self._waivers.values() for waiver in listed)

    def covers(self, folder: Path) -> bool:
        """Whether there are waivers for the policies in FOLDER."""
        return bool(self._waivers.get(folder))

    def waive(self, folder: Path, cluster: str, finding: Finding) -> Finding:
        """FINDING about CLUSTER, whose policy is in FOLDER: as it is, or as a note where somebody waived it."""
        covering = [
            waiver
            for waiver in self._waivers.get(folder, ())
            if not self._expired(waiver) and waiver.covers(cluster, finding)
        ]
        if not covering:
            return finding
        self._used.update(map(id, covering))
        return dataclasses.replace(finding, severity="note", waived=covering[0].words)

    def complaints(self, judged: Mapping[Path, Iterable[str]], partly: Mapping[Path, Iterable[str]]) -> list[Finding]:
        """What is wrong with the waivers: expired, or of no use.

        JUDGED are the clusters of each folder; an expired waiver counts where it names one of them. PARTLY has the
        folders of which all clusters are among these, each with the clusters that some rules did not get to see: a
        waiver that names one of them may be of use. So may one of a rule over workloads: tenants' manifests were not
        looked at."""
        elsewhere = {rule.id for over in TENANTS for rule in rules_over(over)} if any(self._waivers.values()) else set()
        findings = []
        for folder, listed in self._waivers.items():
            names = list(judged.get(folder, ()))
            for waiver in listed:
                if self._expired(waiver):
                    if any(map(waiver.names, names)):
                        findings.append(expired(waiver))
                elif id(waiver) in self._used or waiver.rule in elsewhere or folder not in partly:
                    continue
                elif not any(map(waiver.names, partly[folder])):
                    findings.append(unused(waiver))
        return findings

    def _expired(self, waiver: Waiver) -> bool:
        return self.today is not None and waiver.expires < self.today


def expired(waiver: Waiver) -> Finding:
    """The finding for a waiver whose time is over."""
    rule, where = waiver.rule, waiver.location
    return said("GPU031", "", where, rule=rule, day=waiver.expires, owner=waiver.owner, reason=waiver.reason)


def unused(waiver: Waiver) -> Finding:
    """The finding for a waiver that covers nothing."""
    case = "unused" if waiver.rule in {rule.id for rule in all_rules()} else "no rule"
    return said("GPU032", case, waiver.location, rule=waiver.rule)
