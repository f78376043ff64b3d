"""IMP3xx about MIG: whose GPUs are cut anew and by whom, who waits for somebody, and what nodes advertise until then.

The MIG manager acts when the label nvidia.com/mig.config of its node changes, and once when its pod starts. It never
looks at its ConfigMap by itself (reconciler.md M2, M4). So what a new layout does depends on who moves the label. Where
the reconciler keeps the manager's file, a name has one content for as long as a node has it, so no restart cuts anew.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ...api import keys
from ...api.keys import LAYOUTS
from ...cluster.pool import Pool
from ...cluster.resolve import resolve
from ...components.plugin.configs_inputs import digest, kept_layouts
from ...components.reconciler import node_policies_inputs as node_policies
from ...model import Body
from ...policy.language import reconciler
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ..diff.objects import ObjectChange, at, items, mapping
from .gpus import Pair, amounts, pairs, spread
from .pods import templates
from .rule import Hit, Range, rule
from .subject import Subject, strategy
from .tiers import OUTAGE, PLANNED

MANAGER = "nvidia-mig-manager"
Way = Literal["cut", "stale", "label"]
"""Something cuts the GPUs; nothing does while the label keeps its value; nothing does before the label is another."""


class Layout(NamedTuple):
    """What the label of nodes names, what that is ("" where only the node knows), and whether the pool commands it."""

    name: str
    content: str
    commanded: bool


@rule("IMP303", 3, 2)
def mig_changes(subject: Subject) -> Iterator[Hit]:
    """MIG layouts change."""
    yield from (hit for way, hit in _changes(subject) if way == "cut")
    yield from _by_discovery(subject)
    if subject.before is not None and subject.after is not None:
        return
    for change in subject.changed("NodePolicy"):
        one, two = change.both("spec", "mig", "digest")
        if one != two:
            yield Hit(str(change.identity), "the MIG layout of its nodes changes")


@rule("IMP307", 2)
def stale_layout(subject: Subject) -> Iterator[Hit]:
    """A MIG layout changes under the same name, and nothing cuts its nodes."""
    yield from (hit for way, hit in _changes(subject) if way == "stale")


@rule("IMP308", 2)
def strategy_changes(subject: Subject) -> Iterator[Hit]:
    """mig.strategy changes, and nodes are cut as before when it does."""
    before, after = subject.before, subject.after
    if before is None or after is None or resolve(after).dra or before.mig.strategy == after.mig.strategy:
        return
    one, two = before.mig.strategy or "none", after.mig.strategy or "none"
    yield Hit("", f"mig.strategy: {one} -> {two}, with the sync and on all nodes")
    between = before.model_copy(update={"mig": after.mig})
    for pool, now in zip(resolve(before).pools, resolve(between).capacity, strict=True):
        was = pool.capacity
        if was.per_node and was.per_node != now.per_node:
            told = amounts(now.per_node) if now.per_node else "nothing that is known: the device plugin refuses it"
            what = f"until a node is cut anew it advertises {amounts(was.per_node)} -> {told}"
            yield Hit(f"pool {pool.name}", what, spread(pool))


@rule("IMP309", 3)
def label_waits(subject: Subject) -> Iterator[Hit]:
    """A pool's MIG layout changes, and its nodes keep theirs until somebody changes their label."""
    yield from (hit for way, hit in _changes(subject) if way == "label")


@rule("IMP310", 2, 3)
def waiting_nodes(subject: Subject) -> Iterator[Hit]:
    """The MIG manager restarts, and may cut nodes that still wait for a layout."""
    before, after = subject.before, subject.after
    restarts = _manager_restarts(subject)
    if subject.whole or before is None or after is None or not manages(after) or not restarts or keeps(after):
        return
    its_own = any(each.what == "added" or any(one.inside(MANAGER) for one in each.fields) for each in restarts)
    had = {pool.name: layout(pool) for pool in resolve(before).pools}
    for pool in resolve(after).pools:
        now, mig = layout(pool), pool.said.sharing.mig
        own = (mig is not None and not mig.config) or pool.cluster.layouts.kind != "release"
        if own and now and (one := had.get(pool.name)) and one[:2] == now[:2]:
            windows = reconciler.runs(after) and bool(pool.budget.windows)
            until = "wait for their window" if windows else "aren't cut as the policy says"
            what = f"the pods of {MANAGER} restart: nodes that still {until} may be cut at once, without a drain"
            yield Hit(f"pool {pool.name}", what, spread(pool), tier=OUTAGE if windows and its_own else PLANNED)


def _changes(subject: Subject) -> Iterator[tuple[Way, Hit]]:
    """Each layout that changes, and what becomes of it."""
    restarts = bool(_manager_restarts(subject))
    pooled: set[str] = set()
    after = subject.after
    for pair in pairs(subject):
        if subject.before is None or after is None:
            return
        one, two = layout(pair.before), layout(pair.after)
        pooled |= {each.name for each in (one, two) if each}
        if one != two and (one is None or two is None or one[:2] != two[:2]):
            yield _change(after, pair, one, two, restarts)
    for name in _others(subject):
        if name not in pooled and after is not None:
            what = f"its content changes; nodes with {keys.MIG_CONFIG}={name} "
            yield _same_label(f"layout {name}", what, None, restarts=restarts, after=after)


