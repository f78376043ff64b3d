"""gpustack adopt: the settings of an installation of the operator, in whatever shape, as a policy that means the same.

`read` makes an Installation of the inputs, `adopt` the policy and what is to be said about it.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpustack.compiler.cache import Store
from gpustack.compiler.stack import compile_stack
from gpustack.components.plugin.configs_inputs import mig_config_map
from gpustack.model import Body, Finding, FindingsError, Path
from gpustack.policy.loading.load import load_values
from gpustack.text.read import parse

from .carry import carried
from .inputs import read_all
from .installation import Installation, Leaves, Note, at, understood
from .pools import NODES
from .refer import bring, refer
from .sharing import CONFIG, NAME, Kept, apart, in_effect, shared
from .shorten import fit, shorten
from .spec import Draft, draft, effective
from .write import text_of

MISSING = ("GPU201", "GPU202")
"""The rules about objects that are named and that nobody brings."""

MOST = 12
"""Lines at the head of a policy about what had no effect; the report has all."""

__all__ = ["Adopted", "adopt", "read_all"]


@dataclass
class Adopted:
    """The policy of a cluster, HEAD above it, and what is to be said: FINDINGS keep it from rendering.
    `rolls` says by which fields each DaemonSet that runs differs from what is rendered; none: its pods stay. BODIES
    are what is rendered; TRIED: the API server has said what it would make of them."""

    name: str
    head: list[str]
    draft: Draft
    wanted: Leaves
    dropped: int
    findings: list[Finding] = field(default_factory=list)
    rolls: dict[str, list[str]] = field(default_factory=dict)
    bodies: list[Body] = field(default_factory=list)
    tried: bool = False

    @property
    def text(self) -> str:
        """The policy."""
        return text_of(self.name, self.draft.spec, self.draft.leaves, self.head)

    @property
    def sets(self) -> list[Body]:
        """The DaemonSets that are rendered."""
        return [*sets_of(self.bodies).values()]

    @property
    def notes(self) -> list[Note]:
        """What became of what isn't simply carried."""
        return self.draft.installation.notes

    def proof(self) -> list[tuple[Path, Any, Any]]:
        """What was said and is another in the effective spec of the text: the path, what was said, what is."""
        written = parse(self.text, self.name)["spec"]
        spec, filled = effective(written).spec, load_values(written).model_dump()
        pairs = ((path, said.value, at(spec, path)) for path, said in self.wanted.items() if said.value != {})
        return [(path, was, now) for path, was, now in pairs if was != now and was != at(filled, path)]


def adopt(
    installation: Installation, name: str, answers: Mapping[str, str], store: Store, *, keep: bool, head: str
) -> Adopted:
    """The policy NAME of INSTALLATION."""
    if not installation.told:
        installation.tell("defaults alone", "spec")
    made = draft(installation, answers, keep=keep)
    platform = made.leaves.get(("cluster", "platform"))
    if "cluster.platform" in answers or (platform and platform.where == NODES):
        fit(made)
    bring(made)
    first, before = replace(made, leaves=dict(made.leaves)), [*installation.notes]
    finished = finish(made, name, head, store)
    if (own := in_effect(first, mig_config_map)) and own.data:
        installation.tell("sharing kept", "spec.migManager.config", why="nodes choose a layout by their labels")
    try:
        other = shared(first)
        if other is None:
            return finished
        told, installation.notes = installation.notes, [*before]
        candidate = finish(other, name, head, store)
        if lost := worse(finished, candidate, str(at(first.spec, (*CONFIG, "name")))):
            installation.notes = told
            raise Kept(lost)
    except Kept as why:
        installation.tell("sharing kept", "spec.devicePlugin.config", why=why)
        return finished
    installation.tell("sharing written", "spec.nodePools[0].sharing", pool=other.leaves[NAME].value)
    return candidate


def worse(before: Adopted, after: Adopted, config: str) -> str:
    """What AFTER has that BEFORE, which reads CONFIG, had not; "" for nothing."""
    if more := {each.rule for each in after.findings} - {each.rule for each in before.findings}:
        return f"it would be refused by {', '.join(sorted(more))}"
    if rolls := {name for name, fields in after.rolls.items() if fields and not before.rolls.get(name)}:
        return f"pods that run would be replaced: {', '.join(sorted(rolls))}"
    other = apart(before.bodies, after.bodies, config) if before.bodies else set()
    return f"other objects would change: {', '.join(sorted(other)[:3])}" if other else ""


def finish(made: Draft, name: str, head: str, store: Store) -> Adopted:
    """The policy NAME of MADE: with what it refers to, as short as it can be, and what becomes of sets that run."""
    installation = made.installation
    _, bodies = render(made, store, MISSING)
    refer(made, bodies)
    wanted = dict(made.leaves)
    dropped = shorten(made)
    rolls: dict[str, list[str]] = {}
    live = [body for body in installation.of_kind("DaemonSet") if body.get("spec", {}).get("template")]
    if live and bodies:
        with understood("a DaemonSet"):
            made.carried, rolls = carried(live, sets_of(bodies), installation.of_kind("ControllerRevision"))
    findings, bodies = render(made, store)
    findings = [
        replace(each, remedy=f"{each.remedy}; {asked}") if (asked := answer(each)) else each for each in findings
    ]
    gone = [f"{note.path} {note.why}" for note in installation.notes if note.why.startswith("had no effect")]
    gone = [*gone[:MOST], *([f"and {len(gone) - MOST} more"] if len(gone) > MOST else [])]
    return Adopted(name, [head, *gone], made, wanted, dropped, findings, rolls, bodies)


def answer(finding: Finding) -> str:
    """The --set that answers FINDING, "" where none is known."""
    path = finding.path.removeprefix("spec.")
    if finding.rule == "GPU103":
        return "answer --set 'nodePools[0].os=ubuntu22.04'" + " or --set driver.enabled=false" * (path[:6] == "driver")
    return f"answer --set '{path}=VALUE'" if path.startswith("nodePools[") else ""


def sets_of(bodies: list[Body]) -> dict[str, Body]:
    """The DaemonSets among BODIES by name."""
    return {str(body["metadata"]["name"]): body for body in bodies if body["kind"] == "DaemonSet"}


def render(made: Draft, store: Store, tolerated: Container[str] = ()) -> tuple[list[Finding], list[Body]]:
    """What the rules have against MADE, and what it renders to where they have nothing."""
    import yaml

    from gpustack.policy.loading.load import spec_key

    spec = load_values(made.spec)
    try:
        stack = compile_stack(spec, spec_key(effective(made.spec)), store, tolerated)
    except FindingsError as error:
        return list(error.findings), []
    return [], [yaml.load(file.text, yaml.CSafeLoader) for file in stack.files]
