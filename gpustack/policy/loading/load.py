"""From policy files to validated, fully defaulted specs.

Solves: every verb needs the same few steps (read, find the layers, put defaults below, validate), and a thousand
clusters need them fast. What clusters share is done once per `Memo`: a layer is read once, equal specs are validated
once.

All mistakes of a policy are reported together, in the order of its lines, then those of its layers.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpustack.model import Finding, InputError, Location
from gpustack.policy.loading.brought import Brought, brought_by
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.envelope import TEXTS, Envelope, open_policy
from gpustack.policy.loading.extends import Layer, Layers, is_layer_name
from gpustack.policy.loading.layers import Merged, Part
from gpustack.policy.loading.rings import FLEET, Change, Rings, contradictions, rings_of, shared_files
from gpustack.text.read import Document, read

if TYPE_CHECKING:
    from gpustack.policy.language.spec import ClusterPolicySpec

LAYERS = "layers"
"""The folder beside the policies that holds the layers."""
WAIVERS = "waivers.yaml"
"""The file beside the policies that says what is waived: waivers.py reads it."""
BESIDE = (WAIVERS, FLEET)
"""The files beside the policies that aren't policies."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One cluster's policy: the cluster's name, the policy's name in messages, and its layers in merge order."""

    name: str
    file: str
    spec: ClusterPolicySpec = field(repr=False)
    merged: Merged = field(repr=False)
    documents: tuple[Document, ...] = field(repr=False)
    layers: tuple[str, ...]


@dataclass
class Memo:
    """What the loads of one run share: documents by path, layers and rings by folder, valid specs by `spec_key`; and
    what the policy repository brings along, None before that is read."""

    documents: dict[pathlib.Path, Document] = field(default_factory=dict)
    layers: dict[pathlib.Path, Layers] = field(default_factory=dict)
    rings: dict[pathlib.Path, Rings] = field(default_factory=dict)
    specs: dict[str, ClusterPolicySpec] = field(default_factory=dict)
    brought: Brought | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A policy that is read, its folder, what it extends, and the changes that count in its cluster; nothing of it is
    merged."""

    policy: Envelope
    folder: pathlib.Path
    layers: Sequence[Layer]
    changes: Sequence[Change]
    memo: Memo

    @property
    def content(self) -> str:
        """Equal for policies of one run that say the same: all of them can be loaded where one can, and have one spec,
        whose values have origins of one kind. "" for a policy with mistakes."""
        if self.policy.findings:
            return ""
        layers, changes = [each.name for each in self.layers], [each.name for each in self.changes]
        return repr((os.fspath(self.folder), layers, changes, self.policy.spec))


def open_with_layers(
    path: pathlib.Path, *, root: pathlib.Path, memo: Memo | None = None, ahead: Iterable[str] = ()
) -> Opened:
    """Open the policy file PATH. Arguments and errors are those of `load`."""
    memo = memo if memo is not None else Memo()
    if path not in memo.documents:
        memo.documents[path] = read(path, display(path, root))
    policy = open_policy(memo.documents[path])
    folder = pathlib.Path(os.path.abspath(path)).parent / LAYERS
    if folder not in memo.layers:
        memo.layers[folder] = Layers(folder, lambda file: display(file, root))
    layers = memo.layers[folder].of(policy)
    if folder.parent not in memo.rings:
        memo.rings[folder.parent] = rings_of(folder.parent, lambda file: display(file, root))
    changes = memo.rings[folder.parent].of(policy, ahead)
    if memo.brought is None:
        memo.brought = brought_by(root)
    return Opened(policy, folder.parent, layers, changes, memo)


def load(
    path: pathlib.Path,
    *,
    root: pathlib.Path,
    memo: Memo | None = None,
    overrides: dict[str, Any] | None = None,
    ahead: Iterable[str] = (),
) -> Loaded:
    """Load the policy file PATH. Files below ROOT are called by their path from there, others by their name.

    OVERRIDES is a part of a spec that wins over the file: what the cluster would be with it. AHEAD are changes that
    count though they have not come to the cluster's ring: what it would be when they have. Raises InputError with
    everything that is wrong, where reading can go on after a mistake."""
    return load_opened(open_with_layers(path, root=root, memo=memo, ahead=ahead), overrides)


