"""docs/json.md: what each verb prints for programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.live import Live, live
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

PAGE = (ROOT / "docs/json.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| (\d) \| (.+) \|$", PAGE, re.MULTILINE)
VERBS = {
    name: (int(version), set(re.findall(r"`([A-Za-z_]+)`", keys)))
    for names, version, keys in ROWS
    for name in re.findall(r"`([a-z -]+)`", names)
}

COMMANDS = {
    "render": ["render"],
    "check": ["check"],
    "lint": ["lint"],
    "affected": ["affected", "policies/a.yaml"],
    "lock": ["lock", "--check", "--offline"],
    "images": ["images"],
    "explain": ["explain", "a", "driver"],
    "mig list": ["mig", "list", "NVIDIA-H200"],
    "mig plan": ["mig", "plan", "NVIDIA-H200", "--want", "1g.18gb=2"],
    "mig show": ["mig", "show", "a"],
    "capacity": ["capacity"],
    "releases diff": ["releases", "diff", "v26.3.3", "v26.7.0"],
    "schema list": ["schema", "list"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_keys_and_versions(name: str, project: Project) -> None:
    """The version is that of the page, and each key of the document stands there."""
    pool = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H200", "gpusPerNode": 8}
    project.policy("a", nodePools=[pool])
    found = project.run(*COMMANDS[name], "--format", "json").json
    version, keys = VERBS[name]
    assert found["version"] == version
    assert found.keys() - {"version"} <= keys


def test_of_a_cluster(project: Project) -> None:
    """The same for verbs that look at a cluster, or write in it."""
    with live(project, nodes=1) as cluster:
        told(cluster, "rollout plan", "rollout", "plan")
        told(cluster, "rollout status", "rollout", "status")
        told(cluster, "rollout pause", "rollout", "pause")
        told(cluster, "resume", "rollout", "resume")


def told(cluster: Live, name: str, *words: str) -> None:
    """WORDS print what the page says of the verb NAME."""
    found = cluster.run(*words, "--format", "json").json
    assert found["version"] == VERBS[name][0]
    assert found.keys() - {"version"} <= VERBS[name][1]


def test_every_verb_has_a_row() -> None:
    """Each module of the command line that prints JSON is on the page."""
    having = {
        path.stem.replace("_", "-")
        for path in (Path(ROOT) / "gpustack/cli").glob("*.py")
        if re.search(r'"--format"|add_project', path.read_text(encoding="utf-8"))
        and path.stem not in {"common", "__init__"}
    }
    assert having <= {name.split()[0] for name in VERBS}
