"""What the driver takes from a policy, and what it refuses (operator.md 4, 7.1, 10.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.driver.driver_files_inputs import HostFile
from gpustack.components.driver.driver_inputs import DriverInputs, from_cluster
from gpustack.model import Finding, FindingsError
from tests.components.common import spec

UBUNTU = [{"name": "a", "os": "ubuntu22.04", "kernel": "5.15.0-105-generic"}]
SLES = [{"name": "a", "os": "sles15.6", "kernel": "6.4.0-150600.21-default"}]


def found(**sections: Any) -> DriverInputs:
    """The driver's inputs for a cluster of Ubuntu nodes with SECTIONS."""
    inputs = from_cluster(resolve(spec(**{"nodePools": UBUNTU, **sections})))
    assert inputs is not None
    return inputs


def refusals(**sections: Any) -> list[Finding]:
    """What is said against SECTIONS."""
    with pytest.raises(FindingsError) as caught:
        found(**sections)
    return caught.value.findings


def test_no_driver_where_nodes_bring_it() -> None:
    """driver.enabled: false, or drivers described elsewhere: nothing, and pools need no os (1.3)."""
    pools = [{"name": "a"}]
    assert from_cluster(resolve(spec(driver={"enabled": False}, nodePools=pools))) is None
    assert from_cluster(resolve(spec(driver={"useNvidiaDriverCRD": True}, nodePools=pools))) is None


def test_all_images_end_in_the_os_tag() -> None:
    """driver, gds and gdrcopy get the suffix of the DaemonSet's OS (4)."""
    pools = [*UBUNTU, {"name": "b", "os": "rhel9.4"}]
    first, second = found(nodePools=pools, gds={"enabled": True}, gdrcopy={"enabled": True}).pods
    for pod, tag in ((first, "-ubuntu22.04"), (second, "-rhel9")):
        assert pod.gds is not None
        assert pod.gdrcopy is not None
        assert all(image.endswith(tag) for image in (pod.image, pod.gds.image, pod.gdrcopy.image))


def test_a_digest_takes_no_suffix() -> None:
    """An image named by digest stays as it is (4, case 67)."""
    digest = "sha256:" + "4" * 64
    assert found(driver={"version": digest}).pods[0].image == f"nvcr.io/nvidia/driver@{digest}"


def test_precompiled_images_name_the_kernel() -> None:
    """repository/image:branch-kernel-osTag, with the kernel as it is (4, case 08)."""
    (pod,) = found(driver={"usePrecompiled": True, "version": "595"}).pods
    assert pod.image == "nvcr.io/nvidia/driver:595-5.15.0-105-generic-ubuntu22.04"


def test_another_system_changes_nothing_for_the_first_but_its_selector() -> None:
    """Adding a pool of another OS re-installs no driver: only the node selector of the first DaemonSet changes."""
    one, two = found(), found(nodePools=[*UBUNTU, {"name": "b", "os": "rhel9.4"}])
    assert two.settings == one.settings
    assert two.pods[0].model_copy(update={"node_selector": {}}) == one.pods[0]


def test_the_upgrade_policy_steers_roll_outs_only() -> None:
    """driver.upgradePolicy changes nothing that is rendered here: the manager is set by its own env (case 34)."""
    drain = {"enable": True, "force": True, "deleteEmptyDir": True, "timeoutSeconds": 99}
    assert found(driver={"upgradePolicy": {"autoUpgrade": True, "drain": drain}}) == found()


def test_host_mofed_needs_rdma() -> None:
    """rdma.useHostMofed without rdma.enabled has no effect (case 86)."""
    assert found(driver={"rdma": {"enabled": False, "useHostMofed": True}}) == found()
    assert found(driver={"rdma": {"enabled": True, "useHostMofed": True}}).settings.host_mofed


