"""What a policy may say of dashboards, and what is told of a list of metrics that has less than they read."""

from __future__ import annotations

import pytest
import yaml
from pydantic import ValidationError

from gpustack.policy.language.alerts import Dashboards
from tests.checks.spec_rules import said

LIST = 'dcgmExporter: {config: {data: "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\\n"}}\n'


@pytest.mark.parametrize(
    ("dashboards", "what"),
    [
        ("{leaveOut: [migs]}", "'mig'"),
        ("{output: helm}", "'grafanaOperator'"),
        ("{folder: ../etc}", "'../etc' is not a valid folder"),
        ("{folder: GPUs/..}", "'GPUs/..' is not a valid folder"),
        ("{clusterLabel: a-b}", "'a-b' is not a valid label of a series"),
        ("{clusterLabel: 'a\"} or up{b'}", "is not a valid label of a series"),
        ("{namespace: Grafana}", "'Grafana' is not a valid DNS label"),
    ],
)
def test_what_is_refused(dashboards: str, what: str) -> None:
    """What Grafana, its sidecar or Prometheus would not take, or take for something else: a folder is no way out of the
    one for dashboards, and a label is no piece of a query.
    """
    with pytest.raises(ValidationError, match="validation error") as refused:
        Dashboards.model_validate(yaml.safe_load(dashboards))
    assert what in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "told"), [("dashboards: {}\n", True), ("dashboards: {enabled: false}\n", False), ("", False)]
)
def test_a_list_of_the_policy(policy: str, told: bool) -> None:
    """Where the list lacks what dashboards read, the panels are named that are left out, and the rows that bring them;
    nothing is said where there are none, or the list is the image's.
    """
    hits = said("GPU621", f"{policy}{LIST}")
    assert bool(hits) == told
    assert said("GPU621", policy or "{}") == ()
    for hit in hits:
        assert "Busy (cluster)" in hit.what
        assert "`DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, ...`" in hit.remedy
        assert "DCGM_FI_DEV_GPU_TEMP" not in hit.remedy


@pytest.mark.parametrize(("count", "limit", "told"), [(5, 1000, False), (6, 1000, True), (6, 1200, False)])
def test_a_limit_of_series(count: int, limit: int, told: bool) -> None:
    """8 GPUs with the 25 rows of the image's list are 200 series a node: the limit holds to the last one."""
    pool = f"{{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H100-80GB-HBM3, gpusPerNode: 8, count: {count}}}"
    hits = said("GPU622", f"cluster: {{seriesLimit: {limit}}}\nnodePools: [{pool}]\n")
    assert [hit.what for hit in hits] == ["the exporters would serve 1,200 series, and the limit is 1,000"] * told
