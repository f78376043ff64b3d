"""Drivers of older releases (operator-releases.md, sections 1 and 6.1)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from gpustack.catalog import releases
from gpustack.catalog.traits import Traits
from gpustack.cluster.resolve import resolve
from gpustack.components import Driver, NvidiaDrivers
from gpustack.components.driver import driver_inputs as driver
from gpustack.components.driver import nvidia_drivers_inputs as nvidia_drivers
from gpustack.model import Body
from tests.components.common import container, env, grants, mounts, pod_of, render, spec

MAIN, MANAGER = "nvidia-driver-ctr", "k8s-driver-manager"
UBUNTU = [{"name": "a", "os": "ubuntu22.04"}]
READY = "/run/nvidia/validations/.driver-ctr-ready"
ALL = ["v25.10.1", "v26.3.1", "v26.7.0"]


def bodies(release: str, **sections: Any) -> dict[str, Body]:
    """What the section `driver` of RELEASE renders to."""
    found = driver.from_cluster(resolve(spec(release, **{"nodePools": UBUNTU, **sections})))
    assert found is not None
    return render(Driver, found)


def pod(release: str, **sections: Any) -> Body:
    """The driver's pod of RELEASE."""
    return pod_of(bodies(release, **sections), "nvidia-driver-daemonset")


@pytest.mark.parametrize(("release", "script"), list(zip(ALL, (False, True, True), strict=True)))
def test_startup_probe(release: str, script: bool) -> None:
    """A script in a ConfigMap since v26.3.0; before, three steps inline that end in the ready file (row 1)."""
    found = pod(release)
    command = container(found, MAIN)["startupProbe"]["exec"]["command"]
    assert ("ConfigMap/nvidia-driver-startup-probe" in bodies(release)) is script
    assert ("/usr/local/bin/startup-probe.sh" in mounts(found, MAIN)) is script
    if not script:
        assert command[:2] == ["sh", "-c"]
        positions = [command[2].index(word) for word in ("/sys/module/nvidia/refcnt", "nvidia-smi", READY)]
        assert positions == sorted(positions)


def test_daemons_status() -> None:
    """v26.7.0: the probe waits for the driver's daemons, and the end removes what they said (rows 1 and 6)."""
    for release, known in zip(ALL[1:], (False, True), strict=True):
        found = bodies(release)
        text = found["ConfigMap/nvidia-driver-startup-probe"]["data"]["startup-probe.sh"]
        end = container(pod(release), MAIN)["lifecycle"]["preStop"]["exec"]["command"][-1]
        assert (".driver-daemons-status" in text) is (".driver-daemons-status" in end) is known


@pytest.mark.parametrize(("release", "known"), list(zip(ALL, (False, True, True), strict=True)))
def test_digest_and_announced_modules(release: str, known: bool) -> None:
    """DRIVER_CONFIG_DIGEST, GDS_ENABLED and GDRCOPY_ENABLED since v26.3.0 (rows 2 and 3)."""
    found = pod(release, gds={"enabled": True}, gdrcopy={"enabled": True})
    have = env(container(found, MAIN))
    assert {name: name in have for name in ("DRIVER_CONFIG_DIGEST", "GDS_ENABLED", "GDRCOPY_ENABLED")} == dict.fromkeys(
        ("DRIVER_CONFIG_DIGEST", "GDS_ENABLED", "GDRCOPY_ENABLED"), known
    )
    assert ("DRIVER_CONFIG_DIGEST" in env(container(found, MANAGER))) is known


def test_system_devices_and_claims() -> None:
    """One file of sysfs before v26.7.0, and no claims to GPUs to read (rows 5 and 40)."""
    for release, new in zip(ALL, (False, False, True), strict=True):
        paths = set(mounts(pod(release), MAIN))
        assert ("/sys/devices/system" in paths) is new
        assert ("/sys/devices/system/memory/auto_online_blocks" in paths) is not new
        assert ("resourceclaims:get" in grants(bodies(release)["ClusterRole/nvidia-driver"])) is new


def test_the_managers_resources() -> None:
    """driver.resources reach the manager since v26.7.0 (row 32)."""
    limits = {"limits": {"memory": "1Gi"}}
    for release, new in zip(ALL, (False, False, True), strict=True):
        found = pod(release, driver={"resources": limits})
        assert ("resources" in container(found, MANAGER)) is new
        assert container(found, MAIN)["resources"] == limits


def test_package_sources_and_subscription() -> None:
    """repoConfig replaces a RHEL node's subscription since v26.7.0 (row 14)."""
    rhel = {"nodePools": [{"name": "a", "os": "rhel9.4"}], "driver": {"repoConfig": {"configMapName": "repo"}}}
    references = [{"kind": "ConfigMap", "name": "repo", "keys": ["a.repo"]}]
    for release, new in zip(ALL, (False, False, True), strict=True):
        found = mounts(pod(release, references=references, **rhel), MAIN)
        assert ("/run/secrets/rhsm" in found) is not new


def test_modules_of_suse() -> None:
    """A precompiled driver sees the node's modules since v26.3.1 (row 15)."""
    sles = [{"name": "a", "os": "sles15.6", "kernel": "6.4.0-150600.21-default"}]
    for release, new in (("v25.10.1", False), ("v26.3.0", False), ("v26.3.1", True), ("v26.7.0", True)):
        found = driver.from_cluster(
            resolve(spec(release, nodePools=sles, driver={"usePrecompiled": True, "version": "580"}))
        )
        assert found is not None
        assert any(file.use == "suse-modules" for file in found.pods[0].files) is new, release


def test_pull_secrets_of_the_validator() -> None:
    """v25.10.1 adds the validator's to the driver's, which runs no such image (row 33)."""
    sections = {"validator": {"imagePullSecrets": ["validator"]}, "driver": {"imagePullSecrets": ["driver"]}}
    assert pod("v25.10.1", **sections)["imagePullSecrets"] == [{"name": "validator"}, {"name": "driver"}]
    assert pod("v26.3.1", **sections)["imagePullSecrets"] == [{"name": "driver"}]


def test_labels_of_drivers() -> None:
    """Before v26.3.0 labels and annotations of one of `drivers` are on its pods alone (section 7)."""
    for release, whole in zip(ALL, (False, True, True), strict=True):
        said = {"name": "default", "labels": {"team": "ml"}, "annotations": {"note": "x"}}
        policy = spec(release, nodePools=UBUNTU, drivers=[said], driver={"useNvidiaDriverCRD": True})
        inputs = nvidia_drivers.from_cluster(resolve(policy))
        assert inputs is not None
        (body,) = (each for each in render(NvidiaDrivers, inputs).values() if each["kind"] == "DaemonSet")
        template = body["spec"]["template"]["metadata"]
        assert (template["labels"]["team"], template["annotations"]["note"]) == ("ml", "x")
        assert ("team" in body["metadata"]["labels"]) is ("note" in body["metadata"]["annotations"]) is whole


def test_a_trait_begins_with_a_release() -> None:
    """Each difference names the release that brought it, one that the catalogue has, or it would begin with none."""
    assert {trait.metadata["since"] for trait in fields(Traits)} <= set(releases.names())
