"""A Node that fails: whatever it does, one error says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.compiler import node
from tests.project import Project

SHORT = """
import sys
from gpustack.compiler import node
node.configure()
from gpustack.compiler import guard
guard.ANSWER_S = float(sys.argv[1])
from gpustack.cli import main
sys.exit(main(["render"]))
"""
"""A render that waits as long for Node as it is told."""

REAL = node.from_wheel()

FAILURES = {
    "ends": ("exit 3", "it ended with exit code 3"),
    "says why": ('echo "Error: no such module" >&2; exit 1', "Node said: Error: no such module"),
    "is killed": ("kill -9 $$", "it was killed by signal 9"),
    "prints text": ("echo Welcome; exec sleep 60", "'Welcome' is not an answer"),
    "prints JSON": ("echo '[1]'; exec sleep 60", "'[1]' is not an answer"),
    "prints a message of nobody": ("""echo '{"a": 1}'; exec sleep 60""", """'{"a": 1}' is not an answer"""),
    "is of another jsii": ("""echo '{"hello": "@jsii/runtime@9.9.9"}'; exec sleep 60""", "@jsii/runtime@9.9.9"),
    "never answers": ("exec sleep 60", "it gave no answer for 2 seconds"),
    "answers without an end": ("printf '{'; exec sleep 60", "it gave no answer for 2 seconds"),
    "answers through somebody else": ("sleep 60 | cat; true", "it gave no answer for 2 seconds"),
    "dies half-way": (f"""exec {REAL} --require "$0.dies.cjs" "$@" >&2""", "it was killed by signal 9"),
    "dies at the end": (f"""exec {REAL} --require "$0.ends.cjs" "$@" >&2""", "it was killed by signal 9"),
    "forgets nothing": (f"""exec {REAL} --require "$0.stays.cjs" "$@" >&2""", "'no' is not an answer"),
    "answers once": (f"""{REAL} -p '`{{"hello": "@jsii/runtime@$V"}}`'; exec sleep 60""", "it gave no answer"),
}


DIES = """
const fs = require("fs"), read = fs.readSync;
let requests = 0;
fs.readSync = (file, ...more) => {
  if (file === 3 && ++requests > 3) process.kill(process.pid, "SIGKILL");
  return read(file, ...more);
};
"""
"""What makes a real Node die of the fourth request."""

AT_THE_END = """
const fs = require("fs"), read = fs.readSync;
fs.readSync = (file, buffer, ...more) => {
  const length = read(file, buffer, ...more);
  if (file === 3 && buffer.subarray(0, length).includes('"del"')) {
    WHAT
  }
  return length;
};
"""
"""What makes a real Node do WHAT when it is to forget the first construct: once all of them are made."""


def broken(folder: Path, does: str) -> str:
    """A Node that tells its version, and then DOES what breaks it; what it prints is its answer."""
    from jsii.__meta__ import __jsii_runtime_version__ as version

    program = folder / "node"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo v24.0.0 && exit\nexec >&3\n{does.replace("$V", version)}\n'
    )
    (folder / "node.dies.cjs").write_text(DIES)
    (folder / "node.ends.cjs").write_text(AT_THE_END.replace("WHAT", 'process.kill(process.pid, "SIGKILL");'))
    stays = r"""fs.writeSync(3, 'no\n'); for (;;);"""
    (folder / "node.stays.cjs").write_text(AT_THE_END.replace("WHAT", stays))
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("how", FAILURES)
def test_failures(project: Project, tmp_path: Path, how: str) -> None:
    """A Node that is missing half-way, broken, of another kind, silent or killed is one error, exit 5, which names it,
    says what it did and what to do. Nothing is rendered."""
    does, said = FAILURES[how]
    program = broken(tmp_path, does)
    project.policy("a")
    patience = "2" if "no answer" in said.partition("gave ")[2] else "100"
    done = project.python(SHORT, patience, env={"JSII_NODE": program, "GPUSTACK_CACHE": str(tmp_path / "cold")})
    assert (done.code, done.out) == (5, ""), done.err
    assert done.err.startswith(f"error GPU907: Node can't run cdk8s ({program}): ")
    assert said in done.err
    assert "JSII_NODE" in done.err.partition("  do: ")[2]
    assert len(done.err.splitlines()) == 3
    assert not project.dist.exists()


def test_failures_in_workers(project: Project, tmp_path: Path) -> None:
    """It is one error for a fleet that several processes compile, too."""
    for number in range(60):
        project.policy(f"c{number}", daemonsets={"labels": {"n": str(number)}})
    env = {"JSII_NODE": broken(tmp_path, "exit 3"), "GPUSTACK_CACHE": str(tmp_path / "cold")}
    done = project.spawn("render", "--jobs", "2", env=env)
    assert (done.code, done.err.count("error "), "it ended with exit code 3" in done.err) == (5, 1, True), done.err


def test_one_node_that_keeps_nothing(project: Project) -> None:
    """Node is one process. Of a tree of constructs nothing is left on either side once it was synthesised, however
    large it is; what a team's module has made for good stays."""
    program = """
from pathlib import Path
from gpustack.compiler import node
node.configure()
from gpustack.compiler import guard
import cdk8s, jsii
from jsii._kernel.types import StatsRequest, StatsResponse
from jsii._reference_map import _refs
from gpustack.compiler.synth import synthesise

talk = jsii.kernel.provider._process
size = cdk8s.Size.gibibytes(3)
before = len(_refs._refs), talk.send(StatsRequest(), StatsResponse).objectCount
chart = cdk8s.Chart(cdk8s.App(), "c")
for number in range(3000):
    each = cdk8s.ApiObject(chart, f"n{number}", api_version="v1", kind="ConfigMap")
    if number % 10 == 0:
        each.metadata.add_label("a", chart.node.id)
del chart, each
synthesise([])
after = len(_refs._refs), talk.send(StatsRequest(), StatsResponse).objectCount
children = "".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split()
print(after == before, size.to_mebibytes(), len(children))
"""
    done = project.python(program)
    assert (done.code, done.out, done.err) == (0, "True 3072 1\n", "")


