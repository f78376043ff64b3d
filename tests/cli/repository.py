"""A repository that `init` made, as a site has it: a bare one that people push to, and requests that strangers make.

`Site.judge` runs what the trusted job runs, in a fresh clone of the default branch: its fetch.py and judge.sh.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.project import TODAY, Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *words: str, given: str | bytes = "") -> str:
    """What Git answers in FOLDER."""
    data = given.encode() if isinstance(given, str) else given
    env = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(["git", *words], cwd=folder, env=env, input=data, capture_output=True, check=False)
    assert done.returncode == 0, (words, done.stderr.decode())
    return os.fsdecode(done.stdout).strip()


def ready(project: Project, name: str = "new", ci: str = "github") -> Project:
    """A repository that `init` made, with what must be edited edited, and in Git on the branch main."""
    assert project.run("init", name, "--ci", ci, "--today", TODAY).code == 0
    made = Project(project.folder / name, project.cache)
    for path in (
        made.folder / "requirements.txt",
        *made.folder.glob("CODEOWNERS"),
        *made.folder.glob(".github/CODEOWNERS"),
    ):
        text = path.read_text(encoding="utf-8").replace("<where gpustack comes from: edit this line>", "./gpustack.whl")
        for owner in ("<edit: @your-org/your-team>", "<edit: @your-group/your-team>"):
            text = text.replace(owner, "@gpus/owners")
        path.write_text(text, encoding="utf-8")
    git(made.folder, "init", "-q", "-b", "main")
    commit(made.folder)
    return made


def commit(folder: Path, message: str = "change") -> str:
    """Commit all that is in FOLDER; the commit's id."""
    raw = "* -text !filter !working-tree-encoding\n"  # a stranger's Git does what the stranger wants
    (folder / ".git" / "info" / "attributes").write_text(raw, encoding="utf-8")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Verdict:
    """What the trusted job left of a request."""

    verdict: str
    comment: str
    store: Path


class Site:
    """A site with a repository that `init` made on its branch main."""

    def __init__(self, made: Project, folder: Path) -> None:
        self.made, self.folder = made, folder
        self.bare = folder / "origin.git"
        self.numbers = 0
        git(made.folder, "clone", "-q", "--bare", str(made.folder), str(self.bare))
        git(made.folder, "remote", "add", "origin", self.bare.as_uri())

    def request(self, change: Callable[[Project], str | None]) -> tuple[int, str]:
        """A request that does CHANGE to a work tree of main, or gives a commit's id itself: its number and commit."""
        self.numbers += 1
        work = self.folder / f"work{self.numbers}"
        git(self.folder, "clone", "-q", "--branch", "main", self.bare.as_uri(), str(work))
        made = change(Project(work, self.made.cache)) or commit(work)
        git(work, "push", "-q", "origin", f"{made}:refs/pull/{self.numbers}/head")
        return self.numbers, made

    def merge(self, commit_: str) -> None:
        """Merge COMMIT_ into main, as the button of the site does."""
        work = self.folder / f"merge{commit_[:8]}"
        git(self.folder, "clone", "-q", "--branch", "main", self.bare.as_uri(), str(work))
        git(work, "fetch", "-q", "origin", commit_)
        git(work, "merge", "-q", "--no-ff", "-m", "merge", commit_)
        git(work, "push", "-q", "origin", "HEAD:refs/merged/main")
        git(self.bare, "update-ref", "refs/heads/main", "refs/merged/main")

    def fetch(self, asked: list[tuple[int, str]], there: Path) -> Path:
        """What the trusted job lays out of the requests ASKED, in THERE, beside its clone."""
        git(self.folder, "clone", "-q", "--branch", "main", self.bare.as_uri(), str(there / "clone"))
        (there / "requests").write_text("".join(f"{number} {head}\n" for number, head in asked), encoding="utf-8")
        start(there / "clone", {}, sys.executable, "-I", "ci/fetch.py", "../requests", "../store")
        return there / "store"

    def judge(self, asked: list[tuple[int, str]], name: str = "judge", **env: str) -> dict[int, Verdict]:
        """What the trusted job says of the requests ASKED, with ENV."""
        there = self.folder / name
        there.mkdir()
        store = self.fetch(asked, there)
        start(there / "clone", env, "ci/judge.sh", "../store", sys.prefix, "../report")
        report = there / "report"
        return {
            number: Verdict(
                (report / str(number) / "verdict").read_text(encoding="utf-8").strip(),
                (report / str(number) / "comment.md").read_text(encoding="utf-8"),
                store / str(number),
            )
            for number, _ in asked
        }


def start(folder: Path, env: Mapping[str, str], *words: str) -> None:
    """Run WORDS in FOLDER, which end with 0."""
    env = {**os.environ, **ENVIRONMENT, **env}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
