"""All components, in the order in which a cluster needs them. A new component is one line of registry.yaml.

A component has its construct in `components/<subject>/<module>.py`, and its inputs beside it: `from_cluster` of
`<module>_inputs.py`, or a function called as the module in `<subject>_inputs.py`, which small ones share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..catalog import _data

if TYPE_CHECKING:
    from ..cluster.resolve import Cluster
    from ..policy.language.spec import ClusterPolicySpec
    from .component import Component
    from .parts.common_inputs import Inputs


class Entry(NamedTuple):
    """A component: the id it has in the construct tree, its folder and module, and its construct's class name.

    `dra`: it has its place also in a cluster whose GPUs are allocated by DRA. All others are the device plugin's stack,
    which a `gpuCluster` excludes (operator.md 11.1). `guarded`: without one of its objects drivers stop, or nodes
    lose the labels by which they run (reconciler.md L38, A2), so no engine prunes one without asking. `shared`: its
    inputs are with those of others."""

    id: str
    subject: str
    module: str
    construct: str
    dra: bool = False
    guarded: bool = False
    shared: bool = False

    def inputs(self, spec: ClusterPolicySpec) -> Inputs | None:
        """What the component needs of SPEC, or None where it is off."""
        from ..cluster.resolve import resolve  # not for who names components only

        return _inputs(self, resolve(spec))

    @property
    def section(self) -> str:
        """The name that a section of the policy has if the component has one: dcgm_exporter -> dcgmExporter."""
        first, *rest = self.module.split("_")
        return first + "".join(word.capitalize() for word in rest)

    def type(self) -> type[Component[Inputs]]:
        """The construct's class; importing it starts Node."""
        construct: type[Component[Inputs]] = _found(self.subject, self.module, self.construct)
        return construct


@lru_cache(maxsize=64)  # of one cluster: guards ask for what a dozen others are given
def _inputs(entry: Entry, cluster: Cluster) -> Inputs | None:
    if cluster.dra and not entry.dra:
        return None
    place, name = (entry.subject, entry.module) if entry.shared else (entry.module, "from_cluster")
    inputs_of: Callable[[Cluster], Inputs | None] = _found(entry.subject, f"{place}_inputs", name)
    return inputs_of(cluster)


@cache
def _found(subject: str, module: str, name: str) -> Any:
    return getattr(import_module(f"{__package__}.{subject}.{module}"), name)


REGISTRY = tuple(Entry(**row) for row in _data.read(Path(__file__).with_suffix(".yaml")))
