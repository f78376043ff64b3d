"""What people reported, in the words in which it stands in objects, events and logs (reports.yaml): each has its cause,
with the field of the policy that is about it, and none besides that isn't one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.live.why import Target
from gpustack.model import Body
from tests.live.test_why import event, nodes, of_stack, told, waiting

REPORTS: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("reports.yaml").read_text("utf-8"))


def of_report(report: dict[str, str]) -> tuple[list[Body], str]:
    """The pod and the events of REPORT, and the log of its container."""
    reason, _, said = report.get("state", "").partition(" ")
    status: dict[str, Any] = waiting(
        *((reason, said) if said else ("CrashLoopBackOff", "back-off 5m0s restarting failed"))
    )
    if "event" in report and not said:
        status = {"phase": "Pending", **waiting("ContainerCreating")}
    if "status" in report:
        why, _, message = report["status"].partition(" ")
        status = {"phase": "Failed", "reason": why, "message": message.replace(";", ":")}
    pod = of_stack(report["app"], **status)
    what, _, message = report.get("event", "").partition(" ")
    events = [event(pod["metadata"]["name"], what, message)] if message else []
    return [pod, *events], report.get("log", "")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_has_its_cause(name: str) -> None:
    """The first that is told, with the policy's field; others only where the report has them too."""
    report = REPORTS[name]
    bodies, log = of_report(report)
    found = told([*nodes(), *bodies], Target("Pod", bodies[0]["metadata"]["name"], "gpu-operator"), log)
    assert found[0].rule == report["is"], found
    assert found[0].path == report.get("path", found[0].path)
    others = {each.rule for each in found} - {report["is"]}
    assert others == set(report.get("also", "").split())
