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

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

if TYPE_CHECKING:
    import datetime

K = TypeVar("K")
V = TypeVar("V")

Body = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain data: str, int, float, bool, list and dict; never None."""

Path = tuple[str | int, ...]
"""Where a value stands in a document: ("spec", "nodePools", 0, "name")."""
Place = tuple["Place | None", str | int]
"""The same, as the place of what holds it, None for the whole, and one more step."""

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""

Stage = Literal["crds", "base", "discovery", "driver", "operands", "reconciler", "monitoring"]
STAGES: tuple[Stage, ...] = ("crds", "base", "discovery", "driver", "operands", "reconciler", "monitoring")
"""Folders below dist/<cluster>/ in the order in which a sync applies them."""

MONITORS = ("ServiceMonitor", "PodMonitor", "VMServiceScrape", "PodMonitoring")
RULES = ("PrometheusRule", "VMRule", "ClusterRules")
"""What scrapes and what alerts, in the words of the Prometheus operator, VictoriaMetrics' and Google's."""

KIND_STAGE: dict[str, Stage] = {
    "CustomResourceDefinition": "crds",
    "Namespace": "base",
    "RuntimeClass": "base",
    "PriorityClass": "base",
    "ResourceQuota": "base",
    "MachineConfig": "base",
    "SecurityContextConstraints": "base",
    **dict.fromkeys((*MONITORS, *RULES), "monitoring"),
}
"""Kinds whose stage does not depend on the component that renders them.

Engines delete and re-create what moves: only ever add here."""


DEEPEST = 64
"""Levels of nesting that an object may have: readers recurse. The deepest real ones, schemas in CRDs, have some 30."""

CONSTRUCT = "gpustack.dev/construct"
"""Annotation of a rendered object: the construct of a team's own that made it."""

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object: keys and values (apimachinery's TotalAnnotationSizeLimitB)."""

INT32, INT64 = 2**31 - 1, 2**63 - 1
"""The largest numbers that fields of the API hold."""

_DIGITS = 18
_PASSWORD = re.compile(r"://[^\s/@:\"']*:([^\s/\"']+)@")
_TOKEN = re.compile(r"://((?:gh[a-z]_|github_pat_|glpat-|[A-Za-z0-9_-]{24})[^\s/@:\"']*)@")
"""A user as long as no name is, or that begins as tokens do."""
_NO_ADDRESS = r"(?!mailto:|sips?:|xmpp:|acct:)"
_PLAIN_PASSWORD = re.compile(
    rf"{_NO_ADDRESS}[^\s/@:\"'=,]{{1,200}}:([^\s/@\"']{{1,200}})@(?!sha\d+:)[A-Za-z0-9.-]+(?::\d{{1,5}}|\.[A-Za-z]{{2,}})[^\s@]*"
)
"""An address without a scheme, which proxies are given as; the whole text, as a part of one it may be anything."""
_CREDENTIALS = re.compile(
    r"(?<=://)(?:[^\s/\"']{1,2000}|[^\s/@:\"']{0,2000}:[^\s\"']{1,2000})(?=@(?!sha256:[0-9a-f]{64}))"
    rf"|(?<![^\s\"'=,(\[{{]){_NO_ADDRESS}[^\s/@:\"'=,({{\[]{{1,200}}:[^\s/@\"']{{1,200}}(?=@(?!sha\d+:)[A-Za-z0-9])"
)
_LONG = re.compile(r"[^\s]{1500,}")


def annotations_size(annotations: Mapping[str, str]) -> int:
    """Bytes that ANNOTATIONS have, the way the API server counts them."""
    return sum(len(part.encode("utf-8", "surrogatepass")) for pair in annotations.items() for part in pair)


def whole(text: str) -> int | None:
    """TEXT as a number from 0 on; None where it isn't one or has more than 18 digits (Python refuses thousands)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of TEXT such as 595.71.05, empty where one of its parts isn't a number."""
    parts = [whole(part) for part in text.split(".")]
    return tuple(number for number in parts if number is not None) if None not in parts else ()


def has_credentials(text: str) -> bool:
    """Whether TEXT has an address with a password or a token in it. A variable in its place doesn't count."""
    if "@" not in text:
        return False
    plain = _PLAIN_PASSWORD.fullmatch(text)
    matches = [*_PASSWORD.finditer(text), *_TOKEN.finditer(text), *([plain] if plain else [])]
    return any("$" not in match[1] for match in matches)


def masked(text: str) -> str:
    """TEXT without users and passwords of addresses, also where a '/' in the password makes it no valid address."""
    return _CREDENTIALS.sub("***", text) if "@" in text else text


def brief(text: str) -> str:
    """TEXT as a message has it: `masked`, and with words that nobody can read cut."""
    text = masked(text)
    return _LONG.sub(lambda word: f"{word[0][:60]}...", text) if len(text) >= 1500 else text


_COMMAND = re.compile(r"^(\s*):(?=:)|(?<=#)#(?=(?:\[|vso\[|teamcity\[))", re.IGNORECASE)
"""Where CI systems read a command in a line of a log: GitHub `::name::` at its start and `##[name]` anywhere, Azure
Pipelines `##vso[`, TeamCity `##teamcity[`."""


def printable(line: str) -> str:
    """LINE without control characters and commands of CI systems: what a policy holds must steer neither the terminal
    nor whoever reads the log."""
    made = "".join(
        c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in line
    )
    if "::" not in made and "##" not in made:
        return made
    return _COMMAND.sub(lambda match: f"{match[1] or ''}\\x{'3a' if match[0].endswith(':') else '23'}", made)


def docs(page: str) -> str:
    """The PAGE of our docs in a message ("labels.md"): whoever reads it is in another repository."""
    return f"gpustack's docs/{page}"


def children(value: Any) -> Iterable[tuple[Any, Any]]:
    """What stands right below VALUE, with the step to it: values of a mapping by key, items of a list by position."""
    return value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())


