"""Rules about what a policy says in vain: of what is off, of nothing that is rendered, of another release."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.checks.rule import all_rules
from gpustack.checks.subjects import Written
from gpustack.model import Finding
from gpustack.policy.loading.load import load
from tests.checks import spec_rules
from tests.checks.snippets import loaded

KATA = "sandboxWorkloads: {enabled: true, mode: kata}\n"
KUBEVIRT = "sandboxWorkloads: {enabled: true}\n"
DRIVERS = "driver: {useNvidiaDriverCRD: true%s}\ndrivers: [{name: stable, default: true%s}]\n"
OPENSHIFT = (
    "cluster: {openshift: {version: 4.18.22, driverToolkitImages: {418.94.1-0: registry.example.com/toolkit:1}}}\n"
    "nodePools: [{name: p, os: rhcos4.18, ostreeVersion: 418.94.1-0}]\n"
)
DRA = "gpuCluster: {}\ndrivers: [{name: default, default: true}]\n"


def said(rule: str, snippet: str) -> list[Finding]:
    """What the rule called RULE, over who wrote what, says about SNIPPET."""
    (found,) = (each for each in all_rules() if each.id == rule and each.over == "origins")
    policy = loaded(snippet)
    return list(found.findings(Written(policy.spec, policy.merged)))


def paths(rule: str, snippet: str) -> list[str]:
    """The places that RULE finds in SNIPPET."""
    return [finding.path for finding in said(rule, snippet)]


@pytest.mark.parametrize(
    ("snippet", "path", "remedy"),
    [
        ("dcgm: {enabled: false, image: mine}", "dcgm.image", "dcgm.enabled"),
        ("computeDomains: {imagePullSecrets: [x]}", "computeDomains.imagePullSecrets", "computeDomains.enabled"),
        ("driver: {rdma: {enabled: false, useHostMofed: true}}", "driver.rdma.useHostMofed", "driver.rdma.enabled"),
        (
            "dcgmExporter: {hpcJobMapping: {directory: /x}}",
            "dcgmExporter.hpcJobMapping.directory",
            "hpcJobMapping.enabled",
        ),
        ("vfioManager: {image: mine}", "vfioManager.image", "sandboxWorkloads.enabled"),
        ("vgpuManager: {enabled: true}", "vgpuManager.enabled", "sandboxWorkloads.enabled"),
        ("ccManager: {defaultMode: 'off'}", "ccManager.defaultMode", "sandboxWorkloads.enabled"),
        (KUBEVIRT + "ccManager: {defaultMode: 'off'}", "ccManager.defaultMode", "mode: kata"),
        (KUBEVIRT + "kataSandboxDevicePlugin: {image: x}", "kataSandboxDevicePlugin.image", "mode: kata"),
        (KATA + "sandboxDevicePlugin: {image: mine}", "sandboxDevicePlugin.image", "mode: kubevirt"),
        (
            "validator: {vfioPCI: {env: [{name: A, value: b}]}}",
            "validator.vfioPCI.env",
            "sandboxWorkloads.enabled",
        ),
        (DRA + "vfioManager: {image: mine}", "vfioManager.image", "leave out spec.gpuCluster"),
        (DRIVERS % (", version: 580.126.20", ""), "driver.version", "spec.drivers"),
        (DRIVERS % ("", "") + "gds: {enabled: true}", "gds.enabled", "spec.drivers"),
        (
            "dcgmExporter: {serviceMonitor: {interval: 7s}}",
            "dcgmExporter.serviceMonitor.interval",
            "cluster.monitoring",
        ),
        ("operator: {use_ocp_driver_toolkit: true}", "operator.use_ocp_driver_toolkit", "cluster.openshift"),
        (
            OPENSHIFT + "driver: {args: [init, --verbose]}",
            "driver.args",
            "operator.use_ocp_driver_toolkit: false",
        ),
    ],
)
def test_settings_of_what_is_off(snippet: str, path: str, remedy: str) -> None:
    """A setting of what is off, by its own switch or for the sake of another field, is told with what would make it
    count."""
    (finding,) = said("GPU108", snippet)
    assert finding.path == f"spec.{path}"
    assert finding.what.startswith(f"{path} has no effect")
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    "snippet",
    [
        "dcgm: {enabled: true, image: mine}",
        "dcgm: {enabled: false}",
        "vfioManager: {enabled: false}",
        "nfd: {pciClasses: ['0b40']}",
        "driver: {rdma: {enabled: true, useHostMofed: true}}",
        KUBEVIRT + "vfioManager: {image: mine}\nsandboxDevicePlugin: {image: mine}",
        KATA + "ccManager: {defaultMode: 'off'}\nkataSandboxDevicePlugin: {image: mine}",
        DRIVERS % ("", ", version: 580.126.20"),
        "cluster: {kubernetesVersion: '1.34', monitoring: true}\ndcgmExporter: {serviceMonitor: {interval: 7s}}",
        "dcgmExporter: {hpcJobMapping: {enabled: true, directory: /x}}",
    ],
)
def test_settings_that_count(snippet: str) -> None:
    """What is on, and the switch itself, is not reported."""
    assert said("GPU108", snippet) == []


def test_what_a_layer_says_of_what_is_off(tmp_path: Path) -> None:
    """Layers serve clusters of both kinds, so what they say is no mistake of this cluster's."""
    (tmp_path / "layers").mkdir()
    head = "apiVersion: gpustack.dev/v1alpha1\nkind: %s\nmetadata: {name: x}\nspec:\n"
    text = "  vfioManager: {image: mine}\n  gpuCluster: {}\n  devicePlugin: {enabled: true}\n"
    (tmp_path / "layers" / "x.yaml").write_text(head % "PolicyLayer" + text)
    own = "  extends: [x]\n  release: v26.7.0\n  cluster: {kubernetesVersion: '1.34'}\n"
    (tmp_path / "x.yaml").write_text(head % "ClusterPolicy" + own)
    policy = load(tmp_path / "x.yaml", root=tmp_path)
    rules = [each for each in all_rules() if each.id in {"GPU108", "GPU110"}]
    assert [list(each.findings(Written(policy.spec, policy.merged))) for each in rules] == [[], []]


