"""What diff doesn't look at file by file: clusters that are as they were rendered, and nobody who is anything else."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import lists, sampled_from

from gpustack.cli.trees import settled as room
from gpustack.cli.trees.attributes import CONVERTED, may_convert
from gpustack.cli.trees.repository import Git, tree_name
from gpustack.cli.trees.settled import Settling
from tests.cli.test_foreign import BINDING, ENGINE, a_file, git, merged
from tests.project import Project

__all__ = ["merged"]

Settled = list[set[str]]
Act = Callable[[Project], object]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Settled:
    """The clusters that were settled, run by run."""
    found: Settled = []
    settle = Settling.settle

    def spied(self: Settling, *given: object) -> object:
        done = settle(self, *given)  # type: ignore[arg-type]
        found.append({*self.settled})
        return done

    monkeypatch.setattr(Settling, "settle", spied)
    return found


@pytest.mark.parametrize("how", ["sha1", "sha256"])
def test_a_folder_is_called_as_git_calls_it(tmp_path: Path, how: str) -> None:
    """Folders sort as Git sorts them, behind files whose names go on with a dot or a dash, by either algorithm."""
    files = {"b/c.yaml": b"1", "b.yaml": b"2", "b-c/d.yaml": b"3", "a": b"", "b/d/e": b"4", "b0": b"5"}
    git(tmp_path, "init", "-q", f"--object-format={how}")
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    git(tmp_path, "add", "-A")
    assert tree_name(how, files) == git(tmp_path, "write-tree")


def anew(project: Project) -> None:
    """The policy says something else, by which files change, come, and go with the namespace's name."""
    project.policy("one", gitops=ENGINE, cluster={"kubernetesVersion": "1.34", "namespace": "nvidia"})


def rendered(project: Project) -> None:
    """The same, and it is rendered."""
    anew(project)
    assert project.run("render").code == 0


def staged(project: Project) -> None:
    """The same, and it is in the index."""
    rendered(project)
    git(project.folder, "add", "-A")


def committed(project: Project) -> None:
    """The same, and it is committed."""
    staged(project)
    git(project.folder, "commit", "-qm", "anew")


