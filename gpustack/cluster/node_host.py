"""What is to be set up on a pool's nodes, in terms of hosts: kernel arguments, modules, files, services.

Solves: a policy says "the IOMMU of Intel", and each system wants that written in another place. The meaning is here,
once; what a form can't hold is told with a remedy (catalog/data/host.yaml), and never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING, Any

from ..catalog import _data

if TYPE_CHECKING:
    from ..policy.language.host import NodeHost
    from .pool import Pool

ANY = "*"


@dataclass(slots=True)
class Setup:
    """What a host gets. `kernel` is the release that is held, "" for none."""

    arguments: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    sysctls: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    enabled: list[str] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)
    kernel: str = ""


def forms() -> Mapping[str, Any]:
    """The forms by name, as the data file has them. Read only."""
    known: Mapping[str, Any] = _data.load("host")["forms"]
    return known


def system(pool: Pool) -> str:
    """The os-release ID of nodes of POOL, as the pool or its platform says it; "" where neither does."""
    if pool.system is not None:
        return pool.system.id
    return next(iter(pool.cluster.platform.systems), "")


def fitting(pool: Pool) -> list[str]:
    """The forms that nodes of POOL take, the usual one first."""
    own = [name for name, form in forms().items() if system(pool) in form["systems"]]
    return own or [name for name, form in forms().items() if ANY in form["systems"]]


def asked(host: NodeHost) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """What HOST asks for: the field, the item of the data file, and the words of its texts."""
    for name in ("blockNouveau", "fabricManager", "maskImex", "pinKernel"):
        if getattr(host, name):
            yield name, name, {}
    if host.iommu:
        yield "iommu", "iommu", {"value": host.iommu}
    if host.vfio:
        yield "vfio", "vfio", {"value": ",".join(host.vfio)}
    for size, count in host.hugePages.items():
        yield "hugePages", f"hugePages{size}", {"count": str(count)}
    if host.containerdDropIn:
        yield "containerdDropIn", "containerdDropIn", {"value": host.containerdDropIn}


def cannot(host: NodeHost, form: str) -> Iterator[tuple[str, str, str]]:
    """What of HOST the FORM can't hold: the field, why, and what to do instead."""
    refused = forms()[form].get("cannot", {})
    for name in dict.fromkeys(name for name, _, _ in asked(host)):
        if said := refused.get(name) or refused.get(ANY):
            yield name, said["why"], said["do"]


def setup(pool: Pool, form: str) -> Setup:
    """What hosts of POOL get in FORM, less what is needless there and what it can't hold."""
    made, host = Setup(), pool.said.host
    left_out = {*forms()[form].get("needless", ()), *(name for name, _, _ in cannot(host, form))}
    for name, item, words in asked(host):
        for part, said in _data.load("host")["items"][item].items() if name not in left_out else ():
            if part == "holds":
                made.kernel = pool.said.kernel or ""
            elif isinstance(said, list):
                getattr(made, part).extend(Template(each).substitute(words) for each in said)
            else:
                getattr(made, part).update({key: Template(text).substitute(words) for key, text in said.items()})
    return made
