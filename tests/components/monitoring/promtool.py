"""Asking Prometheus' own promtool which alerts fire: on the rules as rendered, and on series that we make up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

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
SHOWN = ("node", "pool", "gpu", "xid")


def rules(alerts: Mapping[str, Any] | None = None, **sections: Any) -> Body:
    """The PrometheusRule's spec, with what a policy says of ALERTS and in its other SECTIONS."""
    monitored = {"monitoring": True, **sections.pop("cluster", {})}
    policy = spec(**{"nodePools": POOLS, "alerts": dict(alerts or {}), "cluster": monitored, **sections})
    found = alerts_inputs.from_cluster(resolve(policy))
    assert found
    body: Body = render(Alerts, found)["PrometheusRule/gpustack-alerts"]["spec"]
    return body


class Moment(NamedTuple):
    """A minute, and which alerts fire then."""

    minute: int
    firing: Firing


def asked(folder: Path, rendered: Body, alert: str, series: Series, *moments: Moment) -> str:
    """What promtool says against RENDERED if ALERT doesn't fire as MOMENTS say, with SERIES that are scraped every
    minute; "" where it does.
    """
    program = shutil.which("promtool", path=os.pathsep.join((os.environ["PATH"], str(ROOT / ".tools" / "bin"))))
    if program is None:
        pytest.skip("no promtool: tools/promtool.sh")
    shown = f'group by ({", ".join(SHOWN)}) (ALERTS{{alertname="GPUStack{alert}", alertstate="firing"}})'
    tests = [
        {
            "expr": shown,
            "eval_time": f"{moment.minute}m",
            "exp_samples": [
                {"labels": "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}", "value": 1}
                for labels in moment.firing
            ],
        }
        for moment in moments
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rendered), encoding="utf-8")
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": tests}],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(test), encoding="utf-8")
    done = subprocess.run(
        [program, "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


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
