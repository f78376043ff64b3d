"""The life of a cluster with both engines: what changes, what goes, what goes wrong, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control_plane.api import ApiError, Body
from tests.control_plane.cluster import wait_for
from tests.engines.engine import SECONDS
from tests.engines.fleet import Spec
from tests.engines.world import NODE_POLICY, World

OTHER_DRIVER = "580.126.20"


def config_map(name: str, **data: str) -> Body:
    """A ConfigMap for extraObjects."""
    meta = {"name": name, "namespace": "gpu-operator"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"a": "1"}}


def extra(*bodies: Body) -> Any:
    """A change of a policy: these are its extraObjects."""

    def change(spec: Spec) -> None:
        spec["extraObjects"] = [*bodies]
        if not bodies:
            del spec["extraObjects"]

    return change


@pytest.mark.ci
@pytest.mark.of("lab-a100", "train-dgx")
def test_driver_version(life: World) -> None:
    """Another driver is synced at once, and so is the next commit, while the roll-out waits because somebody paused it;
    then the reconciler rolls it, and all is well again."""
    for policy in life.api.list(NODE_POLICY):
        pause(life, policy["metadata"]["name"], "audit")
    life.change(lambda spec: spec.setdefault("driver", {}).update(version=OTHER_DRIVER), "another driver")
    life.synced_meanwhile()
    life.change(extra(config_map("next")), "the next commit")
    life.synced_meanwhile()
    assert life.api.find("ConfigMap", "next", "gpu-operator")
    old, new = life.driver_versions(), life.wanted_driver()
    assert OTHER_DRIVER in new
    assert new not in old, "a paused roll-out has begun"
    for policy in life.api.list(NODE_POLICY):
        pause(life, policy["metadata"]["name"], None)
    life.open_windows()
    wait_for(lambda: life.driver_versions() == {new}, "every node has it", SECONDS)
    life.change(extra(), "without the ConfigMap")
    life.synced()
    life.settled()


def pause(life: World, policy: str, reason: str | None) -> None:
    """What `gpustack rollout pause` writes."""
    life.api.patch(NODE_POLICY, policy, {"metadata": {"annotations": {"gpustack.dev/paused": reason}}})


@pytest.mark.ci
@pytest.mark.of("lab-a100")
def test_mig_layout(life: World) -> None:
    """A new MIG layout is synced at once, whenever nodes get it."""

    def change(spec: Spec) -> None:
        (pool,) = (pool for pool in spec["nodePools"] if pool["name"] == "notebooks")
        pool["sharing"]["mig"]["layout"] = {"1g.10gb": 7}

    life.change(change, "another layout")
    life.synced_meanwhile()
    (policy,) = (one for one in life.api.list(NODE_POLICY) if "notebooks" in one["metadata"]["name"])
    assert policy["spec"]["gpu"]["resources"] == {"nvidia.com/gpu": 8 * 7 * 2}, "7 instances of each GPU, each twice"
    life.open_windows()
    life.synced()


@pytest.mark.ci
@pytest.mark.of("lab-a100", "train-dgx", "prod-eks")
def test_object_removed(life: World) -> None:
    """What is no longer rendered, and guards nothing, is pruned, also the only object of a namespace."""
    alone = config_map("gone")
    alone["metadata"]["namespace"] = "other"
    life.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    life.change(extra(config_map("kept"), config_map("gone"), alone), "three ConfigMaps")
    life.synced()
    assert life.api.find("ConfigMap", "gone", "other")
    assert life.api.find("ConfigMap", "gone", "gpu-operator")
    life.change(extra(config_map("kept")), "one of them")
    life.synced()
    assert life.api.find("ConfigMap", "kept", "gpu-operator")
    assert not life.api.find("ConfigMap", "gone", "gpu-operator")
    assert not life.api.find("ConfigMap", "gone", "other")
    life.change(extra(), "none")
    life.synced()
    assert not life.api.find("ConfigMap", "kept", "gpu-operator")


@pytest.mark.ci
@pytest.mark.of("lab-a100", "train-dgx")
def test_hand_edit(life: World) -> None:
    """A field of ours that somebody changed is set back; one that no manifest has stays as another program set it."""
    name, namespace = "nvidia-dcgm-exporter", "gpu-operator"
    (container,) = life.api.get("DaemonSet", name, namespace)["spec"]["template"]["spec"]["containers"]
    life.kubectl("set", "image", f"daemonset/{name}", "-n", namespace, f"{container['name']}=other:1")
    label = {"metadata": {"labels": {"example.com/mine": "yes"}}}
    life.api.patch("DaemonSet", name, label, namespace, fieldManager="a-program")
    life.engine.refresh()

    def healed() -> bool:
        spec = life.api.get("DaemonSet", name, namespace)["spec"]["template"]["spec"]
        return bool(spec["containers"][0]["image"] == container["image"])

    wait_for(healed, "the image is set back", SECONDS)
    life.synced()
    assert life.api.get("DaemonSet", name, namespace)["metadata"]["labels"]["example.com/mine"] == "yes"
    label["metadata"]["labels"]["example.com/mine"] = None  # type: ignore[assignment]  # a merge patch takes it away
    life.api.patch("DaemonSet", name, label, namespace, fieldManager="a-program")


@pytest.mark.of("lab-a100")
def test_pool_removed(life: World) -> None:
    """A pool goes, and its NodePolicy stays until somebody says otherwise: Argo CD waits for that, with Flux one
    deletes it."""
    pools: list[Spec] = []

    def without(spec: Spec) -> None:
        pools.extend(spec["nodePools"][1:])
        del spec["nodePools"][1:]

    before = {one["metadata"]["name"] for one in life.api.list(NODE_POLICY)}
    life.change(without, "one pool less")
    gone = before - {one.name for one in life.rendered() if one.body["kind"] == "NodePolicy"}
    assert gone
    life.kept(*(f"{NODE_POLICY}/{name}" for name in gone))
    life.change(lambda spec: spec["nodePools"].extend(pools), "the pool again")
    life.synced()


@pytest.mark.of("lab-a100", "prod-eks")
def test_release(life: World) -> None:
    """The operator's release is lowered by one line in a layer and raised again, and everything follows."""
    layer = life.fleet.folder / "policies/layers/base.yaml"
    newest = layer.read_text("utf-8")
    older = newest.replace("release: v26.7.0", "release: v26.3.1").replace(", scrapeTimeout: 10s", "")
    try:
        layer.write_text(older, encoding="utf-8")
        life.publish("an older release")
        life.synced_meanwhile()
    finally:
        layer.write_text(newest, encoding="utf-8")
    life.publish("the newest release")
    life.synced_meanwhile()


