"""Metrics in the text format of Prometheus.

By hand: the format is a few lines, and its library is a quarter of the program's start-up time. Series by node exist
for open operations only (reconciler.md A9): a fleet of 5,000 nodes is not 5,000 series.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PREFIX = "gpustack_reconciler_"
Labels = tuple[str, ...]


@dataclass
class Series:
    """A counter or gauge."""

    name: str
    help: str
    labels: Labels = ()
    kind: str = "gauge"
    values: dict[Labels, float] = field(default_factory=dict)

    def set(self, value: float, *labels: str) -> None:
        """Of a gauge: what it is now."""
        self.values[labels] = value

    def add(self, *labels: str, by: float = 1.0) -> None:
        """Of a counter: once more."""
        self.values[labels] = self.values.get(labels, 0.0) + by

    def replace(self, values: Mapping[Labels, float]) -> None:
        """Of a gauge: all that there is now; what is not in VALUES is gone."""
        self.values = dict(values)

    def lines(self) -> Iterable[str]:
        """As Prometheus reads it."""
        for labels, value in sorted(self.values.items()):
            yield f"{PREFIX}{self.name}{_labels(self.labels, labels)} {_number(value)}"


@dataclass
class Histogram:
    """How values are distributed."""

    name: str
    help: str
    bounds: Sequence[float]
    labels: Labels = ()
    kind: str = "histogram"
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: Counter[Labels] = field(default_factory=Counter)

    def observe(self, value: float, *labels: str) -> None:
        """One more value."""
        counts = self.counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[labels] += value  # type: ignore[assignment]

    def lines(self) -> Iterable[str]:
        """As Prometheus reads it: buckets count what is not above their bound."""
        names = (*self.labels, "le")
        for labels, counts in sorted(self.counts.items()):
            total = 0
            for bound, count in zip([*map(_number, self.bounds), "+Inf"], counts, strict=True):
                total += count
                yield f"{PREFIX}{self.name}_bucket{_labels(names, (*labels, bound))} {total}"
            yield f"{PREFIX}{self.name}_sum{_labels(self.labels, labels)} {_number(self.sums[labels])}"
            yield f"{PREFIX}{self.name}_count{_labels(self.labels, labels)} {total}"


class Metrics:
    """All that the program counts."""

    def __init__(self) -> None:
        self.operations = Series("operations", "Open operations.", ("policy", "kind", "phase"))
        self.nodes = Series("nodes", "Nodes of a policy by state.", ("policy", "state"))
        minutes = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
        labels = ("policy", "kind", "outcome")
        self.seconds = Histogram("operation_seconds", "How long operations took.", minutes, labels)
        began = "Unix time at which the phase of an open operation began."
        self.since = Series("node_phase_since_seconds", began, ("node", "policy", "kind", "phase"))
        self.breaker = Series("breaker_open", "1 where failures have stopped a rollout.", ("policy",))
        self.leader = Series("leader", "1 in the replica that acts.")
        seconds = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
        self.passes = Histogram("pass_seconds", "How long passes took.", seconds)
        asked = "Requests to the API server; code 0: no answer."
        self.requests = Series("requests_total", asked, ("verb", "kind", "code"), "counter")
        self.waiting = Series("waiting", "Nodes that wait, by why.", ("policy", "reason"))
        still = "Unix time since when something is due and nothing has moved."
        self.still = Series("still_since_seconds", still, ("policy",))
        stood = "Seconds for which nothing had moved when the window closed."
        self.stood = Series("stood_seconds", stood, ("policy",))
        dropped = "Events not sent, to bound their number."
        self.events_dropped = Series("events_dropped_total", dropped, kind="counter")

    def text(self) -> str:
        """What a scrape gets."""
        lines: list[str] = []
        for each in vars(self).values():
            lines += [f"# HELP {PREFIX}{each.name} {each.help}", f"# TYPE {PREFIX}{each.name} {each.kind}"]
            lines += each.lines()
        return "\n".join(lines) + "\n"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
