"""IMP4xx: who may do what: roles that grow, bindings, admission, and the security of namespaces."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from ...api import keys
from ...catalog import object_kinds
from ...model import Body, few, grouped
from ..diff.objects import at, items, mapping
from .rule import Hit, rule
from .subject import Subject

SHOWN = 6


class Right(NamedTuple):
    """One verb on one resource of one group (or on a path), for one name or all ("*")."""

    verb: str
    group: str
    resource: str
    name: str

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{'' if self.name == '*' else f' {self.name}'}"

    def within(self, others: Iterable[Self]) -> bool:
        """Whether one of OTHERS already grants it; `*` is everything."""
        return any(all(have in ("*", want) for have, want in zip(other, self, strict=True)) for other in others)


PATHS = "(path)"


def rights(body: Body | None) -> set[Right]:
    """What a Role or ClusterRole grants, right by right."""
    granted: set[Right] = set()
    for each in items(mapping(body).get("rules")):
        entry = mapping(each)
        verbs = [str(verb) for verb in items(entry.get("verbs"))]
        names = [str(name) for name in items(entry.get("resourceNames"))] or ["*"]
        for group in items(entry.get("apiGroups")) or [""]:
            for resource in items(entry.get("resources")):
                granted |= {Right(verb, str(group), str(resource), name) for verb in verbs for name in names}
        for path in items(entry.get("nonResourceURLs")):
            granted |= {Right(verb, PATHS, str(path), "*") for verb in verbs}
    for selector in items(at(body, "aggregationRule", "clusterRoleSelectors")):
        granted.add(Right("aggregates", "", str(selector), "*"))
    return granted


def grown(subject: Subject, *, leading: bool) -> Iterator[Hit]:
    """The roles that grant more than before, and what of it is LEADING to more rights, or isn't."""
    for change in subject.judged("Role", "ClusterRole"):
        old = rights(change.old)
        new = sorted(right for right in rights(change.new) - old if not right.within(old))
        if (told := [right for right in new if mighty(right) is leading]) and not change.was:
            yield Hit(str(change.identity), f"new: {listed(told)}", tier=subject.gained(change))


def mighty(right: Right) -> bool:
    """Whether RIGHT leads to others: to read secrets, to hand out rights, to be somebody else, to run in pods."""
    known, resource = object_kinds.facts()["mighty"], right.resource.partition("/")[0]
    if right.verb in known["verbs"] or right.resource in known["resources"] or resource == "secrets":
        return True
    return right.verb in {"create", "update", "patch"} and resource in known["changed"]


def listed(granted: list[Right]) -> str:
    """Rights in a line: verbs on the same resource together."""
    together = grouped((right[1:], right.verb) for right in granted)
    words = [str(Right(",".join(verbs), *rest)) for rest, verbs in together.items()]
    return "; ".join(words[:SHOWN]) + (f"; and {len(words) - SHOWN} more" if len(words) > SHOWN else "")


@rule("IMP401", 1, 3)
def role_grows(subject: Subject) -> Iterator[Hit]:
    """A role grants more than before."""
    yield from grown(subject, leading=False)


@rule("IMP402", 1, 3)
def role_grows_mighty(subject: Subject) -> Iterator[Hit]:
    """A role grants what leads to more rights."""
    yield from grown(subject, leading=True)


def subjects(body: Body | None) -> set[str]:
    """Whom a binding gives its role to, in words."""
    named = [mapping(each) for each in items(mapping(body).get("subjects"))]
    spaces = [f"{each['namespace']}/" if each.get("namespace") else "" for each in named]
    return {f"{each.get('kind')} {space}{each.get('name')}" for each, space in zip(named, spaces, strict=True)}


@rule("IMP403", 1, 3)
def binding_grows(subject: Subject) -> Iterator[Hit]:
    """A role is given to somebody new."""
    for change in subject.judged("RoleBinding", "ClusterRoleBinding"):
        new = sorted(subjects(change.new) - subjects(change.old)) if not change.was else []
        if new:
            role: Any = mapping(mapping(change.new).get("roleRef"))
            what = f"{role.get('kind')} {role.get('name')} is given to {few(new, SHOWN)}"
            yield Hit(str(change.identity), what, tier=subject.gained(change))


LEVELS = {"restricted": 0, "baseline": 1, "privileged": 2}


@rule("IMP404", 1)
def pod_security(subject: Subject) -> Iterator[Hit]:
    """A namespace lets other pods in."""
    for change in subject.of("Namespace"):
        if change.what == "removed" or (change.what == "added" and subject.whole == "new"):
            continue
        was, now = (str(each or "") for each in change.both("metadata", "labels", keys.ENFORCE))
        if was != now and not (change.what == "added" and not now):
            level, other = LEVELS.get(was, 2), LEVELS.get(now, 2)
            word = "laxer" if other > level else "stricter" if other < level else "spelled differently"
            yield Hit(str(change.identity), f"{keys.ENFORCE}: {was or 'not set'} -> {now or 'not set'} ({word})")


ADMISSION: Sequence[str] = object_kinds.facts()["admission"]
ACTIONS = ("spec", "validationActions")
TIGHTER = "look into the audit log for whom it warned of, and mend that first; merge it once nobody is left."


@rule("IMP405", 1, 3, parts=True)
def admission(subject: Subject) -> Iterator[Hit]:
    """What the API server refuses changes."""
    removed = [change for change in subject.of(*ADMISSION) if change.what in {"removed", "renamed"}]
    together = [change.was or change.identity for change in removed if not subject.foreign(change)]
    if len(together) > 1:  # one field of the policy does it, and is accepted once
        kinds = dict.fromkeys(each.kind for each in together)
        named = (f"{kind} {', '.join(each.name for each in together if each.kind == kind)}" for kind in kinds)
        yield Hit("", f"{len(together)} are removed: {'; '.join(named)}", about=tuple(map(str, together)))
    for change in subject.of(*ADMISSION):
        if change in removed:
            if len(together) < 2 or subject.foreign(change):
                yield Hit(str(change.was or change.identity), "it is removed")
        elif change.what == "changed" and any(field.path[:1] != ("metadata",) for field in change.fields):
            what, remedy, tier = "it is changed: what it refuses may be less", "", subject.power(change)
            was, now = map(items, change.both(*ACTIONS))
            if "Deny" in now and "Deny" not in was:
                what, remedy = "what it warned of is refused from now on", TIGHTER
                alone = all(field.path[:2] == ACTIONS or field.path[:1] == ("metadata",) for field in change.fields)
                if alone and not subject.foreign(change):
                    tier = 3  # the field of the policy behind it is judged, and accepted, by itself
            yield Hit(str(change.identity), what, remedy=remedy, tier=tier)


@rule("IMP406", 1, 3, parts=True)
def constraints(subject: Subject) -> Iterator[Hit]:
    """OpenShift admits other pods of the stack."""
    for change in subject.of("SecurityContextConstraints"):
        noted = change.what == "changed" and all(field.path[:1] == ("metadata",) for field in change.fields)
        if change.what != "removed" and not noted:
            new = "are new" if change.what == "added" else "are others"
            yield Hit(str(change.identity), f"the constraints {new}", tier=subject.power(change))
