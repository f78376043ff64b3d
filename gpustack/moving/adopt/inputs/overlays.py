"""Overlays of kustomize, built by kustomize itself on a copy of the files that they name.

Solves: an overlay is a program for another program: it may fetch from anywhere, read what lies on the machine, and
start plugins. So what it names is followed first. Only regular files count that lie in the clone, else below the
current folder or the overlay's own, with no link on the way; whatever else it names is told, and nothing is built
then. What is built lies in a folder of its own, by a program that gets no PATH, no home and no option.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from gpustack.model import InputError
from gpustack.text import programs
from gpustack.text.read import value
from gpustack.text.source import decode, load_bytes

from ..documents import Item, documents, filled, plainly
from . import releases
from .context import Context, expanded, words

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
SECONDS = 60
MOST = 16 * 1024 * 1024
"""Time that a build may take, and bytes that it may come to."""


def is_overlay(item: Item) -> bool:
    """Whether ITEM is a kustomization.yaml, which may lack its kind."""
    return PurePath(item.file).stem.lower() == "kustomization" and isinstance(item.data, dict) and item.outer is None


def overlay(item: Item, context: Context) -> None:
    """Read what an overlay says that isn't built: the charts that it installs, and its namespace."""
    releases.read(item, context)
    context.installation.namespace = context.installation.namespace or item.text_at("namespace")


def build(context: Context) -> None:
    """Put what the overlays among the items of CONTEXT build to in the place of them, and of all files they name."""
    known = {os.path.abspath(path): display for display, path in context.known.items()}
    found = [each for each in context.items if is_file(each, context)]
    trees: dict[str, list[Path]] = {}
    for item in (each for each in found if needs(each, context)):
        with _told(item, context):
            trees[item.file] = list(dict.fromkeys(_named(own := _path(item, context), _root(own), [])))
    inner = {known.get(str(path)) for tree in trees.values() for path in tree[1:]}
    outer = [each for each in found if each.file in trees and each.file not in inner]
    for item in outer:
        with _told(item, context):
            if len(outer) > 1:
                raise _refused(f"{len(outer)} overlays are there: name one, or take each for a cluster by --fleet")
            text = filled(_built(trees[item.file]), context.reader.answers)
            made = [part for each in documents(text, f"built of {item.file}") for part in expanded(each)]
            files = {known.get(str(path)) for path in trees[item.file]}
            context.items = [each for each in context.items if each.file not in files] + made


def needs(item: Item, context: Context) -> bool:
    """Whether ITEM, or a folder that it names, says what its files as they stand don't tell."""
    home, inner = (
        _path(item, context).parent,
        {_path(each, context).parent: each for each in context.items if is_file(each, context)},
    )
    for name in map(str, item.get("resources") or []):
        path = Path(os.path.normpath(home / name))
        if path in inner and path != home:
            if needs(inner[path], context):
                return True
        elif ".." in name or not path.exists():
            return True
    return not set(item.data) <= {*words("plain")}


def is_file(item: Item, context: Context) -> bool:
    """Whether ITEM is an overlay's file among the inputs."""
    return is_overlay(item) and item.file in context.known


@contextlib.contextmanager
def _told(item: Item, context: Context) -> Iterator[None]:
    """Note of the overlay ITEM why it isn't built, where that is so."""
    try:
        yield
    except InputError as error:
        why = "; ".join(filter(None, (error.findings[0].what, error.findings[0].why)))
        context.installation.tell("overlay", item.file, item.where(), folder=PurePath(item.file).parent, why=why)


def _refused(why: str) -> InputError:
    """The error for an overlay that isn't built."""
    return InputError.of("GPU050", why)


def _path(item: Item, context: Context) -> Path:
    return Path(os.path.abspath(context.known[item.file]))


def _root(own: Path) -> Path:
    """The folder that the overlay OWN may name files of."""
    clone, here = programs.work_tree(own.parent), Path(os.path.abspath(Path.cwd()))
    return here if own.is_relative_to(here) and not (clone / ".git").exists() else clone


def _named(own: Path, root: Path, above: list[Path]) -> Iterator[Path]:
    """The files of the kustomization OWN in ROOT, its own first. Raises InputError for what can't be built safely."""
    yield own
    parsed = value(decode(load_bytes(own, own.name), own.name), own.name)
    data: Any = parsed[1] if parsed else {}
    if not isinstance(data, dict) or own in above:
        raise _refused(f"{own.parent.name}/{own.name} is no overlay, or names itself")
    if plugin := sorted({*words("plugins")} & set(data)):
        raise _refused(f"it has {plugin[0]}: they start programs, or fetch charts")
    for name in _references(data):
        path = Path(os.path.normpath(own.parent / name))
        files = [path / each for each in NAMES if (path / each).is_file()] if path.is_dir() else [path]
        if not files or not files[0].is_file() or not path.is_relative_to(root) or not plainly(files[0], root):
            raise _refused(f"it names {name}, which is remote, outside of {root.name}, behind a link, or not there")
        yield from _named(files[0], root, [*above, own]) if path.is_dir() else [path]


def _references(data: dict[str, Any]) -> Iterator[str]:
    """What the kustomization DATA names: files, folders, or addresses."""
    for key in words("lists"):
        yield from (each for each in data.get(key) or [] if isinstance(each, str) and "\n" not in each)
    maps = [each for key in words("paths") for each in data.get(key) or [] if isinstance(each, dict)]
    for each in (*maps, data.get("openapi") or {}):
        yield from [each["path"]] if isinstance(each, dict) and each.get("path") else []
    for each in (*(data.get("configMapGenerator") or []), *(data.get("secretGenerator") or [])):
        yield from (str(file).rpartition("=")[2] for file in each.get("files") or [])
        yield from (str(file) for file in (*(each.get("envs") or []), *([each["env"]] if each.get("env") else [])))


def _built(tree: list[Path]) -> str:
    """What the overlay builds to of which TREE are the files. Raises InputError where no program can say it."""
    program = programs.find("kustomize") or programs.find("kubectl")
    if program is None:
        raise _refused("there is neither kustomize nor kubectl on the PATH")
    with tempfile.TemporaryDirectory(prefix="gpustack-") as folder:
        top = os.path.commonpath([path.parent for path in tree])
        for path in tree:
            copy = Path(folder, "tree", path.relative_to(top))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(load_bytes(path, path.name))
        word = "build" if Path(program).name == "kustomize" else "kustomize"
        words = [program, word, str(Path(folder, "tree", tree[0].parent.relative_to(top)))]
        alone = {"PATH": "", "HOME": folder, "TMPDIR": folder}
        try:
            done = subprocess.run(words, cwd=folder, env=alone, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refused(f"{Path(program).name} can't be run: {error}") from None
    if done.returncode or len(done.stdout) > MOST:
        said = done.stderr.decode("utf-8", "replace").replace(folder, "").strip()
        raise _refused(f"{Path(program).name} says: {said[-300:] or 'too much'}")
    return done.stdout.decode("utf-8", "replace")
