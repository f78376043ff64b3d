"""The labeller: adds fast, removes slowly, owns its own values only (reconciler.md 1, 6.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpustack.reconciler.shell.cluster import NODES, PODS
from tests.reconciler.memory import FakeCluster
from tests.reconciler.model.moment import DEPLOY, PCI
from tests.reconciler.model.replica import Replica
from tests.reconciler.world.stack import COMPONENTS, STARTUP
from tests.reconciler.world.workloads import Workload, start
from tests.reconciler.world.world import World

PRESENT = "nvidia.com/gpu.present"


class Cluster:
    """One node, installed."""

    def __init__(self) -> None:
        self.world = World()
        self.world.install_stack()
        self.world.set_policy()
        self.world.add_node("a")
        self.replica = Replica(self.world, lambda: FakeCluster(self.world.server, "one"))
        self.run(30)

    def run(self, passes: int, seconds: float = 5.0) -> None:
        """Some passes."""
        for _ in range(passes):
            self.replica.run()
            self.world.tick(seconds)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the node."""
        return dict(self.world.labels("a"))

    def deploy(self) -> dict[str, str]:
        """The deploy labels, by component."""
        return {key.removeprefix(DEPLOY): value for key, value in self.labels.items() if key.startswith(DEPLOY)}


@pytest.fixture
def cluster() -> Cluster:
    """An installed node."""
    return Cluster()


def test_a_bare_node_gets_its_labels_in_the_first_pass_with_the_annotation() -> None:
    """In one patch with the record (A4), the annotation that keeps the driver manager from evicting included."""
    world = World()
    world.install_stack()
    world.set_policy()
    world.add_node("a")
    client = FakeCluster(world.server, "one")
    Replica(world, lambda: client).run()
    assert client.requests["patch", "nodes"] == 1
    assert {f"{DEPLOY}{name}" for name in COMPONENTS} <= world.labels("a").keys()
    assert world.annotations("a")["nvidia.com/gpu-driver-upgrade-enabled"] == "true"
    assert not world.cordoned("a")


def test_install_ends_with_the_default_layout(cluster: Cluster) -> None:
    """As the operator does where nobody has chosen one (L30)."""
    assert cluster.labels["nvidia.com/mig.config"] == "all-disabled"
    assert cluster.deploy() == dict.fromkeys(COMPONENTS, "true")


@pytest.mark.parametrize("value", ["false", "pre-installed", "paused-for-driver-upgrade", "x_paused-for-mig-change"])
def test_foreign_values_stay(cluster: Cluster, value: str) -> None:
    """Byte for byte (I13)."""
    cluster.world.label("a", {f"{DEPLOY}device-plugin": value})
    cluster.run(10)
    assert cluster.deploy()["device-plugin"] == value


def test_an_empty_value_is_none(cluster: Cluster) -> None:
    """The driver manager writes it for what was never deployed (L20)."""
    cluster.world.label("a", {f"{DEPLOY}device-plugin": ""})
    cluster.run(1)
    assert cluster.deploy()["device-plugin"] == "true"


def test_what_is_paused_by_nobody_is_healed_after_the_longest_wait(cluster: Cluster) -> None:
    """Eight waits of five minutes and a reserve: 45 minutes (D5)."""
    cluster.world.label("a", {f"{DEPLOY}device-plugin": "paused-for-mig-change"})
    cluster.run(8, 300)
    assert cluster.deploy()["device-plugin"] == "paused-for-mig-change", "40 minutes"
    cluster.run(3, 300)
    assert cluster.deploy()["device-plugin"] == "true"


def test_an_opt_out_is_removed_and_comes_back(cluster: Cluster) -> None:
    """Components that are named in the annotation do not run."""
    cluster.world.annotate("a", {"gpustack.dev/optout": "operator-validator , gpu-feature-discovery"})
    cluster.run(2)
    assert {"operator-validator", "gpu-feature-discovery"}.isdisjoint(cluster.deploy())
    cluster.world.annotate("a", {"gpustack.dev/optout": None})
    cluster.run(2)
    assert cluster.deploy() == dict.fromkeys(COMPONENTS, "true")


def test_the_opt_out_of_all_operands(cluster: Cluster) -> None:
    """`gpu.deploy.operands=false` takes every component, the driver included (L25), once nothing uses a GPU."""
    pod = start(cluster.world, Workload("train", 1), "a")
    cluster.world.label("a", {f"{DEPLOY}operands": "false"})
    cluster.run(2)
    assert cluster.deploy()["driver"] == "true", "a pod uses a GPU"
    cluster.world.server.remove(PODS, pod["metadata"]["name"], "work")
    cluster.run(2)
    assert cluster.deploy() == {"operands": "false"} | {
        key: value for key, value in cluster.deploy().items() if key == "mig-manager"
    }


