"""What is around a render: caches of every condition, homes, folders, readers that go away. The bytes stay the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.odd import ODD, make_odd
from tests.project import Project, Ran

WARM = """
import sys
from gpustack.cli import main
code = main(sys.argv[1:])
print(code, *sorted(name for name in sys.modules if name.partition(".")[0] in {watched}))
"""


def modules(done: Ran) -> tuple[int, set[str]]:
    """The exit code and the modules that the last line of a WARM program tells."""
    code, *names = done.out.splitlines()[-1].split()
    return int(code), set(names)


@pytest.fixture
def clusters(project: Project) -> Project:
    """Two policies with a layer and pools that share GPUs: enough for every step of a render."""
    project.layer("base", devicePlugin={"enabled": True}, driver={"enabled": True})
    pool = {"name": "p", "os": "ubuntu22.04", "gpuProduct": "Tesla-T4", "sharing": {"timeSlicing": {"replicas": 2}}}
    for name in "ab":
        text = project.policy(name, extends=["base"], nodePools=[pool]).read_text()
        off = ("  driver:\n    enabled: false\n", "  devicePlugin:\n    enabled: false\n")
        project.write(f"policies/{name}.yaml", text.replace(off[0], "").replace(off[1], ""))
    return project


@pytest.mark.parametrize("verb", ["render", "check"])
def test_warm_runs_start_no_node(clusters: Project, verb: str) -> None:
    """What was compiled before needs no Node (there is none here), and neither cdk8s, pydantic nor jsonschema is
    imported, also where there are warnings to print."""
    assert clusters.run("render").code == 0
    watched = {"cdk8s", "constructs", "jsii", "pydantic", "pydantic_core", "jsonschema", "jsonschema_rs", "ruamel"}
    done = clusters.python(WARM.format(watched=watched), verb, env={"JSII_NODE": "/no/such/node"})
    assert modules(done) == (0, set())


def test_one_cluster_of_many_changed(clusters: Project) -> None:
    """A cluster whose spec was compiled before for another is not compiled again, though its file is new."""
    assert clusters.run("render").code == 0
    text = (clusters.folder / "policies/a.yaml").read_text()
    clusters.write("policies/new.yaml", text.replace("name: a\n", "name: new\n"))
    done = clusters.spawn("render", env={"JSII_NODE": "/no/such/node"})
    assert (done.code, "3 clusters rendered into dist, 1 changed" in done.out) == (0, True)


def test_help_is_light(project: Project) -> None:
    """`gpustack --help` and `--version` import no YAML, and nothing of ours but the command line."""
    watched = {"yaml", "pydantic", "cdk8s", "jsii", "jsonschema", "subprocess", "concurrent", "gpustack"}
    for word in ("--help", "--version"):
        code, names = modules(project.python(WARM.format(watched=watched), word))
        assert (code, names) == (0, {"gpustack", "gpustack.cli", "gpustack.cli.streams", "gpustack.model"})


def test_running_rules_reads_no_page(clusters: Project) -> None:
    """`lint` and `render` say what rules find without their pages; only a format that shows pages reads them."""
    pages = "gpustack.checks.pages"
    for arguments, reads in ((["lint"], False), (["render"], False), (["lint", "--format", "sarif"], True)):
        code, names = modules(clusters.python(WARM.format(watched={"gpustack"}), *arguments, "--no-cache"))
        assert (code, pages in names) == (0, reads), arguments
        assert "gpustack.checks.rule" in names


def rendered(project: Project, **env: str | None) -> dict[str, bytes]:
    """What a render into a new folder gives; it must work, whatever ENV says."""
    out = project.folder / f"out-{len(list(project.folder.iterdir()))}"
    done = project.run("render", "--out", out, env=env)
    assert (done.code, "error" in done.err) == (0, False), done.err
    return project.tree(out)


def test_damaged_cache(clusters: Project, tmp_path: Path) -> None:
    """Entries that were cut off, emptied or changed in one bit are computed again; so are those of another version."""
    cache = tmp_path / "damaged"
    good = rendered(clusters, GPUSTACK_CACHE=str(cache))
    for number, entry in enumerate(sorted(path for path in cache.rglob("*") if path.is_file())):
        data = bytearray(entry.read_bytes())
        if number % 3 == 0:
            data[len(data) // 2 + 20] ^= 1
        entry.write_bytes(bytes(data[: [None, len(data) // 2, 0][number % 3]]))
    assert rendered(clusters, GPUSTACK_CACHE=str(cache)) == good
    (salt,) = cache.iterdir()
    salt.rename(cache / ("0" * 32))
    assert rendered(clusters, GPUSTACK_CACHE=str(cache)) == good


def test_caches_that_are_none(clusters: Project, tmp_path: Path) -> None:
    """A cache folder that is a file, can't be made or can't be written makes a render slower, never wrong; nothing is
    written elsewhere instead."""
    good = rendered(clusters)
    file = tmp_path / "file"
    file.write_text("x")
    assert rendered(clusters, GPUSTACK_CACHE=str(file)) == good
    assert rendered(clusters, GPUSTACK_CACHE="/proc/nowhere") == good
    assert file.read_text() == "x"


def test_no_home(clusters: Project, tmp_path: Path) -> None:
    """A user without a home, as in many containers, has no cache: no folder called ~ is made. Relative folders of the
    XDG variables don't count."""
    good = rendered(clusters)
    before = sorted(path.name for path in clusters.folder.iterdir())
    home: dict[str, str | None] = {"GPUSTACK_CACHE": None, "XDG_CACHE_HOME": "relative", "HOME": "~"}
    assert rendered(clusters, **home) == good
    after = sorted(path.name for path in clusters.folder.iterdir())
    assert [name for name in after if not name.startswith("out-")] == [n for n in before if not n.startswith("out-")]
    home["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    assert rendered(clusters, **home) == good
    assert (tmp_path / "xdg/gpustack").is_dir()
    assert rendered(clusters, GPUSTACK_CACHE=None, XDG_CACHE_HOME=None, HOME=str(tmp_path / "home")) == good
    assert (tmp_path / "home/.cache/gpustack").is_dir()


def test_working_folder(clusters: Project, tmp_path: Path) -> None:
    """The same policy gives the same objects from any folder; only the header's file name is relative to it."""
    good = {path: content.split(b"\n", 1)[1] for path, content in rendered(clusters).items() if path.startswith("a/")}
    for number, cwd in enumerate((tmp_path, clusters.folder / "policies", Path("/"))):
        out = tmp_path / f"cwd-{number}"
        done = clusters.run("render", clusters.folder / "policies/a.yaml", "--out", out, cwd=cwd)
        assert done.code == 0
        found = {path: data.split(b"\n", 1)[1] for path, data in clusters.tree(out).items() if path.startswith("a/")}
        assert found == good


def test_policies_behind_a_link(clusters: Project, tmp_path: Path) -> None:
    """Where policies/ is a link within the project, a warm render writes the same header as the cold one."""
    other = tmp_path / "link"
    shutil.copytree(clusters.folder / "policies", other / "real")
    (other / "policies").symlink_to("real")
    linked = Project(other, clusters.cache)
    assert linked.run("render").code == 0
    first = linked.tree()
    assert b"from policies/a.yaml;" in first["a/base/namespace-gpu-operator.yaml"]
    assert "0 changed" in linked.run("render").out
    assert linked.tree() == first


@pytest.mark.parametrize("unbuffered", [None, "1"])
def test_reader_that_went_away(clusters: Project, unbuffered: str | None) -> None:
    """A closed pipe ends the program quietly with the code that shells know, so that `set -o pipefail` sees it."""
    command, env = [sys.executable, "-m", "gpustack", "check"], clusters.environment({"PYTHONUNBUFFERED": unbuffered})
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, env=env, cwd=clusters.folder)
    os.close(write)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("what", [*ODD, "endless"])
