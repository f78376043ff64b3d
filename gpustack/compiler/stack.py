"""One effective spec -> the result of all its components. A pure function, cached at two levels.

Components first: a component whose inputs (and Kubernetes version) were seen before, in this run, in another worker or
last month, is taken from the store. Only the others are synthesised, validated and written as text. The stack itself is
the list of its components' keys with what the rules find: over the spec, over each object, over the whole render.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ..catalog import kubernetes
from ..checks import NEVER_KEPT
from ..checks.rule import rules_over
from ..checks.subjects import Render
from ..components.registry import REGISTRY, Entry
from ..gitops.marks import marked, marks_of
from ..model import Finding, FindingsError, GpustackError, Resource
from ..text.emit import emit
from . import node
from .cache import Store, digest
from .engine import caused, engine_findings, named, planned
from .folders import leads_out
from .refusals import said

if TYPE_CHECKING:
    from ..components.parts.common_inputs import Inputs
    from ..components.team_inputs import TeamEntry
    from ..policy.language.spec import ClusterPolicySpec

Result = dict[str, Any]
"""What the store has of a component, see `component_result`."""
Given = tuple["Entry | TeamEntry", "Inputs"]


class File(NamedTuple):
    """A rendered object as text, and where it goes: stage/<name>.yaml. (A fleet has 75,000 of them.)"""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Stack:
    """What an effective spec renders to, for Kubernetes `minor` ("1.34").

    `findings` are what the rules say, whenever it counts; errors among them are of rules that were tolerated, or dated.
    `plan` is what the GitOps engine's objects are made of (engine.py), None without an engine. `artifact` says what the
    layer of an OCI artifact is that alone holds the files, None for those that are written."""

    key: str
    minor: str
    files: tuple[File, ...]
    findings: tuple[Finding, ...]
    plan: dict[str, Any] | None = None
    artifact: dict[str, Any] | None = None

    @property
    def layer(self) -> str:
        """The digest of the artifact's layer, "" where the files are written."""
        return str(self.artifact["digest"]) if self.artifact else ""


class RefusedError(FindingsError):
    """A spec that can't be compiled, or that a rule refuses. `beside` is what else the rules had to say by then."""

    def __init__(self, errors: Sequence[Finding], said: Iterable[Finding]) -> None:
        super().__init__(*errors)
        self.beside = tuple(finding for finding in said if finding not in errors)


def compile_stack(spec: ClusterPolicySpec, key: str, store: Store, tolerated: Container[str] = ()) -> Stack:
    """Compile SPEC, whose content KEY names.

    Raises RefusedError with every error that was found. Errors of the rules TOLERATED, and those that count on some
    days only, are left to the caller, who knows of waivers and the date: they are among the stack's findings."""
    known = known_stack(key, store, tolerated)
    if known is not None:
        return known
    findings: list[Finding] = []
    try:
        minor = kubernetes.minor(spec.cluster.kubernetesVersion)
        findings += [finding for rule in rules_over("spec") for finding in rule.findings(spec)]
        refuse(findings, tolerated)
        findings += workload_findings(spec)
        components = component_results(spec, minor, store)
        files = joined(list(components.values()))
        findings += object_findings(spec, components.values())
        findings += render_findings(spec, minor, list(components.values()))
        plan = planned(spec, (result["bodies"] for result in components.values()))
        findings += engine_findings(spec, minor, plan)
        findings.sort(key=lambda finding: finding.rule)
        refuse(findings, tolerated)
    except FindingsError as error:
        raise RefusedError(error.findings, findings) from None
    kept = [plain(finding) for finding in findings]
    artifact = artifact_of(spec, files)
    more = {name: value for name, value in (("plan", plan), ("artifact", artifact)) if value is not None}
    store.put("stack", key, {"minor": minor, "components": list(components), "findings": kept, **more})
    store.hand_on()
    return Stack(key, minor, files, tuple(findings), plan, artifact)


