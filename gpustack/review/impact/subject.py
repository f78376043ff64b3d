"""What a rule looks at: the changes of one cluster, with the policies of both sides where they are known.

A label says whose something is until a NetworkPolicy, a Service or a disruption budget picks pods by it: so what
selectors in objects want is known, too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from ...api import keys
from ...gitops.engines import engines
from ...model import CONSTRUCT, RULES, Body
from ...policy.language.spec import ClusterPolicySpec
from ..diff.objects import Identity, ObjectChange, at, items, mapping
from ..diff.own import NAMESPACE
from .leaves import Leaf, text
from .origin import CONTENT, Fleet, Name, Step, names, said, steps, words
from .tags import moves
from .tiers import OUTAGE, PLANNED, POWER, ROUTINE

Whole = Literal["", "new", "gone"]
LABELS = {"labels", "additionalLabels"}
"""Fields that are labels of objects or pods."""
POD = ("spec", "template", "spec")
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob")
NOTES = ("metadata", "annotations")
READ = tuple(prefix for each in engines() for prefix in each.annotations)
"""What the annotations begin with that engines read."""


class Requirement(NamedTuple):
    """What a selector wants of a label: HOW is In, NotIn, Exists, DoesNotExist, or "" for what isn't understood."""

    key: str
    how: str
    values: tuple[str, ...] = ()

    def holds(self, value: Any) -> bool | None:
        """Whether it is met by VALUE, None for no such label; None as answer where nobody knows."""
        there = value is not None
        found = there and str(value) in self.values
        return {"In": found, "NotIn": not found, "Exists": there, "DoesNotExist": not there}.get(self.how)


def requirements(value: Any, key: str = "") -> Iterator[Requirement]:
    """All that selectors in VALUE, which stands at KEY, want."""
    if isinstance(value, Mapping):
        plain = all(isinstance(each, (str, int, bool)) for each in value.values())
        if key == "matchLabels" or (key.lower().endswith("selector") and plain and key != "nodeSelector"):
            yield from (Requirement(_bare(name), "In", (str(each),)) for name, each in value.items())
        elif "key" in value and "operator" in value:
            wanted = value.get("values")
            values = tuple(map(str, wanted)) if isinstance(wanted, (list, tuple)) else ()
            yield Requirement(_bare(value["key"]), str(value["operator"]), values)
        for name, each in value.items():
            yield from requirements(each, str(name))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from requirements(each, key)
    elif isinstance(value, str) and ("label" in value.lower() or "selector" in key.lower()):
        yield from (Requirement(_bare(word), "") for word in re.findall(r"[\w./:-]+", value))


def _bare(key: Any) -> str:
    """KEY of a label without what Cilium writes before it."""
    return re.sub("^(?:k8s|any):", "", str(key))


def picks_differently(wanted: Iterable[Requirement], key: str, old: Any, new: Any) -> bool:
    """Whether one of the requirements WANTED answers differently once the label KEY is NEW instead of OLD. Each is
    asked by itself, whatever else its selector wants: if none answers differently, none of the selectors does."""
    mine = [each for each in wanted if each.key == key]
    return any(each.holds(old) != each.holds(new) or each.holds(new) is None for each in mine)


