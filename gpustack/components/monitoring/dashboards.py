"""Dashboards about GPUs for Grafana: the queries of the catalogue (catalog/data/dashboards.yaml), for this cluster.

Grafana's own builders make the JSON, so that its structure is Grafana's business. It is written with a panel on each
line: a review shows which one changed.
"""

import json
import re
from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models.common import DataSourceRef, TooltipDisplayMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from ...catalog import dashboards as known
from ...model import Body
from ...policy.language.alerts import Dashboards as Policy
from ..component import Component
from ..parts.kube import config_map
from ..parts.template import template
from .monitoring_inputs import DashboardsInputs

SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
"""What viewers choose. Without braces: Flux takes ${...} for a variable of its own."""
BUILDERS: dict[str, Any] = {"stat": stat.Panel, "timeseries": timeseries.Panel, "table": table.Panel}
FIRST = ("title", "targets")
"""What of a panel stands first, so that a diff of its line says which it is, and what it asks."""
LINKS = dashboard.DashboardLinkType.DASHBOARDS
HOSTS = ("Hostname", "hostname")
"""The exporter's label of the node, in older versions and in newer ones."""


class Dashboards(Component[DashboardsInputs]):
    """A ConfigMap or GrafanaDashboard for each dashboard of which the cluster has series."""

    stage = "monitoring"

    def manifests(self, inputs: DashboardsInputs) -> Iterator[Body]:
        for name in inputs.names:
            if text := written(name, inputs):
                yield manifest(f"gpustack-dashboard-{name}", text, inputs.said, inputs.said.namespace or inputs.stack)


def manifest(name: str, text: str, said: Policy, namespace: str) -> Body:
    """The object NAME that brings the dashboard TEXT to Grafana."""
    if said.output == "configMap":
        made = config_map(name, namespace, {f"{name}.json": text}, labels=said.labels)
        made["metadata"] |= {"annotations": {"grafana_folder": said.folder}} if said.folder else {}
        return made
    words = {"name": name, "namespace": namespace, "labels": said.labels, "text": text}
    return template(__file__, "grafana", **words, instances={"matchLabels": said.instanceSelector}, folder=said.folder)


def written(name: known.Name, inputs: DashboardsInputs) -> str:
    """The dashboard NAME as JSON; "" where nothing of it could be shown."""
    board, number = known.boards()[name], 0
    made = builders.Dashboard(board.title).uid(f"gpustack-{name}").tags(["gpustack"])
    made.time("now-6h", "now").refresh("1m").link(builders.DashboardLink("GPUs").type(LINKS).tags(["gpustack"]))
    made.with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for label, said in board.variables.items():
        if label != "cluster" or inputs.said.clusterLabel:
            made.with_variable(chooser(label, inputs, **said))
    for title, every in board.rows.items():
        if panels := known.without(every, inputs.lacking):
            made.with_row(builders.Row(title).id(number := number + 1))
            for each in panels:
                made.with_panel(panel(each, board.of, inputs).id(number := number + 1))
    data = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    first = [{key: each[key] for key in FIRST if key in each} | each for each in data.pop("panels", [])]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in first)
    return f'{json.dumps(data, ensure_ascii=False)[:-1]},\n"panels": [\n{lines}\n]}}\n' if lines else ""


def chooser(
    label: str, inputs: DashboardsInputs, expr: str, of: str = "", *, many: bool = False
) -> builders.QueryVariable:
    """The variable LABEL, of which the choices are in that label of the series of EXPR."""
    name = inputs.said.clusterLabel if label == "cluster" else label
    made = builders.QueryVariable(label).label(label.capitalize()).datasource(SOURCE)
    made.query(f"query_result({filled(expr, of, inputs)})").regex(f'/{name}="([^"]+)"/')
    made.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    return made.multi(True).include_all(True) if many else made


def panel(said: known.Panel, of: str, inputs: DashboardsInputs) -> Any:
    """The builder of the panel that is SAID, over the exporter's series that the matchers OF select."""
    columns = dict[str, str]()
    made = BUILDERS[said.kind]().title(said.title).datasource(SOURCE)
    made.span(said.width).height(4 if said.kind == "stat" else 8)
    made = made.description(said.about) if said.about else made
    made = made.unit(said.unit) if said.unit else made
    for letter, (legend, text) in zip(ascii_uppercase, said.queries.items(), strict=False):
        query = prometheus.Dataquery().ref_id(letter).expr(filled(text, of, inputs))
        query.legend_format(filled(legend, "", inputs))
        query = query.format(PromQueryFormat.TABLE) if said.kind == "table" else query
        made.with_target(query.range() if said.kind == "timeseries" else query.instant())
        columns |= {f"Value #{letter}": legend, **({"Value": legend} if len(said.queries) == 1 else {})}
    if said.kind == "timeseries":
        made.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)).fill_opacity(10).min(0)
        return made.legend(common.VizLegendOptions().show_legend(True))
    if said.kind == "table":
        made.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
        organised = {"excludeByName": {"Time": True}, "renameByName": columns}
        return made.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=organised))
    steps = [dashboard.Threshold(value=None, color="text")]
    steps += [dashboard.Threshold(value=float(said.red), color="red")] if said.red else []
    made.thresholds(builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps))
    return made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))


def filled(text: str, of: str, inputs: DashboardsInputs) -> str:
    """An expression or legend of the catalogue, of the exporter's series that the matchers OF select."""
    label, node = inputs.said.clusterLabel or "", re.search(r"\bnode\b", text) is not None
    prefix = "" if inputs.honor_labels else "exported_"
    words = {"in": f'{label}=~"$cluster",' if label else "", "cluster": label}
    words |= {"owner": f"{prefix}namespace", "pod": f"{prefix}pod", "stack": inputs.stack}
    text = re.sub(r"\[\[(.+?)\]\]", lambda match: of_exporter(match[1], of, node=node), text)
    text = re.sub(r"@(in|cluster|owner|pod|stack)\b", lambda match: words[match[1]], text)
    return re.sub(r"\{ *\}", "", re.sub(r"\{ +", "{", re.sub(r", *\}", "}", text)))


def of_exporter(text: str, of: str, *, node: bool) -> str:
    """TEXT over the exporter's series that the matchers OF select, with the label node where NODE asks for it."""
    selected = re.sub(r"\bDCGM_\w+", lambda match: f"{match[0]}{{@in {of}}}", text)
    if "@host" in of:
        return "({})".format(" or ".join(selected.replace("@host", host) for host in HOSTS))
    for host in HOSTS if node else ():
        selected = f'label_replace({selected}, "node", "$1", "{host}", "(.+)")'
    return selected
