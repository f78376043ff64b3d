"""The frame of a policy, a layer or what stands beside them: apiVersion, kind, metadata.name, and the spec in it.

Solves: what stands around the spec decides whether a file is a policy at all, and must be known before layers are
looked for and long before pydantic is needed. Kinds of other tools are recognised in `foreign.py`.
"""

from __future__ import annotations

import difflib
import pathlib
from dataclasses import dataclass, field
from typing import Any, Literal

from gpustack.model import Finding, InputError, Path, dotted
from gpustack.policy.loading.layers import Part, merge
from gpustack.text.positions import locate
from gpustack.text.read import Document

API_VERSION = "gpustack.dev/v1alpha1"
Kind = Literal["ClusterPolicy", "PolicyLayer", "PolicyChange", "Fleet"]
KEYS = ("apiVersion", "kind", "metadata", "spec")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A file of the right kind. `spec` is without `extends`, which stands beside it; `findings` are for later."""

    document: Document
    name: str | None
    spec: dict[str, Any] = field(repr=False)
    extends: list[str]
    findings: list[Finding] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


def open_policy(document: Document) -> Envelope:
    """Return the frame of a cluster's policy. Raises InputError (GPU012) where DOCUMENT is something else."""
    envelope = _open(document, "ClusterPolicy")
    if envelope.name is None and not any(finding.path.startswith("metadata") for finding in envelope.findings):
        envelope.findings.append(
            finding(
                document,
                ("metadata", "name"),
                "GPU017",
                "the policy has no metadata.name",
                f"add `metadata: {{name: {pathlib.PurePath(document.file).stem}}}`",
                why="it is the cluster's name, and the name of its folder in dist/",
            )
        )
    return envelope


def open_layer(document: Document, stem: str, kind: Kind = "PolicyLayer") -> Envelope:
    """Return the frame of the layer file called STEM, or of another KIND of file beside policies. Raises InputError
    (GPU012) where DOCUMENT is something else.
    """
    envelope = _open(document, kind)
    if envelope.name not in (None, stem):
        envelope.findings.append(
            finding(
                document,
                ("metadata", "name"),
                "GPU013",
                f"the {kind} calls itself {envelope.name}, but its file is {stem}",
                f"write `name: {stem}`, delete metadata, or rename the file to {envelope.name}.yaml",
                why="it is named by its file, so two names would only confuse",
            )
        )
    if envelope.labels or (envelope.extends and kind != "PolicyLayer"):
        path: Path = ("metadata", "labels") if envelope.labels else ("spec", "extends")
        what, why = f"a {kind} has no {path[1]}", "labels say in which ring a cluster is; policies and layers extend"
        envelope.findings.append(finding(document, path, "GPU016", what, "take it out", why=why, key=True))
    return envelope


def finding(
    document: Document, path: Path, rule: str, what: str, remedy: str, *, why: str = "", key: bool = False
) -> Finding:
    """Return an error about the value (with `key`, the key) at PATH of DOCUMENT."""
    return Finding(rule, "error", what, dotted(path), locate(document.text, document.file, path, key=key), why, remedy)


def _open(document: Document, kind: Kind) -> Envelope:
    data = document.data
    if data.get("apiVersion") != API_VERSION or data.get("kind") != kind:
        from gpustack.policy.loading.foreign import recognise

        raise InputError(recognise(document, kind))
    findings = [
        finding(
            document,
            (key,),
            "GPU016",
            f"unknown key {key}",
            _nearest(key, KEYS) or f"indent {key} below spec if it belongs there; else delete it",
            why=f"beside the spec, a {kind} has only {', '.join(KEYS[:3])}",
            key=True,
        )
        for key in data
        if key not in KEYS and (key, kind) != ("rollout", "PolicyChange")
    ]
    name, labels = _name(document, findings)
    spec = data.get("spec")
    if spec is None and kind == "PolicyLayer":
        spec = {}
    if not isinstance(spec, dict):
        if not any(each.remedy == "did you mean spec?" for each in findings):
            findings.append(_no_spec(document, spec))
        raise InputError(*findings)
    extends = _extends(document, spec.get("extends"), findings)
    own = {key: value for key, value in spec.items() if key != "extends"}
    return Envelope(document, name, own, extends, findings, labels)


def _name(document: Document, findings: list[Finding]) -> tuple[str | None, dict[str, str]]:
    """Return metadata.name if it is one, and the labels; what is wrong with metadata goes to FINDINGS."""
    metadata = document.data.get("metadata")
    if metadata is None:
        return None, {}
    if not isinstance(metadata, dict):
        what = "metadata is not a mapping"
        findings.append(finding(document, ("metadata",), "GPU017", what, "write `metadata: {name: ...}`"))
        return None, {}
    from pydantic import ValidationError

    from gpustack.policy.language.spec import Metadata

    part = Part("policy", document.file, metadata, ("metadata",), document.text)
    merged = merge([part])
    labels: dict[str, str] = {}
    try:
        # A layer may go without a name, and what a policy without one is told is said by open_policy.
        labels = Metadata.model_validate({"name": "unnamed", **merged.spec}).labels
    except ValidationError as error:
        from gpustack.policy.loading.diagnose import diagnose

        findings += diagnose(error, merged, Metadata, ("metadata",))
    name = merged.spec.get("name")
    return name if isinstance(name, str) else None, labels


def _no_spec(document: Document, spec: object) -> Finding:
    if spec is None:
        what, why = f"{document.file} has no spec", "nothing says what the cluster is to get"
    else:
        what, why = "spec is not a mapping", "it holds release, cluster, nodePools and the rest"
    remedy = "add spec with release and cluster.kubernetesVersion; README.md has an example"
    return finding(document, ("spec",), "GPU017", what, remedy, why=why)


def _extends(document: Document, extends: object, findings: list[Finding]) -> list[str]:
    """Return the names of the layers. What can't be a name goes to FINDINGS, so that it hides no others."""
    if extends is None:
        return []
    if isinstance(extends, list):
        names = []
        for index, name in enumerate(extends):
            if isinstance(name, str):
                names.append(name)
            else:
                path = ("spec", "extends", index)
                remedy = "write the layer's name; put it in quotes if it looks like a number"
                findings.append(finding(document, path, "GPU017", "the name of a layer is not text", remedy))
        return names
    remedy = f"write `extends: [{extends}]`" if isinstance(extends, str) else "write `extends: [base]`"
    findings.append(
        finding(
            document,
            ("spec", "extends"),
            "GPU017",
            "spec.extends is not a list",
            remedy,
            why="it lists names of layers",
        )
    )
    return []


def _nearest(key: str, keys: tuple[str, ...]) -> str:
    lower = {known.lower(): known for known in keys}
    near = difflib.get_close_matches(key.lower(), lower, n=1)
    return f"did you mean {lower[near[0]]}?" if near else ""
