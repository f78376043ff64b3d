"""GPUs and how they are cut: a picture for all clusters that cut them alike."""

from collections.abc import Mapping

from ...policy.language.spec import ClusterPolicySpec
from .. import mig_picture
from ..diff.ranges import summary
from ..templates import part
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
        part("figure", title=text(title), picture=mig_picture.svg(title, drawings, within=f"mig{number}"))
        for number, (drawings, names) in enumerate(alike.items(), 1)
        for title in [summary(names, len(specs))]
    ]
    return Section("mig", "MIG", "".join([mig_picture.shared(), *made]) if made else "")
