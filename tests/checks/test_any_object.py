"""Objects of extraObjects may be anything: rules answer, and leave the rest to validation."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpustack.checks.rule import rules_over
from gpustack.cluster.resolve import resolve
from gpustack.compiler.stack import workload_findings
from gpustack.components.base import base_inputs
from gpustack.components.parts.hygiene import clean
from gpustack.components.plugin import configs_inputs as configs
from gpustack.model import FindingsError, Resource
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import spec
from tests.tenants.test_workloads import ODD, WHOLE, places

SPEC = spec(
    cluster={"monitoring": True},
    dcgmExporter={"serviceMonitor": {"additionalLabels": {"release": "a"}}, "config": {"name": "mine"}},
    devicePlugin={"config": {"name": "mine", "default": "one"}},
    migManager={"config": {"name": "mine"}},
    nodePools=[{"name": "a", "os": "ubuntu22.04", "gpusPerNode": 8}],
)


def body(api: str, kind: str, **content: Any) -> dict[str, Any]:
    """An object called mine."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "mine", "labels": {"a": "b"}}, **content}


TERM = {"feature": "pci.device", "matchExpressions": {"class": {"op": "In", "value": ["0300"]}}}
RULE = {"name": "a", "labels": {"example.com/a": "b"}, "matchFeatures": [TERM], "matchAny": [{"matchFeatures": [TERM]}]}
RULES = [{"alert": "A", "expr": "rate(DCGM_FI_DEV_GPU_TMP{exported_pod='a'}[5m])"}]
WORKER = {"template": {"spec": WHOLE["spec"]}}
OBJECTS = [
    body("v1", "ConfigMap", data={"one": "version: v2", "config.yaml": "a", "dcgm-metrics.csv": "x"}),
    body("v1", "Namespace"),
    body("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", spec={"rules": [RULE]}),
    body("monitoring.coreos.com/v1", "PrometheusRule", spec={"groups": [{"name": "a", "rules": RULES}]}),
    body("apps/v1", "DaemonSet", spec=WORKER),
    body("batch/v1", "CronJob", spec={"jobTemplate": {"spec": WORKER}}),
    body("helm.toolkit.fluxcd.io/v2", "HelmRelease", spec={"chart": {"spec": {"chart": "node-feature-discovery"}}}),
    body("x.example.com/v1", "NIMService", spec={"resources": {"limits": {"nvidia.com/gpu": 1}}}),
]


@pytest.mark.parametrize("found", OBJECTS, ids=lambda found: found["kind"])
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(data=st.data())
def test_any_object_is_answered(found: dict[str, Any], data: st.DataObject) -> None:
    """Something odd in one place, or two: no rule over the spec, an object or a workload ends in a traceback."""
    changed = copy.deepcopy(found)
    for _ in range(2):
        fixed = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name")}
        path = data.draw(st.sampled_from([place for place in places(changed) if place not in fixed]))
        target: Any = changed
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = copy.deepcopy(data.draw(st.sampled_from([odd for odd in ODD if odd is not None])))
    policy: ClusterPolicySpec = SPEC.model_copy(update={"extraObjects": [changed]})
    for rule in rules_over("spec"):
        list(rule.findings(policy))
    list(workload_findings(policy))
    for read in (configs.from_cluster, base_inputs.extra_objects):
        with contextlib.suppress(FindingsError):
            read(resolve(policy))
    for rule in rules_over("object"):
        list(rule.findings(Resource(clean(changed), "operands", "ExtraWorkloads")))
