"""GPUs and how they are cut: a picture for all clusters that cut them alike."""

from __future__ import annotations

from collections.abc import Mapping

from ...policy.language.spec import ClusterPolicySpec
from .. import mig_picture
from ..diff.ranges import summary
from .frame import Section, text


def section(specs: Mapping[str, ClusterPolicySpec]) -> Section:
    """The section of the clusters SPECS; those in which no GPU is cut are left out."""
    drawn: dict[int, tuple[mig_picture.Drawing, ...]] = {}
    alike: dict[tuple[mig_picture.Drawing, ...], list[str]] = {}
    for name, spec in specs.items():
        if id(spec) not in drawn:
            drawn[id(spec)] = tuple(mig_picture.of_spec(spec))
        if any(one.slices for one in drawn[id(spec)]):
            alike.setdefault(drawn[id(spec)], []).append(name)
    made = [
        f"<figure data-row><figcaption><h3>{text(summary(names, len(specs)))}</h3></figcaption>\n"
        f"{mig_picture.svg(summary(names, len(specs)), drawings, within=f'mig{number}')}</figure>\n"
        for number, (drawings, names) in enumerate(alike.items(), 1)
    ]
    return Section("mig", "MIG", "".join([mig_picture.shared(), *made]) if made else "")
