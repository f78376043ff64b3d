"""What is red waits for somebody who accepts it, and for nothing else: `diff --fail-on`, `accept`, acceptances.yaml."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project

BY = ("--by", "gpu-platform", "--until", "2027-03-31", "--why", "reviewed: it's the storage team's agent")


def body(command: str) -> dict[str, Any]:
    """A Deployment that runs COMMAND."""
    labels = {"app": "a"}
    container = {"name": "a", "image": "registry.example.com/tools/a:1.0", "command": [command]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "a", "namespace": "gpu-operator"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def git(project: Project, *words: str) -> None:
    """Run Git in PROJECT."""
    options = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *options, *words], cwd=project.folder, check=True, capture_output=True)


@pytest.fixture
def merged(project: Project) -> Project:
    """A project whose policies and render are committed."""
    project.policy("c")
    assert project.run("render").code == 0
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")
    return project


def red(project: Project) -> list[dict[str, Any]]:
    """The findings of `diff` that somebody has to accept."""
    effects = json.loads(project.run("diff", "--format", "json").out)["impact"]
    return [effect for effect in effects if effect["tier"] <= 2]


def test_an_acceptance_is_bound_to_what_was_there(merged: Project) -> None:
    """What was accepted passes; the next push to the same object needs another acceptance, and the old one is named."""
    merged.policy("c", extraObjects=[body("sleep")])
    (effect,) = red(merged)
    assert effect["rule"] == "IMP901"
    assert merged.run("diff", "--fail-on", "outage").code == 1
    shown = merged.run("diff").out
    assert f"to accept: {effect['id']}, {effect['before'][:19]} -> {effect['after'][:19]}" in shown
    assert '"sleep"' in shown or "- sleep" in shown  # all of a new object that acts is shown
    done = merged.run("accept", effect["id"], *BY)
    assert (done.code, done.err) == (0, "")
    assert merged.run("diff", "--fail-on", "outage").code == 0
    assert (
        "accepted by gpu-platform, until 2027-03-31: reviewed: it's the storage team's agent" in merged.run("diff").out
    )
    merged.policy("c", extraObjects=[body("curl")])
    again = merged.run("diff", "--fail-on", "outage")
    assert again.code == 1
    assert f"the acceptance of {effect['id']} by gpu-platform is for another content" in again.out


@pytest.mark.parametrize(("option", "value"), [("--by", "b"), ("--until", "2027-04-30"), ("--why", "other")])
def test_accepted_in_other_words(merged: Project, option: str, value: str) -> None:
    """The same words again are quiet; others are refused with what stands there and its line."""
    merged.policy("c", extraObjects=[body("sleep")])
    (effect,) = red(merged)
    merged.write("acceptances.yaml", "# Ours.\n\n")
    assert merged.run("accept", effect["id"], *BY).code == 0
    text = (merged.folder / "acceptances.yaml").read_text()
    assert merged.run("accept", effect["id"], *BY).code == 0
    words = list(BY)
    words[words.index(option) + 1] = value
    done = merged.run("accept", effect["id"], *words)
    assert done.code == 4
    assert "acceptances.yaml:3:" in done.err
    assert f"{effect['id']} is accepted already, by gpu-platform, until 2027-03-31: reviewed: it's the" in done.err
    assert "edit by, until and why" in done.err
    assert (merged.folder / "acceptances.yaml").read_text() == text


def test_an_acceptance_ends(merged: Project) -> None:
    """After its last day a finding is as red as before, and the expired acceptance is named."""
    merged.policy("c", extraObjects=[body("sleep")])
    (effect,) = red(merged)
    merged.run("accept", effect["id"], *BY)
    late = merged.run("diff", "--fail-on", "1", "--today", "2027-04-01")
    assert late.code == 1
    assert f"the acceptance of {effect['id']} by gpu-platform expired on 2027-03-31" in late.out


def test_comments_and_order_stay(merged: Project) -> None:
    """What somebody wrote into the file is there afterwards, byte for byte; entries come to its end."""
    merged.policy("c", extraObjects=[body("sleep")])
    (effect,) = red(merged)
    head = "# Ours.\n  - finding: IMP901-000000000000 # old\n"
    head += f"    before: sha256:{'0' * 64}\n    after: sha256:{'0' * 64}\n    by: a\n"
    head += "    until: 2027-01-01\n    why: b # c\n"
    merged.write("acceptances.yaml", head)
    assert merged.run("accept", effect["id"], *BY).code == 0
    text = (merged.folder / "acceptances.yaml").read_text()
    assert text.startswith(head)
    assert merged.run("diff", "--fail-on", "outage").code == 0
    assert "1 acceptance of no finding here" in merged.run("diff").out


def test_fail_on_counts_from_its_tier(merged: Project) -> None:
    """A planned change fails where planned is asked for, by number or name, and passes where outages are."""
    merged.policy("c", nodePools=[{"name": "a", "count": 2, "nodeSelector": {"x": "y"}}], cdi={"enabled": False})
    if merged.run("diff").code == 0:
        pytest.fail("nothing changes")
    worst = json.loads(merged.run("diff", "--format", "json").out)["tier"]
    assert merged.run("diff", "--fail-on", str(worst)).code == 1
    assert worst == 0 or merged.run("diff", "--fail-on", str(worst - 1)).code == 0
    assert merged.run("diff", "--fail-on", "danger").code == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("IMP901-ffffffffffff", *BY), "no finding is called"),
        (("x", "--by", "a", "--until", "2020-01-01", "--why", "b"), "over already"),
        (("x", "--by", "1", "--until", "2027-01-01", "--why", "b"), "says nothing"),
    ],
)
def test_what_is_no_acceptance(merged: Project, words: tuple[str, ...], said: str) -> None:
    """An unknown finding, a day that is over, a name that says nothing: refused, and nothing is written."""
    merged.policy("c", extraObjects=[body("sleep")])
    done = merged.run("accept", *words)
    assert done.code == 4
    assert said in done.out + done.err
    assert not (merged.folder / "acceptances.yaml").exists()


@pytest.mark.parametrize("text", ["a: b\n", "- finding: x\n", "- 1\n", "- {finding: IMP901-000000000000}\n"])
def test_a_file_that_is_none(merged: Project, text: str) -> None:
    """Whatever else stands in the file is refused with its place."""
    merged.write("acceptances.yaml", text)
    done = merged.run("diff")
    assert done.code == 4
    assert "acceptances.yaml:1:" in done.out + done.err


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("ci/review.sh", 1),
        (".github/workflows/a.yml", 1),
        ("requirements-ci.txt", 1),
        ("CODEOWNERS", 1),
        ("GNUmakefile", 1),
    ],
)
def test_what_steers_the_review_is_told(merged: Project, path: str, tier: int) -> None:
    """A file that steers the review is red when it is touched, also where no manifest changes."""
    assert merged.run("diff").code == 0
    merged.write(path, "x\n")
    (effect,) = json.loads(merged.run("diff", "--format", "json").out)["impact"]
    assert (effect["rule"], effect["tier"], effect["where"]) == ("IMP002", tier, path)
    assert merged.run("diff", "--fail-on", "power").code == 1
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    assert merged.run("diff").code == 0
    (merged.folder / path).unlink()
    (merged.folder / path).symlink_to("/dev/null")
    assert [one["where"] for one in red(merged)] == [path]


@pytest.mark.parametrize(
    "path",
    [
        *("renovate.json", ".mergify.yml", "OWNERS", ".tekton/x.yaml", ".envrc", ".vscode/settings.json", ".netrc"),
        *(".sourceignore", "kustomization.yaml", "clusters/flux-system/gotk-sync.yaml", "apps/evil.yaml"),
        *("policies/.gitattributes", "policies/x.sh", "policies/layers/.x.yaml", "Dist/one/x.yaml", "POLICIES/c.yaml"),
        *("AGENTS.md", ".claude/x.md", ".github/x.md", "docs/requirements.txt", "docs/conf.py", "schemas/a.json"),
        *("policies/other/c.yaml", "docs/.hidden/x.md", "x", "distribution/x.yaml"),
        *("AGENTS.override.md", "CLAUDE.local.md", "QWEN.md", "WARP.md", "CRUSH.md", "FUTURE.md", "ci.md"),
        *("skills/gpu/SKILL.md", "skills/gpu/README.md", "commands/x.md", "docs/agents.md", "docs/CLAUDE.md"),
        *(
            "docs/x.instructions.md",
            "docs/FUTURE.md",
            "docs/prompts/a.md",
            "docs/a.svg",
            "docs/llms.txt",
            "team/NEW.md",
        ),
    ],
)
@pytest.mark.parametrize("how", ["new", "staged", "committed and not checked out", "link"])
def test_every_file_that_is_not_known_to_be_inert_is_told(merged: Project, path: str, how: str) -> None:
    """No list of what steers is complete: whatever gpustack doesn't judge and isn't text is of tier 1."""
    if how == "link":
        (merged.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (merged.folder / path).symlink_to("README")
    else:
        merged.write(path, "x\n")
    if how != "new":
        git(merged, "add", "-Af")
    if how.startswith("committed"):
        git(merged, "commit", "-qm", "y")
        git(merged, "update-index", "--skip-worktree", path)
        (merged.folder / path).unlink()
    found = json.loads(merged.run("diff", "--base", "HEAD~1" if how[0] == "c" else "HEAD", "--format", "json").out)
    told = [(one["rule"], one["tier"], one["where"]) for one in found["impact"]]
    assert told == [("IMP002", 1, path)]


def test_a_file_that_stays_is_not_told(merged: Project) -> None:
    """What is as it is merged is quiet, also with other ends of lines or not checked out; a mode is a change."""
    for name in ("tool.sh", "sub/tool.sh", "AGENTS.md"):
        merged.write(name, "x\ny\n")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    merged.write("tool.sh", "x\r\ny\r\n")
    git(merged, "update-index", "--skip-worktree", "sub/tool.sh")
    (merged.folder / "sub/tool.sh").unlink()
    assert merged.run("diff").code == 0
    git(merged, "update-index", "--chmod=+x", "AGENTS.md")
    assert [one["where"] for one in red(merged)] == ["AGENTS.md"]


def test_text_and_policies_are_not_told(merged: Project) -> None:
    """README, docs and licences do not belong to it."""
    for name in ("README.md", "docs/a.md", "docs/x/y.png", "docs/x/README.md", "docs/n.txt", "LICENSE", "NOTICE"):
        merged.write(name, "x\n")
    assert merged.run("diff").code == 0
    git(merged, "add", "-A")
    assert merged.run("diff").code == 0


@pytest.mark.parametrize("path", ["runbooks/drain.md", "policies/notes.md", "docs/Architecture.md", "team/README.md"])
def test_other_text_is_shown(merged: Project, path: str) -> None:
    """Text that nobody is known to follow is told, and waits for nobody."""
    merged.write(path, "x\n")
    told = json.loads(merged.run("diff", "--format", "json").out)["impact"]
    assert [(one["rule"], one["tier"], one["where"]) for one in told] == [("IMP002", 4, path)]


@pytest.mark.parametrize("path", ["README.md", "docs/y.png", "policies/layers/two.yaml"])
@pytest.mark.parametrize("how", ["link", "new link", "mode", "new and executable"])
@pytest.mark.parametrize("where", ["work tree", "commit"])
def test_what_a_file_is_counts_whatever_it_is_called(merged: Project, path: str, how: str, where: str) -> None:
    """A link shows what is elsewhere, and what can be executed may be: neither is text or a layer by its name."""
    there = merged.folder / path
    merged.layer("target", cdi={"enabled": False})
    if not how.startswith("new"):
        merged.write(path, "x: y\n")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    there.parent.mkdir(exist_ok=True)
    if "link" in how:
        there.unlink(missing_ok=True)
        there.symlink_to(os.path.relpath(merged.folder / "policies/layers/target.yaml", there.parent))
    else:
        merged.write(path, "x: y\n")
        there.chmod(0o755)
    if where == "commit":
        git(merged, "add", "-A", *([] if "link" in how else ["--chmod=+x"]), path)
        git(merged, "commit", "-qm", "z")
    ran = merged.run("diff", "--base", "HEAD~1" if where == "commit" else "HEAD", "--format", "json")
    told = [(one["rule"], one["tier"]) for one in json.loads(ran.out)["impact"] if one["where"] == path]
    staged = how == "mode" and where == "work tree"  # whether a known file can be executed is what Git says
    assert told == ([] if staged else [("IMP002", 1)])


@pytest.mark.parametrize(("digest", "name", "tier"), [("b", "a:1", 1), ("b", "a:2", 3), ("a", "a:1", None)])
def test_a_lock_is_judged_by_its_digests(merged: Project, digest: str, name: str, tier: int | None) -> None:
    """Another digest under the same name is a swap; another version with its own digest is planned."""

    def lock(name: str, digest: str) -> str:
        entry = {"digest": f"sha256:{digest * 64}", "platforms": {}}
        return json.dumps({"version": 1, "images": {f"registry.example.com/{name}": entry}})

    merged.write("images.lock", lock("a:1", "a"))
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    merged.write("images.lock", lock(name, digest))
    found = json.loads(merged.run("diff", "--format", "json").out)["impact"]
    assert [effect["tier"] for effect in found] == ([] if tier is None else [tier])


def test_where_the_project_is_a_folder_of_its_repository(project: Project, tmp_path: Path) -> None:
    """Steering files are those of the project's root, wherever the clone begins."""
    del tmp_path
    project.policy("c")
    project.run("render")
    subprocess.run(["git", "init", "-q"], cwd=project.folder.parent, check=True)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")
    project.write("ci/a.sh", "x")
    assert [one["where"] for one in red(project)] == ["ci/a.sh"]


