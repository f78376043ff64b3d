"""Links in the place of what a project is read from and written to: refused, with the file and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import Project

QUOTED = "auth: c2VjcmV0"
VERBS = (("lint",), ("render",), ("check",), ("diff", "--base", "HEAD"), ("explain", "one", "driver"))


@pytest.fixture
def rendered(project: Project) -> Project:
    """A project with one rendered cluster and a layer."""
    project.layer("base", cdi={"enabled": False})
    project.policy("one", extends=["base"])
    assert project.run("render").code == 0
    return project


def refused(project: Project, name: str, *verbs: tuple[str, ...]) -> None:
    """Each of VERBS refuses the link NAME, and quotes nothing of what it leads to."""
    for verb in verbs or VERBS:
        ran = project.run(*verb)
        assert (ran.code, "GPU978" in ran.err) == (4, True), (verb, ran.err)
        assert name in ran.err
        assert QUOTED not in ran.err + ran.out


@pytest.mark.parametrize("name", ["policies", "policies/layers", "policies/one.yaml", "policies/layers/base.yaml"])
def test_links_that_lead_out(rendered: Project, tmp_path: Path, name: str) -> None:
    """What is read as a policy or layer stays in the clone: by a link it could be anybody's login."""
    there = rendered.folder / name
    target = there.rename(tmp_path / "outside")
    if target.is_file():
        target.write_text(f"{QUOTED}\n")
    there.symlink_to(target)
    refused(rendered, name)


@pytest.mark.parametrize(
    "name", ["waivers.yaml", "policies/waivers.yaml", "images.lock", "acceptances.yaml", "dist.allow.yaml"]
)
@pytest.mark.parametrize("inside", [False, True])
def test_steering_files_are_no_links(rendered: Project, tmp_path: Path, name: str, inside: bool) -> None:
    """Files by which a review is steered are no links, wherever these lead."""
    target = (rendered.folder if inside else tmp_path) / "target"
    target.write_text(f"{QUOTED}\n")
    (rendered.folder / name).symlink_to(target)
    refused(rendered, name)


@pytest.mark.parametrize("inside", [False, True])
def test_dist_is_no_link(rendered: Project, tmp_path: Path, inside: bool) -> None:
    """The rendered folder, or one that it is in, is not a link; nothing is written to where it leads."""
    target = rendered.dist.rename((rendered.folder if inside else tmp_path) / "target")
    rendered.dist.symlink_to(target)
    before = sorted(target.rglob("*"))
    refused(rendered, "dist", *VERBS[1:4], ("validate",), ("push", "oci://r.example.com/x", "--dry-run"))
    assert sorted(target.rglob("*")) == before
    rendered.dist.unlink()
    (rendered.folder / "build").symlink_to(tmp_path)
    ran = rendered.run("render", "--out", "build/dist")
    assert (ran.code, "build is a link" in ran.err) == (4, True)


def test_links_inside_the_clone(rendered: Project) -> None:
    """A policy may be a link to another file of the clone: a review shows that one."""
    there = rendered.folder / "policies/one.yaml"
    there.rename(rendered.folder / "one.yaml")
    there.symlink_to("../one.yaml")
    assert rendered.run("check").code == 0
