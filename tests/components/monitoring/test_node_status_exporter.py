"""The node status exporter (operator.md 7.10, 9.1, 9.2)."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components import NodeStatusExporter
from gpustack.components.monitoring.monitoring_inputs import NodeStatusExporterInputs, node_status_exporter
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec, validation

NAME = "nvidia-node-status-exporter"


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the exporter's inputs."""
    return render(NodeStatusExporter, NodeStatusExporterInputs(common=common(**(changes or {})), image="v:1", **fields))


def test_it_waits_for_nothing() -> None:
    """The exporter starts before the driver exists, needs no GPU, and so has no init container and no RuntimeClass."""
    found = pod_of(rendered(), NAME)
    assert "initContainers" not in found
    assert "runtimeClassName" not in found
    assert mounts(found, NAME)["/run/nvidia"]["from"]["hostPath"] == {"path": "/run/nvidia", "type": "Directory"}


def test_pull_secrets_are_its_own() -> None:
    """Without a validation container the validator's pull secrets have no business here (section 4)."""
    found = rendered({"validation": validation(pull_secrets=("v",))}, pull_secrets=("own",))
    assert pod_of(found, NAME)["imagePullSecrets"] == [{"name": "own"}]


def test_host_root() -> None:
    """`hostPaths.rootFS` moves the root it looks at and tells it so (5.4)."""
    found = pod_of(rendered({"root_fs": "/node"}), NAME)
    assert mounts(found, NAME)["/host"]["from"]["hostPath"]["path"] == "/node"
    assert env(container(found, NAME))["HOST_ROOT"] == "/node"


def test_monitor() -> None:
    """The ServiceMonitor has no options and is there exactly where the Prometheus operator's CRDs are (case 48)."""
    assert f"ServiceMonitor/{NAME}" not in rendered()
    found = rendered(monitoring=True)[f"ServiceMonitor/{NAME}"]["spec"]
    assert found["endpoints"] == [{"port": "node-status", "path": "/metrics"}]
    assert found["jobLabel"] == "node-status"
    assert found["selector"] == {"matchLabels": {"app": NAME}}


def test_rights() -> None:
    """It lists DaemonSets for the driver check and reads its node; on OpenShift it may use one SCC, not any (6)."""
    found = rendered()
    assert grants(found[f"Role/{NAME}"]) == {"daemonsets:list"}
    assert grants(found[f"ClusterRole/{NAME}"]) == {"nodes:get"}
    openshift = grants(rendered({"openshift": True})[f"Role/{NAME}"])
    assert openshift == {"daemonsets:list", "securitycontextconstraints=privileged:use"}


def test_policy() -> None:
    """The chart's default is off; env, args and monitoring reach the inputs."""
    assert node_status_exporter(resolve(spec())) is None
    section = {"enabled": True, "env": [{"name": "A", "value": "1"}], "args": ["--x"]}
    found = node_status_exporter(resolve(spec(cluster={"monitoring": True}, nodeStatusExporter=section)))
    assert found is not None
    assert (found.env, found.args, found.monitoring) == ((("A", "1"),), ("--x",), True)
    main = container(pod_of(render(NodeStatusExporter, found), NAME), NAME)
    assert (main["command"], main["args"]) == (["nvidia-validator"], ["--x"])
