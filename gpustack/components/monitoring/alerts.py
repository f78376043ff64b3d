"""Alerts about GPUs, as a PrometheusRule: the expressions of the catalogue (catalog/data/alerts.yaml), for these pools.

Prometheus knows nodes and no pools. `gpustack:node_pool` says which node is of which pool, by the labels that
kube-state-metrics is told to show; a node without them is of no pool, and alerts as any other does. A silence is a part
of the expression, so that it ends without a render, on the day that the policy says.
"""

import json
import re
from collections.abc import Iterator
from string import Template

from ...catalog import alerts as known
from ...model import Body, docs
from ..component import Component
from ..parts.monitoring import prometheus_rule
from .alerts_inputs import AlertsInputs, PoolInputs, RuleInputs

NAME = "gpustack-alerts"
SERIES = "gpustack:"
NODE = ', "node", "$1", "Hostname", "(.+)"), "node", "$1", "hostname", "(.+)")'
"""What ends a series of the exporter, to have the label node by either name that the exporter has for it."""

EXCUSED = "\nunless on (node) gpustack_reconciler_node_phase_since_seconds"
"""Leaves out the nodes that the reconciler works on, or has put out of service."""

DAEMONSETS = {
    "driver": "nvidia-driver-daemonset.*|nvidia-gpu-driver-.*|nvidia-vgpu-manager-daemonset.*",
    "exporter": "nvidia-dcgm-exporter|nvidia-dcgm-exporter-dra",
    "validator": "nvidia-operator-validator|nvidia-dra-validator",
    "plugin": "nvidia-device-plugin-daemonset",
}
"""Whose pods are what."""


class Alerts(Component[AlertsInputs]):
    """The alerts that the policy asks for, and the series that they read."""

    stage = "monitoring"

    def manifests(self, inputs: AlertsInputs) -> Iterator[Body]:
        rules = [*recorded(inputs), *(rule(one, inputs) for one in inputs.rules)]
        group = {"name": "gpustack-gpus", "rules": rules}
        yield prometheus_rule(NAME, inputs.namespace, group, inputs.object_labels, reader=inputs.reader)


def recorded(inputs: AlertsInputs) -> Iterator[Body]:
    """The series that the alerts read, those first that others are made of."""
    read = [name for one in inputs.rules for name in known.alert(one.name).records]
    yield record("node_pool", node_pool(inputs))
    for pool in inputs.pools:
        if pool.promised:
            yield record("promised_gpus", f"vector({pool.promised})", labels={"pool": pool.name})
    for name in dict.fromkeys(read):
        text = filled(known.records()[name], inputs)
        if name in known.pooled():
            yield record(name, text)
        else:
            raw = f"{SERIES}{name}:raw"
            yield record(f"{name}:raw", text)
            yield record(name, f"{raw} * on (node) group_left (pool) {SERIES}node_pool or on (node) {raw}")


def record(name: str, expression: str, labels: dict[str, str] | None = None) -> Body:
    """A rule that records a series."""
    return {"record": f"{SERIES}{name}", "expr": expression, **({"labels": labels} if labels else {})}


def node_pool(inputs: AlertsInputs) -> str:
    """1 for each node with GPUs, with its pool. A node needs no labels to be of the only pool, or of one without."""
    rest = inputs.pools if len(inputs.pools) == 1 else [pool for pool in inputs.pools if not pool.labels]
    alone = rest[0].name if len(rest) == 1 else ""
    gpus = 'group by (node) (kube_node_status_capacity{resource=~"nvidia_com_.+"})'
    branches = [of_pool(pool) for pool in inputs.pools if pool.labels]
    return " or on (node) ".join([*branches, called(gpus, alone) if alone else gpus])


def of_pool(pool: PoolInputs) -> str:
    """1 for each node of POOL."""
    labels = ", ".join(f"{shown(key)}={json.dumps(value)}" for key, value in sorted(pool.labels.items()))
    return called(f"group by (node) (kube_node_labels{{{labels}}})", pool.name)


