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
from .hcl import Argument, Evaluator, blocks, last, small, trees

if TYPE_CHECKING:
    from .hcl import Node

DECLARED = {"variable", "locals", "output", "provider", "terraform", "data"}
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
    """The files of one folder, which are one module: what its variables and locals are made of, by their names in it,
    the arguments of who calls it, and what is given in .tfvars."""

    reader: Reader
    named: dict[str, Argument] = field(default_factory=dict)
    calls: list[Mapping[str, Argument]] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    done: dict[str, list[Any] | None] = field(default_factory=dict)

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
        if full not in self.done:
            self.done[full] = None  # where it is made of itself
            calls = [each[name]() for each in self.calls if name in each] if root == "var" else []
            said = calls or [each() for each in [self.named.get(full)] if each]
            agreed = said and small(said[0]) and all(each == said[0] for each in said)
            self.done[full] = [said[0]] if agreed else None
        known = self.done[full]
        return known[0] if known else written


def evaluated(items: Sequence[Item], reader: Reader) -> Iterator[Item]:
    """What the blocks of the files of Terraform among ITEMS come to."""
    folders: Mapping[str, Folder] = defaultdict(lambda: Folder(reader))
    made: list[tuple[Item, Evaluator, Node]] = []
    for item in (each for each in items if recognised(each)):
        home = os.path.normpath(PurePath(item.file).parent)
        folder = folders[home]
        evaluator = Evaluator(item.text, folder.look, answers=reader.answers)
        for words, node in blocks(tree(item)):
            parts = evaluator.arguments(node)
            if item.file.endswith(".tfvars"):
                folder.given[words[0]] = evaluator.of(last(node))
            elif words[0] == "variable" and "default" in parts:
                folder.named[f"var.{words[-1]}"] = parts["default"]
            elif words[0] == "locals":
                folder.named |= {f"local.{name}": value for name, value in parts.items()}
            elif words[0] == "module" and "source" in parts:
                folders[os.path.normpath(PurePath(home, str(parts["source"]())))].calls.append(parts)
            if words[0] not in DECLARED and not item.file.endswith(".tfvars"):
                made.append((item, evaluator, node))
    given = {key: value for folder in folders.values() for key, value in folder.given.items()}
    for folder in folders.values():
        folder.given = folder.given if folder.calls else given
    for item, evaluator, node in made:
        data = evaluator.body(last(node)) if node.data == "block" else evaluator.of(last(node))
        if isinstance(data, dict):
            yield Item(item.file, item.text, data, line=node.meta.line)