def test_an_acceptance_is_used_by_the_merge_that_brings_it(merged: Project) -> None:
    """What is accepted, merged and taken back waits for somebody again, who accepts it in other words."""
    merged.policy("c", extraObjects=[body("sleep")])
    (effect,) = red(merged)
    assert merged.run("accept", effect["id"], *BY).code == 0
    assert merged.run("diff", "--fail-on", "outage").code == 0
    merged.run("render")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "accepted")
    assert merged.run("diff", "--fail-on", "outage", "--base", "HEAD~1").code == 0  # of the merge itself
    merged.policy("c")
    merged.run("render")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "taken back")
    merged.policy("c", extraObjects=[body("sleep")])
    again = merged.run("diff", "--fail-on", "outage")
    assert again.code == 1
    assert f"the acceptance of {effect['id']} by gpu-platform was used by the merge that brought it" in again.out
    refused = merged.run("accept", effect["id"], *BY)
    assert (refused.code, "GPU048" in refused.err) == (4, True)
    assert merged.run("accept", effect["id"], *BY[:-1], "wanted again").code == 0
    assert merged.run("diff", "--fail-on", "outage").code == 0


def test_acceptances_of_two_folders(merged: Project, tmp_path: Path) -> None:
    """Where folders are compared, what stands beside the first one is merged."""
    before = tmp_path / "before"
    shutil.copytree(merged.folder, before)
    merged.policy("c", extraObjects=[body("sleep")])
    merged.run("render")
    words = ("diff", str(before / "dist"), "dist", "--fail-on", "outage")
    effects = json.loads(merged.run("diff", str(before / "dist"), "dist", "--format", "json").out)["impact"]
    (effect,) = [one for one in effects if one["tier"] <= 2]
    text = "".join(
        f"{'- ' if at == 0 else '  '}{key}: {value}\n"
        for at, (key, value) in enumerate(
            {
                "finding": effect["id"],
                "before": effect["before"],
                "after": effect["after"],
                "by": "a",
                "until": "2027-03-31",
                "why": "it is fine",
            }.items()
        )
    )
    merged.write("acceptances.yaml", text)
    assert merged.run(*words).code == 0
    (before / "acceptances.yaml").write_text(text)
    assert merged.run(*words).code == 1


