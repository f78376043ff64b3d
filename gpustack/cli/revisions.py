"""Files of a Git revision, without touching the work tree: what `gpustack diff` compares with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..model import Finding, InputError, MissingToolError


def revision_remedy(said: str) -> str:
    """What to do where Git can't compare, by what it SAID."""
    if NOWHERE in said:
        return "run it in a clone; in a new folder, `git init` and a first commit give something to compare with"
    if "safe.directory" in said:
        return "the clone is another user's: git config --global --add safe.directory, with the folder that Git names"
    return "give a branch, tag or commit that this clone has"


NOWHERE = "not a git repository"
"""What Git says, in English, where there is no repository."""
MISSING = ("Needed a single revision", "unknown revision", "bad revision", "ambiguous argument")
"""What Git says, in English, of a revision that the clone doesn't have."""


def start(
    words: Sequence[str], why: str, remedy: str, given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """What Git does with WORDS and GIVEN on its standard input, in FOLDER. File names in WORDS are no patterns, and Git
    speaks English.

    Raises MissingToolError, with WHY and REMEDY, where there is no Git.
    """
    there = ["-C", str(folder)] if folder else []
    command = ["git", *there, "--literal-pathspecs", "--no-pager", *words]
    try:
        return subprocess.run(command, input=given, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError as error:
        finding = Finding("GPU029", "error", "git is not on the PATH", why=why, remedy=remedy)
        raise MissingToolError(finding) from error


def answer(done: subprocess.CompletedProcess[bytes], what: str, reference: str = "", folder: Path | None = None) -> str:
    """What Git has answered. Raises InputError, which begins with WHAT and goes on with what Git said against it, or
    says that the clone in FOLDER has no REFERENCE, where that is it.
    """
    if done.returncode:
        said = " ".join(os.fsdecode(done.stderr).split()) or f"it fails with exit code {done.returncode}"
        if reference and any(words in said for words in MISSING):
            raise InputError(no_such_revision(reference, folder))
        raise InputError(Finding("GPU022", "error", f"{what}: {said}", remedy=revision_remedy(said)))
    return os.fsdecode(done.stdout)


def no_such_revision(reference: str, folder: Path | None) -> Finding:
    """The finding for a REFERENCE that the clone in FOLDER doesn't have, with those that it has."""
    from ..catalog._lookup import nearest

    words = [
        "for-each-ref",
        "--sort=-committerdate",
        "--format=%(refname:short)",
        "refs/heads",
        "refs/remotes",
        "refs/tags",
    ]
    listed = start(words, "", "", folder=folder)
    known = [name for name in os.fsdecode(listed.stdout).split() if not name.endswith("/HEAD") and name != "origin"]
    ends = [name.rpartition("/")[2] for name in known]  # what is called main here may be origin/main there
    alike = nearest(reference.rpartition("/")[2], dict.fromkeys(ends))
    near = [name for end in alike for name in known if name.rpartition("/")[2] == end][:3]
    remedy = (
        "fetch it (`git fetch origin`; clones in CI often have one branch and little history, so fetch all of it there)"
    )
    if near:
        remedy = f"did you mean {' or '.join(near)}? Otherwise {remedy}"
    elif known:
        remedy += f", or give what there is, such as {', '.join(known[:3])}"
    else:
        remedy = "make a first commit; it gives something to compare with"
    return Finding("GPU022", "error", f"this clone has no revision {reference!r}", remedy=remedy)


def refuse_option(reference: str) -> None:
    """Refuse a REFERENCE that Git would take for an option, or for none at all."""
    if not reference or reference.startswith("-"):
        what = f"{reference!r} is not a Git revision"
        raise InputError(Finding("GPU022", "error", what, remedy="give a branch, tag or commit"))


class Git:
    """The repository that `folder`, else the current one, is in; GIT_DIR, by which Git tells a hook where, comes first.
    `why` tells what Git is asked for, where it is missing.
    """

    def __init__(self, why: str, remedy: str, folder: Path | None = None) -> None:
        self._why, self._remedy = why, remedy
        self._folder = None if os.environ.get("GIT_DIR") else folder
        self.prefix = self.ask("rev-parse", "--show-prefix").rstrip("\n")

    def ask(self, *words: str, about: str = "") -> str:
        """What Git answers to WORDS. Raises InputError with what it says; ABOUT is the revision that was asked for."""
        return answer(self._run(words), f"git can't read {about!r}" if about else "git", about, self._folder)

    def _run(self, words: Sequence[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return start(words, self._why, self._remedy, given, self._folder)

    def base(self, reference: str) -> str:
        """The commit from which the work tree departed from REFERENCE: what a pull request is compared with.

        Where the two share no history, REFERENCE itself.
        """
        refuse_option(reference)
        commit = self.ask("rev-parse", "--verify", f"{reference}^{{commit}}", about=reference).strip()
        merged = self._run(["merge-base", commit, "HEAD"])
        return os.fsdecode(merged.stdout).strip() if merged.returncode == 0 else commit

    def files(self, commit: str, folder: str) -> dict[str, str]:
        """The blobs of the regular files below FOLDER at COMMIT, by their paths from the current folder."""
        where = f"{self.prefix}{folder}"
        listed = self.ask("ls-tree", "-r", "-z", "--full-tree", commit, "--", where, about=commit)
        found = {}
        for line in filter(None, listed.split("\0")):
            head, _, path = line.partition("\t")
            mode, _, blob = head.split()
            if mode.startswith("100"):
                found[path.removeprefix(self.prefix)] = blob
        return found

    def unstaged(self, folder: str) -> dict[str, bool]:
        """The files below FOLDER that are not as they are staged, by their paths from the current folder, and whether
        Git knows them at all.
        """
        lines = self.ask("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", folder)
        return {line[3:].removeprefix(self.prefix): line[:2] != "??" for line in lines.split("\0") if line[1:2].strip()}

    def tracked(self, folder: str) -> list[str]:
        """The files below FOLDER, an absolute path, that are in the index; absolute paths."""
        here = os.path.abspath(self._folder or ".")
        listed = self.ask("ls-files", "-z", "--", folder).split("\0")
        return [os.path.join(here, name) for name in listed if name]  # noqa: PTH118 - as Git writes it

    def contents(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each of BLOBS with its content."""
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return
        done = self._run(["cat-file", "--batch", "--buffer"], "".join(f"{blob}\n" for blob in wanted).encode())
        data, position = done.stdout, 0
        for blob in wanted:
            end = data.find(b"\n", position)
            head = data[position:end].split()
            if end < 0 or len(head) != 3:  # a clone without blobs that can't reach where they are, or a broken one
                said = " ".join(os.fsdecode(done.stderr).split()) or "it is missing"
                what = f"git can't read the content {blob[:10]}: {said}"
                raise InputError(Finding("GPU022", "error", what, remedy="fetch it, or clone without --filter"))
            size = int(head[2])
            yield blob, data[end + 1 : end + 1 + size]
            position = end + size + 2

    def extract(self, blobs: Mapping[str, str], into: Path) -> None:
        """Write BLOBS, by their paths, into the folder INTO."""
        content = dict(self.contents(blobs.values()))
        for path, blob in blobs.items():
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content[blob])
