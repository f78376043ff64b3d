"""Names that are a cluster's own: its name, which the engine's objects carry, and the namespace that the stack is in.

Solves: `gpustack-prod-eu-1` in one cluster and `gpustack-prod-eu-2` in the next are one decision, and so is a new image
in `gpu-operator` here and `nvidia` there. Objects are compared with a mark in the place of such a name, so that equal
changes are equal; `literal` puts the names back. No mark is a guess: every cluster that shares the change has its own
name in that place. A cluster called `main` may have its branch marked: then its change is like nobody's, stands alone,
with all names written out, and nothing false is said.

Of a namespace only places that name one are marked: `gpu-operator` is the name of images and charts, too.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from ...model import STAGES
from .objects import at

CLUSTER, NAMESPACE = "<cluster>", "<namespace>"


class Own(NamedTuple):
    """What a cluster calls its own; "" where it has no such name, or none that is marked."""

    cluster: str = ""
    namespace: str = ""

    def common(self, other: Self) -> Self:
        """The names that both have."""
        return type(self)(*(one if one == two else "" for one, two in zip(self, other, strict=True)))


NONE = Own()


def marked(body: Any, own: Own, *, engine: bool) -> Any:
    """BODY with marks in the places of names of OWN; those of the cluster in objects of an ENGINE alone."""
    if own == NONE:
        return body
    word = _word(own.cluster) if engine and own.cluster else None
    inside = _inside(own.namespace) if own.namespace else None

    def text(value: str, key: str) -> str:
        if inside:
            value = NAMESPACE if key == "namespace" and value == own.namespace else inside.sub(NAMESPACE, value)
        return word.sub(CLUSTER, value) if word else value

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, str):
            return text(value, key)
        if isinstance(value, dict):
            return {name: walk(item, str(name)) for name, item in value.items()}
        if isinstance(value, list):
            return [walk(item, "namespace" if key in {"namespaces", "matchNames"} else "") for item in value]
        return value

    made = walk(body, "")
    if own.namespace and at(body, "kind") == "Namespace" and at(body, "metadata", "name") == own.namespace:
        made["metadata"]["name"] = NAMESPACE
    return made


def marked_file(file: str, own: Own, *, engine: bool) -> str:
    """The path FILE, marked as what is in it."""
    if engine and own.cluster:
        path = file.replace(f"/{own.cluster}/", f"/{CLUSTER}/")
        for end in (".yaml", "-"):
            path = path.replace(f"-gpustack-{own.cluster}{end}", f"-gpustack-{CLUSTER}{end}")
        return path
    if own.namespace and file.endswith(f"/namespace-{own.namespace}.yaml"):
        return f"{file.removesuffix(f'{own.namespace}.yaml')}{NAMESPACE}.yaml"
    return file


@functools.lru_cache(maxsize=4096)
def _word(name: str) -> re.Pattern[str]:
    """NAME as a word of its own, or behind the prefix of the engine's objects, which may end in a stage."""
    word = re.escape(name)
    return re.compile(
        rf"(?<![\w.-]){word}(?![\w-]|\.\w)|(?<=\bgpustack-){word}(?![\w-])|(?<=\bgpustack-){word}(?=-(?:{'|'.join(STAGES)})$)"
    )


@functools.lru_cache(maxsize=4096)
def _inside(name: str) -> re.Pattern[str]:
    """NAME where a longer text names a namespace: users of ServiceAccounts, addresses of Services, series."""
    word = re.escape(name)
    return re.compile(
        rf"(?<=system:serviceaccount:){word}(?=:)|(?<=system:serviceaccounts:){word}(?![\w-])"
        rf"|(?<=\.){word}(?=\.svc\b)|(?<=\bnamespace=\"){word}(?=\")"
    )


def mentions(text: str) -> bool:
    """Whether TEXT has a mark in it by itself."""
    return CLUSTER in text or NAMESPACE in text


def holed(text: str, own: Own) -> str:
    """TEXT without the names of OWN: texts of two clusters that differ in their own names alone are equal so."""
    for name, hole in sorted(((own.namespace, "\0"), (own.cluster, "\1")), key=lambda pair: -len(pair[0])):
        text = text.replace(name, hole) if name else text
    return text


def left_over(body: Any, own: Own) -> bool:
    """Whether a name of OWN is left in the marked BODY: then it says nothing about another cluster's."""
    text = json.dumps(body, default=str)
    return any(json.dumps(name)[1:-1] in text for name in own if name)


def literal(value: Any, own: Own) -> Any:
    """VALUE with the names of OWN in the places of their marks, in whatever it is made of."""
    pairs = [(mark, name) for mark, name in ((CLUSTER, own.cluster), (NAMESPACE, own.namespace)) if name]
    return _rewritten(value, lambda text: functools.reduce(lambda done, pair: done.replace(*pair), pairs, text))


def _rewritten(value: Any, write: Callable[[str], str]) -> Any:
    """VALUE with each of its texts as WRITE has it; itself where nothing changes."""
    if isinstance(value, str):
        return write(value)
    if isinstance(value, dict):
        made = {key: _rewritten(item, write) for key, item in value.items()}
        return made if any(made[key] is not value[key] for key in value) else value
    if isinstance(value, list | tuple):
        each = [_rewritten(item, write) for item in value]
        if all(one is two for one, two in zip(each, value, strict=True)):
            return value
        return type(value)(*each) if hasattr(value, "_fields") else type(value)(each)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        new = {name: _rewritten(part, write) for name, part in parts.items()}
        return dataclasses.replace(value, **new) if any(new[name] is not parts[name] for name in new) else value
    return value
