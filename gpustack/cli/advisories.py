"""gpustack affected --advisory: which clusters run what security advisories name (review/advisory.py), where that is
written, and the version that mends it. Exit code 1 where a cluster does, 2 where one may, 0 else. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..checks.objects.images import uses
from ..cluster.resolve import resolve
from ..compiler import fleet, sources
from ..compiler.judge import GroupedFinding, group
from ..compiler.lint import Lint, in_order
from ..model import Finding, few
from ..policy.language import images as names
from ..policy.loading.layers import Part, merge
from ..policy.loading.place import parse
from ..policy.loading.rings import CHANGES
from ..review.advisory import RULE, Facts, Named, advisory, hits
from . import common, images
from .text import document, plain, say

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec

Told = tuple[str, Finding, Facts]


def run(options: argparse.Namespace) -> int:
    from .formats import Report, write

    brought, trees = [advisory(Path(file)) for file in options.advisory], dict[str, dict[str, str]]()
    told = [*asked(options, brought, trees), *strange(brought)]
    sorted_ = group((name, finding) for name, finding, _ in told)
    grouped = in_order(GroupedFinding(finding, tuple(filter(None, same))) for finding, same in sorted_)
    worst = {item.finding.severity for item in grouped}
    code = 1 if "error" in worst else 2 if "warning" in worst else 0
    clusters = tuple(dict.fromkeys(name for name, *_ in told if name))
    if options.format == "json":
        facts = {finding: more for _, finding, more in told}
        rows = [{**plain(one.finding), "clusters": list(one.clusters), **facts[one.finding]} for one in grouped]
        print(document(code, rows, clusters=list(clusters)))
    else:
        text = write("text", Report(Lint(clusters, grouped, False, 0), ())).rstrip()
        say(text, sys.stderr if options.as_change else sys.stdout)
    head = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyChange", "metadata": {"name": options.as_change}}
    every = dict.fromkeys(common.name_of(path) or path.stem for path in common.select([]))
    for tree, same in trees.items():
        body = yaml.safe_dump({**head, "spec": yaml.safe_load(tree)}, sort_keys=False)
        others = [name for name in every if name not in same]
        more = [f"# it counts as well in {few(others, 12)}"] if others else []
        where = dict.fromkeys(filter(None, same.values()))
        more += [f"# {at} says so itself, and this doesn't count beside it: take it out there" for at in where]
        print("\n".join(["---", f"# for {few([*same], 12)}", *more, body]), end="")
    return code


def asked(
    options: argparse.Namespace, brought: Sequence[tuple[str, list[Named]]], trees: dict[str, dict[str, str]]
) -> Iterator[Told]:
    """What the advisories BROUGHT say of each cluster; equal clusters are asked once. TREES gets what mends them, with
    their names, and which lines of their own files stand above that."""
    digests, parsed = images.locked() or {}, dict[str, Any]()
    known: dict[str, tuple[list[tuple[Finding, Facts]], str]] = {}
    with common.project(options) as project:
        for source in fleet.compiled(project, common.select([]), common.progress_line(options)):
            if source.key not in known:
                cluster = resolve(fleet.spec_of(project, source))
                used = {image for body in images.bodies(project, source, parsed) for image, _ in uses(body)}
                locked = {each: digests[each].digest if each in digests else names.digest_of(each) for each in used}
                affected = [hit for name, named in brought for hit in hits(cluster, locked, name, named)]
                known[source.key] = affected, layer(cluster.spec, affected)
            affected, tree = known[source.key]
            if tree and options.as_change:
                own = sources.load_policy(source.path, project.root, project.store).merged.own
                there = ((one, fleet.placed(project, source, one).location) for one, _ in affected)
                lines = [
                    at for one, at in there if at and (parse(one.path)[1:] in own or CHANGES in Path(at.file).parts)
                ]
                trees.setdefault(tree, {})[source.name] = ", ".join(dict.fromkeys(map(str, lines)))
            yield from ((source.name, fleet.placed(project, source, finding), facts) for finding, facts in affected)


def strange(brought: Sequence[tuple[str, list[Named]]]) -> Iterator[Told]:
    """What advisories name that is not a part of the stack; a warning where one names nothing else."""
    for name, named in brought:
        foreign = sorted({each.name for each in named if not each.component and not each.digest})
        known = any(each.component or each.digest for each in named)
        if foreign or not known:
            foreign_ones = f"{few(foreign, 4)}, which is not a part of the stack" if foreign else "no part of the stack"
            what = f"{name} names {foreign_ones} that is known here"
            yield "", Finding(RULE, "note" if known else "warning", what), {}


def layer(spec: ClusterPolicySpec, affected: Sequence[tuple[Finding, Facts]]) -> str:
    """What a layer says that mends what is AFFECTED in SPEC, as YAML; "" where that is nothing."""
    parts = []
    for finding, facts in affected:
        steps = parse(finding.path)[1:]
        if finding.severity == "error" and facts.get("put") and steps and steps[-1] == "version":
            value: Any = facts["put"]
            for step in reversed(steps):
                named = isinstance(step, int) and {"name": getattr(spec, str(steps[0]))[step].name, **value}
                value = [named] if named else {step: value}
            parts.append(Part("policy", "the advisory", value))
    return yaml.safe_dump(merge(parts).spec, sort_keys=False) if parts else ""
