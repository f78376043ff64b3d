"""dist/: each cluster's folder is replaced as one, and only what gpustack wrote is ever removed.

A new folder is built beside the old one and both are exchanged in one system call, so a reader, a killed render or a
full disk finds the old state or the new one, never a mixture. Unchanged files and files of other people are carried
over as hard links. `.index/<cluster>.json` outside the synced folders lists what was written, for pruning and review.

Two renders into one folder wait for each other: the lock is on the folder itself, so it needs no file of its own and
holds between users, containers and caches.

The objects of the GitOps engine stand beside the clusters' folders (beside.py): written after the folder that they
lead to, removed before it goes.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed_copy
from pathlib import Path
from typing import Any

from ..gitops import FOLDER
from ..model import OutputError
from ..text.regular import read_regular
from . import beside
from .beside import INDEX, SCRATCH, claims, index_data, index_of, put, read_index, without_project
from .cache import digest
from .folders import A_FILE, A_FOLDER, Seen, Thing, above, carry, exchange, look, read, recover, scan
from .refusals import said

HEADER = "# Rendered by gpustack from "


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a cluster's folder should hold: the policy it comes from, the Kubernetes minor, and content by path.

    `owner` is the project that the policy belongs to, see the function. `engine` are the engine's objects, by path
    below dist/ (beside.py). `artifact` says of an OCI artifact that it holds what is no file here (stack.py)."""

    cluster: str
    source: str
    minor: str
    files: Mapping[str, bytes]
    owner: str = ""
    engine: Mapping[str, bytes] = field(default_factory=dict)
    artifact: Mapping[str, Any] | None = None

    def index(self) -> bytes:
        """What was written, as a file outside the synced folders. Not shaped like an object: nothing applies it."""
        head: dict[str, Any] = {"format": 1, "cluster": self.cluster, "source": self.source, "kubernetes": self.minor}
        if self.owner:
            head["project"] = self.owner
        if self.artifact:
            head |= {"artifact": self.artifact}
        text = json.dumps(head, indent=1).removesuffix("\n}")
        if self.engine:
            text += f',\n "engine": {listing(self.engine)}'
        return f'{text},\n "files": {listing(self.files)}\n}}\n'.encode()

    def indexed_as(self, index: bytes | None) -> bool:
        """Whether INDEX says what is rendered here, whichever project wrote it: that depends on where folders lie."""
        return index is not None and without_project(index) == without_project(self.index())


def listing(files: Mapping[str, bytes]) -> str:
    """FILES with their digests as JSON, one a line. json.dumps(..., indent=1) does the same in ten times the time."""
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
    listed = ",\n".join(f'  {json.dumps(path)}: "{named}"' for path, named in digests.items())
    return f"{{\n{listed}\n }}" if listed else "{}"


@dataclass(frozen=True, slots=True)
class Change:
    """What writing a cluster did, or would do: file names below dist/<cluster>/, those elsewhere with `../` in front.

    `look` is how the folder looked when it held just what it should, "" where that isn't known (see the function).
    `unlisted`: the index doesn't say what is rendered."""

    cluster: str
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    look: str = field(default="", repr=False, compare=False)
    unlisted: bool = field(default=False, compare=False)

    @property
    def any(self) -> bool:
        return bool(self.written or self.removed)

    @property
    def gone(self) -> bool:
        """Whether the cluster is gone: what there was of it is removed, and nothing is written."""
        return bool(self.removed) and not self.written and not self.unchanged


