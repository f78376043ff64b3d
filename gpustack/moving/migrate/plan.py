"""What a hand-over does to each DaemonSet that runs, and whether no driver restarts can be promised.

A driver whose template would be another is not handed over at all: every such verdict has a remedy. The promise is
given where it was measured, for the operator's version and the policy's platform, and nowhere by default.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gpustack.gitops import engines
from gpustack.gitops.engine import Applies
from gpustack.model import Body
from gpustack.review.impact.subject import is_driver, is_vgpu_manager

from ...api import keys
from ..adopt.carry import left, rendered_for
from .seen import RELEASE, Seen, facts, notes, operator_kind, space

Fate = Literal["unchanged", "rolls", "refused", "new", "not rendered"]
CARRY = "take the section `carried` from what `gpustack adopt` writes of this cluster into the policy, and render"


@dataclass(frozen=True)
class Render:
    """What the policy of CLUSTER renders to: BODIES by stage, and what the plan asks of the policy. `engine` is the
    GitOps engine's name, `syncs` its objects and `roots` those above them, "" and none without one."""

    cluster: str
    namespace: str
    platform: str | None
    bodies: list[tuple[str, Body]]
    folder: str = "dist"
    engine: str = ""
    syncs: tuple[Body, ...] = ()
    roots: tuple[Body, ...] = ()
    engine_namespace: str = ""
    replicas: int | None = None
    monitoring: bool = False
    openshift: bool = False
    elsewhere: bool = False
    """What isn't in the cluster is said to be suspended where it is."""

    @property
    def applies(self) -> Applies | None:
        """How its engine applies it; None without one."""
        return engines.engine(self.engine).applies if self.engine else None

    def of(self, kind: str) -> dict[str, Body]:
        """The objects of KIND by name."""
        return {str(body["metadata"]["name"]): body for _, body in self.bodies if body["kind"] == kind}


@dataclass(frozen=True)
class Verdict:
    """What becomes of the pods of a DaemonSet: by which FIELDS they roll; WHY and the remedy where it is refused."""

    name: str
    driver: bool
    fate: Fate
    fields: tuple[str, ...] = ()
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Promise:
    """Whether no driver restarts: `kept` where that was measured, else why it is `open` or `broken`."""

    level: Literal["kept", "open", "broken"]
    why: tuple[str, ...]


def verdicts(seen: Seen, render: Render) -> list[Verdict]:
    """What happens to each DaemonSet of the stack, drivers first."""
    rendered = render.of("DaemonSet")
    live = [body for body in seen.of("DaemonSet") if of_stack(body, seen, render)]
    fates = [judged(body, rendered, render) for body in live]
    standing = (rendered_for(str(body["metadata"]["name"]), rendered) for body in live)
    stood_for = {str(ours["metadata"]["name"]) for ours in standing if ours}
    for name in sorted(set(rendered) - stood_for) if "DaemonSet" in seen.looked else ():
        if holds_driver(rendered[name]):
            why = "it is rendered and doesn't run here: on nodes that have a driver already, a second one would wait"
            remedy = f"take what renders it out of the policy until the hand-over is done, or {CARRY}"
            fates.append(Verdict(name, True, "refused", why=why, remedy=remedy))
        else:
            fates.append(Verdict(name, False, "new"))
    return sorted(fates, key=lambda each: (not each.driver, each.name))


def holds_driver(body: Body) -> bool:
    """Whether the pods of BODY hold a driver, of containers or of virtual machines."""
    return is_driver(body) or is_vgpu_manager(body)


def of_stack(body: Body, seen: Seen, render: Render) -> bool:
    """Whether the live DaemonSet BODY is the operator's, of its release, or one that is rendered."""
    owners = body["metadata"].get("ownerReferences") or []
    owned = any(str(each.get("apiVersion", "")).startswith(keys.NVIDIA) for each in owners)
    release = seen.release and notes(body).get(RELEASE) == seen.release
    here = space(body) in (render.namespace, seen.namespace) and body["metadata"]["name"] in render.of("DaemonSet")
    return owned or bool(release) or holds_driver(body) or here


