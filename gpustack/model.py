"""The words that every room shares: what was rendered, what was found, and where it came from.

Nothing here knows the policy language, cdk8s or a file system, so that every other room may import it.

Errors form one tree. Only the command line turns them into text and an exit code::

    GpustackError          a person can act on it: `findings` say what, where, why and what to do
    |-- InputError         a policy, layer or argument can't be used                    (exit 4)
    |-- FindingsError      the policy was read, but a rule refuses it                   (exit 2)
    |-- StaleError         dist/ is not what the policies render to                     (exit 3)
    |-- MissingToolError   a program that the verb needs is not to be found             (exit 5)
    `-- OutputError        dist/ or the cache can't be written                          (exit 4)

Anything else that escapes is a defect of ours (exit 70).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    import datetime

Body = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain data: str, int, float, bool, list and dict; never None."""

Path = tuple[str | int, ...]
"""Where a value stands in a document: ("spec", "nodePools", 0, "name")."""

Severity = Literal["error", "warning", "note"]

Stage = Literal["crds", "base", "discovery", "driver", "operands", "reconciler", "monitoring"]
STAGES: tuple[Stage, ...] = ("crds", "base", "discovery", "driver", "operands", "reconciler", "monitoring")
"""Folders below dist/<cluster>/ in the order in which a sync applies them."""

KIND_STAGE: dict[str, Stage] = {
    "CustomResourceDefinition": "crds",
    "Namespace": "base",
    "RuntimeClass": "base",
    "PriorityClass": "base",
    "ResourceQuota": "base",
    "SecurityContextConstraints": "base",
    "ServiceMonitor": "monitoring",
    "PodMonitor": "monitoring",
    "PrometheusRule": "monitoring",
}
"""Kinds whose stage does not depend on the component that renders them.

Engines delete and re-create what moves: only ever add here.
"""


def dotted(path: Path) -> str:
    """Write PATH the way people do: spec.nodePools[0].name. A key with dots or spaces stands in quotes."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(c.isalnum() or c in "_-" for c in step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. Lines and columns count from 1; `text` is the line itself, without its line end."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has to say to the person at the keyboard.

    `rule` is a stable id (GPU001), `what` one sentence, `path` the policy path it is about. `why` and `remedy` may be
    empty only where the sentence says it all. `inside` is a line and column (from 1) of the text at `path`, where that
    is a configuration of its own; policy/place.py makes a location of it. It counts from the day `since` on and before
    the day `until`. `waived` says who waived it and why, for a finding that is a note for that reason.
    """

    rule: str
    severity: Severity
    what: str
    path: str = ""
    location: Location | None = None
    why: str = ""
    remedy: str = ""
    inside: tuple[int, int] | None = None
    since: datetime.date | None = None
    until: datetime.date | None = None
    waived: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes object of a render: its body, the stage it is applied in and the construct that made it."""

    body: Body = field(repr=False)
    stage: Stage
    origin: str

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace, or "" for an object that has none."""
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def group(self) -> str:
        """The API group, "" for the core one. Versions are no part of an object's identity."""
        return str(self.body["apiVersion"]).rpartition("/")[0]

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What the API server tells objects apart by: group, kind, namespace, name."""
        return (self.group, self.kind, self.namespace, self.name)


class GpustackError(Exception):
    """Base of all errors that a person can act on."""

    exit_code: ClassVar[int] = 70

    def __init__(self, *findings: Finding) -> None:
        super().__init__("; ".join(f.what for f in findings))
        self.findings = list(findings)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), tuple(self.findings))


class InputError(GpustackError):
    exit_code = 4


class FindingsError(GpustackError):
    exit_code = 2


class StaleError(GpustackError):
    exit_code = 3


class MissingToolError(GpustackError):
    exit_code = 5


class OutputError(GpustackError):
    exit_code = 4
