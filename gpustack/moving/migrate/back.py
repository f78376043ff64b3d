"""The way out (`migrate abort`, `plan --reverse`): from a policy to the operator, or from the middle of a hand-over
back, with no driver restarted.

What the hand-over changed stands in the record in the cluster, with what was before; each step takes back what is left
of one of its steps, and does nothing where nothing is (docs/facts/moving.md M7).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpustack.live.state import called
from gpustack.model import Body
from gpustack.reconciler.shell.lease import NAME
from gpustack.reconciler.shell.uninstall import MARKS

from ...api import keys
from .acts import Act, bare, changes, digest, key_of, record, undone, within
from .plan import Promise, Render, Verdict, holds_driver, unproved
from .seen import Seen, facts, notes, space
from .steps import AS_TOLD, Planner, State, Step, scaled, stopped, told

GUARD = "ValidatingAdmissionPolicyBinding"


@dataclass
class Back(Planner):
    """The steps of the way back."""

    texts = "reverse"
    entries: list[Body] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.entries = record(self.seen, self.render.namespace)

    def left(self, acts: Iterable[Act], some: str, none: str, state: State = "done") -> Step:
        """A step of which ACTS are left, so many as SOME says; in STATE where none is."""
        made = tuple(acts)
        commands = tuple(self.commands.acts(made))
        return Step("next", f"{len(made)} {some}", commands, acts=made) if made else Step(state, none)

    def engine(self) -> Step:
        """Whether nobody applies the render any more."""
        engine = self.render.applies
        wanted = [body for body in (*self.render.roots, *self.render.syncs) if engine and body["kind"] == engine.kind]
        bodies = [self.seen.find(body["kind"], body["metadata"]["name"], space(body)) for body in wanted]
        live, names = [body for body in bodies if body], told(wanted)
        applied = any(self.fields.own(self.fields.live(body)) is not None for _, body in self.render.bodies)
        if not live and wanted and applied and not self.render.elsewhere:
            remedy = "suspend them where the engine runs, then say so: --suspended-elsewhere"
            return Step("next", f"{names}: not in this cluster, and what is rendered is applied", (), remedy)
        acts = (Act("patch", body, engine.hold) for body in live if engine and changes(engine.hold, body))
        none = f"{names}: suspended" if live else f"{names}{AS_TOLD}" if wanted and applied else "no engine applies it"
        return self.left(acts, "objects of the engine are active", none, "done" if live else "not needed")

    def halt(self) -> Step:
        """Whether the reconciler runs no more."""
        live = self.seen.find("Deployment", NAME, self.render.namespace)
        if live is None or stopped(live):
            return Step("done" if live else "not needed", "0 replicas" if live else "there is none")
        acts = tuple(scaled(each, 0) for each in [live] if live["spec"].get("replicas") != 0)
        return Step("next", "it runs", (*self.commands.acts(acts), self.commands.gone(live)), acts=acts)

    def guards(self) -> Step:
        """Whether nothing of ours refuses what the operator writes."""
        there = [self.seen.find(GUARD, name) for name in self.render.of(GUARD) if name.startswith("gpustack-")]
        return self.left((Act("delete", body) for body in there if body), "guards are there", "no guard is there")

    def nodes(self) -> Step:
        """Whether nothing of the reconciler is on nodes."""
        marked = any(notes(node).keys() & set(MARKS) for node in self.seen.of("Node"))
        here: Body = {"kind": "Namespace", "metadata": {"name": self.render.namespace}}
        return self.left(
            [Act("release", here)] * marked,
            "request is left: nodes have annotations of the reconciler",
            "no node has any",
        )

    def owners(self) -> Step:
        """Whether objects are owned as before, by what is there still: else the garbage collector would take them."""
        known, acts, key = {body["metadata"].get("uid") for body in self.seen.objects}, [], "ownerReferences"
        for before, live in undone(self.entries, "release", self.seen):
            have = (live or {"metadata": {}})["metadata"].get(key) or []
            were = [each for each in before["metadata"][key] or [] if str(each["apiVersion"]).startswith(keys.NVIDIA)]
            lacking = [each for each in were if each["uid"] in known and each not in have]
            if live and lacking:
                acts.append(Act("patch", live, {"metadata": {key: [*have, *lacking]}}))
        return self.left(
            acts, "objects were owned", "no object lacks an owner that the record names and is there still"
        )

    def operator(self) -> Step:
        """Whether the operator is there, and wants as many pods as before."""
        gone = [each["object"] for each in self.entries if (each["step"], each.get("verb")) == ("remove", "delete")]
        lost = {(each["kind"], each["namespace"], each["name"]) for each in gone} - set(map(key_of, self.seen.objects))
        made = [Act("apply", bare(body)) for body in self.saved if key_of(body) in lost]
        if len(made) < len(lost):
            remedy = f"take {self.file}.helm from whoever removed it: the record has their names alone"
            return Step("next", f"{len(lost)} objects of it were removed", (), remedy)
        if made:
            return self.left(made, f"objects of it were removed, and stand in {self.file}.helm", "")
        if not (operators := self.seen.operators):
            remedy = "install the release that ran with its values and --take-ownership, then plan again"
            return Step("next", "neither its Deployment is there nor a record of it", (), remedy)
        was = {live["metadata"]["name"]: each["spec"] for each, live in undone(self.entries, "stop", self.seen) if live}
        off = [body for body in operators if body["spec"].get("replicas") == 0]
        acts = (scaled(body, int(was.get(body["metadata"]["name"], {}).get("replicas") or 1)) for body in off)
        return self.left(acts, "Deployment of it has 0 replicas", f"{told(operators)}: it is to run")

    def holders(self) -> Step:
        """Whether what was suspended is set as before."""
        acts, kept = [], {"annotations": facts()["keep"], "finalizers": None}
        for was, live in undone(self.entries, "suspend", self.seen):
            shape = facts()["holders"].get(live["kind"], {}).get("patch") if live else None
            if live and shape and changes(patch := within(was, {**shape, "metadata": kept}), live):
                acts.append(Act("patch", live, patch))
        return self.left(acts, "objects are suspended still", "nothing that the record names is suspended still")


def returned(seen: Seen, render: Render) -> tuple[list[Verdict], Promise]:
    """What becomes of drivers on the way back, and whether none restarts: by the templates that the record has."""
    plans = [each["after"] for each in record(seen, render.namespace) if each["step"] == "plan"]
    was, verdicts, why = plans[-1] if plans else {}, [], list[str]()
    for body in seen.of("DaemonSet"):
        name, template = str(body["metadata"]["name"]), digest(body["spec"]["template"])
        if holds_driver(body):
            same = template in was.get(f"driver {called(body)}", [template if not was else None])
            verdicts.append(Verdict(name, True, "unchanged" if same else "rolls"))
            why += [] if same else [f"{name}: its template isn't the operator's, so the operator rolls it"]
    if not was:
        why = ["no record tells which templates the operator had written; where there was none, it rolls all drivers"]
    if why := why or list(unproved(seen, render)):
        return verdicts, Promise("open", tuple(why))
    return verdicts, Promise("kept", (f"measured with operator {seen.version}, its custom resources kept",))
