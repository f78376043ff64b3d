"""gpustack verify on a real API server: what was applied is what is rendered, and what is amiss is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.control_plane.cluster import ROOT, ControlPlane
from tests.control_plane.manifests import DIST, apply_cluster

CLUSTER = "train-dgx"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The cluster as it is rendered, without nodes."""
    with ControlPlane(tmp_path_factory.mktemp("verify"), emulated=emulated) as plane:
        apply_cluster(plane.admin, DIST / CLUSTER)
        yield plane


def verified(plane: ControlPlane) -> dict[str, list[str]]:
    """What is found, by id."""
    command = [
        sys.executable,
        "-m",
        "gpustack",
        "verify",
        CLUSTER,
        "--kubeconfig",
        str(plane.kubeconfig("admin", plane.token)),
    ]
    done = subprocess.run(
        [*command, "--format", "json"], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 2}, done.stdout[:900]
    found: dict[str, list[str]] = {}
    each: dict[str, Any]
    for each in json.loads(done.stdout)["findings"]:
        found.setdefault(each["rule"], []).append(each["what"])
    return found


def test_what_was_applied_is_what_is_rendered(plane: ControlPlane) -> None:
    """The API server fills in defaults and leaves out what is one: none of that is drift. What somebody changes is told
    by its field, what somebody deletes by its name."""
    before = verified(plane)
    assert not {"LIV001", "LIV101", "LIV102"} & before.keys()
    name, space = "nvidia-device-plugin-daemonset", "gpu-operator"
    patch = {"spec": {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}}
    plane.admin.patch("DaemonSet", name, patch, space)
    plane.admin.delete("ConfigMap", "nvidia-container-toolkit-entrypoint", space)
    after = verified(plane)
    (changed,) = after["LIV102"]
    assert f"DaemonSet {space}/{name}: spec.template.spec.priorityClassName is system-cluster-critical" in changed
    assert after["LIV101"] == [f"ConfigMap {space}/nvidia-container-toolkit-entrypoint is not there"]
