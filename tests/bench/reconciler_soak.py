"""A rollout on the real API server, as large as you like: `python -m tests.bench.reconciler_soak [NODES] [PODS]`.

NODES simulated nodes (50) with PODS pods each (30), every tenth of which has a GPU, get a new driver, a tenth of the
nodes at a time. Meanwhile the program is killed once, and one node in fifty does not build its driver for a while.
Printed are wall time against the ideal (nodes / parallel x time of an operation), the program's requests per node, its
start-up time and peak memory, and how often a limit was broken (0 is the goal). It needs the programs that
`make test-control-plane` builds; 1,000 nodes need 12 GB and an hour on 2 cores.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import pod
from tests.control_plane.process import Program
from tests.control_plane.reconciler.stack import DRIVER, NEW_DRIVER, NS, Stack, render
from tests.control_plane.reconciler.witness import Witness

BATCH = 50
OUTAGE_SECONDS = 10
LOOK = 3
"""Seconds between two looks at all nodes: they cost the two processors what the API server needs."""


def ready(stack: Stack, count: int, revision: str) -> bool:
    """Whether COUNT nodes have the driver of REVISION and no open operation."""
    drivers = [
        one
        for one in stack.api.list("Pod", NS, labels=f"app={DRIVER},{keys.HASH}={revision}")
        if one.get("status", {}).get("phase") == "Running"
    ]
    idle = [
        one
        for one in stack.api.list("Node")
        if keys.PHASE not in one["metadata"]["labels"] and keys.LAST in one["metadata"].get("annotations", {})
    ]
    return len(drivers) == len(idle) == count


def populate(stack: Stack, machines: list[Machine], pods: int) -> None:
    """Put PODS pods on each machine, every tenth with a GPU."""

    def create(job: tuple[Machine, int]) -> None:
        machine, number = job
        body = pod(f"{machine.name}-{number}", "default", gpus=int(number % 10 == 0), nodeName=machine.name)
        stack.api.create(body)

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(create, [(machine, number) for machine in machines for number in range(pods)]))


def memory(program: Program) -> tuple[int, int]:
    """Resident memory now and at its peak, in MB."""
    text = Path(f"/proc/{program.process.pid}/status").read_text(encoding="utf-8")
    now, peak = (int(re.findall(rf"{name}:\s+(\d+) kB", text)[0]) // 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def requests(stack: Stack, name: str) -> int:
    """How many requests a program has sent, by its metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.ports[name]}/metrics") as answer:
        text = answer.read().decode()
    return int(
        sum(float(count) for count in re.findall(r"^gpustack_reconciler_requests\S* (\S+)$", text, re.MULTILINE))
    )


def start(stack: Stack, name: str) -> Program:
    """Start the program, and say how long it took."""
    began = time.monotonic()
    program = stack.start(name)
    wait_for(lambda: any(line["message"] == "started" for line in stack.log(program)), "it has started", every=0.01)
    print(f"{name}: started in {time.monotonic() - began:.2f} s, {memory(program)[0]} MB resident", flush=True)
    return program


def operations(witness: Witness) -> list[float]:
    """How long each node was out of service."""
    since: dict[str, float] = {}
    found = []
    for sight in witness.sights:
        if sight.phase:
            since.setdefault(sight.node, sight.at)
        elif sight.node in since:
            found.append(sight.at - since.pop(sight.node))
    return found


def roll(stack: Stack, machines: list[Machine], upgraded: Path, parallel: int) -> None:
    """The rollout with its faults, and what there is to say about it."""
    witness = Witness(stack.api)
    witness.start()
    bad = machines[:: max(len(machines) // max(len(machines) // 50, 1), 1)][: max(len(machines) // 50, 1)]
    for machine in bad:
        stack.kubelets.change(machine, driver_crashes=True)
    began = time.monotonic()
    stack.apply(upgraded)
    wait_for(lambda: any(sight.phase == "Acting" for sight in list(witness.sights)), "it is under way", 300)
    sent, peak = requests(stack, "first"), memory(stack.programs[-1])[1]
    stack.programs[-1].kill()
    second = start(stack, "second")
    time.sleep(OUTAGE_SECONDS)
    for machine in bad:
        stack.kubelets.change(machine, driver_crashes=False)
    wait_for(lambda: ready(stack, len(machines), stack.newest()), "all nodes are done", 7200, every=LOOK)
    wall = time.monotonic() - began
    witness.stop()
    took = statistics.median(operations(witness))
    ideal = len(machines) / parallel * took
    violations = len(witness.torn()) + max(witness.most_cordoned() - parallel, 0)
    sent, peak = sent + requests(stack, "second"), max(peak, memory(second)[1])
    print(f"rollout: {wall:.0f} s, ideal {ideal:.0f} s ({parallel} at a time, {took:.1f} s each)")
    print(f"requests: {sent / len(machines):.1f} a node, those of the installation among them")
    print(f"peak memory: {peak} MB; most nodes cordoned at a time: {witness.most_cordoned()}; violations: {violations}")


def main(nodes: int = 50, pods: int = 30) -> None:
    """Run it."""
    parallel = max(nodes // 10, 1)
    limits = {"driver": {"upgradePolicy": {"maxParallelUpgrades": parallel, "maxUnavailable": parallel}}}
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder) / "plane") as plane:
        rendered = render(Path(folder) / "old", limits)
        upgraded = render(Path(folder) / "new", {"driver": {**limits["driver"], **NEW_DRIVER["driver"]}})
        stack = Stack(plane, kubelets := gpu_kubelets(plane.admin), Path(folder))
        kubelets.start()
        try:
            stack.apply(rendered)
            start(stack, "first")
            machines: list[Machine] = []
            while len(machines) < nodes:
                machines += stack.add(min(BATCH, nodes - len(machines)), "free")
                settled = partial(ready, stack, len(machines), stack.newest())
                wait_for(settled, "they are set up", 1800, every=LOOK)
            populate(stack, machines, pods)
            roll(stack, machines, upgraded, parallel)
        finally:
            for program in stack.programs:
                program.stop()
            kubelets.stop()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
