"""The images that an object names.

A container's `image` is pulled when its pod starts. Others are named in variables (the validator starts pods of
VALIDATOR_IMAGE), in configurations inside a ConfigMap (artifacts of Kata), or in fields of custom resources, and are
pulled later: a mirror without them fails then. There is no list of such places. In a text, whatever is a whole
reference with a registry counts: nothing else that manifests hold looks like one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...model import Body, Path, dotted
from ...policy.language import images
from ...policy.language.types import IMAGE

_REFERENCE = re.compile(IMAGE.pattern)
_WORD = re.compile(r"[A-Za-z0-9][\w./:@+-]*")
_CONTAINERS = {"containers", "initContainers", "ephemeralContainers"}


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """An object that names an image, and where in it. `pulled`: by its container, else something starts it later."""

    kind: str
    namespace: str
    name: str
    place: str
    pulled: bool

    @property
    def object(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def uses(body: Body) -> Iterator[tuple[str, Use]]:
    """Each image that the object BODY names, once for each place. The examples in a CRD's descriptions don't count."""
    kind, metadata = str(body.get("kind", "")), body.get("metadata") or {}
    if kind == "CustomResourceDefinition":
        return
    for reference, path in _walk(body, ()):
        pulled = path[-1] == "image" and len(path) > 2 and path[-3] in _CONTAINERS
        yield (
            reference,
            Use(kind, str(metadata.get("namespace", "")), str(metadata.get("name", "")), dotted(path), pulled),
        )


def _walk(value: Any, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(value, dict):
        parts = isinstance(value.get("repository"), str) or isinstance(value.get("version"), str)
        for key, item in value.items():
            if not (key == "image" and parts and isinstance(item, str) and "/" not in item):  # a part of a name
                yield from _walk(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index))
    elif (
        isinstance(value, str)
        and (path[-1:] == ("image",) or path[-2:] == ("image", "reference"))  # that of a volume, too
        and _REFERENCE.fullmatch(value)
    ):
        yield value, path
    elif isinstance(value, str):
        yield from ((reference, path) for reference in in_text(value))


@functools.lru_cache(maxsize=1024)
def in_text(text: str) -> tuple[str, ...]:
    """The whole references with a registry in TEXT, each once: a value of a variable, a configuration, a script."""
    if "/" not in text:
        return ()
    words = dict.fromkeys(word.rstrip(".:-") for word in _WORD.findall(text) if "/" in word)
    found = (word for word in words if images.is_whole(word) and images.registry(word))
    return tuple(word for word in found if _REFERENCE.fullmatch(word))
