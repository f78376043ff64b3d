"""Where a change comes from: from a policy, field by field, or from nothing that this review knows.

Solves: every component of the GPU stack has rights and powers of its own, so that judged by its objects alone each new
release is an attack, and people learn to wave it through. What a component makes is a function of the policy (and of
gpustack, whose version is pinned and steers the review): so there the fields of the policy that changed are judged, and
what they may not do to its objects can't happen. Objects that the policy brings along, that lie in a folder without
a policy, or that change though no field of the policy does, are foreign: they are judged field by field themselves.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from ...catalog import defaults as own
from ...cluster.resolve import resolve
from ...gitops import engines
from ...model import RULES
from ...policy.language.spec import ClusterPolicySpec
from ...policy.loading.defaults import assemble
from ...policy.loading.layers import Part
from . import table
from .leaves import Leaf, Leaves, Path, changed, leaves, text
from .tags import split
from .tiers import OUTAGE, PLANNED, POWER

FACTS = ("kubernetesVersion", "platform", "containerRuntime", "openshift")
"""What of a cluster is so, whatever stack it gets."""
DIGEST = re.compile(r"([\w.:/-]{1,500})@(sha256:[0-9a-f]{64})\b")
LONG = 4000
"""Characters of a text that is taken apart."""
WORDS, QUOTED = re.compile(r"[\s/:=,]+"), re.compile(r"[\s/:=,;\"'`(){}]+")
"""Between the words of a text; QUOTED in arguments, which a shell or a parser of JSON may read."""
CONTENT = {"ConfigMap", "GrafanaDashboard", *RULES}
"""Kinds whose texts name things without reading them."""
OWN_NAME = ("metadata", "name")
OWN_FACTS = {("cluster", fact) for fact in FACTS}
ITEMS = {"nodePools", "drivers", "carried"}
"""Lists of a policy whose items stand for themselves."""
TRIED = 8
"""How many clusters are looked at as a whole, of those that a new one may be most like."""
Specs = Iterable[ClusterPolicySpec]
Name = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""
Fact = tuple[Path, str]
"""A value of a policy, as text, and its path; () for an object that it brings along."""


class Step(NamedTuple):
    """A field of a policy that changes, and what that may do. `by_release`: from a release's default to another's."""

    leaf: Leaf
    tier: int
    by_release: bool = False


class Like(NamedTuple):
    """What the cluster of the base says that a new one is most like: its VALUES, its FACTS as far as they are known
    together, and the sections in which the new one differs in what isn't green anyway: none of these is known."""

    values: Leaves
    facts: Set[Fact]
    others: Set[Path]

    @classmethod
    def of(cls, there: ClusterPolicySpec, here: ClusterPolicySpec) -> Self:
        """What THERE says, held against HERE; tolerations are known if no taint is new, objects if no guard is gone."""
        olds, news = said(there), said(here)
        differ = [leaf for leaf in changed(olds, news) if leaf.path[:2] not in OWN_FACTS]
        tiers = [table.tier_of(table.policy(), leaf, new=leaf.new is not None) for leaf in differ]
        others = {_section(leaf.path) for leaf, tier in zip(differ, tiers, strict=True) if tier <= OUTAGE}
        taints, more = ({text(said) for path, said in side.items() if path[-1] == "taints"} for side in (olds, news))
        others |= set() if more <= taints else {_section(path) for path in news if path[-1] == "tolerations"}
        guards = {placed(body, there) for body in there.extraObjects if table.guard(str(body["kind"]))}
        whole = guards <= {placed(body, here) for body in here.extraObjects}
        values = {(path, text(value)) for path, value in olds.items()}
        facts = values | {((), placed(body, there)) for body in there.extraObjects}
        return cls(olds, facts if whole else set(), others)

    def says(self, leaf: Leaf) -> bool:
        """Whether it says at its path what LEAF does, in a section that means the same."""
        there = self.values.get(leaf.path)
        return there is not None and text(there) == text(leaf.new) and _section(leaf.path) not in self.others

    def has(self, body: Mapping[str, Any], spec: ClusterPolicySpec) -> bool:
        """Whether it brings BODY along, as SPEC does, with all that names it there: an object that nothing reads in one
        cluster is news where something does."""
        return ((), placed(body, spec)) in self.facts and naming(body, spec) <= self.facts


