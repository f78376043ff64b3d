"""Which pods count as users of a node's GPUs, and what stands against evicting them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gpustack.api import keys
from gpustack.api.node_policy import Drain, NodePolicy, PodDeletion, Spec, Upgrade, Window
from gpustack.api.objects import Metadata, Node
from gpustack.api.pods import Pod, PodSpec
from gpustack.reconciler.core.engine import trial
from gpustack.reconciler.core.pods import CLIENT, Uses, awaited, obstacle, to_drain
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.core.view import view
from gpustack.reconciler.shell.lean import MOST_CLAIMS, TOO_MANY, interest

DAEMON = {"kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
REPLICAS = {"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}


def pod(*owners: dict[str, Any], namespace: str = "tenant", **selector: str) -> Pod:
    """A running pod that asks for a GPU."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": namespace, "ownerReferences": list(owners)},
            "spec": {"containers": [container], "nodeSelector": {CLIENT: "true", **selector}},
            "status": {"phase": "Running"},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("found", "uses"),
    [
        (pod(), True),
        (pod(REPLICAS), True),
        (pod(DAEMON), True),
        (pod(REPLICAS, namespace="monitoring"), True),
        (pod(namespace="monitoring"), True),
        (pod(DAEMON, namespace="monitoring", **{CLIENT: "false"}), True),
        (pod(DAEMON, namespace="monitoring"), False),
    ],
    ids=["bare", "replicas", "tenant's daemon", "named, replicas", "named, bare", "named, selects others", "named"],
)
def test_only_daemons_of_named_namespaces_are_left_to_others(found: Pod, uses: bool) -> None:
    """A nodeSelector is anybody's to write. Only a DaemonSet's pods go when its label goes, and only where the policy
    names the namespace is that believed; all others would keep the driver in use."""
    assert Uses("gpu-operator", clients={"monitoring"}).gpu(found) is uses


def test_a_trial_says_all_that_stands_against_a_node() -> None:
    """Not the first thing alone, so that a report and the program read one list: of each pod all that its policy would
    have to allow, that no window is long enough, and who was told to end."""
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "terminationGracePeriodSeconds": 7200}
    data = msgspec.structs.replace(pod(), spec=msgspec.convert({**msgspec.to_builtins(pod().spec), **spec}, PodSpec))
    ended = msgspec.structs.replace(
        pod(REPLICAS),
        metadata=msgspec.structs.replace(pod(REPLICAS).metadata, deletionTimestamp=datetime(2026, 1, 5, 9, tzinfo=UTC)),
    )
    upgrade = Upgrade(windows=[Window(start="00:00", hours=1)])
    policy = NodePolicy(metadata=Metadata(uid="p"), spec=Spec(nodeSelector={"pool": "a"}, upgrade=upgrade))
    node = Node(metadata=Metadata(name="n", uid="n", labels={"pool": "a", keys.GPU_FEATURES[0]: "true"}))
    now = datetime(2026, 1, 5, 9, tzinfo=UTC)
    known = Snapshot(now, "gpu-operator", (node,), (policy,), pods={"n": (data, ended)})
    tried, obstacles = trial(known, view(known, node))
    field = "delete it, or set spec.driver.upgradePolicy.podDeletion"
    assert tried == []
    assert obstacles == [
        f"tenant/p has no controller and would not come back: {field}.force",
        f"tenant/p has data in an emptyDir: {field}.deleteEmptyDir",
        "tenant/p was told to end and still runs; it may take until 2026-01-05T09:00Z",
        "tenant/p may take 7200 s to end, and the longest window lasts 1 h: a node that it is on is never begun",
    ]


def test_what_to_do_about_a_daemon() -> None:
    """What is said against a DaemonSet is what would help: the selector where it lacks, and the namespace."""
    text = obstacle(pod(DAEMON), PodDeletion())
    assert "spec.reconciler.clientNamespaces" in text
    assert "nodeSelector" not in text
    bare = msgspec.structs.replace(pod(DAEMON), spec=msgspec.structs.replace(pod(DAEMON).spec, nodeSelector={}))
    assert f'nodeSelector {CLIENT}: "true", and name its namespace' in obstacle(bare, PodDeletion())


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        {"initContainers": [{"name": "c", "resources": {"requests": {"nvidia.com/mig-1g.10gb": "1"}}}]},
        {"containers": [{"name": "c", "resources": {"limits": {"example.com/renamed": "1"}}}]},
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}], "runtimeClassName": "nvidia"},
        {"containers": [{"name": "c"}], "resourceClaims": [{"name": "x", "resourceClaimName": "held"}]},
        {"containers": [{"name": "c"}], "nodeSelector": {CLIENT: "true"}},
        {"containers": [{"name": "c"}], "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}]},
        {"containers": [{"name": "c"}], "terminationGracePeriodSeconds": 3600},
    ],
)
@pytest.mark.parametrize("owner", [(), (DAEMON,), (REPLICAS,)], ids=["bare", "daemon", "replicas"])
def test_a_lean_pod_is_judged_like_the_whole_one(spec: dict[str, Any], owner: tuple[dict[str, Any], ...]) -> None:
    """What is left out decides nothing: who uses a GPU, what is awaited, what a drain takes, what stands against it."""
    labels = {"app": "nvidia-cuda-validator", "team": "a", keys.DRAIN_SKIP: "false", "other": "x"}
    metadata = {"name": "p", "namespace": "monitoring", "labels": labels, "ownerReferences": [*owner]}
    metadata["annotations"] = {"kubernetes.io/config.mirror": "x", "note": "y"}
    whole = msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}, Pod)
    lean = interest(["team in (a,b),!gone"], ["example.com/renamed"]).lean(whole)
    assert lean is not None
    uses = Uses("monitoring", {"example.com/renamed"}, {"nvidia"}, {"monitoring/held"}, {"monitoring"})
    drain = Drain(enable=True, podSelector="team in (a,b),!gone")
    for judge in (
        uses.gpu,
        uses.operand,
        lambda pod: obstacle(pod, PodDeletion()),
        lambda pod: obstacle(pod, drain),
        lambda pod: len(awaited([pod], drain.podSelector)),
        lambda pod: len(to_drain([pod], uses, drain)),
        lambda pod: pod.spec.terminationGracePeriodSeconds,
    ):
        assert judge(lean) == judge(whole)


def test_a_pod_with_more_claims_than_are_read_uses_a_gpu() -> None:
    """A thousand claims are not looked at one by one: a pod that has so many counts as what it may be."""
    claims = [{"name": f"c{number}", "resourceClaimName": f"c{number}"} for number in range(1000)]
    whole = msgspec.convert({"metadata": {"name": "p", "namespace": "t"}, "spec": {"resourceClaims": claims}}, Pod)
    lean = interest([], []).lean(whole)
    assert lean is not None
    assert len(lean.claims) == MOST_CLAIMS + 1
    assert TOO_MANY in lean.claims
