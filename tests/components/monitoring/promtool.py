"""Asking Prometheus' own promtool which alerts fire: on the rules as rendered, and on series that we make up."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.monitoring import alerts_inputs
from gpustack.components.monitoring.alerts import Alerts
from gpustack.model import Body
from tests.components.common import render, spec

ROOT = Path(__file__).parents[3]
LONG = 180
"""Minutes for which series go on that never change."""
POOLS = [
    {
        "name": name,
        "gpuProduct": "NVIDIA-H100-80GB-HBM3",
        "gpusPerNode": 8,
        "nodeSelector": {"example.com/pool": name},
    }
    for name in ("a", "b")
]
Series = dict[str, str]
Firing = list[dict[str, str]]
"""The labels of each alert that fires, of those in SHOWN."""
SHOWN = ("node", "pool", "gpu", "xid", "policy", "namespace")


def rules(alerts: Mapping[str, Any] | None = None, **sections: Any) -> Body:
    """The PrometheusRule's spec, with what a policy says of ALERTS and in its other SECTIONS."""
    monitored = {"monitoring": True, **sections.pop("cluster", {})}
    return _rendered(json.dumps({"nodePools": POOLS, "alerts": {**(alerts or {})}, "cluster": monitored, **sections}))


@functools.cache
def _rendered(sections: str) -> Body:
    found = alerts_inputs.from_cluster(resolve(spec(**json.loads(sections))))
    assert found
    body: Body = render(Alerts, found)["PrometheusRule/gpustack-alerts"]["spec"]
    return body


class Tried(NamedTuple):
    """The RENDERED rules, SERIES that are scraped every minute, and which alerts are FIRING in some minutes. NAME says
    what is tried.
    """

    name: str
    rendered: Body
    series: Series
    firing: Mapping[int, Firing]


def brought(name: str) -> str:
    """The program NAME of Prometheus; without it the test is skipped."""
    found = shutil.which(name, path=os.pathsep.join((os.environ["PATH"], str(ROOT / ".tools" / "bin"))))
    if found is None:
        pytest.skip(f"no {name}: tools/promtool.sh")
    return found


def asked(folder: Path, alert: str, tries: Iterable[Tried]) -> str:
    """What promtool says of those TRIES in which ALERT doesn't fire as they say; "" where it does in all of them."""
    program = brought("promtool")
    shown = f'group by ({", ".join(SHOWN)}) (ALERTS{{alertname="GPUStack{alert}", alertstate="firing"}})'
    files = [_write(folder, shown, one) for one in tries]
    done = subprocess.run(
        [program, "test", "rules", *files],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    parts = done.stdout.split("Unit Testing:")
    return "" if done.returncode == 0 else "\n".join(part for part in parts if "SUCCESS" not in part)


def _write(folder: Path, shown: str, one: Tried) -> str:
    """The name of the file that tells promtool of ONE."""
    moments = [
        {
            "expr": shown,
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": _text(each), "value": 1} for each in firing],
        }
        for minute, firing in one.firing.items()
    ]
    given = [{"series": name, "values": values} for name, values in one.series.items()]
    test = {
        "rule_files": [f"{one.name}.rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": moments}],
    }
    (folder / f"{one.name}.rules.yaml").write_text(json.dumps(one.rendered), encoding="utf-8")
    (folder / f"{one.name}.yaml").write_text(json.dumps(test), encoding="utf-8")
    return f"{one.name}.yaml"


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def node(
    name: str, pool: str = "a", *, gpus: str = "8", ready: str = "1", created: int = -86400, gone: int = LONG
) -> Series:
    """What kube-state-metrics serves of a node; GPUS and READY are values that last, or values in promtool's words. The
    node is there until the minute GONE.
    """
    about = f'node="{name}"'
    gpu = f'{about}, resource="nvidia_com_gpu"'
    until = f"x{gone}"
    return {
        f'kube_node_labels{{{about}, label_example_com_pool="{pool}"}}': f"1{until}",
        f"kube_node_created{{{about}}}": f"{created}{until}",
        f'kube_node_status_condition{{{about}, condition="Ready", status="true"}}': lasting(ready, gone),
        f"kube_node_status_capacity{{{gpu}}}": f"8{until}",
        f"kube_node_status_allocatable{{{gpu}}}": lasting(gpus, gone),
    }


def lasting(values: str, minutes: int = LONG) -> str:
    """VALUES, the last one for so many MINUTES if nothing else is said."""
    last = values.rpartition(" ")[2]
    return values if "x" in last or last == "stale" else f"{values}x{minutes}"


def gpu(metric: str, values: str, name: str, number: int = 0, *, host: str = "Hostname", **labels: str) -> Series:
    """A series of the exporter for a GPU of the node NAME, which newer exporters call HOST otherwise."""
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return {f'{metric}{{gpu="{number}", UUID="GPU-{name}-{number}", {host}="{name}"{more}}}': lasting(values)}


def pod(daemonset: str, name: str, *, ready: str = "1", restarts: str = "0", gone: int = LONG) -> Series:
    """The pod of DAEMONSET on the node NAME, until the minute GONE."""
    about = f'namespace="gpu-operator", pod="{daemonset}-{name}"'
    made = f'node="{name}", created_by_kind="DaemonSet", created_by_name="{daemonset}"'
    return {
        f"kube_pod_info{{{about}, {made}}}": f"1x{gone}",
        f'kube_pod_status_ready{{{about}, condition="true"}}': lasting(ready, gone),
        f'kube_pod_container_status_restarts_total{{{about}, container="main"}}': lasting(restarts, gone),
    }


def program(metric: str, values: str, **labels: str) -> Series:
    """A series of the reconciler."""
    text = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    return {f"gpustack_reconciler_{metric}{{{text}}}": lasting(values)}


def asked_of(folder: Path, query: str, series: Series, shown: Mapping[str, float], minute: int = 120) -> str:
    """What promtool says where QUERY doesn't answer with what is SHOWN, values by labels, in that MINUTE; else ""."""
    moment = {"expr": query, "eval_time": f"{minute}m"}
    samples = [{"labels": labels, "value": value} for labels, value in shown.items()]
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": given, "promql_expr_test": [{**moment, "exp_samples": samples}]}
    (folder / "query.yaml").write_text(json.dumps({"evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    program = [brought("promtool"), "test", "rules", "query.yaml"]
    done = subprocess.run(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout
