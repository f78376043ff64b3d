"""The one file that a verb writes where somebody says: replaced as one, and nobody is waited for."""

from __future__ import annotations

import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpustack.cli.saving import save
from gpustack.model import OutputError
from tests.project import Project


def saved(path: Path, text: str = "new\n") -> None:
    """Save TEXT to PATH."""
    save(path, text, "the report", "name another file")


def refusal(path: Path) -> str:
    """Why PATH isn't written."""
    with pytest.raises(OutputError) as caught:
        saved(path)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.remedy) == ("GPU924", "name another file")
    return finding.what


def test_replaced_as_one(tmp_path: Path) -> None:
    """Who has opened the old file goes on reading that; nothing else is left, and who may read it stays."""
    path = tmp_path / "a" / "report.html"
    saved(path, "old\n")
    path.chmod(0o640)
    with path.open(encoding="utf-8") as file:
        saved(path)
        assert file.read() == "old\n"
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("new\n", 0o640)
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_no_room(tmp_path: Path) -> None:
    """On a full disk the old file stays, and no part of a new one does."""
    path = tmp_path / "report.html"
    saved(path, "old\n")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        with pytest.raises(OutputError):
            saved(path, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert path.read_text(encoding="utf-8") == "old\n"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_links(tmp_path: Path) -> None:
    """A link that came with a clone leads nobody to write over a file elsewhere."""
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "report.html"
    elsewhere.write_text("mine\n", encoding="utf-8")
    path.symlink_to(elsewhere)
    saved(path)
    assert (elsewhere.read_text(encoding="utf-8"), path.read_text(encoding="utf-8")) == ("mine\n", "new\n")
    assert not path.is_symlink()


def test_pipes(tmp_path: Path) -> None:
    """A pipe is written to where somebody reads it, and refused where nobody does."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "can't be written" in refusal(path)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(path.read_text(encoding="utf-8")))
    reader.start()
    while reader.is_alive() and not found:
        try:
            saved(path, "x" * 200_000)  # more than a pipe holds
        except OutputError:
            continue  # the reader isn't there yet
        reader.join(10)
    assert found == ["x" * 200_000]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """Folders, names that are too long and full devices are told with the reason."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "folder" in refusal(tmp_path)
    assert "too long" in refusal(tmp_path / ("x" * 300))
    assert "can't be written" in refusal(tmp_path / "file" / "x")
    assert "can't be written" in refusal(tmp_path / "a\0b")
    if Path("/dev/full").exists():
        assert "No space" in refusal(Path("/dev/full"))


def test_our_own_output(project: Project) -> None:
    """What the system calls our output is written to, also where that is a file: it isn't replaced."""
    if not Path("/dev/stdout").exists():
        pytest.skip("no /dev/stdout")
    done = project.spawn("schema", "--out", "/dev/stdout")
    assert (done.code, done.out[:1]) == (0, "{")
    assert Path("/dev/stdout").is_symlink()


def test_several_at_once(tmp_path: Path) -> None:
    """One of them wins, whole."""
    path, texts = tmp_path / "report.html", [name * 100_000 for name in "abcdefgh"]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda text: saved(path, text), texts))
    assert path.read_text(encoding="utf-8") in texts
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("report", "--file"), "x.html"),
        (("lint", "--report"), "x.xml"),
        (("mig", "show", "one", "--svg"), "x.svg"),
        (("schema", "--out"), "x.json"),
    ],
)
def test_every_verb(project: Project, words: tuple[str, ...], name: str) -> None:
    """Each verb that writes a file saves it so: a pipe that nobody reads holds none of them up."""
    project.policy("one")
    os.mkfifo(project.folder / name)
    ran = project.run(*words, f"junit={name}" if words[0] == "lint" else name)
    assert (ran.code, name in ran.err) == (4, True), ran.err
