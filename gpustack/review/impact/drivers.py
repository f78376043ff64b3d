"""IMP1xx: what happens to driver pods, and so to every pod that uses a GPU on their nodes."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...api import keys
from ...model import Body, dotted, few
from ..diff.objects import ObjectChange, at, items, mapping
from . import nodes
from .amounts import tighter
from .bounds import bounded
from .rule import Hit, rule
from .subject import POD, WORKLOADS, Subject, guarded, is_driver, is_vgpu_manager, labels, pod, strategy
from .tiers import OUTAGE, PLANNED

DIGEST = "DRIVER_CONFIG_DIGEST"
INSTALLS, UNREAD = {"containers", "initContainers", "volumes"}, {"resources", "startupProbe"}
"""Parts of a driver's pod that its digest is made of, and what is in them and doesn't count (reconciler.md U34)."""
SHOWN = 3


def changed(subject: Subject) -> Iterator[ObjectChange]:
    """The driver DaemonSets that are there before and after."""
    return (change for change in subject.changed("DaemonSet") if is_driver(change.old))


def hit(subject: Subject, change: ObjectChange, what: str) -> Hit:
    """WHAT happens to the pods that the DaemonSet of CHANGE has now."""
    return Hit(str(change.identity), what, nodes.of(subject.before, change.old))


@rule("IMP101", 2)
def other_nodes(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet selects nodes more narrowly."""
    for change in changed(subject):
        narrower = any(field.op != "remove" for field in change.below(*POD, "nodeSelector"))
        if (narrower and at(change.new, *POD, "nodeSelector")) or change.below(*POD, "affinity", "nodeAffinity"):
            yield hit(subject, change, "driver pods are deleted at once from nodes that it no longer selects")


