"""The documents in the files that somebody names, with the place of each value, and nothing from anywhere else.

A file may hold several documents, and a text in one may be YAML again (a values block): each is an `Item`, and a line
of the innermost is told as a line of the file. Variables of templates are filled in by what `--set` says; those that
nobody filled in stay in their values as they are, and are asked for (`variables`).
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

from gpustack.model import InputError, Location, Path
from gpustack.text.positions import inside_scalar, locate
from gpustack.text.read import value
from gpustack.text.source import decode, load_bytes

from .installation import Leaves, Said, at, leaves_of

HCL = (".tf", ".tofu", ".tfvars", ".hcl")
ENDINGS = (".yaml", ".yml", ".json", *HCL, ".gotmpl", ".csv")
TEMPLATES = (".j2", ".tpl", ".tmpl", ".tftpl")
"""Endings of files that are read where another one names them."""
EMPTY = {"", "false", "0", "[]", "{}", "null"}
"""What a condition of a template takes for nothing."""
MOST = 5000
"""Documents of one file, files of one folder, and values of one document."""
_START = re.compile(r"^(?:---(?:[ \t].*)?|\.\.\.[ \t]*)$")
_VARIABLE = re.compile(
    r"\$\{(?:(?:json|yaml)encode\()?[ ]*\.?(?P<name>[A-Za-z_][\w.\[\]\"]*)[ ]*\)?"
    r"(?::?[-=](?P<default>[^}]*)|:?\?[^}]*)?\}"
    r"|\{\{-?\s*(?P<choice>if\s[^{}]*?)\s*-?\}\}(?:(?!\{\{-?\s*end\b).){0,2000}\{\{-?\s*end\s*-?\}\}"
    r"|(?:\$|repl)?\{\{-?\s*(?P<go>[.A-Za-z_][^{}]*?)\s*-?\}\}|<<\s*(?P<set>[\w.]+)[^<>\n]*>>"
)
COMMAND = re.compile(
    r"(?:\bhelm3?|\$[({]?HELM\w*[)}]?)(?:\s+secrets)?"
    r"((?:\s+-\S+(?:\s+(?!-|install|upgrade|template)\S+)?){0,40})\s+(?:install|upgrade|template)\b"
)
OBJECT = re.compile(
    r"^\s*(?:- )?kind:\s*[\"']?"
    r"(?:ClusterPolicy|NVIDIADriver|GPUCluster|Subscription|HelmRelease|HelmChart|Application)\b",
    re.MULTILINE,
)
"""A text that has an object in it that is read wherever it stands."""
_PLAIN = re.compile(r"(?:(?:required)?[eE]nv \"|\.)?([A-Za-z_][\w.]*)\"?(?:\s*\|.*)?")
"""An action of Go or Jinja that is one value, whatever filters it goes through."""
_TAG = re.compile(r"!(?:Ref|GetAtt)\s+([\w.:]+)|!Sub\s+(?=['\"\w])")
"""What CloudFormation writes for a variable."""
_HERE = re.compile(r"<<-?[ \t]*[\"']?(\w+)[\"']?[^\n]*\n")
_WORD = re.compile(r"^[ \t]*(\w+)[ \t\r]*$", re.MULTILINE)
_ACTION = re.compile(r"^\s*(?:\{\{-?\s*([^{}]*?)\s*-?\}\}|%\{~?\s*([^{}]*?)\s*~?\}|\{%-?\s*([^{}]*?)\s*-?%\})\s*$")
"""A line that is one action of a template of Go, Terraform or Jinja."""


@dataclass(frozen=True)
class Item:
    """A document, or a part of one: DATA is what stands AT a place of TEXT. OUTER holds TEXT as a scalar at a path.
    LINE is where that begins of which DATA were evaluated, as another language than YAML.
    TWICE are keys that stand there more than once, with the line of the one that counts; ACTIONS those of a template
    that nobody decided, with their lines: what stands below them counts."""

    file: str
    text: str = field(repr=False)
    data: Any = field(repr=False)
    at: Path = ()
    outer: tuple[Item, Path] | None = field(default=None, repr=False)
    line: int | None = None
    twice: tuple[tuple[str, int], ...] = ()
    actions: tuple[tuple[str, int], ...] = ()

    def get(self, *path: str | int) -> Any:
        """The value at PATH, None where nothing stands there."""
        return at(self.data, path)

    def text_at(self, *path: str | int) -> str:
        """The text at PATH, "" where nothing stands there."""
        text = self.get(*path)
        return text if isinstance(text, str) else ""

    def part(self, *path: str | int) -> Item:
        """What stands at PATH, with its places."""
        return Item(self.file, self.text, self.get(*path), (*self.at, *path), self.outer, self.line)

    def holds(self, other: Item) -> bool:
        """Whether OTHER stands inside of this one."""
        place = other.outer[0] if other.outer else other
        return other is not self and place.text is self.text and place.at[: len(self.at)] == self.at

    def where(self, *path: str | int) -> Location:
        """The place of the value at PATH in the file."""
        if not self.text or self.line:
            return Location(self.file, self.line)
        place = locate(self.text, self.file, (*self.at, *path))
        if self.outer and place.line:
            item, inside = self.outer
            place = inside_scalar(item.text, self.file, (*item.at, *inside), place.line, place.column or 1)
        return Location(self.file, place.line, place.column)

    def said(self, *path: str | int) -> Said | None:
        """The value at PATH with its place, None where nothing stands there."""
        data = self.get(*path)
        return None if data is None else Said(data, self.where(*path))

    def leaves(self, *path: str | int) -> Leaves:
        """The leaves below PATH."""
        data = self.get(*path)
        if not isinstance(data, dict):
            return {}
        leaves = [(leaf, each) for leaf, each in leaves_of(data) if leaf]
        if len(leaves) > MOST:
            what = f"{self.file} holds more than {MOST} values"
            raise InputError.of(
                "GPU006", what, location=self.where(*path), remedy="name the values of the operator alone"
            )
        return {leaf: Said(each, self.where(*path, *leaf)) for leaf, each in leaves}

    def inner(self, *path: str | int) -> Iterator[Item]:
        """The documents of YAML in the text at PATH."""
        text = self.text_at(*path)
        if self.line:
            above = self.text[: max(self.text.find(text.strip().partition("\n")[0]), 0)]
            yield from documents("\n" * above.count("\n") + text.lstrip("\n"), self.file)
        else:
            yield from (replace(each, outer=(self, path)) for each in documents(text, self.file))

    def embedded(self, *path: str | int) -> Item | None:
        """The YAML in the text at PATH; None where nothing stands there. Raises InputError for what isn't YAML."""
        try:
            return next(self.inner(*path), None)
        except InputError as error:
            where = self.where(*path)
            raise InputError.of("GPU003", f"the text here is not valid YAML: {error}", location=where) from None


