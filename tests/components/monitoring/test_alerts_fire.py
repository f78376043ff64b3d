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
from gpustack.model import Body
from tests.components.monitoring.promtool import (
    POOLS,
    Firing,
    Series,
    Tried,
    asked,
    gpu,
    lasting,
    node,
    pod,
    program,
    rules,
)

XIDS = "DCGM_EXP_XID_ERRORS_COUNT"
REMAP = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
TEMPERATURE, SLOWDOWN = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SLOWDOWN_TEMP"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
P2P = "DCGM_EXP_P2P_STATUS"
DOUBLE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
LICENCE = "DCGM_FI_DEV_VGPU_LICENSE_STATUS"
DRIVER, EXPORTER = "nvidia-driver-daemonset", "nvidia-dcgm-exporter"
VALIDATOR, PLUGIN = "nvidia-operator-validator", "nvidia-device-plugin-daemonset"
SHORT = "8x20 7"
"""Of a GPU that fails in minute 21."""
PROGRAM = {"reconciler": {"image": "registry.example/gpustack-reconciler:1"}}
FAULTS = {"reconciler": {**PROGRAM["reconciler"], "health": {"conditions": [{"type": "A", "then": "drain"}]}}}
LOOKS = {"verify": {"schedule": "@hourly"}, **PROGRAM}
VERIFY = {"namespace": "gpu-operator"}
LICENSED = {"driver": {"licensingConfig": {"secretName": "licensing"}}}
DRA = {"gpuCluster": {"dcgmExporter": {"enabled": True}}}
CUT = {"nodePools": [POOLS[0], {**POOLS[1], "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}]}


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
    return program("node_phase_since_seconds", "0", node=name, policy="a", kind="driver", phase="Acting")


def pods(count: int, daemonset: str, **changes: Any) -> list[Series]:
    """So many nodes, each with a pod of DAEMONSET."""
    return [*many(count), *(pod(daemonset, f"a{number}", **changes) for number in range(count))]


def heat(values: str, count: int = 1, slowdown: str = "87") -> list[Series]:
    """So many nodes with a GPU that gets warm, and slows down at 87 degrees."""
    found = many(count)
    for number in range(count):
        found += [gpu(TEMPERATURE, values, f"a{number}"), gpu(SLOWDOWN, slowdown, f"a{number}")]
    return found


def mig(name: str, state: str, values: str) -> Series:
    """The label by which the MIG manager tells how it went."""
    labels = f'node="{name}", label_example_com_pool="b", label_nvidia_com_mig_config_state="{state}"'
    return {f"kube_node_labels{{{labels}}}": lasting(values)}


def cron(name: str, values: str) -> Series:
    """What kube-state-metrics tells of the CronJob."""
    return {f'kube_cronjob_{name}{{namespace="gpu-operator", cronjob="gpustack-verify"}}': lasting(values)}


def leader(values: str, copy: str = "one") -> Series:
    """A copy of the reconciler, which works or doesn't."""
    return program("leader", values, namespace="gpu-operator", pod=copy)


def unlabelled(count: int, **changes: Any) -> list[Series]:
    """So many nodes, of which kube-state-metrics isn't told to show the labels."""
    return [{key: value for key, value in each.items() if "labels" not in key} for each in many(count, **changes)]


def engine(values: str, namespace: str, number: int = 0) -> Series:
    """How busy a GPU is that a pod of NAMESPACE has."""
    return gpu(ENGINE, values, "a0", number, exported_namespace=namespace, namespace="gpu-operator")


def claim(values: str) -> list[Series]:
    """A pod that has no place, and its claim."""
    about = 'namespace="team-a", pod="trainer"'
    return [
        {f"kube_pod_status_unschedulable{{{about}}}": lasting(values)},
        {f'kube_pod_resourceclaim_info{{{about}, claim_name="gpu"}}': "1x180"},
    ]


def daemons(name: str) -> Series:
    """What kube-state-metrics tells of a DaemonSet."""
    about = f'namespace="gpu-operator", daemonset="{name}"'
    return {f"kube_daemonset_status_desired_number_scheduled{{{about}}}": "0x180"}


def memory(used: str, free: str) -> list[Series]:
    """A GPU's memory."""
    return [*many(1), gpu("DCGM_FI_DEV_FB_USED", used, "a0"), gpu("DCGM_FI_DEV_FB_FREE", free, "a0")]


TEAM = {"namespace": "team-a"}
RESTARTS = f'kube_pod_container_status_restarts_total{{namespace="gpu-operator", pod="{DRIVER}-a0", container="main"'
WAITING = {"rules": {"ClaimsPending": {"enabled": True}}}
FULL = {"rules": {"MemoryFull": {"enabled": True}}}
OF_APPLICATION = {"rules": {"XidOfApplication": {"enabled": True}}}
OPTIONS = (
    ("TemperatureHigh", TEMPERATURE, "84", "84x20 85", 31),
    ("TemperatureVeryHigh", TEMPERATURE, "89", "89x20 90", 26),
    ("PowerCapped", "DCGM_FI_DEV_POWER_VIOLATION", "0+29e9x180", "0+30e9x180", 40),
    ("PcieReplays", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "0+9.95x180", "0+10x180", 40),
    ("EccSingleBit", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "0x20 90", "0x20 100", 21),
    ("RowRemapPending", "DCGM_FI_DEV_ROW_REMAP_PENDING", "0", "0x20 1", 141),
)
"""Alerts that are off: their metric, values at which they don't fire, values at which they do, and when first."""
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
        unlabelled(2, gpus=SHORT),
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
    Case(
        "XidFatal",
        "of an application",
        [*many(2), *(xid(name, "1", number) for name in ("a0", "a1") for number in (13, 31, 43, 45))],
        {22: []},
    ),
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
    # A path between two GPUs of a board with NVSwitch: one node is a page. 5 is NVML's NOT_SUPPORTED, 0 OK.
    Case("NvlinkDown", "fires", [*many(1), gpu(P2P, "0x20 5", "a0", peer_gpu="1")], {25: [], 26: [{**A0, "gpu": "0"}]}),
    Case("NvlinkDown", "all paths work", [*many(1), gpu(P2P, "0", "a0", peer_gpu="1")], {60: []}),
    Case("NvlinkDown", "series absent", many(1), {60: []}),
    Case(
        "NvlinkDown",
        "node gone",
        [*many(1, gone=40), gpu(P2P, "5x39 stale", "a0", peer_gpu="1")],
        {39: [{**A0, "gpu": "0"}], 60: []},
    ),
    Case(
        "NvlinkDown",
        "GPUs that are cut",
        [*many(1), *many(1, "b"), *(gpu(P2P, "5", f"{name}0", peer_gpu="1") for name in "ab")],
        {60: [{**A0, "gpu": "0"}]},
        {},
        CUT,
    ),
    # The card's own temperature of slowing down, for 5 minutes, on 2 nodes.
    Case("GpuHot", "fires", heat("86x20 87", 2), {25: [], 26: [{}]}),
    Case("GpuHot", "one node is a ticket", heat("99"), {60: []}),
    Case("GpuHot", "a degree below", heat("86", 2), {60: []}),
    Case(
        "GpuHot",
        "a degree below is enough for the policy",
        heat("86", 2),
        {60: [{}]},
        {"rules": {"GpuHot": {"threshold": 1}}},
    ),
    Case(
        "GpuHot",
        "the card doesn't say",
        [*many(2), gpu(TEMPERATURE, "99", "a0"), gpu(TEMPERATURE, "99", "a1")],
        {60: []},
    ),
    Case("GpuHot", "the card says 0", heat("99", 2, slowdown="0"), {60: []}),
    Case("NodeGpuHot", "fires", heat("86x20 87"), {25: [], 26: [{**A0, "gpu": "0"}]}),
    Case("NodeGpuHot", "cools down in time", heat("86x20 87x3 86"), {25: [], 26: [], 60: []}),
    Case("NodeGpuHot", "node gone", heat("99x30 stale"), {30: [{**A0, "gpu": "0"}], 60: []}),
    # The driver's startup probe allows 21 minutes.
    Case("DriverNotReady", "fires", pods(2, DRIVER, ready="1x20 0"), {45: [], 46: [{}]}),
    Case("DriverNotReady", "one node is a ticket", [*pods(1, DRIVER, ready="0"), *many(3)[1:]], {60: []}),
    Case("DriverNotReady", "ready after 21 minutes", pods(2, DRIVER, ready="0x21 1"), {25: [], 60: []}),
    Case(
        "DriverNotReady",
        "nodes not Ready",
        [*many(2, ready="1x18 0"), *(pod(DRIVER, f"a{number}", ready="1x18 0") for number in range(2))],
        {60: []},
    ),
    Case("DriverNotReady", "our own operations", [*pods(2, DRIVER, ready="0"), operation("a0")], {60: []}, {}, PROGRAM),
    Case("DriverNotReady", "another pod", pods(2, "nvidia-mig-manager", ready="0"), {60: []}),
    Case("NodeDriverNotReady", "fires", pods(1, "nvidia-gpu-driver-ubuntu22.04-a-1234", ready="0"), {24: [], 25: [A0]}),
    Case("NodeDriverNotReady", "pod gone", pods(1, DRIVER, ready="0x40 stale", gone=40), {30: [A0], 60: []}),
    Case("NodeDriverNotReady", "series absent", many(1), {60: []}),
    Case("DriverCrashLoop", "fires", pods(1, DRIVER, restarts="0x20 1 2 3 4 5 6"), {24: [], 35: [A0]}),
    Case("DriverCrashLoop", "3 in an hour", pods(1, DRIVER, restarts="0x20 1 2 3"), {60: []}),
    Case("DriverCrashLoop", "long ago", pods(1, DRIVER, restarts="9"), {60: []}),
    Case(
        "DriverCrashLoop",
        "pod gone",
        pods(1, DRIVER, restarts="0x20 1 2 3 4 5 6x20 stale", gone=46),
        {40: [A0], 160: []},
    ),
    # An exporter that serves nothing on a Ready node: 10 % of the nodes and 2 of them.
    Case(
        "ExporterMissing",
        "fires",
        [*pods(2, EXPORTER), *(gpu(TEMPERATURE, "40x20 stale", f"a{number}") for number in range(2))],
        {35: [], 37: [{}]},
    ),
    Case(
        "ExporterMissing",
        "one node is a ticket",
        [*pods(3, EXPORTER), *(gpu(TEMPERATURE, "40", f"a{number}") for number in range(2))],
        {60: []},
    ),
    Case("ExporterMissing", "10 % of 21 nodes are 3", [*pods(2, EXPORTER), *many(21)[2:]], {60: []}),
    Case("ExporterMissing", "10 % of 20 nodes are 2", [*pods(2, EXPORTER), *many(20)[2:]], {60: [{}]}),
    Case("ExporterMissing", "no exporter is due", many(2), {60: []}),
    Case(
        "ExporterMissing",
        "new nodes",
        [*many(2, created=0), *(pod(EXPORTER, f"a{number}") for number in range(2))],
        {44: [], 46: [{}]},
    ),
    Case("ExporterMissing", "our own operations", [*pods(2, EXPORTER), operation("a0")], {60: []}, {}, PROGRAM),
    Case("NodeExporterMissing", "fires", pods(1, EXPORTER), {14: [], 15: [A0]}),
    Case(
        "NodeExporterMissing",
        "newer name of the node",
        [*pods(1, EXPORTER), gpu(TEMPERATURE, "40", "a0", host="hostname")],
        {60: []},
    ),
    Case("NodeExporterMissing", "node gone", pods(1, EXPORTER, gone=30), {29: [A0], 60: []}),
    Case("NodeExporterMissing", "node not Ready", [*many(1, ready="0"), pod(EXPORTER, "a0")], {60: []}),
    Case(
        "NodeExporterMissing",
        "a list of the policy's own",
        [*pods(1, EXPORTER), gpu("DCGM_FI_DEV_FB_USED", "1", "a0")],
        {60: []},
        {},
        {"dcgmExporter": {"config": {"data": {"dcgm-metrics.csv": "DCGM_FI_DEV_FB_USED, gauge, x"}}}},
    ),
    Case("ExporterRestarts", "fires", pods(1, EXPORTER, restarts="0x20 1 2 3 4 5 6"), {24: [], 35: [A0]}),
    Case("ExporterRestarts", "3 in an hour", pods(1, EXPORTER, restarts="0x20 1 2 3"), {60: []}),
    Case(
        "ExporterRestarts",
        "as often as the policy allows",
        pods(1, EXPORTER, restarts="0x20 1 2 3 4 5 6"),
        {60: []},
        {"rules": {"ExporterRestarts": {"threshold": 7}}},
    ),
    Case("ValidatorWaiting", "fires", pods(1, VALIDATOR, ready="1x20 0"), {50: [], 51: [A0]}),
    Case("ValidatorWaiting", "done", pods(1, VALIDATOR), {60: []}),
    Case("ValidatorWaiting", "pod gone", pods(1, VALIDATOR, ready="0x40 stale", gone=40), {35: [A0], 60: []}),
    Case("PluginNotRegistered", "fires", [*many(1, gpus="8x20 0"), pod(PLUGIN, "a0")], {35: [], 36: [A0]}),
    Case(
        "PluginNotRegistered", "resource absent", [*many(1, gpus="8x20 stale _"), pod(PLUGIN, "a0")], {35: [], 36: [A0]}
    ),
    Case("PluginNotRegistered", "GPUs are there", [*many(1), pod(PLUGIN, "a0")], {60: []}),
    Case("PluginNotRegistered", "plugin not ready", [*many(1, gpus="0"), pod(PLUGIN, "a0", ready="0")], {60: []}),
    Case(
        "MigFailed",
        "fires",
        [*many(1, "b"), mig("b0", "failed", "_x20 1")],
        {29: [], 30: [{"node": "b0", "pool": "b"}]},
        {},
        CUT,
    ),
    Case("MigFailed", "succeeded", [*many(1, "b"), mig("b0", "success", "1")], {60: []}, {}, CUT),
    Case(
        "MigFailed",
        "node gone",
        [mig("b0", "failed", "1x30 stale")],
        {30: [{"node": "b0", "pool": "b"}], 60: []},
        {},
        CUT,
    ),
    Case("EccDoubleBit", "fires", [*many(1), gpu(DOUBLE, "0x20 1", "a0")], {20: [], 21: [{**A0, "gpu": "0"}]}),
    Case("EccDoubleBit", "counter never resets", [*many(1), gpu(DOUBLE, "7", "a0")], {60: []}),
    Case("EccDoubleBit", "an hour later", [*many(1), gpu(DOUBLE, "0x20 1", "a0")], {79: [{**A0, "gpu": "0"}], 82: []}),
    Case("EccDoubleBit", "driver was loaded anew", [*many(1), gpu(DOUBLE, "7x20 0", "a0")], {21: [], 60: []}),
    Case("EccDoubleBit", "series absent", many(1), {60: []}),
    Case(
        "LicenceMissing",
        "fires",
        [*many(1), gpu(LICENCE, "1x20 0", "a0")],
        {50: [], 51: [{**A0, "gpu": "0"}]},
        {},
        LICENSED,
    ),
    Case("LicenceMissing", "acquired", [*many(1), gpu(LICENCE, "1", "a0")], {60: []}, {}, LICENSED),
    Case("LicenceMissing", "series absent", many(1), {60: []}, {}, LICENSED),
    # Verify in the cluster. Its times are seconds: a look of minute 60 that ends in minute 61.
    Case(
        "VerifyFailed",
        "never went well",
        [cron("status_last_schedule_time", "_x59 3600")],
        {73: [], 76: [VERIFY]},
        {},
        LOOKS,
    ),
    Case(
        "VerifyFailed",
        "the last one failed, until one goes well",
        [
            cron("status_last_schedule_time", "60x59 3600x59 7200"),
            cron("status_last_successful_time", "90x120 7260"),
        ],
        {59: [], 74: [], 76: [VERIFY], 119: [VERIFY], 122: []},
        {},
        LOOKS,
    ),
    Case(
        "VerifyFailed",
        "went well, in the same second at the edge",
        [cron("status_last_schedule_time", "60"), cron("status_last_successful_time", "60")],
        {60: []},
        {},
        LOOKS,
    ),
    Case("VerifyFailed", "series absent", many(1), {60: []}, {}, LOOKS),
    Case("VerifyMissing", "the CronJob is gone", many(1), {29: [], 31: [VERIFY]}, {}, LOOKS),
    Case(
        "VerifyMissing",
        "due and not begun",
        [cron("info", "1"), cron("next_schedule_time", "3600")],
        {89: [], 92: [VERIFY]},
        {},
        LOOKS,
    ),
    Case(
        "VerifyMissing",
        "begun each hour",
        [cron("info", "1"), cron("next_schedule_time", "3600x60 7200x60"), cron("spec_suspend", "0")],
        {59: [], 91: [], 119: []},
        {},
        LOOKS,
    ),
    Case(
        "VerifyMissing",
        "suspended",
        [cron("info", "1"), cron("spec_suspend", "0x9 1")],
        {39: [], 41: [VERIFY]},
        {},
        LOOKS,
    ),
    # The reconciler.
    Case("ReconcilerDown", "fires", [leader("1x20 stale")], {34: [], 36: [{}]}, {}, PROGRAM),
    Case("ReconcilerDown", "one copy works", [leader("1"), leader("0", "other")], {60: []}, {}, PROGRAM),
    Case("ReconcilerDown", "no copy leads", [leader("1x20 0")], {35: [], 36: [{}]}, {}, PROGRAM),
    Case(
        "ReconcilerDownAtWork",
        "fires",
        [leader("1x20 stale"), program("operations", "2x20 stale", policy="a")],
        {34: [], 36: [{}], 90: []},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerDownAtWork",
        "nothing was open",
        [leader("1x20 stale"), program("operations", "0x20 stale", policy="a")],
        {60: []},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeStuck", "fires", [operation("a0")], {125: [], 126: [{"node": "a0", "policy": "a"}]}, {}, PROGRAM
    ),
    Case(
        "ReconcilerNodeStuck",
        "in quarantine",
        [program("node_phase_since_seconds", "0", node="a0", policy="a", kind="driver", phase="Quarantine")],
        {170: []},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeStuck",
        "goes on",
        [program("node_phase_since_seconds", "0+60x180", node="a0", policy="a", kind="driver", phase="Acting")],
        {170: []},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeQuarantined",
        "fires",
        [program("nodes", "0x20 1", policy="a", state="quarantined")],
        {25: [], 26: [{"policy": "a"}]},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeQuarantined", "none", [program("nodes", "9", policy="a", state="current")], {60: []}, {}, PROGRAM
    ),
    Case(
        "ReconcilerBreakerOpen",
        "fires",
        [program("breaker_open", "0x20 1", policy="a")],
        {21: [], 22: [{"policy": "a"}]},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeFault",
        "fires",
        [program("waiting", "0x20 1x20", policy="a", reason="health")],
        {25: [], 26: [{"policy": "a"}]},
        {},
        FAULTS,
    ),
    Case("ReconcilerNodeFault", "none", [program("waiting", "9", policy="a", reason="budget")], {60: []}, {}, FAULTS),
    Case(
        "ReconcilerFaultLimit",
        "fires",
        [program("waiting", "0x20 1x20", policy="a", reason="health-limit")],
        {25: [], 26: [{"policy": "a"}]},
        {},
        FAULTS,
    ),
    Case("ReconcilerFaultLimit", "none", [program("waiting", "9", policy="a", reason="health")], {60: []}, {}, FAULTS),
    Case("ReconcilerBreakerOpen", "closed", [program("breaker_open", "0", policy="a")], {60: []}, {}, PROGRAM),
    Case(
        "ReconcilerRolloutStands",
        "fires",
        [program("still_since_seconds", "0", policy="a")],
        {65: [], 66: [{"policy": "a"}]},
        {},
        PROGRAM,
    ),
    Case("ReconcilerRolloutStands", "nothing is due", [], {120: []}, {}, PROGRAM),
    Case(
        "ReconcilerNodeNotCovered",
        "fires",
        [program("nodes", "0x20 1", policy="", state="uncovered")],
        {35: [], 36: [{}]},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerNodeNotCovered", "none", [program("nodes", "0", policy="", state="uncovered")], {60: []}, {}, PROGRAM
    ),
    # For an hour nothing ran on GPUs that pods have, at any time in two.
    Case(
        "AllocatedIdle",
        "fires",
        [engine("0", "team-a"), engine("0", "team-a", 1), engine("0.5", "team-b")],
        {59: [], 60: [TEAM]},
    ),
    Case("AllocatedIdle", "busy once an hour", [engine("0x58 0.4 0x58 0.4", "team-a")], {60: [], 120: []}),
    Case("AllocatedIdle", "two hours after its work", [engine("0.4x10 0", "team-a")], {130: [], 131: [TEAM]}),
    Case("AllocatedIdle", "nobody has the GPU", [engine("0", "")], {120: []}),
    Case("AllocatedIdle", "pod is gone", [engine("0x70 stale", "team-a")], {70: [TEAM], 140: []}),
    Case(
        "AllocatedIdle",
        "labels of the exporter are kept",
        [gpu(ENGINE, "0", "a0", namespace="team-a"), gpu(ENGINE, "0", "a1", namespace="gpu-operator")],
        {60: [TEAM]},
        {},
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "honorLabels": True}}},
    ),
    Case("ClaimsPending", "fires", claim("_x20 1"), {49: [], 50: [TEAM]}, WAITING, DRA),
    Case("ClaimsPending", "has a place", claim("_x20 1x10 stale"), {60: []}, WAITING, DRA),
    Case("ClaimsPending", "waits for something else", claim("1")[:1], {60: []}, WAITING, DRA),
    *[
        option
        for alert, metric, quiet, loud, first in OPTIONS
        for option in (
            Case(
                alert,
                "fires",
                [*many(1), gpu(metric, loud, "a0")],
                {first - 1: [], first: [{**A0, "gpu": "0"}]},
                {"rules": {alert: {"enabled": True}}},
            ),
            Case(
                alert,
                "at the edge",
                [*many(1), gpu(metric, quiet, "a0")],
                {90: []},
                {"rules": {alert: {"enabled": True}}},
            ),
            Case(alert, "series absent", many(1), {90: []}, {"rules": {alert: {"enabled": True}}}),
        )
    ],
    Case(
        "EccSingleBit",
        "an hour later",
        [*many(1), gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "0x20 100", "a0")],
        {82: []},
        {"rules": {"EccSingleBit": {"enabled": True}}},
    ),
    Case("MemoryFull", "fires", memory("0x20 950", "1000x20 50"), {30: [], 31: [{**A0, "gpu": "0"}]}, FULL),
    Case("MemoryFull", "at the edge", memory("949", "51"), {60: []}, FULL),
    Case(
        "XidOfApplication",
        "fires",
        [*many(1), xid("a0", "_x20 1x4 stale", 31)],
        {19: [], 20: [{**A0, "xid": "31"}], 60: []},
        OF_APPLICATION,
    ),
    Case("XidOfApplication", "a fatal one", [*many(1), xid("a0", "1", 79)], {60: []}, OF_APPLICATION),
    Case("PoolUnknown", "fires", unlabelled(2), {29: [], 30: [{}]}),
    Case("PoolUnknown", "labels are shown", many(2), {60: []}),
    # What happens to series: exporters that start anew, two of them, boards that change their number, another leader.
    Case(
        "EccDoubleBit",
        "the exporter was started anew by it",
        [*many(1), gpu(DOUBLE, "0x20 stale", "a0", instance="1"), gpu(DOUBLE, "_x22 1", "a0", instance="2")],
        {20: [], 24: [{**A0, "gpu": "0"}], 90: []},
    ),
    Case(
        "EccDoubleBit",
        "an exporter that was started anew, and an old error",
        [*many(1), gpu(DOUBLE, "7x20 stale", "a0", instance="1"), gpu(DOUBLE, "_x22 7", "a0", instance="2")],
        {24: [], 60: []},
    ),
    Case(
        "EccDoubleBit",
        "a board that has another number since one is lost",
        [
            *many(1),
            {
                f'{DOUBLE}{{gpu="3", UUID="x", Hostname="a0"}}': "0x20 stale",
                f'{DOUBLE}{{gpu="3", UUID="y", Hostname="a0"}}': "_x22 7x90",
            },
        ],
        {24: [], 60: []},
    ),
    Case(
        "EccDoubleBit",
        "instances of a board that is cut",
        [*many(1, "b"), *(gpu(DOUBLE, "0x20 1", "b0", GPU_I_ID=number, GPU_I_PROFILE="3g.40gb") for number in "12")],
        {21: [{"node": "b0", "pool": "b", "gpu": "0"}]},
        {},
        CUT,
    ),
    Case(
        "EccDoubleBit",
        "two exporters",
        [*many(1), gpu(DOUBLE, "0x20 1", "a0"), gpu(DOUBLE, "0x20 1", "a0", host="hostname", job="own")],
        {21: [{**A0, "gpu": "0"}]},
    ),
    Case(
        "EccDoubleBit",
        "was loaded anew, and failed again",
        [*many(1), gpu(DOUBLE, "7x20 0x10 1", "a0")],
        {25: [], 32: [{**A0, "gpu": "0"}]},
    ),
    Case(
        "AllocatedIdle",
        "the exporter was started anew",
        [
            gpu(ENGINE, "0.9x100 stale", "a0", exported_namespace="team-a", instance="1"),
            gpu(ENGINE, "_x102 0", "a0", exported_namespace="team-a", instance="2"),
        ],
        {120: [], 164: []},
    ),
    Case(
        "ReconcilerDownAtWork",
        "a former leader had work, the last one none",
        [
            leader("1x40 stale", "two"),
            program("operations", "2x20 stale", policy="a", pod="one"),
            program("operations", "_x21 0x18 stale", policy="a", pod="two"),
        ],
        {60: [], 70: []},
        {},
        PROGRAM,
    ),
    Case(
        "ReconcilerDownAtWork",
        "the last leader had work",
        [
            leader("1x40 stale", "two"),
            program("operations", "0x20 stale", policy="a", pod="one"),
            program("operations", "_x21 2x18 stale", policy="a", pod="two"),
        ],
        {54: [], 57: [{}]},
        {},
        PROGRAM,
    ),
    Case(
        "ExporterMissing",
        "somebody has taken the exporter away",
        [*many(2), daemons("nvidia-operator-validator")],
        {14: [], 16: [{}]},
    ),
    Case(
        "ExporterMissing",
        "no pod of it is due",
        [*many(2), daemons("nvidia-operator-validator"), daemons(EXPORTER)],
        {60: []},
    ),
    Case(
        "NvlinkDown",
        "two exporters",
        [
            *many(1),
            gpu(P2P, "5", "a0", peer_gpu="1", job="one"),
            gpu(P2P, "0", "a0", peer_gpu="2", job="one"),
            gpu(P2P, "5", "a0", peer_gpu="1", job="two"),
        ],
        {26: [{**A0, "gpu": "0"}]},
    ),
    Case("ExporterMissing", "nobody tells of DaemonSets", many(2), {60: []}),
    Case(
        "NodeExporterMissing",
        "scrapes that fail now and then",
        [*pods(1, EXPORTER), gpu(TEMPERATURE, "40x9 stale _x4 40x9 stale _x4 40", "a0")],
        {25: [], 40: []},
    ),
    Case(
        "NodeExporterMissing",
        "an exporter of claims",
        [*many(1), pod("nvidia-dcgm-exporter-dra", "a0"), gpu(TEMPERATURE, "40x20 stale", "a0")],
        {35: [], 37: [A0]},
        {},
        DRA,
    ),
    Case(
        "NodeXidFatal",
        "the exporter goes with it",
        [*many(1), xid("a0", "_x20 1 stale")],
        {22: [{**A0, "xid": "79"}], 34: [{**A0, "xid": "79"}], 37: []},
    ),
    Case(
        "NodeXidFatal",
        "an instance of a board that is cut",
        [*many(1, "b"), gpu(XIDS, "_x20 1x4 stale", "b0", xid="48", GPU_I_ID="3", window_size_in_ms="300000")],
        {21: [{"node": "b0", "pool": "b", "xid": "48"}]},
        {},
        CUT,
    ),
    Case(
        "NodeGpusMissing",
        "two kube-state-metrics, one of which is behind",
        [
            *many(1, gpus=SHORT),
            {f'{key[:-1]}, instance="2"}}': text for key, text in many(1, gpus="8x22 7")[0].items()},
        ],
        {32: [], 33: [A0]},
    ),
    Case(
        "NodeGpuHot",
        "the card says it in one scrape of two",
        [*many(1), gpu(TEMPERATURE, "99", "a0"), gpu(SLOWDOWN, "87 _ 87 _ 87 _ 87 _ 87 _ 87 _ 87 _ 87", "a0")],
        {12: [{**A0, "gpu": "0"}]},
    ),
    Case(
        "NodeGpuHot",
        "two exporters, one of which doesn't say at what it slows down",
        [*heat("99"), gpu(TEMPERATURE, "99", "a0", host="hostname", job="own")],
        {12: [{**A0, "gpu": "0"}]},
    ),
    Case(
        "DriverCrashLoop",
        "kube-state-metrics was started anew",
        [
            *many(1),
            {key: text for key, text in pod(DRIVER, "a0").items() if "restarts" not in key},
            {f'{RESTARTS}, instance="1"}}': "0x20 1 2 3 stale", f'{RESTARTS}, instance="2"}}': "_x25 4 5 6 7 8x120"},
        ],
        {40: [A0]},
    ),
    Case(
        "MigFailed",
        "cut again in time",
        [*many(1, "b"), mig("b0", "failed", "1x9 stale"), mig("b0", "success", "_x10 1")],
        {12: [], 30: []},
        {},
        CUT,
    ),
    Case(
        "ReconcilerDown",
        "it moves to another node",
        [leader("1x20 stale", "one"), leader("_x25 1", "two")],
        {24: [], 40: []},
        {},
        PROGRAM,
    ),
]


