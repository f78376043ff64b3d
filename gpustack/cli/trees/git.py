"""The one place that starts Git; what it is asked stands in repository.py.

Solves: Git obeys files. A folder that looks like a bare repository brings its own configuration, by which Git runs
programs; so do hooks, a file system monitor, and the filters and converters that .gitattributes names. A pull request
can bring all of these but the clone's own .git/config. So Git runs at the project's root only, under options that
switch all of it off, and is never asked to look into files of the work tree.

Git's variables are taken out of its environment, all but the index of a hook, where `git commit -a` has put what is
about to be committed.
"""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...model import InputError, MissingToolError
from ...text import programs
from ..refusals import refusal

SECONDS = 120.0
"""How long Git may take. A clone without blobs fetches what it lacks, a few megabytes."""

SAFE = (
    *("safe.bareRepository=explicit", "core.fsmonitor=false", f"core.hooksPath={os.devnull}"),
    *(f"core.attributesFile={os.devnull}", "submodule.recurse=false", "fetch.recurseSubmodules=false"),
    *("protocol.ext.allow=never", "maintenance.auto=false", "gc.auto=0"),
    *("core.trustctime=true", "core.checkStat=default", "core.fileMode=true", "core.symlinks=true"),
)
"""What Git is told whatever any configuration says."""
FIXED = {
    "LC_ALL": "C",  # what it says is read
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_INDEX_FILE")
"""Variables of Git that stay where they lead to a file outside of the work tree, or into its .git."""
HOMES = ("HOME", "XDG_CONFIG_HOME")
"""Where Git looks for the configuration of the user."""
Done = subprocess.CompletedProcess[bytes]


NOWHERE = "not a git repository"
"""What Git says, in English, where there is no repository."""
REFUSED = {NOWHERE: "nowhere", "safe.directory": "another's", "user.email": "nobody", "": "refused"}
"""The case of our own texts for what Git says."""
MISSING = ("Needed a single revision", "unknown revision", "bad revision", "ambiguous argument")
"""What Git says, in English, of a revision that the clone doesn't have."""


def start(words: Sequence[str], why: str, remedy: str, given: bytes = b"", root: Path | None = None) -> Done:
    """What Git does with WORDS and GIVEN on its standard input in ROOT, a project's root (default: the current folder).
    File names in WORDS are not patterns, and Git speaks English.

    Raises MissingToolError, with WHY and REMEDY, where there is no Git, and InputError where it doesn't come to an end,
    or the root is made to look like a repository of its own."""
    root = Path(os.path.abspath(root or Path.cwd()))
    refuse_bare(root)
    program = programs.find("git")
    if program is None:
        raise MissingToolError.of("GPU029", "git is not on the PATH", why=why, remedy=remedy)
    options = [word for setting in SAFE for word in ("-c", setting)]
    command = [program, *options, "--literal-pathspecs", "--no-pager", "--no-replace-objects", *words]
    try:
        with tempfile.TemporaryFile() as out:  # megabytes of names, which a pipe has in thousands of pieces
            done = subprocess.run(
                command,
                input=given,
                stdout=out,
                stderr=subprocess.PIPE,
                check=False,
                cwd=root,
                env=environment(root),
                timeout=SECONDS,
            )
            out.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, out.read(), done.stderr)
    except subprocess.TimeoutExpired:
        raise refusal("GPU022", "slow", command=words[0], seconds=f"{SECONDS:.0f}") from None


def environment(root: Path) -> dict[str, str]:
    """The variables that Git gets in ROOT."""
    known = os.environ
    made = {**programs.environment(known), **FIXED}
    if any(programs.of_work_tree(known[name], root) for name in HOMES if known.get(name)):
        made["GIT_CONFIG_GLOBAL"] = os.devnull  # a .gitconfig of the work tree would be the user's
    for name in KEPT:
        value = os.path.join(root, known.get(name) or os.devnull)  # noqa: PTH118 - as Git reads it
        ours = f"{os.sep}.git{os.sep}" in value if name == "GIT_INDEX_FILE" else not programs.of_work_tree(value, root)
        if known.get(name) and ours:
            made.setdefault(name, known[name])
    return made


def refuse_bare(root: Path) -> None:
    """Raise InputError where ROOT, or a folder between it and its clone's top, has what makes Git take it for a bare
    repository: a Git before 2.38 would obey the configuration in it."""
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
            raise refusal("GPU022", "bare", folder=folder)


def answer(done: Done, what: str = "git", reference: str = "", root: Path | None = None) -> str:
    """What Git has answered. Raises InputError, which begins with WHAT and goes on with what Git said against it, or
    says that the clone in ROOT has no REFERENCE, where that is it."""
    if done.returncode:
        what = f"git can't read {reference!r}" if reference else what
        told = " ".join(os.fsdecode(done.stderr).split()) or f"it fails with exit code {done.returncode}"
        if reference and any(words in told for words in MISSING):
            raise no_such_revision(reference, root)
        raise refusal("GPU022", next(case for words, case in REFUSED.items() if words in told), what=what, said=told)
    return os.fsdecode(done.stdout)


def no_such_revision(reference: str, root: Path | None) -> InputError:
    """The error for a REFERENCE that the clone in ROOT doesn't have, with those that it has."""
    from ...catalog._lookup import nearest

    order, shape = "--sort=-committerdate", "--format=%(refname:short)"
    listed = start(["for-each-ref", order, shape, "refs/heads", "refs/remotes", "refs/tags"], "", "", root=root)
    known = [name for name in os.fsdecode(listed.stdout).split() if not name.endswith("/HEAD") and name != "origin"]
    ends = [name.rpartition("/")[2] for name in known]  # what is called main here may be origin/main there
    alike = nearest(reference.rpartition("/")[2], dict.fromkeys(ends))
    near = [name for end in alike for name in known if name.rpartition("/")[2] == end][:3]
    words = {"reference": repr(reference), "near": " or ".join(near), "known": ", ".join(known[:3])}
    return refusal("GPU022", "near" if near else "other" if known else "no commit", **words)
