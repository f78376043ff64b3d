"""Drivers on OpenShift: driver toolkit, proxy, authorities; of `driver` and of `drivers` (operator.md 8, 10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import Driver, NvidiaDrivers
from gpustack.components.driver import driver_inputs as driver
from gpustack.components.driver import nvidia_drivers_inputs as nvidia_drivers
from gpustack.model import Body
from tests.components.common import container, env, mounts, render, spec

MAIN, FS, GDRCOPY, TOOLKIT = "nvidia-driver-ctr", "nvidia-fs-ctr", "nvidia-gdrcopy-ctr", "openshift-driver-toolkit-ctr"
RHCOS = "feature.node.kubernetes.io/system-os_release.OSTREE_VERSION"
OLD, NEW = "418.94.202501221327-0", "418.94.202502100215-0"
IMAGE = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + "1" * 64
PROXY = {
    "httpProxy": "http://proxy.example.com:3128",
    "httpsProxy": "http://proxy.example.com:3129",
    "noProxy": ".cluster.local",
    "trustedCA": {"name": "user-ca-bundle"},
}
POOLS = [{"name": name, "os": "rhcos4.18", "ostreeVersion": version} for name, version in (("a", OLD), ("b", NEW))]
MODULES = {"gds": {"enabled": True}, "gdrcopy": {"enabled": True}}


def rendered(cluster: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """What the section `driver` renders to on OpenShift 4.18, whose toolkit has an image for the older RHCOS."""
    facts = {"version": "4.18.1", "driverToolkitImages": {OLD: IMAGE}, **(cluster or {})}
    policy = spec(**{"cluster": {"platform": "openshift", "openshift": facts}, "nodePools": POOLS, **sections})
    found = driver.from_cluster(resolve(policy))
    assert found is not None
    return render(Driver, found)


def of_drivers(said: dict[str, Any], cluster: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """The same for one of `drivers`, which serves all nodes."""
    facts = {"version": "4.18.1", "driverToolkitImages": {OLD: IMAGE}, **(cluster or {})}
    policy = spec(
        cluster={"platform": "openshift", "openshift": facts},
        **{"nodePools": POOLS, "driver": {"useNvidiaDriverCRD": True}, **sections},
        drivers=[{"name": "default", "default": True, **said}],
    )
    found = nvidia_drivers.from_cluster(resolve(policy))
    assert found is not None
    return render(NvidiaDrivers, found)


def daemonsets(found: dict[str, Body]) -> list[Body]:
    """The DaemonSets of FOUND, in their order."""
    return [body for body in found.values() if body["kind"] == "DaemonSet"]


def pods(found: dict[str, Body]) -> list[Body]:
    """Their pods."""
    return [body["spec"]["template"]["spec"] for body in daemonsets(found)]


def names(pod: Body) -> list[str]:
    """The containers of POD."""
    return [each["name"] for each in pod["containers"]]


def test_one_daemonset_per_rhcos_version() -> None:
    """Name, app label and selector end in the version, which also selects the nodes (8.1, case 03)."""
    for body, version in zip(daemonsets(rendered()), (OLD, NEW), strict=True):
        name = f"nvidia-driver-daemonset-{version}"
        assert body["metadata"]["name"] == name
        assert body["spec"]["selector"] == {"matchLabels": {"app": name}}
        template = body["spec"]["template"]
        assert template["spec"]["nodeSelector"][RHCOS] == version
        assert body["metadata"]["labels"]["openshift.driver-toolkit.rhcos"] == version
        assert template["metadata"]["labels"]["openshift.driver-toolkit"] == "true"


def test_the_driver_builds_in_the_toolkit() -> None:
    """Main container, nvidia-fs and gdrcopy share a folder with the sidecar, which is told what to build (8.1)."""
    pod = pods(rendered(**MODULES))[0]
    assert names(pod) == [MAIN, FS, GDRCOPY, TOOLKIT]
    words = {name: (container(pod, name)["command"], container(pod, name)["args"]) for name in (MAIN, FS, GDRCOPY)}
    assert words == {
        MAIN: (["ocp_dtk_entrypoint"], ["nv-ctr-run-with-dtk"]),
        FS: (["ocp_dtk_entrypoint"], ["nv-fs-ctr-run-with-dtk"]),
        GDRCOPY: (["ocp_dtk_entrypoint"], ["gdrcopy-ctr-run-with-dtk"]),
    }
    assert all("/mnt/shared-nvidia-driver-toolkit" in mounts(pod, name) for name in names(pod))
    sidecar = env(container(pod, TOOLKIT))
    assert container(pod, TOOLKIT)["image"] == IMAGE
    assert sidecar.items() >= {"RHCOS_VERSION": OLD, "GDS_ENABLED": "true", "GDRCOPY_ENABLED": "true"}.items()
    assert sidecar["DRIVER_CONFIG_DIGEST"] == env(container(pod, MAIN))["DRIVER_CONFIG_DIGEST"]


def test_peermem_does_not_build() -> None:
    """nvidia-peermem runs as everywhere and has no part in the shared folder (8.1)."""
    pod = pods(rendered(driver={"rdma": {"enabled": True}}))[0]
    assert container(pod, "nvidia-peermem-ctr")["command"] == ["nvidia-driver"]
    assert "/mnt/shared-nvidia-driver-toolkit" not in mounts(pod, "nvidia-peermem-ctr")


def test_without_an_image_for_the_version() -> None:
    """The sidecar runs the driver's image, and all that build are told that the toolkit's is missing (8.1)."""
    body = daemonsets(rendered(**MODULES))[1]
    pod = body["spec"]["template"]["spec"]
    assert container(pod, TOOLKIT)["image"] == container(pod, MAIN)["image"]
    assert all(env(container(pod, name))["RHCOS_IMAGE_MISSING"] == "true" for name in (MAIN, FS, GDRCOPY, TOOLKIT))
    assert env(container(pod, MAIN))["RHCOS_VERSION"] == NEW
    for labels in (body["metadata"]["labels"], body["spec"]["template"]["metadata"]["labels"]):
        assert labels["openshift.driver-toolkit.rhcos-image-missing"] == "true"


def test_of_drivers_only_the_driver_is_told() -> None:
    """With `drivers`, nvidia-fs and gdrcopy don't know that the toolkit's image is missing (10.3)."""
    pod = pods(of_drivers({"kernelModuleType": "open", **MODULES}))[1]
    missing = {name: "RHCOS_IMAGE_MISSING" in env(container(pod, name)) for name in names(pod)}
    assert missing == {MAIN: True, FS: False, GDRCOPY: False, TOOLKIT: True}


def test_the_sidecar_of_drivers_sees_firmware() -> None:
    """It also mounts the kernel's search path for firmware and the driver's firmware (10.3)."""
    firmware = {"/sys/module/firmware_class/parameters/path", "/lib/firmware"}
    assert firmware <= set(mounts(pods(of_drivers({}))[0], TOOLKIT))
    assert not firmware & set(mounts(pods(rendered())[0], TOOLKIT))


@pytest.mark.parametrize(
    "sections",
    [
        {"operator": {"use_ocp_driver_toolkit": False}},
        {"cluster": {"driverToolkitImages": {}}},
        {"nodePools": [{"name": "a", "os": "rhcos4.18"}]},
    ],
    ids=["switched off", "no images", "no RHCOS version"],
)
def test_without_the_toolkit(sections: dict[str, Any]) -> None:
    """One plain DaemonSet for all nodes, which still knows the version of OpenShift (8.1, 8.3)."""
    (body,) = daemonsets(rendered(**sections))
    assert body["metadata"]["name"] == "nvidia-driver-daemonset"
    pod = body["spec"]["template"]["spec"]
    assert names(pod) == [MAIN]
    assert container(pod, MAIN)["command"] == ["nvidia-driver"]
    assert env(container(pod, MAIN))["OPENSHIFT_VERSION"] == "4.18"


def test_the_toolkit_from_a_mirror() -> None:
    """Both ways to describe drivers name the toolkit's image by its mirror, like any other image."""
    facts = {"platform": "openshift", "openshift": {"version": "4.18.1", "driverToolkitImages": {OLD: IMAGE}}}
    said: dict[str, Any] = {"cluster": {**facts, "registryMap": {"quay.io": "mirror.example"}}, "nodePools": POOLS}
    one = driver.from_cluster(resolve(spec(**said)))
    other = nvidia_drivers.from_cluster(
        resolve(spec(**said, driver={"useNvidiaDriverCRD": True}, drivers=[{"name": "default", "default": True}]))
    )
    assert one is not None
    assert other is not None
    for found in (render(Driver, one), render(NvidiaDrivers, other)):
        (with_image,) = (pod for pod in pods(found) if pod["nodeSelector"].get(RHCOS) == OLD)
        assert container(with_image, TOOLKIT)["image"] == f"mirror.example/{IMAGE.removeprefix('quay.io/')}"


