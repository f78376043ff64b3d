"""Inputs of DCGM, exporters, dashboards and OpenShift's monitoring: a function for each component, called as it is."""

from typing import Any

from ...catalog.dashboards import Name
from ...catalog.releases import release
from ...cluster import dashboards as boards
from ...cluster.metrics import served
from ...cluster.resolve import Cluster, resolve
from ...policy.language.alerts import Dashboards
from ...policy.language.base import own
from ...policy.language.cluster import Monitoring
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, OperandInputs, dumped, image, operand, prometheus_rules
from ..plugin.configs_inputs import metrics_map


def dcgm(cluster: Cluster) -> OperandInputs | None:
    """None where each exporter runs an engine of its own. `dcgm.hostPort` has no effect (operator.md 7.7)."""
    section = cluster.stack.dcgm
    if not section.enabled:
        return None
    return OperandInputs(**operand(cluster.spec, section, cluster.at("dcgm")))


class Monitor(Inputs):
    """How the `reader` scrapes: durations as text, "" for its own; `labels` come on top of the component's."""

    interval: str = ""
    scrape_timeout: str = ""
    honor_labels: bool = False
    relabelings: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = {}
    reader: Monitoring = True


class Relabelling(Inputs):
    """The image of the init container that lets the exporter read the kubelet's folder under SELinux."""

    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()


class DcgmExporterInputs(OperandInputs):
    """What the exporter collects and how it is reached.

    `host_engine`: DCGM runs stand-alone. `metrics_config`: a ConfigMap, "" for the image's own list of counters;
    `metrics_digest` names its content where that is known, so that a change of it restarts the pods. `job_mapping_dir`
    is "" without HPC job mapping, `monitor` None where there is to be no ServiceMonitor. `rules`: OpenShift's
    Prometheus records GPU metrics under its own names, by a PrometheusRule with `rule_labels`."""

    host_engine: bool = False
    host_pid: bool = False
    annotations: dict[str, str] = {}
    metrics_config: str = ""
    metrics_digest: str = ""
    job_mapping_dir: str = ""
    pod_labels: bool = False
    pod_uid: bool = False
    pod_label_allowlist: tuple[str, ...] = ()
    kubelet_dir: str = own("hostPaths.kubeletRootDir")
    service_type: str = "ClusterIP"
    service_traffic: str = ""
    monitor: Monitor | None = None
    rules: bool = False
    rule_labels: dict[str, str] = {}
    relabelling: Relabelling | None = None


def dcgm_exporter(cluster: Cluster) -> DcgmExporterInputs | None:
    """None where the exporter is off."""
    spec = cluster.spec
    section = cluster.stack.dcgmExporter
    if not section.enabled:
        return None
    counters, jobs, service = metrics_map(cluster), section.hpcJobMapping, section.service
    return DcgmExporterInputs(
        **operand(spec, section, cluster.at("dcgmExporter")),
        host_engine=bool(cluster.stack.dcgm.enabled),
        host_pid=section.hostPID,
        annotations=section.annotations,
        metrics_config=counters.name,
        metrics_digest=counters.digest,
        job_mapping_dir=jobs.directory if jobs.enabled else "",
        pod_labels=section.enablePodLabels,
        pod_uid=section.enablePodUID,
        pod_label_allowlist=tuple(section.podLabelAllowlistRegex),
        kubelet_dir=cluster.stack.hostPaths.kubeletRootDir,
        service_type=service.type,
        service_traffic=service.internalTrafficPolicy or "",
        monitor=monitor(cluster),
        rules=prometheus_rules(spec),
        rule_labels=spec.cluster.monitoringLabels if prometheus_rules(spec) else {},
        relabelling=relabelling(spec),
    )


def relabelling(spec: ClusterPolicySpec) -> Relabelling | None:
    """None but where the platform scrapes by itself, with a release that does so (operator-releases.md 6.8)."""
    if not resolve(spec).platform.own_monitoring or release(spec.release).traits.exporter_without_relabelling:
        return None
    section = spec.operator.initContainer
    return Relabelling(
        image=image(spec, section, "operator.initContainer"),
        pull_policy=section.imagePullPolicy or "",
        pull_secrets=tuple(section.imagePullSecrets),
    )


def monitor(cluster: Cluster) -> Monitor | None:
    """The ServiceMonitor's options; None without its switch or the Prometheus operator's CRDs (operator.md 1.4)."""
    options = cluster.stack.dcgmExporter.serviceMonitor
    reader = cluster.spec.cluster.monitoring
    if not reader or not options.enabled:
        return None
    return Monitor(
        interval=options.interval or "",
        scrape_timeout=options.scrapeTimeout or "",
        honor_labels=options.honorLabels,
        relabelings=dumped(options.relabelings),
        labels={**cluster.spec.cluster.monitoringLabels, **options.additionalLabels},
        reader=reader,
    )


class NodeStatusExporterInputs(OperandInputs):
    """`monitoring`: the Prometheus operator's CRDs are there, so that a ServiceMonitor can be; it and the rules have
    `monitoring_labels`. `rules`: OpenShift's Prometheus alerts on nodes that fail."""

    monitoring: Monitoring = False
    monitoring_labels: dict[str, str] = {}
    rules: bool = False


def node_status_exporter(cluster: Cluster) -> NodeStatusExporterInputs | None:
    """None where the exporter is off, which is the default of all releases."""
    spec = cluster.spec
    section = spec.nodeStatusExporter
    if not section.enabled:
        return None
    shared = operand(spec, section, "nodeStatusExporter")
    return NodeStatusExporterInputs(
        **shared,
        monitoring=spec.cluster.monitoring,
        monitoring_labels=spec.cluster.monitoringLabels,
        rules=prometheus_rules(spec),
    )


class OpenShiftMonitoringInputs(Inputs):
    """`namespace` is where the exporters are."""

    namespace: str


def openshift_monitoring(cluster: Cluster) -> OpenShiftMonitoringInputs | None:
    """The inputs for CLUSTER, or None outside OpenShift and where nothing monitors."""
    spec = cluster.spec
    return OpenShiftMonitoringInputs(namespace=spec.cluster.namespace) if prometheus_rules(spec) else None


class DashboardsInputs(Inputs):
    """The dashboards `names`, as the policy `said`. `stack` is the namespace of the stack, `lacking` metrics that none
    serves, `honor_labels` that the exporter's names of the pod that has a GPU are those of its series."""

    names: tuple[Name, ...]
    said: Dashboards
    stack: str
    lacking: tuple[str, ...] = ()
    honor_labels: bool = False


def dashboards(cluster: Cluster) -> DashboardsInputs | None:
    """None where the policy asks for no dashboard."""
    spec, names = cluster.spec, boards.names(cluster)
    if spec.dashboards is None or not names:
        return None
    return DashboardsInputs(
        names=tuple(names),
        said=spec.dashboards,
        stack=spec.cluster.namespace,
        lacking=tuple(boards.lacking(cluster, served(spec))),
        honor_labels=cluster.stack.dcgmExporter.serviceMonitor.honorLabels,
    )
