"""gpustack migrate: hand a cluster of the operator over to a policy, or back, with no driver restarted.

`plan` looks at the cluster, or at a dump of it, and prints the steps in their order: how far each is, the commands that
are left of it, why, and what is checked afterwards. It changes nothing. `run` carries a plan out that was written to a
file, `abort` goes back from wherever that stands (live/handover.py), and `status` says where that is.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..catalog import _data
from ..compiler import fleet
from ..model import Body, InputError, printable
from ..text.regular import read_regular
from . import common
from .refusals import said
from .text import Code, answer, as_json, picked

if TYPE_CHECKING:
    from ..moving.migrate import Plan, Render, Seen, Step, Verdict

TEXTS = _data.read(Path(__file__).with_suffix(".yaml"))
MOST = 6
"""Fields of a DaemonSet that a line of text names; JSON has all."""


def run(options: argparse.Namespace) -> int:
    if options.action in {"run", "abort"}:
        return carry_out(options)
    render, reverse = rendered(options), getattr(options, "reverse", False)
    plan = made(options, render, seen(options), reverse=reverse)
    if options.action == "status":
        told = progress(plan)
        return answer(options.format, 2 if told["overdue"] else 0, told, progress_lines(told))
    code = 2 if plan.promise.level == "broken" or any(step.refused for step in plan.steps) else 0
    told = data(plan)
    if options.write:
        from ..moving.migrate.file import written
        from .saving import save

        other = made(options, render, plan.seen, reverse=not reverse)
        text = as_json({"version": 1, **told, **written(plan, common.clock(), other)})
        save(Path(options.write), f"{text}\n", "the plan", "name another file with --write")
    return answer(options.format, code, told, lines(plan))


def made(options: argparse.Namespace, render: Render, seen: Seen, *, reverse: bool) -> Plan:
    """The plan for what was SEEN."""
    from ..moving import migrate

    file = Path(os.path.expanduser(f"~/{render.cluster}.before.yaml"))  # noqa: PTH111 - Path.home() raises without one
    known = [*saved(file), *saved(file.with_name(f"{file.name}.helm"))]
    return migrate.plan(seen, render, kubectl(options), str(file), known, reverse=reverse)


def read(name: str) -> Body:
    """The plan in the file NAME."""
    try:
        body: Body = json.loads(read_regular(name))
        plan = {key: body[key] for key in ("cluster", "direction", "seen", "expires")}
        if plan["direction"] not in {"in", "out"} or not isinstance(plan["seen"], dict):
            raise ValueError(f"the direction is {plan['direction']!r}, and has to be in or out")
        if any(not isinstance(plan[key], str) or "/" in plan[key] for key in ("cluster", "expires")):
            raise ValueError("the cluster and the end of the plan are not texts")
        return plan
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(said("GPU939", name=name, error=repr(error))) from None


def carry_out(options: argparse.Namespace) -> int:
    """Run a plan; or abort, which is the way back to its end."""
    from ..moving import migrate
    from .live import connect, handover

    file, done = read(options.plan) if options.action == "run" else {}, list[str]()
    options.cluster = options.cluster or file["cluster"]
    render, reverse = rendered(options), file.get("direction") != "in"

    async def work(cluster: Any) -> Plan:
        async def look() -> Plan:
            looked = await migrate.look(cluster, options.namespace, connect.DEFAULT_NAMESPACE)
            return made(options, render, looked, reverse=reverse)

        def said(text: str) -> None:
            print(printable(text), file=sys.stderr, flush=True)

        runner = handover.Runner(cluster, render.namespace, look, said, file or None, options.wait, done)
        return await runner.run(options.step)

    plan = connect.run(options, work)
    step = next((each for each in plan.steps if each.state == "next"), None)
    told = {"cluster": render.cluster, "done": done, "next": step.id if step else None}
    return answer(options.format, 0, told, [f"next: {step.id}: {step.title}" if step else "all is done"])


def progress(plan: Plan) -> dict[str, Any]:
    """How far a hand-over is: what was done and by whom, what is next, and what must not stay so for long."""
    from ..moving.migrate.acts import record
    from ..moving.migrate.plan import behind
    from ..moving.migrate.seen import facts
    from ..moving.migrate.steps import stopped
    from ..reconciler.shell.lease import NAME

    look, entries = plan.seen, record(plan.seen, plan.render.namespace)
    frozen = bool(look.operators) and all(map(stopped, look.operators))
    stops = [each["at"] for each in entries if each["step"] == "stop"]
    ours = ((look.find("Deployment", NAME, plan.render.namespace) or {}).get("status") or {}).get("readyReplicas")
    late, applied = list(behind(look, every=True)), [each["at"] for each in entries if each["step"] == "apply"]
    ends = common.moment(common.clock() - timedelta(days=facts()["postponed"]))
    step = next((each for each in plan.steps if each.state == "next"), None)
    done = dict.fromkeys((each["at"], each["step"], each["by"]) for each in entries)
    return {
        "cluster": plan.render.cluster,
        "done": [dict(zip(("at", "step", "by"), each, strict=True)) for each in done],
        "next": step and {"id": step.id, "title": step.title, "seen": step.seen},
        "stopped": (stops[-1] if stops else "by nobody who wrote it down") if frozen else None,
        "labels": "operator" if look.operators and not frozen else "reconciler" if ours else None,
        "behind": late,
        "overdue": min(applied) if late and applied and min(applied) < ends else None,
    }


def progress_lines(told: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    yield from (f"{each['at']} {each['step']} by {each['by']}" for each in told["done"])
    step = told["next"]
    yield f"next: {step['id']}: {step['title']}: {step['seen']}" if step else "all is done"
    yield from [f"the operator is stopped: {told['stopped']}"] if told["stopped"] else []
    yield f"a node that joins now is labelled by {told['labels'] or 'nobody: keep this time short'}"
    yield from told["behind"]
    if told["overdue"]:
        yield f"they have been since {told['overdue']}: too long, as security fixes wait with them; roll them"


def rendered(options: argparse.Namespace) -> Render:
    """What the policy renders to, in memory."""
    from ..cluster.resolve import resolve
    from ..gitops.plan import Plan as Engines
    from ..gitops.plan import objects, roots
    from ..moving.migrate import Render

    with common.project(options) as project:
        (source,) = fleet.compiled(project, [common.select_one(options.cluster)])
        stack, spec = fleet.stack_of(project, source), fleet.spec_of(project, source)
    bodies = [(file.path.partition("/")[0], yaml.load(file.text, yaml.CSafeLoader)) for file in stack.files]
    engines = Engines.model_validate(stack.plan) if stack.plan is not None else None
    return Render(
        source.name,
        spec.cluster.namespace,
        spec.cluster.platform,
        bodies,
        folder=options.out,
        engine=engines.engine.name if engines else "",
        syncs=tuple(objects(engines, source.name)) if engines else (),
        roots=tuple(roots(engines, source.name)) if engines else (),
        engine_namespace=engines.engine.namespace(engines.settings) if engines else "",
        replicas=spec.reconciler.replicas if spec.reconciler else None,
        monitoring=bool(spec.cluster.monitoring),
        openshift=resolve(spec).platform.own_monitoring,
        elsewhere=getattr(options, "suspended_elsewhere", False),
    )


def seen(options: argparse.Namespace) -> Seen:
    """What there is of the cluster, or in the files that stand for it."""
    from ..moving import migrate
    from .live import connect

    if not connect.files_stand_in(options):
        return connect.run(options, lambda cluster: migrate.look(cluster, options.namespace, connect.DEFAULT_NAMESPACE))
    return migrate.dumped(options.sources, options.namespace)


def saved(file: Path) -> list[Body]:
    """The objects in FILE; none where it isn't there, or kubectl got no further than to make it."""
    from ..moving import migrate

    try:
        return migrate.dumped([str(file)]).objects if file.is_file() else []
    except InputError:
        return []


