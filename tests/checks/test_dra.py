"""Rules over DRA: what it asks of a cluster, and that nothing beside it is ignored in silence."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.dra import dra, dra_exclusions  # noqa: F401 - registers rules
from gpustack.checks.language.policy import without_effect
from gpustack.checks.objects.references import made_of, needed, provided
from gpustack.checks.rule import RULES
from gpustack.cluster.resolve import resolve
from gpustack.model import Body, Finding
from tests.components.dra.common import policy

OURS = [f"GPU{number}" for number in range(170, 182)]
DOMAINS: dict[str, Any] = {"computeDomains": {"enabled": True}, "drivers": []}


def findings(**sections: Any) -> list[Finding]:
    """What the rules about DRA say about a policy with SECTIONS."""
    spec = policy(**sections)
    return [finding for name in OURS for finding in RULES[name].findings(spec)]


def found(**sections: Any) -> list[tuple[str, str]]:
    """The same as (rule, path)."""
    return [(finding.rule, finding.path) for finding in findings(**sections)]


def gates(**switches: bool) -> dict[str, Any]:
    """A gpuCluster that switches features."""
    return {"gpuCluster": {"draDriver": {"featureGates": switches}}}


def test_a_plain_cluster_of_either_kind_is_fine() -> None:
    """Nothing is said about a cluster that follows the rules, and nothing about one without DRA."""
    assert found(gpuCluster={}) == found(**DOMAINS) == found(cluster={"kubernetesVersion": "1.29"}) == []


@pytest.mark.parametrize("asked", [{"gpuCluster": {}}, DOMAINS])
def test_refused_below_kubernetes_1_34(asked: dict[str, Any]) -> None:
    """resource.k8s.io/v1 is served from 1.34 (support matrix): an error before, nothing from there on."""
    (finding,) = findings(cluster={"kubernetesVersion": "1.33.9"}, **asked)
    assert (finding.rule, finding.severity) == ("GPU170", "error")
    assert "1.33.9" in finding.what
    for version in ("1.34", "1.34.2", "v1.35.0+k3s1"):
        assert found(cluster={"kubernetesVersion": version}, **asked) == []


def test_the_first_patches_of_1_34_are_warned_about() -> None:
    """The operator's documentation asks for 1.34.2."""
    (finding,) = findings(cluster={"kubernetesVersion": "v1.34.1+rke2r1"}, gpuCluster={})
    assert (finding.rule, finding.severity) == ("GPU171", "warning")


@pytest.mark.parametrize(
    ("gpus", "domains", "refused"),
    [
        ({"port": 51515}, {}, "gpus"),
        ({}, {"port": 51516}, "computeDomains"),
        ({"port": 1}, {"port": 1}, "gpus"),
        ({}, {}, ""),
        ({"port": 51515}, {"enabled": False}, ""),
    ],
)
def test_health_checks_of_one_pod(gpus: dict[str, Any], domains: dict[str, Any], refused: str) -> None:
    """Containers of one pod share its ports: 51516 and 51515 where nothing is said (the chart's defaults)."""
    parts = {"gpus": gpus, "computeDomains": domains}
    driver = {name: {"kubeletPlugin": {"healthcheck": check}} for name, check in parts.items()}
    path = f"spec.gpuCluster.draDriver.{refused}.kubeletPlugin.healthcheck.port"
    assert found(gpuCluster={"draDriver": driver}) == ([("GPU181", path)] if refused else [])


def test_a_release_without_gpu_clusters_is_refused() -> None:
    """The operator has them since v26.7.0."""
    assert ("GPU172", "spec.gpuCluster") in found(release="v26.3.3", gpuCluster={"draDriver": {"image": "a/b:1"}})


def test_cdi_is_needed() -> None:
    """The support matrix: gpucluster_dra needs CDI."""
    assert found(gpuCluster={}, cdi={"enabled": False}) == [("GPU172", "spec.cdi.enabled")]


def test_drivers_are_described_by_drivers() -> None:
    """Without spec.drivers no driver would be rendered; nodes that bring theirs say so."""
    assert found(gpuCluster={}, drivers=[]) == [("GPU172", "spec.gpuCluster")]
    assert found(gpuCluster={}, drivers=[], driver={"enabled": False}) == []


@pytest.mark.parametrize(
    ("version", "refused"), [("570.195.03", True), ("580.65.06", False), ("580", False), ("sha256:" + "0" * 64, False)]
)
def test_the_driver_branch(version: str, refused: bool) -> None:
    """GPUs by DRA need branch 580 (support matrix); what a digest holds is not known."""
    drivers = [{"name": "default", "default": True, "version": version}]
    assert found(gpuCluster={}, drivers=drivers) == ([("GPU173", "spec.drivers[0].version")] if refused else [])


