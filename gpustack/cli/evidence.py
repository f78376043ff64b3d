"""What keeps a change in its ring: its hold, the soak, and what `gpustack verify` saw of the ring's clusters since."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..model import Finding, InputError, Location, few
from ..policy.loading.rings import Change, Rings, told
from ..text.quantities import in_words, milliseconds
from ..text.regular import read_regular

NOT_YET = ("LIV001", "LIV002", "LIV603", "LIV604")
"""What verify says where nobody could look, and of nodes that are still rolled, which is no error there."""


class Report(NamedTuple):
    """When verify looked at a cluster, in which file it says what it saw, and its findings."""

    looked: datetime.datetime
    file: str
    findings: Sequence[Mapping[str, Any]]


def reports(files: Iterable[str]) -> dict[str, Report]:
    """The newest report of each cluster among FILES, which `gpustack verify --format json` printed. Raises InputError
    for what isn't one.
    """
    found: dict[str, Report] = {}
    for file in files:
        try:
            said = json.loads(read_regular(Path(file)))
            looked = datetime.datetime.fromisoformat(said["lookedAt"]).astimezone()
            known = {each["severity"] for each in said["findings"]} <= {"error", "warning", "note"}
            if known and said["verb"] == "verify":
                for cluster in said["clusters"]:
                    made = Report(looked, file, [each for each in said["findings"] if cluster in each["clusters"]])
                    found[cluster] = max(made, found.get(cluster, made), key=lambda each: each.looked)
                continue
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        what, remedy = f"{file} is no report about clusters", "gpustack verify CLUSTER... --format json > FILE"
        raise InputError.of("GPU092", what, location=Location(file), remedy=remedy)
    return found


def left(change: Change, rings: Rings, now: datetime.datetime) -> datetime.timedelta:
    """How long CHANGE stays where it is at least."""
    if (came := change.rollout.came) is None:
        return datetime.timedelta()
    soak = datetime.timedelta(milliseconds=milliseconds(rings.rings[rings.place(change.rollout.ring)].soak))
    return max(came + soak - now, datetime.timedelta())


def held(change: Change) -> Iterator[Finding]:
    """What is said of CHANGE where it is held."""
    if hold := change.rollout.hold:
        yield told("GPU092", change.document, ("rollout", "hold"), "held", change=change.name, hold=hold)


def blocks(
    change: Change, rings: Rings, clusters: Iterable[str], seen: Mapping[str, Report], now: datetime.datetime
) -> Iterator[Finding]:
    """What keeps CHANGE in its ring, which has CLUSTERS, of which SEEN are reports: where, why, and what to do."""
    yield from held(change)
    came = change.rollout.came
    if came is None:
        return
    ring = rings.rings[rings.place(change.rollout.ring)]
    words = {"change": change.name, "ring": ring.name}
    if rest := left(change, rings, now):
        shown = in_words(f"{-(-int(rest.total_seconds()) // 60) or 1}m")
        yield told("GPU092", change.document, ("rollout", "since"), "soaks", left=shown, **words)
    if not ring.require.verified:
        return
    unseen = [name for name in clusters if name not in seen or seen[name].looked <= came]
    if unseen:
        names = {"clusters": few(unseen, 6), "first": unseen[0]}
        yield told("GPU092", change.document, ("rollout", "since"), "unseen", **names, **words)
    bad = ("error",) if ring.require.findings == "warnings" else ("error", "warning")
    for name in clusters:
        against = [
            f"{each.get('rule')}: {each.get('what')}"
            for each in (seen[name].findings if name in seen else ())
            if (each["severity"] in bad and not each.get("waived")) or each.get("rule") in NOT_YET
        ]
        if against:
            words |= {"cluster": name, "found": few(against, 2), "file": seen[name].file}
            yield told("GPU092", change.document, ("rollout", "ring"), "unwell", **words)
