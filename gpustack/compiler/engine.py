"""The engine's own objects of a compiled stack: the plan that is kept with it, and the files of a cluster. And what in
a policy caused an object, so that what is wrong with the object is shown there.

The objects name the cluster, and a stack serves many: so the stack has a plan, and the files are made of it as they are
written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..checks.rule import rules_over
from ..checks.subjects import EngineObjects, Synced
from ..model import Body, Finding, Resource
from ..text.emit import emit

if TYPE_CHECKING:
    from ..gitops.plan import Plan
    from ..policy.language.spec import ClusterPolicySpec

SAMPLE = "cluster"
"""A cluster's name, to see whether objects are valid: which one does not matter."""
STAND_IN = "some-cluster-of-many-whose-names-are-shorte"
"""A name in whose place others are put; the longest that is a whole part of each object's name (Flux cuts others)."""


def planned(spec: ClusterPolicySpec, bodies: Iterable[str]) -> dict[str, Any] | None:
    """The plan for SPEC as plain data, None where no engine is named. BODIES are those of its components' results."""
    if spec.gitops is None or spec.gitops.engine is None:
        return None
    from ..gitops.plan import plan_of

    resources = (Resource(body, stage, origin) for text in bodies for stage, origin, body in json.loads(text))
    plan = plan_of(spec, resources)
    return plan.model_dump(mode="json", exclude_none=True) if plan else None


def engine_findings(spec: ClusterPolicySpec, minor: str, plan: dict[str, Any] | None) -> Iterator[Finding]:
    """What is wrong with the objects of PLAN by their schemas and by rules, with the place in SPEC."""
    if plan is None:
        return
    from ..gitops.plan import Plan, objects, roots
    from .validate import validate

    parsed = Plan.model_validate(plan)
    made = objects(parsed, SAMPLE)
    for body in made:
        for finding in validate(body, minor):
            yield caused(spec, "gitops", named(body, ""), finding)
    root = [body for body in roots(parsed, SAMPLE) if body not in made]
    for rule in rules_over("engine"):
        yield from rule.findings(EngineObjects(spec, (*made, *root), synced(parsed, made, root)))


def synced(plan: Plan, made: list[Body], root: list[Body]) -> dict[str, Synced]:
    """What each of the objects MADE for PLAN syncs, and what those of its ROOT do, by their names."""
    ours = Synced([(one.group, one.kind, one.namespaced) for one in plan.kinds], plan.namespaces)
    heads = {(str(body["apiVersion"]).rpartition("/")[0], body["kind"], True) for body in made}
    theirs = Synced(sorted(heads), sorted({body["metadata"]["namespace"] for body in made}))
    return {body["metadata"]["name"]: what for bodies, what in ((made, ours), (root, theirs)) for body in bodies}


def engine_files(plan: dict[str, Any] | None, cluster: str) -> dict[str, str]:
    """The texts of PLAN for CLUSTER by their paths below dist/, without the header."""
    if plan is None or "files" in plan:  # of a cluster that another version rendered, they are files
        return plan["files"] if plan else {}
    from ..gitops.plan import Plan, file_of, objects

    parsed = Plan.model_validate(plan)
    where = parsed.folder(cluster)
    return {f"{where}/{file_of(body)}": emit(body) for body in objects(parsed, cluster)}


class EngineTexts:
    """What `engine_files` has for each of many clusters with one PLAN; written once."""

    def __init__(self, plan: dict[str, Any] | None) -> None:
        self._plan = plan
        self._files = engine_files(plan, STAND_IN)
        self._alone = STAND_IN in json.dumps(plan)

    def of(self, cluster: str) -> dict[str, str]:
        """The texts for CLUSTER by their paths below dist/."""
        quoted = emit({"name": cluster}) != f"name: {cluster}\n"  # where it stands alone
        if self._alone or quoted or len(cluster) > len(STAND_IN):
            return engine_files(self._plan, cluster)
        return {path.replace(STAND_IN, cluster): text.replace(STAND_IN, cluster) for path, text in self._files.items()}


def caused(spec: ClusterPolicySpec, section: str, identity: tuple[str, ...], finding: Finding) -> Finding:
    """FINDING about a place in the object IDENTITY (`named`) of a component, with the place of SPEC that caused it: in
    the object of extraObjects that it is, else the component's SECTION or, without one, the policy."""
    path = "spec"
    if section == "extraObjects":
        index = [named(body, spec.cluster.namespace) for body in spec.extraObjects].index(identity)
        below = f".{finding.path}" if finding.path and not finding.path.startswith("[") else finding.path
        path = f"spec.extraObjects[{index}]{below}"
    elif section.partition(".")[0] in type(spec).model_fields:
        path = f"spec.{section}"
    return dataclasses.replace(finding, path=path)


def named(body: Body, namespace: str) -> tuple[str, ...]:
    """API group, kind, namespace (NAMESPACE unless it says another) and name of an object in a policy."""
    meta = body["metadata"]
    return str(body["apiVersion"]).rpartition("/")[0], body["kind"], meta.get("namespace") or namespace, meta["name"]