def test_drivers_use_the_toolkit_wherever_it_is() -> None:
    """`drivers` have no switch; without images one DaemonSet per RHCOS version stays, and knows nothing (10.3, 82)."""
    switched_off = of_drivers({}, operator={"use_ocp_driver_toolkit": False})
    assert all(TOOLKIT in names(pod) for pod in pods(switched_off))
    for images in ({}, {"latest": IMAGE}):
        found = of_drivers({}, {"driverToolkitImages": images, "proxy": PROXY})
        assert [pod["nodeSelector"][RHCOS] for pod in pods(found)] == [OLD, NEW]
        assert not {"OPENSHIFT_VERSION", "HTTP_PROXY"} & set(env(container(pods(found)[0], MAIN)))
        assert "ConfigMap/gpu-operator-trusted-ca" not in found


def test_precompiled_drivers_need_nothing_of_it() -> None:
    """No toolkit, no version, no proxy, one DaemonSet per kernel (8.1, 8.2, case 63)."""
    listed = [{**pool, "kernel": "5.14.0-427.50.1.el9_4.x86_64"} for pool in POOLS]
    precompiled = {"usePrecompiled": True, "version": "595"}
    for found in (
        rendered({"proxy": PROXY}, driver=precompiled, nodePools=listed),
        of_drivers(precompiled, {"proxy": PROXY}, nodePools=listed),
    ):
        (pod,) = pods(found)
        assert names(pod) == [MAIN]
        assert not {"OPENSHIFT_VERSION", "HTTP_PROXY"} & set(env(container(pod, MAIN)))
        assert RHCOS not in pod["nodeSelector"]


