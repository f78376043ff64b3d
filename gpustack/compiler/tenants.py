"""Tenants' manifests against what clusters offer: what `gpustack lint --workloads` says.

The clusters' policies are loaded and not rendered: what nodes offer follows from the spec. Waivers beside the policies
count, but nobody is told that one is of no use: this looks at a part of what they may be about.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..checks.rule import RULES
from ..cluster.offer import Offer
from ..cluster.resolve import resolve
from ..model import Body, Finding, GpustackError, InputError, Resource
from ..policy.language.spec import ClusterPolicySpec
from ..policy.loading.load import Loaded, display
from ..policy.loading.place import node
from ..tenants.tenants import Others, findings, pods_in
from .judge import GroupedFinding, due, group
from .lint import Lint, in_order, read_decisions
from .manifests import Manifest, files, read
from .refusals import said
from .sources import Project, load_policy

OF_OBJECTS = ("GPU208", "GPU604", "GPU605", "GPU606", "GPU607", "GPU609", "GPU612", "GPU620", "GPU623", "GPU533")
"""Rules over a policy that speak of its extraObjects, and hold for manifests of tenants as well."""
_OBJECT = re.compile(r"spec\.extraObjects\[(\d+)\]\.?")


def lint_workloads(project: Project, paths: Sequence[Path], folder: Path) -> Lint:
    """Run the rules over workloads on the manifests in FOLDER, for each cluster of the policies PATHS.

    A policy that can't be used is a finding; the others are looked at. Raises InputError without any manifest."""
    clusters, unusable = load_all(project, paths)
    manifests, unreadable = read_all(folder, project.root)
    unusable += unreadable
    if not manifests and not unreadable:
        raise InputError(said("GPU036", folder=folder))
    decisions, wrong = read_decisions(project, paths)
    unusable += wrong
    others = Others([manifest.body for manifest in manifests])
    told = (
        (loaded.name, decisions.waive(path.parent, loaded.name, finding))
        for path, loaded in clusters
        for finding in about(manifests, loaded, others)
        if due(finding, project.today)
    )
    grouped = [GroupedFinding(finding, tuple(dict.fromkeys(names))) for finding, names in group(told)]
    grouped += [GroupedFinding(finding, ()) for finding in unusable]
    names = tuple(dict.fromkeys(loaded.name for _, loaded in clusters))
    return Lint(names, in_order(grouped), bool(unusable), 0)


def load_all(project: Project, paths: Iterable[Path]) -> tuple[list[tuple[Path, Loaded]], list[Finding]]:
    """The policies PATHS, and what is wrong with those that can't be used."""
    policies: list[tuple[Path, Loaded]] = []
    unusable: list[Finding] = []
    for path in paths:
        try:
            policies.append((path, load_policy(path, project.root, project.store)))
        except GpustackError as error:
            unusable += [finding for finding in error.findings if finding not in unusable]
    return policies, unusable


def read_all(folder: Path, root: Path) -> tuple[list[Manifest], list[Finding]]:
    """The objects in the files of FOLDER, and what is wrong with files that can't be read."""
    objects: list[Manifest] = []
    paths, unusable = files(folder)
    for path in paths:
        try:
            objects += read(path, display(path, root) if path.is_absolute() else path.as_posix())
        except InputError as error:
            unusable += error.findings
    return objects, unusable


def about(manifests: Iterable[Manifest], loaded: Loaded, others: Others) -> Iterator[Finding]:
    """What the rules say about MANIFESTS in the cluster of LOADED, with places in the manifests."""
    offered = resolve(loaded.spec).offer
    for manifest in manifests:
        yield from about_one(manifest, offered, others)
    yield from as_of_the_policy([one for one in manifests if _known(one.body)], loaded.spec)


def as_of_the_policy(manifests: Sequence[Manifest], spec: ClusterPolicySpec) -> Iterator[Finding]:
    """What rules over SPEC's extraObjects say of MANIFESTS: of alerts, monitors, what only the operator reads."""
    both = [*(manifest.body for manifest in manifests), *spec.extraObjects]
    beside = spec.model_copy(update={"extraObjects": both})
    for finding in (one for name in OF_OBJECTS if manifests for one in RULES[name].findings(beside)):
        match = _OBJECT.match(finding.path)
        if match and int(match[1]) < len(manifests):
            place = finding.path[match.end() :]
            yield dataclasses.replace(finding, path=place, location=manifests[int(match[1])].locate(place))


def _known(body: Body) -> bool:
    group = str(body.get("apiVersion")).rpartition("/")[0]
    return group in ("monitoring.coreos.com", "nvidia.com") and isinstance(node(body, ("metadata", "name")), str)


def about_one(manifest: Manifest, offered: Offer, others: Others) -> Iterator[Finding]:
    """What the rules say about MANIFEST, beside OTHERS, where a cluster offers OFFERED."""
    told = [*findings(manifest.body, pods_in(manifest.body), offered, others)]
    if node(manifest.body, ("metadata", "name")):  # numbers in quotes, which rules over objects say of the policy's own
        told += [*RULES["GPU206"].findings(Resource(manifest.body, "operands", "ExtraObjects"))]
    for finding in told:
        yield dataclasses.replace(finding, location=manifest.locate(finding.path))
