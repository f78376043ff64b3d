"""gpustack verify: a cluster as it is, held against what its policy says.

Solves: everything was synced and is green, and eight nodes offer seven GPUs each. So each node is asked what it has,
by the same resolved cluster that the render came from, and each answer leads to the line of the policy that it is
about. Nodes that the reconciler works on are left out: what is amiss there is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog import _data
from ..model import SEVERITIES, Body, Finding, InputError
from . import nodes, objects
from .state import Kind, State, wanted

if TYPE_CHECKING:
    from ..cluster.resolve import Cluster
    from .nodes import Hit

NAMED = 8
"""How many nodes a finding names."""


@dataclass(frozen=True)
class Expected:
    """What a cluster is to be: the policy's meaning, and the objects that it renders to."""

    cluster: Cluster
    rendered: Sequence[Body]

    @property
    def namespace(self) -> str:
        """The stack's namespace."""
        return self.cluster.spec.cluster.namespace

    @property
    def kinds(self) -> list[Kind]:
        """What to list of the cluster."""
        return wanted(self.rendered, self.namespace)


@cache
def texts() -> Any:
    """What is said of each finding: title, severity, why, do."""
    return _data.read(Path(__file__).with_name("verify.yaml"))


def verify(expected: Expected, state: State) -> list[Finding]:
    """What is amiss, the worst first; the same of many nodes is one finding."""
    hits = [*objects.of_kinds(state), *objects.unseen(state), *objects.drift(expected.rendered, state)]
    hits += objects.operator(expected.rendered, expected.namespace, state)
    hits += nodes.of_pools(expected.cluster, state)
    hits += objects.missing(expected.namespace, state)
    hits += objects.of_pods(expected.namespace, state)
    hits += objects.of_policies(state)
    return sorted(folded(hits, expected.namespace, texts()), key=lambda each: SEVERITIES.index(each.severity))


def unreached(error: InputError) -> Finding:
    """That a cluster of a fleet could not be looked at, as ERROR says."""
    said, (first, *_) = texts()["LIV003"], error.findings
    return Finding("LIV003", said["severity"], first.what, why=said["why"], remedy=first.remedy or said["do"])


def folded(hits: Iterable[Hit], namespace: str, texts: Mapping[str, Any]) -> Iterator[Finding]:
    """HITS as findings, the same of many nodes as one, with their TEXTS by id."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for hit in hits:
        groups.setdefault((hit.id, hit.what, hit.path), []).extend([hit.node] if hit.node else [])
    for (rule, what, path), names in groups.items():
        said = texts[rule]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        where = f"{', '.join(names[:NAMED])}{more}: " if names else ""
        remedy = said["do"].replace("NAMESPACE", namespace)
        yield Finding(rule, said["severity"], where + what, path=path, why=said["why"], remedy=remedy)
