"""The effects of many clusters, each once, with its tier: with the clusters that it is in and the nodes of all of them
together.

What a finding is about, before and after, is told by digests: what somebody who accepts it has looked at. A finding
about an object, or several, is about the whole of it, one about a field of the policy about that field, any other about
all that changes in its clusters. So whatever is pushed later to the same place is another finding.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ...policy.language.spec import ClusterPolicySpec
from ..diff.groups import common
from ..diff.objects import ObjectChange
from ..diff.own import Own, literal
from .classifier import tier_of
from .leaves import text
from .origin import Fleet, destination, spelled
from .rule import RULES, Hit, Range, all_rules
from .subject import Subject, Whole
from .tiers import RED, ROUTINE

Pair = tuple[str, str]
ABSENT = "absent"
"""Stands for an object that a side doesn't have."""


def digest(value: Any) -> str:
    """The digest of VALUE, whatever the order of its keys is."""
    return f"sha256:{hashlib.sha256(text(value).encode('utf-8', 'surrogatepass')).hexdigest()}"


def about(subject: Subject, hit: Hit) -> Pair:
    """The digests of what HIT is about, before and after."""
    changes = (*subject.changes, *subject.engine)
    wanted = {*hit.about} or {hit.where}
    meant = [change for change in changes if wanted & {str(change.identity), str(change.was)}]
    if meant:
        return _each([(change.old or ABSENT, change.new or ABSENT) for change in meant])
    leaves = [step.leaf for step in subject.steps]
    named = [(leaf.old, leaf.new) for leaf in leaves if hit.where == f"spec.{leaf.name}"]
    if named:
        return _each(named)
    whole = [(str(change.identity), change.file, change.old or ABSENT, change.new or ABSENT) for change in changes]
    before = [[[leaf.path, leaf.old] for leaf in leaves], [[name, file, old] for name, file, old, _ in whole]]
    after = [[[leaf.path, leaf.new] for leaf in leaves], [[name, file, new] for name, file, _, new in whole]]
    return digest(before), digest(after)


def _each(pairs: Sequence[tuple[Any, Any]]) -> Pair:
    return digest([one for one, _ in pairs]), digest([two for _, two in pairs])


Specs = tuple[ClusterPolicySpec | None, ClusterPolicySpec | None]
"""The effective specs of a cluster before and after; None for a side that has no policy, or an unknown one."""
Key = tuple[str, int, str, str, str]
"""Rule, tier, place, what happens there, and what to do."""


@functools.lru_cache(maxsize=8192)
def _digest(rule: str, tier: int, where: str, what: str, clusters: tuple[str, ...]) -> str:
    """What names a finding; asked for again and again while a comment is fitted into its budget."""
    known = json.dumps([rule, tier, where, what, sorted(clusters)])
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens where, in which clusters, and on how many nodes; None where that isn't known for any of them.

    `tier` is how much it may do (tiers.py); `before` and `after` are digests of what it is about, where somebody has to
    accept it, and `accepted` who does. `partly`: further nodes are affected whose number isn't known."""

    rule: str
    tier: int
    where: str
    what: str
    remedy: str
    clusters: tuple[str, ...]
    nodes: Range | None = None
    partly: bool = False
    before: str = ""
    after: str = ""
    accepted: str = ""

    @property
    def id(self) -> str:
        """What the finding is called: the same for the same finding in the same clusters, and for no other one."""
        return f"{self.rule}-{_digest(self.rule, self.tier, self.where, self.what, self.clusters)}"

    @property
    def title(self) -> str:
        return RULES[self.rule].page.title

    @property
    def why(self) -> str:
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

    `tier` is that of the whole change, None where nothing changes. `changes` are those of each cluster, each with its
    tier. `unknown` are the clusters for which the policy of a side could not be read: their numbers are missing."""

    effects: tuple[Effect, ...] = ()
    tier: int | None = None
    unknown: tuple[str, ...] = ()
    changes: Mapping[str, Sequence[ObjectChange]] = field(default_factory=dict, repr=False)

    @property
    def routine(self) -> bool:
        """Whether nothing but what is known to be harmless changes."""
        return self.tier == ROUTINE

    @property
    def red(self) -> tuple[Effect, ...]:
        """The effects that a reviewer must see: those of the tiers that wait for somebody."""
        return tuple(effect for effect in self.effects if effect.tier <= RED)

    @property
    def green(self) -> tuple[Effect, ...]:
        """The other effects."""
        return tuple(effect for effect in self.effects if effect.tier > RED)

    def joined(self, more: Sequence[Effect]) -> Self:
        """This, and MORE effects that no cluster's changes have."""
        effects = tuple(sorted((*self.effects, *more), key=_order))
        known = [tier for tier in (self.tier, *(effect.tier for effect in more)) if tier is not None]
        return replace(self, effects=effects, tier=min(known, default=None))


