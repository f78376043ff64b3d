"""IMP9xx: what no other rule knows. Every field that changes is held against the lists of what is harmless.

Solves: rules find what somebody thought of. What nobody thought of must not pass as harmless, so here whatever isn't on
a list is power: of objects that no component makes, field by field, and of policies (origin.py says which is which).

What becomes of pods when the reconciler's rules about them change is told rule by rule: the rules are one value of the
policy, and as a line of JSON, cut where it is long, they hide one that deletes pods behind others.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ...catalog import _data
from ...model import RULES, few
from ..diff.objects import ObjectChange, mapping
from . import origin, table, versions
from .leaves import NAMES, Leaf, changed, leaves, text
from .origin import Step
from .rule import Hit, rule
from .subject import Subject
from .tiers import OUTAGE, PLANNED, POWER, ROUTINE, UNCLASSIFIED

SHOWN, LONG = 30, 160
CONTENT = {"ConfigMap", "GrafanaDashboard"}
"""Kinds that have nothing but content."""
IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
"""What says which object it is: judged by its kind and namespace."""
Judged = dict[int, list[str]]
"""The fields of an object that change, by their tiers; "" for the object as a whole."""


def judged(subject: Subject, change: ObjectChange) -> Judged:
    """What CHANGE, of a foreign object, does to its fields."""
    by_tier: Judged = defaultdict(list)
    if why := acts(subject, change):
        by_tier[POWER].append(why)
    old, new = leaves(change.old), leaves(change.new)
    gone = change.new is None
    if gone and not why and change.identity.kind not in CONTENT:
        by_tier[POWER if table.guard(change.identity.kind) else OUTAGE].append("")
    elif not why:
        entries = table.of_kind(change.identity.kind)
        for leaf in changed(old, new):
            if leaf.path not in IDENTITY or change.what == "changed":
                taken = change.identity.kind in RULES and _taken(subject, change, leaf)
                tier = POWER if taken or subject.fleet.chosen(leaf) else table.tier_of(entries, leaf)
                picked = ("labels" in leaf.path[:-1] and subject.picks(leaf)) or subject.steers_engine(change, leaf)
                by_tier[min(tier, OUTAGE) if picked else tier].append(leaf.name)
    if change.moved and change.what == "changed":
        by_tier[OUTAGE].append("")
    if not by_tier:
        by_tier[UNCLASSIFIED].append("")
    return by_tier


def _taken(subject: Subject, change: ObjectChange, leaf: Leaf) -> bool:
    """Whether LEAF gives a rule the name of an alert or series that another object has, or a series' that it reads."""
    key = leaf.path[-1]
    if key not in {"alert", "record"} or leaf.new is None:
        return False
    name = str(leaf.new)
    if name in subject.named_elsewhere(key, change):
        return True
    return table.named_in("alerts", name) if key == "alert" else subject.read_elsewhere(name, change)


def acts(subject: Subject, change: ObjectChange) -> str:
    """Why an object acts whatever its fields are, in words; "" where its fields are looked at."""
    kind, space, name = change.identity.kind, subject.literal(change.identity.namespace), change.identity.name
    group = change.identity.group
    if change.identity.engine:
        return "what an engine applies, and where"
    if group != table.LISTED.get(kind, group):
        return f"a {kind} of {group or 'the core'} is not known here"
    if change.was:
        return f"it was {change.was.name}"
    if not table.of_kind(kind):
        return "" if change.new is None and not table.guard(kind) else "no field of its kind is known"
    if any(spec and spec.cluster.namespace == space for spec in (subject.before, subject.after)):
        if not table.named_in("namespaces", space):
            return f"others may live in namespace {space}, too"
    else:
        return f"namespace {space} isn't the stack's own" if space else "it is in no namespace of the stack"
    if kind == "ConfigMap" and (reader := _reader(subject, name, change)):
        return reader
    return ""


