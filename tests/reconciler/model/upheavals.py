"""What happens seldom and changes much: pools and policies that are exchanged, parts of the stack that come and go,
nodes that register anew, the operator that comes back, an uninstallation."""

from __future__ import annotations

from typing import Any

from gpustack.reconciler.shell.cluster import DAEMONSETS, DEPLOYMENTS, NODES, POLICIES, REVISIONS
from gpustack.reconciler.shell.uninstall import uninstall
from tests.reconciler.memory import FakeCluster, drive
from tests.reconciler.world.stack import COMPONENTS, DRIVER, NAMESPACE, STARTUP
from tests.reconciler.world.stack import POOL as KEY

from . import moment as m
from .actors import LAYOUTS, POOL, SPARE, Actors
from .replica import Replica

RENAMED = "renamed"
OPTIONAL = tuple(name for name in COMPONENTS if name not in {"driver", "device-plugin", "mig-manager"})


class Upheavals(Actors):
    """Steps; each takes a small number that says which node, which value."""

    replica: Replica

    # --- Git ----------------------------------------------------------------------------------------------------------

    def everything(self, number: int) -> None:
        """Another driver, another layout and another workload type at once."""
        self.want.mig = LAYOUTS[1 + number % 3]
        self.want.labels = (("nvidia.com/gpu.workload.config", ("container", "vm-vgpu")[number % 2]),)
        self.driver(0)

    def labelling(self, number: int) -> None:
        """Others are to label the nodes, or the program again."""
        self.want.labelling = number % 2 == 0
        self.sync(0)

    def manager(self, number: int) -> None:
        """The MIG manager is switched off, and with it the layout; or on again."""
        self.want.manager = number % 2 == 0
        self.sync(0)

    def parts(self, number: int) -> None:
        """A component is no longer rendered, or all are."""
        self.want.without = (*OPTIONAL, "")[number % (len(OPTIONAL) + 1)]
        self.sync(0)

    def startup(self, number: int) -> None:
        """The platform brings up nodes with a taint, or no longer does."""
        self.want.startup = number % 3 != 2
        self.sync(0)

    def rename(self, number: int) -> None:
        """The policy of the pool has another name from now on; both are there for a while, or neither."""
        if number % 3 != 1:
            self.world.set_policy(RENAMED, **self.want.options(), nodeSelector={KEY: POOL})
        if number % 3 and self.world.server.find(POLICIES, POOL):
            self.world.server.remove(POLICIES, POOL)

    def pool(self, number: int) -> None:
        """A node goes to another pool, which has another layout, or none; or it comes back."""
        if number % 4 == 3:
            self._remove(SPARE)
        elif self.world.server.find(POLICIES, SPARE) is None:
            options = {**self.want.options(), "mig": LAYOUTS[number % 4]}
            self.world.set_policy(SPARE, **options)
        if node := self._node(number):
            now = self.world.labels(node).get(KEY)
            self.world.label(node, {KEY: POOL if now == SPARE else SPARE})

    # --- the cluster --------------------------------------------------------------------------------------------------

    def driver_gone(self, number: int) -> None:
        """The driver's DaemonSet is deleted: its pods go as well, or stay for the next one to adopt."""
        found = self.world.server.find(DAEMONSETS, DRIVER, NAMESPACE)
        if found is None:
            self.sync(0)
            return
        self.world.server.remove(DAEMONSETS, DRIVER, NAMESPACE)
        for each in list(self.world.server.all(REVISIONS)):
            if any(of["uid"] == found["metadata"]["uid"] for of in each["metadata"]["ownerReferences"]):
                self.world.server.remove(REVISIONS, each["metadata"]["name"], NAMESPACE)
        for name in self.world.machines if number % 2 else ():
            self.world.delete_operand(DRIVER, name)

    def register(self, number: int) -> None:
        """A kubelet registers its node anew: the same machine under another UID, without any label of ours."""
        node = self._node(number)
        if node is None:
            return
        old = self.world.node(node)
        self.world.server.remove(NODES, node)
        keep = {key: value for key, value in m.labels(old).items() if key in {KEY, m.ZONE}}
        status = dict(old["status"])
        if number % 2:
            status["allocatable"] = {"cpu": "64"}
        taints = [STARTUP] if self.want.startup else []
        metadata = {"name": node, "labels": {**keep, m.PCI: "true"}}
        self.world.server.put(NODES, {"metadata": metadata, "spec": {"taints": taints}, "status": status})

    def lies(self, number: int) -> None:
        """A kubelet offers one GPU less than there are, or all again."""
        if node := self._node(number):
            self.world.machines[node].faults ^= {"count"}

    def rival(self, number: int) -> None:
        """The operator comes back, or goes."""
        there = self.world.server.find(DEPLOYMENTS, "gpu-operator", NAMESPACE)
        if there or number % 4 == 3:
            self._remove_rival()
        else:
            body: dict[str, Any] = {"metadata": {"name": "gpu-operator", "namespace": NAMESPACE}}
            self.world.server.put(DEPLOYMENTS, {**body, "status": {"readyReplicas": 1}})

    def uninstall(self, number: int) -> None:
        """Somebody uninstalls, and the program is started again later."""
        made = Replica(self.world, lambda: FakeCluster(self.world.server, "uninstall")).runner
        drive(made.elector.look())
        self.world.elapsed += 60  # the Lease of whoever led has run out
        drive(uninstall(made.cluster, made.sources, made.elector, made.log, keep_labels=number % 2 == 0))
        self.by_hand = True  # by which content a node was cut is no longer remembered
        self.world.tick((5, 60, 900)[number % 3])
        self.replica.restart()

    # --- the end ------------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """None of it any more."""
        self.want.report = False
        self.want.labelling, self.want.manager, self.want.without, self.want.spare = True, True, "", False
        for name in (SPARE, RENAMED):
            self._remove(name)
        self._remove_rival()
        for name, machine in self.world.machines.items():
            self.world.label(name, {KEY: POOL})
            machine.faults.discard("count")
            self.well(name)

    def _remove(self, policy: str) -> None:
        if self.world.server.find(POLICIES, policy):
            self.world.server.remove(POLICIES, policy)

    def _remove_rival(self) -> None:
        if self.world.server.find(DEPLOYMENTS, "gpu-operator", NAMESPACE):
            self.world.server.remove(DEPLOYMENTS, "gpu-operator", NAMESPACE)
