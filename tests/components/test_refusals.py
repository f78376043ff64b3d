"""The table of what components refuse: each call finds its case there, and has a word for each that the texts name."""

from __future__ import annotations

import ast
from string import Template

from gpustack.components.refusals import TEXTS

CALLS = [
    node
    for path in TEXTS.path.parent.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "refused"
]


def test_each_refusal_finds_its_texts() -> None:
    """A case that isn't there, or a word that nobody gives, would be a traceback in the place of the reason."""
    told = set()
    for call in CALLS:
        rule = ast.literal_eval(call.args[0])
        cases = [""]
        if len(call.args) > 2:
            nodes = ast.walk(call.args[2])
            texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            cases = [name for name in texts if name in TEXTS.table[rule]] or [str(texts)]
        for case in cases:
            said = TEXTS.table[rule][case] if case else TEXTS.table[rule]
            assert {"what", "why", "remedy"} == said.keys()
            names = {name for text in said.values() for name in Template(text).get_identifiers()}
            assert names <= {"path", "field", *(word.arg for word in call.keywords)}, ast.unparse(call)
            told.add((rule, case))
    every = {(rule, case) for rule, said in TEXTS.table.items() for case in ([""] if "what" in said else said)}
    assert told == every
