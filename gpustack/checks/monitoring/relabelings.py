"""Rules about what the Prometheus operator refuses in a monitor (relabelings that can't be, and times), and about
relabelings that never match.

It drops such a ServiceMonitor whole, with an event that nobody reads, and nothing is scraped. What is held here is its
own validator (prometheus-operator, pkg/prometheus: validateRelabelConfig, validateScrapeIntervalAndTimeout).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ...catalog import dcgm
from ...cluster.metrics import telemetry
from ...cluster.resolve import Cluster
from ...model import Path, children, dotted, mappings
from ...policy.configurations.promql import wrong
from ...text.quantities import milliseconds
from ..rule import Hit, hit, rule
from .monitoring import monitored

KINDS = ("ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig")
LISTS = ("relabelings", "metricRelabelings", "metricRelabelConfigs", "relabelConfigs")
WITH_TARGET = ("replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal")
EQUAL = ("sourceLabels", "targetLabel")
USED = {"labeldrop": ("regex",), "labelkeep": ("regex",), "keepequal": EQUAL, "dropequal": EQUAL}
"""The fields of those actions for which all others are refused."""
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_GROUP = re.compile(r"\$(?:\{\w+\}|\w+)", re.ASCII)
"""A group of the regular expression, in a text that makes a label's name."""
DEFAULTS = {"regex": "(.*)", "separator": ";", "replacement": "$1"}
FIELDS = ("sourceLabels", "separator", "regex", "targetLabel", "replacement", "modulus")


@rule("GPU620", "error")
def refused_relabeling(cluster: Cluster) -> Iterator[Hit]:
    """A relabeling, or a time, for which the Prometheus operator refuses a monitor."""
    spec = cluster.spec
    where, exporter, _ = telemetry(spec)
    if monitored(spec):
        for index, one in enumerate(exporter.serviceMonitor.relabelings):
            at = f"{where}dcgmExporter.serviceMonitor.relabelings[{index}]"
            yield from _refused(at, one.model_dump(exclude_none=True))
    for index, body in enumerate(spec.extraObjects):
        if body["kind"] in KINDS and str(body["apiVersion"]).startswith("monitoring.coreos.com/"):
            yield from _monitor(body.get("spec"), ("spec", "extraObjects", index, "spec"))


@rule("GPU623", "warning")
def label_of_samples(cluster: Cluster) -> Iterator[Hit]:
    """A relabeling of the target by a label that only the exporter's series have."""
    where, exporter, _ = telemetry(cluster.spec)
    monitor = f"{where}dcgmExporter.serviceMonitor"
    for index, own in enumerate(exporter.serviceMonitor.relabelings if monitored(cluster.spec) else ()):
        if label := _of_samples(own.sourceLabels):
            yield hit(f"{monitor}.relabelings[{index}]", "own", label=label, monitor=monitor)
    for index, body in enumerate(cluster.spec.extraObjects):
        spec = body.get("spec") if body["kind"] in ("ServiceMonitor", "PodMonitor") else None
        for path, theirs in _of_targets(spec, ("spec", "extraObjects", index, "spec")):
            if label := _of_samples(theirs.get("sourceLabels")):
                yield hit(dotted(path), "theirs", label=label)


def _of_targets(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The relabelings of targets below VALUE, and where they stand."""
    for key, item in children(value):
        if key == "relabelings" and isinstance(item, list):
            yield from (((*path, key, index), one) for index, one in mappings(item))
        else:
            yield from _of_targets(item, (*path, key))


def _of_samples(labels: Any) -> str:
    """The first of LABELS that the exporter's series alone have, "" for none."""
    known = [str(one) for one in labels] if isinstance(labels, list | tuple) else []
    return next((one for one in known if one.startswith("exported_") or one in dcgm.gpu_labels()), "")


def _monitor(value: Any, path: Path) -> Iterator[Hit]:
    """What is refused in the endpoints below VALUE."""
    for key, item in children(value):
        if key in LISTS and isinstance(item, list):
            for index, one in mappings(item):
                yield from _refused(dotted((*path, key, index)), one)
        else:
            yield from _monitor(item, (*path, key))
    if isinstance(value, dict):
        yield from _times(value.get("interval"), value.get("scrapeTimeout"), path)


def _times(interval: Any, timeout: Any, path: Path) -> Iterator[Hit]:
    """A hit where a scrape may take longer than the time between two."""
    said = isinstance(interval, str) and isinstance(timeout, str) and bool(interval and timeout)
    if said and milliseconds(timeout) > milliseconds(interval):
        yield hit(dotted((*path, "scrapeTimeout")), "times", timeout=timeout, interval=interval)


def _refused(at: str, one: dict[str, Any]) -> Iterator[Hit]:
    """What the validator says against the relabeling ONE, which stands at AT."""
    action = str(one.get("action") or "replace").lower()
    given = {key: one[key] for key in FIELDS if one.get(key)}
    text = str(one.get("regex") or "")
    if text and (problem := wrong(f"up{{a=~{json.dumps(text)}}}")):
        yield hit(f"{at}.regex", "regex", text=text, problem=problem)
    for position, label in enumerate(given.get("sourceLabels", ())):
        if not _NAME.fullmatch(str(label)):
            yield hit(f"{at}.sourceLabels[{position}]", "source", label=repr(label))
    yield from _target(at, action, given)
    if action == "labelmap" and not _named(str(one.get("replacement") or "$1")):
        yield hit(f"{at}.replacement", "replacement", text=repr(one.get("replacement")))
    for key in _idle(action, given):
        yield hit(f"{at}.{key}", "idle", action=action, key=key)


def _target(at: str, action: str, given: dict[str, Any]) -> Iterator[Hit]:
    """What is wrong with where ACTION writes."""
    target = str(given.get("targetLabel", ""))
    if action == "hashmod" and not given.get("modulus"):
        yield hit(at, "modulus")
    if action in WITH_TARGET and not target:
        yield hit(at, "target", action=action)
    elif target and action in WITH_TARGET and not (_named if action == "replace" else _NAME.fullmatch)(target):
        yield hit(f"{at}.targetLabel", "name", target=repr(target))


def _named(text: str) -> bool:
    """Whether TEXT makes the name of a label, whatever its groups are."""
    return _NAME.fullmatch(_GROUP.sub("x", text)) is not None


def _idle(action: str, given: dict[str, Any]) -> list[str]:
    """The fields of GIVEN for which the validator refuses ACTION. Defaults pass."""
    cased = action in {"lowercase", "uppercase"} and given.get("replacement", "$1") != "$1"
    idle = [key for key in given if key not in USED.get(action, FIELDS) and given[key] != DEFAULTS.get(key)]
    return idle or (["replacement"] if cased else [])