def read_by(alert: str, rendered: Body) -> Body:
    """Of the RENDERED rules those of ALERT, and what it reads."""
    names = {f"gpustack:{name}{end}" for name in alerts.alert(alert).records for end in ("", ":raw")}
    names |= {"gpustack:node_pool", "gpustack:promised_gpus", f"GPUStack{alert}"}
    (group,) = rendered["groups"]
    return {
        "groups": [
            {**group, "rules": [each for each in group["rules"] if each.get("alert", each.get("record")) in names]}
        ]
    }


@pytest.mark.parametrize("alert", list(alerts.alerts()))
def test_alert(alert: str, tmp_path: Path) -> None:
    """In each case it fires when the case says so, with these labels, and in no other of the minutes."""
    tries = []
    for case in (case for case in CASES if case.alert == alert):
        series = {name: values for each in case.series for name, values in each.items()}
        tries.append(Tried(case.kind, read_by(alert, rules(case.settings, **case.sections)), series, case.firing))
    assert asked(tmp_path, alert, tries) == ""


def test_every_alert_is_tried() -> None:
    """With a case in which it fires, and one in which it doesn't."""
    fires = {case.alert for case in CASES if any(case.firing.values())}
    quiet = {case.alert for case in CASES if not any(case.firing.values())}
    assert fires == quiet == set(alerts.alerts())
