"""gpustack check: dist/ is what the policies render to, or exit 3 and a list of what is not."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.odd import ODD, make_odd
from tests.project import REFUSED, Project, Ran, document, tree

VALIDATOR = "operands/daemonset-nvidia-operator-validator.yaml"


@pytest.fixture
def rendered(project: Project) -> Project:
    """A project with two rendered clusters."""
    project.policy("a")
    project.policy("b")
    assert project.run("render").code == 0
    return project


def stale(project: Project, *words: str) -> Ran:
    """What check says; it writes nothing, and render then repairs everything."""
    before = project.tree()
    done = project.run("check", *words)
    assert project.tree() == before
    return done


def test_current(rendered: Project) -> None:
    """Nothing to say is exit 0 and one line."""
    done = stale(rendered)
    assert (done.code, done.out, done.err) == (0, "dist is current: 2 clusters\n", "")


def test_nothing_rendered_yet(project: Project) -> None:
    """Without dist/ every cluster was never rendered, and nothing is made."""
    project.policy("a")
    done = stale(project)
    assert done.code == 3
    assert done.out.startswith("never rendered: a (")
    assert not project.dist.exists()


def index(file: Path) -> Path:
    """The index of the cluster that FILE belongs to."""
    return file.parents[2] / ".index/a.json"


def append(file: Path) -> None:
    """Change a file in its last byte."""
    file.write_bytes(file.read_bytes()[:-1] + b" ")


def copy_with_header(file: Path) -> None:
    """Leave a second file that gpustack wrote."""
    shutil.copy(file, file.with_name("old.yaml"))


def to_link(file: Path) -> None:
    """Put a link to a changed copy in the place of a file."""
    target = file.parents[3] / "copy"
    target.write_bytes(file.read_bytes() + b"\n")
    file.unlink()
    file.symlink_to(target)


def to_same_link(file: Path) -> None:
    """Put a link to an equal copy in the place of a file."""
    target = file.parents[3] / "copy"
    file.rename(target)
    file.symlink_to(target)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (append, f"stale: dist/a/{VALIDATOR}"),
        (Path.unlink, f"stale: dist/a/{VALIDATOR}"),
        (to_link, f"stale: dist/a/{VALIDATOR}"),
        (to_same_link, f"stale: dist/a/{VALIDATOR}"),
        *((functools.partial(make_odd, what=what), f"stale: dist/a/{VALIDATOR}") for what in ODD),
        *((lambda file, what=what: make_odd(index(file), what), "stale: dist/.index/a.json") for what in ODD[:2]),
        (lambda file: to_same_link(index(file)), "stale: dist/.index/a.json"),
        (copy_with_header, "left over: dist/a/operands/old.yaml"),
        (lambda file: append(index(file)), "stale: dist/.index/a.json"),
        (lambda file: index(file).unlink(), "stale: dist/.index/a.json"),
        (lambda file: (file.parents[3] / "policies/a.yaml").unlink(), f"left over: dist/a/{VALIDATOR}"),
    ],
)
def test_each_kind_of_staleness(rendered: Project, damage: Callable[[Path], object], line: str) -> None:
    """Changed, missing, replaced and additional files of ours, an edited index and a removed policy are each found, by
    name and with exit 3; a render repairs them, and then nothing is stale."""
    damage(rendered.dist / "a" / VALIDATOR)
    done = stale(rendered)
    assert done.code == 3
    assert line in done.out.splitlines()
    assert "run `gpustack render`" in done.err
    assert rendered.run("render").code == 0
    for path in rendered.dist.rglob("*.pipe"):  # what a link of the test led to
        path.unlink()
    assert stale(rendered).code == 0


def test_pipes_of_somebody_else(rendered: Project) -> None:
    """A pipe that somebody left among our files is theirs: nobody waits for it, and it stays, whatever is written."""
    os.mkfifo(rendered.dist / "a/operands/mine.yaml")
    assert "not rendered: dist/a/operands/mine.yaml (special)" in stale(rendered).out
    rendered.policy("a", daemonsets={"labels": {"x": "y"}})
    assert rendered.run("render").code == 0
    assert (rendered.dist / "a/operands/mine.yaml").is_fifo()


def test_folders_behind_links(rendered: Project, tmp_path: Path) -> None:
    """A stage, a cluster or the index that is a link to a folder elsewhere is not current, whatever is in there, and
    render says which is in the way instead of writing there."""
    for name in ("a/operands", "a", ".index"):
        (rendered.dist / name).rename(tmp_path / "elsewhere")
        (rendered.dist / name).symlink_to(tmp_path / "elsewhere")
        before = tree(tmp_path / "elsewhere")
        assert stale(rendered).code == 3
        rendered.policy("a", daemonsets={"labels": {"x": name.strip("./").replace("/", "-")}})
        done = rendered.run("render")
        assert (done.code, f"dist/{name} is" in done.err) == (4, True)
        assert tree(tmp_path / "elsewhere") == before
        (rendered.dist / name).unlink()
        (tmp_path / "elsewhere").rename(rendered.dist / name)
        assert rendered.run("render").code == 0


def test_index_of_a_cluster_that_is_gone(rendered: Project) -> None:
    """Where somebody deleted policy and folder by hand, the index that is left is stale as well."""
    (rendered.folder / "policies/a.yaml").unlink()
    shutil.rmtree(rendered.dist / "a")
    done = stale(rendered)
    assert (done.code, done.out) == (3, "left over: dist/.index/a.json\n")
    rendered.run("render")
    assert stale(rendered).code == 0


def test_changed_policy(rendered: Project) -> None:
    """A policy that was edited without a render is found; named clusters are looked at alone."""
    rendered.policy("a", daemonsets={"labels": {"x": "y"}})
    done = stale(rendered)
    assert (done.code, done.out) == (3, f"stale: dist/a/{VALIDATOR}\nstale: dist/.index/a.json\n")
    assert stale(rendered, "a").code == 3
    assert stale(rendered, "b").code == 0


def test_named_clusters_say_nothing_about_others(rendered: Project) -> None:
    """A removed policy is nothing to a check of another cluster."""
    (rendered.folder / "policies/a.yaml").unlink()
    assert stale(rendered, "b").code == 0
    assert stale(rendered).code == 3


def test_files_of_somebody_else(rendered: Project) -> None:
    """What gpustack did not write is told, each by its path: YAML or not, in our folders or beside them."""
    for name in ("a/README.md", f"a/{VALIDATOR}.orig", "a/operands/kustomization.yaml", "a/own/x.yaml", "c/x.yaml"):
        file = rendered.dist / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("kind: Mine\n")
    (rendered.dist / "a/link").symlink_to("README.md")
    done = stale(rendered)
    assert (done.code, done.out.count("not rendered: dist/")) == (3, 8)
    assert "not rendered: dist/a/link (link)" in done.out


def test_what_nobody_touched_is_not_read(rendered: Project) -> None:
    """Where render knows that nobody touched a file, check says so at once, with the same numbers; without the cache
    it reads all of them.
    """
    read = stale(rendered, "--no-cache", "--format", "json").json
    with mock.patch("gpustack.compiler.fleet._compare", side_effect=AssertionError("read files")):
        assert stale(rendered, "--format", "json").json == read
        assert rendered.run("check", "--no-cache").code != 0


def elsewhere(path: Path, other: Path) -> None:
    """Move what is at PATH to OTHER, which touches no file in it, and leave a link."""
    path.rename(other)
    path.symlink_to(other)


@pytest.mark.parametrize(
    ("touch", "line"),
    [
        (lambda dist: elsewhere(dist / "a", dist.parent / "a"), "not rendered: dist/a (link)"),
        (lambda dist: elsewhere(dist / "a/operands", dist.parent / "a"), "not rendered: dist/a/operands (link)"),
        (lambda dist: elsewhere(dist / ".index", dist.parent / "a"), "not rendered: dist/.index (link)"),
        (lambda dist: (dist / "a/x/y").mkdir(parents=True), "not rendered: dist/a/x/y (folder)"),
        (lambda dist: (dist / "a" / VALIDATOR).chmod(0o755), f"not rendered: dist/a/{VALIDATOR} (mode)"),
        (
            lambda dist: (dist / ".gitops/flux/a").rename(dist / ".gitops/argocd/a"),
            "left over: dist/.gitops/argocd/a/gitrep",
        ),
        (lambda dist: (dist / ".gitops/argocd/a").symlink_to("/"), "not rendered: dist/.gitops/argocd/a (link)"),
    ],
)
def test_what_moves_without_a_touch_of_its_files(project: Project, touch: Callable[[Path], object], line: str) -> None:
    """Links, folders without files, modes and the place of a folder count, though no file in it changes."""
    repository = {"url": "https://git.example.com/gpu.git"}
    project.policy("a", gitops={"engine": "flux", "repository": repository})
    assert project.run("render").code == 0
    (project.dist / ".gitops/argocd").mkdir()
    assert project.run("check").code == 0
    touch(project.dist)
    done = project.run("check")
    assert (done.code, line in done.out) == (3, True), done.out


def test_never_trusts_times(rendered: Project) -> None:
    """A file that was changed behind the back of size and modification time is found: nobody sets the change time."""
    file = rendered.dist / "a" / VALIDATOR
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"kind: DaemonSet", b"kind: DaemonSat"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert stale(rendered).code == 3


def test_other_folder(rendered: Project, tmp_path: Path) -> None:
    """--out names the folder to look at."""
    assert rendered.run("render", "--out", tmp_path / "o").code == 0
    append(tmp_path / "o/a" / VALIDATOR)
    assert stale(rendered).code == 0
    assert rendered.run("check", "--out", tmp_path / "o").code == 3


def test_json(rendered: Project) -> None:
    """The document says the exit code and, for each cluster, what a render would write and remove."""
    append(rendered.dist / "a" / VALIDATOR)
    done = stale(rendered, "--format", "json")
    assert (done.code, done.err) == (3, "")
    document = done.json
    assert document["exit"] == 3
    assert [(cluster["name"], cluster["written"]) for cluster in document["clusters"]] == [
        ("a", [VALIDATOR]),
        ("b", []),
    ]
    assert stale(rendered, "b", "--format", "json").json["exit"] == 0


def test_errors_come_before_staleness(rendered: Project) -> None:
    """A policy that can't be used is exit 4, one that is refused exit 2, whatever dist/ looks like."""
    rendered.policy("a", **REFUSED)
    assert stale(rendered).code == 2
    rendered.write("policies/a.yaml", document("ClusterPolicy", "a", {}))
    assert stale(rendered).code == 4


def test_no_cache(rendered: Project) -> None:
    """Without the cache the answer is the same."""
    assert stale(rendered, "--no-cache").code == 0
    append(rendered.dist / "a" / VALIDATOR)
    assert stale(rendered, "--no-cache").code == 3
