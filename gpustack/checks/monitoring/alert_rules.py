"""Rules about PrometheusRules that a policy brings along: metrics and labels that the exporter doesn't serve, and what
makes the Prometheus operator refuse one as a whole.

An expression over a metric that nobody serves is empty, so its alert never fires and nobody notices.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ...catalog import dcgm
from ...catalog._lookup import nearest
from ...cluster.metrics import listed, served, telemetry
from ...cluster.resolve import Cluster
from ...model import RULES, Path, dotted, mapping, mappings
from ...policy.configurations import go_template, promql
from ...policy.configurations.promql import Label, Metric, Named, named
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule
from .monitoring import monitored

DCGM = ("DCGM_", "dcgm_")
COUNTING = {"rate", "irate", "increase", "resets"}
OWN = ("dcgm", "gpu-operator")
"""What is in the names of the exporter's own pods, containers and namespaces."""


class Expression(NamedTuple):
    """An expression of a PrometheusRule: its path, the name of its alert or record, and what it names."""

    path: str
    rule: str
    names: Named

    @property
    def about_gpus(self) -> bool:
        """Whether it is about a metric of the exporter."""
        return any(metric.name.startswith(DCGM) for metric in self.names.metrics)

    def hit(self, metric: Metric, why: str = "", remedy: str = "", **words: Any) -> Hit:
        """A hit at METRIC in it, with WORDS for the page's text."""
        return hit(self.path, why=why, remedy=remedy, inside=metric.place, rule=self.rule, metric=metric.name, **words)