DRIVERS = {"lab-a100": "driver", "vm-kubevirt": "vgpuManager"}


@pytest.mark.of(*DRIVERS)
def test_driver_removed(life: World) -> None:
    """A driver that the policy turns off keeps running, with the rights and files that it needs, until somebody says
    otherwise; that of virtual machines, too."""
    key = DRIVERS[life.cluster]
    was: list[Any] = []

    def off(spec: Spec) -> None:
        was.append(spec.get(key))
        spec[key] = {"enabled": False}

    before = {str(one): one for one in life.rendered() if "/driver/" in str(one)}
    life.change(off, "no driver")
    for one in life.rendered():
        before.pop(str(one), None)
    assert {"DaemonSet", "ServiceAccount", "ClusterRole"} <= {one.body["kind"] for one in before.values()}
    life.kept(*(f"{one.kind}/{one.name}" for one in before.values()))

    def on(spec: Spec) -> None:
        del spec[key]
        if was[0]:
            spec[key] = was[0]

    life.change(on, "the driver again")
    life.synced()


@pytest.mark.of("lab-a100", "train-dgx")
def test_config_of_a_driver_removed(life: World) -> None:
    """A ConfigMap of extraObjects that a driver reads is kept like the driver; one that nobody reads is not."""

    def add(spec: Spec) -> None:
        spec["extraObjects"] = [config_map("certs"), config_map("other")]
        spec.setdefault("driver", {})["certConfig"] = {"name": "certs"}

    def remove(spec: Spec) -> None:
        del spec["extraObjects"], spec["driver"]["certConfig"]

    life.change(add, "certificates")
    life.synced_meanwhile()
    life.change(remove, "no certificates")
    life.kept("ConfigMap/certs")
    assert not life.api.find("ConfigMap", "other", "gpu-operator")


