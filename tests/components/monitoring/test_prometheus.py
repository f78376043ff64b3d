"""A whole Prometheus with the rules as rendered, scraping an exporter and two kube-state-metrics that replay series.

What promtool can't show: that every rule works when each node is told of twice, and what the person on call reads.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gpustack.catalog import alerts
from gpustack.policy.configurations.promql import named
from tests.components.monitoring.promtool import POOLS, Series, brought, gpu, node, pod, rules
from tests.components.monitoring.test_dashboards import asked
from tests.components.monitoring.test_dashboards import found as boards

NODES = ("a0", "a1")
CUT = {**POOLS[1], "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}


def kube_state() -> Series:
    """What kube-state-metrics tells of nodes that have been there for long, and of their exporters."""
    found: Series = {}
    for name in NODES:
        found |= {**node(name, gpus="7"), **pod("nvidia-dcgm-exporter", name), **pod("nvidia-driver-daemonset", name)}
    return found


def exporter(xids: bool) -> Series:
    """What the exporters tell of a GPU of each node, with XIDS once it has failed."""
    found: Series = {}
    for name in NODES:
        found |= {**gpu("DCGM_FI_DEV_GPU_TEMP", "90", name), **gpu("DCGM_FI_DEV_SLOWDOWN_TEMP", "87", name)}
        found |= gpu("DCGM_EXP_XID_ERRORS_COUNT", "1", name, xid="79", window_size_in_ms="300000") if xids else {}
    return found


def text(series: Series) -> bytes:
    """SERIES as they are scraped: the first value of each."""
    return "".join(f"{name} {values.partition('x')[0]}\n" for name, values in series.items()).encode()


@contextlib.contextmanager
def replayed(told: Callable[[str, int], Series]) -> Iterator[str]:
    """An address with what is TOLD at /exporter, by the number of the scrape, and at /one and /two."""
    scrapes = iter(range(1000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(told(self.path, next(scrapes) if self.path == "/exporter" else 0))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def failing(path: str, scrape: int) -> Series:
    """GPUs that fail with the third scrape."""
    return exporter(scrape > 1) if path == "/exporter" else kube_state()


@functools.cache
def read() -> frozenset[str]:
    """The series that dashboards read; found once, by the test itself, as Node answers one thread alone."""
    return frozenset(metric.name for query in asked(boards()).values() for metric in named(query).metrics)


def whole(path: str, _: int) -> Series:
    """Every series that dashboards read: of a whole GPU and of one that is cut, their pods, and a reconciler."""
    held: dict[str, Any] = {"exported_namespace": "team-a", "exported_pod": "p", "DCGM_FI_DRIVER_VERSION": "580"}
    found: Series = {}
    for name in sorted(read() if path == "/exporter" else ()):
        if name.startswith("DCGM_"):
            found |= gpu(name, "1", "a0", modelName="H100", xid="79", **held)
            for number in "12":
                found |= gpu(name, "1", "a1", modelName="H100", GPU_I_ID=number, GPU_I_PROFILE="3g.40gb", **held)
        elif name.startswith("gpustack_reconciler_"):
            labels = 'policy="a", kind="mig", phase="Acting", state="%s", reason="budget", node="a0", le="+Inf"'
            found |= {f"{name}{{{labels % state}}}": "1" for state in ("all", "current", "quarantined", "uncovered")}
    if path == "/exporter":
        return found
    pods = 'namespace="team-a", pod="p"'
    return kube_state() | {
        'kube_node_labels{node="a1", label_nvidia_com_mig_config_state="success"}': "1",
        'kube_node_status_allocatable{node="a1", resource="nvidia_com_mig_3g_40gb"}': "2",
        f'kube_pod_container_resource_requests{{{pods}, container="c", resource="nvidia_com_gpu"}}': "1",
        f'kube_pod_status_phase{{{pods}, phase="Running"}}': "1",
        f"kube_pod_status_unschedulable{{{pods}}}": "1",
        'kube_pod_status_ready{namespace="gpu-operator", pod="q", condition="false"}': "1",
        'kube_resourcequota{namespace="team-a", resource="requests.nvidia.com/gpu", type="hard"}': "8",
    }


@contextlib.contextmanager
def prometheus(folder: Path, rendered: Any, target: str, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a Prometheus on HOST that evaluates the RENDERED rules and scrapes TARGET, each second."""
    with socket.socket() as free:
        free.bind((host, 0))
        address = f"{host}:{free.getsockname()[1]}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {"job_name": path, "metrics_path": f"/{path}", "static_configs": [{"targets": [target]}]}
            for path in ("exporter", "one", "two")
        ],
    }
    (folder / "rules.yaml").write_text(json.dumps(rendered), encoding="utf-8")
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    words = [brought("prometheus"), "--config.file=config.yaml", "--storage.tsdb.path=data"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([*words, f"--web.listen-address={address}"], cwd=folder, stdout=log, stderr=log)
        try:
            yield address
        finally:
            running.kill()
            running.wait()


def groups(address: str) -> list[Any]:
    """The rules that the Prometheus at ADDRESS has, with their states; none as long as it doesn't answer."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/rules", timeout=5) as answer:
            found: list[Any] = json.load(answer)["data"]["groups"]
    except OSError:
        return []
    return [rule for group in found for rule in group["rules"]]


def test_alerts_in_a_prometheus(tmp_path: Path) -> None:
    """Every rule is evaluated without an error; a GPU that fails alerts within seconds, by its node and pool, in a
    sentence that names what failed, and so do two such nodes together.
    """
    sections = {"nodePools": [POOLS[0], CUT], "driver": {"licensingConfig": {"secretName": "licensing"}}}
    everything = {"rules": {name: {"enabled": True} for name in alerts.alerts()}}
    program = {"reconciler": {"image": "registry.example/gpustack-reconciler:1"}}
    rendered = rules(everything, **sections, **program)
    with replayed(failing) as target, prometheus(tmp_path, rendered, target) as address:
        firing: dict[str, list[Any]] = {}
        for _ in range(60):
            found = groups(address)
            firing = {one["name"]: one["alerts"] for one in found if one.get("state") == "firing"}
            if "GPUStackXidFatal" in firing and all(one["health"] == "ok" for one in found):
                break
            time.sleep(0.5)
        else:
            pytest.fail(f"{sorted(firing)}\n{(tmp_path / 'log').read_text(encoding='utf-8')[-3000:]}")
        assert {one["name"]: one["lastError"] for one in found if one.get("lastError")} == {}
    told = {each["labels"]["node"]: each for each in firing["GPUStackNodeXidFatal"]}
    assert set(told) == set(NODES)
    assert told["a0"]["labels"]["pool"] == "a"
    said = told["a0"]["annotations"]["description"]
    assert said == "Node a0 had XID 79, after which a GPU doesn't work on by itself."
    (page,) = firing["GPUStackXidFatal"]
    assert page["labels"]["severity"] == "critical"
    assert page["annotations"]["description"].startswith("2 nodes had an XID error")
    pending = {one["name"] for one in found if one.get("state") == "pending"}
    assert {"GPUStackGpusMissing", "GPUStackNodeGpusMissing", "GPUStackGpuHot", "GPUStackNodeGpuHot"} <= pending


QUIET = {
    "cluster: Changes of the last XID, in an hour A",
    "cluster: Time at the power limit A",
    "cluster: Corrected memory errors, in an hour A",
    "cluster: PCIe replays, in an hour A",
    "tenants: Had for an hour, and nothing ran A",
}
"""Queries that have no answer where nothing changes, and all GPUs work."""


def answer(address: str, query: str) -> list[Any]:
    """What the Prometheus at ADDRESS answers to QUERY; an error where it can't."""
    with urllib.request.urlopen(f"http://{address}/api/v1/query?{urlencode({'query': query})}", timeout=5) as said:
        found: list[Any] = json.load(said)["data"]["result"]
    return found


def test_dashboards_in_a_prometheus(tmp_path: Path) -> None:
    """Every query of every dashboard is answered where each node is told of twice, and shows it once."""
    queries = {
        at: query.replace("$namespace", "team-a").replace("$node", "a0") for at, query in asked(boards()).items()
    }
    assert read()
    with replayed(whole) as target, prometheus(tmp_path, rules({}), target) as address:
        for _ in range(60):
            with contextlib.suppress(OSError):
                if len(answer(address, "count by (job) (up == 1)")) == 3 and answer(address, "gpustack:node_pool"):
                    break
            time.sleep(0.5)
        time.sleep(2)
        shown = {at: answer(address, query) for at, query in queries.items()}
    assert {at for at, result in shown.items() if not result} == QUIET
    offered = {one["metric"]["resource"]: one["value"][1] for one in shown["cluster: Offered and requested A"]}
    assert offered == {"nvidia_com_gpu": "14", "nvidia_com_mig_3g_40gb": "2"}
    assert [one["value"][1] for one in shown["tenants: Requested, by namespace A"]] == ["1"]
    assert [one["value"][1] for one in shown["cluster: Power A"]] == ["2"]
