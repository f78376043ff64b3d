"""IMP2xx: pods that restart, their images, and what they may do to their node."""

from collections import defaultdict
from collections.abc import Iterator

from ...api import keys
from ...model import Body, few
from ..diff.objects import ObjectChange, at, items, mapping
from . import nodes
from .leaves import leaves
from .rule import Hit, rule
from .subject import POD, WORKLOADS, Subject, containers, is_driver, is_vgpu_manager, labels, pod, strategy
from .tags import split
from .tiers import OUTAGE, PLANNED, POWER

MPS = "nvidia-device-plugin-mps-control-daemon"
"""Whose pods hold the memory and the processes of all clients of a GPU."""


def templates(subject: Subject, *kinds: str) -> Iterator[ObjectChange]:
    """The workloads of KINDS whose pod template changes."""
    return (each for each in subject.changed(*kinds) if any(field.path[:2] == POD[:2] for field in each.fields))


@rule("IMP201", 3, 2)
def daemon_set_rolls(subject: Subject) -> Iterator[Hit]:
    """The pods of a DaemonSet restart."""
    for change in templates(subject, "DaemonSet"):
        if is_driver(change.old) or is_vgpu_manager(change.old):
            continue
        where, spread = str(change.identity), nodes.of(subject.before, change.old)
        if spread == (0, 0):
            yield Hit(where, "no pool has nodes with its pods", spread)
        elif strategy(change.new) != "OnDelete" and labels(change.old).get("app") == MPS:
            what = "its pods restart, and with each end all programs that share its GPUs"
            yield Hit(where, what, spread, tier=OUTAGE)
        elif strategy(change.new) == "OnDelete":
            yield Hit(where, "its pods stay as they are until they are deleted", spread)
        else:
            most = at(change.new, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable") or 1
            yield Hit(where, f"its pods restart, {most} at a time", spread)


@rule("IMP202", 3)
def deployment_rolls(subject: Subject) -> Iterator[Hit]:
    """The pods of a Deployment or StatefulSet restart."""
    for change in templates(subject, "Deployment", "StatefulSet"):
        yield Hit(str(change.identity), "its pods restart")


def powers(body: Body | None) -> set[str]:
    """What the pods of a workload may do to their node, in words."""
    spec = pod(body)
    mounts = (mapping(mount) for one in containers(body) for mount in items(one.get("volumeMounts")))
    writes = {mount.get("name") for mount in mounts if mount.get("readOnly") is not True}
    words = {name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name) is True}
    for volume in items(spec.get("volumes")):
        path = at(volume, "hostPath", "path")
        words |= {f"hostPath {path}{'' if at(volume, 'name') in writes else ', to read'}"} if path else set()
    for container in containers(body):
        name, security = container.get("name"), mapping(container.get("securityContext"))
        if security.get("privileged") is True:
            words.add(f"privileged container {name}")
        words |= {f"capability {each} in {name}" for each in items(at(security, "capabilities", "add"))}
        if security.get("allowPrivilegeEscalation") is True:
            words.add(f"privilege escalation in {name}")
    return words


@rule("IMP203", 1, 3)
def host_powers(subject: Subject) -> Iterator[Hit]:
    """Pods get more power over their node."""
    removed = (change for change in subject.of(*WORKLOADS) if change.what == "removed")
    gone = set[str]().union(*(powers(change.old) for change in removed))  # what takes its place may do what that did
    for change in subject.judged(*WORKLOADS):
        new = sorted(powers(change.new) - powers(change.old) - (gone if change.what == "added" else set()))
        if new and not change.was:
            yield Hit(str(change.identity), f"new: {few(new, 6)}", tier=subject.gained(change))


def images(body: Body | None) -> dict[str, str]:
    """The image of each container of a workload, by the container's name."""
    return {str(one.get("name")): str(one["image"]) for one in containers(body) if isinstance(one.get("image"), str)}


def image_changes(subject: Subject) -> Iterator[tuple[ObjectChange, str, str]]:
    """Each image that is replaced: the object, the image before and after."""
    for change in subject.of(*WORKLOADS):
        before, after = images(change.old), images(change.new)
        for name in before.keys() & after.keys():
            if before[name] != after[name]:
                yield change, before[name], after[name]


