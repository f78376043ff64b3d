"""The driver's DaemonSets, pods and rights (operator.md 6, 7.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.components import Driver
from gpustack.components.driver.driver_files_inputs import Files, HostFile
from gpustack.components.driver.driver_inputs import DriverInputs
from gpustack.components.driver.driver_settings_inputs import DriverCommon, DriverPod, Manager, Module
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render

NAME = "nvidia-driver-daemonset"
MAIN, MANAGER, PEERMEM = "nvidia-driver-ctr", "k8s-driver-manager", "nvidia-peermem-ctr"
FS, GDRCOPY = "nvidia-fs-ctr", "nvidia-gdrcopy-ctr"
GDS_MODULE, GDRCOPY_MODULE = Module(image="nvidia-fs:2-ubuntu22.04"), Module(image="gdrdrv:2-ubuntu22.04")
ALL: dict[str, Any] = {"rdma": True, "gds": GDS_MODULE, "gdrcopy": GDRCOPY_MODULE}
FEATURES = {"GPU_DIRECT_RDMA_ENABLED", "GDS_ENABLED", "GDRCOPY_ENABLED"}


def inputs(changes: dict[str, Any] | None = None, **fields: Any) -> DriverInputs:
    """A driver on Ubuntu 22.04 with FIELDS of its settings or pod; CHANGES are those of `common`."""
    of_pod = {name: value for name, value in fields.items() if name in DriverPod.model_fields}
    of_driver = {name: value for name, value in fields.items() if name not in of_pod}
    settings = DriverCommon(**{"manager": Manager(image="manager:1"), **of_driver})
    pod = DriverPod(**{"image": "driver:595-ubuntu22.04", **of_pod})
    return DriverInputs(common=common(**(changes or {})), settings=settings, pods=(pod,))


def daemonset(changes: dict[str, Any] | None = None, **fields: Any) -> Body:
    """The DaemonSet of `inputs`."""
    found = inputs(changes, **fields)
    return render(Driver, found)[f"DaemonSet/{found.pods[0].name}"]


def pod(changes: dict[str, Any] | None = None, **fields: Any) -> Body:
    """The pod of `inputs`."""
    found = inputs(changes, **fields)
    return pod_of(render(Driver, found), found.pods[0].name)


def names(found: Body) -> list[str]:
    """The containers of a pod, in order."""
    return [each["name"] for each in found["containers"]]


def every(found: Body) -> list[Body]:
    """All containers of a pod."""
    return [*found["initContainers"], *found["containers"]]


def test_rights_are_what_the_manager_uses() -> None:
    """Cordon, evict, drain: the operator's rights without those that only OpenShift has a use for (6)."""
    bodies = render(Driver, inputs())
    assert "Role/nvidia-driver" not in bodies
    assert grants(bodies["ClusterRole/nvidia-driver"]) == {
        *(f"nodes:{verb}" for verb in ("get", "list", "patch", "update", "watch")),
        *(f"pods:{verb}" for verb in ("get", "list", "watch")),
        "pods/eviction:create",
        "resourceclaims:get",
        "resourceclaims:list",
        "daemonsets:get",
    }


def test_openshift_adds_its_rights() -> None:
    """On OpenShift the pod may be privileged, and reads the cluster's version (6)."""
    bodies = render(Driver, inputs({"openshift": True}))
    assert grants(bodies["Role/nvidia-driver"]) == {"securitycontextconstraints=privileged:use"}
    assert {"clusterversions:get", "clusterversions:list"} <= grants(bodies["ClusterRole/nvidia-driver"])


def test_without_pods_all_but_the_daemonset_is_there() -> None:
    """No nodes with GPUs: rights and probe script exist, nothing runs (1.2, case 47)."""
    bodies = render(Driver, inputs().model_copy(update={"pods": ()}))
    assert {body["kind"] for body in bodies.values()} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
    }


