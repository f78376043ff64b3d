"""Which DaemonSets `drivers` ask for, which images they run, and what is refused (operator.md 4, 10.1, 10.2)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.driver.driver_settings_inputs import DriverPod
from gpustack.components.driver.nvidia_drivers_inputs import from_cluster
from gpustack.model import Finding, FindingsError
from tests.components.common import spec

OS = "feature.node.kubernetes.io/system-os_release."
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
OWNER = "nvidia.com/gpu-operator.driver.owner"
UBUNTU = [{"name": "a", "os": "ubuntu22.04"}]


def pods(*drivers: dict[str, Any], pools: Any = UBUNTU, **sections: Any) -> list[DriverPod]:
    """The DaemonSets of DRIVERS on POOLS."""
    listed = [{"name": f"driver-{index}", **driver} for index, driver in enumerate(drivers)]
    policy = {"nodePools": pools, "driver": {"useNvidiaDriverCRD": True}, **sections}
    found = from_cluster(resolve(spec(drivers=listed, **policy)))
    return [pod for driver in found.drivers for pod in driver.pods] if found else []


def refusals(driver: dict[str, Any], **sections: Any) -> list[Finding]:
    """What is said against DRIVER, the second of two."""
    pools = [{"name": name, "os": "ubuntu22.04", "nodeSelector": {"p": name}} for name in ("a", "b")]
    both = ({"nodeSelector": {"p": "a"}}, {"nodeSelector": {"p": "b"}, **driver})
    with pytest.raises(FindingsError) as caught:
        pods(*both, **{"pools": pools, **sections})
    return caught.value.findings


def test_one_daemonset_per_os_tag() -> None:
    """Versions that share an image share a DaemonSet, which selects the major version; others have one each (10.3)."""
    pools = [{"name": f"p{index}", "os": os} for index, os in enumerate(("rhel9.4", "rhel9.6", "debian12"))]
    rhel, debian = pods({}, pools=pools)
    assert rhel.image.endswith("-rhel9")
    assert rhel.node_selector.items() >= {f"{OS}ID": "rhel", f"{OS}VERSION_ID.major": "9"}.items()
    assert f"{OS}VERSION_ID" not in rhel.node_selector
    assert debian.node_selector.items() >= {f"{OS}ID": "debian", f"{OS}VERSION_ID": "12"}.items()


def test_a_system_named_by_its_major_version() -> None:
    """`os: rhel9` means nodes that call themselves 9.4, so the label of the major version selects them."""
    (pod,) = pods({}, pools=[{"name": "a", "os": "rhel9"}])
    assert pod.node_selector[f"{OS}VERSION_ID.major"] == "9"


def test_precompiled_drivers_have_one_per_system_and_kernel() -> None:
    """OS tag and kernel tell DaemonSets apart; images name both, a label the kernel without architecture (case 77)."""
    kernels = ("5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.13.1.el9_4.aarch64")
    pools = [{"name": f"p{index}", "os": "rhel9.4", "kernel": kernel} for index, kernel in enumerate(kernels)]
    first, second = pods({"usePrecompiled": True, "version": "595"}, pools=pools)
    assert first.image == "nvcr.io/nvidia/driver:595-5.14.0-427.13.1.el9_4.x86_64-rhel9"
    assert first.node_selector[KERNEL] == kernels[0]
    assert first.labels["nvidia.com/precompiled.kernel-version"] == "5.14.0-427.13.1.el9.4"
    assert first.name != second.name
    assert first.account == second.account == "nvidia-gpu-driver-driver-0-rhel9"


def test_each_driver_has_its_pools() -> None:
    """A pool gets the driver that selects it, the others the default one; the owner label says which (2.3)."""
    pools = [{"name": name, "os": "ubuntu22.04", "nodeSelector": {"p": name}} for name in ("a", "b", "c")]
    drivers = ({"default": True, "version": "1.0.0"}, {"nodeSelector": {"p": "b"}, "version": "2.0.0"})
    default, own = pods(*drivers, pools=pools)
    assert (default.node_selector[OWNER], default.node_selector.get("p")) == ("driver-0", None)
    assert (own.node_selector[OWNER], own.node_selector["p"]) == ("driver-1", "b")
    assert own.image == "nvcr.io/nvidia/driver:2.0.0-ubuntu22.04"


def test_a_driver_without_image_runs_the_releases() -> None:
    """Repository, name and version are the release's where a driver leaves them out; its manager's and modules' too."""
    driver = {"kernelModuleType": "open", "gds": {"enabled": True}, "gdrcopy": {"enabled": True, "version": "v9"}}
    (pod,) = pods(driver)
    assert pod.gds is not None
    assert pod.gdrcopy is not None
    assert pod.image == "nvcr.io/nvidia/driver:595.91.07-ubuntu22.04"
    assert pod.gds.image == "nvcr.io/nvidia/cloud-native/nvidia-fs:2.29.4-ubuntu22.04"
    assert pod.gdrcopy.image == "nvcr.io/nvidia/cloud-native/gdrdrv:v9-ubuntu22.04"
    (whole,) = pods({"image": "r.example.com/driver:1"})
    assert whole.image == "r.example.com/driver:1-ubuntu22.04"


