"""gpustack init: a repository of policies that renders, checks and passes as it is made.

What it writes are the files below templates/, with the versions put in; `dot-` in a name stands for the dot that would
have meant something in this repository.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from .. import __version__
from ..model import Finding, InputError
from . import common

TEMPLATES = Path(__file__).parent / "templates"
MORE = ".more"
"""What the name of a file ends with whose text is added to the file of that name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default=".", type=common.named, metavar="DIR", help="where to (default: here)"
    )
    parser.add_argument(
        "--ci",
        choices=["github", "gitlab", "none"],
        default="github",
        help="whose CI looks at changes (default: github)",
    )
    common.add_compiling(parser)
    common.add_today(parser)
    parser.set_defaults(out="dist")


def run(options: argparse.Namespace) -> int:
    folder, files = Path(options.folder), made(options.ci)
    refuse_existing(folder, files)
    for name, (text, mode) in files.items():
        write(folder / name, text, mode)
    written = render(folder, options)
    print(f"{folder}: {common.counted(len(files) + written, 'file')} written; begin with policies/example.yaml")
    return 0


def write(path: Path, text: str, mode: int) -> None:
    """Write TEXT to PATH, which isn't there yet. Raises OutputError."""
    from ..compiler.output import refused

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        path.chmod(mode)
    except OSError as error:
        raise refused(path, error) from error


def render(folder: Path, options: argparse.Namespace) -> int:
    """Render the new policies of FOLDER; returns how many files that are, the index of each cluster included."""
    from ..compiler import fleet
    from ..policy.load import policy_files

    with common.store(options) as store:
        root = folder.resolve()
        project = fleet.Project(root, root / options.out, store, options.jobs, options.today)
        outcome = fleet.render(project, policy_files(root / common.POLICIES, common.POLICIES), prune=False)
    return sum(len(change.written) + 1 for change in outcome.changes)


def made(ci: str) -> dict[str, tuple[str, int]]:
    """The files of a new repository by their paths: text, and mode."""
    from ..policy.schema import export
    from .schema import TARGET

    found: dict[str, tuple[str, int]] = {}
    for part in ("common", *([ci] if ci != "none" else [])):
        for name, path in templates(TEMPLATES / part):
            text = filled(path.read_text(encoding="utf-8"))
            if name.endswith(MORE):
                text = found[name.removesuffix(MORE)][0] + text
            found[name.removesuffix(MORE)] = (text, 0o755 if text.startswith("#!") else 0o644)
    found[TARGET] = (json.dumps(export(), indent=1) + "\n", 0o644)
    return found


def templates(root: Path) -> Iterator[tuple[str, Path]]:
    """The files below ROOT, by the path that they get."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            steps = (
                step.replace("dot-", ".", 1) if step.startswith("dot-") else step
                for step in path.relative_to(root).parts
            )
            yield "/".join(steps), path


def filled(text: str) -> str:
    """TEXT with the versions in it."""
    from ..catalog.releases import latest

    return text.replace("@VERSION@", __version__).replace("@RELEASE@", latest())


def refuse_existing(folder: Path, files: dict[str, tuple[str, int]]) -> None:
    """Refuse to write over anything, and to set up a second repository around policies."""
    there = [name for name in ("dist", common.POLICIES, *files) if os.path.lexists(folder / name)]
    if there or (os.path.lexists(folder) and not folder.is_dir()):
        what = f"{folder} has {', '.join(there[:6])} already" if there else f"{folder} is no folder"
        why = "init sets up a new repository, and writes over nothing"
        remedy = "name a new folder, and copy from it what you want: gpustack init ../new"
        raise InputError(Finding("GPU970", "error", what, why=why, remedy=remedy))