def test_an_error_of_cdk8s_is_no_failure(project: Project) -> None:
    """What cdk8s refuses while Node is well stays cdk8s' own error, and Node goes on."""
    program = """
from gpustack.compiler import node
node.configure()
from gpustack.compiler import guard
import cdk8s
chart = cdk8s.Chart(cdk8s.App(), "c")
cdk8s.ApiObject(chart, "same", api_version="v1", kind="ConfigMap")
try:
    cdk8s.ApiObject(chart, "same", api_version="v1", kind="ConfigMap")
except RuntimeError as error:
    print("already a Construct" in str(error), cdk8s.Chart(cdk8s.App(), "d").node.id)
"""
    done = project.python(program)
    assert (done.code, done.out, done.err) == (0, "True d\n", "")


def test_installation_that_is_not_whole(project: Project, tmp_path: Path) -> None:
    """A cdk8s that can't be imported is the same sort of error, not a traceback."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/cdk8s.py").write_text("raise KeyError('half of a file')")
    project.policy("a")
    path = f"{tmp_path / 'broken'}:{project.environment()['PYTHONPATH']}"
    done = project.spawn("render", env={"PYTHONPATH": path, "GPUSTACK_CACHE": str(tmp_path / "cold")})
    assert (done.code, done.err.startswith("error GPU907: Node can't run cdk8s: KeyError: ")) == (5, True)


@pytest.mark.parametrize("home", ["/proc/nowhere", "file", "open"])
def test_homes(project: Project, tmp_path: Path, home: str) -> None:
    """A home that is missing, no folder, can't be written or can be written by everybody is no matter to a cold
    render: nothing is left there."""
    folder = tmp_path / home if "/" not in home else Path(home)
    if home == "file":
        folder.write_text("")
    elif home == "open":
        (folder / ".cache").mkdir(parents=True)
        (folder / ".cache").chmod(0o777)
        folder.chmod(0o777)
    project.policy("a")
    env = {"HOME": str(folder), "JSII_RUNTIME_PACKAGE_CACHE": None, "GPUSTACK_CACHE": str(tmp_path / "cold")}
    done = project.spawn("render", env=env)
    assert (done.code, done.err) == (0, "")
    assert [path.name for path in folder.rglob("*")] == ([".cache"] if home == "open" else [])