@pytest.mark.parametrize("place", ["policies/c.yaml", "policies/layers/odd.yaml", "policies/waivers.yaml", "w/x.yaml"])
def test_inputs_that_are_no_files(project: Project, place: str, what: str) -> None:
    """A pipe, a device or a file without an end in the place of a policy, a layer, waivers or a workload is exit 4 with
    its name, and nobody waits for it. A folder is one, in which nobody looks for policies or workloads."""
    project.policy("a")
    project.policy("b", extends=["odd"] if "layers" in place else [])
    odd = project.write(place, "")
    if what == "endless":
        os.truncate(odd, 1 << 40)
    else:
        make_odd(odd, what)
    words = ["lint", "--workloads", "w", "--cluster", "a"] if place.startswith("w/") else ["render"]
    done = project.run(*words)
    if (place, what) == ("policies/c.yaml", "folder"):
        assert done.code == 0
    else:
        assert (done.code, "internal error" in done.err) == (4, False)
        assert ("w has no manifest" if (place[0], what) == ("w", "folder") else Path(place).stem) in done.out + done.err
    (project.folder / place).rmdir() if what == "folder" else odd.unlink()
    project.policy("b")
    assert project.run("render").code == 0


def test_diff_of_folders_with_odd_things(project: Project) -> None:
    """`diff` waits for no pipe that lies in a folder, and takes none of the others for a manifest: each is refused."""
    project.policy("a")
    assert project.run("render").code == 0
    assert project.run("render", "--out", "other").code == 0
    for what in ODD:
        make_odd(project.folder / f"other/a/base/{what}.yaml", what)
    done = project.run("diff", "dist", "other")
    assert done.code == 1
    assert all(f"other/a/base/{what}.yaml" in done.out for what in ODD)


def test_two_renders_at_once(clusters: Project, tmp_path: Path) -> None:
    """Renders that start together into one folder end well, also with caches of their own, and leave what one alone
    would."""
    good = rendered(clusters)

    def render(cache: str) -> Ran:
        return clusters.spawn("render", env={"GPUSTACK_CACHE": str(tmp_path / cache)})

    with ThreadPoolExecutor(3) as threads:
        ended = list(threads.map(render, "xyz"))
    assert [done.code for done in ended] == [0, 0, 0], [done.err for done in ended]
    assert clusters.tree() == good
    assert sorted(path.name for path in clusters.dist.iterdir()) == [".index", "a", "b"]


GONE = """
import os, sys
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
from gpustack.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [["check"], ["explain", "a"], ["capacity"], ["lint", "a.yaml"]])
def test_a_folder_that_is_gone(project: Project, words: list[str]) -> None:
    """A shell may stand in a folder that a checkout has removed: that is said, whatever the verb trips over."""
    done = project.python(GONE, *words)
    assert done.code == 4, done.err
    assert "the current folder is gone" in done.err
