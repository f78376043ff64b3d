"""Manifests of tenants, read from a folder: every object in every file, and where its parts stand.

Solves: tenants' repositories hold many documents per file, values files, templates and things that are no
manifests. What is not a Kubernetes object is passed over, what can't be read is told, and a template says that it is
one. Reading is the policy language's (YAML 1.2), but for several documents in one file.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..model import Body, Finding, InputError, Location
from ..model import Path as Steps
from ..policy.loading.place import parse
from ..text.construct import Builder
from ..text.positions import follow
from ..text.source import decode, load_bytes, place
from ..text.yaml12 import check_expansion, compose
from .refusals import said

ENDINGS = (".yaml", ".yml", ".json")
HELM = ("{{", "}}")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Manifest:
    """One object of a file. `base` is its place in the document, for an item of a List."""

    file: str
    text: str = field(repr=False)
    node: Any = field(repr=False)
    body: Body = field(repr=False)
    base: Steps = ()

    def locate(self, path: str) -> Location:
        """Where what stands at the dotted PATH is written; its nearest ancestor where there is no such thing."""
        key, node, _ = follow(self.node, {}, (*self.base, *parse(path)))
        start = (node if key is None or isinstance(node, yaml.ScalarNode) else key).start_mark
        return place(self.text, self.file, start.line + 1, start.column + 1)


def files(folder: Path) -> tuple[list[Path], list[Finding]]:
    """The files below FOLDER that may hold manifests, sorted, and what is wrong with folders that can't be read.

    FOLDER itself where it is something else: reading it says what. Links to folders are not followed."""
    if not folder.is_dir():
        if not os.path.lexists(folder):
            raise InputError(said("GPU034", folder=folder))
        return [folder], []
    paths: list[Path] = []
    unreadable: list[Finding] = []

    def tell(error: OSError) -> None:
        unreadable.append(said("GPU001", "folder", Location(str(error.filename)), reason=error.strerror))

    for root, folders, names in os.walk(folder, onerror=tell):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [Path(root) / name for name in names if name.endswith(ENDINGS) and not name.startswith(".")]
    return sorted(paths), unreadable


def read(path: Path, display: str) -> list[Manifest]:
    """The objects in the file PATH, called DISPLAY. Raises InputError."""
    text = decode(load_bytes(path, display), display)
    if path.suffix == ".json":
        text = _PAIR.sub(_joined, text)
    try:
        return [manifest for node in compose(text, display) for manifest in _objects(node, text, display)]
    except InputError as error:
        if all(mark in text for mark in HELM):
            raise InputError(_template(text, display, error)) from None
        raise


def _joined(pair: re.Match[str]) -> str:
    """The character that JSON writes as the two halves PAIR, which YAML has no way to write."""
    high, low = (int(pair[group], 16) for group in (2, 3))
    return pair[1] + chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def _objects(node: Any, text: str, display: str) -> Iterator[Manifest]:
    check_expansion(node, text, display)
    return (
        Manifest(display, text, node, body, base)
        for base, body in _bodies(Builder(text, display, as_kubectl=True).build(node))
    )


def _bodies(data: Any, base: Steps = (), kind: str = "") -> Iterator[tuple[Steps, Body]]:
    """The objects that DATA is or lists, with their places. KIND is what an item of a list is that doesn't say it
    itself: the API server leaves that out in a PodList."""
    if not isinstance(data, dict):
        return
    if kind and "kind" not in data:
        data = {"kind": kind, **data}
    elif not isinstance(data.get("kind"), str) or not (base or isinstance(data.get("apiVersion"), str)):
        return
    items = data.get("items")
    if data["kind"].endswith("List") and isinstance(items, list):
        version = data.get("apiVersion")
        for index, item in enumerate(items):
            of = {"apiVersion": version, **item} if data["kind"] != "List" and isinstance(item, dict) else item
            yield from _bodies(of, (*base, "items", index), data["kind"].removesuffix("List"))
    else:
        yield base, data


def _template(text: str, display: str, error: InputError) -> Finding:
    """The finding for a file that is YAML only after Helm has been over it."""
    line = next(number for number, line in enumerate(text.splitlines(), 1) if HELM[0] in line)
    return said("GPU035", "", place(text, display, line, 1), reason=error.findings[0].what)