def test_pull_secrets_of_features_that_are_off_are_left_out() -> None:
    """Manager's, driver's, gds', gdrcopy's, in this order; of features only while they are on (4, case 12)."""
    driver = {"imagePullSecrets": ["driver"], "manager": {"imagePullSecrets": ["manager"]}}
    gds, gdrcopy = {"imagePullSecrets": ["gds"]}, {"imagePullSecrets": ["gdrcopy"]}
    assert found(driver=driver, gds=gds, gdrcopy=gdrcopy).settings.pull_secrets == ("manager", "driver")
    on = {"enabled": True}
    secrets = found(driver=driver, gds={**gds, **on}, gdrcopy={**gdrcopy, **on}).settings.pull_secrets
    assert secrets == ("manager", "driver", "gds", "gdrcopy")


def test_startup_numbers_of_zero_are_not_taken() -> None:
    """startupProbe: non-zero numbers override, others leave the built-in ones (7.1)."""
    probe = {"initialDelaySeconds": 0, "failureThreshold": 200}
    startup = found(driver={"startupProbe": probe}).settings.startup
    assert "initialDelaySeconds" not in startup
    assert startup["failureThreshold"] == 200


def test_precompiled_drivers_on_suse_see_the_nodes_modules() -> None:
    """lib-modules: the node's /lib/modules, only where the driver is precompiled on SUSE (7.1, case 43)."""
    precompiled = {"usePrecompiled": True, "version": "595"}
    (pod,) = found(nodePools=SLES, driver=precompiled).pods
    assert [(file.path, file.kind, file.target) for file in pod.files if isinstance(file, HostFile)] == [
        ("/lib/modules", "Directory", "/run/host/lib/modules")
    ]
    assert all(file.use != "suse-modules" for file in found(nodePools=SLES).pods[0].files)
    assert found(driver=precompiled).pods[0].files == ()


def test_precompiled_drivers_take_no_secret_env() -> None:
    """secretEnv is for downloads, which a precompiled driver does not do (7.1)."""
    assert found(driver={"secretEnv": "login"}).settings.secret_env == "login"  # noqa: S105 - a name
    assert found(driver={"secretEnv": "login", "usePrecompiled": True}).settings.secret_env == ""


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe"])
def test_probes_that_crash_the_operator_are_refused(probe: str) -> None:
    """The operator panics on them (case 61); the remedy is to leave the field out."""
    (finding,) = refusals(driver={probe: {"periodSeconds": 5}})
    assert finding.path == f"spec.driver.{probe}"
    assert "remove" in finding.remedy


@pytest.mark.parametrize("feature", ["gds", "gdrcopy"])
def test_precompiled_drivers_build_no_other_modules(feature: str) -> None:
    """GDS and GDRCopy are refused with precompiled drivers (case 71, 10.1); RDMA is not."""
    (finding,) = refusals(driver={"usePrecompiled": True}, **{feature: {"enabled": True}})
    assert finding.path == f"spec.{feature}.enabled"
    assert found(driver={"usePrecompiled": True, "rdma": {"enabled": True}}).settings.rdma


def test_precompiled_drivers_have_no_digest() -> None:
    """A digest is one image, precompiled drivers have one per kernel (10.1)."""
    (finding,) = refusals(driver={"usePrecompiled": True, "version": "sha256:" + "4" * 64})
    assert finding.path == "spec.driver.version"


def test_all_refusals_come_at_once() -> None:
    """Whoever corrects a policy sees what is wrong with driver and pools in one run."""
    paths = [
        finding.path
        for finding in refusals(
            nodePools=[{"name": "a"}, {"name": "b", "os": "ubuntu22.04"}],
            driver={"usePrecompiled": True, "livenessProbe": {"periodSeconds": 5}},
            gds={"enabled": True},
        )
    ]
    assert paths == [
        "spec.driver.livenessProbe",
        "spec.gds.enabled",
        "spec.nodePools[0].os",
        "spec.nodePools[0].kernel",
        "spec.nodePools[1].kernel",
    ]
