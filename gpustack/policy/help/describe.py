"""Descriptions of policy fields: the text below an attribute in its class.

Solves: the same sentence has to stand in the code, in the JSON schema and in the docs. Pydantic can read such texts
when a class is made (`use_attribute_docstrings`), but then every start of the program parses our source; here only
the schema and the docs do.
"""

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

from ..language.base import Section


def summary(model: type[Section]) -> str:
    """The description of MODEL itself, in one line."""
    return _one_line(model.__doc__ or "")


def descriptions(model: type[Section]) -> dict[str, str]:
    """The description of each field of MODEL, in one line: its own, else the text below it in the class, else the
    summary of its section. A class that repeats a field wins over its bases, where it has a text below it."""
    texts: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, Section):
            texts.update(_module(cls.__module__).get(cls.__name__, {}))
    return {
        name: field.description or texts.get(name) or "".join(map(summary, nested(field.annotation)))
        for name, field in model.model_fields.items()
    }


def models(root: type[Section]) -> Iterator[type[Section]]:
    """ROOT and every model below it, each once, in the order of the fields."""
    waiting, seen = [root], dict[type[Section], None]()
    while waiting:
        if (model := waiting.pop()) not in seen:
            seen[model] = None
            fields = model.model_fields.values()
            waiting += reversed([inner for field in fields for inner in nested(field.annotation)])
    yield from seen


def nested(annotation: Any) -> list[type[Section]]:
    """The models that a value of type ANNOTATION may hold: directly, in a list or in a map."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, Section) else []
    return [model for part in typing.get_args(annotation) for model in nested(part)]


@functools.cache
def _module(name: str) -> dict[str, dict[str, str]]:
    """The texts below the attributes of each class of the module NAME."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: _attributes(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _attributes(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for statement, below in zip(node.body, node.body[1:], strict=False):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=attribute)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[attribute] = _one_line(text)
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.split())