@dataclass(frozen=True)
class Subject:
    """ALL changes of one cluster. BEFORE and AFTER are the effective specs, None without one, or if it isn't known.

    `whole`: the cluster is new, or gone with all that it had. `fleet` is what other clusters say."""

    all: Sequence[ObjectChange]
    before: ClusterPolicySpec | None
    after: ClusterPolicySpec | None
    whole: Whole
    fleet: Fleet

    @cached_property
    def changes(self) -> Sequence[ObjectChange]:
        """Those of the cluster's own objects."""
        return [change for change in self.all if not change.identity.engine]

    @cached_property
    def engine(self) -> Sequence[ObjectChange]:
        """Those of the GitOps engine's own objects: they are applied where the engine is, so what holds for objects of
        the cluster does not hold for them."""
        return [change for change in self.all if change.identity.engine]

    @cached_property
    def _specs(self) -> Sequence[ClusterPolicySpec]:
        """The policies that are known, each once."""
        return [*{id(spec): spec for spec in (self.before, self.after) if spec}.values()]

    @cached_property
    def _bodies(self) -> Sequence[tuple[ClusterPolicySpec, Body]]:
        """The objects that these bring along, each with its policy."""
        return [(spec, body) for spec in self._specs for body in spec.extraObjects]

    @cached_property
    def steps(self) -> Sequence[Step]:
        """What changes in the policy, field by field; nothing where a side's policy isn't known."""
        if self.after is None or (self.before is None and self.whole != "new") or self.before is self.after:
            return ()
        found = steps(self.before, self.after, self.fleet)
        return [step._replace(tier=min(step.tier, self._in_objects(step.leaf))) for step in found]

    def _in_objects(self, leaf: Leaf) -> int:
        """The tier of what LEAF of the policy does to objects beside what it says: ROUTINE for nothing."""
        if LABELS & set(leaf.path) and self.picks(leaf):
            return OUTAGE
        if leaf.path[-1] != "imagePullPolicy" or leaf.new == "IfNotPresent" or self.whole == "new":
            return ROUTINE
        pulls = {moving for change in self.of(*WORKLOADS) for moving in pulled_anew(change)}
        return POWER if True in pulls or (leaf.new == "Always" and not pulls) else ROUTINE

    def steers_engine(self, change: ObjectChange, leaf: Leaf) -> bool:
        """Whether LEAF of an object is an annotation of an engine that the policy writes itself: all others are
        gpustack's own marks, which follow from what the object is."""
        if leaf.path[:2] != NOTES or not leaf.path[-1].startswith(READ):
            return False
        own = self._name(change.identity)
        notes = (mapping(at(body, *NOTES)) for spec, body in self._bodies if own in names(body, spec))
        return any(leaf.path[-1] in each for each in notes)

    def picks(self, leaf: Leaf) -> bool:
        """Whether a selector, of an object that changes or is brought along, picks differently by the label of LEAF."""
        return picks_differently(self._requirements, leaf.path[-1], leaf.old, leaf.new)

    @cached_property
    def _requirements(self) -> Sequence[Requirement]:
        changed = [body for change in self.all for body in (change.old, change.new) if body]
        words = [str(value) for spec in self._specs for path, value in said(spec).items() if path[-1] == "podSelector"]
        bodies = [*(body for _, body in self._bodies), *changed]
        read = [body for body in bodies if body.get("kind") not in CONTENT]  # whose texts are for people
        return [*requirements(read), *requirements({"podSelector": words})]

    @cached_property
    def policy_tier(self) -> int:
        """The tier of what changes in the policy."""
        return min((step.tier for step in self.steps), default=ROUTINE)

    @cached_property
    def _brought(self) -> set[Name]:
        return set[Name]().union(*(names(body, spec) for spec, body in self._bodies))

    def foreign(self, change: ObjectChange) -> bool:
        """Whether no field explains CHANGE: the policy brings the object along, isn't known, or says the same."""
        one, two = self.before, self.after
        if change.identity.engine and one and two and one.extraObjects != two.extraObjects:
            return False  # what an AppProject permits follows from the objects, which are judged themselves
        if not self.steps or any(change.both(*NOTES, CONSTRUCT)):
            return True
        both = (change.identity, change.was) if change.was else (change.identity,)
        its_names = {self._name(each) for each in both}
        return not self._brought.isdisjoint(its_names) and not (self.whole == "new" and its_names <= self._anothers)

    def _name(self, it: Identity) -> Name:
        return it.group, it.kind, self.literal(it.namespace), self.literal(it.name)

    @cached_property
    def _anothers(self) -> set[Name]:
        """The objects of a new cluster that another one of the base brings along as well, and reads alike."""
        after = self.after
        like = self.fleet.like(after) if after else None
        own = [(body, after) for body in after.extraObjects if like.has(body, after)] if after and like else ()
        return set[Name]().union(*(names(body, spec) for body, spec in own))

    def named_elsewhere(self, key: str, change: ObjectChange) -> set[str]:
        """The alerts or recorded series (KEY) of objects that policies of both sides bring along, CHANGE's aside."""
        own = (self.literal(change.identity.namespace), self.literal(change.identity.name))
        others = set()
        for spec, body in self._bodies:
            meta = body["metadata"]
            where = (str(meta.get("namespace") or spec.cluster.namespace), str(meta["name"]))
            if body["kind"] in RULES and where != own:
                others |= {str(rule[key]) for rule in alert_rules(body) if rule.get(key)}
        return others

    def read_elsewhere(self, series: str, change: ObjectChange) -> bool:
        """Whether an object of a policy of either side, CHANGE's aside, reads SERIES; to show it doesn't count."""
        own, word = change.identity, re.compile(rf"(?<![\w:]){re.escape(series)}(?![\w:])")
        return any(
            word.search(text(body))
            for _, body in self._bodies
            if (body["kind"], body["metadata"]["name"]) != (own.kind, self.literal(own.name))
            and body["kind"] != "GrafanaDashboard"
            and "grafana_dashboard" not in mapping(at(body, "metadata", "labels"))
        )

    @cached_property
    def words(self) -> set[str]:
        """Every text that the policies of both sides say."""
        return set[str]().union(*map(words, self._specs))

    def literal(self, name: str) -> str:
        """NAME, with the cluster's own namespace for its mark."""
        spec = self.after or self.before
        return name.replace(NAMESPACE, spec.cluster.namespace) if spec else name

    def power(self, change: ObjectChange) -> int:
        """The tier of power that CHANGE gives: a component's own is planned, if nothing in the policy is more."""
        return POWER if self.foreign(change) or self.policy_tier <= POWER else PLANNED

    def gained(self, change: ObjectChange) -> int:
        """The tier of what CHANGE lets do more: power, unless only versions and what is switched on are behind it."""
        behind = (step for step in self.steps if step.tier <= PLANNED and not step.by_release)
        ends = [(step.leaf.path[-1], step.leaf.new) for step in behind]
        usual = all(key in {"release", "version", "without"} or (key == "enabled" and new is True) for key, new in ends)
        return self.power(change) if usual or self.whole == "new" or change.what != "changed" else POWER

    def judged(self, *kinds: str) -> Iterator[ObjectChange]:
        """The changes of objects of KINDS, of a new cluster those of foreign ones: all others are its components'."""
        return (change for change in self.of(*kinds) if self.whole != "new" or self.foreign(change))

    def changed(self, *kinds: str) -> Iterator[ObjectChange]:
        """Those of objects of KINDS that are there before and after, under one name."""
        return (change for change in self.of(*kinds) if change.what == "changed")

    def of(self, *kinds: str) -> Iterator[ObjectChange]:
        return (change for change in self.changes if change.identity.kind in kinds)