def header(source: str) -> str:
    """The first line of every file: the policy it comes from, and how it is changed.

    A file name may hold anything, a line end too; what isn't printable is escaped."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in source)
    return f'{HEADER}{shown}; change that and run "gpustack render".\n'


def compare(out: Path, rendering: Rendering, there: Mapping[str, Thing] | None = None) -> Change:
    """How the cluster's folder below OUT differs from RENDERING. Reads every file; THERE is what `look` saw in it."""
    cluster, files = rendering.cluster, rendering.files
    root = f"{out}/{cluster}"
    there = look(out, cluster) if there is None else there
    written = tuple(
        path
        for path, content in files.items()
        if there.get(f"{cluster}/{path}") is not A_FILE or read(f"{root}/{path}") != content
    )
    written += tuple(
        beside.shown(path)
        for path, content in rendering.engine.items()
        if read(out / path) != content or os.lstat(out / path).st_mode & 0o7111
    )
    kept = {*files, *(beside.shown(path) for path in rendering.engine)}
    index = read_index(out, cluster)
    unlisted = not rendering.indexed_as(index)
    own = own_files(out, cluster, there, claims(index or b"").get("files") if unlisted else files)
    removed = tuple(sorted((own | own_beside(out, cluster)) - kept))
    unchanged = len(kept) - len(written)
    if not written and not removed and unlisted:
        written = (index_of(cluster),)
    return Change(cluster, written, removed, unchanged, unlisted=unlisted)


def left_over(out: Path, cluster: str) -> Change:
    """What there is of a cluster whose policy is gone; of one whose files are gone too, the index."""
    listed = index_data(out, cluster).get("files")
    removed = own_files(out, cluster, look(out, cluster), listed) | own_beside(out, cluster)
    return Change(cluster, removed=tuple(sorted(removed)) or (index_of(cluster),))


def own_files(out: Path, cluster: str, there: Mapping[str, Thing], listed: Any) -> set[str]:
    """Files THERE in dist/CLUSTER that gpustack wrote: those LISTED in the index, or with our header."""
    listed = listed if isinstance(listed, Mapping) else {}
    names = {path[len(cluster) + 1 :] for path, seen in there.items() if seen is not A_FOLDER} - {""}
    return {
        name
        for name in names
        if name in listed or (name.endswith(".yaml") and begins_with_header(out / cluster / name))
    }


def own_beside(out: Path, cluster: str) -> set[str]:
    """The engine's objects for CLUSTER that gpustack wrote, as they stand in a Change."""
    return {beside.shown(path) for path in beside.files_in(out, cluster) if begins_with_header(out / path)}


def begins_with_header(path: Path) -> bool:
    """Whether PATH is a file of ours by its first line."""
    with contextlib.suppress(OSError):
        return read_regular(path, follow=False, limit=len(HEADER)) == HEADER.encode()
    return False


def write(out: Path, rendering: Rendering) -> Change:
    """Make the cluster's folder hold RENDERING beside what others put there. OutputError when the disk refuses."""
    cluster = rendering.cluster
    refuse_links(out, cluster, rendering.engine)
    try:
        seen = scan(out / cluster) if (out / cluster).exists() else []
        change = compare(out, rendering)
        inside = inside_of(change)
        if inside.any:
            seen = replace(out, cluster, rendering.files, inside)
        for path, text in rendering.engine.items():
            if beside.shown(path) in change.written:
                put(out / path, text)
        beside.remove_files(out, outside(change.removed))
        if change.any:
            put(out / INDEX / f"{cluster}.json", rendering.index())
        if not rendering.files:
            with contextlib.suppress(OSError):  # it may be gone, or hold files of somebody else
                (out / cluster).rmdir()
            seen = []
        return changed_copy(change, look=look_of(out, cluster, seen) if seen or rendering.artifact else "")
    except OSError as error:
        raise refused(out, error) from error


def inside_of(change: Change) -> Change:
    """What of CHANGE is in the cluster's own folder."""
    written, removed = ([name for name in names if name[:3] != "../"] for names in (change.written, change.removed))
    return Change(change.cluster, tuple(written), tuple(removed))


def outside(names: Iterable[str]) -> list[str]:
    """Those of NAMES in a Change that are engine's objects, by path below dist/."""
    return [name[3:] for name in names if name.startswith(f"../{FOLDER}/")]


def refuse_links(out: Path, cluster: str, engine: Iterable[str] = ()) -> None:
    """Raise OutputError where a folder that we write to, also for the files ENGINE, is something else."""
    for folder in (cluster, INDEX, *sorted({folder for path in engine for folder in above(path)})):
        root = out / folder
        if root.is_symlink() or (root.exists() and not root.is_dir()):
            raise OutputError(said("GPU920", root=root))


