"""The DCGM exporter: GPU metrics of each node for Prometheus (operator.md 7.8, 9.1, 9.2).

It needs the API server only to enrich metrics with pod labels or UIDs, or to read its counters from a ConfigMap by
itself. Everywhere else its pods have no token.
"""

import posixpath
from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.daemonset import daemonset
from ..parts.kube import config_map, grant, rights, service
from ..parts.monitoring import operators_rule, service_monitor
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import PRIVILEGED, Container, Env, Pod, Volume, sparse
from ..parts.validation import toolkit_wait
from ..scripts import entrypoint, script
from .dcgm import NAME as DCGM
from .dcgm import PORT as DCGM_PORT
from .monitoring_inputs import DcgmExporterInputs, Relabelling

NAME = "nvidia-dcgm-exporter"
READ_PODS = "nvidia-dcgm-exporter-read-pods"
LABELS = {"app": NAME}
PORT = 9400
COUNTERS = "dcgm-metrics.csv"
POD_LABELS_ENV = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"
POD_UID_ENV = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"
ALLOWLIST_ENV = "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"
CONFIG_MAP_ENV = "DCGM_EXPORTER_CONFIGMAP_DATA"


class DcgmExporter(Component[DcgmExporterInputs]):
    """The exporter's DaemonSet, Service and ServiceMonitor; it may read pods only where metrics carry pod metadata."""

    def manifests(self, inputs: DcgmExporterInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, labels=LABELS, token=needs_token(inputs))
        if reads_pods(inputs):
            pods = rights(READ_PODS)
            yield from grant(READ_PODS, NAME, common.namespace, labels=LABELS, **pods)
        yield from reached(inputs, NAME)
        if inputs.relabelling:
            yield config_map(NAME, common.namespace, {"entrypoint.sh": script("dcgm-exporter-relabel")}, labels=LABELS)
        if inputs.rules:
            yield operators_rule("accelerator_metrics", NAME, common.namespace, inputs.rule_labels)
        yield daemonset(
            common,
            NAME,
            pod(inputs),
            deploy="dcgm-exporter",
            annotations={keys.SCC: NAME},
            pod_annotations=inputs.annotations,
            gpu_container=NAME,
        )


def reached(inputs: DcgmExporterInputs, name: str) -> Iterator[Body]:
    """The Service NAME, and its ServiceMonitor with what the policy says about scraping; what it leaves out is
    Prometheus' to decide.

    The CRD has a default for the action of a relabelling alone. It is written out: an engine that compares what it
    applied with what it finds would see a change for ever (bug-reports.md B16)."""
    space, kind, traffic = inputs.common.namespace, inputs.service_type, inputs.service_traffic
    notes = {"prometheus.io/scrape": "true"}
    yield service(name, space, port_name="gpu-metrics", port=PORT, annotations=notes, kind=kind, traffic=traffic)
    if (options := inputs.monitor) is None:
        return
    endpoint = sparse(
        interval=options.interval,
        scrapeTimeout=options.scrape_timeout,
        honorLabels=options.honor_labels or None,
        relabelings=[{"action": "replace", **relabeling} for relabeling in options.relabelings],
    )
    yield service_monitor(
        name,
        space,
        port="gpu-metrics",
        number=PORT,
        job_label="app",
        endpoint=endpoint,
        labels=options.labels,
        reader=options.reader,
    )


def reads_pods(inputs: DcgmExporterInputs) -> bool:
    """Whether metrics carry pod metadata: by a switch, or by the environment that the switch would set."""
    switched = inputs.pod_labels or inputs.pod_uid
    if not inputs.common.traits.exporter_env_pod_metadata:
        return switched
    return switched or any(
        name in (POD_LABELS_ENV, POD_UID_ENV) and value.lower() == "true" for name, value in inputs.env
    )


def needs_token(inputs: DcgmExporterInputs) -> bool:
    """Whether the exporter talks to the API server. "none" is how it is told to read no ConfigMap."""
    asks = any(name == CONFIG_MAP_ENV and value not in ("", "none") for name, value in inputs.env)
    return reads_pods(inputs) or (asks and inputs.common.traits.exporter_env_pod_metadata)


