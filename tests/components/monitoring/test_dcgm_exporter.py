"""The DCGM exporter: metrics, pod metadata and how Prometheus finds it (operator.md 7.8, 9.1, 9.2)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import DcgmExporter
from gpustack.components.monitoring.monitoring_inputs import DcgmExporterInputs, Monitor, dcgm_exporter
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec

NAME = "nvidia-dcgm-exporter"
READ_PODS = f"{NAME}-read-pods"
LABELS_ENV = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"
UID_ENV = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"
CONFIG_MAP_ENV = "DCGM_EXPORTER_CONFIGMAP_DATA"


def rendered(**fields: Any) -> dict[str, Body]:
    """All objects, with FIELDS of the exporter's inputs."""
    return render(DcgmExporter, DcgmExporterInputs(**{"common": common(), "image": "exporter:1", **fields}))


def pod(**fields: Any) -> Body:
    """The exporter's pod."""
    return pod_of(rendered(**fields), NAME)


def settings(**fields: Any) -> dict[str, Any]:
    """The environment of the exporter's container."""
    return env(container(pod(**fields), NAME))


@pytest.mark.parametrize(
    ("fields", "token", "reads_pods"),
    [
        ({}, False, False),
        ({"pod_labels": True}, True, True),
        ({"pod_uid": True}, True, True),
        ({"env": ((LABELS_ENV, "True"),)}, True, True),
        ({"env": ((UID_ENV, "TRUE"),)}, True, True),
        ({"env": ((UID_ENV, "1"),)}, False, False),
        ({"env": ((CONFIG_MAP_ENV, "ns:cm"),)}, True, False),
        ({"env": ((CONFIG_MAP_ENV, "none"),)}, False, False),
        ({"env": ((CONFIG_MAP_ENV, ""),)}, False, False),
        ({"pod_label_allowlist": ("^app$",)}, False, False),
    ],
)
def test_token_and_right_to_read_pods(fields: dict[str, Any], token: bool, reads_pods: bool) -> None:
    """A token is mounted only where the exporter asks the API server; pods may be read only for pod metadata (51)."""
    found = rendered(**fields)
    assert pod_of(found, NAME)["automountServiceAccountToken"] is token
    assert (f"ClusterRole/{READ_PODS}" in found) == (f"ClusterRoleBinding/{READ_PODS}" in found) == reads_pods


def test_read_pods_is_bound_to_the_exporter() -> None:
    """The pair has a name of its own and leads to the exporter's ServiceAccount (6)."""
    found = rendered(pod_uid=True)
    assert grants(found[f"ClusterRole/{READ_PODS}"]) == {"pods:get", "pods:list", "pods:watch"}
    pair = found[f"ClusterRoleBinding/{READ_PODS}"]
    assert pair["roleRef"]["name"] == READ_PODS
    assert pair["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu-operator"}]
    assert pair["metadata"]["labels"] == {"app": NAME}


def test_pod_metadata() -> None:
    """The switches set a variable each; the allow-list is joined by commas and needs no switch."""
    found = settings(pod_labels=True, pod_uid=True)
    assert (found[LABELS_ENV], found[UID_ENV]) == ("true", "true")
    allow = settings(pod_label_allowlist=("^app$", "team.*"))
    assert allow["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"] == "^app$,team.*"
    assert LABELS_ENV not in allow


def test_host_engine() -> None:
    """With the stand-alone engine the exporter asks its Service, unless the policy's env names another (18, 51)."""
    remote = "DCGM_REMOTE_HOSTENGINE_INFO"
    assert remote not in settings()
    assert settings(host_engine=True)[remote] == "nvidia-dcgm:5555"
    assert settings(host_engine=True, env=((remote, "localhost:5555"),))[remote] == "localhost:5555"
    assert "hostNetwork" not in pod(env=((remote, "localhost:5555"),))


