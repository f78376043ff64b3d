"""Kills a process at each step that it takes in the file system, and looks at what it leaves.

A program of its own, because it forks: `python -m tests.compiler.crash FOLDER SCENARIO`. For every n, a child does what
the scenario says and is killed (SIGKILL) right before its n-th access to the file system; then the folder must hold the
old state or the new one, and doing the work again must give the new one. Prints the number of deaths, or what was
wrong.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from gpustack.compiler import beside, dist, folders
from gpustack.compiler.dist import Rendering, header

CLUSTER = "c"
FOREIGN = {f"{CLUSTER}/README.md": b"mine\n", f"{CLUSTER}/base/own.txt": b"mine too\n", "other/x": b"x\n"}


def rendering(**files: str) -> Rendering:
    """A rendering of FILES, whose names have __ for / and no suffix."""
    head = header("policies/c.yaml")
    content = {f"{name.replace('__', '/')}.yaml": f"{head}{text}\n".encode() for name, text in files.items()}
    return Rendering(CLUSTER, "policies/c.yaml", "1.34", MappingProxyType(content))


OLD = rendering(base__a="1", base__gone="2", operands__same="3")
NEW = rendering(base__a="changed", operands__same="3", driver__added="4")


def first(out: Path) -> None:
    """Write into a folder that isn't there."""
    dist.sweep(out)
    dist.write(out, NEW)


def replace(out: Path) -> None:
    """Write over an older render."""
    dist.sweep(out)
    dist.write(out, NEW)


def step_aside(out: Path) -> None:
    """Write over an older render where the system can't exchange two folders in one call."""
    folders.atomic_exchange = lambda first, second: False
    replace(out)


def remove(out: Path) -> None:
    """Remove the cluster of a deleted policy."""
    dist.sweep(out)
    if CLUSTER in beside.clusters_in(out):
        dist.remove_cluster(out, CLUSTER)


SCENARIOS: dict[str, Callable[[Path], None]] = {
    scenario.__name__: scenario for scenario in (first, replace, step_aside, remove)
}


def state(out: Path) -> dict[str, bytes]:
    """The files that engines see: all but index and scratch."""
    found = (path for path in out.rglob("*") if path.is_file())
    names = {path.relative_to(out).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".")}


def prepare(out: Path, scenario: str) -> None:
    """The state before SCENARIO."""
    out.mkdir()
    if scenario != "first":
        dist.write(out, OLD)
        for name, content in FOREIGN.items():
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_bytes(content)


def killed(out: Path, work: Callable[[Path], None], step: int) -> bool:
    """Whether a child that does WORK died before it was done: right before its access number STEP."""
    child = os.fork()
    if child == 0:
        count = itertools.count()

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            del arguments
            watched = event == "open" or event.startswith(("os.", "shutil.", "tempfile.", "ctypes."))
            if watched and next(count) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work(out)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def wrong(out: Path, scenario: str, old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """What is wrong with a folder in which a render was killed, "" for nothing."""
    seen = state(out)
    # The one moment in which the folder isn't there, where the system can't exchange folders.
    gap = {name: content for name, content in old.items() if not name.startswith(f"{CLUSTER}/")}
    if seen not in (old, new) and not (scenario == "step_aside" and seen == gap):
        return f"neither old nor new: {sorted(seen)}"
    SCENARIOS[scenario](out)
    if state(out) != new:
        return f"not repaired: {sorted(state(out))}"
    left = [path.name for path in [*out.iterdir(), *(out / ".index").iterdir()] if path.name.startswith(".gpustack")]
    if left:
        return f"left behind: {left}"
    if scenario != "remove" and (out / f".index/{CLUSTER}.json").read_bytes() != NEW.index():
        return "a wrong index"
    return ""


def main(folder: Path, scenario: str) -> int:
    """Kill SCENARIO at each step; returns the exit code."""
    work = SCENARIOS[scenario]
    before, after = folder / "before", folder / "after"
    prepare(before, scenario)
    prepare(after, scenario)
    work(after)
    old, new = state(before), state(after)
    for step in itertools.count():
        out = folder / f"step-{step}"
        shutil.copytree(before, out, symlinks=True)
        if not killed(out, work, step):
            sys.stdout.write(f"{step}\n")
            return 0
        problem = wrong(out, scenario, old, new)
        if problem:
            sys.stdout.write(f"killed at step {step}: {problem}\n")
            return 1
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
