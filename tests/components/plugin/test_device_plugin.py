"""The device plugin (operator.md 5.2, 5.4, 5.5, 7.4, 9.4)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import DevicePlugin
from gpustack.components.plugin.plugin_inputs import DevicePluginInputs, PluginConfig, device_plugin
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec, validation

NAME = "nvidia-device-plugin"
DAEMONSET = "nvidia-device-plugin-daemonset"
CONFIG = PluginConfig(config_map="time-slicing-config", default="any", image="plugin:1")


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the plugin's inputs."""
    inputs = {"common": common(**(changes or {})), "image": "plugin:1", "mig_strategy": "single", **fields}
    return render(DevicePlugin, DevicePluginInputs(**inputs))


def settings(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """The environment of the plugin."""
    return env(container(pod_of(rendered(changes, **fields), DAEMONSET), NAME))


def test_objects() -> None:
    """The component's objects (1.4), and the rights that it needs (6): with several configurations it reads nodes,
    without it asks the API server for nothing and its pods get no token."""
    found = rendered()
    own = {f"ServiceAccount/{NAME}", "ConfigMap/nvidia-device-plugin-entrypoint", f"DaemonSet/{DAEMONSET}"}
    assert set(found) == own
    assert found[f"ServiceAccount/{NAME}"]["automountServiceAccountToken"] is False
    several = rendered(config=CONFIG)
    assert set(several) == {*own, f"ClusterRole/{NAME}", f"ClusterRoleBinding/{NAME}"}
    assert grants(several[f"ClusterRole/{NAME}"]) == {"nodes:get", "nodes:list", "nodes:watch"}
    assert "automountServiceAccountToken" not in several[f"ServiceAccount/{NAME}"]
    assert "automountServiceAccountToken" not in pod_of(found, DAEMONSET)
    openshift = rendered({"openshift": True})
    assert grants(openshift[f"Role/{NAME}"]) == {"securitycontextconstraints=privileged:use"}
    assert found[f"DaemonSet/{DAEMONSET}"]["metadata"]["annotations"] == {"openshift.io/scc": "hostmount-anyuid"}


def test_environment() -> None:
    """Its settings with the chart's defaults (case 01)."""
    assert settings() == {
        "PASS_DEVICE_SPECS": "true",
        "FAIL_ON_INIT_ERROR": "true",
        "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri",
        "DEVICE_ID_STRATEGY": "uuid",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "all",
        "MPS_ROOT": "/run/nvidia/mps",
        "MIG_STRATEGY": "single",
        "NVIDIA_MIG_MONITOR_DEVICES": "all",
        "CDI_ENABLED": "true",
        "CDI_ANNOTATION_PREFIX": "cdi.k8s.io/",
        "NVIDIA_CDI_HOOK_PATH": "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
    }


def test_cdi() -> None:
    """Without CDI devices come by environment variable; the hook is named where the toolkit that brings it is
    installed, in the folder of the policy (5.4, 5.5)."""
    off = settings({"cdi": False})
    assert off["DEVICE_LIST_STRATEGY"] == "envvar"
    assert not {"CDI_ENABLED", "CDI_ANNOTATION_PREFIX", "NVIDIA_CDI_HOOK_PATH"} & set(off)
    assert "NVIDIA_CDI_HOOK_PATH" not in settings({"toolkit": False})
    assert settings({"install_dir": "/opt/n"})["NVIDIA_CDI_HOOK_PATH"] == "/opt/n/toolkit/nvidia-cdi-hook"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("single", ("single", "all")), ("mixed", ("mixed", "all")), ("none", ("none", None)), ("", (None, "all"))],
)
def test_mig_strategy(strategy: str, expected: tuple[str | None, str | None]) -> None:
    """The strategy is handed on; MIG devices are monitored unless it is none; an empty one sets nothing (7.4)."""
    found = settings(mig_strategy=strategy)
    assert (found.get("MIG_STRATEGY"), found.get("NVIDIA_MIG_MONITOR_DEVICES")) == expected