def test_counters() -> None:
    """`config.name` replaces the image's list by one file of a ConfigMap; new content restarts the pods, as a file
    that is mounted alone never changes under a running container."""
    assert settings()["DCGM_EXPORTER_COLLECTORS"] == "/etc/dcgm-exporter/dcp-metrics-included.csv"
    path = "/etc/dcgm-exporter/dcgm-metrics.csv"
    assert settings(metrics_config="mine")["DCGM_EXPORTER_COLLECTORS"] == path
    mount = mounts(pod(metrics_config="mine"), NAME)[path]
    items = [{"key": "dcgm-metrics.csv", "path": "dcgm-metrics.csv"}]
    assert mount["from"]["configMap"] == {"name": "mine", "items": items}
    assert (mount["subPath"], mount["readOnly"]) == ("dcgm-metrics.csv", True)
    old, new = (
        rendered(metrics_config="mine", metrics_digest=digest)[f"DaemonSet/{NAME}"]["spec"]["template"]
        for digest in "ab"
    )
    assert old["metadata"]["annotations"] != new["metadata"]["annotations"]


def test_job_mapping() -> None:
    """HPC job mapping mounts the batch system's folder read-only at the same path and names it."""
    found = pod(job_mapping_dir="/run/jobs")
    mount = mounts(found, NAME)["/run/jobs"]
    assert mount["from"]["hostPath"] == {"path": "/run/jobs", "type": "DirectoryOrCreate"}
    assert mount["readOnly"] is True
    assert settings(job_mapping_dir="/run/jobs")["DCGM_HPC_JOB_MAPPING_DIR"] == "/run/jobs"
    assert "DCGM_HPC_JOB_MAPPING_DIR" not in settings()


def test_kubelet_dir_moves_the_nodes_side_only() -> None:
    """`hostPaths.kubeletRootDir` changes where the folder is on the node, never in the container (5.4)."""
    mount = mounts(pod(kubelet_dir="/data/kubelet"), NAME)["/var/lib/kubelet/pod-resources"]
    assert mount["from"]["hostPath"] == {"path": "/data/kubelet/pod-resources"}
    assert mount["readOnly"] is True


def test_pod_options() -> None:
    """`annotations` land on the pods and nowhere else; hostPID and hostNetwork on the pod."""
    found = rendered(annotations={"a": "b"}, host_pid=True, host_network=True)
    daemonset = found[f"DaemonSet/{NAME}"]
    assert daemonset["spec"]["template"]["metadata"]["annotations"] == {"a": "b"}
    assert "a" not in daemonset["metadata"]["annotations"]
    spec_ = pod_of(found, NAME)
    assert (spec_["hostPID"], spec_["hostNetwork"], spec_["dnsPolicy"]) == (True, True, "ClusterFirstWithHostNet")