def pod(inputs: DcgmExporterInputs, *, dra: bool = False) -> Pod:
    """The exporter, once the toolkit works, with the kubelet's list of which pod holds which GPU.

    DRA: it reads devices of claims, and its template has another order."""
    ports = [{"name": "metrics", "containerPort": PORT}]
    main = main_container(inputs, NAME, environment(inputs, dra=dra), ports=ports)
    if inputs.common.traits.dcgm_probes:
        main.readiness = {"httpGet": {"path": "/health", "port": PORT}, "initialDelaySeconds": 45}
        main.liveness = {**main.readiness, "periodSeconds": 5}
    run_nvidia = Volume.host("run-nvidia", "/run/nvidia")
    init = [toolkit_wait(inputs.common, run_nvidia)]
    resources = Volume.host("pod-gpu-resources", posixpath.join(inputs.kubelet_dir, "pod-resources"))
    main.mount(resources, "/var/lib/kubelet/pod-resources", read_only=True)
    for mount in (mount_counters, mount_jobs) if dra else (mount_jobs, mount_counters):
        mount(main, inputs)
    secrets = [*inputs.common.validation.pull_secrets, *inputs.pull_secrets]
    if inputs.relabelling:
        init.append(relabel(inputs.relabelling, resources))
        secrets += inputs.relabelling.pull_secrets
    return operand_pod(
        inputs,
        NAME,
        main,
        init,
        [resources, run_nvidia],
        host_pid=inputs.host_pid,
        pull_secrets=secrets,
        automount_token=needs_token(inputs) if inputs.common.traits.exporter_pod_metadata else None,
        config_digest=inputs.metrics_digest,
    )


def mount_counters(main: Container, inputs: DcgmExporterInputs) -> None:
    """Give MAIN the policy's list of counters, if there is one."""
    if inputs.metrics_config:
        counters = Volume.config_map("metrics-config", inputs.metrics_config, items={COUNTERS: COUNTERS})
        main.mount(counters, counters_path(inputs), read_only=True, sub_path=COUNTERS)


def mount_jobs(main: Container, inputs: DcgmExporterInputs) -> None:
    """Show MAIN which jobs of a batch system use which GPU, if the node says."""
    if inputs.job_mapping_dir:
        jobs = Volume.host("hpc-job-mapping", inputs.job_mapping_dir, "DirectoryOrCreate")
        main.mount(jobs, inputs.job_mapping_dir, read_only=True)


def relabel(by: Relabelling, resources: Volume) -> Container:
    """An init container that makes the kubelet's list readable under SELinux (operator-releases.md 6.8)."""
    container = Container(
        "init-pod-nvidia-node-status-exporter",
        by.image,
        by.pull_policy,
        command=["/bin/entrypoint.sh"],
        env=Env({"NVIDIA_DISABLE_REQUIRE": "true"}),
        security=PRIVILEGED,
    )
    container.mount(entrypoint(NAME), "/bin/entrypoint.sh", read_only=True, sub_path="entrypoint.sh")
    return container.mount(resources, "/var/lib/kubelet/pod-resources")


def counters_path(inputs: DcgmExporterInputs) -> str:
    """The list of counters: the ConfigMap's, or the one in the image that includes profiling counters."""
    return f"/etc/dcgm-exporter/{COUNTERS if inputs.metrics_config else 'dcp-metrics-included.csv'}"


def environment(inputs: DcgmExporterInputs, *, dra: bool) -> Env:
    """The exporter's settings; the policy's `dcgmExporter.env` wins over all of them. DRA as in `pod`."""
    env = Env({"DCGM_EXPORTER_LISTEN": f":{PORT}", "DCGM_EXPORTER_KUBERNETES": "true"})
    env.set("DCGM_EXPORTER_COLLECTORS", counters_path(inputs)).field("NODE_NAME", "spec.nodeName")
    if inputs.host_engine:
        env.set("DCGM_REMOTE_HOSTENGINE_INFO", f"{DCGM}:{DCGM_PORT}")
    if inputs.job_mapping_dir:
        env.set("DCGM_HPC_JOB_MAPPING_DIR", inputs.job_mapping_dir)
    if dra:
        env.set("KUBERNETES_ENABLE_DRA", True)
    if inputs.pod_labels:
        env.set(POD_LABELS_ENV, True)
    if inputs.pod_uid:
        env.set(POD_UID_ENV, True)
    if inputs.pod_label_allowlist:
        env.set(ALLOWLIST_ENV, ",".join(inputs.pod_label_allowlist))
    return env.policy(inputs.env)