def _section(path: Path) -> Path:
    """The part of a policy that PATH is in, whose values act together."""
    return path[: 2 if path[0] in ITEMS else 1]


@dataclass(frozen=True)
class Fleet:
    """What other clusters say: the SPECS of the base, each once. DESTINATIONS, with how many clusters each has; by
    engine installation, how its clusters are SPELLED. PINS: images and digests of images.lock and the base."""

    specs: Sequence[ClusterPolicySpec] = ()
    destinations: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    pins: Set[tuple[str, str]] = frozenset()
    spelled: Mapping[tuple[str, ...], Set[str]] = field(default_factory=dict)
    _like: dict[int, tuple[ClusterPolicySpec, Like | None]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, before: Specs, after: Specs, pins: Iterable[tuple[str, str]] = ()) -> Self:
        """What the clusters BEFORE and AFTER say, each cluster's spec once, with the PINS of images.lock."""
        specs = list({id(spec): spec for spec in before}.values())
        counted: dict[tuple[str, ...], int] = {}
        named: dict[tuple[str, ...], set[str]] = {}
        for spec in after:
            key = destination(spec)
            if key:
                counted[key] = counted.get(key, 0) + 1
            installation, name = spelled(spec)
            named.setdefault(installation, set()).add(name)
        pinned = {each for spec in specs for each in spec.cluster.imageDigests.items()}
        return cls(specs, counted, pinned.union(pins), named)

    def chosen(self, leaf: Leaf) -> bool:
        """Whether LEAF brings a digest of an image that neither images.lock nor a cluster of the base has for that
        repository: what is behind it is up to whoever chose it, whatever version stands beside it."""
        if leaf.path[:2] == ("cluster", "imageDigests"):
            return leaf.new is not None and (leaf.path[-1], str(leaf.new)) not in self.pins
        fresh = pinned(str(leaf.new)) - pinned(str(leaf.old))
        return bool(fresh) and not fresh <= self._digests

    @cached_property
    def _digests(self) -> Set[tuple[str, str]]:
        """The digests of images that are known, with their repositories."""
        known = {(split(image)[0], digest) for image, digest in self.pins}
        return known.union(*(pinned(spec.model_dump_json(exclude_none=True)) for spec in self.specs))

    def like(self, spec: ClusterPolicySpec) -> Like | None:
        """What the one cluster of the base says that SPEC, of a new one, is most like; None where there is none. What
        several clusters say, each in its own place, isn't known together."""
        if id(spec) not in self._like:
            news = changed(default_values(spec), said(spec))
            red = [leaf for leaf in news if table.tier_of(table.policy(), leaf, new=True) <= OUTAGE]

            def alike(there: ClusterPolicySpec) -> int:
                says = said(there)
                shared = [each for each in there.extraObjects if each in spec.extraObjects]
                return len([leaf for leaf in red if says.get(leaf.path) == leaf.new]) + len(shared)

            def known(like: Like) -> int:
                brought = [body for body in spec.extraObjects if like.has(body, spec)]
                return len([leaf for leaf in red if like.says(leaf)]) + len(brought)

            best = sorted(self.specs, key=alike, reverse=True)[:TRIED]
            self._like[id(spec)] = spec, max((Like.of(each, spec) for each in best), key=known, default=None)
        return self._like[id(spec)][1]


def pinned(text: str) -> set[tuple[str, str]]:
    """The images that TEXT names by a digest: repository and digest."""
    return {(split(image)[0] or image, digest) for image, digest in DIGEST.findall(text)}


def destination(spec: ClusterPolicySpec | None) -> tuple[str, ...]:
    """To which cluster an engine that serves several applies; () for one that runs in the cluster itself."""
    gitops = spec.gitops if spec else None
    chosen = engines.chosen(gitops)
    return chosen.destination(gitops) if chosen and gitops else ()