def test_features() -> None:
    """GPUDirect Storage and GDRCopy are switched on by name (7.4)."""
    assert not {"GDS_ENABLED", "MOFED_ENABLED", "GDRCOPY_ENABLED"} & set(settings())
    assert settings(gds=True) == {**settings(), "GDS_ENABLED": "true", "MOFED_ENABLED": "true"}
    assert settings(gdrcopy=True) == {**settings(), "GDRCOPY_ENABLED": "true"}


def test_policy_env_and_args() -> None:
    """`devicePlugin.env` wins over all settings; `args` replace the entry point, the command stays (5.2, case 29)."""
    found = settings(env=(("MIG_STRATEGY", "none"), ("CONFIG_FILE", "/mine"), ("X", "y")), config=CONFIG)
    assert (found["MIG_STRATEGY"], found["CONFIG_FILE"], found["X"]) == ("none", "/mine", "y")
    main = container(pod_of(rendered(args=("--x",)), DAEMONSET), NAME)
    assert (main["command"], main["args"]) == (["/bin/sh", "-c"], ["--x"])
    assert container(pod_of(rendered(), DAEMONSET), NAME)["args"] == ["/bin/entrypoint.sh"]


def test_pod() -> None:
    """Where the plugin finds kubelet, driver, node and MPS (7.4); it waits for the toolkit first."""
    body = pod_of(rendered(), DAEMONSET)
    assert (body["serviceAccountName"], body["runtimeClassName"]) == (NAME, "nvidia")
    assert not {"hostPID", "hostNetwork", "shareProcessNamespace"} & set(body)
    assert [each["name"] for each in body["initContainers"]] == ["toolkit-validation"]
    sources = {
        path: (mount["from"].get("hostPath", {}).get("path"), mount.get("readOnly"), mount.get("mountPropagation"))
        for path, mount in mounts(body, NAME).items()
    }
    assert sources == {
        "/bin/entrypoint.sh": (None, True, None),
        "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", None, None),
        "/run/nvidia/validations": ("/run/nvidia/validations", None, None),
        "/driver-root": ("/run/nvidia/driver", None, "HostToContainer"),
        "/host": ("/", True, "HostToContainer"),
        "/var/run/cdi": ("/var/run/cdi", None, None),
        "/dev/shm": ("/run/nvidia/mps/shm", None, None),  # noqa: S108 - where MPS clients look
        "/mps": ("/run/nvidia/mps", None, None),
    }
    entry = mounts(body, NAME)["/bin/entrypoint.sh"]
    assert (entry["subPath"], entry["from"]["configMap"]) == (
        "entrypoint.sh",
        {"name": "nvidia-device-plugin-entrypoint", "defaultMode": 0o700},
    )
    assert container(body, NAME)["securityContext"] == {"privileged": True}


def test_toolkit_validation() -> None:
    """The wait is a shell of the validator's image with the validator's pull policy, resources and toolkit env
    (5.3)."""
    changes = {"validation": validation(resources={"limits": {"cpu": "1"}}, toolkit_env=(("T", "1"),), pull_policy="")}
    wait = container(pod_of(rendered(changes), DAEMONSET), "toolkit-validation")
    assert wait["image"] == "registry.example/validator:1"
    assert (wait["command"], wait["securityContext"]) == (["sh", "-c"], {"privileged": True, "runAsUser": 0})
    assert "/run/nvidia/validations/toolkit-ready" in wait["args"][0]
    assert (wait["resources"], env(wait)) == ({"limits": {"cpu": "1"}}, {"T": "1"})
    assert "imagePullPolicy" not in wait


