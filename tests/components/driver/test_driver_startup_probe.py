"""The startup probe's script, run by sh in a folder that stands for the node (operator.md 9.4)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpustack.components.scripts import script

READY = "validations/.driver-ctr-ready"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node on which the driver is up: module loaded, nvidia-smi works."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "refcnt").touch()
    smi(tmp_path, "exit 0")
    return tmp_path


def smi(node: Path, what: str) -> None:
    """Let nvidia-smi do WHAT."""
    program = node / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{what}\n")
    program.chmod(0o755)


def probe(node: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the script on NODE."""
    text = script("driver-startup-probe")
    text = text.replace("/run/nvidia/validations", f"{node}/validations").replace("/sys/module/nvidia", str(node))
    path = {"PATH": f"{node}/bin:/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", text], env={**path, **env}, capture_output=True, text=True, check=False)


def test_a_driver_that_is_up_is_announced_with_its_features(node: Path) -> None:
    """The ready file lists the three features in YAML, false where the container was not told (9.4)."""
    assert probe(node, GDS_ENABLED="true").returncode == 0
    assert (node / READY).read_text() == "GDRCOPY_ENABLED: false\nGDS_ENABLED: true\nGPU_DIRECT_RDMA_ENABLED: false\n"


def test_the_ready_file_appears_whole(node: Path) -> None:
    """Written beside and renamed: waiting pods never read half of it, and nothing is left over."""
    (node / "validations").mkdir()
    (node / READY).symlink_to("elsewhere")  # a write in place would follow it
    assert probe(node).returncode == 0
    assert not (node / READY).is_symlink()
    assert [path.name for path in (node / "validations").iterdir()] == [".driver-ctr-ready"]


def test_no_module_no_driver(node: Path) -> None:
    """Without /sys/module/nvidia/refcnt the driver is not up, whatever nvidia-smi says."""
    (node / "refcnt").unlink()
    assert probe(node).returncode != 0
    assert not (node / READY).exists()


@pytest.mark.parametrize(("status", "code"), [("Ready", 0), ("NotReady", 1), ("", 1)])
def test_daemons_must_be_ready_where_they_say_so(node: Path, status: str, code: int) -> None:
    """`.driver-daemons-status`, where it exists, must say Ready."""
    (node / "validations").mkdir()
    (node / "validations/.driver-daemons-status").write_text(f"{status}\n")
    assert probe(node).returncode == code
    assert (node / READY).exists() == (code == 0)


def test_a_failing_nvidia_smi_is_not_ready(node: Path) -> None:
    """nvidia-smi is the last word."""
    smi(node, "exit 9")
    assert probe(node).returncode != 0
    assert not (node / READY).exists()