def called(expression: str, pool: str) -> str:
    """EXPRESSION with the label pool."""
    return f'label_replace({expression}, "pool", "{pool}", "", "")'


def shown(key: str) -> str:
    """The label of a series that kube-state-metrics makes of a node's label KEY (its internal/store/utils.go)."""
    return "label_" + re.sub("([a-z0-9])([A-Z])", r"\1_\2", sanitised(key)).lower()


def sanitised(name: str) -> str:
    """The NAME of a resource as kube-state-metrics writes it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def filled(text: str, inputs: AlertsInputs) -> str:
    """An expression of the catalogue, with what depends on the cluster."""
    excused = EXCUSED if inputs.operations else ""
    space = f'namespace="{inputs.namespace}"'
    pods = {name: f'{space}, created_by_name=~"{sets}"' for name, sets in DAEMONSETS.items()}
    return Template(text).substitute(
        **pods,
        exporter_set=f'{space}, daemonset=~"{DAEMONSETS["exporter"]}"',
        of="label_replace(label_replace(",
        node=NODE,
        namespace=inputs.namespace,
        xids="|".join(map(str, known.fatal_xids())),
        resources="|".join(map(sanitised, inputs.resources)),
        probe=inputs.probe,
        ready='(kube_node_status_condition{condition="Ready", status="true"} == 1)',
        unready=f'(kube_pod_status_ready{{namespace="{inputs.namespace}", condition="true"}} == 0)',
        excused=excused,
        settled=f"\nunless on (node) (time() - kube_node_created < 1800){excused}",
    )


def rule(one: RuleInputs, inputs: AlertsInputs) -> Body:
    """The rule ONE."""
    alert = known.alert(one.name)
    page = f"runbooks/{alert.page}.md"
    where = {"runbook_url": f"{inputs.runbooks}/{alert.page}.md"} if inputs.runbooks else {"runbook": docs(page)}
    silenced = {"silenced": one.reason} if one.ends else {}
    pool = {"pool": one.only[0]} if len(one.only) == 1 else {}
    return {
        "alert": f"{known.PREFIX}{one.name}",
        "expr": expression(one, alert, inputs),
        "for": one.lasts,
        "labels": {"severity": one.severity, **pool, **inputs.labels},
        "annotations": {
            "summary": alert.summary,
            "description": alert.told(one.lasts, one.numbers),
            **where,
            **silenced,
        },
    }


def expression(one: RuleInputs, alert: known.Alert, inputs: AlertsInputs) -> str:
    """When ONE fires: from so many nodes on, of all of its pools or of one, and not while it is silenced."""
    names, sign = ("|".join(one.only), "=~") if one.only else ("|".join(one.but), "!~")
    of = f'{{pool{sign}"{names}"}}' if names else ""
    bad = alert.bad.replace("{$pool}", of)
    bad = Template(bad).substitute(
        one.numbers, **tenants(inputs), namespace=inputs.namespace, stuck=inputs.stuck_seconds
    )
    by = {"cluster": "", "pool": " by (pool) "}.get(alert.over)
    if by is not None:
        bad = f"count{by}(group by (node, pool) ({bad})) >= {one.numbers['nodes']}"
        if percent := one.numbers.get("percent"):
            on = " on (pool)" if by else ""
            bad += f" >={on} {percent} / 100 * count{by}({SERIES}node_pool{of})"
    return f"({bad}) and on () (vector(time()) >= {one.ends})" if one.ends else bad


def tenants(inputs: AlertsInputs) -> dict[str, str]:
    """What of a series of the exporter is the namespace of the pod that has the GPU."""
    if inputs.honor_labels:
        return {"tenant": "", "named": "", "owner": "namespace", "owned": f'namespace!="{inputs.namespace}"'}
    owner = "exported_namespace"
    named = f', "namespace", "$1", "{owner}", "(.+)")'
    return {"tenant": "label_replace(", "named": named, "owner": owner, "owned": f'{owner}!=""'}
