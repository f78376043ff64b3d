"""Many policies at once: what is read, compiled and written again, and what is not."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gpustack.compiler import dist, fleet, sources
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.executor import Executor
from gpustack.compiler.fleet import GroupedFinding, Outcome, Project, Source, also
from gpustack.model import Finding, FindingsError, InputError
from gpustack.policy.loading import load
from tests.project import REFUSED, policy
from tests.project import Project as Folder

VALIDATOR = "operands/daemonset-nvidia-operator-validator.yaml"


class Run:
    """What a render did: calls of the expensive steps, and the outcome."""

    def __init__(self, folder: Folder, *, prune: bool = False, jobs: int = 1) -> None:
        project = Project(folder.folder, folder.dist, Store(folder.cache, own_digest()), jobs)
        paths = sorted((folder.folder / "policies").glob("*.yaml"))
        self.calls: dict[str, int] = {}
        with pytest.MonkeyPatch.context() as patch:
            for module, name in (
                (sources, "open_with_layers"),
                (sources, "load_opened"),
                (fleet, "compile_stack"),
                (sources, "compile_stack"),
                (dist, "write"),
            ):
                patch.setattr(module, name, self.counting(name, getattr(module, name)))
            self.outcome: Outcome = fleet.render(project, paths, prune=prune)

    def counting(self, name: str, function: Any) -> Any:
        """FUNCTION, which counts its calls under NAME."""

        def count(*words: Any, **more: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            return function(*words, **more)

        return count

    @property
    def changed(self) -> list[str]:
        """Clusters of which something was written or removed."""
        return [change.cluster for change in self.outcome.changes if change.any]


@pytest.fixture
def three(project: Folder, tmp_path: Path) -> Folder:
    """Three clusters, two of which are alike, and a cache of their own."""
    mine = dataclasses.replace(project, cache=tmp_path / "cache")
    shutil.copytree(project.cache, mine.cache, dirs_exist_ok=True)
    mine.layer("base", daemonsets={"labels": {"layer": "1"}})
    mine.policy("a", extends=["base"], operator={"labels": {"who": tmp_path.name}})
    mine.policy("b", extends=["base"], operator={"labels": {"who": tmp_path.name}})
    mine.policy("c", operator={"labels": {"who": f"c-{tmp_path.name}"}})
    return mine


def test_equal_specs_are_compiled_once(three: Folder) -> None:
    """Clusters whose effective specs are equal are compiled once, and differ in their headers alone."""
    run = Run(three)
    assert run.calls == {"open_with_layers": 3, "load_opened": 2, "compile_stack": 2, "write": 3}
    assert (run.changed, run.outcome.stacks) == (["a", "b", "c"], 2)
    tree = three.tree()
    for path in (path for path in tree if path.startswith("a/")):
        assert tree[path].replace(b"policies/a.yaml", b"policies/b.yaml", 1) == tree[f"b/{path[2:]}"]


def test_equal_specs_written_differently(three: Folder) -> None:
    """It is the effective spec that counts: what a layer says, and a policy says itself, is one stack."""
    three.policy("b", daemonsets={"labels": {"layer": "1"}}, operator={"labels": {"who": three.cache.parent.name}})
    assert Run(three).calls["compile_stack"] == 2


def test_nothing_changed(three: Folder) -> None:
    """The second time nothing is parsed, compiled, or even compared."""
    Run(three)
    again = Run(three)
    assert (again.calls, again.changed) == ({}, [])
    assert [change.cluster for change in again.outcome.changes] == ["a", "b", "c"]


def test_one_policy_changed(three: Folder) -> None:
    """A changed policy is loaded and written, alone; a layer that changed concerns those that extend it."""
    Run(three)
    three.policy("c", cdi={"enabled": False})
    run = Run(three)
    assert (run.calls.get("compile_stack"), run.calls["load_opened"], run.changed) == (1, 1, ["c"])
    three.layer("base", daemonsets={"labels": {"layer": "2"}})
    assert Run(three).changed == ["a", "b"]


def test_policy_changed_without_effect(three: Folder) -> None:
    """A comment in a policy costs reading it."""
    Run(three)
    three.write("policies/c.yaml", (three.folder / "policies/c.yaml").read_text() + "# a comment\n")
    run = Run(three)
    assert (run.calls["load_opened"], run.calls.get("compile_stack", 0) <= 1, run.changed) == (1, True, [])


@pytest.mark.parametrize("what", ["edit", "same size and time", "delete", "add", "index", "folder"])
def test_touched_folder_is_compared(three: Folder, what: str) -> None:
    """A folder that somebody touched in any way is compared and repaired, without compiling anything."""
    Run(three)
    good = three.tree()
    file = three.dist / "a" / VALIDATOR
    state = file.stat()
    if what == "edit":
        file.write_text("edited")
    elif what == "same size and time":
        file.write_bytes(file.read_bytes().replace(b"DaemonSet", b"DaemonSat"))
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif what == "delete":
        file.unlink()
    elif what == "add":
        shutil.copy(file, file.with_name("copy.yaml"))
    elif what == "index":
        (three.dist / ".index/a.json").write_text("{}")
    else:
        shutil.rmtree(three.dist / "a")
    run = Run(three)
    assert run.calls == {"write": 1}
    assert (run.changed, three.tree()) == (["a"], good)
    assert Run(three).calls == {}


def test_folder_that_vanishes_is_not_taken_for_whole(three: Folder) -> None:
    """A folder that somebody removes while we render it, and that is still gone the next time, is written then."""
    real = dist.write

    def vanish(out: Path, rendering: dist.Rendering) -> dist.Change:
        done = real(out, rendering)
        shutil.rmtree(out / rendering.cluster)
        return dataclasses.replace(done, look=dist.look_of(out, rendering.cluster))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "write", vanish)
        Run(three)
    assert not (three.dist / "a").exists()
    assert Run(three).changed == ["a", "b", "c"]


def test_file_that_changes_while_it_is_read(three: Folder) -> None:
    """A policy that is saved between the look at its bytes and the reading is not remembered under the wrong bytes:
    whoever goes back to the old text gets the old render."""
    old = (three.folder / "policies/c.yaml").read_text()
    Run(three)
    good = three.tree()
    three.write("policies/c.yaml", old + "\n")
    real = load.open_with_layers

    def save(path: Path, **more: Any) -> Any:
        three.policy("c", cdi={"enabled": False})
        return real(path, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "open_with_layers", save)
        Run(three)
    assert three.tree() != good
    three.write("policies/c.yaml", old + "\n")
    Run(three)
    assert three.tree() == good


def test_one_store_for_two_renders(three: Folder) -> None:
    """A program that renders twice with one store gets what is in the files the second time."""
    project = Project(three.folder, three.dist, Store(three.cache, own_digest()), 1)
    paths = sorted((three.folder / "policies").glob("*.yaml"))
    fleet.render(project, paths)
    three.layer("base", daemonsets={"labels": {"layer": "22"}})
    three.policy("c", daemonsets={"labels": {"layer": "22"}})
    assert [change.cluster for change in fleet.render(project, paths).changes if change.any] == ["a", "b", "c"]
    assert b'layer: "22"' in three.tree()[f"a/{VALIDATOR}"]


def test_store_that_loses_everything(three: Folder) -> None:
    """Entries that vanish between compiling and writing are compiled again."""
    real = fleet.write_all

    def lose(project: Project, *words: Any) -> Any:
        shutil.rmtree(project.store.root)
        project.store._memory.clear()
        return real(project, *words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "write_all", lose)
        run = Run(three)
    assert run.changed == ["a", "b", "c"]
    assert b"kind: DaemonSet" in three.tree()[f"c/{VALIDATOR}"]


@pytest.mark.parametrize("path", ["../../evil.yaml", "operands/../../../evil.yaml", "{}/evil.yaml"])
def test_a_store_says_what_is_rendered_and_not_where_to(three: Folder, path: str) -> None:
    """An entry of whoever may write to a store others read puts no file out of its folder: it is computed again."""
    Run(three)
    good, path = three.tree(), path.format(three.folder)
    store = Store(three.cache, own_digest())
    for kind, lie in (
        ("component", {"files": [[path, "x"]]}),
        ("stack", {"plan": {"files": {path: "x"}}}),
        ("stack", {"plan": {"files": {path.replace("../", "", 1): "x"}}}),
    ):
        for entry in three.cache.glob(f"*/{kind}/*/*"):
            key = entry.parent.name + entry.name
            store.put(kind, key, {**(store.get(kind, key) or {}), **lie})
        shutil.rmtree(three.dist)
        fleet._RENDERED.clear()
        assert Run(three).changed == ["a", "b", "c"]
        assert three.tree() == good
        assert not [*three.folder.parent.rglob("evil.yaml")]


def test_errors_of_all_files(three: Folder) -> None:
    """Mistakes in several policies are raised together, each once, and nothing is written."""
    three.policy("a", extends=["base"], oops=1)
    three.policy("c", oops=1)
    three.write("policies/d.yaml", policy("d", extends=["base"]) + "\t")
    with pytest.raises(InputError) as caught:
        Run(three)
    assert sorted({finding.location.file for finding in caught.value.findings if finding.location}) == [
        "policies/a.yaml",
        "policies/c.yaml",
        "policies/d.yaml",
    ]
    assert not three.dist.exists()


def test_mistake_in_a_layer_is_told_once(three: Folder) -> None:
    """A mistake in a layer is one error, however many clusters extend it."""
    three.layer("base", oops=1)
    with pytest.raises(InputError) as caught:
        Run(three)
    assert [finding.location.file for finding in caught.value.findings if finding.location] == [
        "policies/layers/base.yaml"
    ]


def test_refused_specs_are_located(three: Folder) -> None:
    """What a rule refuses is located in the file that wrote it, the layer where it was the layer, and names all the
    clusters; the next run says the same."""
    three.layer("base", **REFUSED)
    for _ in range(2):
        with pytest.raises(FindingsError) as caught:
            Run(three)
        (finding,) = caught.value.findings
        assert finding.location is not None
        assert finding.location.file == "policies/layers/base.yaml"
        assert "(also in b)" in finding.what


def test_prune(three: Folder) -> None:
    """With prune, clusters that no policy describes go; without, they stay. Other folders are nobody's."""
    Run(three)
    (three.dist / "other").mkdir()
    (three.folder / "policies/b.yaml").unlink()
    assert "b" not in [change.cluster for change in Run(three).outcome.changes]
    assert (three.dist / "b").exists()
    run = Run(three, prune=True)
    assert run.changed == ["b"]
    assert sorted(path.name for path in three.dist.iterdir()) == [".index", "a", "c", "other"]


def source(name: str) -> Source:
    """A source of which only the name counts."""
    return Source(Path(f"{name}.yaml"), f"{name}.yaml", "", name, "k")


def test_twins(tmp_path: Path) -> None:
    """Two files for one cluster are refused."""
    assert sources.twins([source("a"), source("b")]) == []
    found = sources.twins([source("a"), source("b"), dataclasses.replace(source("a"), display="other.yaml")])
    assert [finding.rule for finding in found] == ["GPU020"]
    assert "both describe the cluster 'a'" in found[0].what


def test_also() -> None:
    """A finding about many clusters names some of them and counts the others."""
    finding = Finding("GPU000", "warning", "oh")
    names = [GroupedFinding(finding, tuple("abcdef"[:count])) for count in (1, 2, 4, 6)]
    assert [also(item).what for item in names] == [
        "oh",
        "oh (also in b)",
        "oh (also in b, c, d)",
        "oh (also in b, c, d and 2 more)",
    ]


def test_stamp(tmp_path: Path) -> None:
    """A stamp changes with the file's bytes, its name and any layer beside it, and there is none for what can't be
    read."""
    root = tmp_path
    file = root / "policies/a.yaml"
    (root / "policies/layers").mkdir(parents=True)
    seen = []

    def stamp(path: Path = file) -> str:
        seen.append(sources.stamp_of(path, root, {}))
        return seen[-1]

    assert stamp() == ""
    file.write_text("a")
    stamp()
    file.write_text("b")
    stamp()
    (root / "policies/layers/x.yaml").write_text("1")
    stamp()
    (root / "policies/layers/x.yaml").rename(root / "policies/layers/y.yaml")
    stamp()
    file.rename(root / "policies/b.yaml")
    stamp(root / "policies/b.yaml")
    assert len(set(seen)) == len(seen)
    assert sources.stamp_of(root / "policies", root, {}) == ""
    assert sources.stamp_of(root / "policies/b.yaml", root, {}) == seen[-1]


