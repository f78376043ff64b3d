"""dist/: each cluster's folder is replaced as one, and only what gpustack wrote is ever removed.

A new folder is built beside the old one and both are exchanged in one system call, so a reader, a killed render or a
full disk finds the old state or the new one, never a mixture. Unchanged files and files of other people are carried
over as hard links. `.index/<cluster>.json` outside the synced folders lists what was written, for pruning and review.

Two renders into one folder wait for each other (a lock file in the cache, not in dist/).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model import Finding, OutputError

HEADER = "# Rendered by gpustack from "
SCRATCH = ".gpustack-"
INDEX = ".index"


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a cluster's folder should hold: the policy it comes from, the Kubernetes minor, and content by path."""

    cluster: str
    source: str
    minor: str
    files: Mapping[str, bytes]

    def index(self) -> bytes:
        """What was written, as the file that stands outside the synced folders.

        Not shaped like an object: nothing applies it.
        """
        listing: dict[str, Any] = {
            "format": 1,
            "cluster": self.cluster,
            "source": self.source,
            "kubernetes": self.minor,
            "files": {path: hashlib.sha256(content).hexdigest() for path, content in sorted(self.files.items())},
        }
        return (json.dumps(listing, indent=1) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Change:
    """What writing a cluster did, or would do: file names below dist/<cluster>/."""

    cluster: str
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0

    @property
    def any(self) -> bool:
        return bool(self.written or self.removed)


def header(source: str) -> str:
    """The first line of every file: the policy it comes from, and how it is changed."""
    return f'{HEADER}{source}; change that and run "gpustack render".\n'


def compare(out: Path, rendering: Rendering) -> Change:
    """How the cluster's folder below OUT differs from RENDERING. Reads every file."""
    cluster, files = rendering.cluster, rendering.files
    root = out / cluster
    written = tuple(path for path, content in files.items() if read(root / path) != content)
    removed = tuple(sorted(own_files(out, cluster) - files.keys()))
    if not written and not removed and read(out / INDEX / f"{cluster}.json") != rendering.index():
        written = (f"../{INDEX}/{cluster}.json",)
    return Change(cluster, written, removed, len(files) - len(written))


def read(path: Path) -> bytes | None:
    """The content of PATH, None where no file is."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a hot path: 75 files a cluster
            return file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def own_files(out: Path, cluster: str) -> set[str]:
    """Files below dist/CLUSTER that gpustack wrote: those in the index, and those that begin with our header."""
    root = out / cluster
    listed: set[str] = set()
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        listed = set(json.loads((out / INDEX / f"{cluster}.json").read_bytes())["files"])
    found = set()
    for path in walk(root):
        name = path.relative_to(root).as_posix()
        if name in listed or (path.suffix == ".yaml" and begins_with_header(path)):
            found.add(name)
    return found


def begins_with_header(path: Path) -> bool:
    """Whether PATH is a file of ours by its first line."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER.encode()
    return False


def walk(root: Path) -> Iterator[Path]:
    """Every file and symbolic link below ROOT; links are not followed."""
    for folder, folders, names in os.walk(root):
        yield from (Path(folder, name) for name in names)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def write(out: Path, rendering: Rendering) -> Change:
    """Make the cluster's folder hold RENDERING beside what other people put there.

    Raises OutputError when the disk refuses.
    """
    cluster = rendering.cluster
    root = out / cluster
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise OutputError(
            Finding(
                "GPU920",
                "error",
                f"{root} is not a folder",
                why="a cluster's folder is replaced as one; a link or a file in its place would lead the "
                "render elsewhere",
                remedy=f"remove {root}, or render into another folder with --out",
            )
        )
    try:
        recover(out, cluster)
        change = compare(out, rendering)
        if change.any:
            if change.written != (f"../{INDEX}/{cluster}.json",):
                replace(out, cluster, rendering.files, change)
            write_index(out, rendering)
    except OSError as error:
        raise refused(out, error) from error
    return change


def replace(out: Path, cluster: str, files: Mapping[str, bytes], change: Change) -> None:
    """Build the new folder of CLUSTER and exchange it with the old one."""
    root = out / cluster
    out.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}new-", dir=out))
    try:
        fresh.chmod(0o755)
        changed = {path: files[path] for path in change.written}
        for folder in {os.path.dirname(path) for path in files}:  # noqa: PTH120 - a hot path
            (fresh / folder).mkdir(parents=True, exist_ok=True)
        if root.exists():
            gone = {*changed, *change.removed}
            for path in walk(root):
                name = path.relative_to(root).as_posix()
                if name not in gone:
                    carry(path, fresh / name)
        for name, content in changed.items():
            with open(fresh / name, "xb") as file:  # noqa: PTH123 - a hot path
                file.write(content)
        exchange(fresh, root, out / f"{SCRATCH}old-{cluster}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def carry(old: Path, new: Path) -> None:
    """Take a file over into the new folder; a copy where the file system has no hard links."""
    new.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise
        shutil.copy2(old, new, follow_symlinks=False)


def exchange(fresh: Path, root: Path, aside: Path) -> None:
    """Put FRESH in ROOT's place; afterwards FRESH holds what was there. Atomic where the system can exchange two
    folders.

    Elsewhere the old folder steps ASIDE for a moment; `recover` puts it back if the process dies in that moment.
    """
    if not root.exists():
        fresh.rename(root)
    elif not atomic_exchange(fresh, root):
        root.rename(aside)
        fresh.rename(root)
        shutil.rmtree(aside, ignore_errors=True)


def atomic_exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one system call; False where the system or the file system can't."""
    if sys.platform != "linux":
        return False
    here, rename_exchange = -100, 2
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(here, os.fsencode(first), here, os.fsencode(second), rename_exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
        return False
    raise OSError(code, os.strerror(code), str(second))


def write_index(out: Path, rendering: Rendering) -> None:
    """Write what the cluster's folder holds now, in one step."""
    folder = out / INDEX
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{SCRATCH}{rendering.cluster}.json"
    fresh.write_bytes(rendering.index())
    fresh.replace(folder / f"{rendering.cluster}.json")


def recover(out: Path, cluster: str) -> None:
    """Put back what a killed render had moved aside."""
    aside = out / f"{SCRATCH}old-{cluster}"
    if aside.exists():
        if (out / cluster).exists():
            shutil.rmtree(aside)
        else:
            aside.rename(out / cluster)


def sweep(out: Path) -> None:
    """Remove the half-built folders of killed renders. Only the holder of the lock may."""
    for folder in (out, out / INDEX):
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                if entry.name.startswith(f"{SCRATCH}new-"):
                    shutil.rmtree(entry.path, ignore_errors=True)
                elif folder.name == INDEX and entry.name.startswith(SCRATCH):
                    Path(entry.path).unlink(missing_ok=True)


def remove_cluster(out: Path, cluster: str) -> Change:
    """Remove what gpustack wrote for a cluster whose policy is gone; files of other people keep their folder alive."""
    root, own = out / cluster, own_files(out, cluster)
    try:
        for name in own:
            (root / name).unlink(missing_ok=True)
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        (out / INDEX / f"{cluster}.json").unlink(missing_ok=True)
    except OSError as error:
        raise refused(out, error) from error
    return Change(cluster, removed=tuple(sorted(own)))


def clusters_in(out: Path) -> list[str]:
    """Clusters that an index says were written into OUT."""
    with contextlib.suppress(OSError):
        return sorted(path.stem for path in (out / INDEX).glob("*.json") if not path.name.startswith("."))
    return []


@contextlib.contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold the lock of one output folder, waiting for whoever has it. Without a writable cache there is no lock."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def refused(out: Path, error: OSError) -> OutputError:
    """A disk's refusal in words."""
    remedies = {
        errno.ENOSPC: "free some space; what is there is still the state of the last complete render",
        errno.EDQUOT: "free some of your quota; what is there is still the state of the last complete render",
        errno.EROFS: "the file system is read-only: render into another folder with --out",
        errno.EACCES: "give yourself write permission, or render into another folder with --out",
        errno.EPERM: "give yourself write permission, or render into another folder with --out",
    }
    return OutputError(
        Finding(
            "GPU921",
            "error",
            f"can't write {error.filename or out}: {error.strerror or error}",
            why="every cluster that was already replaced is complete, the others are as they were",
            remedy=remedies.get(error.errno or 0, "see the reason above, then run the same command again"),
        )
    )