@pytest.mark.of("lab-a100", "train-dgx")
def test_namespace_removed(life: World) -> None:
    """A Namespace and a CRD are never deleted, and the next commit isn't held up."""
    meta = {"name": "tenants"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    life.change(extra({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, crd), "a namespace")
    life.synced()
    life.change(extra(config_map("next")), "no namespace")
    life.engine.refresh()
    wait_for(lambda: life.api.find("ConfigMap", "next", "gpu-operator"), "the commit is synced", SECONDS)
    life.engine.round(life.cluster)
    assert life.api.find("Namespace", "tenants")
    assert life.api.find("CustomResourceDefinition", "things.example.com")
    life.api.delete("Namespace", "tenants")
    life.api.delete("CustomResourceDefinition", "things.example.com")
    life.change(extra(), "nothing of it")
    life.synced()


@pytest.mark.of("lab-a100", "train-dgx")
def test_refused_policy(life: World) -> None:
    """A NodePolicy that can't be carried out makes Argo CD Degraded, and Flux not Ready with its name; alerts that come
    with the same commit are there."""
    (first, *_) = life.api.list(NODE_POLICY)
    rival = {
        "apiVersion": first["apiVersion"],
        "kind": "NodePolicy",
        "metadata": {"name": "rival"},
        "spec": first["spec"],
    }
    name = first["metadata"]["name"]
    life.api.create(rival)
    try:
        wait_for(lambda: stalled(life, name), f"the reconciler refuses {name}", SECONDS)
        life.change(
            lambda spec: spec.setdefault("dcgmExporter", {}).update(serviceMonitor={"interval": "45s"}), "alerts"
        )
        life.engine.refresh()
        why = {"argocd": "Degraded", "flux": f"stalled resources: [NodePolicy/{name}"}[life.engine.name]
        wait_for(lambda: why in " ".join(life.complaints()), "health says why", SECONDS)
        monitors = [one for one in life.rendered() if one.body["kind"] == "ServiceMonitor"]
        wait_for(lambda: any("45s" in str(life.find(one)) for one in monitors), "what comes with it is there", SECONDS)
    finally:
        life.api.delete(NODE_POLICY, "rival")
    wait_for(lambda: not stalled(life, name), f"the reconciler takes {name}", SECONDS)
    life.synced()


def stalled(life: World, policy: str) -> bool:
    """Whether the reconciler can't carry out POLICY."""
    conditions = life.api.get(NODE_POLICY, policy).get("status", {}).get("conditions", [])
    return any(one["type"] == "Stalled" and one["status"] == "True" for one in conditions)


@pytest.mark.of("lab-a100", "train-dgx")
def test_force_push_and_revert(life: World) -> None:
    """History that was rewritten, and a revert, are commits like any other."""
    life.change(extra(config_map("one")), "one")
    life.synced()
    life.fleet.git("reset", "--quiet", "--hard", "HEAD~1")
    life.fleet.change(life.cluster, extra(config_map("two")))
    life.publish("two", "--force")
    life.synced()
    assert not life.api.find("ConfigMap", "one", "gpu-operator")
    assert life.api.find("ConfigMap", "two", "gpu-operator")
    life.fleet.git("revert", "--no-edit", "HEAD")
    life.fleet.push()
    life.synced()
    assert not life.api.find("ConfigMap", "two", "gpu-operator")


@pytest.mark.of("lab-a100", "train-dgx")
def test_repository_down(life: World) -> None:
    """While Git doesn't answer everything stays as it is; when it is back, what was pushed meanwhile is synced."""
    life.git.down = True
    try:
        life.engine.refresh()
        wait_for(life.said, "the engine says that it can't read", SECONDS)
        assert life.live()
    finally:
        life.git.down = False
    life.change(extra(config_map("later")), "after the outage")
    life.synced()
    life.change(extra(), "as before")
    life.synced()


@pytest.mark.of("lab-a100", "train-dgx")
def test_refused_object(life: World) -> None:
    """An object that admission refuses is told with the reason, and comes when it may; meanwhile Argo CD applies others
    of its wave, Flux nothing of its stage."""
    refuse(life, "refused")
    life.change(extra(config_map("refused"), config_map("allowed")), "two ConfigMaps")
    life.engine.refresh()
    try:
        wait_for(lambda: "nobody wants it" in " ".join(life.said()), "the engine says why", SECONDS)
        if life.engine.name == "argocd":
            wait_for(lambda: life.api.find("ConfigMap", "allowed", "gpu-operator"), "the other is there", SECONDS)
        else:
            assert not life.api.find("ConfigMap", "allowed", "gpu-operator")
        assert not life.api.find("ConfigMap", "refused", "gpu-operator")
    finally:
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            life.api.delete(kind, "refuse")
    life.synced()
    assert life.api.find("ConfigMap", "refused", "gpu-operator")
    life.change(extra(), "as before")
    life.synced()


def refuse(life: World, name: str) -> None:
    """Have the API server refuse the ConfigMap NAME, as somebody's webhook would."""
    version = "admissionregistration.k8s.io/v1"
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    ]
    policy = {
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refuse"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "nobody wants it"}],
        },
    }
    binding = {
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refuse"},
        "spec": {"policyName": "refuse", "validationActions": ["Deny"]},
    }
    life.api.create(policy)
    life.api.create(binding)

    def refused() -> bool:
        try:
            life.api.create(config_map(name), dryRun="All")
        except ApiError as error:
            return "nobody wants it" in error.message
        return False

    wait_for(refused, "the API server refuses it")
