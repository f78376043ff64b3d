"""What diff believes Git's index of a work tree: how files look from outside, and nothing that a request writes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpustack.cli.trees.repository import Git
from tests.cli.test_foreign import a_file, git, merged
from tests.project import Project

__all__ = ["merged"]


def told(project: Project) -> dict[str, str]:
    """What diff says isn't rendered, by path."""
    ran = project.run("diff", "--format", "json")
    return {effect["where"]: effect["what"] for effect in ran.json["impact"] if effect["rule"] == "IMP001"}


def rewrite(path: Path) -> None:
    """Another content of the same length in PATH, with the times of before."""
    state, text = path.stat(), path.read_text()
    path.write_text(text.replace("nvidia", "nvidiA"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size


@pytest.mark.parametrize("setting", ["core.trustctime=false", "core.checkStat=minimal", "core.fileMode=false"])
def test_a_file_that_looks_as_before(merged: Project, setting: str) -> None:
    """A file of another content is told though its size and time are those of before, whatever the clone's settings."""
    git(merged.folder, "config", *setting.split("="))
    path = merged.dist / "one" / a_file(merged)
    os.utime(path, (1, 1))
    git(merged.folder, "add", "-A")
    time.sleep(1.1)  # Git counts seconds
    rewrite(path)
    assert [*told(merged)] == [f"dist/one/{a_file(merged)}"]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_is_told_not_to_look_at(merged: Project, flag: str) -> None:
    """A file of another content is told though Git was told not to look at it."""
    path = merged.dist / "one" / a_file(merged)
    git(merged.folder, "update-index", flag, str(path))
    path.write_text(path.read_text() + "# more\n")
    assert [*told(merged)] == [f"dist/one/{a_file(merged)}"]


def test_no_filter_looks_into_files(merged: Project, tmp_path: Path) -> None:
    """Files that Git would look into again, because they are as young as its index, are given to no filter."""
    proof = tmp_path / "proof"
    git(merged.folder, "config", "filter.x.clean", f"touch {proof}; cat")
    merged.write(".gitattributes", "dist/** filter=x\n")
    index = merged.folder / ".git/index"
    os.utime(index, (1, 1))
    assert "Git's attribute filter" in " ".join(told(merged).values())
    assert not proof.exists()
    git(merged.folder, "diff-files", "--raw")
    assert proof.exists()  # Git by itself does


def test_line_ends_that_git_converts(merged: Project) -> None:
    """A file that is checked out with other line ends isn't what is rendered, though Git takes it for unchanged."""
    git(merged.folder, "config", "core.autocrlf", "true")
    path = merged.dist / "one" / a_file(merged)
    path.unlink()
    git(merged.folder, "checkout", "-f", "--", str(path))
    assert b"\r\n" in path.read_bytes()
    assert f"dist/one/{a_file(merged)}" in told(merged)


@pytest.mark.parametrize("below", ["", "gpu/clusters"])
def test_what_is_staged_is_found_by_what_differs(tmp_path: Path, below: str) -> None:
    """Whatever is in the index: new, changed, gone, executable, a link, a submodule, merged, meant to be added."""
    top, root = tmp_path, tmp_path / below
    root.mkdir(parents=True, exist_ok=True)
    git(top, "init", "-q", "-b", "main")
    for name in ("kept", "changed", "gone", "mode", "torn", "renamed", "ä b\nc"):
        (root / name).write_text(name)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    commit = git(top, "rev-parse", "HEAD")
    (root / "changed").write_text("two")
    (root / "gone").unlink()
    (root / "mode").chmod(0o755)
    (root / "renamed").rename(root / "other name")
    (root / "ä b\nc").write_text("two")
    (root / "link").symlink_to("kept")
    git(top, "add", "-A")
    git(top, "update-index", "--add", "--cacheinfo", f"160000,{commit},{below and below + '/'}sub")
    (root / "meant").write_text("later")
    git(root, "add", "-N", "meant")
    found = Git("to compare", "install it", root)
    assert found.staged_beside(found.folders(commit, lambda _: "all"), found.restaged(commit, ".")) == found.staged(".")
    assert found.staged(".")["sub"].mode == "160000"
    git(top, "reset", "-q", "--hard")
    git(top, "checkout", "-qb", "two")
    (root / "torn").write_text("two")
    git(top, "commit", "-qam", "two")
    git(top, "checkout", "-q", "main")
    (root / "torn").write_text("three")
    git(top, "commit", "-qam", "three")
    with pytest.raises(Exception, match="non-zero"):
        git(top, "merge", "-q", "two")
    assert found.staged_beside(found.folders(commit, lambda _: "all"), found.restaged(commit, ".")) == found.staged(".")
    assert not found.staged(".")["torn"].blob