def test_a_driver_is_never_rolled_by_kubernetes() -> None:
    """OnDelete whatever daemonsets.rollingUpdate says, and one driver per node (5.1, 7.1)."""
    found = daemonset({"max_unavailable": "50%"})
    assert found["spec"]["updateStrategy"] == {"type": "OnDelete"}
    (term,) = found["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    (expression,) = term["labelSelector"]["matchExpressions"]
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert labels[expression["key"]] in expression["values"]


def test_precompiled_daemonsets_share_the_selector() -> None:
    """A kernel's DaemonSet keeps app label and selector of the plain one, and selects its kernel (7.1, case 39)."""
    kernel = {"feature.node.kubernetes.io/kernel-version.full": "5.15.0-105-generic"}
    found = daemonset(precompiled=True, name=f"{NAME}-5.15.0-105-generic-ubuntu22.04", node_selector=kernel)
    template = found["spec"]["template"]
    assert found["spec"]["selector"] == {"matchLabels": {"app": NAME}}
    for labels in (found["metadata"]["labels"], template["metadata"]["labels"]):
        assert (labels["app"], labels["nvidia.com/precompiled"]) == (NAME, "true")
    assert template["spec"]["nodeSelector"] == {"nvidia.com/gpu.deploy.driver": "true", **kernel}


def test_a_further_system_has_its_own_selector() -> None:
    """A DaemonSet of a second OS is selected, and labelled, by its own name."""
    found = daemonset(name=f"{NAME}-rhel9", app=f"{NAME}-rhel9")
    assert found["spec"]["selector"] == {"matchLabels": {"app": f"{NAME}-rhel9"}}
    assert found["spec"]["template"]["metadata"]["labels"]["app"] == f"{NAME}-rhel9"


@pytest.mark.parametrize(("kind", "opened"), [("auto", None), ("proprietary", None), ("open", "true")])
def test_kernel_modules(kind: Any, opened: str | None) -> None:
    """kernelModuleType goes to the driver; open also by the older variable (7.1)."""
    have = env(container(pod(module_type=kind), MAIN))
    assert (have["KERNEL_MODULE_TYPE"], have.get("OPEN_KERNEL_MODULES_ENABLED")) == (kind, opened)


def test_the_policys_env_wins_over_features() -> None:
    """driver.env comes after the variables of features (5.2), and reaches the driver's container alone."""
    found = pod(**ALL, env=(("GDS_ENABLED", "false"), ("EXTRA", "1")))
    have = env(container(found, MAIN))
    assert (have["GDS_ENABLED"], have["EXTRA"], have["GDRCOPY_ENABLED"]) == ("false", "1", "true")
    assert [each["name"] for each in every(found) if "EXTRA" in env(each)] == [MAIN]


def test_the_managers_defaults_evict_but_do_not_drain() -> None:
    """What the manager does on its own, until driver.manager.env says otherwise (7.1, case 34)."""
    have = env(container(pod(), MANAGER))
    assert (have["ENABLE_GPU_POD_EVICTION"], have["ENABLE_AUTO_DRAIN"], have["DRAIN_TIMEOUT_SECONDS"]) == (
        "true",
        "false",
        "0s",
    )
    manager = Manager(image="manager:1", env=(("ENABLE_AUTO_DRAIN", "true"),))
    assert env(container(pod(manager=manager), MANAGER))["ENABLE_AUTO_DRAIN"] == "true"


def test_rdma_adds_peermem() -> None:
    """RDMA: a container loads nvidia-peermem from the driver's image; driver and manager are told (case 10)."""
    found = pod(rdma=True)
    assert names(found) == [MAIN, PEERMEM]
    assert container(found, PEERMEM)["image"] == container(found, MAIN)["image"]
    assert env(container(found, PEERMEM)) == {}
    for name in (MAIN, MANAGER):
        assert env(container(found, name))["GPU_DIRECT_RDMA_ENABLED"] == "true"
    assert (
        mounts(found, MAIN)["/run/mellanox/drivers/usr/src"]["from"]["hostPath"]["path"]
        == "/run/mellanox/drivers/usr/src"
    )


def test_host_mofed_is_said_to_all_three() -> None:
    """With the node's own network driver its sources are in /usr/src, still created if absent (7.1, case 11)."""
    found = pod(rdma=True, host_mofed=True)
    assert all(env(container(found, name))["USE_HOST_MOFED"] == "true" for name in (MAIN, MANAGER, PEERMEM))
    source = mounts(found, MAIN)["/run/mellanox/drivers/usr/src"]["from"]["hostPath"]
    assert source == {"path": "/usr/src", "type": "DirectoryOrCreate"}


def test_features_are_off_by_default() -> None:
    """A plain driver is one container, and no feature is announced."""
    found = pod()
    assert names(found) == [MAIN]
    assert not FEATURES & set(env(container(found, MAIN)))


def test_features_stand_in_the_operators_order() -> None:
    """driver, peermem, nvidia-fs, gdrcopy, each announced to the driver (7.1)."""
    found = pod(**ALL)
    assert names(found) == [MAIN, PEERMEM, FS, GDRCOPY]
    assert set(env(container(found, MAIN))) >= FEATURES


def test_builders_have_their_own_image_and_env() -> None:
    """nvidia-fs and gdrdrv build in images of their own, with the env of gds and gdrcopy (cases 12 and 13)."""
    module = Module(image="nvidia-fs:3", pull_policy="Always", env=(("GDS_X", "1"),))
    found = container(pod(gds=module), FS)
    assert (found["image"], found["imagePullPolicy"], env(found)) == ("nvidia-fs:3", "Always", {"GDS_X": "1"})


def test_secret_env_reaches_what_downloads() -> None:
    """secretEnv: envFrom on driver, nvidia-fs and gdrcopy (7.1, case 35)."""
    found = pod(**ALL, secret_env="proxy-login")  # noqa: S106 - the name of a Secret
    having = [each["name"] for each in every(found) if each.get("envFrom") == [{"secretRef": {"name": "proxy-login"}}]]
    assert having == [MAIN, FS, GDRCOPY]


def test_files_reach_the_containers_they_are_for() -> None:
    """Each key is a read-only subPath mount of the volume with that key, in no other container (case 35)."""
    config = Files(
        use="repositories",
        volume="repo-config",
        kind="ConfigMap",
        name="repo.files",
        paths={"a.list": "/etc/apt/a.list"},
        parts=("driver", "fs"),
    )
    paths = {"gridd.conf": "/drivers/gridd.conf"}
    licence = Files(use="licence", volume="licensing-config", kind="Secret", name="licence", paths=paths)
    found = pod(**ALL, files=(config, licence))
    where = {
        each["name"]: set(mounts(found, each["name"])) & {"/etc/apt/a.list", "/drivers/gridd.conf"}
        for each in every(found)
    }
    assert where == {
        MANAGER: set(),
        MAIN: {"/etc/apt/a.list", "/drivers/gridd.conf"},
        PEERMEM: set(),
        FS: {"/etc/apt/a.list"},
        GDRCOPY: set(),
    }
    mount = mounts(found, MAIN)["/etc/apt/a.list"]
    assert (mount["readOnly"], mount["subPath"]) == (True, "a.list")
    assert mount["from"]["configMap"] == {"name": "repo.files", "items": [{"key": "a.list", "path": "a.list"}]}
    assert mounts(found, MAIN)["/drivers/gridd.conf"]["from"]["secret"]["secretName"] == "licence"


def test_files_of_the_node_are_read_only_and_the_drivers_alone() -> None:
    """Subscriptions are lent to the driver's container only (7.1)."""
    file = HostFile(volume="subscription-config-0", path="/etc/rhsm", kind="Directory", target="/run/secrets/rhsm")
    found = pod(**ALL, files=(file,))
    assert [each["name"] for each in every(found) if "/run/secrets/rhsm" in mounts(found, each["name"])] == [MAIN]
    mount = mounts(found, MAIN)["/run/secrets/rhsm"]
    assert mount["readOnly"] is True
    assert mount["from"]["hostPath"] == {"path": "/etc/rhsm", "type": "Directory"}


def test_startup_numbers_override_the_built_in_ones() -> None:
    """startupProbe sets the numbers it names; the check stays (7.1)."""
    probe = container(pod(startup={"failureThreshold": 8, "timeoutSeconds": 7}), MAIN)["startupProbe"]
    assert probe == {
        "exec": {"command": ["sh", "/usr/local/bin/startup-probe.sh"]},
        "initialDelaySeconds": 60,
        "periodSeconds": 10,
        "timeoutSeconds": 7,
        "failureThreshold": 8,
        "successThreshold": 1,
    }


def test_args_replace_the_drivers_alone() -> None:
    """driver.args replaces `init`; other containers keep theirs (5.2)."""
    found = pod(rdma=True, args=("--verbose",))
    assert container(found, MAIN)["args"] == ["--verbose"]
    assert container(found, PEERMEM)["args"] == ["reload_nvidia_peermem"]


def test_resources_go_to_all_containers() -> None:
    """driver.resources: on driver, peermem, nvidia-fs, gdrcopy and the manager (5.2)."""
    limits = {"limits": {"memory": "1Gi"}}
    assert all(each["resources"] == limits for each in every(pod(**ALL, resources=limits)))


def test_pull_secrets_are_named_once() -> None:
    """In order of first appearance, without repetition (4)."""
    assert pod(pull_secrets=("a", "b", "a"))["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


def test_host_network() -> None:
    """driver.hostNetwork: the pod uses the node's network and still resolves names of the cluster (5.1)."""
    found = pod(host_network=True)
    assert (found["hostNetwork"], found["dnsPolicy"], found["hostPID"]) == (True, "ClusterFirstWithHostNet", True)


def test_root_fs_is_said_to_every_container() -> None:
    """hostPaths.rootFS: the volume host-root, and HOST_ROOT on all containers (5.4)."""
    found = pod({"root_fs": "/sysroot"}, **ALL)
    assert {env(each)["HOST_ROOT"] for each in every(found)} == {"/sysroot"}
    assert mounts(found, MANAGER)["/host"]["from"]["hostPath"]["path"] == "/sysroot"