def _reader(subject: Subject, name: str, change: ObjectChange) -> str:
    """Who reads a ConfigMap, in words; "" where nobody is known to."""
    if table.named_in("read_by_name", name):
        return "programs read a ConfigMap of this name"
    if name in subject.words:
        return "the policy or an object of it names it"
    labels = {key for each in change.both("metadata", "labels") for key in mapping(each)}
    odd = sorted(map(str, labels - set(_data.load("tiers")["labels_of_content"])))
    return f"whoever looks for the label {odd[0]} reads it" if odd else ""


def foreign(subject: Subject) -> Iterator[tuple[ObjectChange, Judged]]:
    """The changes of objects that nothing explains, and what each does; nothing for a cluster that goes."""
    if subject.whole == "gone":
        return
    for change in (*subject.changes, *subject.engine):
        if subject.foreign(change):
            yield change, judged(subject, change)


def tier_of(subject: Subject, change: ObjectChange) -> int:
    """The tier of CHANGE, by itself. A component's object has that of the policy's fields, and is planned where those
    are routine and the object isn't of a kind that is known to be."""
    if subject.whole == "gone":
        return OUTAGE
    if subject.foreign(change):
        return min(judged(subject, change))
    inert = change.what == "changed" and change.identity.kind in _data.load("tiers")["inert_kinds"]
    return ROUTINE if subject.policy_tier == ROUTINE and inert else min(PLANNED, subject.policy_tier)


def _told(names: list[str]) -> str:
    return few(list(dict.fromkeys(filter(None, names))), SHOWN)


def _hits(subject: Subject, wanted: int) -> Iterator[Hit]:
    for change, by_tier in foreign(subject):
        if min(by_tier) == wanted and (change.what != "removed" or wanted == UNCLASSIFIED):
            step = {"added": "it is new", "removed": "it is removed"}.get(change.what, "it changes")
            fields = _told(by_tier[wanted])
            yield Hit(str(change.identity), f"{step}: {fields}" if fields else step)


@rule("IMP901", 1)
def may_act(subject: Subject) -> Iterator[Hit]:
    """An object that no component makes may act."""
    yield from _hits(subject, POWER)


@rule("IMP902", 2, 1)
def own_object_goes(subject: Subject) -> Iterator[Hit]:
    """An object that no component makes is removed, or moves."""
    for change, by_tier in foreign(subject):
        if change.what == "removed" and min(by_tier) <= OUTAGE:
            yield Hit(str(change.identity), "it is removed", tier=min(by_tier))
    yield from _hits(subject, OUTAGE)


@rule("IMP903", 3)
def bounded_change(subject: Subject) -> Iterator[Hit]:
    """An object that no component makes changes within bounds."""
    yield from _hits(subject, PLANNED)


@rule("IMP904", 4)
def content(subject: Subject) -> Iterator[Hit]:
    """Content changes that nothing acts on."""
    yield from _hits(subject, UNCLASSIFIED)


VERSIONS = {("release",), ("cluster", "kubernetesVersion")}
"""Fields of which IMP701 to IMP705 say the same."""


def told(subject: Subject) -> Iterator[Step]:
    """The fields of the policy that change, each fact once: of an item that is new or gone not its name, which stands
    in the path of what else it says; nor versions that rules of their own tell."""
    back = {new for _, _, new, _ in versions.backwards(subject)}  # IMP703
    for step in subject.steps:
        *inside, key = step.leaf.path
        others = (each for each in subject.steps if each is not step and [*each.leaf.path[: len(inside)]] == inside)
        named = key in NAMES and inside and str(step.leaf.old or step.leaf.new) == inside[-1]
        if named and None in {step.leaf.old, step.leaf.new} and any(each.tier <= step.tier for each in others):
            continue
        if step.leaf.path in VERSIONS and step.tier > OUTAGE and step.leaf.old is not None:
            continue
        if key == "version" and step.tier == OUTAGE and step.leaf.new in back:
            continue
        yield step


