"""dist/: replaced as one, pruned of our own alone, whatever happens meanwhile."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from gpustack.compiler import dist, folders
from gpustack.compiler.beside import clusters_in
from gpustack.compiler.dist import Rendering, compare, header, left_over, look_of, remove_cluster, sweep, write
from gpustack.compiler.folders import A_FOLDER, locked, look, scan
from gpustack.model import OutputError
from tests.compiler.crash import NEW, OLD, SCENARIOS, rendering
from tests.project import ROOT, tree

FOREIGN = {"c/README.md": b"mine", "c/base/own.yaml": b"kind: Mine\n", "c/deep/er/x.txt": b"x", "other/y.yaml": b"y"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with an older render in it."""
    write(tmp_path / "dist", OLD)
    return tmp_path / "dist"


def add(out: Path, files: dict[str, bytes]) -> None:
    """Put FILES of somebody else into OUT."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)


def visible(out: Path) -> dict[str, bytes]:
    """The cluster's files."""
    return tree(out / "c")


def test_write(tmp_path: Path) -> None:
    """The folder holds just what was rendered, the index beside it says so, and the change lists every file."""
    out = tmp_path / "deep/dist"
    change = write(out, OLD)
    assert visible(out) == OLD.files
    assert (out / ".index/c.json").read_bytes() == OLD.index()
    assert (sorted(change.written), change.removed, change.unchanged) == (sorted(OLD.files), (), 0)
    assert clusters_in(out) == ["c"]


def test_rewrite(out: Path) -> None:
    """Changed and new files are written, those that are gone are removed, the others are the same files as before."""
    same = (out / "c/operands/same.yaml").stat().st_ino
    change = write(out, NEW)
    assert visible(out) == NEW.files
    assert change.written == ("base/a.yaml", "driver/added.yaml")
    assert (change.removed, change.unchanged) == (("base/gone.yaml",), 1)
    assert (out / "c/operands/same.yaml").stat().st_ino == same
    again = write(out, NEW)
    assert (again.any, again.unchanged) == (False, 3)


def test_empty_folders_go(out: Path) -> None:
    """A stage without files is not a folder."""
    write(out, rendering(base__a="1"))
    assert sorted(path.name for path in (out / "c").iterdir()) == ["base"]


def test_files_of_somebody_else(out: Path) -> None:
    """Files, links (also to folders and to nothing) and modes of other people survive in the middle of ours."""
    add(out, FOREIGN)
    (out / "c/link").symlink_to("README.md")
    (out / "c/operands/folder").symlink_to("../deep")
    (out / "c/dangling").symlink_to("/no/such")
    (out / "c/README.md").chmod(0o750)
    write(out, NEW)
    assert {
        **NEW.files,
        **{n.removeprefix("c/"): FOREIGN[n] for n in FOREIGN if n.startswith("c/")},
    }.items() <= visible(out).items()
    links = {name: str((out / "c" / name).readlink()) for name in ("link", "operands/folder", "dangling")}
    assert links == {"link": "README.md", "operands/folder": "../deep", "dangling": "/no/such"}
    assert (out / "c/README.md").stat().st_mode & 0o777 == 0o750
    assert (out / "other/y.yaml").read_bytes() == b"y"


def test_what_is_ours(out: Path) -> None:
    """Ours is what the index lists, whatever was done to it, and YAML that begins with our header, index or not."""
    add(out, {"c/base/gone.yaml": b"edited, without header\n", "c/old/left.yaml": header("x").encode() + b"a: b\n"})
    add(out, {"c/old/left.txt": header("x").encode(), "c/old/quoted.yaml": b"\n" + header("x").encode()})
    change = write(out, NEW)
    assert change.removed == ("base/gone.yaml", "old/left.yaml")
    assert set(visible(out)) == {*NEW.files, "old/left.txt", "old/quoted.yaml"}


@pytest.mark.parametrize(
    "index", [b"", b"{", b"[]", b'"x"', b"{}", b'{"files": 3}', b"\xff\xfe", b"<<<<<<< HEAD\n{}", None]
)
def test_index_that_says_nothing(out: Path, index: bytes | None) -> None:
    """Without an index that can be read, a merge conflict in it perhaps, our headers still tell our files; it is
    written anew."""
    path = out / ".index/c.json"
    path.write_bytes(index) if index is not None else path.unlink()
    write(out, NEW)
    assert visible(out) == NEW.files
    assert path.read_bytes() == NEW.index()


