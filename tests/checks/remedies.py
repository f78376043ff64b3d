"""Remedies as whoever reads them carries them out: what a sentence names as an edit, done to a policy.

`readings` knows the phrases that remedies are written in: "set PATH: VALUE", "leave out PATH", "leave it out", "write
VALUE", "add ENTRY to PATH", "did you mean NAME". A remedy offers alternatives, and each is done by itself, and all of
it. What else a remedy names stands in remedies.yaml, by hand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from gpustack.model import Finding
from tests.checks.edits import (
    Edit,
    Path,
    Step,
    both,
    drop,
    everywhere,
    move,
    named,
    put,
    rename,
    reword,
    without_line,
    word,
)


class Reading(NamedTuple):
    """What one alternative of a remedy comes to."""

    words: str
    edits: tuple[Edit, ...]


PATH = r"(?P<path>[a-zA-Z][\w-]*(?:\.[\w-]+|\[\d+\]|\[\"[^\"]+\"\])*)"
VALUE = r"(?:\[\{.*?\}\]|\{.*?\}|\[.*?\]|\"[^\"]*\"|`[^`]*`|[^\s,;?`]+(?<!:))"
ANY = rf"(?P<values>{VALUE}(?: or (?!more\b|newer\b|less\b|what\b|a\b){VALUE})*)"
END = (
    r"(?=$|[,;?]|\.$| \(| instead| if | where | and | or (?:more|newer|less)| with | until | which | in one | to turn)"
)
AND = r"(?: and (?P<more>spec\.[\w.]+))?"
OTHERWISE = re.compile(r"; or, |; or |; |, or (?=\w)|\? ")
IMAGE = re.compile(r"\b(?:set|with|program:) spec\.reconciler\.image")
RECONCILER = "registry.example.com/gpustack-reconciler:1"
MAPS = ("featureGates", "registryMap")
"""Maps whose keys are names that a policy gives."""
OF_ITEMS: dict[Step, Path] = {"extraObjects": ["spec"], "carried": []}
"""Where in an item of a list stands what a remedy calls by its name alone."""
UNKNOWN_KEY = "GPU016"
"""What is meant is another key, so that what is told stands in place of this one."""
_STEP = re.compile(r'\[(\d+)\]|\["([^"]+)"\]|\.?([\w-]+)')


def readings(finding: Finding, here: Path) -> Iterator[Reading]:
    """What the remedy of FINDING, which is about HERE in the document, names to be done."""
    for words in OTHERWISE.split(finding.remedy):
        if " and say " in words:
            continue  # and what, the reader knows
        for chosen in itertools.product(*_phrases(words, finding, here)):
            if chosen:
                yield Reading(words, chosen)


def _phrases(words: str, finding: Finding, here: Path) -> Iterator[list[Edit]]:
    """The phrases in WORDS: of each, the edits that it leaves to choose from."""
    if IMAGE.search(words):
        yield [put(["spec", "reconciler", "image"], RECONCILER)]
    for pattern, meaning in PHRASES.items():
        for match in re.finditer(pattern, words):
            if made := meaning(match, finding, here):
                yield made
                words = words.replace(match[0], " ")


def steps(path: str) -> Path:
    """PATH of a finding or a remedy, in the document."""
    found: Path = [int(match[1]) if match[1] else match[2] or match[3] for match in _STEP.finditer(path)]
    return found if found[:1] == ["spec"] else ["spec", *found]


def absolute(path: str, here: Path) -> Path:
    """PATH as a remedy has it: of the policy, from a step above HERE on, or in the map that HERE is in or is."""
    found = steps(path)
    if path.startswith("spec."):
        return found
    if found[1] in here:
        return [*here[: here.index(found[1])], *found[1:]]
    return [*(here if isinstance(here[-1], int) else here[:-1]), *found[1:]]


# --- phrases ----------------------------------------------------------------------------------------------------------


def _set(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    path = match["path"] or match["bare"]
    if path == "it":
        return _write(match, finding, here)
    first = [drop(here)] if finding.rule == UNKNOWN_KEY else []
    return [both(put(absolute(path, here), value(each)), *first) for each in options(match["values"])]


def _into(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    path, name, text = absolute(match["path"], here), match["name"], value(match["value"])
    return [named(path, {"name": name, "value": text}) if path[-1] == "env" else put([*path, name], text)]


def _out(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    return [both(drop(steps(match["path"])), drop(steps(match["more"])) if match["more"] else both())]


def _part(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    """A part of what the finding is about, or that this is a part of, by its last name."""
    name = match["after"] or match["before"]
    if name in here:
        return [drop(here[: here.index(name) + 1])]
    if name == "Namespace":
        return [drop(here[:3])]
    return [drop([*here, *OF_ITEMS[here[-2]], name])] if here[-2] in OF_ITEMS else []


def _it(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    if finding.inside:
        return [without_line(here, finding.inside[0])] if match[0] == "delete the row" else []
    return [drop(here)]


def _entry(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    return [named(absolute(match["path"], here), value(match["entry"]))]


def _references(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    entry = value(match["entry"])
    return [named(["spec", "references"], entry[0] if isinstance(entry, list) else entry)]


def _image(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    path = steps(match["path"])
    own = {"repository": "registry.example.com/nvidia", "version": "595.71.03"}
    return [both(*(put([*path, key], text) for key, text in own.items()))]


def _key(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    if finding.inside or "..." in match["value"]:
        return []
    if finding.rule == UNKNOWN_KEY:
        return [both(drop(here), put(absolute(match["path"], here), value(match["value"])))]
    return [put(absolute(match["path"], here), value(match["value"]))]


def _write(match: re.Match[str], finding: Finding, here: Path) -> list[Edit]:
    if finding.inside and match[0].startswith("such as"):
        return []
    if finding.rule == UNKNOWN_KEY:
        return [move(here, steps(each)) for each in options(match["values"])]
    return [_written(finding, here, each) for each in options(match["values"]) if not each.startswith("spec.")]


def _written(finding: Finding, here: Path, text: str) -> Edit:
    """TEXT in place of what FINDING is about: a word of a text, a key that is a name, or a value."""
    if here[-1] == "expr":
        return word(here, finding.what, text)
    if finding.inside:
        return reword(here, finding.inside, text)
    if "wherever it stands" in finding.remedy:
        return everywhere(here, text)
    if finding.key or ("/" in text and "/" in str(here[-1])) or here[-2] in MAPS:
        return rename(here, str(value(text)))
    return put([*here, "value"], text) if here[-2:-1] == ["env"] else put(here, value(text))


PHRASES: dict[str, Callable[[re.Match[str], Finding, Path], list[Edit]]] = {
    rf"\b(?:set|write) (?P<name>[\w./-]+)(?: to |: )(?P<value>{VALUE}) (?:in|into) {PATH}": _into,
    rf"(?:\bset {PATH}(?: to |: )|^(?P<bare>[\w.\[\]-]+): ){ANY}{END}": _set,
    rf"(?:\bleave out |\btake |^)(?=spec\.){PATH}{AND}(?: out)?(?=$|[,;:]| until| where)": _out,
    r"\bleave (?:out (?:the )?(?P<after>\w+)(?![\w.])|the (?P<before>\w+) out)": _part,
    r"\b(?:leave it out|leave the (?:variable|annotation|versions|system) out)": _it,
    r"\b(?:leave out the variable|leave out [A-Z_]+|delete it|delete the (?:line|row))": _it,
    rf"\badd (?P<entry>\{{.*?\}}) to {PATH}": _entry,
    r"\badd to (?P<path>tolerations): (?P<entry>\{.*\})": _entry,
    r"(?P<path>spec\.\w+)\.repository and version to an image of your own": _image,
    r"\bspec\.references: (?P<entry>\[?\{[^.]*?\}\]?)": _references,
    rf"\b(?:write|add) {PATH}: (?P<value>{VALUE}){END}": _key,
    rf"\b(?:write|use(?= \S*[\d/])|did you mean|such as) {ANY}{END}": _write,
    r"\bask for (?P<values>\d+)": _write,
}


def value(text: str) -> Any:
    """TEXT as a policy has it."""
    return yaml.safe_load(text)


def options(text: str) -> list[str]:
    """The values that a phrase offers."""
    return [each.strip("`") for each in re.split(r" or (?![^{]*\})", text)]
