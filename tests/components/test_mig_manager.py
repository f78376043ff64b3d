"""The MIG manager: default and own configurations (operator.md 7.9, 9.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpustack.catalog import texts
from gpustack.cluster.resolve import resolve
from gpustack.components import MigManager
from gpustack.components.mig.mig_manager_inputs import MigManagerInputs, from_cluster
from gpustack.model import Body
from tests.components.common import common, container, env, mounts, pod_of, render, spec

NAME = "nvidia-mig-manager"
DEFAULTS = {"ConfigMap/default-mig-parted-config", "ConfigMap/default-gpu-clients"}
HOOK = "NVIDIA_CDI_HOOK_PATH"


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the manager's inputs."""
    return render(MigManager, MigManagerInputs(common=common(**(changes or {})), image="mig:1", **fields))


def pod(changes: dict[str, Any] | None = None, **fields: Any) -> Body:
    """The manager's pod."""
    return pod_of(rendered(changes, **fields), NAME)


def settings(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """The environment of the manager's container."""
    return env(container(pod(changes, **fields), NAME))


def test_default_configuration() -> None:
    """The default layouts are rendered and mounted as config-default.yaml, by which the manager knows a fallback."""
    assert set(rendered()) >= DEFAULTS
    found = settings()
    assert found["DEFAULT_CONFIG_FILE"] == "/mig-parted-config/config-default.yaml"
    assert "CONFIG_FILE" not in found
    items = [{"key": "config.yaml", "path": "config-default.yaml"}]
    assert mounts(pod(), NAME)["/mig-parted-config"]["from"]["configMap"] == {
        "name": "default-mig-parted-config",
        "items": items,
    }


def test_own_configuration() -> None:
    """The policy's ConfigMaps replace the defaults, which are not rendered then (case 16)."""
    assert not set(rendered(config="mine", gpu_clients="ours")) & DEFAULTS
    found = settings(config="mine", gpu_clients="ours")
    assert found["CONFIG_FILE"] == "/mig-parted-config/config.yaml"
    assert "DEFAULT_CONFIG_FILE" not in found
    volumes = mounts(pod(config="mine", gpu_clients="ours"), NAME)
    assert volumes["/mig-parted-config"]["from"]["configMap"] == {"name": "mine"}
    assert volumes["/gpu-clients"]["from"]["configMap"] == {"name": "ours"}
    assert found["GPU_CLIENTS_FILE"] == "/gpu-clients/clients.yaml"


def test_defaults_by_their_own_names() -> None:
    """A policy that names the default ConfigMap gets it rendered, and read as its own configuration."""
    assert set(rendered(config="default-mig-parted-config", gpu_clients="default-gpu-clients")) >= DEFAULTS
    assert "CONFIG_FILE" in settings(config="default-mig-parted-config")


def test_default_texts() -> None:
    """The default ConfigMaps hold the catalogue's files as they are, under the keys that the manager reads (9.4)."""
    found = rendered()
    assert found["ConfigMap/default-mig-parted-config"]["data"] == {"config.yaml": texts.mig_parted_config()}
    assert found["ConfigMap/default-gpu-clients"]["data"] == {"clients.yaml": texts.gpu_clients()}


@pytest.mark.parametrize(
    ("changes", "cdi", "hook"),
    [
        ({}, "true", "/usr/local/nvidia/toolkit/nvidia-cdi-hook"),
        ({"install_dir": "/opt/n"}, "true", "/opt/n/toolkit/nvidia-cdi-hook"),
        ({"toolkit": False}, "true", None),
        ({"cdi": False}, None, None),
    ],
)
def test_cdi(changes: dict[str, Any], cdi: str | None, hook: str | None) -> None:
    """The hook is named where the toolkit that brings it is installed, in the folder of the policy (5.4, 5.5)."""
    found = settings(changes)
    assert (found.get("CDI_ENABLED"), found.get(HOOK)) == (cdi, hook)


def test_policy_env_and_args() -> None:
    """`migManager.env` wins over all settings; `args` replace the entry point (5.2)."""
    assert settings(env=(("CDI_ENABLED", "false"), ("WITH_REBOOT", "true")))["CDI_ENABLED"] == "false"
    assert container(pod(args=("--mig",)), NAME)["args"] == ["--mig"]


def test_node_access() -> None:
    """It sees the node's processes and IPC, and its root writable: it stops services of the node."""
    found = pod()
    assert (found["hostPID"], found["hostIPC"]) == (True, True)
    mount = mounts(found, NAME)["/host"]
    assert not mount.get("readOnly")
    assert mount["from"]["hostPath"]["path"] == "/"


def test_policy() -> None:
    """Pools with layouts of their own, or a named ConfigMap, put another ConfigMap in effect; a content change alone
    never restarts the manager, which would re-cut all nodes at once (reconciler.md M4)."""
    assert from_cluster(resolve(spec(migManager={"enabled": False}))) is None
    found = from_cluster(resolve(spec(migManager={"config": {"name": "mine"}, "gpuClientsConfig": {"name": ""}})))
    assert found is not None
    assert (found.config, found.gpu_clients) == ("mine", "")

    def cut(profile: str, count: int) -> MigManagerInputs | None:
        sharing = {"mig": {"layout": {profile: count}}}
        return from_cluster(
            resolve(spec(nodePools=[{"name": "a", "gpuProduct": "NVIDIA-A100-SXM4-40GB", "sharing": sharing}]))
        )

    assert cut("1g.5gb", 7) == cut("3g.20gb", 2)
    assert cut("1g.5gb", 7) != from_cluster(resolve(spec()))


POOL = {"name": "a", "nodeSelector": {"x": "y"}, "gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpusPerNode": 8}
RUNS = {"reconciler": {"image": "registry.example.com/r:1"}}
CUT = {"nodePools": [{**POOL, "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}], "mig": {"strategy": "mixed"}}
MINE = """version: v1
mig-configs:
  mine:
  - devices: [0, 1]
    device-filter: "0x20B210DE"
    mig-enabled: true
    mig-devices: {3g.40gb: 2, 1g.10gb: 0}
  - {devices: [2], mig-enabled: false}
"""


def kept(**fields: Any) -> dict[str, Any]:
    """The layouts that the reconciler keeps for the manager, by name; empty where it reads what is rendered."""
    inputs = from_cluster(resolve(spec(**fields)))
    assert inputs is not None
    return dict(json.loads(inputs.kept or "{}"))


def test_the_reconciler_keeps_what_is_known() -> None:
    """Beside a reconciler the manager reads the ConfigMap that it writes, and waits for the file; without, or where the
    content is found by the manager or brought by others, it reads what is rendered (M4, M26)."""
    own = kept(**CUT, **RUNS)
    assert own["a"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}]
    assert own["all-disabled"] == [{"devices": "all", "mig-enabled": False}]
    assert not kept(**CUT)
    assert not kept(**RUNS)
    assert not kept(**RUNS, migManager={"config": {"name": "theirs", "create": False}})
    section = {"config": {"data": {"config.yaml": MINE}}}
    assert kept(**RUNS, migManager=section)["mine"] == [
        {"devices": [0, 1], "device-filter": ["0x20B210DE"], "mig-enabled": True, "mig-devices": {"3g.40gb": 2}},
        {"devices": [2], "mig-enabled": False},
    ]


def test_the_kept_file_is_mounted() -> None:
    """The pod starts once the key is there, and reads it as its configuration; the texts of the policy stay in Git."""
    found = rendered(config="mine", kept='{"a": []}')
    assert found["ConfigMap/gpustack-mig-layouts"]["data"] == {"wanted.json": '{"a": []}', "digests.json": "{}"}
    volume = mounts(pod(config="mine", kept="{}"), NAME)["/mig-parted-config"]["from"]["configMap"]
    assert volume == {"name": "gpustack-mig-layouts", "items": [{"key": "config.yaml", "path": "config.yaml"}]}
    assert settings(config="mine", kept="{}")["CONFIG_FILE"] == "/mig-parted-config/config.yaml"
