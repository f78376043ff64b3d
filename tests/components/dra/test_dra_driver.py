"""The DRA driver of a `gpuCluster`: kubelet plugin, controller, classes and rights (operator.md 11.2)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.nfd import nfd_inputs as nfd
from gpustack.model import Body
from tests.components.common import container, env, grants, mounts, pod_of
from tests.components.dra.common import policy, rendered

PLUGIN, CONTROLLER = "nvidia-dra-driver-kubelet-plugin", "nvidia-dra-driver-controller"
ACCOUNT = "nvidia-dra-driver-kubeletplugin"


def driver(**fields: Any) -> dict[str, Body]:
    """What is rendered where gpuCluster.draDriver has FIELDS."""
    return rendered(gpuCluster={"draDriver": fields})


def controller_of(bodies: dict[str, Body]) -> Body:
    """The pod spec of the controller."""
    spec: Body = bodies[f"Deployment/{CONTROLLER}"]["spec"]["template"]["spec"]
    return spec


def test_every_object_says_which_state_it_belongs_to() -> None:
    """All objects but CRDs carry the label that the operator deletes a state by (11.1)."""
    states = {
        key: body["metadata"]["labels"].get("nvidia.com/gpu-operator.state")
        for key, body in rendered(gpuCluster={"dcgm": {"enabled": True}}).items()
        if not key.startswith("CustomResourceDefinition/")
    }
    assert set(states.values()) == {"state-dra-driver", "state-dcgm", "state-dcgm-exporter", "state-dra-validation"}


def test_programs_of_one_image() -> None:
    """Plugins and controller run draDriver's image, driver-validation the validator's with draDriver's pull policy."""
    bodies = driver(repository="r.example/x", image="y", version="2", imagePullPolicy="Always")
    pod = pod_of(bodies, PLUGIN)
    assert {body["image"] for body in pod["containers"]} == {"r.example/x/y:2"}
    assert controller_of(bodies)["containers"][0]["image"] == "r.example/x/y:2"
    check = container(pod, "driver-validation")
    assert (check["image"], check["imagePullPolicy"]) == ("nvcr.io/nvidia/gpu-operator:v26.7.0", "Always")


def test_a_managed_driver_is_waited_for() -> None:
    """Before driver-validation the pod waits for the driver's pod, behind it for the modules that this pod loads."""
    names = [body["name"] for body in pod_of(driver(), PLUGIN)["initContainers"]]
    assert names == ["gpustack-wait-for-driver", "driver-validation", "gpustack-driver-features-validation"]


def test_nodes_with_their_own_driver_wait_for_nothing() -> None:
    """Without a driver of this render only the validator looks at the node."""
    bodies = rendered(gpuCluster={}, drivers=[], driver={"enabled": False})
    assert [body["name"] for body in pod_of(bodies, PLUGIN)["initContainers"]] == ["driver-validation"]


def test_feature_gates_reach_all_three_programs_sorted() -> None:
    """FEATURE_GATES is `a=true,b=false` in both plugins and the controller; absent without gates."""
    bodies = driver(featureGates={"NVMLDeviceHealthCheck": True, "ComputeDomainCliques": False})
    programs = [*pod_of(bodies, PLUGIN)["containers"], *controller_of(bodies)["containers"]]
    expected = "ComputeDomainCliques=false,NVMLDeviceHealthCheck=true"
    assert [env(body).get("FEATURE_GATES") for body in programs] == [expected] * 3
    assert "FEATURE_GATES" not in env(container(pod_of(driver(), PLUGIN), "gpus"))


def test_passthrough_sees_the_nodes_modules() -> None:
    """The gate PassthroughSupport adds /lib/modules/, /sys/ and /proc/ to the container of GPUs, and to no other."""
    pod = pod_of(driver(featureGates={"PassthroughSupport": True}), PLUGIN)
    added = {path: mount for path, mount in mounts(pod, "gpus").items() if path in {"/lib/modules/", "/sys/", "/proc/"}}
    assert {path: mount["mountPropagation"] for path, mount in added.items()} == {
        "/lib/modules/": "HostToContainer",
        "/sys/": "Bidirectional",
        "/proc/": "Bidirectional",
    }
    assert "/sys/" not in mounts(pod, "compute-domains")
    assert "/sys/" not in mounts(pod_of(driver(featureGates={"PassthroughSupport": False}), PLUGIN), "gpus")