@rule("IMP204", 3, 1)
def image_versions(subject: Subject) -> Iterator[Hit]:
    """An image gets another version."""
    by_version: dict[tuple[str, str, str, bool], set[str]] = defaultdict(set)
    for change, before, after in image_changes(subject):
        (old, was), (new, now) = split(before), split(after)
        if old == new:
            by_version[old, was, now, swapped(before, after)].add(str(change.identity))
    for (image, was, now, odd), objects in sorted(by_version.items()):
        number = f" in {len(objects)} objects" if len(objects) > 1 else f" in {next(iter(objects))}"
        yield Hit(image, f"{was or 'no tag'} -> {now or 'no tag'}{number}", tier=POWER if odd else PLANNED)


def swapped(before: str, after: str) -> bool:
    """Whether an image of one repository keeps its tag and gets another digest, or loses its digest."""
    (one, _, pin), (two, _, other) = before.partition("@"), after.partition("@")
    return bool(pin) and pin != other and (one == two or not other)


@rule("IMP205", 1, 3)
def image_source(subject: Subject) -> Iterator[Hit]:
    """An image comes from somewhere else."""
    by_source: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for change, before, after in image_changes(subject):
        (old, _), (new, _) = split(before), split(after)
        if old != new:
            by_source[old, new, subject.power(change)].add(str(change.identity))
    for (old, new, tier), objects in sorted(by_source.items()):
        yield Hit(old, f"{old} -> {new} in {len(objects)} object{'' if len(objects) == 1 else 's'}", tier=tier)


@rule("IMP206", 2, parts=True)
def switched_off(subject: Subject) -> Iterator[Hit]:
    """A component of the GPU stack is switched off."""
    new = {str(at(change.new, "spec", "selector", "matchLabels", "app")) for change in subject.of("DaemonSet")}
    for change in subject.of("DaemonSet"):
        body = change.old
        app = str(at(body, "spec", "selector", "matchLabels", "app"))
        gone = change.what == "removed" and not is_driver(body) and not is_vgpu_manager(body)
        if gone and app not in new:
            yield Hit(str(change.identity), "it is removed with all its pods", nodes.of(subject.before, body))


@rule("IMP207", 2)
def immutable_selector(subject: Subject) -> Iterator[Hit]:
    """A workload gets another selector, which the API server refuses."""
    for change in subject.changed("DaemonSet", "Deployment", "StatefulSet"):
        if change.below("spec", "selector") and not is_driver(change.old):
            yield Hit(str(change.identity), "its selector is another one")


@rule("IMP208", 3)
def carried_no_more(subject: Subject) -> Iterator[Hit]:
    """What a DaemonSet carried from a cluster that was taken over drops out."""
    for change in subject.changed("DaemonSet"):
        origin, now = change.both("metadata", "annotations", keys.CARRIED)
        if origin and not now:
            yield Hit(str(change.identity), f"what it carried from {origin} drops out")


READ = {
    "imagePullSecrets": "the kubelet reads it at its next pull",
    "secretEnv": "driver pods that are made after that have it",
    "secretName": "driver pods read it when they start anew",
}
"""When a new value counts, by the field of a policy that names the Secret (the page about secrets)."""
VALUES = {("spec", "data"), ("spec", "encryptedData")}


@rule("IMP209", 3)
def secrets_rotate(subject: Subject) -> Iterator[Hit]:
    """A Secret gets another value, and no pod restarts for it."""
    said = leaves(subject.after.model_dump()) if subject.after else {}
    for change in subject.changed("ExternalSecret", "SealedSecret"):
        if any(field.path[:2] in VALUES for field in change.fields):
            secret = at(change.new, "spec", "target", "name") or change.identity.name
            read = [READ[path[-1]] for path, name in said.items() if path[-1] in READ and name in (secret, [secret])]
            otherwise = ["files change within two minutes, variables when their pods start anew"]
            yield Hit(str(change.identity), "; ".join(dict.fromkeys(read or otherwise)))