def test_index_never_leads_elsewhere(out: Path) -> None:
    """A list in an index that somebody made up removes nothing outside of the cluster's folder."""
    add(out, {"secret.yaml": b"x", "other/y.yaml": b"y"})
    names = ["../secret.yaml", "../other/y.yaml", "/etc/passwd", "base/../../secret.yaml"]
    (out / ".index/c.json").write_text(json.dumps({"files": dict.fromkeys(names, "")}))
    assert write(out, NEW).removed == ("base/gone.yaml",)
    assert remove_cluster(out, "c").removed == tuple(sorted(NEW.files))
    assert {name: content for name, content in tree(out).items() if not name.startswith(".")} == {
        "secret.yaml": b"x",
        "other/y.yaml": b"y",
    }


@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_folder_that_is_none(tmp_path: Path, kind: str) -> None:
    """A cluster's folder that is a link or a file is refused, for writing and for removing: what it leads to is
    somebody else's."""
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, OLD)
    out = tmp_path / "dist"
    write(out, OLD)
    for path in sorted((out / "c").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (out / "c").rmdir()
    if kind == "file":
        (out / "c").write_text("x")
    else:
        (out / "c").symlink_to(elsewhere / "c" if kind == "link" else "/no/such")
    before = tree(elsewhere)
    with pytest.raises(OutputError, match="is not a folder"):
        write(out, NEW)
    with pytest.raises(OutputError, match="is not a folder"):
        remove_cluster(out, "c")
    assert tree(elsewhere) == before
    assert (out / "c").is_symlink() is (kind != "file")


@pytest.mark.parametrize("name", ["c/driver", "c/driver/added.yaml/deep/x", "c/base/a.yaml/x"])
def test_something_in_the_way(out: Path, name: str) -> None:
    """A file where a folder must be, or the other way round, is an error that names it; nothing is changed."""
    if name == "c/base/a.yaml/x":
        (out / "c/base/a.yaml").unlink()
    add(out, {name: b"x"})
    before = tree(out)
    with pytest.raises(OutputError, match="is in the way") as caught:
        write(out, NEW)
    assert str(out / name) in caught.value.findings[0].what
    assert tree(out) == before


def test_link_in_place_of_a_stage(out: Path) -> None:
    """A stage that is a link to a folder is in the way, too, when something must be written."""
    (out / "c/driver").symlink_to("/")
    with pytest.raises(OutputError, match="driver is in the way"):
        write(out, NEW)


def test_links_in_place_of_our_files(out: Path, tmp_path: Path) -> None:
    """A link that somebody put in the place of a file of ours is replaced; what it leads to stays as it is."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (out / "c/base/a.yaml").unlink()
    (out / "c/base/a.yaml").symlink_to(target)
    write(out, NEW)
    assert not (out / "c/base/a.yaml").is_symlink()
    assert visible(out) == NEW.files
    assert target.read_bytes() == b"precious"


def test_writing_never_changes_a_file_in_place(out: Path, tmp_path: Path) -> None:
    """Whoever has a file open, or a hard link to it, keeps what was in it."""
    os.link(out / "c/base/a.yaml", tmp_path / "kept")
    with (out / "c/base/a.yaml").open("rb") as open_file:
        write(out, NEW)
        assert open_file.read() == OLD.files["base/a.yaml"]
    assert (tmp_path / "kept").read_bytes() == OLD.files["base/a.yaml"]


def test_remove_cluster(out: Path) -> None:
    """Everything that we wrote for the cluster goes, index and empty folders too; a second time there is nothing."""
    change = remove_cluster(out, "c")
    assert (change.removed, change.written) == (tuple(sorted(OLD.files)), ())
    assert list(out.iterdir()) == [out / ".index"]
    assert clusters_in(out) == []


def test_remove_cluster_of_somebody_else(out: Path) -> None:
    """Files of other people keep their folder."""
    add(out, FOREIGN)
    remove_cluster(out, "c")
    assert tree(out) == FOREIGN


def test_left_over(out: Path) -> None:
    """What check says of a cluster without a policy: its files, or the index where the files are gone already."""
    assert left_over(out, "c").removed == tuple(sorted(OLD.files))
    assert left_over(out, "gone").removed == ("../.index/gone.json",)
    assert remove_cluster(out, "gone").any


def test_compare_changes_nothing(out: Path) -> None:
    """Comparing says what writing would do."""
    before = tree(out)
    seen = compare(out, NEW)
    assert tree(out) == before
    done = write(out, NEW)
    assert (seen.written, seen.removed, seen.unchanged) == (done.written, done.removed, done.unchanged)
    (out / ".index/c.json").unlink()
    assert (compare(out, NEW).written, compare(out, NEW).unchanged) == (("../.index/c.json",), 3)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_any_step(tmp_path: Path, scenario: str) -> None:
    """A process that is killed at whatever step leaves the old state or the new one, never a mixture; the next render
    repairs everything and leaves no scratch."""
    command = [sys.executable, "-m", "tests.compiler.crash", str(tmp_path), scenario]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert int(done.stdout) > 15


def test_sweep(out: Path) -> None:
    """What killed renders left is removed, an old folder that stepped aside comes back, other files stay."""
    add(out, {".gpustack-new-abc/base/x.yaml": b"x", ".index/.gpustack-c.json": b"{", ".gpustack-old-d/x": b"old"})
    add(out, {".gpustack-old-c/x": b"old", "other/y": b"y", ".hidden": b"h"})
    sweep(out)
    assert tree(out) == {
        **{f"c/{name}": content for name, content in OLD.files.items()},
        ".index/c.json": OLD.index(),
        "d/x": b"old",
        "other/y": b"y",
        ".hidden": b"h",
    }
    sweep(out / "nowhere")


REFUSALS = [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO]


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("step", ["mkdtemp", "open", "link", "rename", "index"])
def test_a_disk_that_refuses(out: Path, monkeypatch: pytest.MonkeyPatch, code: int, step: str) -> None:
    """A disk that is full, read-only or broken at whatever step is an error with the reason and the remedy; the cluster
    is as it was (or, when only the index could not be written, as it should be), and nothing half-done is left."""

    def refuse(*words: Any, **_: Any) -> Any:
        raise OSError(code, os.strerror(code), str(words[0]) if words else None)

    def refuse_to_write(path: Path, mode: str) -> Any:
        return refuse(path) if mode == "xb" else path.open(mode)

    before = tree(out)
    with monkeypatch.context() as patch:
        if step == "mkdtemp":
            patch.setattr(tempfile, "mkdtemp", refuse)
        elif step == "open":
            patch.setattr(
                dist, "open", lambda path, mode: (refuse if mode == "xb" else open)(path, mode), raising=False
            )
        elif step == "link":
            patch.setattr(os, "link", refuse)
            patch.setattr(shutil, "copy2", refuse)
        elif step == "rename":
            patch.setattr(dist, "exchange", refuse)
        else:
            patch.setattr(os, "replace", refuse)
        with pytest.raises(OutputError) as caught:
            write(out, NEW)
    (finding,) = caught.value.findings
    assert os.strerror(code) in finding.what
    assert finding.remedy
    assert (caught.value.exit_code, finding.rule) == (4, "GPU921")
    after = tree(out)
    if step == "index":
        assert {name: data for name, data in after.items() if name.startswith("c/")} == {
            f"c/{n}": d for n, d in NEW.files.items()
        }
    else:
        assert after == before
    assert write(out, NEW).any
    assert visible(out) == NEW.files


def test_file_in_place_of_dist(tmp_path: Path) -> None:
    """A file where dist/ should be is an error, not a crash."""
    (tmp_path / "dist").write_text("x")
    with pytest.raises(OutputError, match="can't write"):
        write(tmp_path / "dist", NEW)
    assert (tmp_path / "dist").read_text() == "x"


def test_without_hard_links(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no hard links, files are copied: content, times, and links as links."""
    add(out, FOREIGN)
    (out / "c/link").symlink_to("README.md")
    os.utime(out / "c/README.md", (1, 1))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    write(out, NEW)
    assert (out / "c/README.md").read_bytes() == b"mine"
    assert (out / "c/README.md").stat().st_mtime == 1
    assert str((out / "c/link").readlink()) == "README.md"


def test_without_exchange(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system can't exchange two folders, the old one steps aside, and is gone afterwards."""
    monkeypatch.setattr(folders, "atomic_exchange", lambda first, second: False)
    write(out, NEW)
    assert visible(out) == NEW.files
    assert sorted(path.name for path in out.iterdir()) == [".index", "c"]


def test_exchange_is_atomic_here(tmp_path: Path) -> None:
    """On Linux two folders change places in one call; a failure of that call is an error, not a reason to step
    aside."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert folders.atomic_exchange(tmp_path / "a", tmp_path / "b") is (sys.platform == "linux")
    if sys.platform == "linux":
        assert (tmp_path / "a/b").exists()
        assert (tmp_path / "b/a").exists()
        with pytest.raises(FileNotFoundError):
            folders.atomic_exchange(tmp_path / "a", tmp_path / "nowhere")


def test_folders_that_can_not_be_read(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of somebody else that can't be read is an error: what isn't seen would not be carried over."""
    add(out, FOREIGN)
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(errno.EACCES, "no", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(OutputError, match="deep"):
        write(out, NEW)
    with pytest.raises(OutputError, match="deep"):
        remove_cluster(out, "c")
    assert not any(path.name.startswith(".gpustack") for path in out.iterdir())


def test_look(out: Path) -> None:
    """A look at a folder tells any change of a file, a link or the index, and nothing where there is no folder."""
    seen = [look_of(out, "c")]

    def changed() -> bool:
        seen.append(look_of(out, "c"))
        return seen[-1] not in seen[:-1]

    assert not changed()
    file = out / "c/base/a.yaml"
    state = file.stat()
    file.write_bytes(file.read_bytes().replace(b"1", b"2"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert changed()
    (out / "c/base/new").write_text("")
    assert changed()
    (out / "c/base/new").rename(out / "c/base/newer")
    assert changed()
    (out / "c/base/newer").unlink()
    (out / "c/base/newer").symlink_to("nowhere")
    assert changed()
    (out / ".index/c.json").write_bytes(OLD.index())
    assert changed()
    (out / ".index/c.json").unlink()
    assert look_of(out, "c") == look_of(out, "nowhere") == ""


def test_look_after_write(out: Path) -> None:
    """A write tells how the folder looked when it was done, be there much to do or nothing; and nothing when somebody
    changed a file in that very moment."""
    assert write(out, NEW).look == look_of(out, "c") != ""
    assert write(out, NEW).look == look_of(out, "c")


@pytest.mark.parametrize("how", ["save", "replace"])
def test_somebody_writes_at_the_same_time(out: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A file that changes between the exchange of the folders and the look at them is never taken for ours, also when
    another one of the same size and time takes its place."""

    def exchange(fresh: Path, root: Path, aside: Path) -> None:
        folders.exchange(fresh, root, aside)
        file = root / "base/a.yaml"
        if how == "save":
            file.write_text("an editor saves just now")
        else:
            shutil.copy2(file, root / "copy")
            (root / "copy").replace(file)

    monkeypatch.setattr(dist, "exchange", exchange)
    assert write(out, NEW).look == ""


def test_lock(tmp_path: Path) -> None:
    """Who holds the lock of a folder keeps others out, until he is done or dead; a folder that can't be made or is none
    locks nobody out."""
    probe = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"

    def free() -> bool:
        return (
            subprocess.run(
                [sys.executable, "-c", probe, str(tmp_path / "d")], capture_output=True, check=False
            ).returncode
            == 0
        )

    with locked(tmp_path / "d"):
        assert not free()
    assert free()
    with locked(Path("/proc/nowhere/d")):
        pass
    (tmp_path / "file").write_text("")
    with locked(tmp_path / "file"):
        pass
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "d"):
        raise ZeroDivisionError
    assert free()


def test_look_and_scan(out: Path) -> None:
    """Both see every file and link, and follow none."""
    add(out, FOREIGN)
    (out / "c/loop").symlink_to(".")
    names = sorted(name for name, seen in look(out / "c").items() if seen is not A_FOLDER)
    assert names == sorted([*OLD.files, "README.md", "base/own.yaml", "deep/er/x.txt", "loop"])
    assert sorted(seen.split(":")[0].lstrip("/") for seen, _ in scan(out / "c")) == names
    assert look(out / "nowhere") == {}


@pytest.mark.parametrize("source", ["policies/a.yaml", "ä b.yaml", "a\nb: c\n#.yaml", "\udcff\x1b[2J.yaml", "a\u2028b"])
def test_header(source: str) -> None:
    """One line, whatever the file is called, that can be written as UTF-8 and begins as our files do."""
    line = header(source)
    assert line.startswith(dist.HEADER)
    assert line.encode().decode().count("\n") == 1
    assert line[:-1].isprintable()


def test_index() -> None:
    """The index is the same bytes for the same content, in whatever order it was rendered."""
    turned = Rendering(NEW.cluster, NEW.source, NEW.minor, dict(reversed(list(NEW.files.items()))))
    assert turned.index() == NEW.index()