def test_mps_gets_rights_in_the_namespace() -> None:
    """With the gate MPSSupport the plugin may run deployments and list pods, of its own namespace alone."""
    role = driver(featureGates={"MPSSupport": True})[f"Role/{ACCOUNT}-mps"]
    assert {"deployments:create", "deployments:delete", "pods:list"} <= grants(role)
    assert f"Role/{ACCOUNT}-mps" not in driver()


@pytest.mark.parametrize(("name", "port", "period"), [("gpus", 51516, 30), ("compute-domains", 51515, 10)])
def test_health_checks(name: str, port: int, period: int) -> None:
    """Each plugin answers on its own port; `healthcheck` moves the port, or switches port and probes off."""
    section = "gpus" if name == "gpus" else "computeDomains"
    found = container(pod_of(driver(), PLUGIN), name)
    assert found["startupProbe"]["grpc"] == found["livenessProbe"]["grpc"] == {"port": port, "service": "liveness"}
    assert found["livenessProbe"]["periodSeconds"] == period
    moved = container(pod_of(driver(**{section: {"kubeletPlugin": {"healthcheck": {"port": 5}}}}), PLUGIN), name)
    assert (moved["startupProbe"]["grpc"]["port"], env(moved)["HEALTHCHECK_PORT"]) == (5, "5")
    off = container(pod_of(driver(**{section: {"kubeletPlugin": {"healthcheck": {"enabled": False}}}}), PLUGIN), name)
    assert env(off)["HEALTHCHECK_PORT"] == "-1"
    assert not {"startupProbe", "livenessProbe"} & off.keys()


def test_without_compute_domains() -> None:
    """`computeDomains.enabled: false` drops container, controller, classes, CRDs, and the rights that go with them."""
    bodies = driver(computeDomains={"enabled": False})
    assert [body["name"] for body in pod_of(bodies, PLUGIN)["containers"]] == ["gpus"]
    assert not [key for key in bodies if "compute-domain" in key or key.startswith(("Custom", "Deployment"))]
    assert f"Role/{ACCOUNT}" not in bodies
    assert "nodes:patch" not in grants(bodies[f"ClusterRole/{ACCOUNT}"])
    assert "nodes:patch" in grants(driver()[f"ClusterRole/{ACCOUNT}"])


def test_the_kubelets_folder() -> None:
    """hostPaths.kubeletRootDir is in environment, volumes and mount paths of the plugins."""
    pod = pod_of(rendered(gpuCluster={"hostPaths": {"kubeletRootDir": "/data/kubelet"}}), PLUGIN)
    for name in ("gpus", "compute-domains"):
        found = mounts(pod, name)["/data/kubelet/plugins"]
        assert (found["from"]["hostPath"]["path"], found["mountPropagation"]) == (
            "/data/kubelet/plugins",
            "Bidirectional",
        )
        assert env(container(pod, name))["KUBELET_REGISTRAR_DIRECTORY_PATH"] == "/data/kubelet/plugins_registry"


def test_the_drivers_folder() -> None:
    """hostPaths.driverInstallDir moves volume and DRIVER_INSTALL_DIR; in containers it stays /driver-root."""
    pod = pod_of(rendered(gpuCluster={"hostPaths": {"driverInstallDir": "/opt/driver"}}), PLUGIN)
    assert mounts(pod, "gpus")["/driver-root"]["from"]["hostPath"]["path"] == "/opt/driver"
    check = env(container(pod, "driver-validation"))
    assert (check["DRIVER_INSTALL_DIR"], check["DRIVER_INSTALL_DIR_CTR_PATH"]) == ("/opt/driver", "/driver-root")


