"""docs/tutorial.md from its first command to its last, on the cluster that `make laptop-cluster` runs."""

from __future__ import annotations

import os
from pathlib import Path

from tests.control_plane.cluster import BIN
from tests.docs.followed import TUTORIAL, Reader, blocks
from tests.project import Project, cache, project
from tools.laptop_cluster import laptop

__all__ = ["cache", "project"]


def test_the_tutorial_word_for_word(project: Project, tmp_path: Path) -> None:
    """Two nodes get the stack, then a newer driver; each command prints what stands below it."""
    with laptop(tmp_path / "cluster") as cluster:
        path = os.pathsep.join((str(BIN), os.environ["PATH"]))
        reader = Reader(project, {"KUBECONFIG": str(cluster.kubeconfig), "PATH": path})
        for block in blocks(TUTORIAL):
            if block.followed:
                reader.follow(block)
