"""gpustack migrate: hand a cluster of the operator over to a policy, with no driver restarted.

`plan` looks at the cluster, or at a dump of it, and prints the steps in their order: how far each is, the commands that
are left of it, why, and what is checked afterwards. It writes nothing, neither here nor there.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Body, InputError
from . import common
from .text import Code

if TYPE_CHECKING:
    from ..moving.migrate import Plan, Render, Seen, Step, Verdict

PROMISES = {
    "kept": "no driver restarts",
    "open": "not proved that no driver restarts",
    "broken": "drivers roll, so nothing is handed over",
}
MOST = 6
"""Fields of a DaemonSet that a line of text names; JSON has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    what = "print the steps of the hand-over, how far each is, and its commands; do nothing"
    below = actions.add_parser("plan", help=what, description=f"{what[0].upper()}{what[1:]}.")
    connect.add_look(below)
    below.add_argument("--format", choices=["text", "json"], default="text", help="how to print the plan")


def run(options: argparse.Namespace) -> int:
    from ..moving import migrate
    from .text import as_json, printable, say

    render = rendered(options)
    file = Path(os.path.expanduser(f"~/{render.cluster}.before.yaml"))  # noqa: PTH111 - Path.home() raises without one
    found = migrate.plan(seen(options), render, kubectl(options), str(file), saved(file))
    code = 2 if found.promise.level == "broken" or any(step.refused for step in found.steps) else 0
    if options.format == "json":
        print(as_json({"version": 1, "exit": code, **data(found)}))
        return code
    for line in lines(found):
        (print if isinstance(line, Code) else say)(printable(line))
    return code


def rendered(options: argparse.Namespace) -> Render:
    """What the policy renders to, in memory."""
    import yaml

    from ..compiler import fleet
    from ..gitops.plan import Plan as Engines
    from ..gitops.plan import objects
    from ..moving.migrate import Render
    from ..policy.language.cluster import on_openshift

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
        engine_namespace=engines.engine.namespace(engines.settings) if engines else "",
        replicas=spec.reconciler.replicas if spec.reconciler else None,
        monitoring=bool(spec.cluster.monitoring),
        openshift=on_openshift(spec.cluster),
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


def data(found: Plan) -> dict[str, Any]:
    """The plan for programs."""
    holders = [{"kind": each.kind, "namespace": each.namespace, "name": each.name} for each in found.way.holders]
    return {
        "cluster": found.render.cluster,
        "operator": found.seen.version or None,
        "platform": found.render.platform,
        "installedBy": {"way": found.way.name or None, "release": found.way.release or None, "holders": holders},
        "promise": {"level": found.promise.level, "why": list(found.promise.why)},
        "notes": found.notes,
        "daemonSets": [dataclasses.asdict(each) for each in found.verdicts],
        "steps": [{**dataclasses.asdict(step), "refused": step.refused} for step in found.steps],
        "back": found.back,
    }


def lines(found: Plan) -> Iterator[str]:
    """The plan for people: first what becomes of the drivers."""
    yield f"{found.render.cluster}: {PROMISES[found.promise.level]}: {'; '.join(found.promise.why)}"
    version = found.seen.version or "of an unknown version"
    yield f"operator {version}, installed by {found.way.title}" + (
        f", release {found.way.release}" if found.way.release else ""
    )
    yield from (f"note: {note}" for note in found.notes)
    yield "DaemonSets:" if found.verdicts else "no DaemonSet of the stack was seen"
    for each in found.verdicts:
        yield f"  {each.name}: {fate(each)}"
        if each.remedy:
            yield f"    do: {each.remedy}"
    for number, step in enumerate(found.steps, 1):
        yield from step_lines(number, step)
    if found.back:
        yield "The way back, until the last step:"
    yield from (Code(f"    {command}") for command in found.back)
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