THEN = {
    "delete": "deletes, whatever PodDisruptionBudgets say,",
    "leave": "counts as using no GPU",
    "wait": "waits, before anybody is evicted, for",
    "evict": "evicts",
}
"""What rules do, the gravest first. It stands before labels, which may be so many that a comment cuts them."""


def pod_rules(leaf: Leaf) -> Iterator[str]:
    """The rules that are new or have another place among the others, those that delete first; then those that go. Of
    one that stands twice the first counts."""
    old, new = ({text(each): each for each in side or ()} for side in (leaf.old, leaf.new))
    before, after = [each for each in old if each in new], [each for each in new if each in old]
    turns = dict.fromkeys(new, "new")
    for place, each in enumerate(after):
        back = before.index(each) - place
        turns[each] = "which came later" if back > 0 else "which came earlier" if back else ""
    numbered = [(number, *each) for number, each in enumerate(new.items(), 1) if turns[each[0]]]
    for number, key, each in sorted(numbered, key=lambda one: list(THEN).index(one[2]["then"])):
        yield f"rule {number} of {len(new)}, {turns[key]}: {_sentence(each)}"
    gone = [each for key, each in old.items() if key not in new]
    for each in gone:
        yield f"a rule that goes: {_sentence(each)}"
    if not numbered and not gone:
        yield "only rules that stand twice come or go"


def _sentence(rule: dict[str, Any]) -> str:
    labels = ", ".join(f"{key}={value}" for key, value in sorted(rule["labels"].items()))
    where = f"namespace {rule['namespace']}" if rule.get("namespace") else "any namespace"
    return f"{THEN[rule['then']]} pods in {where} with {labels}"


@rule("IMP905", 1, 2)
def policy_field(subject: Subject) -> Iterator[Hit]:
    """A field of the policy changes that isn't known to be harmless."""
    red = [step for step in told(subject) if step.tier <= OUTAGE]
    there = origin.said(subject.before) if red and subject.before else None
    for leaf, tier, _ in red:
        why = table.entry_for(table.policy(), leaf.path).why.format(new=leaf.new)
        # A field of a section that is new is judged by its default, which has never been in force.
        old = None if there is not None and leaf.path not in there else leaf.old
        plain = f"{said(leaf, old)} -> {said(leaf, leaf.new)}" + (f": {why}" if why else "")
        for what in pod_rules(leaf) if leaf.path == ("reconciler", "podRules") else [plain]:
            yield Hit(f"spec.{leaf.name}", what, tier=tier)


@rule("IMP906", 3, 4, 5)
def policy_bounded(subject: Subject) -> Iterator[Hit]:
    """Fields of the policy change within bounds."""
    if subject.whole:
        if fields := _told(list(unlike(subject))):
            yield Hit("", f"unlike the cluster of the base that it is most like: {fields}")
        return
    for step in told(subject):
        if step.tier > OUTAGE and not step.by_release and (step.tier == PLANNED or not subject.all):
            leaf = step.leaf
            yield Hit(f"spec.{leaf.name}", f"{said(leaf, leaf.old)} -> {said(leaf, leaf.new)}", tier=step.tier)
    if names := [step.leaf.name for step in subject.steps if step.by_release]:
        yield Hit("", f"defaults of the release: {', '.join(names)}")


def unlike(subject: Subject) -> Iterator[str]:
    """What a new cluster says that the one that it is most like says differently."""
    like = subject.fleet.like(subject.after) if subject.whole == "new" and subject.after else None
    for leaf in changed(like.values, origin.said(subject.after)) if like and subject.after else ():
        yield f"{leaf.name}: {said(leaf, leaf.old)} -> {said(leaf, leaf.new)}"


def said(leaf: Leaf, value: Any) -> str:
    """VALUE of LEAF in a line."""
    if value is None:
        return "not set"
    shown = value if isinstance(value, str) else text(value)
    return shown if len(shown) <= LONG else f"{shown[:LONG]}..."
