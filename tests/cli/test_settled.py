"""What diff doesn't look at file by file: clusters that are as they were rendered, and nobody who is anything else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import lists, sampled_from

from gpustack.cli.trees.repository import CONVERTED, Git, tree_name
from gpustack.cli.trees.settled import Settling
from tests.cli.test_foreign import ENGINE, a_file, git, merged
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
    monkeypatch.setattr(Git, "may_convert", lambda *_: True)
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
        assert Git("", "", tmp_path).may_convert(["a"], [])
