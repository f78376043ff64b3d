"""What stands in dist/ beside the clusters' folders: the index of each, and the engine's own objects.

dist/.index/<cluster>.json says what was written for a cluster, from which policy, for which Kubernetes, whose project:
`render` prunes by it, `check` compares it, `validate` looks at what it lists. It is outside the folders that engines
sync. An index may be missing, or be something else (a merge conflict, a pipe): then it says nothing.

dist/.gitops/<engine>/<cluster>/ holds what an engine is told. A path of such a file begins with `.gitops/`; as part of
a Change, which is relative to the cluster's folder, with `../.gitops/`. Each file is replaced in one step. There are a
handful for a cluster, and nothing else of ours in their folder, so what is ours there is known by the header alone.
"""

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..gitops import FOLDER
from .cache import digest
from .folders import Seen, read, regular_files, scan

SCRATCH = ".gpustack-"
"""What the names of files and folders begin with that a render has only half built."""

INDEX = ".index"

_OWNER = re.compile(rb',\n "project": "[0-9a-f]*"')


def owner(root: Path, out: Path) -> str:
    """Names the project in ROOT for the index of a cluster in OUT: "" where OUT lies right in ROOT, which is the rule
    and leaves one project only, else a digest of the way from OUT to ROOT.

    So it is the same wherever both folders were cloned side by side, and says nothing about the machine."""
    way = os.path.relpath(os.path.realpath(root), os.path.realpath(out)).replace(os.sep, "/")
    return "" if way == ".." else digest("project", way)[:16]


def without_project(content: bytes) -> bytes:
    """The index CONTENT without the project that wrote it, which depends on where folders lie."""
    return _OWNER.sub(b"", content, 1)


def index_of(cluster: str) -> str:
    """The index as it stands in a Change: relative to the cluster's folder."""
    return f"../{INDEX}/{cluster}.json"


def index_data(out: Path, cluster: str) -> dict[str, Any]:
    """What the index of CLUSTER says; {} if it is missing or can't be read (a merge conflict in it, perhaps)."""
    with contextlib.suppress(OSError):
        return claims(read_index(out, cluster) or b"")
    return {}


def claims(content: bytes) -> dict[str, Any]:
    """What the index CONTENT says; {} if it can't be read."""
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(content)
        return data if isinstance(data, dict) else {}
    return {}


def read_index(out: Path, cluster: str) -> bytes | None:
    """The index of CLUSTER; None if it is missing, or OUT's folder of indexes is a link to elsewhere."""
    return None if (out / INDEX).is_symlink() else read(out / INDEX / f"{cluster}.json")


def put(path: Path, content: bytes) -> None:
    """Write CONTENT to PATH in one step."""
    folder, name = os.path.split(path)  # strings: a fleet has a hundred thousand of them
    if not os.path.isdir(folder):  # noqa: PTH112
        path.parent.mkdir(parents=True, exist_ok=True)
    fresh = os.path.join(folder, f"{SCRATCH}{name}")  # noqa: PTH118
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)  # noqa: PTH108 - of a killed render, or a link to elsewhere
    with open(fresh, "xb") as file:  # noqa: PTH123
        file.write(content)
    os.replace(fresh, path)  # noqa: PTH105


def clusters_in(out: Path) -> list[str]:
    """Clusters that an index says were written into OUT."""
    with contextlib.suppress(OSError):
        return sorted(path.stem for path in (out / INDEX).glob("*.json") if not path.name.startswith("."))
    return []


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
