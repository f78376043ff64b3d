"""The steps of a hand-over: how far each is, by what was seen, and the commands and requests that are left of it.

A step is done only where the cluster shows it. The texts of steps and commands stand in the data file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpustack.api.keys import UPGRADE_STATE
from gpustack.live.state import labels
from gpustack.model import STAGES, Body

from ...api import keys
from .acts import Act, key_of, saving
from .commands import Commands, object_of
from .fields import Fields
from .holders import Holder, Way
from .plan import Render, Verdict, behind
from .seen import CUSTOM, Seen, facts, kinds, operator_kind, package, space

State = Literal["done", "next", "later", "not needed"]
AT_REST = {"", "upgrade-done"}
OWN = ("Deployment", "Service", "ServiceMonitor", "ServiceAccount", "Role", "RoleBinding")
OWN_EVERYWHERE = ("ClusterRole", "ClusterRoleBinding")
"""Kinds of what belongs to the operator itself (moving.md M6)."""
AS_TOLD = ", and is suspended where it is, as somebody says"


@dataclass(frozen=True)
class Step:
    """A step: what was SEEN of it, the COMMANDS that are left, the same as requests (ACTS, none where only people or
    other programs can do it), and a REMEDY where it can't be begun as things are."""

    state: State
    seen: str
    commands: tuple[str, ...] = ()
    remedy: str = ""
    id: str = ""
    title: str = ""
    why: str = ""
    check: str = ""
    acts: tuple[Act, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether something has to be mended before anybody goes on."""
        return self.state == "next" and bool(self.remedy)


@dataclass
class Planner:
    """What the steps are made of. FILE is to hold the custom resources, and SAVED is what it holds."""

    seen: Seen
    render: Render
    way: Way
    verdicts: list[Verdict]
    commands: Commands
    file: str
    saved: Sequence[Body] = field(default_factory=list)
    texts = "steps"

    def __post_init__(self) -> None:
        self.fields = Fields(self.seen, self.render)

    def steps(self) -> list[Step]:
        """The steps in their order: the first that isn't done is next, those after it come later."""
        made: list[Step] = []
        for text in facts()[self.texts]:
            one: Step = getattr(self, text["id"])()
            waits = one.state == "next" and any(step.state == "next" for step in made)
            made.append(replace(one, state="later" if waits else one.state, **text))
        return made

    def unseen(self, names: Sequence[str]) -> str:
        """The sentence about those of the kinds NAMES that nobody looked at, "" for none."""
        missing = [name for name in names if name not in self.seen.looked]
        why = sorted({reason for name, reason in self.seen.unread.items() if name in missing})
        return f"not looked at: {', '.join(missing)}{f' ({why[0]})' if why else ''}" if missing else ""

    # The steps, by their ids in the data file.

    def policy(self) -> Step:
        """Whether the policy is the one to hand over to."""
        bad = [each for each in self.verdicts if each.fate == "refused"]
        if "DaemonSet" not in self.seen.looked:
            looks = self.commands.looks(["DaemonSet"])
            return Step("next", "no DaemonSet was looked at", tuple(looks), "add with --from what the command prints")
        if bad:
            said = "; ".join(f"{each.name}: {each.why}" for each in bad)
            return Step("next", said, (), "; ".join(dict.fromkeys(each.remedy for each in bad)))
        if any(body["kind"] == "ClusterPolicy" for _, body in self.render.bodies):
            said = "the policy renders a ClusterPolicy, and the operator's own is the way back; it would act on either"
            return Step("next", said, (), "leave out spec.compat.clusterPolicy: who reads one finds the operator's")
        if outdated := list(behind(self.seen)):
            said = f"{'; '.join(outdated)}: whoever comes next rolls them"
            return Step("next", said, (), "let the operator finish its roll, then make the plan again")
        drivers = [each.name for each in self.verdicts if each.driver]
        return Step("done", f"unchanged: {', '.join(drivers) or 'there is no driver'}")

    def save(self) -> Step:
        """Whether the custom resources are saved."""
        own = [body for body in self.seen.objects if operator_kind(body)]
        if not own:
            remedy = "name a dump of them with --from, or the right cluster with --context"
            looks = self.commands.looks(CUSTOM)
            return Step("next", "no custom resource of the operator was seen", tuple(looks), remedy)
        have = {body["metadata"].get("uid") for body in self.saved} - {None}
        lacking = [str(body["metadata"]["name"]) for body in own if body["metadata"].get("uid") not in have]
        if not lacking:
            return Step("done", f"{self.file} holds them")
        names = sorted({kinds()[body["kind"]].resource for body in own})
        save = self.commands.into(self.file, "save", resources=",".join(names))
        return Step("next", f"{self.file} doesn't hold {', '.join(lacking)}", (save,), acts=(saving(self.file, own),))

    def suspend(self) -> Step:
        """Whether nobody brings the operator back."""
        asked = [name for name, kind in kinds().items() if kind.when == "holder"]
        said = self.unseen(asked)
        if self.way.name == "helm":
            told = "Helm's command line installed it, which does nothing by itself"
            return Step("not needed", f"{told}; {said}" if said else told)
        if not self.way.holders:
            remedy = "find out who installed it: add with --from what the commands print, or look at the cluster itself"
            told = "nothing tells who installed the operator"
            return Step("next", f"{told}; {said}" if said else told, tuple(self.commands.looks(asked)), remedy)
        every = [(each, *self.holding(each)) for each in self.way.holders]
        waiting = [each for each, done, _ in every if not done]
        said = "; ".join(f"{each.told}: {text}" for each, _, text in every)
        if not waiting:
            return Step("done", said)
        if self.way.name == "k3s":
            remedy = "take it out of K3s as its documentation says, without uninstalling the chart; then plan again"
            return Step("next", f"{said}, and nothing here knows how to suspend it", (), remedy)
        acts = [Act("patch", each.body, each.patch) for each in reversed(waiting) if each.body and each.seen]
        unseen = sorted({each.kind for each in waiting if not each.seen})
        remedy = "add with --from what the last command prints, where the engine runs" if unseen else ""
        return Step("next", said, (*self.commands.acts(acts), *self.commands.looks(unseen)), remedy, acts=tuple(acts))

    def holding(self, holder: Holder) -> tuple[bool, str]:
        """Whether HOLDER brings nothing back, and what was seen of it."""
        if holder.held:
            return True, str(facts()["holders"][holder.kind]["held"])
        if holder.seen:
            return False, "it is active"
        if self.seen.live and holder.kind in self.seen.looked:
            done = holder.kind != "Application" or self.render.elsewhere  # Argo CD may run in another cluster
            return done, f"it isn't in this cluster{AS_TOLD if self.render.elsewhere else ''}"
        return False, "it wasn't looked at in a cluster, so it isn't known whether it is suspended"

    def stop(self) -> Step:
        """Whether the operator runs no more."""
        operators = self.seen.operators
        if not operators and self.seen.live and self.takeover().state == "done":
            return Step("not needed", "no Deployment of it was found, and all that is rendered is applied")
        if not operators:
            where = f" in namespace {self.seen.namespace}" if self.seen.live else ""
            said = self.unseen(["Deployment"]) or f"no Deployment of the operator was found{where}"
            remedy = "name its namespace with --namespace, or add with --from what the command prints"
            looks = self.commands.looks(["Deployment"])
            return Step("next", f"{said}; that doesn't say that it is stopped", tuple(looks), remedy)
        running, names = [body for body in operators if not stopped(body)], told(operators)
        if not running and not any(of_operator(pod, operators) for pod in self.seen.of("Pod")):
            return Step("done", f"{names}: 0 replicas; {self.unseen(['Pod']) or 'no pod of it'}")
        said = f"{names}: it runs" if running else f"{names}: scaled to 0, and pods of it are left"
        busy = [node for node in self.seen.of("Node") if str(labels(node).get(UPGRADE_STATE, "")) not in AT_REST]
        remedy = ""
        if busy and running:
            nodes = ", ".join(f"{node['metadata']['name']} at {labels(node)[UPGRADE_STATE]}" for node in busy[:8])
            said += f"; an upgrade of drivers is under way: {nodes}"
            remedy = "wait until all nodes are at upgrade-done: what is half done is rolled on by whoever comes next"
        acts = tuple(scaled(body, 0) for body in running if body["spec"].get("replicas") != 0)
        return Step("next", said, (*self.commands.acts(acts), *map(self.commands.gone, operators)), remedy, acts=acts)

    def release(self) -> Step:
        """Whether no object is owned by a custom resource."""
        owned = [(body, rest) for body in self.seen.objects if (rest := other_owners(body)) is not None]
        wanted = self.seen.wanted(monitoring=self.render.monitoring, openshift=self.render.openshift)
        said = self.unseen(wanted)
        if not owned and not said:
            return Step("done", "no object of the kinds that the operator makes has an owner reference to it")
        acts = [Act("patch", body, {"metadata": {"ownerReferences": rest or None}}) for body, rest in owned]
        look = self.commands.looks([name for name in wanted if name not in self.seen.looked])
        count = f"{len(owned)} of the objects that were seen are owned by one of the operator's custom resources"
        return Step("next", f"{count}; {said}" if said else count, (*self.commands.acts(acts), *look), acts=tuple(acts))

    def apply(self) -> Step:
        """Whether the render is applied, but for the reconciler."""
        lacking, manager = self.fields.lacking, self.fields.manager
        if not lacking and self.fields.known:
            return Step("done", f"each object of the render has fields of {manager}")
        hidden = "what was seen has no managed fields (kubectl get ... --show-managed-fields)"
        said = f"{len(lacking)} objects of the render have no fields of {manager}" if lacking else hidden
        acts = () if self.render.engine else self.applied(reconciler=False)
        return Step("next", said, tuple(self.commands.applying(self.render)), acts=acts)

    def applied(self, *, reconciler: bool) -> tuple[Act, ...]:
        """The requests that apply what is rendered, in the order of a sync, the RECONCILER's among them or not."""
        ranked = sorted(self.render.bodies, key=lambda each: STAGES.index(each[0]))
        return tuple(Act("apply", body) for stage, body in ranked if reconciler or stage != "reconciler")

    def takeover(self) -> Step:
        """Whether former managers own nothing of what is rendered."""
        former, applied = self.fields.former, self.fields.known and not self.fields.lacking
        if applied and not former:
            return Step("done", "no object of the render that was seen has fields of a former manager")
        said = f"{len(former)} objects have fields of a former manager"
        if not applied:
            return Step("next", f"{said}; the commands depend on what the step before makes of them")
        taken = [self.commands.patch(object_of(body), self.fields.taken(body), "json") for body in former]
        acts = [Act("patch", body, {"metadata": {"managedFields": self.fields.merged(body)}}) for body in former]
        again = () if self.render.engine else self.applied(reconciler=False)
        return Step("next", said, (*taken, *self.commands.again(self.render)), acts=(*acts, *again))

    def reconciler(self) -> Step:
        """Whether the reconciler runs."""
        bodies = [body for stage, body in self.render.bodies if stage == "reconciler" and body["kind"] == "Deployment"]
        if not bodies:
            return Step("not needed", "the policy has no reconciler; nodes keep their labels, and new ones get none")
        live = [each for body in bodies if (each := self.fields.live(body))]
        if any((each.get("status") or {}).get("readyReplicas") for each in live):
            return Step("done", f"{told(live)} runs")
        acts = () if self.render.engine else self.applied(reconciler=True)
        return Step("next", "none was seen that runs", tuple(self.commands.starting(self.render)), acts=acts)

    def remove(self) -> Step:
        """Whether nothing of the operator is left but its custom resources."""
        rendered = {(body["kind"], body["metadata"]["name"]) for _, body in self.render.bodies}
        names = {body["metadata"]["name"] for body in self.seen.operators} or {"gpu-operator"}
        namespace = self.seen.namespace or self.render.namespace
        left = [
            body
            for kind in (*OWN, *OWN_EVERYWHERE)
            for body in self.seen.of(kind)
            if body["metadata"]["name"] in names - {name for of, name in rendered if of == kind}
            and (kind in OWN_EVERYWHERE or space(body) == namespace)
        ]
        holders = [each.body for each in reversed(self.way.holders) if each.body and each.held and each.goes(self.way)]
        versions = [body for body in self.seen.of("ClusterServiceVersion") if package(body)]
        gone, own = ([Act("delete", body) for body in bodies] for bodies in ([*holders, *versions], left))
        helm = [body for body in self.seen.of("Secret") if body.get("type") == "helm.sh/release.v1"]
        storage = self.way.storage or namespace
        mine = [body for body in helm if labels(body).get("name") == self.way.release and space(body) == storage]
        secrets: list[str] = []
        if self.way.release and (helm or storage != namespace or "Secret" not in self.seen.looked):
            of: dict[str, Any] = {"namespace": storage, "release": self.way.release}
            secrets = [self.commands.into(f"{self.file}.helm", "secrets", **of), self.commands.made("unhelm", **of)]
        asked = [kind for kind in (*OWN, *OWN_EVERYWHERE) if kind != "ServiceMonitor" or self.render.monitoring]
        said = self.unseen([*asked, *(["Secret"] if self.way.release else [])])
        if not gone and not own and not secrets and not said:
            return Step("done", "nothing but custom resources is left of the operator")
        count = f"{len(left)} objects of the operator's own are left"
        commands = (*self.commands.acts(gone), *secrets, *self.commands.acts(own))
        acts = [*gone, *(Act("delete", body) for body in mine), *own]
        before = [body for body in self.saved if body["kind"] in facts()["deletable"]]
        keep = {key_of(body): body for body in (*before, *(each.body for each in acts))}
        save = [saving(f"{self.file}.helm", list(keep.values()))] if acts else []
        return Step("next", f"{count}; {said}" if said else count, commands, acts=(*save, *acts))


def told(bodies: Sequence[Body]) -> str:
    """BODIES in a sentence."""
    return ", ".join(f"{body['kind']} {space(body)}/{body['metadata']['name']}" for body in bodies)


def scaled(body: Body, replicas: int) -> Act:
    """The request for another number of REPLICAS of the Deployment BODY."""
    return Act("patch", body, {"spec": {"replicas": replicas}}, "scale")


def stopped(body: Body) -> bool:
    """Whether the Deployment BODY wants no pod, and has none."""
    status = body.get("status") or {}
    behind = int(status.get("observedGeneration") or 0) < int(body["metadata"].get("generation") or 0)
    return body["spec"].get("replicas") == 0 and not status.get("replicas") and not behind


def of_operator(pod: Body, operators: Sequence[Body]) -> bool:
    """Whether POD is of one of the Deployments OPERATORS, and hasn't ended."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    chosen = [(space(body), (body["spec"].get("selector") or {}).get("matchLabels") or {}) for body in operators]
    return not ended and any(
        space(pod) == where and wanted and wanted.items() <= labels(pod).items() for where, wanted in chosen
    )


def other_owners(body: Body) -> list[Body] | None:
    """The owners of BODY but the operator's custom resources; None where none of these is among them."""
    every = body["metadata"].get("ownerReferences") or []
    rest = [each for each in every if not str(each.get("apiVersion", "")).startswith(keys.NVIDIA)]
    return rest if len(rest) < len(every) else None
