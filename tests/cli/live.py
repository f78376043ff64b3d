"""A simulated cluster behind an address of this machine, and the verbs that talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpustack.reconciler.shell.cluster import DEPLOYMENTS
from gpustack.reconciler.shell.lease import NAME
from tests.project import Project, Ran
from tests.reconciler.front import KINDS, serving
from tests.reconciler.memory import FakeCluster, drive
from tests.reconciler.model.replica import Replica
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.world import World


@dataclass
class Live:
    """A cluster with installed nodes, and a project whose verbs reach it."""

    project: Project
    world: World
    cluster: FakeCluster
    replica: Replica
    config: Path
    address: str = ""

    def run(self, *words: str, env: dict[str, str | None] | None = None) -> Ran:
        """Run `gpustack WORDS` against the cluster."""
        return self.project.run(*words, env={"KUBECONFIG": str(self.config), **(env or {})})

    def passes(self, number: int, seconds: float = 5.0) -> None:
        """Let the reconciler and everybody else work."""
        for _ in range(number):
            self.replica.run()
            self.world.tick(seconds)

    def end(self) -> None:
        """The reconciler is stopped, and lets another one lead."""
        drive(self.replica.runner.elector.release())

    def dump(self, folder: Path, *left_out: str) -> Path:
        """What kubectl would print, a file for each kind; kinds LEFT_OUT have none."""
        folder.mkdir(exist_ok=True)
        for plural, items in dumped(self.world).items():
            if plural not in left_out:
                (folder / f"{plural}.yaml").write_text(listed(items), encoding="utf-8")
        return folder


def dumped(world: World) -> dict[str, list[dict[str, Any]]]:
    """The objects of WORLD by kind, as kubectl prints them."""
    made = {}
    for plural, spaces in world.server._objects.items():
        kind = next(each for each in KINDS.values() if each.plural == plural)
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        made[plural] = [{**head, **document} for of in spaces.values() for document in of.values()]
    return made


def listed(items: Sequence[dict[str, Any]]) -> str:
    """ITEMS as `kubectl get -o yaml` prints several."""
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(items)})


def deployed(world: World) -> None:
    """The Deployment of the program is there, without options."""
    world.server.put(DEPLOYMENTS, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}})


def installed(nodes: int, **policy: Any) -> tuple[World, Replica]:
    """A cluster of so many nodes on which the stack runs, and its reconciler."""
    world = World()
    world.install_stack()
    world.set_policy(**policy)
    for number in range(nodes):
        world.add_node(f"node-{number}")
    replica = Replica(world, lambda: FakeCluster(world.server, "one"))
    for _ in range(30):
        replica.run()
        world.tick(5)
    return world, replica


@contextlib.contextmanager
def live(project: Project, nodes: int = 3, **policy: Any) -> Iterator[Live]:
    """A cluster of so many nodes, served until the end."""
    world, replica = installed(nodes, **policy)
    made = Live(project, world, FakeCluster(world.server, "person"), replica, project.folder)
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with serving(made.cluster) as address:
            made.address = address
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        made.config = kubeconfig(project.folder / "kubeconfig", made.address)
        yield made
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def kubeconfig(path: Path, address: str) -> Path:
    """A file that leads to ADDRESS, with two contexts."""
    contexts = "[{name: prod, context: {cluster: k}}, {name: test, context: {cluster: k}}]"
    clusters = f"[{{name: k, cluster: {{server: '{address}'}}}}]"
    path.write_text(f"current-context: prod\ncontexts: {contexts}\nclusters: {clusters}\n", encoding="utf-8")
    return path
