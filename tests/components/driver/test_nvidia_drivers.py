"""`drivers`: DaemonSets, pods and rights of several drivers in one cluster (operator.md 10)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import NvidiaDrivers
from gpustack.components.driver.nvidia_drivers_inputs import from_cluster
from gpustack.model import Body
from tests.components.common import container, env, grants, mounts, render, spec

MAIN, MANAGER, PEERMEM = "nvidia-driver-ctr", "k8s-driver-manager", "nvidia-peermem-ctr"
FS, GDRCOPY = "nvidia-fs-ctr", "nvidia-gdrcopy-ctr"
OS = "feature.node.kubernetes.io/system-os_release."
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
OWNER = "nvidia.com/gpu-operator.driver.owner"
STATE = "nvidia.com/gpu-operator.state"
UBUNTU = [{"name": "a", "os": "ubuntu22.04", "kernel": "5.15.0-105-generic"}]
FULL: dict[str, Any] = {
    "kernelModuleType": "open",
    "rdma": {"enabled": True, "useHostMofed": True},
    "gds": {"enabled": True, "env": [{"name": "G", "value": "1"}]},
    "gdrcopy": {"enabled": True},
    "manager": {"env": [{"name": "M", "value": "1"}]},
    "args": ["--verbose"],
    "env": [{"name": "E", "value": "1"}],
    "repoConfig": {"name": "repo"},
    "certConfig": {"name": "cert"},
    "kernelModuleConfig": {"name": "modules"},
    "licensingConfig": {"secretName": "licence"},
    "virtualTopologyConfig": {"name": "topology"},
    "secretEnv": "env-secret",
}
KEYS = {"repo": ["custom.list"], "cert": ["ca.crt"], "modules": ["nvidia.conf"]}
REFERENCES = [{"kind": "ConfigMap", "name": name, "keys": keys} for name, keys in KEYS.items()]


def bodies(*drivers: dict[str, Any], **sections: Any) -> dict[str, Body]:
    """What is rendered for DRIVERS on Ubuntu nodes, with SECTIONS."""
    listed = [{"name": f"driver-{index}", **driver} for index, driver in enumerate(drivers)]
    policy = {"nodePools": UBUNTU, "references": REFERENCES, "driver": {"useNvidiaDriverCRD": True}, **sections}
    inputs = from_cluster(resolve(spec(drivers=listed, **policy)))
    return render(NvidiaDrivers, inputs) if inputs else {}


def daemonsets(found: dict[str, Body]) -> list[Body]:
    """The DaemonSets of FOUND, in their order."""
    return [body for body in found.values() if body["kind"] == "DaemonSet"]


def daemonset(said: dict[str, Any], **sections: Any) -> Body:
    """The only DaemonSet of a driver of which this is SAID."""
    (found,) = daemonsets(bodies({"name": "default", **said}, **sections))
    return found


def pod(said: dict[str, Any], **sections: Any) -> Body:
    """The pod of that DaemonSet."""
    found: Body = daemonset(said, **sections)["spec"]["template"]["spec"]
    return found


def test_names_labels_and_nodes() -> None:
    """The default driver on Ubuntu 22.04: names, labels, node selector of the operator, but for the hash (10.3)."""
    found = bodies({"name": "default", "default": True})
    (body,) = daemonsets(found)
    account = "nvidia-gpu-driver-default-ubuntu22.04"
    name = body["metadata"]["name"]
    assert name.startswith("nvidia-gpu-driver-ubuntu22.04-default-")
    labels = {
        "app": name,
        "app.kubernetes.io/component": "nvidia-driver",
        "nvidia.com/node.os-version": "ubuntu22.04",
        "nvidia.com/precompiled": "false",
    }
    template = body["spec"]["template"]
    assert body["metadata"]["labels"] == {**labels, STATE: "state-driver"}
    assert template["metadata"]["labels"] == labels
    assert body["spec"]["selector"]["matchLabels"] == {"app": name}
    assert body["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert body["metadata"]["annotations"] == {"openshift.io/scc": account}
    assert template["spec"]["serviceAccountName"] == account
    assert template["spec"]["nodeSelector"] == {
        f"{OS}ID": "ubuntu",
        f"{OS}VERSION_ID": "22.04",
        OWNER: "default",
        "nvidia.com/gpu.deploy.driver": "true",
        "nvidia.com/gpu.present": "true",
    }
    assert {f"ServiceAccount/{account}", f"ClusterRole/{account}", f"ClusterRoleBinding/{account}"} < set(found)
    assert all(each["metadata"]["labels"][STATE] == "state-driver" for each in found.values())


def test_rights_are_the_drivers_own() -> None:
    """Each driver has the rights of section 6 under a name of its own per OS; kernels of one OS share them (10.2)."""
    pools = [*UBUNTU, {"name": "b", "os": "ubuntu22.04", "kernel": "6.8.0-31-generic"}]
    found = bodies({"usePrecompiled": True, "version": "595"}, nodePools=pools)
    roles = [name for name in found if name.startswith("ClusterRole/")]
    assert roles == ["ClusterRole/nvidia-gpu-driver-driver-0-ubuntu22.04"]
    assert {"pods/eviction:create", "nodes:patch", "resourceclaims:get"} < grants(found[roles[0]])
    assert len(daemonsets(found)) == 2


def test_the_startup_probe_is_one_object() -> None:
    """The operator's drivers overwrite each other's ConfigMap; here all mount the one that there is (10.2)."""
    drivers = [{"nodeSelector": {"p": name}} for name in ("a", "b")]
    pools = [{"name": name, "os": "ubuntu22.04", "nodeSelector": {"p": name}} for name in ("a", "b")]
    found = bodies(*drivers, nodePools=pools)
    assert [name for name in found if name.startswith("ConfigMap/")] == ["ConfigMap/nvidia-driver-startup-probe"]
    assert len(daemonsets(found)) == 2


def test_nothing_without_nodes() -> None:
    """A driver that no pool is for is not rendered, nor are its rights (10.1: no matching node, nothing is created)."""
    assert bodies({"nodeSelector": {"p": "elsewhere"}}) == {}
    assert bodies({"default": True}, nodePools=[]) == {}
    assert bodies({"default": True}, driver={"useNvidiaDriverCRD": False}) == {}


def test_environment() -> None:
    """NVIDIA_VISIBLE_DEVICES is void in driver and peermem, and the driver's env loses to RDMA alone (10.3)."""
    own = [{"name": "GDS_ENABLED", "value": "no"}, {"name": "GPU_DIRECT_RDMA_ENABLED", "value": "no"}]
    found = pod({**FULL, "env": own})
    have = env(container(found, MAIN))
    assert have["NVIDIA_VISIBLE_DEVICES"] == env(container(found, PEERMEM))["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert (have["GDS_ENABLED"], have["GPU_DIRECT_RDMA_ENABLED"]) == ("no", "true")
    assert (have["KERNEL_MODULE_TYPE"], have["OPEN_KERNEL_MODULES_ENABLED"]) == ("open", "true")
    assert env(container(found, MANAGER))["M"] == "1"
    assert env(container(found, FS)) == {"G": "1"}


def test_arguments_are_appended() -> None:
    """`args` come after `init`, where the section `driver` replaces it (10.3)."""
    assert container(pod({"args": ["--verbose"]}), MAIN)["args"] == ["init", "--verbose"]
    assert container(pod({}), MAIN)["args"] == ["init"]


def test_what_is_mounted_is_mounted_everywhere() -> None:
    """Package sources, certificates, parameters, licence, topology reach peermem, nvidia-fs and gdrcopy too (10.3)."""
    found = pod(FULL)
    paths = {
        "/etc/apt/sources.list.d/custom.list",
        "/usr/local/share/ca-certificates/ca.crt",
        "/drivers/nvidia.conf",
        "/drivers/gridd.conf",
        "/drivers/ClientConfigToken/client_configuration_token.tok",
        "/etc/nvidia/nvidia-topologyd.conf",
    }
    for name in (MAIN, PEERMEM, FS, GDRCOPY):
        assert paths <= set(mounts(found, name)), name
        assert all(mounts(found, name)[path]["readOnly"] for path in paths)
    assert not paths & set(mounts(found, MANAGER))
    assert mounts(found, FS)["/drivers/gridd.conf"]["from"]["secret"]["secretName"] == "licence"


def test_a_licence_may_come_from_a_config_map_without_token() -> None:
    """licensingConfig.name is a ConfigMap, and nlsEnabled: false leaves the token out (10.3)."""
    found = mounts(pod({"licensingConfig": {"name": "licence", "nlsEnabled": False}}), MAIN)
    assert found["/drivers/gridd.conf"]["from"]["configMap"]["name"] == "licence"
    assert "/drivers/ClientConfigToken/client_configuration_token.tok" not in found


def test_subscriptions_reach_all_builders() -> None:
    """On RHEL the node's subscription is mounted into every container that builds (10.3), unless CRI-O hands it on."""
    pools = [{"name": "a", "os": "rhel9.4"}]
    found = pod({"gdrcopy": {"enabled": True}}, nodePools=pools)
    assert all("/run/secrets/rhsm" in mounts(found, name) for name in (MAIN, GDRCOPY))
    crio = pod({}, nodePools=pools, cluster={"containerRuntime": "cri-o"})
    assert "/run/secrets/rhsm" not in mounts(crio, MAIN)


def test_precompiled_drivers_on_suse_see_the_nodes_modules() -> None:
    """The operator's condition for this mount can't be true (case 77); the section `driver` has it (case 43)."""
    pools = [{"name": "a", "os": "sles15.6", "kernel": "6.4.0-150600.21-default"}]
    found = pod({"usePrecompiled": True, "version": "595"}, nodePools=pools)
    assert "/run/host/lib/modules" in mounts(found, MAIN)


def test_host_mofed_moves_the_sources_even_without_rdma() -> None:
    """useHostMofed alone mounts the node's /usr/src, but is announced to nobody (10.3, case 85)."""
    found = pod({"rdma": {"useHostMofed": True}})
    assert mounts(found, MAIN)["/run/mellanox/drivers/usr/src"]["from"]["hostPath"]["path"] == "/usr/src"
    assert all("USE_HOST_MOFED" not in env(container(found, name)) for name in (MAIN, MANAGER))


def test_secret_env_reaches_precompiled_drivers_too() -> None:
    """envFrom on driver, nvidia-fs and gdrcopy; unlike the section's, also with precompiled modules (10.3)."""
    found = pod(FULL)
    having = [each["name"] for each in found["containers"] if each.get("envFrom")]
    assert having == [MAIN, FS, GDRCOPY]
    precompiled = pod({"usePrecompiled": True, "version": "595", "secretEnv": "login"})
    assert container(precompiled, MAIN)["envFrom"] == [{"secretRef": {"name": "login"}}]


def test_pull_secrets_of_all_four() -> None:
    """The driver's, its manager's, gds' and gdrcopy's, in this order; the operator's manifest breaks (case 80)."""
    driver = {
        "imagePullSecrets": ["drv"],
        "manager": {"imagePullSecrets": ["manager", "drv"]},
        "gdrcopy": {"enabled": True, "imagePullSecrets": ["gdr"]},
        "gds": {"enabled": False, "imagePullSecrets": ["gds"]},
    }
    assert pod(driver)["imagePullSecrets"] == [{"name": name} for name in ("drv", "manager", "gdr")]


def test_pull_policies() -> None:
    """The manager's default is IfNotPresent, and nvidia-fs has no other (10.3)."""
    found = pod({**FULL, "gds": {"enabled": True, "imagePullPolicy": "Always"}, "imagePullPolicy": "Always"})
    policies = [container(found, name)["imagePullPolicy"] for name in (MAIN, MANAGER, FS)]
    assert policies == ["Always", "IfNotPresent", "IfNotPresent"]


def test_the_startup_probe_takes_all_numbers_from_the_driver() -> None:
    """startupProbe: what it leaves out is the API's default; without it 60 s of delay, 5 s when precompiled (10.3)."""
    given = container(pod({"startupProbe": {"failureThreshold": 200}}), MAIN)["startupProbe"]
    assert given.items() >= {"failureThreshold": 200, "timeoutSeconds": 1, "initialDelaySeconds": 0}.items()
    plain = container(pod({}), MAIN)["startupProbe"]
    assert plain.items() >= {"initialDelaySeconds": 60, "failureThreshold": 120, "timeoutSeconds": 60}.items()
    precompiled = container(pod({"usePrecompiled": True, "version": "595"}), MAIN)["startupProbe"]
    assert precompiled.items() >= {"initialDelaySeconds": 5, "failureThreshold": 120, "timeoutSeconds": 60}.items()


def test_labels_that_selectors_need_are_not_the_drivers_to_set() -> None:
    """`app` and app.kubernetes.io/* among a driver's labels are dropped; others are on DaemonSet and pods (10.3)."""
    labels = {"app": "mine", "app.kubernetes.io/component": "mine", "team": "ml"}
    body = daemonset({"labels": labels, "annotations": {"note": "x"}})
    for part in (body["metadata"], body["spec"]["template"]["metadata"]):
        assert part["labels"]["team"] == "ml"
        assert part["annotations"]["note"] == "x"
        assert part["labels"]["app"].startswith("nvidia-gpu-driver-")
        assert part["labels"]["app.kubernetes.io/component"] == "nvidia-driver"


def test_nothing_of_daemonsets_reaches_drivers() -> None:
    """Labels, priority and tolerations are the driver's own; its tolerations come on top of the built-in one (10.3)."""
    sets = {"labels": {"team": "ml"}, "priorityClassName": "other", "tolerations": [{"operator": "Exists"}]}
    body = daemonset({"tolerations": [{"key": "gpu", "operator": "Exists"}], "hostNetwork": True}, daemonsets=sets)
    found = body["spec"]["template"]["spec"]
    assert "team" not in body["metadata"]["labels"]
    assert found["priorityClassName"] == "system-node-critical"
    assert [each["key"] for each in found["tolerations"]] == ["nvidia.com/gpu", "gpu"]
    assert (found["hostNetwork"], found["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    mine = pod({"priorityClassName": "mine", "podSecurityContext": {"runAsUser": 0}})
    assert (mine["priorityClassName"], mine["securityContext"]) == ("mine", {"runAsUser": 0})


def test_the_hosts_root_is_a_volume_and_no_variable() -> None:
    """hostPaths.rootFS moves the manager's volume; HOST_ROOT is not set; with gpuCluster it is / (10.3)."""
    found = pod({}, hostPaths={"rootFS": "/sysroot"})
    assert mounts(found, MANAGER)["/host"]["from"]["hostPath"]["path"] == "/sysroot"
    assert all("HOST_ROOT" not in env(each) for each in [*found["initContainers"], *found["containers"]])
    dra = {"driver": {}, "gpuCluster": {}, "hostPaths": {"rootFS": "/sysroot"}}
    assert mounts(pod({}, **dra), MANAGER)["/host"]["from"]["hostPath"]["path"] == "/"


def test_drivers_of_virtual_machines_hosts() -> None:
    """vgpu-host-manager: own names and labels, cgroup and vfio, two minutes to end, no startup probe (10.3)."""
    driver = {"driverType": "vgpu-host-manager", "repository": "r.example.com", "image": "vgpu", "version": "550.90.05"}
    found = bodies({"name": "host", **driver})
    (body,) = daemonsets(found)
    assert body["metadata"]["name"].startswith("nvidia-vgpu-host-manager-driver-ubuntu22.04-host-")
    assert body["metadata"]["labels"]["app.kubernetes.io/component"] == "nvidia-vgpu-host-manager"
    assert "ServiceAccount/nvidia-vgpu-manager-host-ubuntu22.04" in found
    spec_of = body["spec"]["template"]["spec"]
    assert spec_of["nodeSelector"]["nvidia.com/gpu.deploy.vgpu-manager"] == "true"
    assert "nvidia.com/gpu.deploy.driver" not in spec_of["nodeSelector"]
    assert spec_of["terminationGracePeriodSeconds"] == 120
    main = container(spec_of, MAIN)
    assert not {"startupProbe", "lifecycle"} & set(main)
    assert {"/sys/fs/cgroup", "/dev/vfio"} <= set(mounts(spec_of, MAIN))
    assert found["ConfigMap/nvidia-driver-startup-probe"]["metadata"]["labels"]["app.kubernetes.io/component"] == (
        "nvidia-vgpu-host-manager"
    )


def test_anti_affinity_names_the_vgpu_manager() -> None:
    """One driver per node, the vGPU manager counted (10.3)."""
    (term,) = pod({})["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = term["labelSelector"]["matchExpressions"]
    assert expression["values"] == ["nvidia-driver", "nvidia-vgpu-manager"]


@pytest.mark.parametrize(("kind", "name"), [("gpu", "nvidia-gpu-driver-"), ("vgpu", "nvidia-vgpu-driver-")])
def test_types_have_their_prefixes(kind: str, name: str) -> None:
    """The prefixes of DaemonSets and accounts follow the type (10.2)."""
    image = {"repository": "r.example.com", "image": "driver", "version": "580.1"}
    body = daemonset({"driverType": kind, **image})
    assert body["metadata"]["name"].startswith(name)
    assert body["metadata"]["annotations"]["openshift.io/scc"] == f"{name}default-ubuntu22.04"
