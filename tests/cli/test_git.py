"""Git runs at the project's root, whatever lies in it: hostile repositories, and what they get to run (nothing)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpustack.cli.trees import git as git_
from gpustack.model import InputError
from tests.project import Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
TARGET = "oci://r.example.com/gpu/one:v1"
VERBS = (
    ("diff",),
    ("check", "--staged"),
    ("render", "--staged"),
    ("render", "--changed-since", "HEAD"),
    ("report", "--base", "HEAD", "--file", "-"),
    ("push", TARGET, "--dry-run"),
)


def git(folder: Path, *words: str) -> str:
    """Run Git in FOLDER."""
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}
    )
    return done.stdout.strip()


@pytest.fixture
def committed(project: Project) -> Project:
    """A project with one rendered cluster, all of it committed."""
    project.policy("one")
    assert project.run("render").code == 0
    git(project.folder, "init", "-q")
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-qm", "one")
    return project


def bare(folder: Path, command: str) -> None:
    """Make FOLDER what Git takes for a bare repository, whose configuration runs COMMAND."""
    for name in ("objects/keep", "refs/keep"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    worktree = "repositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
    (folder / "config").write_text(f'[core]\n\t{worktree}\tfsmonitor = "{command}; false"\n\tpager = "{command}"\n')


def in_the_clusters_folder(project: Project, command: str) -> None:
    """The bare repository of the issue: in dist/<cluster>/."""
    bare(project.dist / "one", command)


def in_every_folder(project: Project, command: str) -> None:
    """A bare repository in the root and in each folder that a verb may go to."""
    for name in (".", "dist", "dist/one", "dist/.index", "policies"):
        bare(project.folder / name, command)


def in_attributes(project: Project, command: str) -> None:
    """Filters, converters and drivers for every file, which .git/config knows: as after `git lfs install`."""
    project.write(".gitattributes", "* filter=x diff=x merge=x text=auto ident\n")
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.command", "diff.x.textconv"):
        git(project.folder, "config", key, f"{command}; cat")
    git(project.folder, "config", "diff.external", command)
    for path in project.dist.rglob("*.yaml"):
        os.utime(path, (1, 1))


def by_hooks(project: Project, command: str) -> None:
    """Hooks in the work tree, and a monitor, that .git/config names relative to it."""
    git(project.folder, "config", "core.hooksPath", "hooks")
    git(project.folder, "config", "core.fsmonitor", "hooks/any")
    for name in ("any", "post-index-change", "fsmonitor-watchman", "reference-transaction"):
        project.write(f"hooks/{name}", f"#!/bin/sh\n{command}\n").chmod(0o755)


def as_programs(project: Project, command: str) -> None:
    """Programs in the work tree, of every name that is started."""
    for name in ("git", "kubeconform", "node", "sh", "less", "git-lfs", "docker-credential-x"):
        for folder in (".", "bin", ".tools/bin"):
            project.write(f"{folder}/{name}", f"#!/bin/sh\n{command}\nexit 1\n").chmod(0o755)


def as_home(project: Project, command: str) -> None:
    """A home in the work tree, as where a job's HOME is the clone."""
    project.write(".gitconfig", f'[core]\n\tfsmonitor = "{command}; false"\n[alias]\n\tstatus = "!{command}"\n')


@pytest.mark.parametrize(
    "attack", [in_the_clusters_folder, in_every_folder, in_attributes, by_hooks, as_programs, as_home]
)
def test_nothing_in_the_repository_is_run(
    committed: Project, attack: Callable[[Project, str], None], tmp_path: Path
) -> None:
    """Whatever a pull request adds, and whatever verb looks at it: no command of it runs."""
    proof = tmp_path / "pwned"
    attack(committed, f"touch {proof}")
    git(
        committed.folder,
        "-c",
        "filter.x.process=",
        "-c",
        "filter.x.clean=cat",
        "-c",
        "core.fsmonitor=false",
        "add",
        "-f",
        ".",
    )
    proof.unlink(missing_ok=True)
    home = {"HOME": str(committed.folder), "XDG_CONFIG_HOME": str(committed.folder)} if attack is as_home else {}
    path = f":.:bin:.tools/bin:{os.environ['PATH']}:"
    for verb in VERBS:
        committed.run(*verb, env={**home, "PATH": path})
        assert not proof.exists(), verb


