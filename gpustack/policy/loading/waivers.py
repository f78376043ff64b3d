"""`waivers.yaml`: what a team decided to live with, why, who answers for it, and until when.

Solves: a rule that is right for most clusters is wrong for one, and a switch that turns the rule off would turn it off
for all of them and for ever. A waiver names the rule and the clusters, says a reason, and ends by itself.

The file is a list and lies beside the policies that it is about:

    - rule: GPU130
      clusters: [lab-*]        # names, with * and ?; a text is a list of one
      path: spec.drivers*      # optional: of the policy, with * and ?
      reason: both drivers are the same build, until the new nodes are here
      owner: gpu-platform
      expires: 2027-03-31      # the last day on which it counts
"""

from __future__ import annotations

import datetime
import fnmatch
import functools
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpustack.model import Finding, InputError, Location
from gpustack.policy.loading.envelope import TEXTS
from gpustack.policy.loading.load import LAYERS, WAIVERS
from gpustack.text.positions import locate
from gpustack.text.read import value
from gpustack.text.source import decode, load_bytes

if TYPE_CHECKING:
    from gpustack.policy.loading.decisions import WaiverSpec


@dataclass(frozen=True, slots=True)
class Waiver:
    """One decision. `location` is where it stands; `expires` the last day on which it counts."""

    rule: str
    clusters: tuple[str, ...]
    path: str
    reason: str
    owner: str
    expires: datetime.date
    location: Location = field(repr=False)

    def covers(self, cluster: str, finding: Finding) -> bool:
        """Whether the waiver is about FINDING of CLUSTER. Dates are the caller's business."""
        return self.rule == finding.rule and self.names(cluster) and bool(_glob(self.path).match(finding.path))

    def names(self, cluster: str) -> bool:
        return any(fnmatch.fnmatchcase(cluster, glob) for glob in self.clusters)

    @property
    def words(self) -> str:
        """Who waived it, until when and why."""
        return f"{self.owner}, until {self.expires}: {self.reason}"


def waivers_of(folder: pathlib.Path, display: str) -> tuple[Waiver, ...]:
    """The waivers for the policies in FOLDER, in the file DISPLAY. Raises InputError with all that is wrong."""
    _refuse_in_layers(folder, display)
    path = folder / WAIVERS
    if not path.exists() and not path.is_symlink():
        return ()
    from gpustack.policy.loading.decisions import WAIVED  # models, which a folder without the file doesn't need

    text = decode(load_bytes(path, display), display)
    findings: list[Finding] = []
    waivers = [_waiver(index, spec, text, display) for index, spec in WAIVED.read(text, display, findings)]
    findings += _twice(waivers)
    if findings:
        raise InputError(*findings)
    return tuple(waivers)


def _refuse_in_layers(folder: pathlib.Path, display: str) -> None:
    """Refuse waivers among the layers of FOLDER, which nobody reads. A layer may have their name."""
    path, name = folder / LAYERS / WAIVERS, f"{display.removesuffix(WAIVERS)}{LAYERS}/{WAIVERS}"
    if not path.is_file():
        return
    parsed = value(decode(load_bytes(path, name), name), name)
    if parsed is not None and isinstance(parsed[1], list):
        raise InputError(TEXTS.finding("GPU030", "in layers", Location(name), home=display))


def _waiver(index: int, spec: WaiverSpec, text: str, display: str) -> Waiver:
    """The waiver that SPEC, the item INDEX of the file, says."""
    clusters = (spec.clusters,) if isinstance(spec.clusters, str) else tuple(spec.clusters)
    expires = datetime.date.fromisoformat(spec.expires)
    where = locate(text, display, (index, "rule"), key=True)
    return Waiver(spec.rule, clusters, spec.path, " ".join(spec.reason.split()), spec.owner, expires, where)


def _twice(waivers: list[Waiver]) -> Iterator[Finding]:
    """What is wrong with WAIVERS of which two are about the same: only one of the two reasons would ever be shown."""
    first: dict[object, Waiver] = {}
    for waiver in waivers:
        other = first.setdefault((waiver.rule, frozenset(waiver.clusters), waiver.path), waiver)
        if other is not waiver:
            yield TEXTS.finding("GPU030", "twice", waiver.location, rule=waiver.rule, other=other.location)


@functools.lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """PATTERN with * and ? as an expression. Brackets are what they are in paths: nodePools[0]. The expression is
    fnmatch's, which never goes back to an earlier star: a pattern of many stars takes no longer than one."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