def replace(out: Path, cluster: str, files: Mapping[str, bytes], change: Change) -> Seen:
    """Build the new folder of CLUSTER and exchange it with the old one.

    Returns what is in it; nothing where somebody changed a file as soon as it stood there, which is not to be taken
    for ours."""
    root = out / cluster
    out.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}new-", dir=out))
    try:
        fresh.chmod(0o755)
        changed = {path: files[path] for path in change.written}
        folders = {os.path.dirname(path) for path in files}  # noqa: PTH120 - a hot path
        gone = {*changed, *change.removed}
        carried = [name for name, seen in look(root).items() if seen is not A_FOLDER and name not in gone]
        for name in carried:
            if name in folders or any(folder in files for folder in above(name)):
                # A file or link of somebody else is in the place of a folder of ours, or the other way round.
                raise OutputError(said("GPU922", path=root / name))
        for folder in {*folders, *(os.path.dirname(name) for name in carried)}:  # noqa: PTH120 - as above
            (fresh / folder).mkdir(parents=True, exist_ok=True)
        for name in carried:
            carry(f"{root}/{name}", f"{fresh}/{name}")
        for name, content in changed.items():
            with open(f"{fresh}/{name}", "xb") as file:  # noqa: PTH123 - a hot path
                file.write(content)
        built = scan(fresh)
        exchange(fresh, root, out / f"{SCRATCH}old-{cluster}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if not carried:
        return built
    seen = scan(root)
    # Removing the old names of files that were carried over changes nothing of them but the change time.
    return seen if [file for file, _ in seen] == [file for file, _ in built] else []


def look_of(out: Path, cluster: str, seen: Seen | None = None) -> str:
    """Names how a cluster's folder (SEEN, where it was just looked at) and index look from outside, without reading;
    "" where they can't be seen, or are behind a link."""
    root, listed = f"{out}/{cluster}", f"{out}/{INDEX}"
    try:
        if os.path.islink(root) or os.path.islink(listed):  # noqa: PTH114 - a hot path
            return ""
        index = os.lstat(f"{listed}/{cluster}.json")
        if seen is None:
            alone = not os.path.lexists(root) and index_data(out, cluster).get("artifact")
            seen = [] if alone else scan(root)
        seen = [*seen, *beside.scan_files(out, cluster)]
    except OSError:
        return ""
    own = f"{index.st_size}:{index.st_mtime_ns}:{index.st_ctime_ns}:{index.st_ino}"
    return digest(own, "\0".join(f"{steady}:{changed}" for steady, changed in seen))


def sweep(out: Path) -> None:
    """Remove what killed renders had half built, and put back what one moved aside. Only the lock's holder may."""
    beside.sweep_files(out)
    for folder in (out, out / INDEX):
        if folder != out and folder.is_symlink():
            continue
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(folder)):
                if entry.name.startswith(f"{SCRATCH}new-"):
                    shutil.rmtree(entry.path, ignore_errors=True)
                elif entry.name.startswith(f"{SCRATCH}old-"):
                    recover(Path(entry.path), out / entry.name.removeprefix(f"{SCRATCH}old-"))
                elif folder.name == INDEX and entry.name.startswith(SCRATCH):
                    Path(entry.path).unlink(missing_ok=True)


def remove_cluster(out: Path, cluster: str) -> Change:
    """Remove what gpustack wrote for a cluster whose policy is gone; files of other people keep their folder alive."""
    root = out / cluster
    refuse_links(out, cluster)
    try:
        change = left_over(out, cluster)
        beside.remove_files(out, outside(change.removed))
        inside = inside_of(change)
        if inside.any:
            replace(out, cluster, {}, inside)
        with contextlib.suppress(OSError):  # somebody else's files are in it
            root.rmdir()
        (out / INDEX / f"{cluster}.json").unlink(missing_ok=True)
    except OSError as error:
        raise refused(out, error) from error
    return change


def refused(out: Path, error: OSError) -> OutputError:
    """A disk's refusal in words."""
    cases = {errno.ENOSPC: "space", errno.EDQUOT: "quota", errno.EROFS: "read-only"}
    cases |= dict.fromkeys((errno.EACCES, errno.EPERM), "permission")
    case = cases.get(error.errno or 0, "other")
    return OutputError(said("GPU921", case, path=error.filename or out, reason=error.strerror or error))
