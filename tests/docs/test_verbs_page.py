"""docs/verbs.md shows what the commands print, and leaves no verb out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from gpustack.cli import VERBS
from tests.cli.live import dumped, installed, listed
from tests.cli.test_vendor_check import packed
from tests.project import ROOT, Project, cache, project
from tests.reconciler.world.workloads import Workload, add_workload

__all__ = ["cache", "project"]

PAGE = (ROOT / "docs" / "verbs.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
POLICY = next(
    block
    for block in re.findall(r"^```yaml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    if "kind: ClusterPolicy" in block
)
SHOWN = [
    (command, output)
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def as_pattern(output: str) -> str:
    """What OUTPUT matches: `...` alone on a line is any lines, in a line any text."""
    lines = [".*" if line == "..." else re.escape(line).replace(r"\.\.\.", "[^\n]*") for line in output.splitlines()]
    return "\n?".join(lines)


def saved() -> str:
    """What kubectl prints of a cluster in which a driver is due, and a workload that may lose no pod is on one node."""
    world, _ = installed(3)
    add_workload(world, Workload("train", 1, max_unavailable=0))
    world.roll("2")
    world.tick(5)
    return listed([item for items in dumped(world).values() for item in items])


def test_the_page_shows_real_output(project: Project) -> None:
    """Each command, one after the other in a project with the README's policy, prints what stands below it."""
    project.write("policies/prod-eu-1.yaml", POLICY)
    project.write("cluster.yaml", saved())
    project.write("gpu-operator-v26.7.0.tgz", packed())
    subprocess.run(["git", "init", "-q"], cwd=project.folder, check=True, env={**os.environ, **GIT})
    path = os.pathsep.join((os.environ["PATH"], str(ROOT / ".tools" / "bin")))
    for command, output in SHOWN:
        if not command.startswith("gpustack "):
            subprocess.run(command, shell=True, cwd=project.folder, check=True, env={**os.environ, **GIT})  # noqa: S602
            continue
        ran = project.run(*shlex.split(command)[1:], env={"PATH": path})
        said = ran.out.rstrip() + "\n" + (ran.err.rstrip() if ran.code else "")
        assert re.fullmatch(as_pattern(output), said.strip(), re.DOTALL), f"{command}\n{said}"


def test_every_verb_has_a_section() -> None:
    """The page has a heading for each verb, with an example below it."""
    assert set(VERBS) <= set(re.findall(r"^## ([\w-]+)$", PAGE, re.MULTILINE))
    assert {shlex.split(command)[1] for command, _ in SHOWN if command.startswith("gpustack ")} == set(VERBS)


def test_the_readme_policy_is_clean(project: Project) -> None:
    """The example that a newcomer copies has no warning and no error."""
    project.write("policies/prod-eu-1.yaml", POLICY)
    ran = project.run("lint", "--fail-on", "warning", "--today", "2026-11-01")
    assert ran.code == 0, ran.out


def test_the_readme_names_every_verb() -> None:
    """The table of verbs in the README is complete."""
    assert set(re.findall(r"^\| `([\w-]+)", README, re.MULTILINE)) == set(VERBS)


def test_links_to_headings_lead_somewhere() -> None:
    """A link with a fragment names a heading of the page that it leads to."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
            text = (page.parent / target if target else page).read_text(encoding="utf-8")
            assert heading in {anchor(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}, (
                page.name,
                heading,
            )


def anchor(title: str) -> str:
    """The fragment of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def test_no_page_is_left_out() -> None:
    """The README leads to every page of docs/ itself."""
    pages = {path.name for path in Path(ROOT / "docs").glob("*.md")}
    assert pages <= set(re.findall(r"\]\(docs/([\w-]+\.md)", README))


def test_every_page_has_its_place_on_the_site() -> None:
    """The site's navigation names each page of docs/ itself; it isn't built without."""
    navigation = (ROOT / "tools/site/mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {path.name for path in Path(ROOT / "docs").glob("*.md")}
    assert pages == set(re.findall(r"^ *- (?:.*: )?([\w-]+\.md)$", navigation, re.MULTILINE)) & pages
