"""`alerts` and `dashboards`: what Prometheus tells people about the GPUs of the cluster, how urgent it is, and for
whom; and boards for Grafana.

The alerts and boards themselves are facts (catalog/data/alerts.yaml, dashboards.yaml). A policy changes the alerts'
numbers, for a pool too, silences one for a while (in Git, with a reason and an end), and says which boards there are.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from gpustack.catalog import alerts as known
from gpustack.catalog.dashboards import Name
from gpustack.model import docs

from .base import Section, items, mapping, own, section
from .forms import form, refuse_all, refuse_as, refuse_at
from .types import AtLeast0, AtLeast1, Day, DnsLabel, Duration, Labels, LabelValue

SERIES_LABEL = form("series_label")
TAKEN = ("alertname", "severity", "node", "pool", "gpu", "xid", "namespace", "policy", "kind", "phase")
"""Labels that alerts have themselves."""
NUMBERS = ("nodes", "percent", "threshold")


def _free(labels: dict[str, str]) -> dict[str, str]:
    """LABELS, or a refusal of the first that alerts have themselves."""
    for name in labels:
        if name in TAKEN:
            case = "severity" if name == "severity" else "other"
            raise refuse_at((name,), refuse_as("alert_label", case, name=name), name)
    return labels


class PoolAlert(Section):
    """What is different about an alert for the nodes of one pool."""

    enabled: bool | None = None
    """Whether the alert is about these nodes. Absent: as the alert says."""
    lasts: Duration | None = None
    """How long it must be so before the alert fires, such as 15m. Absent: as the alert says."""
    nodes: AtLeast1 | None = None
    """From how many nodes on. Absent: as the alert says."""
    percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """From which part of the nodes of a pool on, where that is more. Absent: as the alert says."""
    threshold: AtLeast0 | None = None
    """The number that it compares with. Absent: as the alert says."""

    def numbers(self) -> Mapping[str, int]:
        """The numbers that are said, by name."""
        return {name: value for name in NUMBERS if (value := getattr(self, name)) is not None}


class AlertSettings(PoolAlert):
    """What is different about an alert."""

    enabled: bool | None = None
    """Whether it is rendered. Absent: as the table of alerts says; what can't be known in the cluster is left out."""
    severity: known.Severity | None = None
    """Whether it wakes somebody (`page`) or waits for the morning (`ticket`). Absent: as the table of alerts says."""
    perPool: dict[DnsLabel, PoolAlert] = mapping()
    """What is different for nodes of a pool, by the pool's name. Absent: nothing."""


class Silence(Section):
    """An alert that is not to fire for a while, though it would."""

    alert: str
    """Name of the alert, as in `rules`."""
    reason: Annotated[str, form("reason")]
    """Why nobody needs to be told."""
    until: Day
    """The last day, in UTC: YYYY-MM-DD. After it the alert fires again, without a render."""

    @property
    def ends(self) -> datetime.date:
        """The first day on which the alert fires again."""
        return datetime.date.fromisoformat(self.until) + datetime.timedelta(days=1)


class Severities(Section):
    """What the label `severity` says."""

    page: LabelValue = own("alerts.severities.page")
    """Of alerts that wake somebody. Absent: critical."""
    ticket: LabelValue = own("alerts.severities.ticket")
    """Of alerts that wait for the morning. Absent: warning."""


Wrong = tuple[tuple[str | int, ...], PydanticCustomError, Any]
"""What is wrong: where, what, and the value."""


def _check(rules: dict[str, AlertSettings]) -> dict[str, AlertSettings]:
    """RULES, or a refusal of each name and number that no alert has."""
    if wrong := [each for name, said in rules.items() for each in _wrong(name, said)]:
        raise refuse_all(wrong)
    return rules


def _wrong(name: str, said: AlertSettings) -> Iterator[Wrong]:
    """What is wrong about what is SAID of the alert NAME."""
    if error := _unknown(name):
        yield (name,), error, name
        return
    alert = known.alert(name)
    for pool, part in [("", said), *said.perPool.items()]:
        at = (name, "perPool", pool) if pool else (name,)
        for number, value in part.numbers().items():
            words: dict[str, Any] = {"alert": name, "number": number, "has": ", ".join(("lasts", *alert.set))}
            limit = alert.limits.get(number)
            if number not in alert.set:
                yield (*at, number), refuse_as("alert_number", "none", **words), value
            elif limit and not limit["min"] <= value <= limit["max"]:
                yield (*at, number), refuse_as("alert_number", "limit", value=value, **words, **limit), value
    if said.perPool and not alert.pooled:
        yield (name, "perPool"), refuse_as("alert_pools", "none", alert=name), dict(said.perPool)


def _unknown(name: str) -> PydanticCustomError | None:
    """Why there is no alert called NAME, None where there is one."""
    try:
        known.alert(name)
    except known.UnknownAlert as unknown:
        bare, near = name.removeprefix(known.PREFIX), " or ".join(unknown.nearest)
        case = "prefix" if bare in known.names() else "near" if near else "none"
        words = {"bare": bare, "prefix": known.PREFIX, "near": near, "page": docs("components/alerts.md")}
        return refuse_as("alert_name", case, name=name, **words)
    return None


def _each_known(silences: list[Silence]) -> list[Silence]:
    wrong = [((at, "alert"), error, one.alert) for at, one in enumerate(silences) if (error := _unknown(one.alert))]
    if wrong:
        raise refuse_all(wrong)
    return silences


class Alerts(Section):
    """Alerts about GPUs, as a PrometheusRule."""

    enabled: bool = own("alerts.enabled")
    """Whether alerts are rendered. Absent: true."""
    severities: Severities = section()
    labels: Annotated[dict[Annotated[str, SERIES_LABEL], LabelValue], AfterValidator(_free)] = mapping()
    """Labels of every alert, by which Alertmanager routes, such as `{team: gpu}`. Absent: none."""
    runbooks: Annotated[str, form("web_address")] | None = None
    """Web address of the folder in which you publish gpustack's docs/runbooks; alerts then have a `runbook_url`.
    Absent: alerts name the page."""
    rules: Annotated[dict[str, AlertSettings], AfterValidator(_check)] = mapping()
    """What is different about an alert, by its name. Absent: nothing."""
    silence: Annotated[list[Silence], AfterValidator(_each_known)] = items()
    """Alerts that are not to fire for a while. Absent: none."""


class Dashboards(Section):
    """Dashboards about GPUs, for Grafana."""

    enabled: bool = own("dashboards.enabled")
    """Whether dashboards are rendered. Absent: true."""
    output: Literal["configMap", "grafanaOperator"] = own("dashboards.output")
    """For Grafana's sidecar (`configMap`), or as GrafanaDashboard objects (`grafanaOperator`). Absent: configMap."""
    namespace: DnsLabel | None = None
    """Namespace of the dashboards, which somebody else made. Absent: that of the stack."""
    labels: Labels = mapping()
    """The objects' labels, by which the sidecar finds them. Absent: `grafana_dashboard: "1"`, none for the operator."""
    folder: Annotated[str, form("dashboard_folder")] | None = None
    """Folder in Grafana: the annotation `grafana_folder`, or that of a GrafanaDashboard. Absent: none."""
    instanceSelector: Labels = mapping()
    """Labels of the Grafana objects that the operator gives the dashboards to. Absent: `dashboards: grafana`."""
    clusterLabel: Annotated[str, SERIES_LABEL] | None = None
    """Label by which series of several clusters are told apart, such as cluster; viewers then choose one, and the
    dashboard `fleet` is there. Absent: the data source knows one cluster."""
    kubeStateMetrics: bool = own("dashboards.kubeStateMetrics")
    """Whether kube-state-metrics is in the cluster. Absent: true."""
    leaveOut: list[Name] = items()
    """Dashboards that are not rendered. Absent: none."""
