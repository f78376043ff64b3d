"""Kinds of objects: where those of a kind have what rules and components look at, which kinds gpustack renders at all,
and which CustomResourceDefinitions it can bring along.

`cluster.crds` says for each of these whether the render owns it or finds it in the cluster. The definitions themselves
lie with the components that need them (components/crds/); a test compares the two.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpustack.catalog import _data
from gpustack.catalog._lookup import UnknownName, nearest

Paths = tuple[tuple[str, ...], ...]

facts = functools.partial(_data.load, "object-kinds")


def paths(kinds: Mapping[str, Sequence[str]]) -> dict[str, Paths]:
    """Where each of KINDS has it; "*" is each item of a list."""
    return {kind: tuple(tuple(path.split(".")) for path in places) for kind, places in kinds.items()}


def grouped(what: str) -> dict[tuple[str, str], Paths]:
    """Where kinds have WHAT ("pods"), by API group ("" for the core API) and kind."""
    return {(group, kind): places for group, kinds in facts()[what].items() for kind, places in paths(kinds).items()}


class RenderedKind(NamedTuple):
    """A kind that some policy is rendered to. `group` is "" for the core API."""

    group: str
    kind: str
    namespaced: bool


def rendered_kinds() -> tuple[RenderedKind, ...]:
    """All of them."""
    facts = _data.load("rendered-kinds")
    return tuple(
        RenderedKind(group, kind, scope == "namespaced")
        for scope in ("cluster", "namespaced")
        for group, kind in facts[scope]
    )


NFD, DRA = "node feature discovery", "the DRA driver, for compute domains"
CRDS: Mapping[str, str] = {
    "clusterpolicies.nvidia.com": "programs that read the operator's ClusterPolicy",
    "computedomaincliques.resource.nvidia.com": DRA,
    "computedomains.resource.nvidia.com": DRA,
    "nodefeaturegroups.nfd.k8s-sigs.io": NFD,
    "nodefeaturerules.nfd.k8s-sigs.io": NFD,
    "nodefeatures.nfd.k8s-sigs.io": NFD,
    "nodepolicies.gpustack.dev": "the reconciler",
}
"""Name -> who needs it."""


class UnknownCRD(UnknownName):
    what = "CRD"


def known_crd(name: str) -> str:
    """Who needs the CRD called NAME; UnknownCRD names the nearest ones."""
    if name not in CRDS:
        raise UnknownCRD(name, nearest(name, CRDS))
    return CRDS[name]