OCI = {"engine": "argocd", "repository": {"url": "oci://registry.example.com/gpu/{cluster}", "dist": "oci"}}


@pytest.mark.parametrize(
    ("more", "merged"),
    [({}, 2), ({"gfd": {"enabled": False, "version": "v1"}}, 2), ({"cdi": None}, 3), ({"gitops": OCI}, 2)],
)
def test_policies_that_say_the_same_are_merged_once(
    three: Folder, tmp_path: Path, more: dict[str, Any], merged: int
) -> None:
    """Of policies with the same layers that say the same one is merged, and the others are what they are alone: each
    with its own file, name and artifact, and merged after all where a rule names the file."""
    text = three.policy("b", extends=["base"], **more).read_text()
    three.write("policies/a.yaml", "# first\n" + text.replace("name: b", "name: a"))
    three.write("policies/c.yaml", text.replace("name: b", "name: c").replace("base", "other"))
    three.layer("other", daemonsets={"labels": {"layer": "1"}})
    paths = sorted((three.folder / "policies").glob("*.yaml"))
    calls: list[load.Opened] = []

    def count(opened: load.Opened) -> load.Loaded:
        calls.append(opened)
        return load.load_opened(opened)

    def read(name: str, paths: list[Path]) -> list[sources.Source]:
        project = Project(three.folder, three.dist, Store(tmp_path / name, own_digest()), 1)
        with Executor(1) as executor:
            return sources.read_all(project, paths, executor, lambda *_: None)

    alone = [source for path in paths for source in read(path.name, [path])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "load_opened", count)
        assert read("all", paths) == alone
    assert len(calls) == merged
    assert len({source.artifact for source in alone}) == (3 if "gitops" in more else 1)


def test_layers_of_one_name_in_two_folders(three: Folder, tmp_path: Path) -> None:
    """Policies that say the same in two folders elsewhere have each folder's own layers, whatever these are called."""
    paths = []
    for name in ("a", "c"):
        folder = tmp_path / name / "policies"
        shutil.copytree(three.folder / "policies/layers", folder / "layers")
        text = (three.folder / "policies/a.yaml").read_text().replace("name: a", f"name: {name}")
        paths.append(folder / "x.yaml")
        paths[-1].write_text(text)
    layer = tmp_path / "c/policies/layers/base.yaml"
    layer.write_text(layer.read_text().replace("'1'", "'2'").replace('"1"', '"2"'))
    project = Project(three.folder, three.dist, Store(tmp_path / "new", own_digest()), 1)
    with Executor(1) as executor:
        first, second = sources.read_all(project, paths, executor, lambda *_: None)
    assert first.key != second.key