def load_opened(opened: Opened, overrides: dict[str, Any] | None = None) -> Loaded:
    """Load what is OPENED, with OVERRIDES and errors as `load` has them."""
    policy, layers, changes = opened.policy, opened.layers, opened.changes
    own = Part("policy", policy.document.file, policy.spec, ("spec",), policy.document.text)
    asked = [Part("policy", "the command line", overrides)] if overrides else []
    users = [*(layer.part for layer in layers), *(change.part for change in changes), own, *asked]
    merged, findings = assemble(users)
    findings += contradictions(changes)
    for envelope in (policy, *(layer.envelope for layer in layers)):
        findings += envelope.findings
    spec = _validated(merged, opened.memo, findings)
    if any(part.clean is not part.data for part in users):
        from gpustack.policy.loading.diagnose import unknown_nulls

        findings += unknown_nulls(users)
    documents = [policy.document, *(layer.envelope.document for layer in layers), *(each.document for each in changes)]
    if findings or spec is None:
        raise InputError(*in_file_order(findings, [document.file for document in documents]))
    return Loaded(
        str(policy.name), policy.document.file, spec, merged, tuple(documents), tuple(layer.name for layer in layers)
    )


def load_values(values: dict[str, Any]) -> ClusterPolicySpec:
    """The effective spec of VALUES, which no file has, without layers. Raises InputError with all that is wrong."""
    merged, findings = assemble([Part("policy", "the spec", values)])
    spec = _validated(merged, Memo(), findings)
    if findings or spec is None:
        raise InputError(*findings)
    return spec


def ringed(folder: pathlib.Path, root: pathlib.Path) -> tuple[Rings, dict[str, str | None], dict[str, pathlib.Path]]:
    """The rings of the policies in FOLDER, the ring of each cluster, and its file. Raises InputError."""
    rings = rings_of(folder, lambda file: display(file, root))
    paths = policy_files(folder, folder.name) if rings.document else []
    opened = {path: open_policy(read(path, display(path, root))) for path in paths}
    by_name = {str(policy.name): path for path, policy in opened.items()}
    return rings, {str(policy.name): rings.ring_of(policy) for policy in opened.values()}, by_name


def spec_key(merged: Merged) -> str:
    """Return the digest of the merged spec: equal for equal specs, whoever wrote which value, in any order of keys."""
    return merged.key


def display(path: pathlib.Path, root: pathlib.Path) -> str:
    """Return the name of PATH in messages: relative to ROOT, with slashes; only the last part for what lies outside."""
    full, top = os.path.abspath(path), os.path.abspath(root).rstrip(os.sep) + os.sep
    if full.startswith(top):
        return full[len(top) :].replace(os.sep, "/")
    outside = pathlib.Path(full)
    return f"{LAYERS}/{outside.name}" if outside.parent.name == LAYERS else outside.name


def in_file_order(findings: Sequence[Finding], files: Sequence[str]) -> list[Finding]:
    """Return FINDINGS without repetitions: those of the first of FILES first, within a file by line."""
    order = {file: index for index, file in enumerate(files)}

    def key(finding: Finding) -> tuple[int, int, int]:
        where = finding.location or Location("")
        return order.get(where.file, len(order)), where.line or 0, where.column or 0

    return sorted(dict.fromkeys(findings), key=key)


def _validated(merged: Merged, memo: Memo, findings: list[Finding]) -> ClusterPolicySpec | None:
    """Return the spec, or None after adding to FINDINGS what is wrong with it."""
    key = spec_key(merged)
    if key in memo.specs:
        return memo.specs[key]
    from pydantic import ValidationError

    from gpustack.policy.language.spec import ClusterPolicySpec

    try:
        spec = ClusterPolicySpec.model_validate(merged.spec, context=(memo.brought or Brought()).context)
    except ValidationError as error:
        from gpustack.policy.loading.diagnose import diagnose

        known = {finding.path for finding in findings}
        findings += [each for each in diagnose(error, merged) if each.path not in known]
        return None
    memo.specs[key] = spec
    return spec


def layers_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files that the policy PATH is merged of beside its own: rings, changes, and the layers that it
    extends, directly or not, also those that do not exist.

    Never raises: what can't be read extends nothing. To learn which policies a changed, or deleted, file is part of."""
    folder = pathlib.Path(os.path.abspath(path)).parent / LAYERS
    files = dict.fromkeys(shared_files(folder.parent, layers=False).values())
    waiting = [path]
    while waiting:
        try:
            spec = read(waiting.pop(), "").data.get("spec")
        except InputError:
            continue
        extends = spec.get("extends") if isinstance(spec, dict) else None
        for name in extends if isinstance(extends, list) else []:
            file = folder / f"{name}.yaml"
            if isinstance(name, str) and is_layer_name(name) and file not in files:
                files[file] = None
                waiting.append(file)
    return list(files)


def policy_files(folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Return the files in FOLDER that are policies by their name, sorted. NAME is what messages call the folder."""
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError as error:
        reason = error.strerror or error
        raise InputError(TEXTS.finding("GPU001", "", Location(name), reason=reason)) from None
    named = [entry.name for entry in entries if entry.name.endswith((".yaml", ".yml")) and not entry.is_dir()]
    return [folder / file for file in sorted(named) if file not in BESIDE]