def groups(spec: ClusterPolicySpec, kinds: Collection[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The groups of rules in SPEC's extraObjects of KINDS, with their places."""
    for index, body in enumerate(spec.extraObjects):
        content = mapping(body.get("spec")) if body["kind"] in kinds else {}
        for place, group in mappings(content.get("groups")):
            yield ("spec", "extraObjects", index, "spec", "groups", place), group


def expressions(spec: ClusterPolicySpec) -> list[Expression]:
    """The expressions in rules of SPEC's extraObjects."""
    written = []
    for where, group in groups(spec, RULES):
        for place, one in mappings(group.get("rules")):
            if isinstance(one.get("expr"), str):
                path = dotted((*where, "rules", place, "expr"))
                written.append(Expression(path, called(one), named(one["expr"])))
    return written


def called(one: Mapping[str, Any]) -> str:
    """What messages call the rule ONE."""
    return str(one.get("alert") or one.get("record") or "a rule")


def recorded(spec: ClusterPolicySpec) -> set[str]:
    """The metrics that rules of the policy record."""
    return {one.rule for one in expressions(spec)}


def metrics(spec: ClusterPolicySpec) -> Iterator[tuple[Expression, Metric]]:
    """Each metric of each expression, once in an expression, but for those that the policy's rules record."""
    ours = recorded(spec)
    for one in expressions(spec):
        seen: set[str] = set()
        for metric in one.names.metrics:
            if metric.name not in seen | ours:
                seen.add(metric.name)
                yield one, metric


@rule("GPU604", "error")
def no_such_metric(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus over a DCGM metric that there isn't."""
    have = served(cluster.spec) or {}
    for one, metric in metrics(cluster.spec):
        if metric.name.startswith(DCGM) and metric.name not in dcgm.exported() | have.keys():
            near = dcgm.meant_by(metric.name)
            near = (*nearest(metric.name, have, 1), *near) if near and not set(near) & have.keys() else near
            yield one.hit(metric, remedy=f"write {' or '.join(near[:2])}" if near else "")


@rule("GPU605", "warning")
def metric_not_served(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus over a metric that the exporter is not told to serve."""
    spec = cluster.spec
    have, own = served(spec), listed(spec)
    if have is None:
        return
    whose = f"the list in {own.text.path}" if own else "the list of metrics in the exporter's image"
    both = dict(dcgm.new_names()) | {new: old for old, new in dcgm.new_names().items()}
    for one, metric in metrics(spec):
        if metric.name not in dcgm.exported() or have.get(metric.name, "label") != "label":
            continue
        other = both.get(metric.name, "")
        if metric.name in have:
            why, remedy = f"{whose} makes it a label of the other metrics", "give it another type in the list"
        elif other in have:
            why, remedy = f"{whose} calls it {other}", f"write {other}"
        else:
            field, lists = _field(metric.name), "a list in spec.dcgmExporter.config.data, which replaces the image's"
            row = f"`{metric.name}, {field.type if field else 'gauge'}, ...`"
            why, remedy = f"{whose} doesn't have it", f"add the row {row} to {'the list' if own else lists}"
        yield one.hit(metric, why, remedy)


def _field(name: str) -> dcgm.Field | None:
    """The field called NAME, by old or new name; None if it isn't one."""
    with suppress(dcgm.UnknownField):
        return dcgm.field(name)
    return None


@rule("GPU533", "warning")
def series_that_come_and_go(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus over a series that this exporter leaves out while its value is blank."""
    section: Any = cluster.stack.dcgmExporter
    version = images.version(section)
    path = images.version_path(f"spec.{cluster.at('dcgmExporter')}", section)
    for one, metric in metrics(cluster.spec) if section.enabled else ():
        if metric.name in dcgm.left_out_while_blank(version):
            yield one.hit(metric, version=version, at=path)


@rule("GPU606", "warning")
def other_exporters_metric(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus over a metric of another exporter."""
    for one, metric in metrics(cluster.spec):
        here, ours = dcgm.other_exporter(metric.name), dcgm.served_by(metric.name)
        if ours == "nodeStatusExporter" and not cluster.spec.nodeStatusExporter.enabled:
            yield one.hit(metric, "the node status exporter is off", "set spec.nodeStatusExporter.enabled: true")
        elif here is not None and not ours:
            yield one.hit(metric, remedy=f"write {' + '.join(here)}, and mind the unit" if here else "")


@rule("GPU607", "warning")
def pod_labels(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus that takes the exporter's pod for the one that uses the GPU, or the other way round."""
    honored = telemetry(cluster.spec).exporter.serviceMonitor.honorLabels
    for one in expressions(cluster.spec) if monitored(cluster.spec) else ():
        for label in one.names.labels if one.about_gpus else ():
            if right := _right_label(label, honored=honored):
                name, at = label.name, label.place
                yield hit(one.path, "kept" if honored else "own", inside=at, rule=one.rule, label=name, right=right)
                break


def _right_label(label: Label, *, honored: bool) -> str:
    """What to write for LABEL, "" where it is right."""
    plain = label.name.removeprefix("exported_")
    if plain not in dcgm.pod_labels() or (plain == label.name) == honored:
        return ""
    if not honored and label.value is not None and any(word in label.value for word in OWN):
        return ""
    return plain if honored else f"exported_{plain}"


@rule("GPU609", "warning")
def gauge_as_counter(cluster: Cluster) -> Iterator[Hit]:
    """A rule for Prometheus that takes the rate of a value which is not a counter."""
    counted = "compare the value itself, or let the exporter serve DCGM_EXP_XID_ERRORS_COUNT"
    for one, metric in metrics(cluster.spec):
        field = _field(metric.name) if metric.function in COUNTING else None
        if field is not None and dcgm.fields()[field.name].type == "gauge":
            meaning = dcgm.semantics(field.name) or "it is a gauge: the value at a time"
            remedy = counted if field.name == "DCGM_FI_DEV_XID_ERRORS" else ""
            yield one.hit(metric, why=meaning, remedy=remedy, function=metric.function)


LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
OF_ALERTS = ("for", "keep_firing_for", "annotations")
"""What a rule has that alerts, and none that records."""


@rule("GPU612", "error")
def refused_as_a_whole(cluster: Cluster) -> Iterator[Hit]:
    """A PrometheusRule that the Prometheus operator refuses."""
    known = set[tuple[object, str]]()
    for where, group in groups(cluster.spec, ("PrometheusRule",)):
        if (name := (where[2], str(group.get("name")))) in known:
            yield hit(dotted((*where, "name")), "groups", name=name[1])
        known.add(name)
        for at, one in mappings(group.get("rules")):
            yield from _of_rule((*where, "rules", at), one)


def _of_rule(where: Path, one: Mapping[str, Any]) -> Iterator[Hit]:
    """What is wrong with the rule ONE."""
    name = called(one)
    if bool(one.get("alert")) == bool(one.get("record")):
        yield hit(dotted(where), "both")
    if problem := promql.wrong(str(one.get("expr", ""))):
        yield hit(dotted((*where, "expr")), "expression", name=name, problem=problem)
    if one.get("record"):
        if not SERIES.fullmatch(str(one["record"])):
            yield hit(dotted((*where, "record")), "series", name=name)
        for key in OF_ALERTS:
            if key in one:
                yield hit(dotted((*where, key)), "alerts", name=name, key=key)
    for key in ("labels", "annotations"):
        for label, text in mapping(one.get(key)).items():
            at = dotted((*where, key, label))
            if not LABEL.fullmatch(str(label)) or label == "__name__":
                yield hit(at, "label", name=name, label=label)
            if one.get("alert") and (problem := go_template.wrong(str(text))):
                yield hit(at, "template", name=name, label=label, problem=problem)