@pytest.mark.parametrize("section", ["toolkit", "devicePlugin", "gfd", "migManager"])
def test_switched_on_beside_dra(section: str) -> None:
    """`enabled: true` is told where a gpuCluster leaves the component out all the same; `false` asks for nothing."""
    assert paths("GPU110", DRA + f"{section}: {{enabled: true}}") == [f"spec.{section}.enabled"]
    assert paths("GPU110", DRA + f"{section}: {{enabled: false}}") == []
    assert paths("GPU110", f"{section}: {{enabled: true}}") == []


def test_dra_validator() -> None:
    """Pull policy and resources of the validator are not those of the DRA stack's, which is pulled as its driver is
    (operator.md 11.1)."""
    snippet = DRA + "validator: {imagePullPolicy: Always, resources: {limits: {cpu: 100m}}}"
    assert {"spec.validator.imagePullPolicy", "spec.validator.resources.limits.cpu"} == {
        *spec_rules.paths("GPU175", snippet)
    }


MIRROR = "cluster: {kubernetesVersion: '1.34', registryMap: {%s: mirror.example}}\n"


@pytest.mark.parametrize(
    "prefix",
    ["nvcr.io", "nvcr.io/nvidia", "nvcr.io/nvidia/driver", "registry.k8s.io/nfd", "nvcr.io/nvidia/cloud-native/dcgm"],
)
def test_mirrors_that_are_used(prefix: str) -> None:
    """An entry that covers an image of a component is used, also while that component is off."""
    assert spec_rules.paths("GPU111", MIRROR % prefix) == []


@pytest.mark.parametrize(
    ("prefix", "remedy"),
    [
        ("nvcr.io/nvdia", "nvcr.io/nvidia"),
        ("nvcr.oi", "nvcr.io"),
        ("nvcr.io/nvidia/driver-x", "nvcr.io/nvidia/driver"),
        ("docker.io", "images come from nvcr.io, registry.k8s.io"),
    ],
)
def test_mirrors_of_nothing(prefix: str, remedy: str) -> None:
    """An entry that covers no image is told at its place, with the prefix that it may have been."""
    (finding,) = spec_rules.said("GPU111", MIRROR % prefix)
    assert finding.path.startswith("spec.cluster.registryMap")
    assert prefix in finding.what
    assert remedy in finding.remedy


