"""`dcgm` and `dcgmExporter`: GPU telemetry, and the exporter that gives it to Prometheus."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Own, Section, items, mapping, own, section
from .device_plugin import NamedConfigs
from .forms import TextAt
from .operand import Operand
from .types import Annotations, ConfigData, Duration, HostPath, Labels, Port, Text

RelabelAction = Literal[
    "replace", "Replace", "keep", "Keep", "drop", "Drop", "hashmod", "HashMod", "labelmap", "LabelMap", "labeldrop",
    "LabelDrop", "labelkeep", "LabelKeep", "lowercase", "Lowercase", "uppercase", "Uppercase", "keepequal",
    "KeepEqual", "dropequal", "DropEqual",
]  # fmt: skip


class Dcgm(Operand):
    """The stand-alone DCGM host engine. Without it the exporter runs an engine of its own."""

    hostPort: Port | None = None
    """There in the operator's API, but without effect: the engine always listens on port 5555 of the pod. Absent: not
    set."""


class Relabeling(Section):
    """A rule that changes labels of a scrape target, as in Prometheus."""

    action: RelabelAction | None = None
    """What the rule does. Absent: replace."""
    sourceLabels: list[Text] | None = None
    """Labels whose values, joined by `separator`, are matched. Absent: none."""
    separator: Text | None = None
    """Text between the joined values. Absent: `;`."""
    regex: Text | None = None
    """Regular expression that the joined values have to match as a whole. Absent: `(.*)`."""
    targetLabel: Text | None = None
    """Label of the result, needed for replace, hashmod, lowercase, uppercase, keepequal and dropequal. Absent: none."""
    replacement: Text | None = None
    """What is written for replace; `$1` is the first group of `regex`. Absent: `$1`."""
    modulus: Annotated[int, Field(ge=0)] | None = None
    """Divisor of the hash, for hashmod. Absent: none."""


class ServiceMonitor(Section):
    """A ServiceMonitor, rendered only where `cluster.monitoring` says that the Prometheus operator's CRD is there."""

    enabled: bool = False
    """Whether it is rendered. Absent: the default of the release."""
    interval: Duration | None = None
    """Time between scrapes, such as 15s. Absent or empty: the default of the release, or Prometheus' own."""
    scrapeTimeout: Duration | None = None
    """Time after which a scrape counts as failed; at most the interval. Absent or empty: the default of the release, or
    Prometheus' own."""
    honorLabels: bool = False
    """Whether labels of the exporter win over those of the scrape. Absent: false."""
    additionalLabels: Labels = mapping()
    """Labels of the ServiceMonitor itself, by which Prometheus selects it. Absent: none."""
    relabelings: list[Relabeling] = items()
    """Rules that change the target's labels before the scrape. Absent: none."""


class MetricsConfig(NamedConfigs):
    """The metrics that the exporter collects, as CSV: per line a DCGM field, its Prometheus type and a help text."""

    data: Annotated[ConfigData, TextAt("dcgm-metrics.csv")] = mapping()
    """The CSV text, alone or under the key `dcgm-metrics.csv`. Absent: none."""


class HpcJobMapping(Section):
    """Labels that tell which batch job a GPU works for, from a system such as Slurm."""

    enabled: bool = False
    """Whether the exporter reads the job files. Absent: false."""
    directory: Annotated[HostPath, Own("dcgmExporter.hpcJobMapping.directory")] = own(
        "dcgmExporter.hpcJobMapping.directory"
    )
    """Folder on the node where the batch system writes one file per GPU. Absent or empty:
    /var/lib/dcgm-exporter/job-mapping."""


class ExporterService(Section):
    """The Service in front of the exporter."""

    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], Own("dcgmExporter.service.type")] = own(
        "dcgmExporter.service.type"
    )
    """Type of the Service. Absent or empty: ClusterIP."""
    internalTrafficPolicy: Literal["Cluster", "Local", ""] | None = None
    """Whether clients reach the exporters of all nodes or only their own node's. Absent or empty: the default of the
    release, Cluster."""


class DcgmExporter(Operand):
    """The exporter of GPU metrics for Prometheus, on port 9400."""

    config: MetricsConfig = section()
    serviceMonitor: ServiceMonitor = section()
    service: ExporterService = section()
    hostPID: bool = False
    """Whether the exporter sees the node's processes, which per-process metrics need. Absent: false."""
    hpcJobMapping: HpcJobMapping = section()
    annotations: Annotations = mapping()
    """Annotations of the exporter's pods. Absent: none."""
    enablePodLabels: bool = False
    """Whether metrics carry labels of the pod that uses the GPU; the exporter may then read all pods. Absent: false."""
    enablePodUID: bool = False
    """Whether metrics carry the UID of the GPU's pod; the exporter may then read all pods. Absent: false."""
    podLabelAllowlistRegex: list[Annotated[Text, Field(min_length=1)]] = items()
    """Regular expressions for the pod labels that metrics may carry. Absent: all labels."""