def test_a_policy_that_says_the_same_in_other_words(merged: Project) -> None:
    """The order of layers that don't touch one another is told in a line of tier 5, and so is a comment."""
    merged.layer("one", cdi={"enabled": False})
    merged.layer("two", nfd={"pciClasses": ["12"]})
    merged.policy("c", extends=["one", "two"])
    merged.run("render")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    policy = merged.folder / "policies/c.yaml"
    merged.write("policies/c.yaml", f"# A comment.\n{policy.read_text()}")
    assert files_told(merged) == ["policies/c.yaml"]
    merged.policy("c", extends=["two", "one"])
    assert files_told(merged) == ["policies/c.yaml"]
    assert merged.run("diff", "--fail-on", "planned").code == 0


def files_told(merged: Project) -> list[str]:
    """The files of which alone a review says that they mean the same."""
    told = json.loads(merged.run("diff", "--format", "json").out)["impact"]
    assert {(one["rule"], one["tier"]) for one in told} == {("IMP906", 5)}
    return [one["where"] for one in told]


def test_layers_that_say_the_same_in_other_words(merged: Project) -> None:
    """A value that moves to another layer, a comment, another order, a layer that is new or gone: looked at, no effect.
    Where a layer does something its clusters are told instead.
    """
    merged.layer("one", cdi={"enabled": False}, nfd={"pciClasses": ["12"]})
    merged.layer("two", gfd={"enabled": True})
    merged.layer("idle", gfd={"enabled": True})
    merged.policy("c", extends=["one", "two"])
    merged.run("render")
    git(merged, "add", "-A")
    git(merged, "commit", "-qm", "y")
    one, two = "policies/layers/one.yaml", "policies/layers/two.yaml"
    text = (merged.folder / one).read_text()
    merged.write(one, f"# A comment.\n{text}")
    assert files_told(merged) == [one]
    merged.layer("one", nfd={"pciClasses": ["12"]}, cdi={"enabled": False})
    assert files_told(merged) == [one]
    merged.layer("one", nfd={"pciClasses": ["12"]})
    merged.layer("two", gfd={"enabled": True}, cdi={"enabled": False})
    assert files_told(merged) == [one, two]
    merged.write(one, text)
    merged.layer("two", gfd={"enabled": True})
    git(merged, "checkout", "-q", "--", "policies")
    (merged.folder / "policies/layers/idle.yaml").unlink()
    merged.layer("new", gfd={"enabled": True})
    assert files_told(merged) == ["policies/layers/idle.yaml", "policies/layers/new.yaml"]
    git(merged, "checkout", "-q", "--", "policies")
    (merged.folder / "policies/layers/new.yaml").unlink()
    merged.layer("two", daemonsets={"labels": {"example.com/team": "b"}})
    told = json.loads(merged.run("diff", "--format", "json").out)["impact"]
    assert told
    assert two not in {one["where"] for one in told}
