"""A cluster, an engine in it, and a user's repository: what a test of a whole synchronisation needs together.

    world.begin()                       # policy, render, commit, push, gpustack bootstrap | kubectl apply, and synced
    world.change(lambda spec: ...)      # edit the policy, render, commit, push
    world.synced()                      # Synced and Healthy, or every Kustomization Ready, at the last commit
    world.settled()                     # another round changes nothing

The reconciler runs beside as soon as its ServiceAccount is there; pods run on simulated nodes, one for each pool, and
one without a GPU.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tests.control_plane.api import Api, Body
from tests.control_plane.cluster import ControlPlane, free_ports, program, wait_for
from tests.control_plane.kubelet import Kubelets
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import Manifest, prepare
from tests.control_plane.objects import ready_pods
from tests.control_plane.process import Program
from tests.engines.engine import SECONDS, Engine
from tests.engines.fleet import Fleet, Spec
from tests.engines.git_server import GitServer
from tests.engines.owners import shared_fields

RECONCILER = "gpustack-reconciler"
DRIVER = "nvidia-driver-daemonset"
NODE_POLICY = "gpustack.dev/v1alpha1/NodePolicy"
NUMBERS = itertools.count(1)
KERNEL = "5.15.0-105-generic"


def machines(policy: Spec) -> Iterator[Machine]:
    """A node for each pool of POLICY, as its owner would have made it; what node feature discovery says comes along."""
    for pool in policy["spec"].get("nodePools", []):
        system = pool.get("os", "ubuntu22.04")
        name = system.rstrip("0123456789.")
        slicing = pool.get("sharing", {}).get("timeSlicing", {})
        yield Machine(
            f"{pool['name']}-{next(NUMBERS)}",
            gpus=pool.get("gpusPerNode", 1),
            product=pool["gpuProduct"],
            labels=dict(pool.get("nodeSelector", {})),
            taints=list(pool.get("taints", [])),
            os=(name, system.removeprefix(name)),
            kernel=pool.get("kernel", KERNEL),
            replicas=slicing.get("replicas", 1),
            renamed=slicing.get("renameByDefault", False),
            mig_capable=any(word in pool["gpuProduct"] for word in ("A100", "H100", "H200", "GB200")),
            host_driver=policy["spec"].get("driver", {}).get("enabled") is False or "os" not in pool,
        )


class World:
    """An ENGINE in its own cluster, the nodes of that, and the repository that it reads."""

    def __init__(self, plane: ControlPlane, kubelets: Kubelets, engine: Engine, fleet: Fleet, git: GitServer) -> None:
        self.plane = plane
        self.kubelets = kubelets
        self.engine = engine
        self.fleet = fleet
        self.git = git
        self.cluster = ""
        self.reconciler: Program | None = None

    @property
    def api(self) -> Api:
        """The API server, as admin."""
        return self.plane.admin

    # --- what a user does ---------------------------------------------------------------------------------------------

    def begin(self, change: Callable[[Spec], object] = lambda _: None, **more: Any) -> None:
        """Sync the example policy of the cluster, with CHANGE done to it and MORE in the engine's section."""
        self.example(change, **more)
        self.publish("first")
        self.prepare()
        self.add_nodes()
        self.bootstrap(self.cluster)
        self.synced()

    def example(self, change: Callable[[Spec], object] = lambda _: None, **more: Any) -> None:
        """Write the example policy with the engine's section, MORE in that, and CHANGE done to the spec."""
        section = self.engine.gitops(self.fleet.url)
        section[self.engine.name] = {**section.get(self.engine.name, {}), **more}
        self.fleet.example(self.cluster, section, change)

    def change(self, change: Callable[[Spec], object], message: str = "change") -> str:
        """Edit the policy, render, commit and push; the commit."""
        path = self.fleet.folder / f"policies/{self.cluster}.yaml"
        before = path.read_bytes()
        self.fleet.change(self.cluster, change)
        try:
            return self.publish(message)
        except AssertionError:
            path.write_bytes(before)  # other tests go on with what can be rendered
            raise

    def publish(self, message: str, *more: str) -> str:
        """Render, commit and push; the commit."""
        return self.fleet.publish(message, *more)

    def prepare(self) -> None:
        """Bring what other software has brought before: kinds, namespaces."""
        prepare(self.api, self.fleet.stages(self.cluster))

    def bootstrap(self, *clusters: str) -> None:
        """`gpustack bootstrap CLUSTERS | kubectl apply --server-side -f -`."""
        self.kubectl("apply", "--server-side", "-f", "-", text=self.fleet.gpustack("bootstrap", *clusters))

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """What `kubectl ARGUMENTS` prints; TEXT is what it reads."""
        config = self.plane.kubeconfig("admin", self.plane.token)
        command = [str(program("kubectl")), "--kubeconfig", str(config), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    # --- the cluster --------------------------------------------------------------------------------------------------

    def add_nodes(self) -> None:
        """A node for each pool, and one without a GPU for what runs anywhere."""
        policy = yaml.safe_load((self.fleet.folder / f"policies/{self.cluster}.yaml").read_text("utf-8"))
        self.kubelets.add(Machine(f"system-{next(NUMBERS)}", nfd=False), *machines(policy))

    def reconcile(self) -> None:
        """Run the reconciler, where the policy has it, as its Deployment would: by its account's rights."""
        deployments = [one for one in self.rendered() if one.body["kind"] == "Deployment" and one.name == RECONCILER]
        if not deployments or self.reconciler:
            return
        namespace = deployments[0].namespace
        wait_for(
            lambda: self.api.find("ServiceAccount", RECONCILER, namespace), "the reconciler has an account", SECONDS
        )
        (port,) = free_ports(1)
        arguments = ["-m", "gpustack.reconciler", "--namespace", namespace, "--port", str(port), "--lease-seconds", "6"]
        account = self.plane.account(RECONCILER, namespace)
        self.reconciler = self.plane.python("reconciler", *arguments, kubeconfig=account)
        self.plane.programs["reconciler"] = self.reconciler

    def wanted_driver(self) -> str:
        """The image of the driver that the cluster is to have."""
        spec = self.api.get("DaemonSet", DRIVER, "gpu-operator")["spec"]["template"]["spec"]
        return str(spec["containers"][0]["image"])

    def driver_versions(self) -> set[str]:
        """The images of the drivers that run."""
        pods = ready_pods(self.api, "gpu-operator", DRIVER)
        return {str(one["spec"]["containers"][0]["image"]) for one in pods}

    def open_windows(self) -> None:
        """Take the windows out of the policy: nodes may be taken out of service at any time."""

        def change(spec: Spec) -> None:
            for pool in spec["nodePools"]:
                pool.get("upgrade", {}).pop("windows", None)

        policy = (self.fleet.folder / f"policies/{self.cluster}.yaml").read_text("utf-8")
        if "windows" in policy:
            self.change(change, "no windows")
            self.synced_meanwhile()

    def stop(self) -> None:
        """Stop what was started beside the engine."""
        if self.reconciler:
            self.reconciler.stop()

    # --- what is expected ---------------------------------------------------------------------------------------------

    def synced(self, commit: str = "", seconds: float = SECONDS) -> None:
        """Wait until the cluster is synced at COMMIT, the last one by default, and well."""
        self.reconcile()
        self.engine.synced(self.cluster, commit or self.fleet.head, seconds)

    def synced_meanwhile(self) -> None:
        """As `synced`, also while a roll-out is held back on purpose. Prunes are confirmed where the engine asks."""
        self.reconcile()
        if self.engine.name == "argocd":
            self.engine.refresh()
            at = self.fleet.head
            wait_for(
                lambda: self.engine.asks(self.cluster) or not self.complaints(meanwhile=True),
                f"{at} is synced",
                SECONDS,
            )
            if self.engine.asks(self.cluster):
                self.engine.confirm(self.cluster)
        self.engine.synced(self.cluster, self.fleet.head, meanwhile=True)

    def kept(self, *objects: str) -> None:
        """Objects that are no longer rendered (`Kind/name`) stay until somebody wants them gone; then they go, and all
        is well.
        """
        places = [name.rpartition("/") for name in objects]
        self.engine.refresh()
        if self.engine.name == "argocd":
            wait_for(lambda: self.engine.asks(self.cluster), "Argo CD asks whether to prune", SECONDS)
        else:
            self.synced_meanwhile()
        space = "gpu-operator"
        assert all(self.api.find(kind, name, space) for kind, _, name in places), "it is gone, and nobody said so"
        if self.engine.name == "argocd":
            self.engine.confirm(self.cluster)
        else:
            for kind, _, name in places:
                self.api.delete(kind, name, space)
        wait_for(lambda: not any(self.api.find(kind, name, space) for kind, _, name in places), "they go", SECONDS)
        self.synced_meanwhile()

    def complaints(self, *, meanwhile: bool = False) -> list[str]:
        """What is not as it should be at the last commit."""
        return self.engine.complaints(self.cluster, self.fleet.head, meanwhile=meanwhile)

    def well(self, revision: str) -> bool:
        """Whether all is synced at a revision with these letters in it, and well."""
        return not self.engine.complaints(self.cluster, revision)

    def said(self) -> list[str]:
        """What the engine says that goes wrong."""
        return self.engine.said(self.cluster)

    def rendered(self) -> list[Manifest]:
        """The objects of the cluster as they were rendered."""
        return self.fleet.rendered(self.cluster)

    def live(self) -> dict[str, Body]:
        """The objects of the cluster in the API server; one that is missing is an error."""
        return {str(one): self.api.get(one.kind, one.name, one.namespace) for one in self.rendered()}

    def versions(self) -> dict[str, str]:
        """The resourceVersions of all objects of the cluster, and of the engine's own the specs."""
        found = {name: body["metadata"]["resourceVersion"] for name, body in self.live().items()}
        own = {f"{body['kind']} {body['metadata']['name']}": body for body in self.engine.objects(self.cluster)}
        return {**found, **{name: json.dumps(body["spec"], sort_keys=True) for name, body in own.items()}}

    def settled(self) -> None:
        """Another round of the engine's, nodes and reconciler beside it, changes nothing; no field has two owners."""
        self.settled_but_for_owners()
        shared = [
            f"{name}: {field}" for name, body in self.live().items() for field in shared_fields(body, self.engine.name)
        ]
        assert shared == [], f"fields with two owners: {shared}"

    def settled_but_for_owners(self) -> None:
        """Another round changes nothing."""
        before = self._quiet()
        self.engine.round(self.cluster)
        wait_for(lambda: not self.complaints(), "all is well after a round", SECONDS)
        after = self.versions()
        moved = sorted(name for name in before if before[name] != after.get(name))
        assert moved == [], f"a round of {self.engine.name} changed {moved}"

    def _quiet(self, seconds: float = 120) -> dict[str, str]:
        """The versions, once pods and labels have come to rest: the same for 5 s."""
        last: dict[str, str] = {}
        same = 0

        def rests() -> bool:
            nonlocal last, same
            now = self.versions()
            same, last = (same + 1 if now == last else 0), now
            return same >= 5

        wait_for(rests, f"{self.cluster} comes to rest", seconds, every=1)
        return last

    def find(self, one: Manifest) -> Body | None:
        """The live object of a manifest."""
        return self.api.find(one.kind, one.name, one.namespace)
