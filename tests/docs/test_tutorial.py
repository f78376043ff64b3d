"""docs/tutorial.md: what needs no cluster is done as it stands there. tests/control_plane does all of it."""

from __future__ import annotations

from itertools import takewhile

from tests.docs.followed import CLUSTER, TUTORIAL, Reader, blocks
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

ALL = blocks(TUTORIAL)
NOT_RUN = {
    "make setup": "the tests run in the environment that it makes; tests/test_setup.py is about making it",
    "make laptop-cluster": "tests/control_plane/test_tutorial.py starts the same cluster in its own process",
    "export KUBECONFIG=$CLONE/.tools/laptop/admin.kubeconfig": "the test's cluster has another folder",
    "training: 2 nodes: 0 as wanted, 1 worked on": "one look at what takes seconds; the page says 'something like'",
}
"""How each block begins that nobody follows, and why."""


def test_what_needs_no_cluster(project: Project) -> None:
    """A repository, a policy, its render, and the review of a change: each command prints what stands below it."""
    reader = Reader(project)
    for block in takewhile(lambda one: one.heading != CLUSTER, ALL):
        if block.followed:
            reader.follow(block)


def test_every_block_is_followed_or_excused() -> None:
    """No block of the page is left out without a reason, and no reason is left over."""
    left = [block.text for block in ALL if not block.followed]
    assert [text for text in left if not text.startswith(tuple(NOT_RUN))] == []
    assert [begin for begin in NOT_RUN if not any(text.startswith(begin) for text in left)] == []
    assert any(block.heading == CLUSTER for block in ALL)
