"""A new release is a data file: nothing else of the package changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RELEASE = """\
# A made-up release: newer images, a default that flips, and a behaviour that it does not have.
base: v26.7.0
date: "2027-01-31"
notes: []
images:
  device-plugin: {version: v0.21.0}
  driver: {version: 610.43.02}
defaults:
  dcgm: {enabled: true}
"""
POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: next}
spec:
  release: %s
  cluster: {kubernetesVersion: "1.34", containerRuntime: containerd}
  nodePools: [{name: a, os: ubuntu24.04}]
"""


def test_a_release_is_added_by_a_file_alone(tmp_path: Path) -> None:
    """With one more file in the catalogue a policy renders with its images, its defaults and its behaviour."""
    shutil.copytree(ROOT / "gpustack", tmp_path / "gpustack", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "schemas").symlink_to(ROOT / "schemas")
    (tmp_path / "gpustack/catalog/data/releases/v27.1.0.yaml").write_text(RELEASE, encoding="utf-8")
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name, release in (("old", "v26.7.0"), ("new", "v27.1.0")):
        (fleet / f"{name}.yaml").write_text(POLICY % release, encoding="utf-8")
        command = [sys.executable, "-m", "gpustack", "render", f"./{name}.yaml", "--out", name]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "GPUSTACK_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(command, cwd=fleet, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    old, new = fleet / "old/next", fleet / "new/next"
    plugin = "operands/daemonset-nvidia-device-plugin-daemonset.yaml"
    assert "k8s-device-plugin:v0.20.0" in (old / plugin).read_text()
    assert "k8s-device-plugin:v0.21.0" in (new / plugin).read_text()
    assert "driver:610.43.02-ubuntu24.04" in (new / "driver/daemonset-nvidia-driver-daemonset.yaml").read_text()
    assert not (old / "operands/daemonset-nvidia-dcgm.yaml").exists()
    assert (new / "operands/daemonset-nvidia-dcgm.yaml").exists()
    gfd = "operands/daemonset-gpu-feature-discovery.yaml"
    assert "POD_NAME" in (old / gfd).read_text()
    assert "POD_NAME" in (new / gfd).read_text()
