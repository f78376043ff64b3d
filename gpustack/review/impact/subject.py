"""What a rule looks at: the changes of one cluster, with the policies of both sides where they are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ...api import keys
from ...gitops.engines import engines
from ...model import CONSTRUCT, RULES, Body
from ..diff.fields import FieldChange, Item
from ..diff.objects import Identity, ObjectChange
from ..diff.own import NAMESPACE
from .leaves import Leaf, text
from .origin import CONTENT, Fleet, Name, Step, brought, names, said, steps, words
from .selectors import Requirement, picks_differently, requirements
from .tags import moves
from .tiers import OUTAGE, PLANNED, POWER, ROUTINE

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec

Whole = Literal["", "new", "gone"]
LABELS = {"labels", "additionalLabels"}
"""Fields that are labels of objects or pods."""
DIGEST = "DRIVER_CONFIG_DIGEST"
POD = ("spec", "template", "spec")
NOTES = tuple(prefix for each in engines() for prefix in each.annotations)
"""What the annotations begin with that engines read."""


@dataclass(frozen=True)
class Subject:
    """The CHANGES of one cluster. BEFORE and AFTER are the effective specs, None where there is none, or none is known.

    `whole`: the cluster is new, or gone with all that it had. `engine` are the changes of the GitOps engine's own
    objects: they are applied where the engine is, so what holds for objects of the cluster does not hold for them;
    `all` are both, as they were given. `fleet` is what other clusters say.
    """

    changes: Sequence[ObjectChange]
    before: ClusterPolicySpec | None = None
    after: ClusterPolicySpec | None = None
    whole: Whole = ""
    engine: Sequence[ObjectChange] = ()
    fleet: Fleet = field(default_factory=Fleet)
    all: Sequence[ObjectChange] = ()

    @classmethod
    def of_all(
        cls,
        changes: Sequence[ObjectChange],
        before: ClusterPolicySpec | None,
        after: ClusterPolicySpec | None,
        whole: Whole = "",
        fleet: Fleet | None = None,
    ) -> Subject:
        """CHANGES, those of the cluster and those of its engine told apart. FLEET is what other clusters say."""
        engine = [change for change in changes if change.identity.engine]
        applied = [change for change in changes if not change.identity.engine] if engine else changes
        return cls(applied, before, after, whole, engine, fleet or Fleet(), changes)

    @cached_property
    def steps(self) -> Sequence[Step]:
        """What changes in the policy, field by field; nothing where a side's policy isn't known."""
        if self.after is None or (self.before is None and self.whole != "new") or self.before is self.after:
            return ()
        return [
            step._replace(tier=min(step.tier, self._in_objects(step.leaf)))
            for step in steps(self.before, self.after, self.fleet)
        ]

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
        gpustack's own marks, which follow from what the object is.
        """
        if leaf.path[:2] != ("metadata", "annotations") or not leaf.path[-1].startswith(NOTES):
            return False
        own = self._name(change.identity)
        bodies = [(body, spec) for spec in (self.before, self.after) if spec for body in spec.extraObjects]
        notes = (mapping(body["metadata"].get("annotations")) for body, spec in bodies if own in names(body, spec))
        return any(leaf.path[-1] in each for each in notes)

    def picks(self, leaf: Leaf) -> bool:
        """Whether a selector, of an object that changes or is brought along, picks differently by the label of LEAF."""
        return picks_differently(self._requirements, leaf.path[-1], leaf.old, leaf.new)

    @cached_property
    def _requirements(self) -> Sequence[Requirement]:
        specs = {id(spec): spec for spec in (self.before, self.after) if spec}.values()
        bodies = [body for spec in specs for body in spec.extraObjects]
        bodies += [dict(body) for change in self.all for body in (change.old, change.new) if body]
        words = [str(value) for spec in specs for path, value in said(spec).items() if path[-1] == "podSelector"]
        bodies = [body for body in bodies if body.get("kind") not in CONTENT]  # whose texts are for people
        return [*requirements(bodies), *requirements({"podSelector": words})]

    @cached_property
    def policy_tier(self) -> int:
        """The tier of what changes in the policy."""
        return min((step.tier for step in self.steps), default=ROUTINE)

    @cached_property
    def _brought(self) -> set[Name]:
        return brought(self.before) | brought(self.after)

    def foreign(self, change: ObjectChange) -> bool:
        """Whether no field of the policy explains CHANGE: the policy brings the object along, isn't known, or says
        what it said before.
        """
        if (
            change.identity.engine
            and self.before
            and self.after
            and self.before.extraObjects != self.after.extraObjects
        ):
            return False  # what an AppProject permits follows from the objects, which are judged themselves
        if not self.steps or any(at(body, "metadata", "annotations", CONSTRUCT) for body in (change.old, change.new)):
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
        bodies = after.extraObjects if after and like else ()
        return set[Name]().union(*(names(body, after) for body in bodies if after and like and like.has(body, after)))

    def named_elsewhere(self, key: str, change: ObjectChange) -> set[str]:
        """The alerts or recorded series (KEY) of other objects than that of CHANGE, that policies of both sides bring
        along.
        """
        own = (self.literal(change.identity.namespace), self.literal(change.identity.name))
        others = set()
        for spec in filter(None, (self.before, self.after)):
            for body in spec.extraObjects:
                meta = body["metadata"]
                where = (str(meta.get("namespace") or spec.cluster.namespace), str(meta["name"]))
                if body["kind"] in RULES and where != own:
                    rules = [rule for group in items(at(body, "spec", "groups")) for rule in items(at(group, "rules"))]
                    others |= {str(at(rule, key)) for rule in rules if at(rule, key)}
        return others

    def read_elsewhere(self, series: str, change: ObjectChange) -> bool:
        """Whether another object than that of CHANGE, that a policy of either side brings along, reads SERIES; those
        that only show it don't count.
        """
        own, word = change.identity, re.compile(rf"(?<![\w:]){re.escape(series)}(?![\w:])")
        return any(
            word.search(text(body))
            for spec in filter(None, (self.before, self.after))
            for body in spec.extraObjects
            if (body["kind"], body["metadata"]["name"]) != (own.kind, self.literal(own.name))
            and body["kind"] != "GrafanaDashboard"
            and "grafana_dashboard" not in mapping(at(body, "metadata", "labels"))
        )

    @cached_property
    def words(self) -> set[str]:
        """Every text that the policies of both sides say."""
        return words(self.before) | words(self.after)

    def literal(self, name: str) -> str:
        """NAME, with the cluster's own namespace for its mark."""
        spec = self.after or self.before
        return name.replace(NAMESPACE, spec.cluster.namespace) if spec else name

    def power(self, change: ObjectChange) -> int:
        """The tier of power that CHANGE gives: what a component has by itself is planned, as long as nothing in the
        policy is more than that.
        """
        return POWER if self.foreign(change) or self.policy_tier <= POWER else PLANNED

    def gained(self, change: ObjectChange) -> int:
        """The tier of what CHANGE lets do more: power, unless only versions and what is switched on are behind it."""
        behind = (step for step in self.steps if step.tier <= PLANNED and not step.by_release)
        usual = all(
            step.leaf.path[-1] in {"release", "version", "without"}
            or (step.leaf.path[-1] == "enabled" and step.leaf.new is True)
            for step in behind
        )
        return self.power(change) if usual or self.whole == "new" or change.what != "changed" else POWER

    def judged(self, *kinds: str) -> Iterator[ObjectChange]:
        """The changes of objects of KINDS, of a new cluster those of foreign ones: all others are its components'."""
        return (change for change in self.of(*kinds) if self.whole != "new" or self.foreign(change))

    def changed(self, *kinds: str) -> Iterator[ObjectChange]:
        """Those of objects of KINDS that are there before and after, under one name."""
        return (change for change in self.of(*kinds) if change.what == "changed")

    def of(self, *kinds: str) -> Iterator[ObjectChange]:
        return (change for change in self.changes if change.identity.kind in kinds)


WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob")


def at(body: Any, *path: str) -> Any:
    """What stands in BODY at PATH, None where nothing does, whatever is in the way."""
    for step in path:
        if not isinstance(body, Mapping):
            return None
        body = body.get(step)
    return body


def mapping(value: Any) -> Mapping[str, Any]:
    """VALUE if it is a map, else an empty one: what others rendered may hold anything."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """VALUE if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def guarded(body: Body | None) -> str:
    """What keeps an engine from pruning BODY without asking, as the end of a sentence; "" where nothing does."""
    notes = mapping(at(body, "metadata", "annotations"))
    return next((said for each in engines() if (said := each.guarded(notes))), "")


def template(body: Body | None) -> Mapping[str, Any]:
    """The pod template of a workload."""
    spec = mapping(mapping(body).get("spec"))
    if "jobTemplate" in spec:
        spec = mapping(at(spec, "jobTemplate", "spec"))
    return mapping(spec.get("template"))


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


def below(change: ObjectChange, *path: str) -> list[FieldChange]:
    """The changes of fields at PATH and below it, and of what PATH is in."""
    wanted = tuple(path)
    return [
        field
        for field in change.fields
        if field.path[: len(wanted)] == wanted or wanted[: len(field.path)] == field.path
    ]


def names_item(field: FieldChange, name: str) -> bool:
    """Whether FIELD is in the item NAME of a list."""
    return any(isinstance(step, Item) and ("name", name) in step.key for step in field.path)


def strategy(body: Body | None) -> str:
    """How the pods of a DaemonSet follow its template."""
    return str(at(body, "spec", "updateStrategy", "type") or "RollingUpdate")


def labels(body: Body | None) -> Mapping[str, Any]:
    """The labels of a workload's pods."""
    return mapping(at(template(body), "metadata", "labels"))


def is_driver(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold a driver for containers (reconciler.md U4, D14)."""
    return mapping(body).get("kind") == "DaemonSet" and (
        labels(body).get(keys.COMPONENT) == "nvidia-driver" or labels(body).get("app") == "nvidia-driver-daemonset"
    )


def is_vgpu_manager(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold the driver of virtual GPUs."""
    app = str(labels(body).get("app", ""))
    return mapping(body).get("kind") == "DaemonSet" and app.startswith("nvidia-vgpu-manager-daemonset")
