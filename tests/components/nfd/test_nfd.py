"""Node feature discovery: what the operator's sub-chart installs, taken over in place, and what a policy changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from gpustack.api.keys import GPU_FEATURES, PRESENT
from gpustack.catalog import kubernetes
from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.components import NodeFeatureDiscovery
from gpustack.components.component import Component
from gpustack.components.nfd.nfd_inputs import NfdInputs, installation
from gpustack.components.nfd.nfd_inputs import nfd as from_cluster
from gpustack.policy.language.nfd import Nfd
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components import common
from tests.components.nfd.common import NAME, ROLES, config, inputs, pod, rendered


def test_names_and_selectors_are_the_charts() -> None:
    """An installation by the chart (release gpu-operator) is taken over in place: same objects, same selectors, and
    bindings to the same roles, none of which can be changed."""
    bodies = rendered()
    for role, key in ROLES.items():
        selector = bodies[key]["spec"]["selector"]["matchLabels"]
        assert selector == {
            "app.kubernetes.io/name": "node-feature-discovery",
            "app.kubernetes.io/instance": "gpu-operator",
            "role": role,
        }
        assert selector.items() <= bodies[key]["spec"]["template"]["metadata"]["labels"].items()
        assert [each["name"] for each in pod(bodies, role)["containers"]] == [role]
    for key in (f"ClusterRole/{NAME}", f"ClusterRole/{NAME}-gc", f"Role/{NAME}-worker"):
        kind, _, name = key.partition("/")
        assert bodies[key]
        assert bodies[f"{kind}Binding/{name}"]["roleRef"]["name"] == name
    assert {f"ConfigMap/{NAME}-master-conf", f"ConfigMap/{NAME}-worker-conf"} <= set(bodies)


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("gpu-operator", NAME),
        ("gpu-operator-1712345678", "gpu-operator-1712345678-node-feature-discovery"),
        ("my-node-feature-discovery", "my-node-feature-discovery"),
        ("a" * 41, "a" * 41 + "-node-feature-discover"),
        ("a" * 47, "a" * 47 + "-node-feature-di"),
        ("a" * 57, "a" * 57 + "-node"),
        ("a" * 58, "a" * 58 + "-node"),
    ],
)
def test_name_of_another_helm_release(release: str, name: str) -> None:
    """`helmRelease` gives the names that Helm gave: release and chart, cut at 63 characters without a dash at the
    end."""
    found = inputs({"helmRelease": release})
    assert found is not None
    assert found.installation is not None
    assert found.installation.name == name


def test_existing_installation_is_left_alone() -> None:
    """With `enabled: false` nothing of node feature discovery is rendered, CRDs included; the rule, which is the
    operator's own, still comes along where it is asked for, and so does the guard over what GFD tells it."""
    guard = {f"ValidatingAdmissionPolicy{end}/gpustack-nodefeatures-of-own-node" for end in ("", "Binding")}
    assert inputs({"enabled": False}, gfd={"enabled": False}) is None
    assert set(rendered({"enabled": False})) == guard
    assert set(rendered({"enabled": False, "nodefeaturerules": True})) == {
        "NodeFeatureRule/nvidia-kernel-modules",
        *guard,
    }


def test_rule_for_kernel_modules() -> None:
    """`nodefeaturerules` labels nodes by loaded modules (the chart's nodefeaturerules.yaml); off by default."""
    assert "NodeFeatureRule/nvidia-kernel-modules" not in rendered()
    rules = rendered({"nodefeaturerules": True})["NodeFeatureRule/nvidia-kernel-modules"]["spec"]["rules"]
    found = {
        module: label
        for rule in rules
        for label, value in rule["labels"].items()
        for term in rule["matchFeatures"]
        for module, how in term["matchExpressions"].items()
        if value == "true" and term["feature"] == "kernel.loadedmodule" and how == {"op": "Exists"}
    }
    assert found == {
        "gdrdrv": "nvidia.com/gdrcopy.capable",
        "nvidia_fs": "nvidia.com/gds.capable",
        "nvidia_peermem": "nvidia.com/peermem.capable",
    }


PART = {
    "resources": {"limits": {"memory": "2Gi"}},
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"a": "b"},
    "priorityClassName": "mine",
}
CHANGES: dict[str, Any] = {
    "enabled": False,
    "nodefeaturerules": True,
    "helmRelease": "gpu-operator-1712345678",
    "labelNamespaces": ["example.com"],
    "pciClasses": ["12"],
    "onGpuNodes": "avoid",
    "repository": "registry.example/nfd",
    "image": "other",
    "version": "v1",
    "imagePullPolicy": "Always",
    "imagePullSecrets": ["credentials"],
    **{f"{role}.{field}": value for role in ROLES for field, value in PART.items()},
}


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The paths of all fields of a policy section that hold a value; `resources` counts as one."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_no_field_is_forgotten() -> None:
    """The next test knows every field of the section."""
    assert sorted(fields(Nfd)) == sorted(CHANGES)


@pytest.mark.parametrize("path", CHANGES)
def test_every_field_has_an_effect(path: str) -> None:
    """Each field of `nfd` changes what is rendered; one of a part changes that part's workload alone."""
    head, _, field = path.partition(".")
    before, after = rendered(), rendered({head: {field: CHANGES[path]}} if field else {path: CHANGES[path]})
    assert before != after
    if field:
        assert {key for key in before if before[key] != after[key]} == {ROLES[head]}
        text = json.dumps(after[ROLES[head]])
        assert all(part in text for part in json.dumps(CHANGES[path])[1:-1].split(", "))