def test_the_gpu_must_be_gone_for_long(cluster: Cluster) -> None:
    """NFD may be down: nothing changes for the grace of 15 minutes, and then only where no GPU is offered."""
    cluster.world.label("a", {PCI: None})
    cluster.run(8, 300)
    assert cluster.deploy() == dict.fromkeys(COMPONENTS, "true"), "the node still offers GPUs"
    cluster.world.machines["a"].loaded = ""
    cluster.world.tick(5)
    cluster.run(3, 240)
    assert cluster.labels[PRESENT] == "true", "12 minutes"
    cluster.run(2, 240)
    assert cluster.labels[PRESENT] == "false", "as the operator says it (L9)"
    assert cluster.deploy() == {}


def test_a_short_outage_changes_nothing(cluster: Cluster) -> None:
    """Ten minutes without NFD (I16)."""
    before = cluster.labels
    cluster.world.label("a", {PCI: None})
    cluster.run(20, 30)
    cluster.world.label("a", {PCI: "true"})
    cluster.run(3)
    assert cluster.labels == before


def test_labels_of_the_pool_are_set_and_follow(cluster: Cluster) -> None:
    """The device plugin's configuration disturbs nobody; a change of the workload type is an operation."""
    key, mode = "nvidia.com/device-plugin.config", "nvidia.com/gpu.workload.config"
    cluster.world.set_policy(labels={key: "shared", mode: "container"})
    cluster.run(2)
    assert (cluster.labels[key], cluster.labels[mode]) == ("shared", "container")
    cluster.world.set_policy(labels={key: "whole", mode: "vm-vgpu"})
    cluster.replica.run()
    assert cluster.labels[key] == "whole"
    assert cluster.labels[mode] == "container"
    cluster.run(1)
    assert cluster.world.cordoned("a")


def test_no_policy_or_several_freeze_the_labels(cluster: Cluster) -> None:
    """A label that is removed by mistake kills a driver (A2)."""
    before = cluster.labels
    cluster.world.set_policy("twin", nodeSelector={"example.com/pool": "gpus"}, components=["driver"])
    cluster.run(5)
    assert cluster.labels == before
    assert any(wait.kind == "membership" for wait in cluster.replica.decided.waits)


def test_a_default_layout_of_ones_own_and_none(cluster: Cluster) -> None:
    """`migDefault` is what a new node starts with; without one its label is left alone."""
    for name, default in (("b", "halves"), ("c", "")):
        cluster.world.set_policy(migDefault=default, gpu={"migCapable": True})
        cluster.world.add_node(name)
        cluster.run(40)
        assert cluster.world.labels(name).get("nvidia.com/mig.config", "") == default


def bare(**spec: Any) -> Cluster:
    """A new node under a policy with SPEC, after as many passes as an install takes."""
    made = Cluster.__new__(Cluster)
    made.world = World()
    made.world.install_stack()
    made.world.set_policy(**spec)
    made.world.add_node("a")
    made.replica = Replica(made.world, lambda: FakeCluster(made.world.server, "one"))
    made.run(30)
    return made


def test_no_default_layout_is_set_where_the_policy_names_none() -> None:
    """`migManager.config.default: ""` leaves the MIG manager without a word from us; the install ends all the same."""
    made = bare(migDefault="")
    assert "nvidia.com/mig.config" not in made.labels
    assert '"outcome":"done"' in made.world.annotations("a")["gpustack.dev/last-op"]


OTHERS = {PRESENT: "true", **{f"{DEPLOY}{name}": "true" for name in COMPONENTS}}
"""What tooling of others sets."""


