"""What keeps a change in its ring: its hold, the soak, and what `gpustack verify` saw of the ring's clusters since."""

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..model import Finding, InputError, Location, few
from ..policy.loading.ring import moment
from ..policy.loading.rings import Change, Rings
from ..text.quantities import in_words, milliseconds
from ..text.regular import read_regular
from .refusals import said

NOT_YET = ("LIV001", "LIV002", "LIV603", "LIV604")
"""What verify says where nobody could look, and of nodes that are still rolled, which is not an error there."""


class Report(NamedTuple):
    """When verify looked at a cluster, the file that says it, the digest of what was rendered for it, its findings."""

    looked: datetime.datetime
    file: str
    rendered: str
    findings: Sequence[Mapping[str, Any]]


def reports(files: Iterable[str]) -> dict[str, Report]:
    """The newest report of each cluster in FILES, `gpustack verify --format json`. Raises InputError for others."""
    latest: dict[str, Report] = {}
    for file in files:
        try:
            report = json.loads(read_regular(Path(file)))
            looked, whole = moment(report["lookedAt"]), (report["verb"], report["version"]) == ("verify", 1)
            for cluster in report["clusters"] if whole and report["exit"] in {0, 2} else report[""]:
                of_it = [each for each in report["findings"] if cluster in [*each["clusters"]]]
                rendered = str(report.get("rendered", {}).get(cluster))
                findings = [{"rule": "?", "what": "?", "severity": "error", **each} for each in of_it]
                made = Report(looked, file, rendered, findings)
                latest[cluster] = max(made, latest.get(cluster, made), key=lambda each: each.looked)
        except OSError as error:
            raise InputError(said("GPU092", "no report", Location(file), reason=error.strerror or error)) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(said("GPU092", "report", Location(file))) from None
    return latest


def left(change: Change, rings: Rings, now: datetime.datetime) -> datetime.timedelta:
    """How long CHANGE stays where it is at least."""
    place, came = rings.place(change.rollout.ring), change.came
    soak = milliseconds(rings.rings[place].soak) if came else 0
    return max((came or now) + datetime.timedelta(milliseconds=soak) - now, datetime.timedelta())


def blocks(
    change: Change, rings: Rings, clusters: Mapping[str, str], seen: Mapping[str, Report], now: datetime.datetime
) -> Iterator[Finding]:
    """Why CHANGE stays in its ring, which has CLUSTERS (digests of what they render to), of which SEEN are reports."""
    came, rest = change.came, left(change, rings, now)
    if came is None:
        return
    ring = rings.rings[rings.place(change.rollout.ring)]
    if rest:
        shown = in_words(f"{-(-int(rest.total_seconds()) // 60) or 1}m")
        yield change.told("since", "soaks", ring=ring.name, left=shown)
    wanted = [*clusters] if ring.require.verified else []
    names = " ".join(wanted) if len(wanted) <= 12 else "with the names of all clusters of the ring"
    unseen = [name for name in wanted if name not in seen or not came < seen[name].looked <= now]
    if unseen:
        yield change.told("since", "unseen", ring=ring.name, clusters=few(unseen, 6), names=names)
    others = [name for name in wanted if name not in unseen and seen[name].rendered != clusters[name]]
    if others:
        yield change.told("ring", "others", ring=ring.name, clusters=few(others, 6), names=names)
    bad = ("note", "warning")[: 1 if ring.require.findings == "none" else 2]
    for name in filter(seen.__contains__, wanted):
        told = (each for each in seen[name].findings if each["severity"] not in bad or each["rule"] in NOT_YET)
        against = [f"{each['rule']}: {each['what']}" for each in told]
        if against:
            words = {"ring": ring.name, "cluster": name, "found": few(against, 2), "report": seen[name].file}
            yield change.told("ring", "unwell", **words)
