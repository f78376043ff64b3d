"""Dashboards: every query is one that Prometheus reads, over series that the cluster has; what they show of a cluster
that we make up; their structure, as Grafana's own models read it; and what is left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import stat, table, timeseries

from gpustack.catalog import dashboards as known
from gpustack.cluster.metrics import served
from gpustack.cluster.resolve import resolve
from gpustack.components.monitoring.dashboards import Dashboards
from gpustack.components.monitoring.monitoring_inputs import dashboards as from_cluster
from gpustack.components.plugin.configs_inputs import metrics_map
from gpustack.policy.configurations.dcgm_csv import read_metrics
from gpustack.policy.configurations.promql import named, wrong
from tests.components.common import render, spec
from tests.components.monitoring.promtool import POOLS, Series, asked_of, brought, gpu, lasting, node, program
from tests.components.reconciler.common import IMAGE

ROOT = Path(__file__).parents[3]
CUT = {**POOLS[1], "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}
WHOLE: dict[str, Any] = {
    "cluster": {"monitoring": True},
    "nodePools": [POOLS[0], CUT],
    "alerts": {},
    "reconciler": {"image": IMAGE},
}
OWN_LIST: dict[str, Any] = {"dcgmExporter": {"config": {"data": "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\n"}}}
HONOURED = {"dcgmExporter": {"serviceMonitor": {"honorLabels": True}}}
STATE_METRICS = {
    "kube_node_labels",
    "kube_node_status_allocatable",
    "kube_node_status_capacity",
    "kube_pod_container_resource_requests",
    "kube_pod_status_phase",
    "kube_pod_status_ready",
    "kube_pod_status_unschedulable",
    "kube_resourcequota",
}
"""Of kube-state-metrics (docs/metrics of its repository), stable ones and kube_resourcequota."""
SHAPES = {
    "bare": {},
    "clusters": {"clusterLabel": "k8s_cluster"},
}


def found(said: Mapping[str, Any] | None = None, **sections: Any) -> dict[str, dict[str, Any]]:
    """The dashboards of a policy that SAID this of them, by name, as Grafana reads them."""
    inputs = from_cluster(resolve(spec(**{**WHOLE, **sections}, dashboards={**(said or {})})))
    bodies = render(Dashboards, inputs) if inputs else {}
    texts = {key.rpartition("-")[2]: body["data"] for key, body in bodies.items()}
    return {name: json.loads(next(iter(data.values()))) for name, data in texts.items()}


def panels(boards: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every panel that asks something, with where it is."""
    for name, board in boards.items():
        yield from ((f"{name}: {each['title']}", each) for each in board["panels"] if each["type"] != "row")