def test_proxy() -> None:
    """Both spellings of each variable that is not empty, over the policy's, in the driver's container alone (8.2)."""
    own = {"env": [{"name": "HTTP_PROXY", "value": "mine"}, {"name": "OPENSHIFT_VERSION", "value": "mine"}]}
    for found in (rendered({"proxy": PROXY}, driver=own, **MODULES), of_drivers(own, {"proxy": PROXY})):
        pod = pods(found)[0]
        have = env(container(pod, MAIN))
        assert (have["HTTP_PROXY"], have["http_proxy"]) == (PROXY["httpProxy"],) * 2
        assert (have["HTTPS_PROXY"], have["https_proxy"]) == (PROXY["httpsProxy"],) * 2
        assert (have["NO_PROXY"], have["no_proxy"]) == (PROXY["noProxy"],) * 2
        assert [name for name in names(pod) if "HTTP_PROXY" in env(container(pod, name))] == [MAIN]
    plain = env(container(pods(rendered({"proxy": {"httpProxy": "", "noProxy": "x"}}))[0], MAIN))
    assert "HTTP_PROXY" not in plain
    assert plain["NO_PROXY"] == "x"


def test_who_wins_over_the_version_of_openshift() -> None:
    """The section's env loses to it (5.2), that of one of `drivers` wins over it (10.3)."""
    own = {"env": [{"name": "OPENSHIFT_VERSION", "value": "mine"}]}
    assert env(container(pods(rendered(driver=own))[0], MAIN))["OPENSHIFT_VERSION"] == "4.18"
    assert env(container(pods(of_drivers(own))[0], MAIN))["OPENSHIFT_VERSION"] == "mine"


@pytest.mark.parametrize("kind", ["section", "drivers"])
def test_authorities_of_the_proxy(kind: str) -> None:
    """A ConfigMap for OpenShift to fill, mounted where RHCOS' own authorities are (8.2).

    It brings no data: what Git says would be written back over the bundle.
    """
    found = rendered({"proxy": PROXY}) if kind == "section" else of_drivers({}, {"proxy": PROXY})
    bundle = found["ConfigMap/gpu-operator-trusted-ca"]
    assert bundle["metadata"]["labels"]["config.openshift.io/inject-trusted-cabundle"] == "true"
    assert "data" not in bundle
    mount = mounts(pods(found)[0], MAIN)["/etc/pki/ca-trust/extracted/pem"]
    assert mount["readOnly"] is True
    assert mount["from"]["configMap"] == {
        "name": "gpu-operator-trusted-ca",
        "items": [{"key": "ca-bundle.crt", "path": "tls-ca-bundle.pem"}],
    }


def test_rights_on_openshift() -> None:
    """Each driver of `drivers` has its SecurityContextConstraints, for its account alone (10.2)."""
    found = of_drivers({})
    account = "nvidia-gpu-driver-default-rhcos4.18"
    constraints = found[f"SecurityContextConstraints/{account}"]
    (user,) = constraints["users"]
    assert user.endswith(f":{account}")
    assert (constraints["allowHostPID"], constraints["allowPrivilegedContainer"]) == (True, True)
    assert f"Role/{account}" in found


def test_a_pool_with_a_driver_of_its_own_builds_in_its_toolkit() -> None:
    """Overrides go with the RHCOS version of their pool."""
    listed = [POOLS[0], {**POOLS[1], "driver": {"version": "580.173.02"}}]
    own = daemonsets(rendered(nodePools=listed))[-1]
    pod = own["spec"]["template"]["spec"]
    assert pod["nodeSelector"][RHCOS] == NEW
    assert env(container(pod, TOOLKIT))["RHCOS_VERSION"] == NEW
    assert container(pod, MAIN)["image"] == "nvcr.io/nvidia/driver:580.173.02-rhcos4.18"
