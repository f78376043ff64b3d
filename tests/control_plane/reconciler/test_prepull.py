"""What a node waits for that others do before it is taken out of service: images are pulled, kured reboots a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.api import keys
from tests.control_plane.api import ApiError
from tests.control_plane.cluster import wait_for
from tests.control_plane.objects import ready_pods
from tests.control_plane.reconciler.stack import ACCOUNT, DRIVER, NEW_DRIVER, NS, Stack, over, render
from tests.control_plane.reconciler.witness import Witness

WAITS: dict[str, Any] = {"reconciler": {"prepull": {}, "kured": {}}}
LOCK = "weave.works/kured-node-lock"


def test_images_before_the_cordon(stack: Stack, witness: Witness, tmp_path: Path) -> None:
    """A new driver, and a node on which no image can be had: it is neither cordoned nor loses its driver pod, and says
    why; the others go on. Once the images are there it is rolled. The pods that pull are the DaemonSet controller's,
    replaced by it; they run under the rendered rights and guards.
    """
    stack.apply(render(tmp_path / "old", WAITS))
    try:
        stack.start()
        nodes = stack.add(3, "free")
        stack.all_done(*nodes)
        cut_off, *others = nodes
        name = f"{DRIVER}-images"
        wait_for(lambda: len(ready_pods(stack.api, NS, "gpustack-images")) == 3, "the images are everywhere")
        before = stack.driver_hash(cut_off)
        stack.kubelets.change(cut_off, pull_fails=True)
        witness.sights.clear()
        stack.apply(render(tmp_path / "new", over(WAITS, NEW_DRIVER)))
        stack.all_done(*others)
        found = stack.wait_reason("free", "pulling")
        assert found["nodes"] == [cut_off.name]
        assert "ImagePullBackOff" in found["message"]
        assert witness.phases(cut_off.name) in ([], [""])
        assert not stack.node(cut_off)["spec"].get("unschedulable")
        assert stack.driver_hash(cut_off) == before != stack.newest()
        stack.kubelets.change(cut_off, pull_fails=False)
        stack.all_done(*nodes)
        assert stack.api.get("DaemonSet", name, NS)["spec"]["template"]["metadata"]["labels"][keys.IMAGES]
    finally:
        stack.api.delete("DaemonSet", f"{DRIVER}-images", NS)


def test_kured_holds_its_lock(stack: Stack, witness: Witness, upgraded: Path, tmp_path: Path) -> None:
    """While kured reboots a node no other one is begun, by the rendered right to see its DaemonSet, with which nothing
    of it can be changed. Once the lock is gone, all nodes are rolled.
    """
    lock = (
        '{"nodeID":"elsewhere","metadata":{"unschedulable":false},"created":"2026-01-01T00:00:00.123456789Z","TTL":0}'
    )
    labels = {"name": "kured"}
    spec = {"containers": [{"name": "kured", "image": "example.com/kured"}], "nodeSelector": {"example.com/none": "x"}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    meta = {"name": "kured", "namespace": "kube-system"}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta}
    stack.apply(render(tmp_path / "old", {"reconciler": {"kured": {}}}))
    stack.api.create({**body, "spec": {"selector": {"matchLabels": labels}, "template": template}})
    try:
        stack.start("reconciler", "--kured", "kube-system/kured")
        nodes = stack.add(2, "free")
        stack.all_done(*nodes)
        stack.api.patch("DaemonSet", "kured", {"metadata": {"annotations": {LOCK: lock}}}, "kube-system")
        witness.sights.clear()
        stack.apply(upgraded)
        found = stack.wait_reason("free", "maintenance")
        assert found["nodes"] == sorted(one.name for one in nodes)
        assert found["message"].startswith("kured reboots elsewhere")
        assert all(witness.phases(one.name) in ([], [""]) for one in nodes)
        program = stack.api.as_user(stack.api.token_for(ACCOUNT, NS))
        with pytest.raises(ApiError) as refused:
            program.patch("DaemonSet", "kured", {"metadata": {"annotations": {LOCK: None}}}, "kube-system")
        assert refused.value.status == 403
        stack.api.patch("DaemonSet", "kured", {"metadata": {"annotations": {LOCK: None}}}, "kube-system")
        stack.all_done(*nodes)
    finally:
        stack.api.delete("DaemonSet", "kured", "kube-system")