def spelled(spec: ClusterPolicySpec | None) -> tuple[tuple[str, ...], str]:
    """Which installation of an engine applies, and how it calls the cluster; ((), "") for none that serves several."""
    gitops = spec.gitops if spec else None
    chosen = engines.chosen(gitops)
    return chosen.spelled(gitops) if chosen and gitops else ((), "")


def said(spec: ClusterPolicySpec) -> Leaves:
    """All values of SPEC, less objects it brings along, which are judged themselves, and what hosts aren't asked."""
    values = spec.model_dump(mode="json", exclude_none=True)
    values.pop("extraObjects", None)
    places: dict[Path, Any] = {("carried", each.name): each for each in spec.carried}
    places |= {("nfd", name): getattr(spec.nfd, name) for name in ("master", "worker", "gc")}
    places |= {("reconciler",): spec.reconciler} if spec.reconciler else {}
    emptied: Leaves = {(*path, "tolerations"): [] for path, each in places.items() if each.tolerations == []}
    found = {path: value for path, value in leaves(values).items() if value is not False or path[2:3] != ("host",)}
    return {**found, **emptied}  # an empty list takes the place of what is there without one


def steps(before: ClusterPolicySpec | None, after: ClusterPolicySpec, fleet: Fleet) -> list[Step]:
    """What changes in a policy, and of which tier each field is. None as BEFORE is a new cluster: it is held against
    one that says nothing but its release, what the cluster is, and the guards of the one that it is most like."""
    new = before is None
    news = said(after)
    like = fleet.like(after) if new else None
    olds = {**default_values(after), **_guards(like, news)} if before is None else said(before)

    def tier(leaf: Leaf) -> int:
        known = like is not None and like.says(leaf)
        return POWER if fleet.chosen(leaf) else table.tier_of(table.policy(), leaf, new=new, known=known)

    all_steps = [Step(leaf, tier(leaf)) for leaf in changed(*_filled(olds, news))]
    if gone := _gone(olds, news):
        all_steps = [_of_a_pool_that_goes(step, gone) for step in all_steps]
    if before is None or before.release == after.release:
        return all_steps
    defaults = default_values(before), default_values(after)
    return [_explained(step, *defaults) for step in all_steps]


def _guards(like: Like | None, news: Leaves) -> Leaves:
    """What the cluster that a new one is LIKE keeps workloads from, in the sections that the new one has as well."""
    sections, entries = {_section(path) for path in news}, table.policy()
    there = [(path, value) for path, value in (like.values.items() if like else ()) if _section(path) in sections]
    return {path: value for path, value in there if table.entry_for(entries, path).guard}


def _filled(olds: Leaves, news: Leaves) -> tuple[Leaves, Leaves]:
    """Both with gpustack's own defaults of the sections and items that one of them has: what comes or goes with those
    is not a change where it is the default."""
    held: dict[Path, Any] = {}
    for path in {path[:2] for path in (*olds, *news)}:
        for rule in own.rules():
            if rule.kind and path[0] == rule.name:
                above = path[:1] if rule.kind == "where" else path
                held |= {(*above, *below): value for below, value in leaves(rule.values).items()}
    return {**held, **olds}, {**held, **news}


def _gone(olds: Leaves, news: Leaves) -> dict[str, list[str]]:
    """The pools that go, and the new ones that may have their nodes."""
    before, after = ({path[1] for path in side if path[0] == "nodePools"} for side in (olds, news))

    def labels(side: Leaves, name: str) -> dict[str, Any]:
        start = ("nodePools", name, "nodeSelector")
        return {path[3]: value for path, value in side.items() if path[:3] == start}

    def meet(one: dict[str, Any], two: dict[str, Any]) -> bool:
        return all(two.get(key, value) == value for key, value in one.items())

    return {
        name: [each for each in sorted(after - before) if meet(labels(olds, name), labels(news, each))]
        for name in before - after
    }


