"""Kills `gpustack render` at random moments and counts bad states: `python -m tests.bench.kill_soak [KILLS] [SEED]`.

After each kill every cluster's folder must hold exactly what the old policies render to, or exactly what the new ones
do, with the files of somebody else in it; no process may be left; and the next render must repair everything. Prints
the number of kills, how many of them came while folders were being replaced, and how many states were bad (0 is the
goal).
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.project import Project

CLUSTERS = 40
FOREIGN = "own.txt"
State = dict[str, dict[str, bytes]]
"""Files of each cluster: what is rendered, without the headers' cluster in it, is the same for all."""


@dataclass
class Result:
    """What a soak found: `between` counts kills that left some clusters old and some new."""

    kills: int = 0
    between: int = 0
    bad: list[str] = field(default_factory=list)


def policies(project: Project, version: int) -> None:
    """Write the policies of VERSION: all clusters change, files come and go."""
    project.layer("fleet", daemonsets={"labels": {"version": str(version)}}, psa={"enabled": version % 2 == 0})
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"only-in-{version}"}, "data": {"a": "b"}}
    for number in range(CLUSTERS):
        project.policy(f"c{number:02}", extends=["fleet"], extraObjects=[other])


def state(project: Project) -> State:
    """The files of each cluster as they are now."""
    found: State = {path.name: {} for path in project.dist.iterdir() if not path.name.startswith(".")}
    for name, content in project.tree().items():
        cluster, _, rest = name.partition("/")
        if cluster in found:
            found[cluster][rest] = content
    return found


def render(project: Project) -> float:
    """Render to the end; returns how long that takes."""
    start = time.monotonic()
    done = project.spawn("render")
    assert done.code == 0, done.err
    return time.monotonic() - start


def group_is_gone(leader: int) -> bool:
    """Whether no process of the group of LEADER is left, after at most five seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def kill_once(project: Project, after: float) -> bool:
    """Start a render and kill it AFTER seconds; returns whether a process of it stays alive."""
    command = [sys.executable, "-m", "gpustack", "render", "--jobs", "2"]
    with subprocess.Popen(
        command,
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        time.sleep(after)
        program.send_signal(signal.SIGKILL)
        program.wait()
    return not group_is_gone(program.pid)


def allow(project: Project) -> None:
    """List the files that somebody else put beside those that are rendered: else `check` refuses them."""
    digest = hashlib.sha256(b"mine").hexdigest()
    lines = (
        f"- {{path: dist/{cluster}/{FOREIGN}, sha256: {digest}, why: the soak watches that it stays}}\n"
        for cluster in state(project)
    )
    project.write("dist.allow.yaml", "".join(lines))


def soak(project: Project, kills: int, seed: int, say: Callable[[str], None] = lambda _: None) -> Result:
    """Kill KILLS renders at moments that SEED picks, each on the way from one version of all policies to the other."""
    chance, result = random.Random(seed), Result()
    states: list[State] = []
    seconds = 0.0
    for version in (0, 1, 0):
        policies(project, version)
        seconds = render(project)
        for cluster in state(project):
            (project.dist / cluster / FOREIGN).write_bytes(b"mine")
        states.append(state(project))
    states = [states[2], states[1]]
    allow(project)
    for number in range(kills):
        target = number % 2
        policies(project, target)
        result.kills += 1
        if kill_once(project, chance.uniform(0.3, 1.05) * seconds):
            result.bad.append(f"kill {number}: processes stay alive")
        seen = state(project)
        kinds = [[files == known[cluster] for known in states] for cluster, files in seen.items()]
        if len(seen) != CLUSTERS or not all(map(any, kinds)):
            result.bad.append(f"kill {number}: a cluster is neither old nor new")
        result.between += len({kind.index(True) for kind in kinds if any(kind)}) > 1
        say(f"{number + 1} of {kills}")
        if number % 10 == 9 or number == kills - 1:
            render(project)
            scratch = [path for path in project.dist.rglob("*") if path.name.startswith(".gpustack")]
            if state(project) != states[target] or scratch or project.spawn("check").code:
                result.bad.append(f"kill {number}: not repaired")
    return result


def main(words: list[str]) -> int:
    """Run the soak in a folder of its own and print what it found."""
    kills, seed = (int(words[0]) if words else 200), (int(words[1]) if words[1:] else int(time.time()))
    folder = Path(tempfile.mkdtemp(prefix="gpustack-soak-"))
    try:
        (folder / "project").mkdir()
        project = Project(folder / "project", folder / "cache")
        result = soak(project, kills, seed, lambda text: print(f"\r{text}", end="", flush=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"\r{result.kills} kills (seed {seed}), {result.between} of them between clusters, {len(result.bad)} bad states"
    )
    print("\n".join(result.bad), end="\n" if result.bad else "")
    return 1 if result.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
