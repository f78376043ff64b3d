"""Rules about the exporter's list of metrics: rows that stop it, and fields that it can't serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...catalog import dcgm
from ...cluster import alerts
from ...cluster.mig_layouts import Text, text_of
from ...cluster.resolve import resolve
from ...policy.configurations.dcgm_csv import Metrics, Row, read_metrics
from ...policy.language import images
from ..rule import Hit, rule
from .monitoring import telemetry

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.spec import ClusterPolicySpec

KEY = "dcgm-metrics.csv"
"""The key of the ConfigMap that `dcgmExporter.config` names."""
OWN_KEY, OWN_ENV = "metrics", "DCGM_EXPORTER_CONFIGMAP_DATA"
"""The key that the exporter reads where it is told to fetch a ConfigMap (namespace:name) by itself."""
CONSUMER = ("GeForce", "TITAN")
"""What the names of GPUs without the profiling counters have in them."""


class Listed(NamedTuple):
    """A list of metrics in the policy: where its text is, and what it says."""

    text: Text
    metrics: Metrics


def listed(spec: ClusterPolicySpec) -> Listed | None:
    """The list that the exporter reads, None where it is the image's, or not in the policy."""
    path, exporter, _ = telemetry(spec)
    if exporter.enabled is False:
        return None
    section = f"{path.removeprefix('spec.')}dcgmExporter.config"
    csv_text = _own(spec) or text_of(spec, exporter.config, section, KEY)
    if csv_text is None or csv_text.text is None:
        return None
    return Listed(csv_text, read_metrics(csv_text.text, images.version(exporter)))


def _own(spec: ClusterPolicySpec) -> Text | None:
    """The list that the exporter fetches by itself."""
    given = [entry.value or "" for entry in telemetry(spec).exporter.env or () if entry.name == OWN_ENV]
    _, _, name = given[-1].partition(":") if given else ("", "", "")
    for index, body in enumerate(spec.extraObjects):
        if name and body["kind"] == "ConfigMap" and body["metadata"]["name"] == name:
            data = body.get("data")
            text = data.get(OWN_KEY) if isinstance(data, dict) else None
            if isinstance(text, str):
                return Text(f"spec.extraObjects[{index}].data.{OWN_KEY}", OWN_KEY, text)
    return None


def served(spec: ClusterPolicySpec) -> dict[str, str] | None:
    """The metrics that the exporter of SPEC serves, by name, with their types; None where nobody knows."""
    csv = listed(spec)
    if csv is not None:
        return {row.name: row.type for row in csv.metrics.rows}
    exporter = telemetry(spec).exporter
    config = exporter.config
    by_itself = any(entry.name in alerts.OWN_LIST for entry in exporter.env or ())
    if exporter.enabled is False or by_itself or config.name or config.data:
        return None
    return {field.name: field.type for field in alerts.added_counters(resolve(spec)) or dcgm.default_counters()}


@rule("GPU520", "error")
def list_that_stops(cluster: Cluster) -> Iterator[Hit]:
    """A list of metrics at which the exporter stops."""
    csv = listed(cluster.spec)
    for problem in csv.metrics.problems if csv else ():
        yield Hit(csv.text.path if csv else "", problem.what, problem.why, problem.remedy, problem.place)


@rule("GPU521", "error")
def never_exported(cluster: Cluster) -> Iterator[Hit]:
    """A field in the list of metrics that the exporter can't serve."""
    csv = listed(cluster.spec)
    never = dcgm.not_exported()
    for row in csv.metrics.rows if csv else ():
        if csv and row.name in never:
            alone = all(other.name in never for other in csv.metrics.rows)
            yield Hit(
                csv.text.path,
                f"the exporter never serves {row.name}",
                "its values are lists or structures, and the exporter knows numbers and text",
                "write a field that it serves, such as DCGM_FI_DEV_GPU_UTIL" if alone else "delete the row",
                row.places[0],
            )


@rule("GPU522", "warning")
def doubtful_field(cluster: Cluster) -> Iterator[Hit]:
    """A field in the list of metrics that will be missing, or that stands there twice."""
    spec = cluster.spec
    csv = listed(spec)
    if csv is None:
        return
    first: dict[str, Row] = {}
    old = {new: name for name, new in dcgm.new_names().items()}
    products = {pool.gpuProduct or "" for pool in spec.nodePools}
    plain = sorted(name for name in products if any(word in name for word in CONSUMER))
    for row in csv.metrics.rows:
        other = first.setdefault(old.get(row.name, row.name), row)
        if other is not row:
            line = other.places[0][0]
            what = f"{row.name} stands twice" if other.name == row.name else f"{row.name} is {other.name}"
            why = f"line {line} has the same field"
            yield Hit(csv.text.path, what, why, "delete one of the two rows", row.places[0])
        if row.profiling and plain:
            yield Hit(
                csv.text.path,
                f"{row.name} will be missing on {', '.join(plain)}",
                "the board doesn't have the counters of the profiling unit, and the exporter leaves out what a GPU "
                "doesn't have",
                "use another field for these nodes, such as DCGM_FI_DEV_GPU_UTIL",
                row.places[0],
            )