@pytest.mark.parametrize("act", [lambda _: None, anew, rendered, staged, committed])
def test_what_is_as_rendered_is_settled(
    merged: Project, settled: Settled, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    """A cluster whose files are those of the base or those of now is settled, and the same is said as of its files."""
    act(merged)
    base = "HEAD~1" if act is committed else "HEAD"
    short = merged.run("diff", "--base", base, "--format", "json")
    monkeypatch.setattr(room, "may_convert", lambda *_: True)
    assert merged.run("diff", "--base", base, "--format", "json") == short
    assert settled == [{"one"}, set()]
    assert "IMP001" not in short.out


def touch(path: str, change: Callable[[Path], object]) -> Act:
    """Does CHANGE to the file PATH of dist/."""
    return lambda project: change(project.dist / path)


FILE = f"one/{a_file(Project(Path(), Path()))}"


def more(path: Path) -> None:
    path.write_text(path.read_text() + "# more\n")


def behind_the_back(flag: str) -> Act:
    """Another content in a file that Git is told not to look at."""

    def act(project: Project) -> None:
        git(project.folder, "update-index", flag, f"dist/{FILE}")
        more(project.dist / FILE)

    return act


def in_the_index(project: Project) -> None:
    """Another content in the index alone."""
    good = (project.dist / FILE).read_text()
    more(project.dist / FILE)
    git(project.folder, "add", "-A")
    project.write(f"dist/{FILE}", good)


def in_the_index_alone(project: Project, path: str, text: str) -> None:
    """Attributes that are staged and gone from the work tree."""
    project.write(path, text)
    git(project.folder, "add", "-Af")
    (project.folder / path).unlink()


def gone_and_ignored(project: Project) -> None:
    """A file is taken out of the index, and another stands in its place that Git is told to ignore."""
    git(project.folder, "rm", "-q", "--cached", f"dist/{FILE}")
    project.write(".gitignore", "dist/\n")
    more(project.dist / FILE)


def a_link(path: Path) -> None:
    path.rename(path.parents[3] / "elsewhere")
    path.symlink_to("../../../elsewhere")


def a_folder_link(path: Path) -> None:
    path.rename(path.parents[1] / "elsewhere")
    path.symlink_to("../elsewhere")


@pytest.mark.parametrize(
    "act",
    [
        touch(FILE, more),
        touch(FILE, lambda path: path.chmod(0o755)),
        touch(FILE, Path.unlink),
        touch(FILE, a_link),
        touch("one", a_folder_link),
        touch("one", shutil.rmtree),
        touch("one/operands/zz.yaml", lambda path: path.write_text("a: b\n")),
        touch("one/operands/empty", Path.mkdir),
        touch("one/.gitattributes", lambda path: path.write_text("* ident\n")),
        touch(".gitops/argocd/one/zz.yaml", lambda path: path.write_text("a: b\n")),
        touch(".gitops/argocd/one/pipe", os.mkfifo),
        touch(".gitops/other/one", lambda path: path.mkdir(parents=True)),
        touch(".index/one.json", more),
        touch(".index/one.json", lambda path: path.chmod(0o755)),
        touch("ONE", Path.mkdir),
        touch(f"{FILE.replace('/', chr(0xFF0F))}", lambda path: path.write_text("a: b\n")),
        touch(".GitOps", Path.mkdir),
        behind_the_back("--assume-unchanged"),
        behind_the_back("--skip-worktree"),
        in_the_index,
        gone_and_ignored,
        lambda project: project.write(".gitattributes", "*.yaml eol=crlf\n"),
        lambda project: project.write("dist/.gitattributes", "* filter=x\n"),
        lambda project: project.write(".git/info/attributes", "* ident\n"),
        lambda project: in_the_index_alone(project, ".gitattributes", "* ident\n"),
        lambda project: in_the_index_alone(project, "dist/.gitattributes", "* ident\n"),
        lambda project: git(project.folder, "config", "core.autocrlf", "true"),
    ],
)
@pytest.mark.parametrize("before", [lambda _: None, rendered])
def test_what_is_anything_else_is_looked_at(merged: Project, settled: Settled, act: Act, before: Act) -> None:
    """Whatever else is in a cluster's folder, its engine's or the index, is missing, or has a name like theirs."""
    before(merged)
    act(merged)
    merged.run("diff")
    assert settled == [set()]


def test_what_was_merged_and_not_rendered(merged: Project, settled: Settled) -> None:
    """A file of the base that its policy did not render to is compared; the other cluster is settled all the same."""
    gitops = {**ENGINE, "argocd": {"destination": {"name": "two"}}}
    merged.policy("two", gitops=gitops)
    assert merged.run("render").code == 0
    more(merged.dist / FILE)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "two")
    assert merged.run("diff").code == 1
    assert settled == [{"two"}]


INIT = Path("gpustack/cli/templates/common/dot-gitattributes").read_text()
"""What `gpustack init` writes."""


@pytest.mark.parametrize("line", [INIT, "*.yaml -text\n", "# x filter=y\n\n * text eol=lf linguist-generated -diff\n"])
def test_attributes_that_keep_contents(merged: Project, settled: Settled, line: str) -> None:
    """Where no attribute makes something else of a file, clusters are settled."""
    merged.write(".gitattributes", line)
    merged.run("diff")
    assert settled == [{"one"}]