@pytest.mark.parametrize(("release", "version"), [("v26.7.0", "v0.19.0"), ("v26.3.1", "v0.18.3")])
def test_image_is_the_releases(release: str, version: str) -> None:
    """All three run the image of the release, by way of the cluster's mirror where there is one."""
    policy = common.spec(release, cluster={"registryMap": {"registry.k8s.io": "mirror.example/k8s"}})
    bodies = common.render(NodeFeatureDiscovery, from_cluster(resolve(policy)) or NfdInputs(installation=None))
    images = {pod(bodies, role)["containers"][0]["image"] for role in ROLES}
    assert images == {f"mirror.example/k8s/nfd/node-feature-discovery:{version}"}


def test_tolerations() -> None:
    """The worker reaches GPU nodes whatever the taint's value, control planes, and what `daemonsets` tolerates; a list
    of the worker's own replaces all of it, an empty one too (bug-reports.md B25, B26)."""
    control = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    sku = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    assert pod(rendered(), "worker")["tolerations"] == [control, gpu]
    assert pod(rendered(daemonsets={"tolerations": [sku]}), "worker")["tolerations"] == [control, gpu, sku]
    own = rendered({"worker": {"tolerations": [sku]}}, daemonsets={"tolerations": [gpu]})
    assert pod(own, "worker")["tolerations"] == [sku]
    none = rendered(
        {role: {"tolerations": []} for role in ("master", "worker", "gc")}, daemonsets={"tolerations": [sku]}
    )
    assert all("tolerations" not in pod(none, role) for role in ("master", "worker", "gc"))
    assert pod(rendered(), "master")["tolerations"] == pod(rendered(), "gc")["tolerations"] == [control]


def test_what_serves_all_nodes_keeps_off_gpus() -> None:
    """Master and gc run on no node with a GPU, unless it is of the control plane; or rather on others, where the policy
    says so; or where a node selector of their own says. The worker runs everywhere."""
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    for role in ("master", "gc"):
        found = pod(rendered(), role)["affinity"]["nodeAffinity"]
        off, control = found[required]["nodeSelectorTerms"]
        assert {each["key"] for each in off["matchExpressions"]} == {*GPU_FEATURES, PRESENT}
        assert all((each["operator"], each["values"]) == ("NotIn", ["true"]) for each in off["matchExpressions"])
        assert control["matchExpressions"] == [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
        avoids = pod(rendered({"onGpuNodes": "avoid"}), role)["affinity"]["nodeAffinity"]
        assert required not in avoids
        assert avoids[preferred][-1] == {"weight": 100, "preference": off}
        own = pod(rendered({role: {"nodeSelector": {"a": "b"}}}), role)
        assert required not in own.get("affinity", {}).get("nodeAffinity", {})
    assert "affinity" not in pod(rendered(), "worker")


def test_worker_finds_gpus() -> None:
    """PCI devices are labelled by vendor alone, which gives pci-10de.present: another field would change the key
    (reconciler.md L8). The classes stay text: 0200 is not a number."""
    pci = {"deviceClassWhitelist": ["02", "0200", "0207", "0300", "0302"], "deviceLabelFields": ["vendor"]}
    assert config(rendered(), "worker") == {"sources": {"pci": pci}}
    more = config(rendered({"pciClasses": ["12", "02"]}), "worker")["sources"]["pci"]
    assert more == {**pci, "deviceClassWhitelist": [*pci["deviceClassWhitelist"], "12"]}


@pytest.mark.parametrize(
    ("role", "change"), [("master", {"labelNamespaces": ["a.example"]}), ("worker", {"pciClasses": ["12"]})]
)
def test_changed_configuration_replaces_the_pods(role: str, change: dict[str, Any]) -> None:
    """The programs read their configuration when they start, so a change of it changes the pod template."""
    templates = [bodies[ROLES[role]]["spec"]["template"] for bodies in (rendered(), rendered(change))]
    assert templates[0]["spec"] == templates[1]["spec"]
    assert templates[0]["metadata"] != templates[1]["metadata"]


def test_one_master_at_a_time() -> None:
    """Two masters of different configurations would undo each other's labels. Replacing is said in words of the
    strategy that a Deployment of the chart has already."""
    deployment = rendered()[ROLES["master"]]["spec"]
    assert deployment["replicas"] == 1
    assert deployment["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }


@pytest.mark.parametrize("minor", [kubernetes.MINORS[0], kubernetes.MINORS[-1]])
def test_api_server_takes_it(minor: str) -> None:
    """Every object passes the strict schemas of the oldest and the newest Kubernetes version."""
    bodies = rendered({"nodefeaturerules": True}, cluster={"kubernetesVersion": minor})
    assert len(bodies) > 15
    assert [finding for body in bodies.values() for finding in validate(body, minor)] == []


def test_stages() -> None:
    """CRDs come first, all else in the stage of discovery, before the driver needs its labels."""
    made = NfdInputs(installation=installation(common.spec()), rule=True)
    found: Component[Any] = NodeFeatureDiscovery(common.chart(), "stages", made)
    stages = {(resource.kind == "CustomResourceDefinition", resource.stage) for resource in found.resources()}
    assert stages == {(True, "crds"), (False, "discovery")}


def test_off_by_policy_only() -> None:
    """Absent means installed: everything else stands on it."""
    policy: ClusterPolicySpec = common.spec()
    assert policy.nfd.enabled
    assert from_cluster(resolve(policy)) is not None