def asked(boards: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Every query, those of variables too, with values for the variables of Grafana."""
    queries = {f"{at} {each['refId']}": each["expr"] for at, panel in panels(boards) for each in panel["targets"]}
    for name, board in boards.items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                queries[f"{name}: {variable['name']}"] = re.fullmatch(r"query_result\((.*)\)", variable["query"])[1]  # type: ignore[index]
    return {at: query.replace("$__rate_interval", "5m").replace("$node", "a0") for at, query in queries.items()}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sections", [{}, HONOURED], ids=["", "honoured"])
def test_every_query_is_one(tmp_path: Path, shape: str, sections: dict[str, Any]) -> None:
    """promtool reads each, with a cluster to choose and without, and so does the parser that reviews go by."""
    queries = asked(found(SHAPES[shape], **sections))
    assert len(queries) > 90
    assert [at for at, query in queries.items() if wrong(query)] == []
    rules = [{"record": f"q{number}", "expr": query} for number, query in enumerate(queries.values())]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(
        [brought("promtool"), "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, f"{len(rules)} rules found" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("sections", [{}, {"alerts": None}, OWN_LIST, {"nodePools": POOLS}], ids=str)
def test_series_that_are_there(sections: dict[str, Any]) -> None:
    """A query names series of the exporter's list as rendered, of kube-state-metrics, of the reconciler as its page has
    them, and recorded ones that are rendered too.
    """
    said = {**WHOLE, **sections}
    cluster = resolve(spec(**said, dashboards={}))
    page = (ROOT / "docs" / "reconciler.md").read_text(encoding="utf-8")
    reconciler = set(re.findall(r"^\| `(gpustack_reconciler_\w+)` \| (?:gauge|counter)", page, re.MULTILINE))
    for name in re.findall(r"^\| `(gpustack_reconciler_\w+)` \| histogram", page, re.MULTILINE):
        reconciler |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"}
    data = metrics_map(cluster).data
    rows = read_metrics(data["dcgm-metrics.csv"]).rows if data else ()
    exporter = {row.name for row in rows if row.type != "label"} or set(served(cluster.spec) or ())
    recorded = {"ALERTS", "gpustack:short_of_gpus"} if said["alerts"] is not None else set()
    queries = asked(found({"clusterLabel": "cluster"}, **sections))
    have = STATE_METRICS | reconciler | exporter | recorded
    read = {at: {metric.name for metric in named(query).metrics} for at, query in queries.items()}
    choices = {at: names for at, names in read.items() if at[-2] != " "}
    assert {at: names - have for at, names in read.items() if at not in choices and names - have} == {}
    assert [at for at, names in choices.items() if not names & have] == [], "what is chosen may be known from elsewhere"


def test_counters_are_switched_on() -> None:
    """What dashboards read beside the image's list is added to it; a list of the policy's own stays as it is."""
    text = (metrics_map(resolve(spec(dashboards={}))).data or {})["dcgm-metrics.csv"]
    names = {row.name for row in read_metrics(text).rows}
    assert {"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_DEV_GPU_UTIL"} <= names
    assert metrics_map(resolve(spec())).data is None
    own = metrics_map(resolve(spec(dashboards={}, **OWN_LIST)))
    assert own.data == {"dcgm-metrics.csv": OWN_LIST["dcgmExporter"]["config"]["data"]}


def test_the_last_xid_is_never_shown() -> None:
    """The gauge keeps the last XID for ever: only a change of it says that something happened."""
    of = [
        m.function for query in asked(found()).values() for m in named(query).metrics if m.name.endswith("XID_ERRORS")
    ]
    assert set(of) == {"changes"}


def test_what_nobody_is_paged_for() -> None:
    """It is on the board of a node: use, memory, power, temperatures, corrected errors, replays, rows, XIDs."""
    read = {m.name for query in asked({"node": found()["node"]}).values() for m in named(query).metrics}
    assert read >= {
        *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_GPU_TEMP"),
        *("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_ROW_REMAP_PENDING"),
        *("DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_DEV_XID_ERRORS"),
    }


TYPES = {"stat": stat, "timeseries": timeseries, "table": table}


@pytest.mark.parametrize("shape", SHAPES)
def test_structure(shape: str) -> None:
    """Grafana's models read each board and write the same; nothing lies over another thing or beyond the 24 columns;
    ids are unique in a board, and uids and titles among them.
    """
    boards = found(SHAPES[shape])
    for board in boards.values():
        again = json.loads(JSONEncoder().encode(models.Dashboard.from_json(board)))
        assert again == board
        taken: set[tuple[int, int]] = set()
        for each in board["panels"]:
            at = each["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & taken, each["title"]
            assert max(x for x, _ in cells) < 24, each["title"]
            taken |= cells
        ids = [each["id"] for each in board["panels"]]
        assert len(set(ids)) == len(ids)
    for at, panel in panels(boards):
        options = TYPES[panel["type"]].Options
        assert json.loads(JSONEncoder().encode(options.from_json(panel["options"]))) == panel["options"], at
    assert len({board["uid"] for board in boards.values()} | {board["title"] for board in boards.values()}) == 2 * len(
        boards
    )


def test_which_there_are() -> None:
    """All but those that would show nothing: one of all clusters without a label of them, of MIG, of roll-outs."""
    every = set(typing.get_args(known.Name))
    assert every == set(known.boards()) == set(found({"clusterLabel": "cluster"}))
    assert set(found()) == every - {"fleet"}
    assert set(found(nodePools=POOLS, reconciler=None)) == {"cluster", "node", "tenants"}
    assert set(found({"leaveOut": ["mig", "node"]})) == {"cluster", "tenants", "rollout"}
    assert found({"enabled": False}) == {}
    nothing = {"dcgmExporter": {"enabled": False}, "reconciler": None, "alerts": None}
    assert found({"kubeStateMetrics": False}, **nothing) == {}


def test_what_is_left_out() -> None:
    """A panel of which the exporter, kube-state-metrics or a rule that isn't rendered gives nothing; of others what is
    there.
    """

    def titles(boards: dict[str, Any]) -> set[str]:
        return {at for at, _ in panels(boards)}

    own = found({}, **OWN_LIST)
    assert {at for at in titles(own) if at.startswith("node")} == {"node: GPUs", "node: Offered", "node: Temperature"}
    (heat,) = (panel for at, panel in panels(own) if at == "node: Temperature")
    assert len(heat["targets"]) == 1
    assert titles(found()) - titles(found(alerts=None)) == {
        "cluster: Nodes short of GPUs, by pool",
        "cluster: Alerts about GPUs",
    }
    assert titles(found({"kubeStateMetrics": False})) & {"node: Offered", "tenants: Quotas", "node: Power"} == {
        "node: Power"
    }
    peers = {at for at in titles(found()) if "NVLink" in at}
    assert titles(found()) - titles(found(nodePools=[{**POOLS[0], "gpuProduct": "NVIDIA-L4"}, CUT])) == peers != set()
    unknown = {"dcgmExporter": {"config": {"name": "made-by-others"}}}
    assert titles(found({}, **unknown)) == titles(found()), "nobody knows that list"


def test_objects() -> None:
    """ConfigMaps with the label and the folder of the sidecar, or objects of Grafana's operator, where they are asked
    for; the text is the same, a line for each panel.
    """

    def made(**said: Any) -> dict[str, Any]:
        inputs = from_cluster(resolve(spec(**WHOLE, dashboards=said)))
        assert inputs
        return render(Dashboards, inputs)

    plain = made()["ConfigMap/gpustack-dashboard-node"]
    assert plain["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert (plain["metadata"]["namespace"], plain["metadata"].get("annotations")) == ("gpu-operator", None)
    (text,) = plain["data"].values()
    board = json.loads(text)
    lines = text.splitlines()
    assert len(lines) == len(board["panels"]) + 3
    assert [line for line in lines[2:-1] if not line.startswith('{"title": ')] == [], "a diff says which one it is"
    said = {"namespace": "grafana", "folder": "GPUs", "labels": {"dash": "yes"}}
    told = made(**said)["ConfigMap/gpustack-dashboard-node"]["metadata"]
    assert (told["namespace"], told["annotations"]) == ("grafana", {"grafana_folder": "GPUs"})
    assert told["labels"] == {"gpustack.dev/guarded": "true", "dash": "yes"}
    objects = made(output="grafanaOperator", **said)
    body = objects["GrafanaDashboard/gpustack-dashboard-node"]
    assert body["spec"]["instanceSelector"] == {"matchLabels": {"dashboards": "grafana"}}
    assert (body["spec"]["folder"], body["spec"]["json"]) == ("GPUs", text)
    chosen = made(output="grafanaOperator", instanceSelector={"env": "prod"})[
        "GrafanaDashboard/gpustack-dashboard-node"
    ]
    assert (chosen["spec"]["instanceSelector"], "labels" in chosen["metadata"]) == (
        {"matchLabels": {"env": "prod"}},
        False,
    )


def test_flux_leaves_them_alone() -> None:
    """No ${...} in them: Flux puts a variable of its own there, or nothing, where substitution is on."""
    assert "${" not in json.dumps(found({"clusterLabel": "cluster"}))


def instance(metric: str, values: str, number: int) -> Series:
    """A series of the exporter for an instance of a GPU that is cut."""
    return gpu(metric, values, "b0", GPU_I_ID=str(number), GPU_I_PROFILE="3g.40gb")


POWER, BUSY, XID = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_XID_ERRORS"
USED, AT_LIMIT = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_VIOLATION"
CHANGES, IDLE = "node: Changes of the last XID, in an hour A", "tenants: Had for an hour, and nothing ran A"
TEAM: dict[str, Any] = {"exported_namespace": "team-a", "exported_pod": "trainer"}
TRAINER = '{exported_namespace="team-a", exported_pod="trainer"}'


def asks(pod: str, gpus: str, **phases: str) -> Series:
    """A pod of team-a, how many GPUs it asks for, and which PHASES it is in."""
    about = f'namespace="team-a", pod="{pod}"'
    in_phase = {f'kube_pod_status_phase{{{about}, phase="{phase}"}}': lasting(value) for phase, value in phases.items()}
    asked_for = f'kube_pod_container_resource_requests{{{about}, container="c", resource="nvidia_com_gpu"}}'
    return {asked_for: lasting(gpus), **in_phase}


SHOWN: list[tuple[str, list[Series], dict[str, float]]] = [
    # An H100 that is cut in two draws its 300 W once, whoever tells of it; beside it one of a newer exporter.
    (
        "cluster: Power A",
        [instance(POWER, "300", 1), instance(POWER, "300", 2), gpu(POWER, "200", "a0", host="hostname")],
        {"{}": 500},
    ),
    (
        "mig: Instances, by profile A",
        [instance(USED, "1", 1), instance(USED, "1", 2)],
        {'{GPU_I_PROFILE="3g.40gb"}': 2},
    ),
    # Of one node alone, whatever its exporter calls it.
    ("node: Busy A", [gpu(BUSY, "0.5", "a0"), gpu(BUSY, "0.9", "a1")], {'{gpu="0"}': 0.5}),
    (
        "node: Busy A",
        [gpu(BUSY, "0.5", "a0", host="hostname"), gpu(BUSY, "0.9", "a1", host="hostname")],
        {'{gpu="0"}': 0.5},
    ),
    # 3e8 nanoseconds of each minute at the limit are half a percent.
    ("node: Time at the power limit A", [gpu(AT_LIMIT, "0+3e8x180", "a0")], {'{gpu="0"}': 0.5}),
    # XID 13 stays in the gauge: a change of minute 70 is one within the hour, and that of minute 40 is over.
    (CHANGES, [gpu(XID, "0x69 13x120", "a0")], {'{gpu="0"}': 1}),
    (CHANGES, [gpu(XID, "0x39 13x120", "a0")], {'{gpu="0"}': 0}),
    # A pod that waits asks for its GPUs as one that runs does; one that is done, or failed, has none any more.
    (
        "tenants: Requested, by namespace A",
        [
            asks("one", "4", Running="1", Pending="0"),
            asks("two", "2", Running="0", Pending="1"),
            asks("old", "8", Running="0", Pending="0", Succeeded="1"),
        ],
        {'{namespace="team-a", resource="nvidia_com_gpu"}': 6},
    ),
    (IDLE, [gpu(BUSY, "0.5x50 0x130", "a0", **TEAM)], {TRAINER: 1}),
    (IDLE, [gpu(BUSY, "0.5x70 0x130", "a0", **TEAM)], {}),
    # An exporter that two jobs scrape, or that was started anew within the hour, has each device once.
    (IDLE, [gpu(BUSY, "0", "a0", job=job, **TEAM) for job in ("one", "two")], {TRAINER: 1}),
    (
        IDLE,
        [
            gpu(BUSY, "0.5x90 stale", "a0", instance="1", **TEAM),
            gpu(BUSY, "_x92 0x60", "a0", instance="2", **TEAM),
        ],
        {},
    ),
    ("cluster: Offered and requested A", [node("a0"), node("a1", gpus="7")], {'{resource="nvidia_com_gpu"}': 15}),
    # Two copies of the reconciler tell of the same nodes.
    (
        "rollout: Up to date A",
        [
            program("nodes", values, policy="a", state=state, pod=pod)
            for pod in ("p", "q")
            for state, values in (("all", "4"), ("current", "3"))
        ],
        {"{}": 0.75},
    ),
]


@pytest.mark.parametrize(("at", "series", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_what_panels_show(tmp_path: Path, at: str, series: list[Series], shown: dict[str, float]) -> None:
    """Numbers of a cluster that we know, by promtool, in minute 120."""
    query = asked(found())[at].replace("$namespace", "team-a")
    assert asked_of(tmp_path, query, {key: value for each in series for key, value in each.items()}, shown) == ""


def test_nobody_pays_who_asks_for_none() -> None:
    """Inputs are made without Grafana's builders: a render of what is in the cache doesn't load them."""
    code = "import sys, gpustack.components.monitoring.monitoring_inputs, gpustack.checks.monitoring.monitoring"
    loaded = f"{code}; sys.exit(any(name.startswith('grafana') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, check=False).returncode == 0