@pytest.mark.parametrize(
    "line",
    [
        "* text ident",
        "*\tworking-tree-encoding=UTF-16",
        "* text eol=crlf",
        "[attr]text filter=x",
        "[attr]ours text\n* ours",
        '"a b" filter=x',
        "\v#x filter=y",
        "a\r#b filter=x",
        "\ufeff* filter=x",
        "* text\0\n* filter=x",
    ],
)
def test_attributes_that_may_convert(merged: Project, settled: Settled, line: str) -> None:
    """Where a word may make something else of a file, however it is written, nothing is settled."""
    merged.write(".gitattributes", f"* text=auto\n{line}\n")
    merged.run("diff")
    assert settled == [set()]


PIECES = [*' \t\r\v\f\0\n\n\n*#"\\-!=', "\ufeff", "*", "* ", " ", "[attr]", "ours", "text", "binary", "a"]
PIECES += [
    " filter=x",
    "filter",
    "ident",
    " ident",
    "eol=crlf",
    " eol=lf",
    "text=auto",
    "working-tree-encoding=UTF-16",
    "-text",
    "\n* ",
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lists(sampled_from(PIECES), max_size=12).map("".join))
def test_attributes_are_as_git_reads_them(tmp_path: Path, text: str) -> None:
    """However a file of attributes is written: where Git gives anything one that converts, a word of it is seen."""
    if not (tmp_path / ".git").exists():
        git(tmp_path, "init", "-q")
    (tmp_path / ".gitattributes").write_text(text, newline="")
    names = (*CONVERTED, "eol", "crlf")
    said = git(tmp_path, "check-attr", *names, "--", "a", "#x", "a b", "\v#x", "ours", '"a')
    converts = any(line.rpartition(": ")[2] not in {"unspecified", "unset", "lf"} for line in said.splitlines())
    if converts:
        assert may_convert(Git("", "", tmp_path), ["a"], {})


def rules(project: Project, base: str = "HEAD") -> set[tuple[str, str]]:
    """The rules by which a change can't be accepted, with their places."""
    told = project.run("diff", "--base", base, "--format", "json").json["impact"]
    return {(effect["rule"], effect["where"]) for effect in told if effect["tier"] == 0}


def pointing(entry: bytes, content: bytes) -> bytes:
    """The raw tree CONTENT with the end of an ENTRY, its name and blob, in the place of what has the name there."""
    start = content.index(entry[:-20])
    return content[:start] + entry + content[start + len(entry) :]


def rewritten(project: Project, folder: str, change: Callable[[bytes], bytes]) -> None:
    """Commit what is committed, with the raw tree of FOLDER as CHANGE makes it, as no program of Git's writes it."""

    def raw(*words: str, given: bytes = b"") -> bytes:
        return subprocess.run(["git", *words], cwd=project.folder, check=True, capture_output=True, input=given).stdout

    steps = folder.split("/") if folder else []
    while True:
        content = change(raw("cat-file", "tree", f"HEAD:{'/'.join(steps)}"))
        made = raw("hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=content).decode().strip()
        if not steps:
            break
        entry, blob = f" {steps.pop()}\0".encode(), bytes.fromhex(made)
        change = functools.partial(pointing, entry + blob)
    git(project.folder, "update-ref", "HEAD", git(project.folder, "commit-tree", made, "-p", "HEAD", "-m", "odd"))


@pytest.mark.parametrize("mode", ["40755", "040000"])
@pytest.mark.parametrize("path", ["dist", "dist/one", "dist/one/operands", "dist/.gitops", "dist/.gitops/argocd/one"])
def test_folders_with_a_mode_that_git_forgives(merged: Project, path: str, mode: str) -> None:
    """A tree of the base with a mode that Git takes for a folder's is a folder: what a change deletes of it is told."""
    folder, _, name = path.rpartition("/")
    old, new = (f"{each} {name}\0".encode() for each in ("40000", mode))
    rewritten(merged, folder, lambda content: content.replace(old, new))
    shutil.rmtree(merged.folder / path)
    git(merged.folder, "add", "-A")
    assert "IMP001" in {rule for rule, _ in rules(merged)}


def test_what_leads_out_is_refused(merged: Project, tmp_path: Path) -> None:
    """Nothing is written for a base with an entry that leads out of its folder."""
    merged.write("schemas/crds/x/y/evil", "a: b\n")
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "brought")
    rewritten(merged, "schemas/crds", lambda content: content.replace(b"40000 x\0", b"40000 ..\0"))
    ran = merged.run("diff")
    assert (ran.code, "GPU022" in ran.err) == (4, True)


