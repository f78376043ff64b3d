"""docs/tutorial.md: what needs no cluster is done as it stands there. tests/control_plane does all of it."""

from __future__ import annotations

from itertools import takewhile

from tests.control_plane.cluster import RELEASE
from tests.docs.followed import CLUSTER, TUTORIAL, Reader, blocks
from tests.project import Project, cache, project
from tools.laptop_cluster import KUBERNETES, WORDS

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
    """A repository, a policy, its render, and the review of a change: each command prints what stands below it, for
    somebody of whom Git knows nothing; and the repository is beside the clone."""
    reader = Reader(project, STRANGER)
    for block in takewhile(lambda one: one.heading != CLUSTER, ALL):
        if block.followed:
            reader.follow(block)
    assert reader.at.resolve() == project.folder.resolve().parent / "fleet"


STRANGER: dict[str, str | None] = {
    **{f"GIT_{who}_{what}": None for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "user.useConfigOnly",
    "GIT_CONFIG_VALUE_0": "true",
}


def test_the_line_to_paste() -> None:
    """It is that which `make laptop-cluster` prints, with its kubectl before any other; both say which version acts as
    which."""
    page = TUTORIAL.read_text("utf-8")
    places = {"config": "$CLONE/.tools/laptop/admin.kubeconfig", "programs": "$CLONE/.tools/control-plane/bin"}
    head, line, _ = WORDS.format(release=RELEASE, version=KUBERNETES, nodes="a", **places).splitlines()
    assert f"```sh\n{line.strip()}\n```" in page
    assert head.startswith(f"Kubernetes {RELEASE} acting as {KUBERNETES},")
    assert f"They are of v{RELEASE}, which `kubectl` shows, and act as {KUBERNETES}," in page


def test_every_block_is_followed_or_excused() -> None:
    """No block of the page is left out without a reason, and no reason is left over."""
    left = [block.text for block in ALL if not block.followed]
    assert [text for text in left if not text.startswith(tuple(NOT_RUN))] == []
    assert [begin for begin in NOT_RUN if not any(text.startswith(begin) for text in left)] == []
    assert any(block.heading == CLUSTER for block in ALL)
