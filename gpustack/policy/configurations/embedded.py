"""Reading a configuration that stands as text in a policy, with a closed schema and a place for every problem.

Solves: programs of the stack read files of their own, and what is wrong in one is found out on a node. So each file has
a reader on top of this one, which walks over the nodes of the text: a problem then has the line and column that its
finding points to (model.Finding.inside).

Rejected: pydantic models for these files. They say what is wrong, but not where, and YAML 1.1 (which these programs
read) has lost the text of a value by then.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gpustack.catalog._lookup import nearest
from gpustack.model import InputError
from gpustack.text.yaml12 import PLAIN, check_expansion, compose

Place = tuple[int, int]
"""Line and column in the text, both from 1."""

START: Place = (1, 1)

Pairs = dict[str, tuple[Any, Any]]
"""Key node and value node of a mapping by key."""

_LABEL_VALUE = re.compile(r"(?!.{64})[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_INT = re.compile(r"0|[1-9][0-9]{0,8}")
_NO_TEXT = re.compile(r"|~|null|[-+]?[0-9][0-9_]*(?:\.[0-9]*)?|0x[0-9a-fA-F]+")
_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""As YAML 1.1 has them: Go programs read files so."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the program refuses or ignores, at a place in the text."""

    place: Place
    what: str
    why: str
    remedy: str


def place_of(node: Any) -> Place:
    """Where NODE starts."""
    return node.start_mark.line + 1, node.start_mark.column + 1


class Reader:
    """Walks over the nodes of a text and collects `problems`. Methods return None for what is not as it should be.

    PROGRAM names who reads the file; `refuses` says why a mistake matters where nothing else is said."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.refuses = f"{program} refuses the file"
        self.problems: list[Problem] = []

    def problem(self, where: Any, what: str, remedy: str, why: str = "") -> None:
        """Add a problem at WHERE, a node or a place."""
        place = where if isinstance(where, tuple) else place_of(where)
        self.problems.append(Problem(place, what, why or self.refuses, remedy))

    def document(self, text: str) -> Any:
        """The root node of TEXT."""
        try:
            nodes = compose(text, "")
            for node in nodes[:1]:
                check_expansion(node, text, "")
        except InputError as error:
            finding = error.findings[0]
            line = finding.location.line if finding.location else None
            column = finding.location.column if finding.location else None
            self.problem((line or 1, column or 1), finding.what, finding.remedy, finding.why)
            return None
        if not nodes:
            self.problem(START, "the text is empty", "write the file, or leave the key out")
            return None
        if len(nodes) > 1:
            self.second_document(nodes[1])
        return nodes[0]

    def second_document(self, node: Any) -> None:
        """Say that NODE, the root of a second document, isn't read."""
        why = f"{self.program} reads the first one only"
        self.problem(node, "the text holds a second document", "join the two, or delete one", why)

    def mapping(self, node: Any, what: str, keys: tuple[str, ...] = (), unknown: str = "") -> Pairs:
        """Key nodes and value nodes of NODE by key, with those from `<<`.

        With KEYS, no others are allowed; UNKNOWN says why that matters. WHAT names the mapping in messages."""
        if not isinstance(node, yaml.MappingNode):
            self.problem(node, f"{what} is not a mapping", "write key: value below it")
            return {}
        pairs: Pairs = {}
        inherited: Pairs = {}
        for key, value in node.value:
            name = str(key.value)
            if key.tag == PLAIN and name == "<<":
                for part in reversed(value.value if isinstance(value, yaml.SequenceNode) else [value]):
                    inherited |= self.mapping(part, "what << names", keys, unknown)
            elif name in pairs:
                why = f"the one on line {place_of(pairs[name][0])[0]} would be lost"
                self.problem(key, f"{name} stands twice", "keep one of the two", why)
            elif keys and name not in keys:
                near = nearest(name, keys, 1)
                remedy = f"write {near[0]}" if near else f"{what} has {', '.join(keys)}"
                why = unknown or f"{self.program} refuses a file with a key that it doesn't know"
                self.problem(key, f"{name} is unknown in {what}", remedy, why)
            else:
                pairs[name] = key, value
        return inherited | pairs

    def sets(self, text: str, key: str, one: str, many: str) -> Pairs:
        """What the file TEXT has below KEY: MANY by their names, each of them ONE."""
        root = self.document(text)
        top = self.mapping(root, "the file", ("version", key)) if root is not None else {}
        if not top:
            return {}
        self.version(top, "v1", required=True)
        if key not in top:
            if not self.problems:  # it may only be misspelt
                self.problem(START, f"{key} is missing", f"add {key}: the {many} by name", f"the file has no {one}")
            return {}
        named = self.mapping(top[key][1], key)
        if not named and not self.problems:
            self.problem(top[key][1], f"{key} is empty", f"add a {one}")
        return named

    def items(self, node: Any, what: str, *, empty: bool = False) -> list[Any]:
        """The items of a list; only with EMPTY there may be none."""
        if not isinstance(node, yaml.SequenceNode):
            self.problem(node, f"{what} is not a list", "begin each item with a dash")
            return []
        if not node.value and not empty:
            self.problem(node, f"{what} is empty", "add an item")
        return list(node.value)

    def version(self, top: Mapping[str, tuple[Any, Any]], wanted: str, *, required: bool) -> None:
        """The key `version` at the TOP of a file."""
        if "version" in top:
            value = getattr(top["version"][1], "value", None)
            if value != wanted:
                self.problem(top["version"][1], f"version is not {wanted}", f"write version: {wanted}")
        elif required:
            self.problem(START, "version is missing", f"add version: {wanted}")

    def label_value(self, name: str, key: Any, what: str, label: str) -> None:
        """The NAME of a WHAT, which nodes choose by their LABEL."""
        if not _LABEL_VALUE.fullmatch(name):
            self.problem(
                key,
                f"no node can ask for the {what} {name!r}",
                "use at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or digit",
                f"nodes ask by the label {label}, and that is not a valid label value",
            )

    def text(self, node: Any, what: str) -> str | None:
        """A scalar that is text to the program."""
        if not isinstance(node, yaml.ScalarNode):
            self.problem(node, f"{what} is not text", "write a text")
        elif node.tag == PLAIN and (_NO_TEXT.fullmatch(node.value) or node.value.lower() in _BOOLS):
            self.problem(node, f"{what} is {node.value or 'empty'}, which is not text", "put it in quotes")
        else:
            return str(node.value)
        return None

    def boolean(self, node: Any, what: str) -> bool | None:
        plain = isinstance(node, yaml.ScalarNode) and node.tag == PLAIN
        value = _BOOLS.get(node.value.lower()) if plain else None
        if value is None:
            self.problem(node, f"{what} is neither true nor false", "write true or false, without quotes")
        return value

    def integer(self, node: Any, what: str) -> int | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == PLAIN and _INT.fullmatch(node.value):
            return int(node.value)
        self.problem(node, f"{what} is not a whole number from 0 on", "write a number such as 2, without quotes")
        return None
