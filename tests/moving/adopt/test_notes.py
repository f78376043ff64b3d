"""The table of what becomes of what is adopted: each call finds its case there, and gives the words that it names."""

from __future__ import annotations

import ast
from string import Template

from gpustack.catalog import _data
from tests.project import ROOT

ADOPT = ROOT / "gpustack/moving/adopt"


def test_each_note_finds_its_texts() -> None:
    """A case that isn't there, or a word that nobody gives, would be a traceback in the place of the note."""
    table, told = _data.read(ADOPT / "notes.yaml"), set()
    for path in ADOPT.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "tell":
                first = ast.walk(call.args[0])
                cases = {node.value for node in first if isinstance(node, ast.Constant) and isinstance(node.value, str)}
                assert cases <= table.keys(), ast.unparse(call)
                for said in map(table.__getitem__, cases):
                    texts = (text for part, text in said.items() if part != "sort")
                    names = {name for text in texts for name in Template(text).get_identifiers()}
                    assert names <= {word.arg for word in call.keywords}, ast.unparse(call)
                    assert said["sort"] in {"dropped", "open", "changed", "assumed", "sharing"}
                told |= cases
    assert told == table.keys()
