"""What lies beside an installation: configurations that nobody names, and objects of others that are about GPUs.

Solves: a ConfigMap does nothing until a policy names it, and a rule or a quota isn't the operator's. To take it for
settings would be a guess, to leave it out in silence a loss; so each is told, with the answer that takes it.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

from gpustack.catalog import _data
from gpustack.model import Body

from .documents import Item
from .installation import Installation

GPUS = re.compile(r"gpu|nvidia|dcgm|10de|node-?feature", re.IGNORECASE)


def row_of(text: Any) -> list[str] | None:
    """The row of pieces.yaml about TEXT, None for any other."""
    rows: list[list[str]] = _data.read(Path(__file__).with_suffix(".yaml"))["texts"]
    known = (row for row in rows if isinstance(text, str) and re.search(row[1], text, re.MULTILINE))
    return next(known, None)


def config_map(item: Item, items: Iterable[Item]) -> Body | None:
    """The ConfigMap that an overlay among ITEMS, else kubectl, makes of the file ITEM; None of any other."""
    row = row_of(item.text) if not (item.outer or item.line or item.text_at("kind")) else None
    if row is None:
        return None
    file = PurePath(item.file)
    name, key = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-"), row[3] or file.name
    for each in (one for overlay in items for one in overlay.get("configMapGenerator") or [] if isinstance(one, dict)):
        for called, _, path in (str(one).rpartition("=") for one in each.get("files") or []):
            if PurePath(path).name == file.name:
                name, key = str(each.get("name")), called or file.name
    data = {key: item.text.lstrip("\n")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def about(body: Body) -> tuple[str, str] | None:
    """What BODY is, and what to do with it; None where it has nothing to do with GPUs, or runs already."""
    kind, meta = body["kind"], body["metadata"]
    if meta.get("uid") or meta.get("ownerReferences"):
        return None
    for key, text in (body.get("data") or {}).items() if kind == "ConfigMap" else ():
        if row := row_of(text):
            default = f" --set {row[2].removesuffix('name')}default={key}" if row[2].startswith("devicePlugin") else ""
            return f"{row[0]}, and nothing names it", f"--set {row[2]}={meta['name']}{default} takes it"
    row = _data.read(Path(__file__).with_suffix(".yaml"))["kinds"].get(kind)
    return (row[0], row[1]) if row and GPUS.search(str(body)) else None


def alone(installation: Installation) -> bool:
    """Whether anything of INSTALLATION is about GPUs, though nothing in it says how the operator is set up."""
    files = any(note.why.startswith("this is a") for note in installation.notes)
    return files or any(about(body) for body, _ in installation.objects)


def described(installation: Installation) -> list[str]:
    """Each object of INSTALLATION in a sentence."""
    made = []
    for body, where in installation.objects:
        what, remedy = about(body) or ("nothing of the operator reads it", "")
        made.append(f"{where.file}: {body['kind']} {body['metadata']['name']}: {what}{remedy and f'; {remedy}'}")
    return made