@rule("IMP102", 2)
def tolerates_less(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet tolerates less."""
    for change in changed(subject):
        less = any(field.op in {"remove", "replace"} for field in change.below(*POD, "tolerations"))
        if less and not tolerates_all(change.new):
            what = "driver pods are deleted at once from nodes with a taint that it no longer tolerates"
            yield hit(subject, change, what)


def tolerates_all(body: Body | None) -> bool:
    """Whether the pods of BODY tolerate every taint."""
    each = [mapping(one) for one in items(pod(body).get("tolerations"))]
    return any(not one.get("key") and one.get("operator") == "Exists" and not one.get("effect") for one in each)


@rule("IMP116", 1)
def tolerates_everything(subject: Subject) -> Iterator[Hit]:
    """Pods tolerate every taint, or those of the control plane."""
    for change in subject.judged(*WORKLOADS):
        old = items(pod(change.old).get("tolerations"))
        new = [one for one in items(pod(change.new).get("tolerations")) if one not in old and not bounded(one)]
        if new and change.what != "added":
            yield Hit(str(change.identity), f"new tolerations: {'; '.join(sorted(map(shown, new)))}")


def shown(toleration: Any) -> str:
    """A toleration in words."""
    one = mapping(toleration)
    words = (str(one[key]) for key in ("operator", "value", "effect") if one.get(key))
    return " ".join((str(one.get("key") or "everything"), *words))


@rule("IMP103", 2)
def another_selector(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet gets another selector."""
    for change in changed(subject):
        if change.below("spec", "selector"):
            yield hit(subject, change, "its selector can't be changed in place; a replacement kills all driver pods")


@rule("IMP104", 2)
def precompiled(subject: Subject) -> Iterator[Hit]:
    """Drivers switch between precompiled and compiled modules."""
    lost = [change for change in subject.of("DaemonSet") if is_driver(change.old) and change.what != "changed"]
    kinds = {labels(change.new).get("nvidia.com/precompiled") for change in subject.of("DaemonSet") if change.new}
    for change in changed(subject):
        was, now = (labels(body).get("nvidia.com/precompiled") for body in (change.old, change.new))
        if was != now:
            yield hit(subject, change, f"precompiled: {was or 'false'} -> {now or 'false'}")
    for change in lost:
        was = labels(change.old).get("nvidia.com/precompiled")
        other = "true" if was == "false" else "false"
        if was is not None and other in kinds:
            what = f"precompiled: {was} -> {other}, in another DaemonSet; all its pods die together"
            yield hit(subject, change, what)


@rule("IMP105", 2, parts=True)
def driver_goes(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet goes, or gets another name."""
    sets = list(subject.of("DaemonSet"))
    new = [str(change.identity) for change in sets if change.what == "added" and is_driver(change.new)]
    for change in (each for each in sets if is_driver(each.old)):
        if change.was:
            what = f"it is called {change.identity.name} now: all its pods die{guarded(change.old)}"
            yield Hit(str(change.was), what, nodes.of(subject.before, change.old))
        elif change.what == "removed":
            rest = f"; new: {', '.join(new)}" if new else ", and no other driver DaemonSet comes"
            yield hit(subject, change, f"it is removed with all its pods{rest}{guarded(change.old)}")


@rule("IMP106", 2)
def no_longer_on_delete(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet doesn't wait for its pods to be deleted any more."""
    for change in changed(subject):
        if strategy(change.old) == "OnDelete" != strategy(change.new):
            yield hit(subject, change, f"updateStrategy: OnDelete -> {strategy(change.new)}")


def template_changes(subject: Subject) -> Iterator[tuple[ObjectChange, bool]]:
    """The driver DaemonSets whose template changes, and whether the driver itself does (reconciler.md U34)."""
    for change in changed(subject):
        fields = [field for field in change.fields if field.path[:2] == POD[:2]]
        if fields:
            known = all(DIGEST in str(each) for each in change.both(*POD[:2]))
            yield change, not known or any(field.inside(DIGEST) for field in fields)


@rule("IMP107", 2)
def labels_go(subject: Subject) -> Iterator[Hit]:
    """Nodes lose the label that a component's pods need, or get another driver's."""
    for change in subject.changed("NodePolicy"):
        old, new = (set(map(str, items(each))) for each in change.both("spec", "components"))
        if lost := sorted(old - new):
            yield Hit(str(change.identity), f"its nodes are to run {', '.join(lost)} no longer")
        one, two = change.both("spec", "labels", keys.DRIVER_OWNER)
        if one is not None and one != two:
            yield Hit(str(change.identity), f"its nodes' driver is {two or 'nobody'}'s instead of {one}'s")


@rule("IMP110", 3, 2)
def driver_rolls(subject: Subject) -> Iterator[Hit]:
    """A driver is installed anew, node after node."""
    for change, full in template_changes(subject):
        if full and not nodes.by_hand(subject.after):
            pace = nodes.pace(subject.after, change.new)
            what = f"its nodes {_installed(change)}" + (f": {pace}" if pace else "")
            tier = PLANNED if nodes.budgeted(subject.after, change.new) else OUTAGE
            yield Hit(str(change.identity), what, nodes.kept(subject.before, subject.after, change.old), tier=tier)


def _installed(change: ObjectChange) -> str:
    """What nodes get by CHANGE, and where it is the same driver, the fields by which it is installed anew."""
    every = [field for field in change.fields if not field.inside(DIGEST)]
    fields = [field for field in every if field.op != "order"] or every
    below = [(field.path[len(POD) :], field) for field in fields]
    paths = {dotted(path): each for path, each in below if INSTALLS & {*path[:1]} and not UNREAD & {*path}}
    image = paths.get("containers[nvidia-driver-ctr].image")
    if image and str(image.before).rpartition("/")[2] != str(image.after).rpartition("/")[2]:
        return "get a new driver one after the other"
    why = f", because of {few([*paths], SHOWN)}" if paths else ""
    return f"get the driver installed anew, one after the other{why}"


@rule("IMP111", 3)
def driver_restarts(subject: Subject) -> Iterator[Hit]:
    """Driver pods restart, and the driver stays loaded."""
    for change, full in template_changes(subject):
        if not full and not nodes.by_hand(subject.after):
            what = "its pods restart one after the other, workloads stay"
            if labels(change.new).get("nvidia.com/precompiled") == "true":
                what += "; the image is precompiled, so the driver may be loaded anew all the same"
            yield Hit(str(change.identity), what, nodes.kept(subject.before, subject.after, change.old))


@rule("IMP112", 3)
def driver_waits(subject: Subject) -> Iterator[Hit]:
    """A driver DaemonSet changes, and nothing makes its pods follow."""
    if why := nodes.by_hand(subject.after):
        for change, _ in template_changes(subject):
            yield hit(subject, change, f"its pods stay as they are until somebody deletes them: {why}")


@rule("IMP113", 1)
def budget_grows(subject: Subject) -> Iterator[Hit]:
    """More nodes may be out of service at a time."""
    for change in subject.changed("NodePolicy"):
        grown: dict[str, list[str]] = {}  # a pool that says nothing has the limits of the cluster: one step, told once
        for field in change.fields:
            steps = [step for step in field.path if isinstance(step, str)]
            limit = bool(steps) and steps[-1] in {"maxParallel", "maxUnavailable", "zoneMaxUnavailable"}
            sooner = steps[-1:] == ["soakSeconds"] and field.before and more(field.after or "0", field.before)
            if sooner or (limit and more(field.before, field.after)):
                said = f"{steps[-1]}: {field.before} -> {field.after}"
                grown.setdefault(said, []).append(".".join(steps[1:-1]))
        parts = [f"{' and '.join(filter(None, where))} {said}".strip() for said, where in grown.items()]
        old, new = change.both("spec", "upgrade", "windows")
        if old != new and not tighter(old, new):
            parts.append("its maintenance windows are different, or longer")
        if parts:
            yield Hit(str(change.identity), "; ".join(parts))


def more(before: object, after: object) -> bool:
    """Whether AFTER allows more than BEFORE; 0 and None are no limit, and what can't be compared counts as more."""
    if after in (0, None):
        return before not in (0, None)
    one, two = (str(value).removesuffix("%") for value in (before, after))
    alike = str(before).endswith("%") == str(after).endswith("%") and one.isdigit() and two.isdigit()
    return before not in (0, None) and (not alike or int(two) > int(one))


@rule("IMP117", 2)
def faults_act(subject: Subject) -> Iterator[Hit]:
    """What is done about faults of GPUs changes."""
    said: dict[str, list[str]] = {}
    says = [each.reconciler.health for each in (subject.before, subject.after) if each and each.reconciler]
    same = len(says) == 2 and says[0] == says[1]  # a pool that comes looks at what the others look at
    for change in subject.of("NodePolicy"):
        old, new = change.both("spec", "health")
        if old != new and not same and not subject.whole and change.what != "removed":
            said.setdefault(_about_faults(mapping(old), mapping(new)), []).append(str(change.identity))
    for what, names in said.items():
        yield Hit(names[0], what, about=tuple(names))


def _about_faults(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What becomes of nodes with faults, by the section OLD before and NEW from now on."""
    if not new:
        then = "a node that is out of service for a fault is given back once it works"
        return f"conditions of nodes count no more: {then}"
    parts = []
    for then, words in {"drain": "empty a node of pods that use GPUs", "cordon": "keep new pods off it"}.items():
        kinds = dict.fromkeys(str(each["type"]) for each in new.get("rules") or () if each.get("then") == then)
        parts += [f"{few([*kinds], SHOWN)} {words}"] if kinds else []
    since = f"from {new['reportOnlyUntil']}" if new.get("reportOnlyUntil") else "30 days after the first NodePolicy"
    limit = f"at most {new.get('maxNodes')} nodes and {new.get('maxShare')} at a time"
    before = "" if old else "so far nobody looked at conditions; "
    return f"{before}{' and '.join(parts)}, {since}, {limit}" if parts else f"{before}faults are only reported"


@rule("IMP114", 2)
def vgpu_manager(subject: Subject) -> Iterator[Hit]:
    """The driver of virtual GPUs restarts."""
    for change in subject.of("DaemonSet"):
        body = change.old or change.new
        if change.what != "added" and is_vgpu_manager(body) and not subject.whole:
            gone = change.what == "removed"
            if gone or change.was or any(field.path[:2] == POD[:2] for field in change.fields):
                what = f"it is removed with all its pods{guarded(change.old)}"
                yield hit(subject, change, what if gone else "its pods are replaced, without a drain")


@rule("IMP115", 2)
def reconciler_goes(subject: Subject) -> Iterator[Hit]:
    """The reconciler goes."""
    for change in subject.of("Deployment"):
        if change.what == "removed" and change.identity.name == "gpustack-reconciler" and not subject.whole:
            yield Hit(str(change.identity), "it is removed: what it has begun on nodes stays as it is")