@pytest.mark.parametrize(
    ("version", "refused"),
    [("570.133.20", True), ("570.158.01", False), ("565", True), ("570", False), ("595.91.07", False)],
)
def test_the_driver_of_compute_domains(version: str, refused: bool) -> None:
    """Their daemons find each other by DNS names from 570.158.01 on; with the feature off, older drivers do."""
    driver = {"driver": {"version": version}}
    assert found(**DOMAINS, **driver) == ([("GPU173", "spec.driver.version")] if refused else [])
    off = {"enabled": True, "featureGates": {"IMEXDaemonsWithDNSNames": False, "ComputeDomainCliques": False}}
    assert found(computeDomains=off, drivers=[], **driver) == []


def test_compute_domains_have_one_owner() -> None:
    """Beside gpuCluster the section is refused: a node runs one DRA driver."""
    assert found(gpuCluster={}, computeDomains={"enabled": True}) == [("GPU174", "spec.computeDomains.enabled")]


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"devicePlugin": {"env": [{"name": "A", "value": "1"}]}}, "devicePlugin.env"),
        ({"toolkit": {"installDir": "/opt"}}, "toolkit.installDir"),
        ({"mig": {"strategy": "mixed"}}, "mig.strategy"),
        ({"migManager": {"config": {"name": "layouts"}}}, "migManager.config.name"),
        ({"gfd": {"resources": {"limits": {"cpu": "1"}}}}, "gfd.resources.limits.cpu"),
        ({"nodeStatusExporter": {"enabled": True}}, "nodeStatusExporter.enabled"),
        ({"cdi": {"nriPluginEnabled": True}}, "cdi.nriPluginEnabled"),
        ({"operator": {"runtimeClass": "gpu"}}, "operator.runtimeClass"),
        ({"hostPaths": {"rootFS": "/host"}}, "hostPaths.rootFS"),
        ({"sandboxWorkloads": {"enabled": True}}, "sandboxWorkloads.enabled"),
        ({"validator": {"cuda": {"env": [{"name": "A", "value": "1"}]}}}, "validator.cuda.env"),
        ({"nodePools": [{"name": "a", "sharing": {"timeSlicing": {"replicas": 2}}}]}, "nodePools[0].sharing"),
        (
            {"nodePools": [{"name": "a", "sharing": {"mig": {"layout": {"3g.40gb": 1, "1g.10gb": 4}}}}]},
            "nodePools[0].sharing",
        ),
    ],
)
def test_nothing_of_the_plugin_stack_is_ignored(section: dict[str, Any], path: str) -> None:
    """What only the device plugin's stack would read is refused with gpuCluster, and fine without."""
    assert found(gpuCluster={}, **section) == [("GPU175", f"spec.{path}")]
    assert found(drivers=[], **section) == []


@pytest.mark.parametrize(
    "section",
    [
        {"devicePlugin": {"enabled": False, "env": [{"name": "A", "value": "1"}]}},
        {"devicePlugin": {"enabled": True}},
        {"validator": {"repository": "r.example", "image": "v", "version": "1", "imagePullSecrets": ["s"]}},
        {
            "daemonsets": {"labels": {"a": "b"}},
            "dcgmExporter": {"hostPID": True},
            "hostPaths": {"kubeletRootDir": "/k"},
        },
        {"cluster": {"platform": "k3s"}},
        {"cluster": {"platform": "gke-cos"}, "driver": {"enabled": False}, "drivers": []},
    ],
)
def test_what_asks_for_nothing_is_no_mistake(section: dict[str, Any]) -> None:
    """Off, as the release has it, of the platform, or read by the DRA components: all that passes."""
    assert found(gpuCluster={}, **section) == []


def test_the_driver_section_is_replaced() -> None:
    """What the one driver of all nodes was told is worth a warning: layers carry it for other clusters."""
    (finding,) = findings(gpuCluster={}, driver={"rdma": {"enabled": True}})
    assert (finding.rule, finding.severity, finding.path) == ("GPU176", "warning", "spec.driver.rdma.enabled")


@pytest.mark.parametrize(
    ("switches", "gate"),
    [
        ({"DynamicMIG": True, "MPSSupport": True}, "DynamicMIG"),
        ({"NVMLDeviceHealthCheck": True, "PassthroughSupport": True}, "NVMLDeviceHealthCheck"),
        ({"DeviceMetadata": True}, "DeviceMetadata"),
        ({"IMEXDaemonsWithDNSNames": False}, "IMEXDaemonsWithDNSNames"),
    ],
)
def test_features_that_contradict_each_other(switches: dict[str, bool], gate: str) -> None:
    """The driver ends at its start: refused, at a gate that the policy sets."""
    assert found(**gates(**switches)) == [("GPU177", f"spec.gpuCluster.draDriver.featureGates.{gate}")]


