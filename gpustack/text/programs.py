"""Which programs are started, and what they are told: nothing that a clone may bring along.

Solves: a folder of the PATH that is written relative to the current one, or left empty, leads into the work tree, where
a pull request puts a program of that name. And a program is steered by more than its words: by files in its home, by
variables. So programs are looked for in the absolute folders of the PATH alone, they get no other PATH, and what lies
in the work tree is nobody's home and no configuration.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_STEERING = ("GIT_", "NODE_", "PYTHON", "LD_", "DYLD_", "BASH_FUNC_")
"""What the names of variables begin with by which somebody makes a program run something else."""
_NAMED = {"BASH_ENV", "ENV", "PAGER", "EDITOR", "VISUAL", "BROWSER", "IFS", "CDPATH", "PERL5OPT", "PERL5LIB", "RUBYOPT"}


def search(path: str | None = None) -> str:
    """PATH, else the environment's, without the folders that depend on where we are."""
    known = os.get_exec_path() if path is None else path.split(os.pathsep)
    return os.pathsep.join(folder for folder in known if os.path.isabs(folder))  # noqa: PTH117 - a str


def find(name: str, path: str | None = None) -> str | None:
    """Where the program NAME is in PATH, else in the environment's PATH; None where it is nowhere that counts."""
    return shutil.which(name, path=search(path)) if name == os.path.basename(name) else None  # noqa: PTH119 - a str


def environment(known: Mapping[str, str]) -> dict[str, str]:
    """KNOWN, for a program that we start: without what would make it run another one, and with our PATH."""
    kept = {
        name: value for name, value in known.items() if name not in _NAMED and not name.upper().startswith(_STEERING)
    }
    return {**kept, "PATH": search(known.get("PATH"))}


def work_tree(start: Path | None = None) -> Path:
    """What a pull request can write to: the clone that START, else the current folder, is in, else the folder."""
    here = Path(os.path.realpath(start or Path.cwd()))
    return next((folder for folder in (here, *here.parents) if os.path.lexists(folder / ".git")), here)


def of_work_tree(path: Path | str, start: Path | None = None) -> bool:
    """Whether PATH, or what it leads to, lies in the work tree that START, else the current folder, is in.

    Nobody's pull request writes to a folder that holds the user's home, and neither a clone nor policies: from there on
    it is asked whether PATH is in a clone."""
    tree = work_tree(start)
    names = {os.path.abspath(path), os.path.realpath(path)}
    names |= {os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name)) for name in names}  # noqa: PTH118, PTH119, PTH120 - strings
    home = os.path.expanduser("~")  # noqa: PTH111 - a user may have none, and then it isn't absolute
    ours = os.path.isabs(home) and _below(os.path.realpath(home), tree)  # noqa: PTH117 - a str
    if ours and not any(os.path.lexists(tree / name) for name in (".git", "policies")):
        return any(os.path.lexists(work_tree(Path(name).parent) / ".git") for name in names)
    return any(_below(name, tree) for name in names)


def _below(name: str, folder: Path) -> bool:
    return f"{name}{os.sep}".startswith(f"{str(folder).rstrip(os.sep)}{os.sep}")