def test_the_init_container_fits_beside_the_plugins() -> None:
    """Its resources are, per resource, the most of the plugins that are on; a limit is never below a request."""
    gpus = {"kubeletPlugin": {"resources": {"requests": {"cpu": "1500m"}, "limits": {"memory": "1G"}}}}
    domains = {"kubeletPlugin": {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1200m", "memory": "1Gi"}}}}
    check = container(pod_of(driver(gpus=gpus, computeDomains=domains), PLUGIN), "driver-validation")
    assert check["resources"] == {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m", "memory": "1Gi"}}
    alone = driver(gpus=gpus, computeDomains={**domains, "enabled": False})
    assert container(pod_of(alone, PLUGIN), "driver-validation")["resources"] == gpus["kubeletPlugin"]["resources"]


def test_env_of_the_policy_wins() -> None:
    """`env` of a program replaces the built-in variable of that name."""
    bodies = driver(computeDomains={"controller": {"env": [{"name": "LOG_VERBOSITY", "value": "6"}]}})
    assert env(controller_of(bodies)["containers"][0])["LOG_VERBOSITY"] == "6"


def test_leases_only_for_an_election() -> None:
    """The controller may write leases where the policy turns leader election on, and in its own namespace."""
    elects = {"controller": {"env": [{"name": "LEADER_ELECTION_ENABLED", "value": "true"}]}}
    assert "leases:update" in grants(driver(computeDomains=elects)[f"Role/{CONTROLLER}"])
    bodies = driver()
    assert not [
        right
        for kind in ("Role", "ClusterRole")
        for right in grants(bodies[f"{kind}/{CONTROLLER}"])
        if "leases" in right
    ]


def test_daemonsets_of_the_policy() -> None:
    """Labels, annotations and tolerations reach every pod; the priority only the driver's; strategies are built in."""
    sets = {
        "labels": {"app": "x", "team": "a"},
        "annotations": {"note": "1"},
        "tolerations": [],
        "priorityClassName": "mine",
        "updateStrategy": "OnDelete",
    }
    bodies = rendered(gpuCluster={"daemonsets": sets, "dcgm": {"enabled": True}})
    workloads = {key: body for key, body in bodies.items() if key.startswith(("DaemonSet/", "Deployment/"))}
    for key, body in workloads.items():
        template = body["spec"]["template"]
        assert body["metadata"]["labels"]["app"] == "x"
        assert template["metadata"]["labels"]["app"] != "x"
        assert template["metadata"]["labels"]["team"] == "a"
        assert (body["metadata"]["annotations"]["note"], template["metadata"]["annotations"]) == ("1", {"note": "1"})
        driver_pod = "dra-driver" in key
        assert template["spec"]["priorityClassName"] == ("mine" if driver_pod else "system-node-critical")
        assert ("tolerations" in template["spec"]) == key.startswith("Deployment/")
    strategies = {
        key: body["spec"]["updateStrategy"] for key, body in workloads.items() if key.startswith("DaemonSet/")
    }
    everywhere = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}
    assert strategies == {
        f"DaemonSet/{PLUGIN}": everywhere,
        "DaemonSet/nvidia-dra-validator": everywhere,
        "DaemonSet/nvidia-dcgm-dra": {"type": "RollingUpdate"},
        "DaemonSet/nvidia-dcgm-exporter-dra": {"type": "RollingUpdate"},
    }


def test_node_feature_discovery_reaches_the_same_nodes() -> None:
    """A taint that the DRA components tolerate must not keep the worker away that finds the node's GPUs."""
    found = nfd.nfd(
        resolve(policy(gpuCluster={"daemonsets": {"tolerations": [{"key": "team", "operator": "Exists"}]}}))
    )
    assert found is not None
    assert found.installation is not None
    assert {"key": "team", "operator": "Exists"} in found.installation.worker.tolerations


def test_a_node_speaks_for_itself_alone() -> None:
    """The admission policy is about the plugin's account in this namespace, and denies."""
    bodies = rendered(gpuCluster={}, cluster={"namespace": "gpus"})
    policy = bodies["ValidatingAdmissionPolicy/resourceslices-policy-nvidia-dra-driver"]
    (condition,) = policy["spec"]["matchConditions"]
    assert f"system:serviceaccount:gpus:{ACCOUNT}" in condition["expression"]
    binding = bodies["ValidatingAdmissionPolicyBinding/resourceslices-policy-nvidia-dra-driver"]
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}


def test_openshift_admits_the_accounts_that_exist() -> None:
    """The SCC names the plugin's account, and that of the daemons where there are compute domains (11.2)."""
    openshift: dict[str, Any] = {"cluster": {"openshift": {}}}
    users = rendered(gpuCluster={}, **openshift)["SecurityContextConstraints/nvidia-dra-driver"]["users"]
    assert [user.rpartition(":")[2] for user in users] == [ACCOUNT, "compute-domain-daemon-service-account"]
    off = rendered(gpuCluster={"draDriver": {"computeDomains": {"enabled": False}}}, **openshift)
    assert len(off["SecurityContextConstraints/nvidia-dra-driver"]["users"]) == 1