def known_stack(key: str, store: Store, tolerated: Container[str] = ()) -> Stack | None:
    """The stack KEY if it is in the store, as `compile_stack` has it."""
    known = stored_stack(key, store)
    try:
        refuse(known.findings if known else (), tolerated)
    except FindingsError as error:
        raise RefusedError(error.findings, known.findings if known else ()) from None
    return known


def artifact_of(spec: ClusterPolicySpec, files: Sequence[File]) -> dict[str, Any] | None:
    """What Git knows of FILES where it doesn't hold them: the digest of the layer, how many there are, and the release.
    They have no header, which names a policy: clusters of one spec share the layer."""
    if spec.gitops is None or spec.gitops.repository.dist != "oci":
        return None
    made = layer_digest({file.path: file.text.encode() for file in files})
    return {"digest": made, "objects": len(files), "release": spec.release}


def layer_digest(files: Mapping[str, bytes]) -> str:
    """The digest of the layer that holds FILES."""
    from ..registry.artifact import layer_of
    from ..registry.reference import digest_of

    return digest_of(layer_of(files))


def object_findings(spec: ClusterPolicySpec, results: Iterable[Result]) -> Iterator[Finding]:
    """What the rules over single objects found in the components RESULTS, with places in the policy."""
    for result in results:
        for identity, item in result["findings"]:
            yield caused(spec, result["section"], tuple(identity), finding_of(item))


def render_findings(spec: ClusterPolicySpec, minor: str, results: Sequence[Result]) -> Iterator[Finding]:
    """What the rules over the whole render say."""
    from ..checks.objects.references import Needed, Provided

    def load() -> list[Resource]:
        bodies = (json.loads(result["bodies"]) for result in results)
        return [Resource(body, stage, origin) for items in bodies for stage, origin, body in items]

    have = [Provided(*item) for result in results for item in result["provides"]]
    need = [Needed(*item) for result in results for item in result["needs"]]
    render = Render(spec, minor, have, need, load)
    for rule in rules_over("render"):
        yield from rule.findings(render)


def workload_findings(spec: ClusterPolicySpec) -> Iterator[Finding]:
    """What the rules over tenants' manifests say about those that the policy brings along."""
    from ..cluster.resolve import resolve
    from ..tenants.tenants import Others, concerned, findings, pods_in

    others = Others(spec.extraObjects)
    for index, body in enumerate(spec.extraObjects):
        pods = pods_in(body)
        for finding in findings(body, pods, resolve(spec).offer, others) if pods or concerned(body) else ():
            path = f".{finding.path}" if finding.path else ""
            yield dataclasses.replace(finding, path=f"spec.extraObjects[{index}]{path}")


def stored_stack(key: str, store: Store) -> Stack | None:
    """The stack KEY if it and all its components are in the store."""
    entry = store.get("stack", key)
    if entry is None:
        return None
    results = [stored_component(component, store) for component in entry["components"]]
    if None in results or any(map(leads_out, (entry.get("plan") or {}).get("files", ()))):
        return None
    files = joined([result for result in results if result])
    findings = tuple(map(finding_of, entry["findings"]))
    return Stack(key, entry["minor"], files, findings, entry.get("plan"), entry.get("artifact"))


def stored_component(key: str, store: Store) -> Result | None:
    """The component KEY if it is in the store, and its files stay where they belong: whoever can write to a store that
    machines share says what is rendered, and not where to."""
    result = store.get("component", key)
    return None if result and any(leads_out(path) for path, _ in result["files"]) else result


def bring_stacks(keys: Iterable[str], store: Store) -> None:
    """Fetch the stacks KEYS, with their components, that are not in the store and that others may have."""
    if store.shared is not None:
        wanted = list(keys)
        store.bring("stack", wanted)
        entries = (store.get("stack", key) or {"components": []} for key in wanted)  # one at a time: a fleet has many
        store.bring("component", dict.fromkeys(component for entry in entries for component in entry["components"]))