def test_others_label_the_nodes() -> None:
    """`labelling: none`: a new node is waited for, and nothing is written on it; then it is proved, and no label of its
    is ever ours."""
    made = bare(labelling=False, labels={"nvidia.com/device-plugin.config": "shared"})
    assert made.labels.keys() == {"example.com/pool", "topology.kubernetes.io/zone", PCI}
    assert made.world.annotations("a") == {}
    assert [(wait.kind, PRESENT in wait.message) for wait in made.replica.decided.waits] == [("unlabelled", True)]
    made.world.label("a", OTHERS)
    made.run(30)
    assert '"outcome":"done"' in made.world.annotations("a")["gpustack.dev/last-op"]
    assert "nvidia.com/mig.config" not in made.labels
    assert "nvidia.com/device-plugin.config" not in made.labels
    made.world.label("a", {f"{DEPLOY}operator-validator": None, f"{DEPLOY}dcgm": "true", PCI: None})
    made.run(8, 300)
    assert "operator-validator" not in made.deploy()
    assert (made.deploy()["dcgm"], made.labels[PRESENT]) == ("true", "true")


def test_operations_go_on_where_others_label_the_nodes() -> None:
    """A driver and a MIG layout roll; of all labels, the layout's command alone is ours."""
    made = bare(labelling=False)
    made.world.label("a", OTHERS)
    made.run(30)
    made.world.roll("2", labelling=False, mig="halves", labels={"nvidia.com/gpu.workload.config": "container"})
    made.run(60)
    assert made.labels["nvidia.com/mig.config"] == "halves"
    assert made.world.machines["a"].loaded == "digest-2"
    assert "gpustack.dev/op" not in made.world.annotations("a")
    assert not made.world.cordoned("a")
    assert "nvidia.com/gpu.workload.config" not in made.labels
    assert made.deploy() == dict.fromkeys(COMPONENTS, "true")


def test_a_pause_that_is_forgotten_is_healed_in_an_operation_too() -> None:
    """Or the driver that it waits for never comes, and each new attempt begins to wait anew."""
    world = World()
    world.install_stack()
    world.set_policy()
    world.add_node("a")
    world.label("a", {f"{DEPLOY}driver": "paused-for-driver-upgrade"})
    replica = Replica(world, lambda: FakeCluster(world.server, "one"))
    for _ in range(60):
        replica.run()
        world.tick(60)
    assert world.labels("a")[f"{DEPLOY}driver"] == "true"
    assert world.operand("nvidia-driver-daemonset", "a") is not None


def kept_off(labels: dict[str, str], annotations: dict[str, str], driver: str = "", **policy: Any) -> Cluster:
    """A new node on which somebody has opted out of components, hours later. DRIVER is loaded there already."""
    made = Cluster.__new__(Cluster)
    made.world = World()
    made.world.install_stack()
    made.world.set_policy(**policy)
    made.world.add_node("a").loaded = driver
    made.world.label("a", {f"{DEPLOY}{name}": value for name, value in labels.items()})
    made.world.annotate("a", annotations)
    made.replica = Replica(made.world, lambda: FakeCluster(made.world.server, "one"))
    made.run(150, 60)
    return made


def outcome(cluster: Cluster) -> str:
    """How the last operation on the node ended; "open" while one is."""
    annotations = cluster.world.annotations("a")
    return (
        "open" if "gpustack.dev/op" in annotations else str(json.loads(annotations["gpustack.dev/last-op"])["outcome"])
    )


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({"driver": "false"}, {}),
        ({"driver": "pre-installed"}, {}),
        ({}, {"gpustack.dev/optout": "driver"}),
    ],
)
def test_nobody_waits_for_a_driver_that_is_kept_off(labels: dict[str, str], annotations: dict[str, str]) -> None:
    """The node brings its driver: people say so by an opt-out (L26), the driver manager by the label (L23)."""
    made = kept_off(labels, annotations, driver="of the host")
    assert outcome(made) == "done"
    assert made.deploy() == dict.fromkeys(COMPONENTS[1:], "true") | labels
    assert made.replica.decided.waits == ()
    made.world.roll("2")
    made.run(10)
    assert not made.world.cordoned("a")


@pytest.mark.parametrize("labels", [{"operands": "false"}, {"device-plugin": "false"}])
@pytest.mark.parametrize("mig", ["", "halves"])
def test_nobody_waits_for_what_is_offered_by_nobody(labels: dict[str, str], mig: str) -> None:
    """Without a device plugin a node offers no GPU, and its validator, which asks for one, does not end (V1); with all
    operands off nobody cuts its GPUs either."""
    made = kept_off(labels, {}, mig=mig)
    assert outcome(made) == "done"
    off = "operands" in labels
    assert made.deploy() == ({} if off else dict.fromkeys(COMPONENTS, "true")) | labels
    assert [wait.kind for wait in made.replica.decided.waits] == (["opt-out"] if off and mig else [])