@pytest.mark.parametrize("kind", ["vgpu", "vgpu-host-manager"])
def test_nobody_publishes_vgpu_drivers(kind: str) -> None:
    """Their images are everybody's own: one without repository is refused where it stands."""
    (finding,) = refusals({"driverType": kind, "version": "550.90.05"})
    assert finding.path == "spec.drivers[1].repository"
    assert "spec.drivers[1].image" in finding.remedy


def test_gds_needs_open_modules() -> None:
    """nvidia-fs 2.17.5 and newer, or a digest, needs kernelModuleType open (10.1); older ones don't."""
    for version in ("2.17.5", "v2.17.5", "2.29.4", "sha256:" + "4" * 64):
        (finding,) = refusals({"gds": {"enabled": True, "version": version}})
        assert finding.path == "spec.drivers[1].kernelModuleType"
        assert "spec.drivers[1].gds.enabled: false" in finding.remedy
    assert pods({"gds": {"enabled": True, "version": "2.17.4"}})
    assert pods({"gds": {"enabled": True}, "kernelModuleType": "open"})


@pytest.mark.parametrize("feature", ["gds", "gdrcopy"])
def test_precompiled_drivers_build_no_modules(feature: str) -> None:
    """GDS and GDRCopy are refused beside precompiled modules (10.1), with the paths of the driver."""
    kernel = "5.15.0-105-generic"
    pools = [{"name": n, "os": "ubuntu22.04", "kernel": kernel, "nodeSelector": {"p": n}} for n in ("a", "b")]
    driver = {"usePrecompiled": True, "version": "595", "kernelModuleType": "open", feature: {"enabled": True}}
    (finding,) = refusals(driver, pools=pools)
    assert finding.path == f"spec.drivers[1].{feature}.enabled"
    assert "spec.drivers[1].usePrecompiled: false" in finding.remedy


def test_precompiled_drivers_have_no_digest() -> None:
    """A digest is one image, and each kernel has its own (10.1)."""
    kernel = "5.15.0-105-generic"
    pools = [{"name": n, "os": "ubuntu22.04", "kernel": kernel, "nodeSelector": {"p": n}} for n in ("a", "b")]
    (finding,) = refusals({"usePrecompiled": True, "version": "sha256:" + "4" * 64}, pools=pools)
    assert finding.path == "spec.drivers[1].version"


def test_pools_must_say_system_and_kernel() -> None:
    """What a pool leaves out is refused where it stands, only for pools that the driver serves."""
    pools = [{"name": "a", "nodeSelector": {"p": "a"}}, {"name": "b", "nodeSelector": {"p": "b"}}, {"name": "c"}]
    paths = [finding.path for finding in refusals({"usePrecompiled": True, "version": "595"}, pools=pools)]
    assert paths == ["spec.nodePools[0].os", "spec.nodePools[1].os", "spec.nodePools[1].kernel"]


def test_keys_of_a_config_map_must_be_known() -> None:
    """Each key is a mount of its own (7.1); the path is the one of `drivers`, whose fields have other names."""
    (finding,) = refusals({"repoConfig": {"name": "repo"}})
    assert finding.path == "spec.drivers[1].repoConfig.name"


@pytest.mark.parametrize("release", ["v26.3.1", "v25.10.1"])
def test_older_releases_have_no_owner_label(release: str) -> None:
    """Before v26.7.0 a driver's own nodeSelector alone separates nodes (operator-releases.md, section 7)."""
    (pod,) = pods({"nodeSelector": {"p": "a"}}, pools=[{**UBUNTU[0], "nodeSelector": {"p": "a"}}], release=release)
    assert OWNER not in pod.node_selector
    assert pod.node_selector["p"] == "a"


def test_v26_3_selects_the_whole_version() -> None:
    """v26.3.1 cuts the tag and not the selector: each version has a DaemonSet, where the operator forgets all but one
    (operator-releases.md, section 7)."""
    pools = [{"name": f"p{index}", "os": os} for index, os in enumerate(("rocky9.4", "rocky9.6"))]
    found = pods({}, pools=pools, release="v26.3.1")
    assert [pod.image.rpartition("-")[2] for pod in found] == ["rocky9", "rocky9"]
    assert [pod.node_selector[f"{OS}VERSION_ID"] for pod in found] == ["9.4", "9.6"]
    assert found[0].name != found[1].name
    (newer,) = pods({}, pools=pools)
    assert newer.node_selector[f"{OS}VERSION_ID.major"] == "9"


def test_v26_3_0_has_images_by_the_whole_version() -> None:
    """Rows 7 and 8: `drivers` cut OS tags since v26.3.1 only, the section `driver` since v26.3.0."""
    (pod,) = pods({}, pools=[{"name": "a", "os": "rocky9.4"}], release="v26.3.0")
    assert pod.image.endswith("-rocky9.4")