def alert_rules(body: Body | None) -> Iterator[Mapping[str, Any]]:
    """The rules of an object that has some for Prometheus, or for a program like it."""
    return (mapping(rule) for group in items(at(body, "spec", "groups")) for rule in items(at(group, "rules")))


def guarded(body: Body | None) -> str:
    """What keeps an engine from pruning BODY without asking, as the end of a sentence; "" where nothing does."""
    notes = mapping(at(body, *NOTES))
    return next((said for each in engines() if (said := each.guarded(notes))), "")


def template(body: Body | None) -> Mapping[str, Any]:
    """The pod template of a workload."""
    spec = mapping(at(body, "spec"))
    return mapping(at(spec, "jobTemplate", "spec", "template") if "jobTemplate" in spec else spec.get("template"))


def pod(body: Body | None) -> Mapping[str, Any]:
    """The spec of a workload's pods."""
    return mapping(template(body).get("spec"))


def containers(body: Body | None) -> Iterator[Mapping[str, Any]]:
    """All containers of a workload's pods, those that run first included."""
    for key in ("initContainers", "containers"):
        yield from (mapping(item) for item in items(pod(body).get(key)))


def pulled_anew(change: ObjectChange) -> Iterator[bool]:
    """For each container of a workload that is pulled at each start from now on, whether that is by a tag."""
    before = {box.get("name"): (str(box.get("image")), box.get("imagePullPolicy")) for box in containers(change.old)}
    for box in containers(change.new):
        image, how = str(box.get("image")), box.get("imagePullPolicy")
        moving = moves(image, how)
        if (moving or how == "Always") and not moves(*before.get(box.get("name"), ("@", ""))):
            yield moving


def strategy(body: Body | None) -> str:
    """How the pods of a DaemonSet follow its template."""
    return str(at(body, "spec", "updateStrategy", "type") or "RollingUpdate")


def labels(body: Body | None) -> Mapping[str, Any]:
    """The labels of a workload's pods."""
    return mapping(at(template(body), "metadata", "labels"))


def is_driver(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold a driver for containers (reconciler.md U4, D14)."""
    said = labels(body)
    its_own = said.get(keys.COMPONENT) == "nvidia-driver" or said.get("app") == "nvidia-driver-daemonset"
    return at(body, "kind") == "DaemonSet" and its_own


def is_vgpu_manager(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold the driver of virtual GPUs."""
    app = str(labels(body).get("app", ""))
    return mapping(body).get("kind") == "DaemonSet" and app.startswith("nvidia-vgpu-manager-daemonset")