def test_service() -> None:
    """Type and traffic policy come from `dcgmExporter.service`; unset they are left to the API."""
    plain = rendered()[f"Service/{NAME}"]
    assert plain["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    assert not {"type", "internalTrafficPolicy"} & set(plain["spec"])
    own = rendered(service_type="NodePort", service_traffic="Local")[f"Service/{NAME}"]["spec"]
    assert (own["type"], own["internalTrafficPolicy"]) == ("NodePort", "Local")


def test_service_monitor_options() -> None:
    """Interval, timeout, honorLabels, relabelings and labels are written only where they say something (9.2)."""
    assert f"ServiceMonitor/{NAME}" not in rendered()
    plain = rendered(monitor=Monitor())[f"ServiceMonitor/{NAME}"]
    assert plain["spec"]["endpoints"] == [{"port": "gpu-metrics", "path": "/metrics"}]
    assert plain["spec"]["jobLabel"] == "app"
    relabelings = ({"action": "drop", "sourceLabels": ["x"]},)
    full = Monitor(
        interval="30s", scrape_timeout="5s", honor_labels=True, relabelings=relabelings, labels={"release": "p"}
    )
    found = rendered(monitor=full)[f"ServiceMonitor/{NAME}"]
    endpoint = found["spec"]["endpoints"][0]
    assert (endpoint["interval"], endpoint["scrapeTimeout"], endpoint["honorLabels"]) == ("30s", "5s", True)
    assert endpoint["relabelings"] == [{"action": "drop", "sourceLabels": ["x"]}]
    assert found["metadata"]["labels"] == {"app": NAME, "release": "p"}


def test_service_monitor_of_a_policy() -> None:
    """It needs its switch and the Prometheus operator's CRDs; the release's default is 15 s and 10 s (1.4, 48)."""
    monitored = {"monitoring": True}
    found = dcgm_exporter(resolve(spec(cluster=monitored)))
    assert found is not None
    assert found.monitor == Monitor(interval="15s", scrape_timeout="10s")
    off = {"serviceMonitor": {"enabled": False}}
    for policy in (spec(), spec(cluster=monitored, dcgmExporter=off)):
        without = dcgm_exporter(resolve(policy))
        assert without is not None
        assert without.monitor is None


def test_policy() -> None:
    """What the policy says reaches the inputs, and empty text counts as not set (7.8)."""
    assert dcgm_exporter(resolve(spec(dcgmExporter={"enabled": False}))) is None
    section = {
        "config": {"name": "mine"},
        "hpcJobMapping": {"enabled": True, "directory": ""},
        "enablePodUID": True,
        "podLabelAllowlistRegex": ["a"],
        "service": {"type": "", "internalTrafficPolicy": "Local"},
        "hostPID": True,
        "annotations": {"a": "b"},
    }
    found = dcgm_exporter(
        resolve(spec(dcgmExporter=section, dcgm={"enabled": True}, hostPaths={"kubeletRootDir": "/k"}))
    )
    assert found is not None
    assert (found.metrics_config, found.job_mapping_dir) == ("mine", "/var/lib/dcgm-exporter/job-mapping")
    assert (found.pod_uid, found.pod_labels, found.pod_label_allowlist) == (True, False, ("a",))
    assert (found.service_type, found.service_traffic) == ("ClusterIP", "Local")
    assert (found.host_pid, found.host_engine) == (True, True)
    assert (found.annotations, found.kubelet_dir) == ({"a": "b"}, "/k")
    off = dcgm_exporter(resolve(spec(dcgmExporter={"hpcJobMapping": {"directory": "/x"}})))
    assert off is not None
    assert off.job_mapping_dir == ""


def test_relabelling_for_selinux() -> None:
    """On OpenShift, releases before v26.3.0 make the kubelet's folder readable first, with an image of their own and
    its credentials (operator-releases.md 6.8, row 18)."""
    cluster = {"platform": "openshift", "kubernetesVersion": "1.33"}
    section = {"initContainer": {"imagePullSecrets": ["own"]}}
    old = dcgm_exporter(resolve(spec("v25.10.1", cluster=cluster, operator=section)))
    assert old is not None
    bodies = render(DcgmExporter, old)
    found = pod_of(bodies, NAME)
    init = container(found, "init-pod-nvidia-node-status-exporter")
    assert (init["image"], init["command"]) == ("nvcr.io/nvidia/cuda:13.0.1-base-ubi9", ["/bin/entrypoint.sh"])
    assert mounts(found, "init-pod-nvidia-node-status-exporter").keys() == {
        "/bin/entrypoint.sh",
        "/var/lib/kubelet/pod-resources",
    }
    assert found["imagePullSecrets"] == [{"name": "own"}]
    assert "/var/lib/kubelet/pod-resources" in bodies[f"ConfigMap/{NAME}"]["data"]["entrypoint.sh"]
    for new in (spec(cluster=cluster), spec("v25.10.1", cluster={"kubernetesVersion": "1.33"})):
        inputs = dcgm_exporter(resolve(new))
        assert inputs is not None
        assert inputs.relabelling is None
