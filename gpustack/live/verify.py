"""gpustack verify: a cluster as it is, held against what its policy says.

Solves: everything was synced and is green, and eight nodes offer seven GPUs each. So each node is asked what it has,
by what the policy comes to (api/expectations.py), and each answer leads to the line of the policy that it is
about. Nodes that the reconciler works on are left out: what is amiss there is meant.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.expectations import Expectation
from ..catalog import _data
from ..model import SEVERITIES, Finding, InputError, few
from . import nodes, objects
from .state import State

NAMED = 8
"""How many nodes a finding names."""


def texts(of: str = "verify") -> Any:
    """The data file of the verb OF: what is said of each finding (title, severity, why, do), and what it looks for."""
    return _data.read(Path(__file__).with_name(f"{of}.yaml"))


def verify(expected: Expectation, state: State) -> list[Finding]:
    """What is amiss, the worst first; the same of many nodes is one finding."""
    hits = [*objects.of_kinds(state), *objects.of_server(expected, state), *objects.unseen(state)]
    hits += objects.drift(expected.rendered, state)
    hits += objects.operator(expected.rendered, expected.namespace, state)
    hits += nodes.of_pools(expected, state)
    hits += objects.missing(expected.namespace, state)
    hits += objects.of_pods(expected.namespace, state)
    hits += objects.of_policies(state.of("NodePolicy"))
    hits += objects.of_prometheus(expected.rendered, expected.namespace, state)
    return sorted(folded(hits, expected.namespace, texts()), key=lambda each: SEVERITIES.index(each.severity))


def unreached(error: InputError) -> Finding:
    """That a cluster of a fleet could not be looked at, as ERROR says."""
    said, (first, *_) = texts()["LIV003"], error.findings
    return Finding("LIV003", said["severity"], first.what, why=said["why"], remedy=first.remedy or said["do"])


def folded(hits: Iterable[nodes.Hit], namespace: str, texts: Mapping[str, Any]) -> Iterator[Finding]:
    """HITS as findings, the same of many nodes as one, with their TEXTS by id."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for hit in hits:
        groups.setdefault((hit.id, hit.what, hit.path), []).extend([hit.node] if hit.node else [])
    for (rule, what, path), names in groups.items():
        said = texts[rule]
        where = f"{few(names, NAMED)}: " if names else ""
        remedy = said["do"].replace("NAMESPACE", namespace)
        yield Finding(rule, said["severity"], where + what, path=path, why=said["why"], remedy=remedy)
