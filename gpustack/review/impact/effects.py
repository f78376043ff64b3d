"""The effects of many clusters, each once: with the clusters that it is in and the nodes of all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..diff.groups import common
from ..diff.objects import ObjectChange
from ..diff.own import Own, literal
from .routine import routine
from .rule import RULES, Hit, Range, Rule, all_rules
from .subject import Subject
from .tiers import RED

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

Specs = tuple["ClusterPolicySpec | None", "ClusterPolicySpec | None"]
Key = tuple[str, int, str, str, str]
"""Rule, tier, place, what happens there, and what to do."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens where, in which clusters, and on how many nodes; None where that isn't known for any of them.

    `tier` is how much it may do (tiers.py). `partly`: further nodes are affected whose number isn't known.
    """

    rule: str
    tier: int
    where: str
    what: str
    remedy: str
    clusters: tuple[str, ...]
    nodes: Range | None = None
    partly: bool = False

    @property
    def title(self) -> str:
        """What the rule is about."""
        return RULES[self.rule].page.title

    @property
    def why(self) -> str:
        """Why it matters."""
        return RULES[self.rule].page.why

    def number(self) -> str:
        """On how many nodes it is, in words; "" where nobody knows."""
        if self.nodes is None:
            return ""
        low, high = self.nodes
        number = f"{low} node{'' if low == 1 else 's'}" if low == high else f"{low} to {high} nodes"
        return number + (", and others whose number no policy says" if self.partly else "")


@dataclass(frozen=True, slots=True)
class Impact:
    """All effects, the lowest tier first; those of a rule together, with the most clusters first.

    `unknown` are the clusters for which the policy of a side could not be read: their numbers are missing.
    """

    effects: tuple[Effect, ...] = ()
    routine: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def red(self) -> tuple[Effect, ...]:
        """The effects that a reviewer must see: those of the tiers that wait for somebody."""
        return tuple(effect for effect in self.effects if effect.tier <= RED)

    @property
    def green(self) -> tuple[Effect, ...]:
        """The other effects."""
        return tuple(effect for effect in self.effects if effect.tier > RED)


def impact(
    found: Mapping[str, Sequence[ObjectChange]],
    specs: Mapping[str, Specs],
    new: Set[str] = frozenset(),
    gone: Set[str] = frozenset(),
    own: Mapping[str, Own] | None = None,
) -> Impact:
    """What the changes FOUND in each cluster do. SPECS are the policies of both sides, where they are known; NEW and
    GONE the clusters that one side doesn't have; OWN the names that are marked in the changes of each.

    Clusters that share their changes and their specs are looked at once.
    """
    done: dict[tuple[int, int, int, str], list[tuple[Rule, Hit]]] = {}
    kept: list[Specs] = []
    together: dict[Key, tuple[list[str], list[Range | None]]] = {}
    for cluster, changes in found.items():
        pair = specs.get(cluster, (None, None))
        kept.append(pair)  # an id means something as long as its object lives
        whole = "new" if cluster in new else "gone" if cluster in gone else ""
        key = (id(changes), id(pair[0]), id(pair[1]), whole)
        if key not in done:
            subject = Subject.of_all(changes, pair[0], pair[1], whole)  # type: ignore[arg-type]
            done[key] = [(rule, hit) for rule in all_rules() for hit in dict.fromkeys(rule.check(subject))]
        for rule, hit in done[key]:
            tier = rule.tiers[0] if hit.tier is None else hit.tier
            names, nodes = together.setdefault((rule.id, tier, hit.where, hit.what, hit.remedy), ([], []))
            names.append(cluster)
            nodes.append(hit.nodes)
    effects = [
        _effect(literal(key, common(clusters, own or {})), clusters, nodes)
        for key, (clusters, nodes) in together.items()
    ]
    order = sorted(effects, key=lambda one: (one.tier, one.rule, -len(one.clusters), one.where))
    lists = {id(changes): changes for changes in found.values()}
    harmless = bool(found) and not any(one.tier <= RED for one in order)
    harmless = harmless and not new and not gone and all(routine(changes) for changes in lists.values())
    return Impact(tuple(order), harmless)


def _effect(key: Key, clusters: list[str], nodes: list[Range | None]) -> Effect:
    name, tier, where, what, remedy = key
    known = [one for one in nodes if one is not None]
    total = (sum(low for low, _ in known), sum(high for _, high in known)) if known else None
    remedy = remedy or RULES[name].page.remedy
    return Effect(name, tier, where, what, remedy, tuple(clusters), total, bool(known) and len(known) < len(nodes))