@pytest.mark.parametrize("first", [True, False])
def test_two_folders_of_one_name(merged: Project, settled: Settled, first: bool) -> None:
    """Of two folders in the base that have a cluster's name none is believed: what is in the other one is shown."""
    merged.write("x/binding.yaml", BINDING)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "x")
    other = b"40000 one\0" + bytes.fromhex(git(merged.folder, "rev-parse", "HEAD:x"))

    def doubled(content: bytes) -> bytes:
        start = content.index(b"40000 one\0")
        end = start + len(other)
        return content[:start] + (other + content[start:end] if first else content[start:end] + other) + content[end:]

    rewritten(merged, "dist", doubled)
    ran = merged.run("diff")
    assert settled == [set()]
    assert "everybody" in ran.out


@pytest.mark.parametrize("before", [True, False])
def test_an_engine_that_comes_or_goes(merged: Project, before: bool) -> None:
    """What is rendered for an engine that a policy names anew, or no longer, is no stray; what is left empty is one."""
    for has_one in (before, not before):
        sections: dict[str, Any] = {"gitops": ENGINE} if has_one else {}
        merged.policy("one", **sections)
        assert merged.run("render").code == 0
        git(merged.folder, "add", "-A")
        git(merged.folder, "commit", "-qm", "x", "--allow-empty")
    assert rules(merged, "HEAD~1") == set()
    if before:
        (merged.dist / ".gitops/argocd").mkdir(parents=True, exist_ok=True)
        assert "IMP001" in {rule for rule, _ in rules(merged, "HEAD~1")}


@pytest.mark.parametrize("count", [1, 700])
def test_many_attributes(merged: Project, settled: Settled, count: int) -> None:
    """However many files of attributes there are, and however long: Git is asked what it can be asked."""
    deep = "/".join(["d" * 200] * 17)
    blob = git(merged.folder, "hash-object", "-w", "--stdin")
    entries = "".join(f"100644 {blob}\ttools/{deep}/{at}/.gitattributes\n" for at in range(count))
    words = ["git", "update-index", "--index-info"]
    subprocess.run(words, cwd=merged.folder, check=True, input=entries.encode(), capture_output=True)
    merged.write(".gitattributes", "* text\n" * (1 if count > 1 else 20_000))
    assert merged.run("diff").code == 1
    assert settled == [set()]


@pytest.mark.parametrize(
    "act", [lambda path: path.write_text(path.read_text().replace("\n", "\r\n")), lambda path: path.chmod(0o655)]
)
def test_what_git_forgives_is_read(merged: Project, settled: Settled, act: Callable[[Path], object]) -> None:
    """Where Git takes a file for what is merged, and the policy renders to another, it is read all the same."""
    merged.write(".gitattributes", INIT)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "attributes")
    time.sleep(1.1)
    act(merged.dist / FILE)
    git(merged.folder, "add", "-A")
    git(merged.folder, "update-index", "-q", "--refresh")
    anew(merged)
    assert ("IMP001", f"dist/{FILE}") in rules(merged)
    assert settled == [set()]


@pytest.mark.parametrize("value", ["true", "yes", "on", "1", None, "false", "input"])
def test_line_ends_of_the_clone(merged: Project, settled: Settled, value: str | None) -> None:
    """However core.autocrlf says yes, files that are checked out are others than are committed."""
    config = merged.folder / ".git/config"
    config.write_text(config.read_text() + f"[core]\n\tautocrlf{'' if value is None else f' = {value}'}\n")
    merged.run("diff")
    assert settled == [{"one"} if value in {"false", "input"} else set()]
