"""What the exporter serves: the policy's list of metrics, or the image's with what alerts and dashboards read; and how
many series that is, which Prometheus is billed and sized by, counted before anybody pays.

The exporter has a series for each field of its list and each device: a GPU, or where that is cut each of its instances.
Labels of pods add none at one time, but each pod that gets a device begins them anew. Errors and events come on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..catalog import dcgm
from ..policy.configurations.dcgm_csv import Metrics, read_metrics
from ..policy.language import images
from . import alerts, dashboards
from .dashboards import PEERS
from .mig_layouts import Text, config_map, text_of
from .resolve import Cluster, resolve

if TYPE_CHECKING:
    from ..policy.language.dcgm import Dcgm, DcgmExporter
    from ..policy.language.spec import ClusterPolicySpec
    from .capacity import Range
    from .pool import Pool

KEY = "dcgm-metrics.csv"
"""The key of the ConfigMap that `dcgmExporter.config` names."""
OWN_KEY, OWN_ENV = "metrics", "DCGM_EXPORTER_CONFIGMAP_DATA"
"""The key that the exporter reads where it is told to fetch a ConfigMap (namespace:name) by itself."""
OWN_LIST = (OWN_ENV, "DCGM_EXPORTER_COLLECTORS")
"""Variables by which the exporter is told of a list of fields."""


class Telemetry(NamedTuple):
    """The sections that count, and where they stand: those of a `gpuCluster`, which has them whole, or those beside."""

    path: str
    exporter: DcgmExporter
    dcgm: Dcgm


def telemetry(spec: ClusterPolicySpec) -> Telemetry:
    """The sections of the exporter and of the engine that count in SPEC. Those that a `gpuCluster` takes over as they
    are can be changed where they stand."""
    whole = spec.gpuCluster
    if whole is not None and (whole.dcgmExporter, whole.dcgm) != (spec.dcgmExporter, spec.dcgm):
        return Telemetry("spec.gpuCluster.", whole.dcgmExporter, whole.dcgm)
    return Telemetry("spec.", spec.dcgmExporter, spec.dcgm)


class Listed(NamedTuple):
    """A list of metrics in the policy: where its text is, and what it says."""

    text: Text
    metrics: Metrics


def listed(spec: ClusterPolicySpec) -> Listed | None:
    """The list that the exporter reads, None where it is the image's, or not in the policy."""
    path, exporter, _ = telemetry(spec)
    if not exporter.enabled:
        return None
    section = f"{path.removeprefix('spec.')}dcgmExporter.config"
    csv_text = _own(spec) or text_of(spec, exporter.config, section, KEY)
    if csv_text is None or csv_text.text is None:
        return None
    return Listed(csv_text, read_metrics(csv_text.text, images.version(exporter)))


def _own(spec: ClusterPolicySpec) -> Text | None:
    """The list that the exporter fetches by itself."""
    given = [entry.value or "" for entry in telemetry(spec).exporter.env or () if entry.name == OWN_ENV]
    held = config_map(spec, given[-1].partition(":")[2]) if given else None
    text = held[1].get(OWN_KEY) if held else None
    if held is None or not isinstance(text, str):
        return None
    return Text(f"spec.extraObjects[{held[0]}].data.{OWN_KEY}", OWN_KEY, text)


def served(spec: ClusterPolicySpec) -> dict[str, str] | None:
    """The metrics that the exporter of SPEC serves, by name, with their types; None where nobody knows."""
    csv = listed(spec)
    if csv is not None:
        return {row.name: row.type for row in csv.metrics.rows}
    exporter = telemetry(spec).exporter
    if not exporter.enabled or _told(exporter):
        return None
    return {field.name: field.type for field in added_counters(resolve(spec)) or dcgm.default_counters()}


def _told(exporter: DcgmExporter) -> bool:
    """Whether the policy says which list EXPORTER reads."""
    by_itself = any(entry.name in OWN_LIST for entry in exporter.env or ())
    return bool(by_itself or exporter.config.name or exporter.config.data)


def added_counters(cluster: Cluster) -> list[dcgm.Field]:
    """All fields that the exporter is told to serve for alerts and dashboards: those of its image's list, and what they
    read beside. None where that list has all they need, and where the policy says which list the exporter reads."""
    if _told(cluster.stack.dcgmExporter):
        return []
    default = dcgm.default_counters()
    by_alerts = (name for rule in alerts.rules(cluster) for name in rule.alert.counters)
    read = dict.fromkeys([*by_alerts, *dashboards.counters(cluster)])
    more = [field for name in read if not (field := dcgm.field(name)).default]
    return [*default, *more] if more else []


class Series(NamedTuple):
    """Series of one device of a pool, of a node, and of all of them; None for what isn't known."""

    device: int | None
    node: int | None = None
    total: Range | None = None


def series(pool: Pool) -> Series:
    """How many series the exporters of POOL serve. Of pairs of whole GPUs each is told of from both sides
    (NVIDIA/dcgm-exporter, internal/pkg/collector)."""
    have, gpus, nodes = served(pool.spec), pool.said.gpusPerNode, pool.said.count
    if not telemetry(pool.spec).exporter.enabled or pool.workload != "container":
        return Series(0, 0, (0, 0))
    device = None if have is None else sum(kind != "label" for name, kind in have.items() if name != PEERS)
    if device is None or gpus is None or pool.groups is None:
        return Series(device)
    rest = gpus - sum(len(group.indices or ()) for group in pool.groups)
    cuts = [(rest if each.indices is None else len(each.indices), each.layout) for each in pool.groups]
    whole = sum(number for number, cut in cuts if not cut)
    peers = whole * (whole - 1) if have and PEERS in have else 0
    node = device * sum(number * (sum(cut.values()) if cut else 1) for number, cut in cuts) + peers
    return Series(device, node, (nodes.min * node, nodes.max * node) if nodes else None)
