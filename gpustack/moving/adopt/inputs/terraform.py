"""Files of Terraform, OpenTofu, Terragrunt and Packer as data: each block as what its arguments come to (hcl.py).

Who reads the chart, objects or commands reads them there as in any other document. Variables are what answers, .tfvars,
the calls of a module or defaults say.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpustack.model import InputError, Location

from ..documents import HCL, Item, Reader
from .hcl import Evaluator, blocks, trees

if TYPE_CHECKING:
    from .hcl import Node

DECLARED = {"variable", "locals", "output", "provider", "terraform", "data", "moved", "import", "check"}
"""Blocks that make nothing."""


def recognised(item: Item) -> bool:
    """Whether ITEM is a file of Terraform, and nothing that stands in one."""
    return PurePath(item.file).suffix in HCL and isinstance(item.data, str)


def tree(item: Item) -> Node:
    """The file ITEM, parsed. Raises InputError for what isn't HCL."""
    import hcl2

    try:
        return next(trees(hcl2.parses_to_tree(item.text)))
    except Exception as error:  # noqa: BLE001 - the library has no error of its own
        line = getattr(error, "line", None)
        what = f"{item.file} can't be read as HCL"
        raise InputError.of("GPU003", what, location=Location(item.file, line), why=str(error)[:200]) from None


@dataclass
class Folder:
    """The files of one folder, which are one module: what its variables and locals say, by their names in it."""

    reader: Reader
    named: dict[str, tuple[Evaluator, Node]] = field(default_factory=dict)
    calls: list[tuple[Evaluator, Node]] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)

    def look(self, root: str, name: str, written: str) -> Any:
        """What ROOT.NAME is, WRITTEN where nobody says."""
        full, answers = f"{root}.{name}", self.reader.answers
        if root == "path":
            return "."
        if told := [key for key in (full, name) if key in answers and root == "var"]:
            self.reader.used.add(told[0])
            return answers[told[0]]
        if root == "var" and name in self.given:
            return self.given[name]
        if full in self.busy or root not in {"var", "local"}:
            return written
        self.busy.add(full)
        try:
            said = [each for one in self.calls if (each := argument(*one, name)) is not None] if root == "var" else []
            if not said and full in self.named:
                evaluator, node = self.named[full]
                said = [evaluator.of(node)]
        finally:
            self.busy.discard(full)
        return said[0] if said and all(each == said[0] for each in said) else written


def argument(evaluator: Evaluator, node: Node, name: str) -> Any:
    """What the argument NAME of the block NODE comes to, None where it isn't there."""
    for each in trees([*trees(node)][-1]):
        if each.data == "attribute" and evaluator.key(next(trees(each))) == name:
            return evaluator.of([*trees(each)][-1])
    return None


def evaluated(items: Sequence[Item], reader: Reader) -> Iterator[Item]:
    """What the blocks of the files of Terraform among ITEMS come to."""
    files = [(each, tree(each)) for each in items if recognised(each)]
    folders: Mapping[str, Folder] = defaultdict(lambda: Folder(reader))
    made: list[tuple[Item, Evaluator, Node]] = []
    for item, root in files:
        home = os.path.normpath(PurePath(item.file).parent)
        folder = folders[home]
        evaluator = Evaluator(item.text, folder.look, answers=reader.answers)
        for words, node in blocks(root):
            if item.file.endswith(".tfvars"):
                folder.given[words[0]] = evaluator.of([*trees(node)][-1])
            elif words[0] == "variable":
                body = [each for each in trees([*trees(node)][-1]) if evaluator.key(next(trees(each))) == "default"]
                folder.named |= {f"var.{words[-1]}": (evaluator, [*trees(each)][-1]) for each in body}
            elif words[0] == "locals":
                parts = [[*trees(each)] for each in trees([*trees(node)][-1])]
                folder.named |= {f"local.{evaluator.key(key)}": (evaluator, value) for key, value in parts}
            elif words[0] == "module" and isinstance(source := argument(evaluator, node, "source"), str):
                folders[os.path.normpath(os.path.join(home, source))].calls.append((evaluator, node))
            if words[0] not in DECLARED and not item.file.endswith(".tfvars"):
                made.append((item, evaluator, node))
    given = {key: value for folder in folders.values() for key, value in folder.given.items()}
    for folder in folders.values():
        folder.given = {**({} if folder.calls else given), **folder.given}
    for item, evaluator, node in made:
        body = [*trees(node)][-1]
        data = evaluator.body(body) if node.data == "block" else evaluator.of(body)
        if isinstance(data, dict):
            yield Item(item.file, item.text, data, line=node.meta.line)


KINDS: dict[str, object] = {}
FILES = ((recognised, lambda item, context: None),)
