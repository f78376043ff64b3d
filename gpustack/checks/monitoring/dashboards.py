"""Rules about `dashboards`, and about how many series the exporters serve."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import dashboards as known
from ...catalog import dcgm
from ...cluster import dashboards
from ...cluster.metrics import served, telemetry
from ...cluster.resolve import Cluster
from ...cluster.series import series
from ...model import few
from ..rule import Hit, hit, rule


@rule("GPU621", "note")
def panels_left_out(cluster: Cluster) -> Iterator[Hit]:
    """Panels over a counter that the policy's own list of metrics lacks."""
    have = served(cluster.spec)
    lacking = {*dashboards.lacking(cluster, have)} & {*dashboards.counters(cluster)} if have else set[str]()
    boards = [(name, known.boards()[name].rows.values()) for name in dashboards.names(cluster)] if lacking else []
    panels = [f"{each.title} ({name})" for name, rows in boards for row in rows for each in row if each.reads & lacking]
    if panels:
        rows = ", ".join(f"`{name}, {dcgm.field(name).type}, ...`" for name in sorted(lacking))
        path = f"{telemetry(cluster.spec).path}dcgmExporter.config"
        yield hit(path, number=len(panels), panels=few(panels, 5), rows=rows)


@rule("GPU622", "error")
def too_many_series(cluster: Cluster) -> Iterator[Hit]:
    """More series than the limit."""
    limit, path = cluster.spec.cluster.seriesLimit, "spec.cluster.seriesLimit"
    parts = {pool.name: total[1] for pool in cluster.pools if (total := series(pool).total)} if limit else {}
    if limit and (needed := sum(parts.values())) > limit:
        most = ", ".join(f"{name} {number:,}" for name, number in parts.items())
        yield hit(path, number=f"{needed:,}", limit=f"{limit:,}", needed=needed, pools=most)