class Beside(str):
    """The name of a file whose text stands here, filled in with WORDS."""

    words: Mapping[str, Any]

    def __new__(cls, name: str, words: Mapping[str, Any] | None = None) -> Beside:
        made = super().__new__(cls, name)
        made.words = {key: each if isinstance(each, str) else json.dumps(each) for key, each in (words or {}).items()}
        return made


def variables(text: str) -> list[str]:
    """The variables in TEXT that nobody filled in."""
    return [called(match) for match in _VARIABLE.finditer(text) if match["default"] is None]


def named_by(text: str) -> str:
    """The name by which TEXT is answered, which depends on a variable: its first one's, else all of its words."""
    known = variables(text)
    return known[0] if known else re.sub(r"\W+", "_", text).strip("_")


def called(match: re.Match[str]) -> str:
    """The name by which the variable of MATCH is answered: of a value of Go with a default or in quotes, its own."""
    if match["name"]:
        return match["name"]
    go = match["choice"] or match["go"] or match["set"]
    value = _PLAIN.fullmatch(go)
    return value[1] if value else re.sub(r"\W+", "_", go).strip("_")


def filled(text: str, answers: Mapping[str, str]) -> str:
    """TEXT with its variables as ANSWERS say, else as their own defaults say."""

    def one(match: re.Match[str]) -> str:
        name, kept = called(match), match["default"] if match["default"] is not None else match[0]
        return answers.get(name, answers.get(f".{name}", kept))

    return _VARIABLE.sub(one, decided(text, answers) if answers else text)


def decided(text: str, answers: Mapping[str, str]) -> str:
    """TEXT without what conditions of its template leave out that ANSWERS decide; lines keep their numbers."""
    lines, known = text.split("\n"), {key.lstrip("."): value for key, value in answers.items()}
    within: list[tuple[bool | None, str]] = []
    for number, line in enumerate(lines):
        word, _, rest = action(line).partition(" ")
        gone, own = any(each is False for each, _ in within), None
        name = re.sub(r"^(?:not |!)?[\s.]*", "", rest)
        if word in {"if", "range", "with", "for"}:
            value = known.get(name) if word in {"if", "with"} else None
            own = None if value is None else (value not in EMPTY) != rest.startswith(("!", "not "))
            within.append((own, name))
        elif word == "else" and within and (own := within[-1][0]) is not None:
            within[-1] = (None if rest and not own else not own, "")
        elif word in {"end", "endif", "endfor"} and within:
            own, _ = within.pop()
        elif word == "toYaml":
            name = name.partition(" ")[0].strip("|") or next((each for _, each in reversed(within) if each), "")
            lines[number] = f"{' ' * 60}{known[name]}" if name in known else line
        lines[number] = "" if gone or own is not None else lines[number]
    return "\n".join(lines)


def action(line: str) -> str:
    """The action of a template that LINE is, "" for any other line."""
    match = _ACTION.match(line) if "{" in line else None
    return next(filter(None, match.groups()), "") if match else ""


