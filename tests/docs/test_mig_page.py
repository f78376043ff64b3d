"""docs/mig.md shows what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project import Project, cache, project

__all__ = ["cache", "project"]

PAGE = (Path(__file__).parents[2] / "docs" / "mig.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n\$ gpustack ([^\n]*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
POLICY = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_real_output(project: Project, command: str, output: str) -> None:
    """Each command on the page prints what stands below it, with the page's policy in the project."""
    project.write("policies/prod-eu-1.yaml", POLICY)
    ran = project.run(*command.split())
    assert (ran.out or ran.err).rstrip() == output.rstrip()


def test_the_page_has_commands() -> None:
    """The page shows list, plan, show and capacity."""
    assert {" ".join(command.split()[:2]) for command, _ in SHOWN} >= {"mig list", "mig plan", "mig show"}
    assert "capacity prod-eu-1" in [command for command, _ in SHOWN]