def leaves(value: Any) -> list[tuple[Place, Any]]:
    """The single values in VALUE with their places, in its order. A place costs little until `steps` makes a path of
    it: few are asked for."""
    found: list[tuple[Place, Any]] = []
    _gather(value, None, found)
    return found


def _gather(value: Any, place: Place | None, found: list[tuple[Place, Any]]) -> None:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, (dict, list)):
            _gather(item, (place, key), found)
        else:
            found.append(((place, key), item))


def steps(place: Place) -> Path:
    """The path of a PLACE."""
    path: list[str | int] = []
    above: Place | None = place
    while above is not None:
        above, step = above
        path.append(step)
    return (*reversed(path),)


def mapping(value: Any) -> dict[str, Any]:
    """VALUE if it is a mapping, else an empty one: validation tells of what should be one."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The mappings in VALUE, with their places; [] if it isn't a list."""
    return [(at, item) for at, item in enumerate(value if isinstance(value, list) else ()) if isinstance(item, dict)]


def merge_patch(target: Any, patch: Any) -> Any:
    """TARGET with the merge patch PATCH (RFC 7386). Nothing is changed in place; what PATCH leaves alone is shared."""
    if not isinstance(patch, Mapping):
        return patch
    made = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge_patch(made.get(key), value)
    return made


def dotted(path: Iterable[object]) -> str:
    """Write PATH the way people do: spec.nodePools[0].name. A key with dots or spaces stands in quotes; a step that is
    neither a key nor an index writes itself."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not isinstance(step, str):
            text += str(step)
        elif step and all(c.isalnum() or c in "_-" for c in step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of PAIRS by their keys; keys, and the values of each, in the order in which they come."""
    by_key = dict[K, list[V]]()
    for key, value in pairs:
        by_key.setdefault(key, []).append(value)
    return by_key


def few(words: Sequence[str], most: int, between: str = ", ") -> str:
    """WORDS in a sentence, the first MOST of them, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{between.join(words[:most])}{more}"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. Lines and columns count from 1; `text` is the line, without its end and without passwords."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            object.__setattr__(self, "text", masked(self.text))

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has to say to the person at the keyboard.

    `rule` is a stable id (GPU001), `what` one sentence, `path` the policy path it is about. `why` and `remedy` may be
    empty only where the sentence says it all. `inside` is a line and column (from 1) of the text at `path`, where that
    is a configuration of its own; policy/loading/place.py makes a location of it, and of `key`: what is wrong is the
    last key of `path`, and not its value. It counts from the day `since` on and before the day `until`. Sentences
    have no password of an address in them, whatever they quote. `waived` says who waived it and why, for a finding
    that is a note for that reason."""

    rule: str
    severity: Severity
    what: str
    path: str = ""
    location: Location | None = None
    why: str = ""
    remedy: str = ""
    inside: tuple[int, int] | None = None
    key: bool = False
    since: datetime.date | None = None
    until: datetime.date | None = None
    waived: str = ""

    @classmethod
    def error(
        cls, rule: str, what: str, *, path: str = "", location: Location | None = None, why: str = "", remedy: str = ""
    ) -> Finding:
        """What stops a render or a verb."""
        return cls(rule, "error", what, path, location, why, remedy)

    def __post_init__(self) -> None:
        for part in ("what", "path", "why", "remedy"):
            object.__setattr__(self, part, brief(getattr(self, part)))


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes object of a render: its body, the stage it is applied in and the construct that made it."""

    body: Body = field(repr=False)
    stage: Stage
    origin: str
    _leaves: list[tuple[Place, Any]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def leaves(self) -> list[tuple[Place, Any]]:
        """Those of the body, gathered once: several rules ask."""
        if not self._leaves:
            self._leaves.extend(leaves(self.body))
        return self._leaves

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
        """The API group, "" for the core one. Versions are not part of an object's identity."""
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

    @classmethod
    def of(
        cls, rule: str, what: str, *, path: str = "", location: Location | None = None, why: str = "", remedy: str = ""
    ) -> Self:
        """The error that is one finding (`Finding.error`)."""
        return cls(Finding.error(rule, what, path=path, location=location, why=why, remedy=remedy))

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