_Told = list[tuple[str, Range | None, Pair]]
"""The clusters that an effect is in, on how many nodes of each, and the digests of what it is about there."""
_Seen = tuple[Sequence[tuple[str, int, Hit, Pair]], Sequence[int]]
"""What was found in clusters of the same changes and policies: hits with rule, tier and digests; each change's tier."""


def impact(
    by_cluster: Mapping[str, Sequence[ObjectChange]],
    specs: Mapping[str, Specs],
    *,
    new: Set[str] = frozenset(),
    gone: Set[str] = frozenset(),
    own: Mapping[str, Own] | None = None,
    fleet: Callable[[], Fleet] = Fleet,
) -> Impact:
    """What the changes BY_CLUSTER do. SPECS are the policies of both sides, where they are known; NEW and
    GONE the clusters that one side doesn't have; OWN the names that are marked in the changes of each. FLEET tells what
    other clusters say, and is asked at most once, where that matters.

    Clusters that share their changes and their specs are looked at once."""
    done: dict[tuple[int, int, int, str], _Seen] = {}
    kept: list[Specs] = []
    all_told: dict[Key, _Told] = {}
    lists: dict[int, tuple[Sequence[ObjectChange], list[int]]] = {}
    others = fleet() if new or any(itertools.starmap(_asks, specs.values())) else Fleet()
    for cluster, changes in by_cluster.items():
        pair = specs.get(cluster, (None, None))
        kept.append(pair)  # an id means something as long as its object lives
        whole: Whole = "new" if cluster in new else "gone" if cluster in gone else ""
        key = (id(changes), id(pair[0]), id(pair[1]), whole)
        if key not in done:
            _, tiers = done[key] = _see(Subject(changes, *pair, whole, others))
            known = lists.setdefault(id(changes), (changes, [ROUTINE] * len(changes)))[1]
            known[:] = map(min, known, tiers)
        hits, _ = done[key]
        for rule, tier, hit, digests in hits:
            told = all_told.setdefault((rule, tier, hit.where, hit.what, hit.remedy), [])
            told.append((cluster, hit.nodes, digests))
    effects = [_effect(key, told, own or {}) for key, told in all_told.items()]
    with_tiers = {at: [replace(one, tier=tier) for one, tier in zip(*each, strict=True)] for at, each in lists.items()}
    lowest = [effect.tier for effect in effects] + [tier for _, tiers in lists.values() for tier in tiers]
    judged = {cluster: with_tiers[id(changes)] for cluster, changes in by_cluster.items()}
    return Impact(tuple(sorted(effects, key=_order)), min(lowest, default=None), (), judged)


def by_rule(effects: Sequence[Effect]) -> Iterator[tuple[Effect, list[Effect]]]:
    """EFFECTS of each tier and rule together, with the first of them."""
    for _, same in itertools.groupby(effects, key=lambda effect: (effect.tier, effect.rule)):
        of_rule = list(same)
        yield of_rule[0], of_rule


def _asks(one: ClusterPolicySpec | None, two: ClusterPolicySpec | None) -> bool:
    """Whether it matters from ONE to TWO what other clusters say: another place to apply to, or other pins."""
    pins = two is not None and two is not one and (one.cluster.imageDigests if one else {}) != two.cluster.imageDigests
    return pins or destination(one) != destination(two) or spelled(one) != spelled(two)


def _order(effect: Effect) -> tuple[int, str, int, str]:
    return effect.tier, effect.rule, -len(effect.clusters), effect.where


def _see(subject: Subject) -> _Seen:
    """What the rules say about SUBJECT, and the tier of each of its changes, in the order in which it has them."""
    hits = []
    for rule in all_rules():
        for hit in dict.fromkeys(rule.hits(subject)):
            tier = rule.tiers[0] if hit.tier is None else hit.tier
            hits.append((rule.id, tier, hit, about(subject, hit) if tier <= RED else ("", "")))
    return hits, [tier_of(subject, change) for change in subject.all]


def _effect(key: Key, told: _Told, own: Mapping[str, Own]) -> Effect:
    clusters, nodes, digests = zip(*told, strict=True)
    name, tier, where, what, remedy = literal(key, common(clusters, own))
    known = [one for one in nodes if one is not None]
    total = (sum(low for low, _ in known), sum(high for _, high in known)) if known else None
    distinct, partly = sorted(set(digests)), bool(known) and len(known) < len(nodes)
    pair = distinct[0] if len(distinct) == 1 else _each(distinct)
    return Effect(name, tier, where, what, remedy or RULES[name].page.remedy, clusters, total, partly, *pair)
