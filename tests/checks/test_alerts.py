"""What a policy may say of alerts: refused with what to do, or honoured."""

from __future__ import annotations

import datetime

import pytest
import yaml
from pydantic import ValidationError

from gpustack.policy.language.alerts import Alerts
from tests.checks.spec_rules import said

ON = "cluster: {monitoring: true}\nnodePools: [{name: a, os: ubuntu22.04, nodeSelector: {x: a}}]\n"


@pytest.mark.parametrize(
    ("alerts", "what", "remedy"),
    [
        ("{rules: {XidFatel: {nodes: 3}}}", "there is no alert XidFatel", "did you mean XidFatal"),
        ("{rules: {GPUStackXidFatal: {nodes: 3}}}", "there is no alert GPUStackXidFatal", "write XidFatal"),
        (
            "{rules: {GpuHot: {threshold: 95}}}",
            "95 can't be the threshold of GpuHot, which counts degrees",
            "from 0 to 30",
        ),
        ("{rules: {GpuHot: {perPool: {a: {threshold: 31}}}}}", "31 can't be the threshold of GpuHot", "from 0 to 30"),
        ("{rules: {ReconcilerRolloutStands: {threshold: 90}}}", "90 can't be the threshold", "from 600 to 604800"),
        ("{rules: {AllocatedIdle: {threshold: 0}}}", "which counts percent", "from 1 to 50"),
        ("{rules: {DriverCrashLoop: {threshold: 0}}}", "which counts restarts in an hour", "from 1 to 11"),
        ("{rules: {ExporterRestarts: {threshold: 0}}}", "which counts restarts in an hour", "from 1 to 11"),
        ("{rules: {XidFatal: {percent: 3}}}", "the alert XidFatal has no percent", "it has lasts, nodes"),
        (
            "{rules: {XidFatal: {perPool: {a: {percent: 3}}}}}",
            "the alert XidFatal has no percent",
            "it has lasts, nodes",
        ),
        ("{silence: [{alert: Xid, reason: x, until: '2027-01-01'}]}", "there is no alert Xid", "did you mean XidFatal"),
        ("{silence: [{alert: XidFatal, reason: x, until: '2027-02-30'}]}", "'2027-02-30' is not a day", ""),
        (
            "{silence: [{alert: XidFatal, reason: '{{ x }}', until: '2027-01-01'}]}",
            "'{{ x }}' is not a valid reason",
            "",
        ),
        ("{labels: {severity: high}}", "alerts have the label severity themselves", "use alerts.severities"),
        ("{labels: {a-b: high}}", "'a-b' is not a valid label of a series", ""),
        ("{runbooks: wiki}", "'wiki' is not a valid web address", ""),
    ],
)
def test_what_is_refused(alerts: str, what: str, remedy: str) -> None:
    """A name, number, day or label that no alert can have."""
    with pytest.raises(ValidationError) as refused:
        Alerts.model_validate(yaml.safe_load(alerts))
    (error, *_) = refused.value.errors()
    assert what in error["msg"]
    assert remedy in error.get("ctx", {}).get("remedy", "")


def test_all_that_is_refused() -> None:
    """Each unknown name and each number is told at once, where it stands; numbers at the edge are taken."""
    names = {"XidFatel": {}, "GpuHott": {}, "GpuHot": {"threshold": 31, "percent": 3}}
    silences = [{"alert": name, "reason": "x", "until": "2027-01-01"} for name in ("Xid", "XidFatal", "Hot")]
    with pytest.raises(ValidationError) as refused:
        Alerts.model_validate({"rules": names, "silence": silences})
    assert {error["loc"] for error in refused.value.errors()} == {
        *(
            ("rules", "XidFatel"),
            ("rules", "GpuHott"),
            ("rules", "GpuHot", "threshold"),
            ("rules", "GpuHot", "percent"),
        ),
        *(("silence", 0, "alert"), ("silence", 2, "alert")),
    }
    for edge in (0, 30):
        Alerts.model_validate({"rules": {"GpuHot": {"threshold": edge}}})


def test_a_list_of_ones_own() -> None:
    """Each alert that lacks a counter is named, with the row to add; nobody knows a list that isn't in the policy."""
    own = "alerts: {}\ndcgmExporter: {config: {data: 'DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, x'}}\n"
    found = said("GPU615", ON + own)
    assert "add `DCGM_EXP_XID_ERRORS_COUNT, counter, ...` to it" in found[0].remedy
    assert not any("ROW_REMAP_FAILURE" in each.what for each in found)
    assert said("GPU615", ON + "alerts: {}\ndcgmExporter: {config: {name: elsewhere}}\n") == ()
    assert said("GPU615", ON + "alerts: {}\n") == ()


def test_pools_that_are_not_there() -> None:
    """What is said for one is refused, at its name."""
    (found,) = said("GPU614", ON + "alerts: {rules: {XidFatal: {perPool: {a: {nodes: 1}, b: {nodes: 1}}}}}\n")
    assert (found.path, found.key) == ("spec.alerts.rules.XidFatal.perPool.b", True)


def test_pools_that_an_alert_is_not_about() -> None:
    """NVLink is watched where boards have NVSwitch."""
    two = ON.replace("os: ubuntu22.04, ", "os: ubuntu22.04, gpuProduct: NVIDIA-H100-80GB-HBM3, ", 1)
    two = two.replace("]\n", ", {name: b, os: ubuntu22.04, gpuProduct: NVIDIA-L4, nodeSelector: {x: b}}]\n")
    said_of = "alerts: {rules: {NvlinkDown: {perPool: {a: {lasts: 1m}, b: {lasts: 1m}}}}}\n"
    (found,) = said("GPU614", two + said_of)
    assert (found.what, found.remedy) == ("the alert NvlinkDown is not about node pool b", "write one of a")


def test_an_end_is_told_when_it_has_come() -> None:
    """From the day after the last one on."""
    silence = "alerts: {silence: [{alert: XidFatal, reason: known, until: '2027-03-31'}]}\n"
    (found,) = said("GPU616", ON + silence)
    assert found.since == datetime.date(2027, 4, 1)


def test_labels_that_have_to_be_shown() -> None:
    """All by which pools are told apart, in the words of kube-state-metrics' own flag; of one pool none."""
    two = ON.replace("]\n", ", {name: b, os: ubuntu22.04, nodeSelector: {y: b}}]\n")
    (found,) = said("GPU618", two + "alerts: {}\n")
    assert "--metric-labels-allowlist=nodes=[" in found.remedy
    assert ",x,y]" in found.remedy
    assert said("GPU618", ON + "alerts: {}\n") == ()
    assert said("GPU618", two) == ()


def test_labels_of_one_monitor_alone() -> None:
    """Where only the exporter's monitor has labels, whoever has alerts or a reconciler is told."""
    labels = "dcgmExporter: {serviceMonitor: {enabled: true, additionalLabels: {release: prom}}}\n"
    assert said("GPU602", ON + labels) == ()
    (found,) = said("GPU602", ON + labels + "alerts: {}\n")
    assert found.remedy == "move them to spec.cluster.monitoringLabels"