@dataclass
class Reader:
    """Reads files for the inputs. ANSWERS fill in variables; USED are those of them that did."""

    answers: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def items(self, path: File, display: str) -> Iterator[Item]:
        """The documents of the file PATH; of a file of Terraform or CSV the text."""
        text = decode(load_bytes(path, display), display)
        self.used |= {name for name in self.answers if re.search(rf"[{{$.\s]{re.escape(name)}\b", text)}
        if path.suffix not in {*HCL, ".csv"}:
            try:
                if path.suffix in ENDINGS or not COMMAND.search(text):
                    yield from list(documents(filled(text, self.answers), display))
                    return
            except InputError:
                if path.suffix in ENDINGS or path.suffix in {".tpl", ".tmpl", ""}:
                    raise
        for _, start, inner in heredocs(text) if path.suffix not in HCL else ():
            with contextlib.suppress(InputError):
                yield from list(documents("\n" * text.count("\n", 0, start) + filled(inner, self.answers), display))
        yield Item(display, text, text)

    def beside(self, item: Item, name: str, known: Mapping[str, File]) -> Iterator[Item]:
        """The documents of the file that ITEM calls NAME: one that was named too, or one in its own folder or below.

        Nothing else is read: neither by .. nor by a link. Nothing is returned for a file that isn't there."""
        wanted = File(name).name
        others = [(file, each) for each, file in known.items() if wanted and each != item.file]
        named = [each for each in others if File(each[1]).name == wanted]
        named = named or [each for each in others if rendered(each[1]) == rendered(wanted)]
        if item.file in known:
            home = File(os.path.abspath(known[item.file].parent))
            full = File(os.path.abspath(home / name))
            if full.is_relative_to(home) and os.path.isfile(full) and plainly(full, home):  # noqa: PTH113 - see files
                named = [(full, os.path.relpath(full) if full.is_relative_to(File.cwd()) else full.name)]
        for path, display in named[:1]:
            yield from self.items(path, display)


def heredocs(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each heredoc in TEXT is named, where it begins, and what is in it; each word is looked for once."""
    ends: dict[str, list[int]] = {}
    for match in _WORD.finditer(text):
        ends.setdefault(match[1], []).append(match.start())
    behind = 0
    for match in _HERE.finditer(text):
        known = ends.get(match[1], [])
        at = bisect.bisect_left(known, match.end())
        if match.start() >= behind and at < len(known):
            behind = known[at]
            yield match.start(), match.end(), text[match.end() : behind]


def rendered(name: str) -> str:
    """What the file is called that a template NAME is made into."""
    path = File(name)
    return path.stem if path.suffix in {*TEMPLATES, ".gotmpl"} else path.name


def plainly(path: File, home: File) -> bool:
    """Whether no link stands between HOME and PATH, which is below it."""
    return not any(part.is_symlink() for part in (path, *path.parents) if part != home and part.is_relative_to(home))


def documents(text: str, file: str) -> Iterator[Item]:
    """The documents in TEXT that hold anything, each with the lines that it has in the file."""
    lines = text.splitlines()
    starts = [0, *(number for number, line in enumerate(lines) if _START.match(line)), len(lines)]
    if len(starts) > MOST:
        raise InputError.of("GPU006", f"{file} holds more than {MOST} documents", location=Location(file))
    for start, end in itertools.pairwise(starts):
        own = ["" if line.startswith("...") else line for line in lines[start:end]]
        yield from _document("\n" * start + "\n".join(own) + "\n", file)


def _document(text: str, file: str) -> Iterator[Item]:
    twice: list[tuple[str, int]] = []
    actions: list[tuple[str, int]] = []
    try:
        parsed = value(text, file, twice)
    except InputError:
        if not any(each in text for each in ("{{", "%{", "{%", "!Ref", "!Sub", "!GetAtt")):
            raise
        lines = _TAG.sub(lambda match: f"${{{match[1]}}}" if match[1] else "", text).split("\n")
        undecided = {"if", "else", "range", "with", "for"}
        actions = [(line.strip(), at) for at, line in enumerate(lines, 1) if {*action(line).split()[:1]} & undecided]
        plain = "\n".join("" if _ACTION.match(line) else _VARIABLE.sub(_marked, line) for line in lines)
        parsed, text = value(plain, file, twice), plain
    if parsed is not None and parsed[1] is not None:
        yield Item(file, text, parsed[1], twice=tuple(dict.fromkeys(twice)), actions=tuple(actions))


def _marked(match: re.Match[str]) -> str:
    """An action of a Go template as a variable: YAML takes braces for a map."""
    return match[0] if match["name"] else f"${{{called(match)}}}"


def files(named: str) -> list[File]:
    """The file NAMED, or those in the folder and below, links aside. Raises InputError where there is neither."""
    path = File(named)
    if not os.path.isdir(path):  # noqa: PTH112 - Path's own raises for a name that is too long
        return [path]
    there = sorted(each for each in path.rglob("*") if each.suffix in {*ENDINGS, *TEMPLATES} and each.is_file())
    plain = [each for each in there if plainly(each, path)]
    if not plain or len(plain) > MOST:
        what = f"{named} holds {'no files' if not plain else f'more than {MOST} files'} that could be read"
        raise InputError.of("GPU001", what, location=Location(named), remedy="name the files themselves")
    return plain