def plain(finding: Finding) -> list[Any]:
    """A finding without its location, which belongs to a file and not to a spec, for the store."""
    fields = [finding.rule, finding.severity, finding.what, finding.path, finding.why, finding.remedy]
    if finding.inside or finding.key or finding.since or finding.until:
        days = (day.isoformat() if day else None for day in (finding.since, finding.until))
        return [*fields, finding.inside, finding.key, *days]
    return fields


def finding_of(item: Sequence[Any]) -> Finding:
    """The reverse of `plain`."""
    rule, severity, what, path, why, remedy, *more = item
    finding = Finding(rule, severity, what, path=path, why=why, remedy=remedy)
    if not more:
        return finding
    inside, key, *days = more
    since, until = (datetime.date.fromisoformat(day) if day else None for day in days)
    return dataclasses.replace(finding, inside=tuple(inside) if inside else None, key=key, since=since, until=until)


def refuse(findings: Iterable[Finding], tolerated: Container[str] = ()) -> None:
    """Raise FindingsError with the errors among FINDINGS, if one counts on every day and its rule isn't TOLERATED."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if any(not (error.since or error.until or error.rule in tolerated) for error in errors):
        raise FindingsError(*errors)


def component_results(spec: ClusterPolicySpec, minor: str, store: Store) -> dict[str, Result]:
    """The results of SPEC's components by their keys. Those about what the others render come last."""
    from ..components.parts.common_inputs import OfRender

    errors: list[Finding] = []
    given: list[Given] = []
    for entry in entries_of(spec):
        try:
            inputs = entry.inputs(spec)
        except FindingsError as error:
            errors += [finding for finding in error.findings if finding not in errors]
            continue
        if inputs is not None:
            given.append((entry, inputs))
    refuse(errors)
    results = _results(spec, minor, store, [each for each in given if not isinstance(each[1], OfRender)])
    late = [(entry, inputs) for entry, inputs in given if isinstance(inputs, OfRender)]
    if late:
        bodies = [body for each in results.values() for _, _, body in json.loads(each["bodies"])]
        results |= _results(spec, minor, store, [(entry, inputs.seeing(bodies)) for entry, inputs in late])
    return results


def _results(spec: ClusterPolicySpec, minor: str, store: Store, given: Iterable[Given]) -> dict[str, Result]:
    """The results of the components GIVEN by their keys; what the store doesn't have is computed and given to it.

    Results are handed on, not fetched back: a store that can't be written holds little of what it is given."""
    errors: list[Finding] = []
    marks = marks_of(spec)
    marked_as = (marks.key,) if marks else ()
    asked = [
        (entry, inputs, digest("component", entry.id, minor, spec.cluster.namespace, inputs.digest(), *marked_as))
        for entry, inputs in given
    ]
    store.bring("component", (key for *_, key in asked))
    results: dict[str, Result] = {key: stored_component(key, store) or {} for *_, key in asked}
    absent = [each for each in asked if not results[each[2]]]
    if absent:
        synthesised = synthesiser()([(entry, inputs) for entry, inputs, _ in absent])
        for entry, _, key in absent:
            resources = synthesised[entry.id]
            if not isinstance(entry, Entry):
                resources = [entry.placed(resource, spec) for resource in resources]
            if marks:
                resources = [marked(resource, marks, guarded=entry.guarded) for resource in resources]
            try:
                refuse(schema_findings(spec, entry, resources, minor))
                results[key] = component_result(entry, resources, spec.cluster.namespace)
            except FindingsError as error:
                errors += error.findings
            else:
                if not any(item[0] in NEVER_KEPT for _, item in results[key]["findings"]):
                    store.put("component", key, results[key])
    refuse(errors)
    return results


def entries_of(spec: ClusterPolicySpec) -> Iterator[Entry | TeamEntry]:
    """The components that there are, then the constructs of a team's own that SPEC asks for."""
    yield from REGISTRY
    if spec.constructs:
        from ..components.team_inputs import team_entries

        yield from team_entries(spec)


