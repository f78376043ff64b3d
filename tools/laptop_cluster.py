"""A cluster for docs/tutorial.md, on the loopback interface: a real control plane, and nodes whose GPUs are simulated.

    make laptop-cluster        until Ctrl-C; says which KUBECONFIG reaches it

API server, controllers and scheduler are Kubernetes' own, as the tests start them (tests/control_plane). Nodes are
simulated: pods are bound to them and get ready, and those of NVIDIA do what a node sees of them. The reconciler is the
real program under the rights that are rendered, started beside the cluster once its Deployment has been applied:
nobody has to build its image. What is in the cluster is gone when it ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.cluster import RELEASE, ControlPlane, free_ports
from tests.control_plane.machine import Machine
from tests.control_plane.pace import Pace
from tests.control_plane.process import Program

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".tools" / "laptop"
KUBERNETES = "1.36"
POOL = {"example.com/pool": "training"}
NODES = ("gpu-0", "gpu-1")
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}
RECONCILER, NAMESPACE = "gpustack-reconciler", "gpu-operator"
WORDS = """\
Kubernetes {release} acting as {version}, nodes {nodes}. In another terminal:
  export KUBECONFIG={config} PATH="{programs}:$PATH"
The cluster ends with Ctrl-C."""


class Laptop:
    """The cluster, while it runs. A thread does what a kubelet does for the reconciler's Deployment."""

    def __init__(self, plane: ControlPlane) -> None:
        self.kubeconfig = plane.kubeconfig("admin", plane.token)
        self._plane = plane
        self._ended = threading.Event()
        self._reconciler: Program | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the reconciler."""
        self._ended.set()
        self._thread.join()
        if self._reconciler is not None:
            self._reconciler.stop()

    def _watch(self) -> None:
        """Start the reconciler when its Deployment is there, and again when it ended."""
        while not self._ended.wait(1):
            running = self._reconciler is not None and self._reconciler.running
            if not running and all(self._there(kind) for kind in ("Deployment", "ServiceAccount")):
                (port,) = free_ports(1)
                words = ["-m", "gpustack.reconciler", "--namespace", NAMESPACE, "--port", str(port)]
                account = self._plane.account(RECONCILER, NAMESPACE)
                self._reconciler = self._plane.python("reconciler", *words, kubeconfig=account)

    def _there(self, kind: str) -> bool:
        return self._plane.admin.find(kind, RECONCILER, NAMESPACE) is not None


@contextmanager
def laptop(folder: Path) -> Iterator[Laptop]:
    """The cluster of the tutorial, with its data in FOLDER."""
    with ControlPlane(folder, emulated=KUBERNETES) as plane:
        kubelets = gpu_kubelets(plane.admin, Pace(driver=2))
        kubelets.start()
        try:
            kubelets.add(Machine("control-plane", gpus=0, nfd=False, mig_capable=False, labels=dict(CONTROL_PLANE)))
            kubelets.add(*(Machine(name, labels=dict(POOL)) for name in NODES))
            found = Laptop(plane)
            try:
                yield found
            finally:
                found.end()
        finally:
            kubelets.stop()


def main() -> int:
    """Run the cluster until it is interrupted."""
    argparse.ArgumentParser(description="A cluster for docs/tutorial.md, until Ctrl-C").parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        with laptop(FOLDER) as cluster:
            programs = ROOT / ".tools" / "control-plane" / "bin"
            words = {"release": RELEASE, "version": KUBERNETES, "nodes": ", ".join(NODES), "programs": programs}
            print(WORDS.format(config=cluster.kubeconfig, **words), flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