def test_mirrors_of_images_that_the_policy_names() -> None:
    """Images of sections, of pools' drivers and of `drivers` count, wherever the policy takes them from."""
    images = (
        "toolkit: {image: 'one.example/toolkit:1'}\n"
        "nodePools: [{name: a, os: ubuntu22.04, driver: {repository: two.example}}]\n"
    )
    for registry in ("one.example", "two.example"):
        assert spec_rules.paths("GPU111", MIRROR % registry + images) == []
        assert len(spec_rules.paths("GPU111", MIRROR % registry)) == 1
    listed = DRIVERS % ("", ", repository: three.example, image: driver, version: '580.126.20'")
    assert spec_rules.paths("GPU111", MIRROR % "three.example" + listed) == []
    managed = DRIVERS % ("", ", manager: {repository: four.example, image: manager, version: '1'}")
    assert spec_rules.paths("GPU111", MIRROR % "four.example" + managed) == []


CRD = "cluster: {kubernetesVersion: '1.34', crds: {%s: %s}}\n"


@pytest.mark.parametrize(
    ("crd", "needed", "not_needed"),
    [
        ("nodefeatures.nfd.k8s-sigs.io", "", "nfd: {enabled: false}"),
        ("computedomains.resource.nvidia.com", "computeDomains: {enabled: true}", ""),
        (
            "computedomains.resource.nvidia.com",
            DRA,
            "gpuCluster: {draDriver: {computeDomains: {enabled: false}}}",
        ),
    ],
)
@pytest.mark.parametrize("owner", ["own", "expect"])
def test_crds_of_nothing(crd: str, needed: str, not_needed: str, owner: str) -> None:
    """A word about a CRD whose component is not rendered is told; one about a CRD that is needed is not."""
    said_of_it = CRD % (crd, owner)
    assert paths("GPU112", said_of_it + not_needed) == [f'spec.cluster.crds["{crd}"]']
    assert paths("GPU112", said_of_it + needed) == []


def test_older_than_the_release() -> None:
    """Versions below the release's are told together; newer ones, images of one's own and the driver's are not."""
    (finding,) = said("GPU113", "devicePlugin: {version: v0.17.0}\nvfioManager: {driverManager: {version: v0.8.0}}")
    (whole,) = said("GPU113", "devicePlugin: {image: registry.example/nvidia/k8s-device-plugin:v0.17.0}")
    assert "devicePlugin.image v0.17.0 (v0.20.0)" in whole.what
    assert whole.path == "spec.devicePlugin.image"
    assert finding.path == "spec.devicePlugin.version"
    assert "devicePlugin.version v0.17.0 (v0.20.0)" in finding.what
    assert "vfioManager.driverManager.version v0.8.0 (v0.12.0)" in finding.what
    for snippet in (
        "devicePlugin: {version: v0.21.0}",
        "devicePlugin: {version: v0.20.0}",
        "devicePlugin: {repository: registry.example, version: v0.1.0}",
        "devicePlugin: {image: registry.example/plugin:v0.1.0}",
        "driver: {version: 580.126.20}",
        "release: v26.3.1",
    ):
        assert said("GPU113", snippet) == [], snippet


def test_versions_that_are_held_beside_claims() -> None:
    """gpuCluster has sections of its own for exporter and engine, with the release's versions (operator.md 11.1)."""
    own = "gpuCluster: {dcgm: {enabled: true, version: 4.5.2-1-ubuntu22.04}, dcgmExporter: {version: 4.5.3-4.8.2}}"
    (finding,) = said("GPU113", f"drivers: [{{name: a, default: true}}]\n{own}")
    assert all(f"gpuCluster.{name}.version" in finding.what for name in ("dcgm", "dcgmExporter"))
    assert not said("GPU113", "drivers: [{name: a, default: true}]\ngpuCluster: {dcgm: {enabled: true}}")