def _change(
    after: ClusterPolicySpec, pair: Pair, one: Layout | None, two: Layout | None, restarts: bool
) -> tuple[Way, Hit]:
    """What becomes of the pools of PAIR, whose layout was ONE and is TWO."""
    where, nodes = f"pool {pair.after.name}", spread(pair.after)
    was, now = said(pair.before.said, one), said(pair.after.said, two)
    step = f"MIG: {was} -> {now}" if was != now else f"MIG: {now} has another content"
    if not manages(after):
        return "label", Hit(where, f"{step}; no MIG manager runs, so nothing cuts its nodes", nodes)
    if two is None:
        return "label", Hit(where, f"{step}; its nodes stay cut as they are", nodes)
    same = one is not None and one.name == two.name
    if same and restarts and not keeps(after):
        return _same_label(where, f"{step}; its nodes ", nodes, restarts=True, after=after)
    if reconciler.runs(after) and two.commanded:
        return "cut", Hit(where, step, nodes)
    if same:
        return _same_label(where, f"{step}; its nodes ", nodes, restarts=restarts, after=after)
    why = "no reconciler runs" if not reconciler.runs(after) else "the label is how the pool selects its nodes"
    return "label", Hit(where, f"{step}; {why}, so each node waits for its label {keys.MIG_CONFIG}={two.name}", nodes)


def _same_label(
    where: str, what: str, nodes: Range | None, *, restarts: bool, after: ClusterPolicySpec
) -> tuple[Way, Hit]:
    """What becomes of nodes whose label names another layout all at once, without a change of the label."""
    if keeps(after):
        end = f"keep what they have until their label is the name that ConfigMap {LAYOUTS} gives the new content"
        return "stale", Hit(where, what + end, nodes)
    if restarts:
        end = f"are cut without a drain as the pods of {MANAGER} restart, which they do in the same change"
        return "cut", Hit(where, what + end, nodes, tier=OUTAGE)
    return "stale", Hit(where, f"{what}aren't cut before the label changes or the pod of {MANAGER} restarts", nodes)


def manages(spec: ClusterPolicySpec) -> bool:
    """Whether the MIG manager runs."""
    return bool(spec.migManager.enabled) and resolve(spec).mig_manager


def keeps(spec: ClusterPolicySpec) -> bool:
    """Whether the reconciler keeps the file of the MIG manager."""
    return bool(kept_layouts(resolve(spec)))


def layout(pool: Pool) -> Layout | None:
    """What the label of the nodes of POOL is to name, or what the pool selects them by; None for neither."""
    wanted = node_policies.mig(pool)
    if wanted is not None:
        return Layout(wanted.config, wanted.digest, commanded=True)
    label = pool.said.nodeSelector.get(keys.MIG_CONFIG)
    chosen = pool.layout if label else None
    content = [str(element.effect) for element in (chosen.elements if chosen else None) or ()]
    return Layout(label, digest(content) if content else "", commanded=False) if label else None


def _others(subject: Subject) -> list[str]:
    """The layouts of the policy's own text whose content changes: a node may have any of them as its label."""
    if subject.before is None or subject.after is None or subject.before is subject.after:
        return []
    one, two = resolve(subject.before).layouts, resolve(subject.after).layouts
    if not manages(subject.after) or {one.kind, two.kind} != {"custom"}:
        return []
    both = [name for name in two.entries if name in one.entries]
    return [name for name in both if [e.effect for e in one.entries[name]] != [e.effect for e in two.entries[name]]]


def _manager_restarts(subject: Subject) -> list[ObjectChange]:
    """The changes with which pods of the MIG manager start: each then asserts what its label names."""
    new = (change for change in subject.of("DaemonSet") if change.what == "added")
    starting = [change for change in (*templates(subject, "DaemonSet"), *new) if change.identity.name == MANAGER]
    return [change for change in starting if change.what == "added" or strategy(change.new) != "OnDelete"]


def _by_discovery(subject: Subject) -> Iterator[Hit]:
    """Labels that node feature discovery sets: it changes them on all nodes that a rule matches."""
    if subject.whole or (subject.after is not None and not manages(subject.after)):
        return
    for change in subject.of("NodeFeatureRule"):
        old, new = _labelled(change.old), _labelled(change.new)
        for name, value in new.items():
            if old.get(name) != value:
                was = f"instead of {old[name]}" if name in old else "for the first time"
                sets = f"node feature discovery sets {keys.MIG_CONFIG}={value} {was}"
                what = f"{sets}: its nodes are cut at once, without a drain"
                yield Hit(str(change.identity), what, tier=OUTAGE)


def _labelled(body: Body | None) -> dict[str, str]:
    """The layout that each rule of a NodeFeatureRule gives to its nodes."""
    rules = [mapping(each) for each in items(at(body, "spec", "rules"))]
    given = {str(each.get("name")): mapping(each.get("labels")).get(keys.MIG_CONFIG) for each in rules}
    return {name: str(value) for name, value in given.items() if value}


def said(pool: NodePool, chosen: Layout | None) -> str:
    """The layout of POOL in words."""
    section = pool.sharing.mig
    if section is not None:
        return cut(section.model_dump(exclude_none=True, exclude_defaults=True))
    return f"layout {chosen.name}" if chosen else "not said"


def cut(mig: Any) -> str:
    """A MIG section in words."""
    shape = mapping(mig).get("layout")
    if shape is not None:
        return ", ".join(f"{count} x {name}" for name, count in shape.items()) or "whole GPUs"
    if mapping(mig).get("config"):
        return f"layout {mig['config']}"
    return "; ".join(
        f"GPU {', '.join(map(str, part.get('indices', ())))}: {cut({'layout': part.get('layout') or {}})}"
        for part in mapping(mig).get("devices") or ()
    )