def judged(live: Body, rendered: Mapping[str, Body], render: Render) -> Verdict:
    """What becomes of the pods of the DaemonSet LIVE."""
    name, driver = str(live["metadata"]["name"]), holds_driver(live)
    ours = rendered_for(name, rendered)
    if ours is None:
        why = "the policy renders no such driver, so nobody would roll it any more, or it is pruned"
        return Verdict(name, True, "refused", why=why, remedy=CARRY) if driver else Verdict(name, False, "not rendered")
    if space(live) != (space(ours) or render.namespace):
        why = f"it runs in namespace {space(live)} and is rendered into {space(ours)}: that is a second one beside it"
        remedy = f"set spec.cluster.namespace: {space(live)}"
        return Verdict(name, driver, "refused", why=why, remedy=remedy)
    if ours["metadata"]["name"] != name:
        why = f"it is rendered as {ours['metadata']['name']}: a second one, whose pods wait for those of the first"
        return Verdict(name, driver, "refused", why=why, remedy=CARRY)
    if live["spec"]["selector"] != ours["spec"]["selector"]:
        why = "its selector is rendered differently, and a selector can't be changed"
        remedy = "delete it just before the render is applied; its pods are replaced then"
        return Verdict(name, driver, "refused", ("spec.selector",), why, remedy)
    fields = tuple(left(live, ours, None))
    if fields and driver:
        why, images = "its template is rendered differently: it would roll", [one["image"] for one in containers(live)]
        other = [one["image"] for one in containers(ours) if one["image"] not in images]
        remedy = f"keep what runs until the hand-over is done: {images[0]}"
        return Verdict(name, True, "refused", fields, why, f"{remedy}, not {other[0]}" if other else CARRY)
    return Verdict(name, driver, "rolls" if fields else "unchanged", fields)


def containers(body: Body) -> list[Body]:
    """All containers of the DaemonSet BODY, its own before those that begin."""
    pod: Body = body["spec"]["template"]["spec"]
    return [*pod.get("containers", []), *pod.get("initContainers", [])]


def behind(seen: Seen, *, every: bool = False) -> Iterator[str]:
    """Drivers of which pods are outdated already, EVERY other one that nobody rolls as well."""
    for body in seen.of("DaemonSet"):
        status, manual = body.get("status") or {}, body["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
        wanted, updated = (int(status.get(f"{of}NumberScheduled") or 0) for of in ("desired", "updated"))
        if (holds_driver(body) or (every and manual)) and "desiredNumberScheduled" in status and updated < wanted:
            yield f"{wanted - updated} of {wanted} pods of {body['metadata']['name']} are outdated already"


def promise(seen: Seen, render: Render, fates: list[Verdict]) -> Promise:
    """Whether the hand-over restarts no driver."""
    broken = [f"{each.name}: {each.why}" for each in fates if each.fate == "refused" and each.driver]
    broken += [f"{each}, and the reconciler rolls those" for each in behind(seen)]
    if broken:
        return Promise("broken", tuple(broken))
    why = list(unproved(seen, render))
    if "DaemonSet" not in seen.looked:
        why.append("no DaemonSet was looked at, so it isn't known which drivers run")
    elif not any(each.driver for each in fates):
        why.append("no DaemonSet of a driver was seen: nodes bring theirs, or it runs elsewhere")
    if why:
        return Promise("open", tuple(why))
    return Promise("kept", (f"measured with operator {seen.version} on platform {render.platform}",))


def unproved(seen: Seen, render: Render) -> Iterator[str]:
    """Why nothing was measured for such a cluster."""
    proved = facts()["proved"]
    if not any(operator_kind(body) for body in seen.objects):
        yield "no custom resource of the operator was seen"
    if not seen.version:
        yield "nothing tells which version of the operator runs"
    elif seen.version not in proved:
        yield f"operator {seen.version} was not measured, but {', '.join(proved)}"
    if render.platform is None:
        yield "the policy names no platform (spec.cluster.platform, `generic` for none of its own)"
    elif seen.version in proved and render.platform not in proved[seen.version]:
        yield f"platform {render.platform} was not measured, but {', '.join(proved[seen.version])}"
