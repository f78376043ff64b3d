"""dist/.gitops/<engine>/<cluster>/: the engine's own objects, beside the folders that an engine syncs to a cluster.

A path of such a file begins with `.gitops/`; as part of a Change, which is relative to the cluster's folder, with
`../.gitops/`. Each file is replaced in one step. There are a handful for a cluster, and nothing else of ours in their
folder, so what is ours there is known by the header alone.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..gitops.place import FOLDER
from .folders import Seen, regular_files, scan
from .index import SCRATCH


def shown(path: str) -> str:
    """PATH below dist/ as it stands in a Change."""
    return f"../{path}"


def engines_in(out: Path) -> list[str]:
    """The folders right in OUT's folder for engines' objects."""
    root = out / FOLDER
    if root.is_symlink():
        return []
    with contextlib.suppress(OSError):
        return sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    return []


def files_in(out: Path, cluster: str) -> set[str]:
    """The regular files for CLUSTER, whoever wrote them. A link doesn't count: it leads elsewhere."""
    folders = [f"{FOLDER}/{engine}/{cluster}" for engine in engines_in(out)]
    return {f"{folder}/{name}" for folder in folders for name in regular_files(out / folder)}


def remove_files(out: Path, paths: Iterator[str] | list[str]) -> None:
    """Remove PATHS below OUT, and the folders that are empty without them."""
    for path in paths:
        (out / path).unlink(missing_ok=True)
        for folder in list((out / path).parents)[:3]:
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()


def scan_files(out: Path, cluster: str) -> Seen:
    """How what is there for CLUSTER looks from outside, and in whose folder. Raises OSError."""
    seen: Seen = []
    for engine in engines_in(out):
        with contextlib.suppress(FileNotFoundError):
            path = f"{out}/{FOLDER}/{engine}/{cluster}"
            mode = os.lstat(path).st_mode
            seen += [(engine, mode), *(scan(path) if stat.S_ISDIR(mode) else ())]
    return seen


def sweep_files(out: Path) -> None:
    """Remove what killed renders had half written."""
    for engine in engines_in(out):
        for path in (out / FOLDER / engine).glob(f"*/{SCRATCH}*"):
            with contextlib.suppress(OSError):
                path.unlink()
