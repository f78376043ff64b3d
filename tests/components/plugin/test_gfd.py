"""GPU feature discovery (operator.md 5.2, 6, 7.6)."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components import GpuFeatureDiscovery
from gpustack.components.plugin.plugin_inputs import GfdInputs, PluginConfig, gfd
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec

NAME = "gpu-feature-discovery"
ACCOUNT = "nvidia-gpu-feature-discovery"
PART_OF = {"app": NAME, "app.kubernetes.io/part-of": "nvidia-gpu"}
CONFIG = PluginConfig(config_map="configs", image="plugin:1", pull_policy="Always")


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of GFD's inputs."""
    return render(GpuFeatureDiscovery, GfdInputs(common=common(**(changes or {})), image="gfd:1", **fields))


def settings(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """GFD's environment."""
    return env(container(pod_of(rendered(changes, **fields), NAME), NAME))


def test_objects_and_rights() -> None:
    """It writes its node's features and reads its own pod and the nodes (6)."""
    found = rendered()
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    assert set(found) == {*(f"{kind}/{ACCOUNT}" for kind in kinds), f"DaemonSet/{NAME}"}
    features = {f"nodefeatures:{verb}" for verb in ("get", "list", "watch", "create", "update")}
    assert grants(found[f"Role/{ACCOUNT}"]) == {*features, "pods:get"}
    assert grants(found[f"ClusterRole/{ACCOUNT}"]) == {"nodes:get", "nodes:list", "nodes:watch"}
    assert "securitycontextconstraints=privileged:use" in grants(rendered({"openshift": True})[f"Role/{ACCOUNT}"])


def test_labels() -> None:
    """DaemonSet, selector and pods carry both labels, and are selected by both."""
    body = rendered()[f"DaemonSet/{NAME}"]
    assert body["metadata"]["labels"] == PART_OF
    assert body["spec"]["selector"]["matchLabels"] == PART_OF
    assert body["spec"]["template"]["metadata"]["labels"] == PART_OF
    assert "annotations" not in body["metadata"]


def test_pod() -> None:
    """Its settings with the chart's defaults, and where it writes and reads (case 01)."""
    body = pod_of(rendered(mig_strategy="single"), NAME)
    assert (body["serviceAccountName"], body["runtimeClassName"]) == (ACCOUNT, "nvidia")
    assert body["nodeSelector"] == {"nvidia.com/gpu.deploy.gpu-feature-discovery": "true"}
    main = container(body, NAME)
    assert (main["command"], "args" in main) == (["gpu-feature-discovery"], False)
    assert env(main) == {
        "GFD_SLEEP_INTERVAL": "60s",
        "GFD_FAIL_ON_INIT_ERROR": "true",
        "NAMESPACE": "metadata.namespace",
        "NODE_NAME": "spec.nodeName",
        "POD_NAME": "metadata.name",
        "MIG_STRATEGY": "single",
        "NVIDIA_MIG_MONITOR_DEVICES": "all",
    }
    features = "/etc/kubernetes/node-feature-discovery/features.d"
    found = mounts(body, NAME)
    assert found[features]["from"]["hostPath"] == {"path": features}
    assert (found["/sys"]["readOnly"], found["/sys"]["from"]["hostPath"]) == (True, {"path": "/sys"})


def test_policy_env_comes_first() -> None:
    """MIG strategy and configuration win over `gfd.env`, which wins over GFD's own settings (5.2)."""
    mine = (("MIG_STRATEGY", "none"), ("CONFIG_FILE", "/mine"), ("GFD_SLEEP_INTERVAL", "5s"), ("X", "y"))
    found = settings(env=mine, mig_strategy="mixed", config=CONFIG)
    assert (found["MIG_STRATEGY"], found["CONFIG_FILE"]) == ("mixed", "/config/config.yaml")
    assert (found["GFD_SLEEP_INTERVAL"], found["X"]) == ("5s", "y")
    assert settings(env=mine)["MIG_STRATEGY"] == "none"


def test_openshift() -> None:
    """On OpenShift GFD writes files, unless the policy's env says otherwise (7.6)."""
    assert "USE_NODE_FEATURE_API" not in settings()
    assert settings({"openshift": True})["USE_NODE_FEATURE_API"] == "false"
    assert settings({"openshift": True}, env=(("USE_NODE_FEATURE_API", "true"),))["USE_NODE_FEATURE_API"] == "true"


def test_named_configurations() -> None:
    """The config manager is the device plugin's image and pull policy, with GFD's resources, and signals GFD (5.2,
    7.6)."""
    body = pod_of(rendered(config=CONFIG, resources={"limits": {"cpu": "1"}}), NAME)
    init, sidecar = container(body, "config-manager-init"), container(body, "config-manager")
    assert {(each["image"], each["imagePullPolicy"]) for each in (init, sidecar)} == {("plugin:1", "Always")}
    assert init["resources"] == sidecar["resources"] == {"limits": {"cpu": "1"}}
    assert env(sidecar)["PROCESS_TO_SIGNAL"] == NAME
    assert body["shareProcessNamespace"] is True


def test_policy() -> None:
    """What the policy says reaches the inputs; off is off; the configuration is the device plugin's."""
    assert gfd(resolve(spec(gfd={"enabled": False}))) is None
    found = gfd(
        resolve(
            spec(
                gfd={"args": ["-x"]},
                devicePlugin={"config": {"name": "c"}, "imagePullPolicy": "Always"},
                mig={"strategy": "none"},
            )
        )
    )
    assert found is not None
    assert (found.args, found.mig_strategy) == (("-x",), "none")
    assert found.config == PluginConfig(
        config_map="c", image="nvcr.io/nvidia/k8s-device-plugin:v0.20.0", pull_policy="Always"
    )
    assert container(pod_of(render(GpuFeatureDiscovery, found), NAME), NAME)["args"] == ["-x"]
