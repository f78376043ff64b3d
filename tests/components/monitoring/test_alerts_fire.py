"""Each alert by promtool, as rendered: it fires, it doesn't, at the edge, with series that are absent, with a node that
is gone, and with a gauge that never goes back.

Series are as kube-state-metrics and the exporter serve them (dcgm.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from gpustack.catalog import alerts
from tests.components.monitoring.promtool import Firing, Moment, Series, asked, gpu, node, rules

XIDS = "DCGM_EXP_XID_ERRORS_COUNT"
REMAP = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
SHORT = "8x20 7"
"""Of a GPU that fails in minute 21."""
PROGRAM = {"reconciler": {"image": "registry.example/gpustack-reconciler:1"}}


class Case(NamedTuple):
    """SERIES in which ALERT fires as told, by minute; SETTINGS and SECTIONS are the policy's."""

    alert: str
    kind: str
    series: list[Series]
    firing: dict[int, Firing]
    settings: Mapping[str, Any] = MappingProxyType({})
    sections: Mapping[str, Any] = MappingProxyType({})


def xid(name: str, values: str, number: int = 79, *, host: str = "Hostname") -> Series:
    """The exporter's count of an XID."""
    return gpu(XIDS, values, name, host=host, xid=str(number), window_size_in_ms="300000")


def many(count: int, pool: str = "a", **changes: Any) -> list[Series]:
    """So many nodes of a pool."""
    return [node(f"{pool}{number}", pool, **changes) for number in range(count)]


def operation(name: str) -> Series:
    """The reconciler works on the node."""
    labels = f'node="{name}", policy="a", kind="driver", phase="Acting"'
    return {f"gpustack_reconciler_node_phase_since_seconds{{{labels}}}": "0x180"}


