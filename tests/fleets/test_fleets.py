"""Whole small stacks, as a reviewer reads them.

One snapshot per stack: every file of dist/<cluster>/ under its path, in the order of the paths. A change of any
rendered byte shows in the diff of a pull request; `pytest tests/fleets --snapshot-update` accepts it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.project import Project, tree

HERE = Path(__file__).parent
STACKS = sorted(path.stem for path in HERE.glob("*.yaml"))


class Tree(SingleFileSnapshotExtension):
    """A snapshot that is a file with the text of a whole tree."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All stacks of this folder, rendered."""
    project = Project(tmp_path_factory.mktemp("fleets"), tmp_path_factory.mktemp("cache"))
    for name in STACKS:
        project.write(f"policies/{name}.yaml", (HERE / f"{name}.yaml").read_bytes())
    done = project.run("render")
    assert (done.code, done.err) == (0, "")
    return project


@pytest.mark.parametrize("name", STACKS)
def test_tree(rendered: Project, name: str, snapshot: SnapshotAssertion) -> None:
    """The stack renders to the very bytes that were reviewed."""
    files = tree(rendered.dist / name)
    text = "".join(f"# ---- {path}\n{files[path].decode()}\n" for path in sorted(files))
    assert text == snapshot(extension_class=Tree)


def test_mig_and_time_slicing_fit(rendered: Project) -> None:
    """What the golden tree must say whatever else changes: pods share instances by the names that the nodes advertise,
    the layout is there under the pool's name, and nodes without a label share nothing."""
    files = tree(rendered.dist / "mig-time-slicing")
    plugin = yaml.safe_load(files["base/configmap-gpustack-device-plugin-config.yaml"])["data"]
    shared = yaml.safe_load(plugin["notebooks"])["sharing"]["timeSlicing"]["resources"]
    assert shared == [{"name": f"nvidia.com/mig-{profile}", "replicas": 2} for profile in ("2g.20gb", "3g.40gb")]
    assert yaml.safe_load(plugin["exclusive"]) == {"version": "v1"}
    layouts = yaml.safe_load(files["base/configmap-gpustack-mig-parted-config.yaml"])["data"]["config.yaml"]
    layout = yaml.safe_load(layouts)["mig-configs"]["notebooks"]
    assert layout == [{"devices": "all", "mig-enabled": True, "mig-devices": {"2g.20gb": 2, "3g.40gb": 1}}]


def test_gke_brings_its_own_driver(rendered: Project) -> None:
    """What the golden tree must say whatever else changes: no driver is rendered, its files are where Google puts them,
    and the quota is there before the pods."""
    files = tree(rendered.dist / "gke-cos")
    assert not [path for path in files if path.startswith("driver/")]
    assert "base/resourcequota-gpustack-system-critical.yaml" in files
    validator = files["operands/daemonset-nvidia-operator-validator.yaml"].decode()
    assert "/home/kubernetes/bin/nvidia" in validator
    assert "/run/nvidia/driver" not in validator
