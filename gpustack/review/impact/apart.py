"""How far apart pods on shared GPUs are kept, whichever way a policy says it: by a pool or by a text that is read.

Solves: the same sharing can be written in several places, and whoever looks at one of them misses the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...api import keys
from ...catalog import plugin_config

if TYPE_CHECKING:
    from ...policy.configurations.plugin_text import PluginConfig, Shared

WORDS = {"": "exclusive", "mps": "MPS", "timeSlicing": "time slicing"}
DISTANCE = {"": 2, "mps": 1, "timeSlicing": 0}
"""How far pods on one GPU are kept apart, by the kind of sharing."""


class Apart(NamedTuple):
    """The `kind` of sharing, of which resources (None: of all), and whether a share gets another name; the numbers
    are in what nodes advertise. `single`: a container that asks for several shares is refused. `why` says why it isn't
    known.
    """

    kind: str = ""
    names: frozenset[str] | None = frozenset()
    renamed: bool = False
    single: bool = False
    why: str = ""

    @property
    def words(self) -> str:
        """How, in words."""
        if self.why:
            return f"not known ({self.why})"
        of = f" of {', '.join(sorted(self.names))}" if self.names else ""
        single = ", one for a container" if self.single else ""
        return f"{WORDS[self.kind]}{of}{', called .shared' if self.renamed else ''}{single}"

    def distance(self, name: str) -> int:
        """How far pods with the resource NAME are kept apart."""
        return DISTANCE[self.kind] if self.names is None or name in self.names else DISTANCE[""]

    def closer_than(self, was: Apart) -> bool:
        """Whether pods that ask for the same may be closer together than they WERE, or nobody knows."""
        if self.why:
            return True
        if was.why:
            return bool(self.kind)
        names = {keys.GPU, *(was.names or ()), *(self.names or ())}
        return any(self.distance(name) < was.distance(name) for name in names) or (
            bool(self.kind) and ((was.renamed and not self.renamed) or (was.single and not self.single))
        )


def of_entries(kind: str, shared: Shared, *, single: bool) -> Apart:
    """What the entries of a text say. SINGLE: a container that asks for several shares is refused."""
    names = frozenset(entry.name for entry in shared.entries if entry.replicas > 1)
    return Apart(kind, names, shared.renamed, single) if names else Apart()


def of_config(config: PluginConfig) -> Apart:
    """What a whole text says."""
    if config.refused or config.lacking or config.ambiguous:
        return Apart(why="the device plugin refuses it")
    if not config.kind:
        return Apart()
    shared = config.sharing[config.kind]
    built_in = config.kind == "mps" and bool(plugin_config.sharing()["mps_fail_requests_default"])
    return of_entries(config.kind, shared, single=built_in if shared.fails is None else shared.fails)
