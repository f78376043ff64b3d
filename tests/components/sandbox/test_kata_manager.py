"""The Kata manager of releases before v26.7 (operator-releases.md 6.13)."""

from __future__ import annotations

from typing import Any

import yaml

from gpustack.cluster.resolve import resolve
from gpustack.components import KataManager
from gpustack.components.sandbox.sandbox_inputs import KataManagerInputs, kata_manager
from gpustack.model import Body
from tests.components.common import container, env, mounts, pod_of, render
from tests.components.sandbox.common import machines

NAME = "nvidia-kata-manager"
SECTION: dict[str, Any] = {
    "enabled": True,
    "config": {
        "runtimeClasses": [
            {"name": "kata-gpu", "artifacts": {"url": "registry.example/kata:1"}, "nodeSelector": {"a": "b"}},
        ]
    },
}


def inputs(release: str = "v25.10.1", **sections: Any) -> KataManagerInputs:
    """The inputs for a policy of RELEASE with the manager on and SECTIONS."""
    found = kata_manager(resolve(machines(**{"release": release, "kataManager": SECTION, **sections})))
    assert found is not None
    return found


def rendered(**sections: Any) -> dict[str, Body]:
    """All objects for a policy with SECTIONS."""
    return render(KataManager, inputs(**sections))


def test_never_since_v26_7() -> None:
    """Deployed where it is on up to v26.3, never after (row 26)."""
    image = {"repository": "registry.example", "image": "kata-manager", "version": "1"}
    assert kata_manager(resolve(machines(kataManager={**SECTION, **image}))) is None
    assert inputs("v26.3.1", kataManager={**SECTION, **image}).image == "registry.example/kata-manager:1"
    assert kata_manager(resolve(machines(release="v25.10.1"))) is None


def test_runtime_classes() -> None:
    """One per entry: handler of the same name, on the manager's nodes that match the entry too."""
    body = rendered()["RuntimeClass/kata-gpu"]
    assert body["handler"] == "kata-gpu"
    assert body["scheduling"]["nodeSelector"] == {"nvidia.com/gpu.deploy.kata-manager": "true", "a": "b"}
    assert body["metadata"]["labels"]["nvidia.com/kata-runtime-class"] == "true"


def test_artifacts_from_a_mirror() -> None:
    """The image with guest kernels is named by its mirror and its digest, like any other."""
    digest = f"sha256:{'a' * 64}"
    cluster = {"registryMap": {"registry.example": "m.example"}, "imageDigests": {"m.example/kata:1": digest}}
    classes = yaml.safe_load(inputs(cluster=cluster).config)["runtimeClasses"]
    (found,) = (each for each in classes if each["name"] == "kata-gpu")
    assert found["artifacts"]["url"] == f"m.example/kata:1@{digest}"


def test_configuration() -> None:
    """The policy's section as YAML; where artifacts are is told by an environment variable and mounted."""
    bodies = rendered(kataManager={**SECTION, "config": {**SECTION["config"], "artifactsDir": "/data/kata"}})
    config = yaml.safe_load(bodies["ConfigMap/nvidia-kata-manager-config"]["data"]["config.yaml"])
    assert config["artifactsDir"] == "/data/kata"
    classes = {each["name"]: each for each in config["runtimeClasses"]}
    assert classes["kata-gpu"]["artifacts"] == {"url": "registry.example/kata:1"}
    assert all("" not in each["artifacts"].values() for each in classes.values())
    pod = pod_of(bodies, NAME)
    assert env(container(pod, NAME))["KATA_ARTIFACTS_DIR"] == "/data/kata"
    assert mounts(pod, NAME)["/data/kata"]["from"]["hostPath"]["path"] == "/data/kata"


def test_a_changed_configuration_restarts_the_pods() -> None:
    """The manager reads its file once."""

    def mark(**sections: Any) -> str:
        body = rendered(**sections)[f"DaemonSet/{NAME}"]
        return str(body["spec"]["template"]["metadata"]["annotations"]["gpustack.dev/config"])

    assert mark() == mark()
    assert mark() != mark(kataManager={**SECTION, "config": {}})


def test_runtime_files_without_drop_ins() -> None:
    """The main configuration and the socket, as for the toolkit; no drop-in folder (6.13)."""
    pod = pod_of(rendered(), NAME)
    assert {"/runtime/config-dir/", "/runtime/sock-dir/"} <= set(mounts(pod, NAME))
    assert "/runtime/config-dir.d/" not in mounts(pod, NAME)
    found = env(container(pod, NAME))
    assert (found["RUNTIME"], found["RUNTIME_CONFIG"]) == ("containerd", "/runtime/config-dir/config.toml")
    assert not any("DROP_IN" in name for name in found)
