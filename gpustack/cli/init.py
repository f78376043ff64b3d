"""gpustack init: a repository of policies that renders, checks and passes as it is made.

What it writes are the files below templates/, with the versions put in; `dot-` in a name stands for the dot that would
have meant something in this repository, and what ends with `.in` is a program of the new one, not a module of ours.
"""

import argparse
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from .. import __version__
from ..catalog.releases import latest
from ..compiler import fleet
from ..compiler.beside import SCRATCH
from ..model import InputError, MissingToolError, OutputError, docs
from ..policy.loading.load import policy_files
from ..text.regular import read_regular
from . import common
from .refusals import said
from .text import printable, say
from .trees import git

TEMPLATES = Path(__file__).parent / "templates"
MORE = ".more"
"""What the name of a file ends with whose text is added to the file of that name."""
STAYS = ("README.md", ".gitignore")
"""What we would write, and what a fresh clone of GitHub or GitLab may hold beside a licence: the clone's own stays."""


def run(options: argparse.Namespace) -> int:
    folder, files = Path(options.folder), made(options.ci)
    kept = {name: files.pop(name)[0] for name in STAYS if os.path.lexists(folder / name)}
    refuse_existing(folder, files)
    try:
        with scratch(folder) as fresh:
            for name, (text, mode) in files.items():
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
                path.chmod(mode)
            written = render(fresh, options)
            place(fresh, folder)
    except OSError as error:  # nothing is left in it
        raise OutputError(said("GPU924", "repository", folder=folder, reason=error.strerror or error)) from None
    count = common.counted(len(files) + written, "file")
    say(printable(f"{folder}: {count} written; begin with policies/example.yaml"))
    for line in (*left_alone(folder, kept), *not_committed(folder, [*files, f"{options.out}/example"])):
        say(printable(line))
    return 0


def left_alone(folder: Path, kept: Mapping[str, str]) -> Iterator[str]:
    """What to say of the files that were in FOLDER already, in whose place KEPT would have been written."""
    if "README.md" in kept:
        yield f"README.md stays as it is; {docs('verbs.md#init')} says what ours would have told"
    if ".gitignore" in kept:
        there = set[str]()
        with contextlib.suppress(OSError):  # what is there may be no file
            text = read_regular(folder / ".gitignore").decode("utf-8", "replace")
            there = {line.strip() for line in text.splitlines()}
        lacks = [line for line in kept[".gitignore"].splitlines() if line not in there]
        yield f".gitignore stays as it is{f'; add to it: {chr(32).join(lacks)}' if lacks else ''}"


def not_committed(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """What to say where Git leaves out some of NAMES in FOLDER: a .gitignore that was there already may have dist/."""
    asked = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", *names]
    try:
        done = git.start(asked, "", "", root=folder)
    except MissingToolError:
        return
    ignored = dict.fromkeys(PurePosixPath(name).parts[0] for name in os.fsdecode(done.stdout).split("\0") if name)
    if done.returncode == 0 and ignored:
        yield f"warning: Git ignores {', '.join(ignored)} here, which is to be committed: mend .gitignore"


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder of the same file system as FOLDER, in which the repository is made: nobody finds half of one."""
    above = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    root = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}new-", dir=above))
    try:
        fresh = root / "made"
        fresh.mkdir()
        yield fresh
    finally:
        shutil.rmtree(root, ignore_errors=True)


def place(fresh: Path, folder: Path) -> None:
    """Put what is in FRESH into FOLDER, in one step where that isn't there; where somebody puts something there in the
    meantime, or the disk is full, it is as before."""
    if not os.path.lexists(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh.rename(folder)
        return
    done: list[Path] = []
    try:
        for path in sorted(fresh.rglob("*")):
            target = folder / path.relative_to(fresh)
            if path.is_dir():
                if not target.is_dir():
                    target.mkdir()
                    done.append(target)
            else:
                with target.open("xb"):
                    done.append(target)
                path.replace(target)
    except OSError:
        for target in reversed(done):
            with contextlib.suppress(OSError):
                target.rmdir() if target.is_dir() else target.unlink()
        raise


def render(folder: Path, options: argparse.Namespace) -> int:
    """Render the new policies of FOLDER; returns how many files that are, the index of each cluster included."""
    root = folder.resolve()
    with contextlib.chdir(root), common.store(options) as store:  # the work tree is the new folder, not where it lies
        project = fleet.Project(root, root / options.out, store, options.jobs, options.today)
        outcome = fleet.render(project, policy_files(root / common.POLICIES, common.POLICIES), prune=False)
    return sum(len(change.written) + 1 for change in outcome.changes)


def made(ci: str) -> dict[str, tuple[str, int]]:
    """The files of a new repository by their paths: text, and mode."""
    from ..policy.help import schema
    from .schema import TARGET

    files: dict[str, tuple[str, int]] = {}
    for root in (TEMPLATES / part for part in ("common", ci) if part != "none"):
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            name = re.sub(r"(^|/)dot-", r"\1.", path.relative_to(root).as_posix()).removesuffix(".in")
            text = filled(path.read_text(encoding="utf-8"))
            if name.endswith(MORE):
                text = files[name.removesuffix(MORE)][0] + text
            files[name.removesuffix(MORE)] = (text, 0o755 if text.startswith("#!") else 0o644)
    files[TARGET] = (schema.text(), 0o644)
    return files


def filled(text: str) -> str:
    """TEXT with the versions in it."""
    known = {"VERSION": __version__, "RELEASE": latest()}
    if "@PINS@" in text:
        known["PINS"] = pins()
    for name, value in known.items():
        text = text.replace(f"@{name}@", value)
    return text


def pins() -> str:
    """What this gpustack needs, each package with the hashes of its files, as it was tested. Raises MissingToolError
    where the file that says so is gone: a part of the installation is missing."""
    package = Path(__file__).resolve().parents[1]
    for root in (package, package.parent):  # installed, and in a clone
        path = root / "requirements" / "runtime.txt"
        if path.is_file():
            return path.read_text(encoding="utf-8").rstrip("\n")
    raise MissingToolError(said("GPU908"))


def refuse_existing(folder: Path, files: dict[str, tuple[str, int]]) -> None:
    """Refuse to write over anything, and to set up a second repository around policies."""
    there = [name for name in ("dist", common.POLICIES, *files) if os.path.lexists(folder / name)]
    steps = {str(above) for name in files for above in PurePosixPath(name).parents if above.name}
    ways = ((name, folder / name) for name in sorted(steps) if name not in there and os.path.lexists(folder / name))
    there += [name for name, path in ways if path.is_symlink() or not path.is_dir()]  # where a folder goes
    if there or (os.path.lexists(folder) and not folder.is_dir()):
        what = f"{folder} has {', '.join(there[:6])} already" if there else f"{folder} is not a folder"
        raise InputError(said("GPU970", what=what))