def test_features_that_do_not_exist() -> None:
    """An unknown feature ends the driver too; the nearest one is named. Of another version nothing is known."""
    (finding,) = findings(**gates(MPSSuport=True))
    assert (finding.rule, finding.severity) == ("GPU178", "warning")
    assert "MPSSupport" in finding.remedy
    other = {"gpuCluster": {"draDriver": {"version": "v9", "featureGates": {"New": True, "DeviceMetadata": True}}}}
    assert found(**other) == []


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ({"daemonsets": {"updateStrategy": "OnDelete"}}, "daemonsets.updateStrategy"),
        ({"daemonsets": {"rollingUpdate": {"maxUnavailable": "50%"}}}, "daemonsets.rollingUpdate"),
        ({"daemonsets": {"podSecurityContext": {"fsGroup": 1}}}, "daemonsets.podSecurityContext"),
        ({"dcgm": {"hostPort": 5555}}, "dcgm.hostPort"),
    ],
)
def test_fields_without_effect_are_noted(written: dict[str, Any], path: str) -> None:
    """What the operator ignores in a GPUCluster (operator.md 11.1, 7.7) is told to who sets it."""
    assert [hit.path for hit in without_effect(resolve(policy(gpuCluster=written)))] == [f"spec.gpuCluster.{path}"]
    assert list(without_effect(resolve(policy(gpuCluster={})))) == []


def test_a_namespace_of_the_cluster_needs_the_label() -> None:
    """Where the namespace is not rendered, somebody else has to admit admin claims."""
    (finding,) = findings(gpuCluster={}, cluster={"namespace": "kube-system"})
    assert finding.rule == "GPU179"
    assert "resource.kubernetes.io/admin-access" in finding.what


def test_pull_secrets_of_the_daemons() -> None:
    """The operator doesn't pass pull secrets to the daemons of compute domains: who needs that is told how."""
    secrets = {"imagePullSecrets": ["a", "b"]}
    (finding,) = findings(gpuCluster={"draDriver": secrets})
    assert finding.rule == "GPU179"
    told = {"controller": {"env": [{"name": "CD_DAEMON_IMAGE_PULL_SECRET_NAMES", "value": "a,b"}]}}
    assert "CD_DAEMON_IMAGE_PULL_SECRET_NAMES, value: a,b" in finding.remedy
    assert found(gpuCluster={"draDriver": {**secrets, "computeDomains": told}}) == []
    assert found(gpuCluster={"draDriver": {**secrets, "computeDomains": {"enabled": False}}}) == []


def test_a_gpu_with_its_own_cpu() -> None:
    """GB200 comes with an arm64 CPU, so a pool that says amd64 is wrong; one that says nothing is right."""
    pool = {"name": "rack", "gpuProduct": "NVIDIA-GB200"}
    assert found(drivers=[], nodePools=[{**pool, "arch": "amd64"}]) == [("GPU180", "spec.nodePools[0].arch")]
    assert found(drivers=[], nodePools=[pool, {**pool, "name": "b", "arch": "arm64"}]) == []


def unresolved(*bodies: Body) -> list[tuple[str, str, str]]:
    """What BODIES name that none of them brings: kind, namespace, name."""
    have = {(item.kind, item.namespace, item.name) for body in bodies for item in provided(body)}
    need = [(item.kind, item.namespace, item.name) for body in bodies for item in needed(body)]
    return [name for name in need if name not in have]


def claim_template(name: str, device_class: str) -> Body:
    """A ResourceClaimTemplate for one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


POD: Body = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {"containers": [], "resourceClaims": [{"name": "x", "resourceClaimTemplateName": "channel"}]},
}


def test_claims_lead_somewhere() -> None:
    """A pod's claim needs its template, and the template its class."""
    classes = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}}
    assert unresolved(POD) == [("ResourceClaimTemplate", "team", "channel")]
    assert unresolved(POD, claim_template("channel", "gpu")) == [("DeviceClass", "", "gpu")]
    assert unresolved(POD, claim_template("channel", "gpu.nvidia.com"), classes) == []


def test_a_compute_domain_brings_its_template() -> None:
    """The controller makes the claim template that a ComputeDomain names, in its namespace."""
    domain: Body = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "channel"}}},
    }
    assert unresolved(POD, domain) == []
    assert made_of(POD) == ""


def test_a_policy_binding_needs_its_policy() -> None:
    """A binding to an admission policy that isn't there protects nothing."""
    binding: Body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    assert unresolved(binding) == [("ValidatingAdmissionPolicy", "", "p")]
