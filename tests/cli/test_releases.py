"""What `gpustack releases` says, and what `explain` and `check` say of what is not there."""

from __future__ import annotations

import json
from typing import Any

from tests.project import Project


def test_list(project: Project, newest: str) -> None:
    """Every release stands on a line of its own, oldest first, with its date and driver."""
    done = project.run("releases", "list")
    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0].startswith("v25.10.0")
    assert lines[-1].startswith(newest)
    (known,) = (line for line in lines if line.startswith("v26.7.0"))
    assert known.endswith("driver 595.91.07")


def test_diff_of_a_cluster(project: Project) -> None:
    """Flips come first; of a cluster it tells which pods restart, which wait for their deletion, and what is new."""
    on: dict[str, Any] = {name: {"enabled": True} for name in ("driver", "toolkit", "gfd", "dcgmExporter")}
    project.policy(
        "a",
        release="v26.3.3",
        cluster={"kubernetesVersion": "1.34", "monitoring": True},
        nodePools=[{"name": "p", "os": "ubuntu22.04"}],
        **on,
    )
    done = project.run("releases", "diff", "v26.3.3", "v26.7.0", "a")
    assert done.code == 0
    parts = done.out.split("\n\n")
    assert parts[1].startswith("Defaults that flip")
    assert "serviceMonitor.enabled: false -> true" in parts[1]
    assert any(part.startswith("Fields that only v26.7.0 knows") for part in parts)
    json_form = json.loads(project.run("releases", "diff", "v26.3.3", "v26.7.0", "a", "--format", "json").out)
    assert "driver/daemonset-nvidia-driver-daemonset.yaml" in json_form["cluster"]["waits"]
    assert "operands/daemonset-gpu-feature-discovery.yaml" in json_form["cluster"]["rolls"]
    assert "monitoring/servicemonitor-nvidia-dcgm-exporter.yaml" in json_form["cluster"]["added"]


def test_a_field_of_the_newer_release_does_not_end_the_diff(project: Project) -> None:
    """That the older release lacks a field of the policy is part of the answer, no reason to refuse it."""
    project.policy("a", hostPaths={"kubeletRootDir": "/data/kubelet"})
    done = project.run("releases", "diff", "v26.3.3", "v26.7.0", "a")
    assert (done.code, "pods restart" in done.out) == (0, True)


def test_unknown_release(project: Project) -> None:
    """A release that nobody knows is refused with the nearest ones."""
    done = project.run("releases", "diff", "v26.3", "v26.7.0")
    assert done.code == 4
    assert "GPU026" in done.err
    assert "v26.3.3" in done.err


def test_a_field_that_is_not_set(project: Project) -> None:
    """A field of the language that nobody set is no mistake: explain says so."""
    project.policy("a")
    done = project.run("explain", "a", "driver.secretEnv")
    assert (done.code, done.out) == (0, "spec.driver.secretEnv is not set. Absent or empty: none.\n")
    assert project.run("explain", "a", "driver.secretEnv", "--format", "json").json["values"] == []
    assert project.run("explain", "a", "driver.secretenv").code == 4


def test_files_of_others_are_named(project: Project) -> None:
    """A file that somebody else put into a cluster's folder is named and fails the check: engines sync it too."""
    project.policy("a")
    project.run("render")
    (project.dist / "a/operands/theirs.yaml").write_text("x: y\n", encoding="utf-8")
    done = project.run("check")
    assert done.code == 3
    assert "dist/a/operands/theirs.yaml" in done.err + done.out


def test_a_folder_below_the_project(project: Project) -> None:
    """In a folder below the project a bare command says where the project is."""
    project.policy("a")
    below = project.folder / "policies"
    done = project.run("render", cwd=below)
    assert done.code == 4
    assert f"run it in {project.folder.resolve()}" in done.err
