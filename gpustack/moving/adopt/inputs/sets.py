"""Values as `helm --set` takes them, which Argo CD, Terraform, helmfile and K3s hand on to it: a.b[0].c=text."""

import copy
import re
from typing import Any

from gpustack.model import Location, Path, merge_patch

from ..installation import Leaves, Said, lay

_STEP = re.compile(r"\[(\d{1,3})\]|((?:\\.|[^.\[\\])+)")
_ESCAPED = re.compile(r"\\(.)")
_APART = re.compile(r"((?:\\.|\{[^}]*\}|[^,\\])+)")


def put(leaves: Leaves, name: str, value: Any, where: Location) -> None:
    """Put VALUE at NAME over LEAVES; an item of a list is put into the list that is there."""
    path: Path = tuple(int(at) if at else _ESCAPED.sub(r"\1", key) for at, key in _STEP.findall(name))
    first = next((index for index, step in enumerate(path) if isinstance(step, int)), None)
    if first is not None:
        have = leaves.get(path[:first])
        items = copy.deepcopy(have.value) if have and isinstance(have.value, list) else []
        value, path = within(items, path[first:], value), path[:first]
    if path:
        lay(leaves, {path: Said(value, where)})


def within(node: Any, path: Path, value: Any) -> Any:
    """NODE with VALUE at PATH."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        node = node if isinstance(node, list) else []
        node.extend({} for _ in range(len(node), step + 1))
        node[step] = within(node[step], rest, value)
        return node
    node = node if isinstance(node, dict) else {}
    return {**node, step: within(node.get(step), rest, value)}


def patched(data: Any, patch: Any) -> Any:
    """DATA after PATCH: one that is merged, or JSON's additions and replacements. Raises ValueError for others."""
    if isinstance(patch, dict):
        return merge_patch(data, patch)
    for each in patch if isinstance(patch, list) else [patch]:
        steps = str(each.get("path", "")).split("/")[1:] if isinstance(each, dict) else []
        if (
            not steps
            or each.get("op") not in {"add", "replace"}
            or any(step == "-" or step.isdigit() for step in steps)
        ):
            raise ValueError(f"{each} is not a patch that is read here")
        keys = [step.replace("~1", "/").replace("~0", "~") for step in steps]
        data = within(data, tuple(keys), each.get("value"))
    return data


def typed(text: Any) -> Any:
    """TEXT as `--set` takes it: what looks like a boolean, null, a whole number or {a list} is one."""
    if not isinstance(text, str):
        return text
    if text.startswith("{") and text.endswith("}"):
        return [typed(each) for each in text[1:-1].split(",") if each]
    number = int(text) if re.fullmatch(r"0|-?[1-9]\d{0,17}", text) else _ESCAPED.sub(r"\1", text)
    return {"true": True, "false": False, "null": None}.get(text, number)


def unknown(data: Any) -> bool:
    """Whether DATA is an expression that nobody knows."""
    return isinstance(data, str) and data.startswith("${")


def pairs(text: str) -> list[tuple[str, str]]:
    """The names and values in TEXT: a=1,b=2."""
    return [(name, value) for name, equals, value in (each.partition("=") for each in _APART.findall(text)) if equals]