def kubectl(options: argparse.Namespace) -> list[str]:
    """How each command for the cluster begins."""
    named = {"--kubeconfig": options.kubeconfig, "--context": options.context}
    return ["kubectl", *(f"{option}={value}" for option, value in named.items() if value)]


def data(plan: Plan) -> dict[str, Any]:
    """The plan for programs."""
    holders = [picked(each, "kind namespace name") for each in plan.way.holders]
    return {
        "cluster": plan.render.cluster,
        "operator": plan.seen.version or None,
        "platform": plan.render.platform,
        "installedBy": {"way": plan.way.name or None, "release": plan.way.release or None, "holders": holders},
        "promise": {"level": plan.promise.level, "why": list(plan.promise.why)},
        "notes": plan.notes,
        "daemonSets": [dataclasses.asdict(each) for each in plan.verdicts],
        "steps": [
            {**dataclasses.asdict(dataclasses.replace(step, acts=())), "refused": step.refused} for step in plan.steps
        ],
        "back": plan.back,
    }


def lines(plan: Plan) -> Iterator[str]:
    """The plan for people: first what becomes of the drivers."""
    yield f"{plan.render.cluster}: {TEXTS['promises'][plan.promise.level]}: {'; '.join(plan.promise.why)}"
    version = plan.seen.version or "of an unknown version"
    release = f", release {plan.way.release}" if plan.way.release else ""
    yield f"operator {version}, installed by {plan.way.title}{release}"
    yield from (f"note: {note}" for note in plan.notes)
    yield "DaemonSets:" if plan.verdicts else "no DaemonSet of the stack was seen"
    for each in plan.verdicts:
        yield f"  {each.name}: {fate(each)}"
        if each.remedy:
            yield f"    do: {each.remedy}"
    for number, step in enumerate(plan.steps, 1):
        yield from step_lines(number, step)
    if plan.back:
        yield "The way back, until the last step:"
    yield from (Code(f"    {command}") for command in plan.back)
    yield "nothing was changed"


def fate(each: Verdict) -> str:
    """What becomes of the pods of a DaemonSet."""
    more = ", ..." if len(each.fields) > MOST else ""
    because = f"because of {', '.join(each.fields[:MOST])}{more}"
    if each.fate == "refused":
        what = "driver would roll: refused" if each.driver else "refused"
        return f"{what}, {because if each.fields else f'because {each.why}'}"
    return f"rolls, {because}" if each.fate == "rolls" else each.fate


def step_lines(number: int, step: Step) -> Iterator[str]:
    """A step for people; what is done or not needed is one line."""
    state = f"{step.state}, refused" if step.refused else step.state
    yield f"{number}. {step.title} [{state}]"
    yield f"   {step.seen}"
    if step.state in {"done", "not needed"}:
        return
    if step.remedy:
        yield f"   do: {step.remedy}"
    yield f"   why: {step.why}"
    yield from (Code(f"    {command}") for command in step.commands)
    yield f"   check: {step.check}"
