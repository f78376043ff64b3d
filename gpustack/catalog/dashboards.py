"""Dashboards about GPUs: which there are, and what each shows (data/dashboards.yaml)."""

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpustack.catalog import _data

Name = Literal["fleet", "cluster", "node", "tenants", "mig", "rollout"]
_METRIC = re.compile(r"\b(?:DCGM_\w+|kube_\w+|gpustack_reconciler_\w+|gpustack:\w+|ALERTS)\b")


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; the data file says what each field means. `red` is 0 for never."""

    title: str
    kind: Literal["stat", "timeseries", "table"]
    queries: Mapping[str, str]
    width: int = 12
    unit: str = ""
    red: int = 0
    about: str = ""

    @property
    def reads(self) -> set[str]:
        """The metrics that its queries name, and rows of the exporter's list that are labels of them."""
        return {metric for query in self.queries.values() for metric in metrics(query)}


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard: its panels by the titles of its rows, and what a viewer chooses, by label."""

    title: str
    rows: Mapping[str, Sequence[Panel]]
    variables: Mapping[str, Mapping[str, Any]]
    needs: Sequence[str] = ()
    of: str = ""


@functools.cache
def boards() -> Mapping[Name, Board]:
    """All dashboards, in the order in which they are listed."""
    data, by_name = _data.load("dashboards"), dict[Name, Board]()
    for name, facts in data["boards"].items():
        rows = {row["title"]: [Panel(**panel) for panel in row["panels"]] for row in facts["rows"]}
        chosen = {"cluster": data["cluster"], **facts.get("variables", {})}
        by_name[name] = _data.made(Board, facts, rows=rows, variables=chosen)
    return by_name


@functools.cache
def metrics(expression: str) -> frozenset[str]:
    """The metrics that EXPRESSION names, as `Panel.reads` has them."""
    return frozenset(_METRIC.findall(expression))


def read(names: Iterable[Name]) -> set[str]:
    """All metrics that the panels of the dashboards NAMES read."""
    panels = (panel for name in names for row in boards()[name].rows.values() for panel in row)
    return {metric for panel in panels for metric in panel.reads}


def without(panels: Iterable[Panel], lacking: Collection[str]) -> list[Panel]:
    """PANELS without the queries that read one of the metrics LACKING, and without those that have no query then."""
    left = [
        replace(panel, queries={key: query for key, query in panel.queries.items() if not metrics(query) & {*lacking}})
        for panel in panels
    ]
    return [panel for panel in left if panel.queries]
