"""IMP6xx: what monitoring sees: the exporter's series, their labels, and what scrapes and alerts.

What the exporter serves is known where its list is in the render or is the image's own. A series has the labels that
the exporter and the scrape give it, whatever the metric, and one for each row of the list of type `label`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...catalog import dcgm
from ...model import MONITORS, RULES, Body, few
from ...policy.configurations.dcgm_csv import Row, read_metrics
from ...policy.language.spec import ClusterPolicySpec
from ..diff.objects import ObjectChange, items, mapping
from .pods import images
from .rule import Hit, rule
from .subject import POD, Subject, alert_rules, containers
from .tags import split

COUNTERS = "dcgm-metrics.csv"
EXPORTER = ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter-dra")
ALLOWED = "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"
POD_LABELS = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"


class Listed(NamedTuple):
    """What an exporter serves: metrics, and labels that each of their series gets."""

    series: frozenset[str]
    labels: frozenset[str]


def listed(rows: Sequence[Row | dcgm.Field]) -> Listed:
    """What ROWS make an exporter serve."""
    names = frozenset(row.name for row in rows if row.type != "label")
    return Listed(names, frozenset(row.name for row in rows if row.type == "label"))


def default() -> Listed:
    """What the exporter serves without a list of its own."""
    return listed(dcgm.default_counters())


def environment(body: Body | None) -> dict[str, str]:
    """The variables of all containers of a workload that have literal values."""
    entries = (mapping(entry) for one in containers(body) for entry in items(one.get("env")))
    return {str(entry.get("name")): str(entry.get("value", "")) for entry in entries}


def exporters(subject: Subject) -> Iterator[ObjectChange]:
    """The exporter's DaemonSets."""
    return (change for change in subject.of("DaemonSet") if change.identity.name in EXPORTER)


def served(subject: Subject) -> Iterator[tuple[str, Listed, Listed]]:
    """Each list of metrics that changes, with what is served before and after."""
    told = False
    for change in subject.of("ConfigMap"):
        texts = change.both("data", COUNTERS)
        if all(text is None or isinstance(text, str) for text in texts) and texts[0] != texts[1]:
            old, new = (default() if text is None else listed(read_metrics(text).rows) for text in texts)
            yield str(change.identity), old, new
            told = True
    for change in exporters(subject) if not told else ():
        before, after = ("metrics-config" in str(each) for each in change.both(*POD, "volumes"))
        if before and not after:
            yield str(change.identity), Listed(frozenset(), frozenset()), default()


@rule("IMP601", 3, parts=True)
def series_go(subject: Subject) -> Iterator[Hit]:
    """The exporter serves fewer metrics."""
    for where, old, new in served(subject):
        lost = old.series - new.series
        if lost:
            yield Hit(where, f"{len(old.series)} -> {len(new.series)} metrics; no longer {few(sorted(lost), 5)}")


@rule("IMP602", 3, parts=True)
def series_come(subject: Subject) -> Iterator[Hit]:
    """The exporter serves more metrics."""
    for where, old, new in served(subject):
        fresh = new.series - old.series
        if fresh:
            count = f"{len(old.series)} -> {len(new.series)} metrics for each GPU"
            yield Hit(where, f"{count}; new: {few(sorted(fresh), 5)}")


@rule("IMP603", 3, parts=True)
def labels_grow(subject: Subject) -> Iterator[Hit]:
    """Series of the exporter get more labels, or others."""
    for where, old, new in served(subject):
        one, two = labels(subject.before, old), labels(subject.after, new)
        if new.labels - old.labels:
            limit = dcgm.label_limit()
            more = f", above the {limit} that some storage takes" if two > limit else ""
            fresh = few(sorted(new.labels - old.labels), 5)
            yield Hit(where, f"about {one} -> {two} labels per series{more}; new: {fresh}")
    for change in exporters(subject):
        if change.old is not None and change.new is not None:
            sides = [environment(body) for body in (change.old, change.new)]
            was, now = (side.get(POD_LABELS, "").lower() == "true" for side in sides)
            before, after = (side.get(ALLOWED) or "all" for side in sides)
            if now and not was:
                about, limits = labels(subject.before, default()), sides[1].get(ALLOWED)
                which = f"those labels of each pod that match {limits}" if limits else "all labels of each pod"
                yield Hit(str(change.identity), f"about {about} labels per series -> {which} in addition")
            if was and now and before != after:
                yield Hit(str(change.identity), f"labels of pods that become labels of series: {before} -> {after}")


def labels(spec: ClusterPolicySpec | None, metrics: Listed) -> int:
    """How many labels a series of a GPU has, of an exporter that serves METRICS and is scraped as SPEC says; a MIG
    instance has two more."""
    honored = bool(spec and spec.dcgmExporter.serviceMonitor.honorLabels)
    return len(dcgm.series_labels(honored=honored) | metrics.labels)


@rule("IMP604", 2, parts=True)
def monitoring_goes(subject: Subject) -> Iterator[Hit]:
    """What scrapes or alerts goes."""
    there = {name for change in subject.of(*RULES) for name in _alerts(change.new)}
    for change in subject.of(*MONITORS, *RULES):
        lost = sorted(_alerts(change.old) - there)
        gone = change.what in {"removed", "renamed"}
        if gone and (lost or change.identity.kind not in RULES or change.what == "renamed"):
            yield Hit(str(change.was or change.identity), "it is removed")
        elif lost and not gone:
            yield Hit(str(change.identity), f"no longer there: {', '.join(lost[:6])}")


def _alerts(body: Body | None) -> set[str]:
    return {str(one.get("alert") or one.get("record")) for one in alert_rules(body)}


@rule("IMP605", 3)
def exporter_version(subject: Subject) -> Iterator[Hit]:
    """The exporter gets another version."""
    for change in exporters(subject):
        old, new = images(change.old), images(change.new)
        for name in old.keys() & new.keys() & set(EXPORTER):
            if split(old[name])[1] != split(new[name])[1]:
                yield Hit(str(change.identity), f"{split(old[name])[1]} -> {split(new[name])[1]}")