A0, A1 = {"node": "a0", "pool": "a"}, {"node": "a1", "pool": "a"}
CASES = [
    # Ready nodes that offer less than the policy promises: from 2 nodes of a pool and 5 % of it on, after 10 minutes.
    Case("GpusMissing", "fires", many(2, gpus=SHORT), {30: [], 31: [{"pool": "a"}]}),
    Case("GpusMissing", "one node is a ticket", [*many(1, gpus=SHORT), node("a1")], {60: []}),
    Case("GpusMissing", "one node each of two pools", [*many(1, gpus=SHORT), *many(1, "b", gpus=SHORT)], {60: []}),
    Case("GpusMissing", "5 % of 41 nodes are 3", [*many(2, gpus=SHORT), *many(41)[2:]], {60: []}),
    Case("GpusMissing", "5 % of 40 nodes are 2", [*many(2, gpus=SHORT), *many(40)[2:]], {60: [{"pool": "a"}]}),
    Case("GpusMissing", "comes back in time", many(2, gpus="8x20 7x8 8"), {31: [], 60: []}),
    Case("GpusMissing", "resource is gone", many(2, gpus="8x20 stale _"), {40: [{"pool": "a"}]}),
    Case("GpusMissing", "not Ready", many(2, gpus=SHORT, ready="1x18 0"), {60: []}),
    Case("GpusMissing", "nodes gone", many(2, gpus="8x20 7x20", gone=20), {60: []}),
    Case("GpusMissing", "new nodes", many(2, gpus="0", created=0), {39: [], 41: [{"pool": "a"}]}),
    Case(
        "GpusMissing",
        "our own operations",
        [*many(2, gpus=SHORT), operation("a0"), operation("a1")],
        {60: []},
        {},
        PROGRAM,
    ),
    Case(
        "GpusMissing",
        "no labels of nodes",
        [{key: value for key, value in each.items() if "labels" not in key} for each in many(2, gpus=SHORT)],
        {60: []},
    ),
    Case(
        "GpusMissing",
        "other numbers for a pool",
        [*many(1, gpus=SHORT), *many(2, "b", gpus=SHORT)],
        {26: [{"pool": "a"}], 31: [{"pool": "a"}, {"pool": "b"}]},
        {"rules": {"GpusMissing": {"perPool": {"a": {"nodes": 1, "lasts": "5m"}}}}},
    ),
    Case("NodeGpusMissing", "fires", [*many(1, gpus=SHORT), node("a1")], {30: [], 31: [A0]}),
    Case("NodeGpusMissing", "as promised", many(2), {60: []}),
    Case("NodeGpusMissing", "node gone", many(1, gpus="8x20 7x20", gone=40), {35: [A0], 60: []}),
    Case(
        "NodeGpusMissing",
        "not for a pool",
        [*many(1, gpus=SHORT), *many(1, "b", gpus=SHORT)],
        {60: [A0]},
        {"rules": {"NodeGpusMissing": {"perPool": {"b": {"enabled": False}}}}},
    ),
    # A fatal XID on 2 nodes within 15 minutes.
    Case(
        "XidFatal",
        "fires",
        [*many(2), xid("a0", "_x20 1x4 stale"), xid("a1", "_x32 1x4 stale")],
        {31: [], 32: [{}], 39: [{}], 40: [], 60: []},
    ),
    Case(
        "XidFatal",
        "16 minutes apart",
        [*many(2), xid("a0", "_x20 1x4 stale"), xid("a1", "_x40 1x4 stale")],
        {40: [], 42: [], 60: []},
    ),
    Case(
        "XidFatal",
        "twice on a node",
        [*many(2), xid("a0", "_x20 1x4 stale"), xid("a0", "_x20 1x4 stale", 48)],
        {22: []},
    ),
    Case("XidFatal", "of an application", [*many(2), xid("a0", "1", 13), xid("a1", "1", 31)], {22: []}),
    Case("XidFatal", "a count of none", [*many(2), gpu(XIDS, "0", "a0"), gpu(XIDS, "0", "a1")], {22: []}),
    Case("XidFatal", "series absent", many(2), {22: []}),
    Case(
        "XidFatal",
        "gauge never resets",
        [*many(2), gpu("DCGM_FI_DEV_XID_ERRORS", "79", "a0"), gpu("DCGM_FI_DEV_XID_ERRORS", "79", "a1")],
        {22: []},
    ),
    Case(
        "XidFatal", "without kube-state-metrics", [xid("a0", "_x20 1x4 stale"), xid("b0", "_x20 1x4 stale")], {22: [{}]}
    ),
    Case("NodeXidFatal", "fires", [*many(1), xid("a0", "_x20 1x4 stale")], {19: [], 20: [{**A0, "xid": "79"}], 60: []}),
    Case(
        "NodeXidFatal",
        "newer name of the node",
        [*many(1), xid("a0", "_x20 1x4 stale", host="hostname")],
        {21: [{**A0, "xid": "79"}]},
    ),
    Case("NodeXidFatal", "node gone", [*many(1, gone=25), xid("a0", "_x20 1x4 stale")], {60: []}),
    Case(
        "NodeXidFatal",
        "silenced",
        [*many(1), xid("a0", "1", 48)],
        {20: []},
        {"silence": [{"alert": "NodeXidFatal", "reason": "known board", "until": "1970-01-01"}]},
    ),
    Case(
        "NodeXidFatal",
        "silence has ended",
        [*many(1), xid("a0", "1", 48)],
        {20: [{**A0, "xid": "48"}]},
        {"silence": [{"alert": "NodeXidFatal", "reason": "known board", "until": "1969-12-31"}]},
    ),
    Case("RowRemapFailed", "fires", [*many(1), gpu(REMAP, "0x20 1", "a0", 3)], {25: [], 26: [{**A0, "gpu": "3"}]}),
    Case("RowRemapFailed", "doesn't", [*many(1), gpu(REMAP, "0", "a0", 3)], {60: []}),
    Case("RowRemapFailed", "series absent", many(1), {60: []}),
    Case(
        "RowRemapFailed",
        "node gone",
        [*many(1, gone=30), gpu(REMAP, "0x20 1x9 stale", "a0", 3)],
        {28: [{**A0, "gpu": "3"}], 60: []},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.kind}")
def test_alert(case: Case, tmp_path: Path) -> None:
    """It fires when it is told to, with these labels, and at no other of the moments."""
    series: Series = {}
    for each in case.series:
        series |= each
    moments = [Moment(minute, firing) for minute, firing in case.firing.items()]
    said = asked(tmp_path, rules(case.settings, **case.sections), case.alert, series, *moments)
    assert said == ""


def test_every_alert_is_tried() -> None:
    """With a case in which it fires, and one in which it doesn't."""
    fires = {case.alert for case in CASES if any(case.firing.values())}
    quiet = {case.alert for case in CASES if not any(case.firing.values())}
    assert fires == quiet == set(alerts.alerts())
