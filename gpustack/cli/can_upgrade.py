"""gpustack can-upgrade: whether nodes, Kubernetes, OpenShift, the driver or the release may be upgraded.

The policies are judged as `lint` does it, as they are and as they would be (review/upgrade.py); the difference is the
answer, beside what is known of images, kernels and support tables. Nothing is written.
"""

import argparse
import json

from ..compiler import fleet, sources
from ..compiler.executor import Executor
from ..compiler.judge import Decisions, GroupedFinding, group
from ..compiler.lint import Lint, in_order
from ..model import Finding, InputError
from ..policy.loading.load import load
from ..policy.loading.place import place
from . import common

WHAT = ("kernel", "os", "ocp", "kubernetes", "driver", "release")
"""What may be upgraded: options."""


def run(options: argparse.Namespace) -> int:
    from .formats import Report, tell

    asked = {name: getattr(options, name) or "" for name in WHAT}
    if not any(asked.values()):
        raise InputError.of("GPU026", "nothing is to be upgraded", remedy=f"say --{', --'.join(WHAT)}, or several")
    told = answered(options, asked)
    findings = in_order(GroupedFinding(finding, tuple(names)) for finding, names in group(told))
    clusters = tuple(dict.fromkeys(name for name, _ in told))
    return tell(options.format, Report(Lint(clusters, findings, False, 0), ("error", "warning"), "can-upgrade"))


def answered(options: argparse.Namespace, asked: dict[str, str]) -> list[tuple[str, Finding]]:
    """What there is to say, by cluster. Raises InputError for a policy, or a version, that can't be read."""
    from ..cluster.resolve import resolve
    from ..review.upgrade import WITH, Answers, changes
    from .images import locked

    paths, seen, pools = common.select(options.policies), locked() or {}, options.pool
    told, others = list[tuple[str, Finding]](), list[tuple[str, Finding]]()
    with common.project(options) as project, Executor(project.jobs, len(paths), project.scheduler) as executor:
        progress = common.progress_line(options)
        every, now, then = sources.read_all(project, paths, executor, progress), [], []
        read = {each.path: sources.load_policy(each.path, project.root, project.store) for each in every}
        having = [each for each in every if {*pools} & {pool.name for pool in read[each.path].spec.nodePools}]
        for source in every if options.policies else having or every:  # of all clusters those that have the pool
            loaded = read[source.path]
            try:
                tree = changes(resolve(loaded.spec), asked, pools)
            except InputError as error:  # of several, those are asked that it is about
                others.append((source.name, error.findings[0]))
                continue
            now.append(source)
            try:
                after = load(source.path, root=project.root, memo=sources.memo_of(project.store), overrides=tree)
            except InputError as error:
                if any(finding.rule != "GPU014" for finding in error.findings):
                    raise
                told += [(source.name, finding) for finding in error.findings]  # a version that isn't known here
                continue
            then.append(sources.source_of(project, source.path, "", after))
            what = f"the policy says with it, as a layer would: {json.dumps(tree)}"
            answers = Answers(asked, pools, resolve(after.spec), seen, options.looked).all(resolve(loaded.spec))
            told += [(source.name, place(loaded, each)) for each in (*answers, Finding(WITH, "note", what, "spec"))]
        if not now:
            raise InputError(others[0][1])
        rules: list[dict[tuple[str, Finding], None]] = []
        for policies in (now, then):
            decisions = Decisions(fleet.read_waivers(project, paths), project.today)
            judged = fleet.judge_sources(project, policies, decisions, executor, progress, notes=True)[0]
            rules.append({(name, item.finding): None for item in judged for name in item.clusters})
    told += [each for each in rules[1] if each not in rules[0]]
    ended = [each for each in rules[0] if each not in rules[1] and each[1].severity != "note"]
    told += [(name, Finding(WITH, "note", f"not asked: {why.what}", "spec")) for name, why in others]
    return told + [
        (name, Finding(WITH, "note", f"it ends {one.rule}: {one.what}", one.path, one.location)) for name, one in ended
    ]
