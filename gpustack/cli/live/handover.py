"""A hand-over, carried out: the requests of one step after another, each on what the plan has seen.

Before and after each step the cluster is looked at again, and the plan is made again. Nothing goes on where something
differs from the plan's file, while the Lease is another's, or where a trial of the apply shows another template of a
driver. What is done is written down in the cluster before it is done, so that somebody else can go on, or back.
"""

import asyncio
import io
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...api.expectations import kind_of
from ...api.objects import Object
from ...live.state import called, raw
from ...model import Body, InputError
from ...moving.migrate import NFD, Plan, Step
from ...moving.migrate.acts import RECORD, Act
from ...moving.migrate.file import TIME, moved, sight
from ...moving.migrate.seen import space
from ...reconciler.shell.client import Client
from ...reconciler.shell.clock import Clock
from ...reconciler.shell.cluster import CONFIG_MAPS, Conflict, Kind, NotFound, Selection
from ...reconciler.shell.lease import Elector, Terms
from ...reconciler.shell.log import Log
from ..saving import save
from . import release

WHO = Kind(Object, "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
PAUSE = 2.0
"""Seconds between two looks at a step that isn't done yet."""
ROUNDS = 5
"""Times that a step's requests are made at the most: again where an object has changed meanwhile, or where a kind that
was just applied isn't served yet."""
LAST = "remove"
"""The step that is only done where it is named."""


def refused(what: str, why: str = "", remedy: str = "make the plan again, read it, and run that") -> InputError:
    """The error for a hand-over that doesn't go on."""
    return InputError.of("GPU939", what, why=why, remedy=remedy)


@dataclass
class Runner:
    """Carries out a plan. `look` makes it anew, `tell` says what is done, `file` is what it must agree with, None for
    the way back from the middle; `until` is how many seconds a step may take. `done` are the steps that were done."""

    cluster: Client
    namespace: str
    look: Callable[[], Awaitable[Plan]]
    tell: Callable[[str], None]
    file: Body | None
    until: float
    done: list[str] = field(default_factory=list)

    async def run(self, wanted: str) -> Plan:
        """Carry out the step WANTED, its number or its id; "next" for the one that is next, "all" for all but the last
        one of a hand-over. The plan as it is then."""
        self.who = str((await self.cluster.create(WHO, {})).body["status"]["userInfo"]["username"])
        name, log, terms = f"{self.who}_{secrets.token_hex(4)}", Log("error", io.StringIO()), Terms.lasting(15)
        self.elector = Elector(self.cluster, self.namespace, name, Clock(), log, terms, name=RECORD)
        if holder := await release.lead(self.elector, self.tell):
            raise refused(f"{holder} is at it (Lease {self.namespace}/{RECORD})", remedy="wait until it has ended")
        renewing = asyncio.create_task(self.elector.run())
        try:
            plan, step = await self.following(wanted)
            if plan.promise.level != "kept":
                self.tell(f"it is not proved that no driver restarts: {'; '.join(plan.promise.why)}")
            if step and any(each.id == "stop" and each.state != "done" for each in plan.steps):
                what = {"kind": "Plan", "namespace": "", "name": plan.render.cluster}
                await self.write("plan", [{"object": what, "after": sight(plan)}])
            while step is not None:
                await self.carry_out(plan, step)
                self.done.append(step.id)
                plan, step = await self.following("all" if wanted == "all" else "")
            return plan
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            await self.elector.give_up()

    async def following(self, wanted: str) -> tuple[Plan, Step | None]:
        """The plan as it is now, and the step to carry out; None where WANTED is done, or nothing is."""
        plan = await self.checked()
        step = next((each for each in plan.steps if each.state == "next"), None)
        named = [each for number, each in enumerate(plan.steps, 1) if wanted in {str(number), each.id}]
        if wanted not in {"", "all", "next"} and not named:
            raise refused(f"there is no step {wanted}", remedy=f"name one of {[each.id for each in plan.steps]}")
        if step and named and named[0].state == "later":
            raise refused(f"{named[0].id} comes later: {step.id} is next", step.seen, f"run {step.id} first")
        none = not wanted or (step and wanted == "all" and step.id == LAST) or (named and step not in named)
        return plan, None if none else step

    async def checked(self) -> Plan:
        """The plan as it is now. Refused where it isn't the one that was reviewed, or can't be carried out."""
        plan = await self.look()
        if self.file is not None:
            if self.elector.clock.now() > datetime.strptime(self.file["expires"], TIME).replace(tzinfo=UTC):
                raise refused(f"the plan has expired at {self.file['expires']}", "a cluster changes meanwhile")
            if moves := list(moved(self.file["seen"], sight(plan), back=plan.direction == "out")):
                raise refused("the cluster or the policy isn't what the plan was made of", "; ".join(moves[:8]))
        if plan.promise.level == "broken":
            raise refused("drivers would roll", "; ".join(plan.promise.why), "do what `gpustack migrate plan` says")
        return plan

    async def carry_out(self, plan: Plan, step: Step) -> None:
        """Carry out STEP, and wait until the cluster shows it done. What only others can do is said and waited for."""
        self.tell(f"{step.title}: {step.seen}")
        ends, rounds = self.elector.clock.monotonic() + self.until, 0
        if not step.acts and not step.refused:
            for line in ("this can't be done from here; it goes on once you have done it:", *step.commands):
                self.tell(f"  {line}")
        while step.state not in {"done", "not needed"}:
            late = self.elector.clock.monotonic() > ends
            if step.refused or rounds == ROUNDS or late:
                said = f"after {self.until:g} s: {step.seen}" if late else step.seen
                raise refused(f"{step.title}: {said}", step.why, step.remedy or f"see to it that {step.check}")
            if step.acts:
                rounds += 1
                await self.perform(plan, step)
            if not step.acts or rounds > 1:
                await asyncio.sleep(PAUSE)
            plan = await self.checked()
            step = next(each for each in plan.steps if each.id == step.id)
        self.tell(f"{step.title}: done: {step.seen}")

    async def perform(self, plan: Plan, step: Step) -> None:
        """Make the requests of STEP, once they are in the record. One that meets a changed object ends the round."""
        if plan.direction == "in":
            await self.tried(plan, step.acts)
        await self.write(step.id, [act.entry() for act in step.acts])
        try:
            for act in step.acts:
                if not self.elector.leading:
                    raise refused("the Lease was lost", remedy="see that the API server answers, then run it again")
                await self.request(act)
        except (Conflict, NotFound) as error:
            self.tell(f"{called(act.body)}: {error}; once more")

    async def tried(self, plan: Plan, acts: Sequence[Act]) -> None:
        """Refuse ACTS where the API server, with all its webhooks, would write another template than the plan tells of,
        or pods of operands would be replaced at once."""
        rolling = {each.name for each in plan.verdicts if each.fate == "rolls"}
        for act in acts:
            name, live = act.body["metadata"]["name"], plan.seen.find(act.body["kind"], act.body["metadata"]["name"])
            if act.verb != "apply" or act.body["kind"] != "DaemonSet" or live is None:
                continue
            spec = (await self.request(act, dry_run=True))["spec"]
            postponed = name in rolling and (spec["updateStrategy"]["type"] == "OnDelete" or name.endswith(NFD))
            if spec["template"] != live["spec"]["template"] and not postponed:
                why = "the API server would write another template, and its pods be outdated or replaced"
                remedy = "find what changes it; operands may roll later: spec.daemonsets.updateStrategy: OnDelete"
                raise refused(f"{name} would roll", why, remedy)

    async def request(self, act: Act, *, dry_run: bool = False) -> Body:
        """Make the request that ACT is; the object as it is then, {} where it has none."""
        kind, name, where = raw(kind_of(act.body)), str(act.body["metadata"]["name"]), space(act.body)
        if act.verb == "apply":
            return dict((await self.cluster.apply(kind, name, act.body, namespace=where, dry_run=dry_run)).body)
        if act.verb == "save":
            mask = os.umask(0o077)
            save(Path(name), json.dumps({**act.body, "metadata": {}}), "the objects", "see to your home folder")
            os.umask(mask)
        elif act.verb == "release":
            prepared = await release.prepare(self.cluster, self.namespace, keep_labels=True)
            if left := (ended := await prepared.carry_out(self.tell)).made.left:
                raise refused("nodes are left as they were", f"{left}", ended.remains[0])
        elif act.verb == "patch":
            await self.cluster.patch(kind, name, act.sent, namespace=where, subresource=act.subresource)
        else:
            await self.cluster.delete(kind, name, namespace=where, uid=str(act.body["metadata"]["uid"]))
        return {}

    async def write(self, step: str, made: Sequence[Body]) -> None:
        """Add what is MADE in STEP to the record. Raises Conflict where somebody else writes it."""
        head = {"at": self.elector.clock.now().strftime(TIME), "by": self.who, "step": step}
        text = json.dumps([{**head, **each} for each in made], separators=(",", ":"))
        ours = Selection(self.namespace, fields=f"metadata.name={RECORD}")
        records = (await self.cluster.list(CONFIG_MAPS, ours)).items
        meta = {"resourceVersion": records[0].metadata.resourceVersion} if records else {"name": RECORD}
        body = {"metadata": meta, "data": {f"{len(records[0].data) if records else 0:06}": text}}
        if records:
            await self.cluster.patch(CONFIG_MAPS, RECORD, body, namespace=self.namespace)
        else:
            await self.cluster.create(CONFIG_MAPS, body, namespace=self.namespace)