def test_nobody_waits_for_a_layout_that_nobody_cuts() -> None:
    """A new node whose GPUs nobody may cut is set up as it is, and says why it is not as the policy wants it."""
    made = kept_off({"mig-manager": "false"}, {}, mig="halves")
    assert outcome(made) == "done"
    assert not made.world.cordoned("a")
    assert [wait.kind for wait in made.replica.decided.waits] == ["opt-out"]


def test_no_layout_is_commanded_where_the_mig_manager_is_kept_off(cluster: Cluster) -> None:
    """Nobody would answer: the node stays in service, and says why it is not as the policy wants it."""
    cluster.world.label("a", {f"{DEPLOY}mig-manager": "false"})
    cluster.world.set_policy(mig="halves")
    cluster.run(10)
    assert cluster.labels["nvidia.com/mig.config"] == "all-disabled"
    assert not cluster.world.cordoned("a")
    assert [(wait.kind, "halves" in wait.message) for wait in cluster.replica.decided.waits] == [("opt-out", True)]


def test_no_layout_is_commanded_while_the_mig_manager_is_paused(cluster: Cluster) -> None:
    """Its driver manager forgot it: nobody would answer, so the pause is healed first and the node stays in service."""
    cluster.world.label("a", {f"{DEPLOY}mig-manager": "paused-for-driver-upgrade"})
    cluster.world.set_policy(mig="halves")
    cluster.run(30, 60)
    assert not cluster.world.cordoned("a")
    assert [(wait.kind, wait.message) for wait in cluster.replica.decided.waits] == [
        ("mig-busy", "MIG layout halves is due, and the MIG manager is paused")
    ]
    cluster.run(30, 60)
    cluster.run(30)
    assert cluster.world.machines["a"].geometry[0] == "halves"


def test_startup_taints_go_though_no_operation_set_the_node_up(cluster: Cluster) -> None:
    """A kubelet registered the node anew, with the platform's taint: it goes once all works. Those of others stay as
    they are, the time at which they were set included."""
    others = {"key": "example.com/x", "effect": "NoExecute", "value": "y", "timeAdded": "2026-01-05T09:00:00Z"}
    cluster.world.set_policy(startupTaints=[STARTUP])
    cluster.world.machines["a"].faults = {"validator"}
    cluster.world.delete_operand("nvidia-operator-validator", "a")
    cluster.world.tick()
    cluster.world.server.edit(NODES, "a", {"spec": {"taints": [STARTUP, others]}})
    cluster.run(3)
    assert cluster.world.node("a")["spec"]["taints"] == [STARTUP, others]
    assert [(wait.kind, "no validator is ready" in wait.message) for wait in cluster.replica.decided.waits] == [
        ("startup", True)
    ]
    cluster.world.machines["a"].faults = set()
    cluster.run(3)
    assert cluster.world.node("a")["spec"]["taints"] == [others]
    assert cluster.replica.decided.waits == ()


def test_gpus_that_were_cut_by_nobody_who_says_so(cluster: Cluster) -> None:
    """The pool names no layout and the node has no label of one: another driver fails for no want of whole GPUs."""
    cluster.world.machines["a"].geometry = ("halves", "1")
    cluster.world.label("a", {"nvidia.com/mig.config": None, "nvidia.com/mig.config.state": None})
    cluster.run(2)
    cluster.world.roll("2")
    cluster.run(60)
    assert cluster.world.machines["a"].loaded == "digest-2"
    assert "gpustack.dev/op" not in cluster.world.annotations("a")
    assert not cluster.world.cordoned("a")


@pytest.mark.parametrize("dropped", [False, True])
def test_an_install_takes_the_startup_taints_of_the_policy_away(dropped: bool) -> None:
    """By key and effect, as the admission policy lets it: a write that takes another away would be refused for ever.
    So it is where the policy names none any more."""
    others = {"key": STARTUP["key"], "effect": "PreferNoSchedule"}
    world = World()
    world.install_stack()
    world.set_policy(startupTaints=[STARTUP])
    world.add_node("a")
    world.server.edit(NODES, "a", {"spec": {"taints": [STARTUP, others]}})
    replica = Replica(world, lambda: FakeCluster(world.server, "one"))
    replica.run()
    assert "gpustack.dev/op" in world.annotations("a")
    if dropped:
        world.set_policy()
    for _ in range(30):
        replica.run()
        world.tick(5)
    assert "gpustack.dev/op" not in world.annotations("a")
    assert world.node("a")["spec"]["taints"] == ([STARTUP, others] if dropped else [others])