def test_pull_secrets_and_network() -> None:
    """The validator's pull secrets come first, then the plugin's, each once (4, case 31); a host network is the pod's
    (5.1)."""
    body = pod_of(
        rendered({"validation": validation(pull_secrets=("v", "s"))}, pull_secrets=("s", "p"), host_network=True),
        DAEMONSET,
    )
    assert [secret["name"] for secret in body["imagePullSecrets"]] == ["v", "s", "p"]
    assert (body["hostNetwork"], body["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_mps_root() -> None:
    """Another MPS root moves volumes and setting; the paths in the container stay (case 60)."""
    assert settings(mps_root="/x")["MPS_ROOT"] == "/x"
    found = mounts(pod_of(rendered(mps_root="/x"), DAEMONSET), NAME)
    assert found["/mps"]["from"]["hostPath"] == {"path": "/x", "type": "DirectoryOrCreate"}
    assert found["/dev/shm"]["from"]["hostPath"] == {"path": "/x/shm"}  # noqa: S108 - as above


def test_named_configurations() -> None:
    """A ConfigMap of configurations brings the config manager, before and beside the plugin (7.4, case 14)."""
    body = pod_of(rendered(config=CONFIG, resources={"limits": {"cpu": "2"}}), DAEMONSET)
    assert [each["name"] for each in body["initContainers"]] == ["toolkit-validation", "config-manager-init"]
    assert [each["name"] for each in body["containers"]] == [NAME, "config-manager"]
    assert body["shareProcessNamespace"] is True
    assert env(container(body, NAME))["CONFIG_FILE"] == "/config/config.yaml"
    shared = {
        "KUBECONFIG": "",
        "NODE_NAME": "spec.nodeName",
        "NODE_LABEL": "nvidia.com/device-plugin.config",
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "CONFIG_FILE_DST": "/config/config.yaml",
        "DEFAULT_CONFIG": "any",
        "FALLBACK_STRATEGIES": "empty",
    }
    init, sidecar = container(body, "config-manager-init"), container(body, "config-manager")
    assert env(init) == {**shared, "ONESHOT": "true", "SEND_SIGNAL": "false", "SIGNAL": "", "PROCESS_TO_SIGNAL": ""}
    signal = {"ONESHOT": "false", "SEND_SIGNAL": "true", "SIGNAL": "1", "PROCESS_TO_SIGNAL": NAME}
    assert env(sidecar) == {**shared, **signal}
    assert ("securityContext" in init, sidecar["securityContext"]) == (False, {"privileged": True})
    assert init["resources"] == sidecar["resources"] == {"limits": {"cpu": "2"}}
    for name in (NAME, "config-manager", "config-manager-init"):
        found = mounts(body, name)
        assert found["/config"]["from"]["emptyDir"] == {}
        assert found["/available-configs"]["from"]["configMap"] == {"name": "time-slicing-config"}


def test_changed_configuration_rolls_the_pods() -> None:
    """No program of the stack notices another content (plugin-config.yaml), so the pods carry its name."""

    def annotations(content: str) -> Any:
        config = CONFIG.model_copy(update={"content": content})
        return rendered(config=config)[f"DaemonSet/{DAEMONSET}"]["spec"]["template"]["metadata"].get("annotations")

    assert annotations("") is None
    assert annotations("a") != annotations("b")


def test_entry_point() -> None:
    """The script waits for the driver, takes over what validation found out, and becomes the plugin; modules that are
    loaded switch features on, unless the settings say otherwise (9.4)."""
    data = rendered()["ConfigMap/nvidia-device-plugin-entrypoint"]["data"]
    assert list(data) == ["entrypoint.sh"]
    script = data["entrypoint.sh"]
    assert script.startswith("#!/bin/sh\n")
    assert script.rstrip().endswith("exec nvidia-device-plugin")
    assert "/run/nvidia/validations/driver-ready" in script
    for word in ("gdrdrv", "nvidia_fs", "GDRCOPY_ENABLED", "GDS_ENABLED", "MOFED_ENABLED"):
        assert word in script


def test_policy() -> None:
    """What the policy says reaches the inputs; off is off."""
    assert device_plugin(resolve(spec(devicePlugin={"enabled": False}))) is None
    found = device_plugin(
        resolve(
            spec(
                devicePlugin={"config": {"name": "c", "default": "d"}, "mps": {"root": "/m"}, "hostNetwork": True},
                mig={"strategy": "mixed"},
                gds={"enabled": True},
                gdrcopy={"enabled": True},
            )
        )
    )
    assert found is not None
    assert (found.mig_strategy, found.mps_root, found.gds, found.gdrcopy, found.host_network) == (
        "mixed",
        "/m",
        True,
        True,
        True,
    )
    assert found.config == PluginConfig(config_map="c", default="d", image="nvcr.io/nvidia/k8s-device-plugin:v0.20.0")
    plain = device_plugin(resolve(spec()))
    assert plain is not None
    assert (plain.image, plain.config, plain.mig_strategy) == (
        "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        None,
        "single",
    )
