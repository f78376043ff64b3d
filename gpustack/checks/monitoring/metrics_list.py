"""Rules about the exporter's list of metrics: rows that stop it, and fields that it can't serve."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import dcgm
from ...cluster.metrics import listed
from ...cluster.resolve import Cluster
from ...policy.configurations.dcgm_csv import Row
from ..rule import Hit, hit, rule

CONSUMER = ("GeForce", "TITAN")
"""What the names of GPUs without the profiling counters have in them."""


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
            remedy = "" if alone else "delete the row"
            yield hit(csv.text.path, remedy=remedy, inside=row.places[0], field=row.name)


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
            yield hit(csv.text.path, inside=row.places[0], field=row.name, gpus=", ".join(plain))