def _of_a_pool_that_goes(step: Step, gone: Mapping[str, Sequence[str]]) -> Step:
    """STEP, held against what a pool says that takes the nodes of one that is GONE: that pools go is told by itself."""
    path, leaf = step.leaf.path, step.leaf
    heirs = gone.get(path[1]) if path[0] == "nodePools" and leaf.new is None else None
    if heirs is None:
        return step
    values = [leaf.news.get((*path[:1], heir, *path[2:])) for heir in heirs]
    others = (replace(leaf, new=value) for value in values if text(value) != text(leaf.old))
    return step._replace(tier=min([PLANNED, *(table.tier_of(table.policy(), each) for each in others)]))


def _explained(step: Step, before: Leaves, after: Leaves) -> Step:
    """STEP, as planned where it goes from one release's own default to the other's."""
    leaf = step.leaf
    own = text(before.get(leaf.path)) == text(leaf.old) and text(after.get(leaf.path)) == text(leaf.new)
    return step._replace(tier=max(step.tier, PLANNED), by_release=True) if own else step


def default_values(spec: ClusterPolicySpec) -> Leaves:
    """What a policy says that has nothing but the release of SPEC and what its cluster is."""
    cluster = spec.cluster.model_dump(mode="json", exclude_none=True)
    said_too: dict[str, Any] = {} if not resolve(spec).dra else {"gpuCluster": {}}  # its defaults come with the section
    said_too |= {"defaults": spec.defaults} if spec.defaults else {}
    facts = {"cluster": {key: cluster[key] for key in FACTS if key in cluster}, **said_too}
    return _defaults(spec.release, text(facts))


@cache
def _defaults(release: str, facts: str) -> Leaves:
    merged, _ = assemble([Part("policy", "defaults", {"release": release, **json.loads(facts)})])
    try:
        return said(ClusterPolicySpec.model_validate(merged.spec))
    except ValidationError:
        return {}  # then everything is said by the policy


def placed(body: Mapping[str, Any], spec: ClusterPolicySpec) -> str:
    """BODY, which SPEC brings along, as text, with the namespace that it comes to."""
    return text([body["metadata"].get("namespace") or spec.cluster.namespace, body])


def naming(body: Mapping[str, Any], spec: ClusterPolicySpec) -> set[Fact]:
    """What of SPEC names BODY, one of its objects: values, whether their component is on, and other objects."""
    name, values = str(body["metadata"]["name"]), said(spec)
    paths = {path for path, value in values.items() if name in path or name in texts(value, QUOTED)}
    sections = {path[0] for path in paths}
    paths |= {path for path in values if path[0] in sections and path[-1] == "enabled"}
    others = [
        each
        for each in spec.extraObjects
        if each is not body
        and name in texts([value for path, value in leaves(each).items() if path != OWN_NAME], QUOTED)
    ]
    return {(path, text(values[path])) for path in paths} | {((), placed(each, spec)) for each in others}


def names(body: Mapping[str, Any], spec: ClusterPolicySpec) -> set[Name]:
    """The names that BODY, which SPEC brings along, may have once it is rendered: without a namespace, or with that of
    the cluster, where it says none."""
    meta, group = body["metadata"], str(body["apiVersion"]).rpartition("/")[0]
    own = str(meta.get("namespace") or "")
    spaces = {own, own or spec.cluster.namespace}
    return {(group, str(body["kind"]), space, str(meta["name"])) for space in spaces}


def words(spec: ClusterPolicySpec) -> set[str]:
    """Every text that SPEC says, but for its own objects' own names: who reads a ConfigMap names it in one of them."""
    collected = texts(list(said(spec).values()))
    for body in spec.extraObjects:
        parts = WORDS if body["kind"] in CONTENT else QUOTED
        collected |= texts([value for path, value in leaves(body).items() if path != OWN_NAME], parts)
    return collected


def texts(value: Any, parts: re.Pattern[str] = WORDS) -> set[str]:
    """All texts in VALUE, and what PARTS tells apart in them: words in a list, a namespace and a name."""
    if isinstance(value, str):
        return {value, *filter(None, parts.split(value))} if len(value) < LONG or parts is QUOTED else {value}
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return set[str]().union(*(texts(each, parts) for each in inner))