@pytest.mark.parametrize(
    "steering",
    [
        {"GIT_EXTERNAL_DIFF": "touch {}"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "touch {}"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor=touch {}'"},
        {"GIT_DIR": "dist/one", "GIT_WORK_TREE": "."},
        {"GIT_PAGER": "touch {}", "PAGER": "touch {}"},
        {"GIT_EXEC_PATH": "bin"},
        {"GIT_OBJECT_DIRECTORY": "objects"},
        {"GIT_INDEX_FILE": "dist/one/index"},
        {"GIT_CONFIG_GLOBAL": ".gitconfig"},
    ],
)
def test_variables_do_not_steer_git(committed: Project, steering: dict[str, str], tmp_path: Path) -> None:
    """Variables of Git lead it neither to a command nor to another repository, index or configuration."""
    proof = tmp_path / "pwned"
    bare(committed.dist / "one", f"touch {proof}")
    as_home(committed, f"touch {proof}")
    given = {name: value.format(proof) for name, value in steering.items()}
    assert "this clone has no revision 'nosuch'" in committed.run("diff", "--base", "nosuch", env=given).err
    for verb in VERBS:
        committed.run(*verb, env=given)
    assert not proof.exists()


def test_the_index_of_a_hook_counts(committed: Project) -> None:
    """`git commit -a` shows a hook what it commits by an index of its own, in .git: that one is asked."""
    committed.policy("one", validator={"version": "v1"})
    committed.run("render")
    index = committed.folder / ".git/next-index-1.lock"
    index.write_bytes((committed.folder / ".git/index").read_bytes())
    given = {"GIT_INDEX_FILE": str(index)}
    assert committed.run("check", "--staged", env=given).code == 3
    subprocess.run(["git", "add", "-A"], cwd=committed.folder, env={**os.environ, **ENVIRONMENT, **given}, check=True)
    assert committed.run("check", "--staged", env=given).code == 0
    assert committed.run("check", "--staged").code == 3


def test_git_that_does_not_end(committed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Git that waits for something is given up, in words."""
    tool = tmp_path / "bin/git"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setattr(git_, "SECONDS", 0.2)
    ran = committed.run("diff", env={"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"})
    assert (ran.code, "still running" in ran.err) == (4, True)


def test_a_root_that_looks_like_a_repository(tmp_path: Path) -> None:
    """A bare repository between the root and its clone's top is refused before Git, an old one perhaps, is asked."""
    (tmp_path / ".git").mkdir()
    bare(tmp_path, "false")
    bare(tmp_path / "gpu", "false")
    with pytest.raises(InputError, match="looks like a bare repository"):
        git_.start(["status"], "", "", root=tmp_path / "gpu")
    assert git_.start(["--version"], "", "", root=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("shadow", "asked"),
    [
        (("tag", "main"), "main"),
        (("tag", "-a", "-m", "x", "main"), "main~0"),
        (("tag", "origin/main"), "origin/main"),
        (("branch", "origin/main"), "origin/main"),
        (("tag", "side"), "side"),
        (("update-ref", "refs/main", "HEAD"), "main"),
    ],
)
def test_a_base_that_names_two_commits(committed: Project, shadow: tuple[str, ...], asked: str) -> None:
    """A tag or branch that shadows the base is refused with what to give instead; whole names and ids are taken."""
    folder = committed.folder
    git(folder, "branch", "-M", "main")
    for name in ("main", "side"):
        git(folder, "update-ref", f"refs/remotes/origin/{name}", "HEAD")
    old = git(folder, "rev-parse", "HEAD")
    assert committed.run("diff", "--base", asked.replace("side", "origin/side")).code == 0
    git(folder, *shadow)
    assert committed.run("diff", "--base", asked.replace("side", "origin/side")).code == 0, "the same commit"
    git(folder, "checkout", "-q", "-b", "work")
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    if shadow[0] == "update-ref":
        git(folder, *shadow)
    else:
        git(folder, *shadow[:1], "-f", *shadow[1:])
    for verb in (("diff", "--base", asked), ("report", "--base", asked, "--file", "-")):
        ran = committed.run(*verb)
        assert (ran.code, "ambiguous" in ran.err, "refs/" in ran.err) == (4, True, True), ran.err
    for whole in (old, "refs/heads/main", "refs/remotes/origin/main", "HEAD", "HEAD~1"):
        assert committed.run("diff", "--base", whole).code == 0