def synthesiser() -> Callable[[Sequence[Given]], dict[str, list[Resource]]]:
    """`synth.synthesise`; importing it starts Node. Raises MissingToolError when that fails."""
    if "jsii" not in sys.modules:
        node.configure()
    node.await_early()
    try:
        import_module(node.GUARD)
        from .synth import synthesise
    except GpustackError:
        raise
    except Exception as error:  # whatever Python trips over on the way: an installation that is not whole
        reason = str(error).partition("\n")[0]
        raise node.unusable(f"Node can't run cdk8s: {type(error).__name__}: {reason}", case="another") from error
    return synthesise


def schema_findings(
    spec: ClusterPolicySpec, entry: Entry | TeamEntry, resources: Sequence[Resource], minor: str
) -> Iterator[Finding]:
    """What a cluster of Kubernetes MINOR would refuse in RESOURCES of the component ENTRY, with the place in SPEC."""
    from .validate import validate

    for resource in resources:
        for finding in validate(resource.body, minor, spec.kinds):
            yield caused(spec, entry.section, named(resource.body, spec.cluster.namespace), finding)


def component_result(entry: Entry | TeamEntry, resources: list[Resource], namespace: str) -> Result:
    """What the store keeps of the component ENTRY: its files, what they provide and need, what rules over single
    objects say (with the object), and its bodies as one text, which few ask for."""
    from pydantic_core import to_json

    from ..checks.objects.references import needed, provided

    seen = ((each, _looked_at(each)) for each in resources)
    judged = ((each, rule.findings(looked_at)) for each, looked_at in seen for rule in rules_over("object"))
    return {
        "files": [[file_name(resource, namespace), emit(resource.body)] for resource in resources],
        "provides": [item for resource in resources for item in provided(resource.body)],
        "needs": [item for resource in resources for item in needed(resource.body)],
        "section": entry.section,
        "findings": [[named(each.body, namespace), plain(finding)] for each, hits in judged for finding in hits],
        "bodies": to_json([[resource.stage, resource.origin, resource.body] for resource in resources]).decode(),
    }


def _looked_at(resource: Resource) -> Resource:
    """RESOURCE as rules over objects look at it: they know kinds by their names, and other software has Jobs and Roles
    too. Those are called as kubectl calls them, Job.batch.volcano.sh."""
    body = resource.body
    if kubernetes.having(body["apiVersion"], body["kind"]):
        return resource
    return Resource({**body, "kind": f"{body['kind']}.{resource.group}"}, resource.stage, resource.origin)


def file_name(resource: Resource, namespace: str) -> str:
    """stage/kind-name.yaml, with the object's namespace before its name where that isn't the stack's NAMESPACE.

    Characters that some file systems refuse (RBAC names may hold a colon) are written as =xx, so that == can only stand
    behind a namespace."""
    name = plain_name(resource.name)
    if resource.namespace not in {"", namespace}:
        name = f"{plain_name(resource.namespace)}=={name}"
    stem = f"{resource.kind.lower()}-{name}"
    if len(stem) > 200:
        stem = f"{stem[:180]}-{digest(stem)[:16]}"
    return f"{resource.stage}/{stem}.yaml"


def plain_name(name: str) -> str:
    """NAME in characters that every file system takes; different names stay different."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._") else f"={ord(c):02x}" for c in name)


def joined(results: list[Result]) -> tuple[File, ...]:
    """All files of a stack, by path. Two objects of one name, in whatever stages, only the user can tell apart."""
    files: dict[str, File] = {}
    names: dict[str, str] = {}
    for result in results:
        for path, text in result["files"]:
            name = path.partition("/")[2]
            if names.setdefault(name, path) != path or (path in files and files[path].text != text):
                raise FindingsError(conflict(path))
            files[path] = File(path, text)
    return tuple(files[path] for path in sorted(files))


def conflict(path: str) -> Finding:
    """The finding for two objects that would be written to one file."""
    kind, _, name = path.partition("/")[2].removesuffix(".yaml").partition("-")
    return said("GPU204", at="spec.extraObjects", kind=kind, name=name)
