"""The frame of a policy, a layer or what stands beside them: apiVersion, kind, metadata.name, and the spec in it.

Solves: what stands around the spec decides whether a file is a policy at all, and must be known before layers are
looked for and long before pydantic is needed. Kinds of other tools are recognised in `foreign.py`.
"""

import difflib
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gpustack.model import Finding, InputError, Path, dotted, few
from gpustack.policy.loading.layers import Part, merge
from gpustack.text.positions import locate
from gpustack.text.read import Document
from gpustack.text.refusals import Texts

if TYPE_CHECKING:
    from pydantic import BaseModel

API_VERSION = "gpustack.dev/v1alpha1"
Kind = Literal["ClusterPolicy", "PolicyLayer", "PolicyChange", "Fleet"]
TEXTS = Texts(__file__)
S = TypeVar("S", bound="BaseModel")
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
        stem = pathlib.PurePath(document.file).stem
        envelope.findings.append(told(document, ("metadata", "name"), "GPU017", "no name", stem=stem))
    return envelope


def open_layer(document: Document, stem: str, kind: Kind = "PolicyLayer") -> Envelope:
    """The frame of the layer file STEM, or of another KIND of file. InputError (GPU012) for something else."""
    envelope = _open(document, kind)
    if envelope.name not in (None, stem):
        words: dict[str, Any] = {"kind": kind, "name": envelope.name, "stem": stem}
        envelope.findings.append(told(document, ("metadata", "name"), "GPU013", "other name", **words))
    if envelope.labels or (envelope.extends and kind != "PolicyLayer"):
        path: Path = ("metadata", "labels") if envelope.labels else ("spec", "extends")
        envelope.findings.append(told(document, path, "GPU016", "not here", key=True, kind=kind, what=path[1]))
    return envelope


def told(document: Document, path: Path, rule: str, case: str, *, key: bool = False, **words: Any) -> Finding:
    """What the table of this room says of RULE and CASE, with WORDS in it, about the value (KEY: the key) at PATH."""
    where = locate(document.text, document.file, path, key=key)
    return TEXTS.finding(rule, case, where, at=dotted(path), **words)


def valid(model: type[S], part: Part, wrong: list[Finding], at: Path | None = None) -> S | None:
    """What PART holds, as MODEL; None after adding to WRONG what is wrong with it. AT is its place in their words."""
    from pydantic import ValidationError

    merged = merge([part])
    try:
        return model.model_validate(merged.spec)
    except ValidationError as error:
        from gpustack.policy.loading.diagnose import diagnose

        wrong += diagnose(error, merged, model, part.at if at is None else at)
        return None


def _open(document: Document, kind: Kind) -> Envelope:
    data = document.data
    if data.get("apiVersion") != API_VERSION or data.get("kind") != kind:
        from gpustack.policy.loading.foreign import recognise

        raise InputError(recognise(document, kind))
    findings = []
    keys = (*KEYS, "rollout", "gpustack") if kind == "PolicyChange" else KEYS
    for key in (each for each in data if each not in keys):
        near = closest(key, keys)
        do = f"did you mean {near}?" if near else f"indent {key} below spec if it belongs there; else delete it"
        words = {"do": do, "name": key, "kind": kind, "known": few([each for each in keys if each != "spec"], 9)}
        findings.append(told(document, (key,), "GPU016", "key", key=True, **words))
    name, labels = _name(document, findings)
    spec = data.get("spec")
    if spec is None and (kind == "PolicyLayer" or (kind == "PolicyChange" and "gpustack" in data)):
        spec = {}
    if not isinstance(spec, dict):
        if not any(each.remedy == "did you mean spec?" for each in findings):
            none = "no spec" if kind == "ClusterPolicy" else "no spec beside"
            case = none if spec is None else "spec is not a mapping"
            findings.append(told(document, ("spec",), "GPU017", case, kind=kind))
        raise InputError(*findings)
    extends = _extends(document, spec.get("extends"), findings)
    own = {key: value for key, value in spec.items() if key != "extends"}
    return Envelope(document, name, own, extends, findings, labels)


def _name(document: Document, findings: list[Finding]) -> tuple[str | None, dict[str, str]]:
    """Return metadata.name if it is one, and the labels; what is wrong with metadata goes to FINDINGS."""
    metadata = document.data.get("metadata")
    if not isinstance(metadata, dict):
        findings += [told(document, ("metadata",), "GPU017", "metadata")] if metadata is not None else []
        return None, {}
    from gpustack.policy.language.spec import Metadata

    # A layer may go without a name, and what a policy without one is told is said by open_policy.
    given = {
        key: "" if value is None and key not in Metadata.model_fields else value for key, value in metadata.items()
    }
    given |= {"name": "unnamed"} if metadata.get("name") is None else {}
    read = valid(Metadata, Part("policy", document.file, given, ("metadata",), document.text), findings)
    name = metadata.get("name")
    return name if isinstance(name, str) else None, read.labels if read else {}


def _extends(document: Document, extends: object, findings: list[Finding]) -> list[str]:
    """Return the names of the layers. What can't be a name goes to FINDINGS, so that it hides no others."""
    if extends is None:
        return []
    if isinstance(extends, list):
        for index, name in enumerate(extends):
            if not isinstance(name, str):
                findings.append(told(document, ("spec", "extends", index), "GPU017", "layer name"))
        return [name for name in extends if isinstance(name, str)]
    known = extends if isinstance(extends, str) else "base"
    findings.append(told(document, ("spec", "extends"), "GPU017", "extends", known=known))
    return []


def closest(key: str, keys: Iterable[str], cutoff: float = 0.6) -> str:
    """The one of KEYS that is most like KEY in any case of letters, "" if none is as close as CUTOFF (difflib's)."""
    lower = {known.lower(): known for known in keys}
    near = difflib.get_close_matches(key.lower(), lower, n=1, cutoff=cutoff)
    return lower[near[0]] if near else ""
