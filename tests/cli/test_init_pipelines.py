"""What the pipelines of a new repository may do: what runs a request's files has no right and no secret, what has one
runs none of them.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
import yaml

from gpustack.review import steering
from tests.project import TODAY, Project

UNTRUSTED = re.compile(r"\$\{\{")
"""An expression, which GitHub puts into a script as text before a shell reads it."""


@pytest.fixture
def github(project: Project) -> dict[str, Any]:
    """The workflows that init writes for GitHub, by file name."""
    assert project.run("init", "new", "--today", TODAY).code == 0
    return {
        path.stem: yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - `on` stays a word
        for path in (project.folder / "new" / ".github").rglob("*.yaml")
    }


@pytest.fixture
def gitlab(project: Project) -> dict[str, Any]:
    """The pipeline that init writes for GitLab."""
    assert project.run("init", "new", "--ci", "gitlab", "--today", TODAY).code == 0
    found: dict[str, Any] = yaml.safe_load((project.folder / "new" / ".gitlab-ci.yml").read_bytes())
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """All steps of a workflow."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_actions_are_pinned(project: Project, github: dict[str, Any]) -> None:
    """Each action is named by a full commit, with its version beside it; nothing comes from the tree, and nothing is
    cached.
    """
    text = "".join(path.read_text("utf-8") for path in (project.folder / "new" / ".github").rglob("*.yaml"))
    uses = re.findall(r"(?m)^ +- uses: (.*)$|^ +uses: (.*)$", text)
    assert len(uses) == 7
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+", one or two) for one, two in uses)
    assert "cache" not in re.sub(r"#.*", "", text)


def test_no_value_is_in_a_script(github: dict[str, Any]) -> None:
    """No script has an expression in its text, where a branch's name would be run."""
    scripts = [step["run"] for workflow in github.values() for step in steps(workflow) if "run" in step]
    assert len(scripts) == 8
    assert not any(UNTRUSTED.search(script) for script in scripts)


def test_what_runs_a_request_may_only_read(github: dict[str, Any]) -> None:
    """The first workflow has no right but to read, no secret, no token in a variable, and leaves none behind."""
    looks = github["gpustack"]
    assert set(looks["on"]) == {"pull_request", "merge_group", "push"}
    assert looks["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and "environment" not in job for job in looks["jobs"].values())
    assert not re.search(r"secrets\.|github\.token|vars\.", json.dumps(looks))
    assert steps(looks)[0]["with"]["persist-credentials"] == "false"


def test_what_counts_runs_nothing_of_a_request(github: dict[str, Any]) -> None:
    """The second runs on the default branch alone, checks out that branch by its full name, and starts that branch's
    scripts. The job that reads a request's data may write nothing; tokens are given to those steps alone that talk with
    the site.
    """
    looks, counts = github["gpustack"], github["gpustack-review"]
    assert counts["on"] == {"workflow_run": {"workflows": [looks["name"]], "types": ["completed"]}}
    assert counts["permissions"] == {}
    assert counts["jobs"]["review"]["permissions"] == {"contents": "read", "pull-requests": "read"}
    wanted = {"contents": "read", "pull-requests": "write", "statuses": "write"}
    assert counts["jobs"]["tell"]["permissions"] == wanted
    assert [name for name, job in counts["jobs"].items() if "environment" in job] == ["tell"]
    branch = "refs/heads/${{ github.event.repository.default_branch }}"
    outs = [step["with"] for step in steps(counts) if step.get("uses", "").startswith("actions/checkout@")]
    assert [(out["ref"], out["persist-credentials"]) for out in outs] == [(branch, "false")] * 2
    for step in steps(counts):
        if re.search("TOKEN", json.dumps(step.get("env", {}))):
            assert step["run"].startswith(("python3 -I ci/requests.py ", "python3 -I ci/fetch.py "))
        assert "working-directory" not in step
    assert "secrets." not in json.dumps([*counts["jobs"]["review"]["steps"]])


def test_promotion_by_rings(project: Project, github: dict[str, Any]) -> None:
    """The job that promotes runs the default branch on a schedule alone, once it is switched on; what can push is given
    to the step that pushes, to a branch of its own. Without rings it does nothing.
    """
    moves = github["gpustack-promote"]
    assert (set(moves["on"]), moves["permissions"]) == ({"schedule"}, {})
    job = moves["jobs"]["promote"]
    assert (job["if"], job["permissions"]) == ("vars.GPUSTACK_PROMOTE == 'yes'", {"contents": "write"})
    assert steps(moves)[0]["with"]["ref"] == "refs/heads/${{ github.event.repository.default_branch }}"
    (push,) = [step for step in steps(moves) if "github.token" in json.dumps(step)]
    assert push["run"].rstrip().endswith(" HEAD:refs/heads/gpustack-promote")
    done = subprocess.run(["ci/promote.sh", "nothing"], cwd=project.folder / "new", capture_output=True, check=True)
    assert done.stdout == b"no policies/fleet.yaml: no change goes by rings here\n"


def test_no_line_of_a_stranger_is_a_command(github: dict[str, Any]) -> None:
    """GitHub obeys lines such as ::add-mask:: in what a step prints: while a request is judged it doesn't, and what
    turns that on again is new each time.
    """
    (script,) = [step["run"] for step in steps(github["gpustack-review"]) if "ci/judge.sh" in step.get("run", "")]
    lines = script.splitlines()
    assert lines[0].startswith("token=$(od -An -N16 -tx1 /dev/urandom")
    assert [line.partition(" ")[0] for line in lines[1:]] == ["echo", "ci/judge.sh", "echo"]
    assert lines[1] == 'echo "::stop-commands::$token"'


def test_python_is_isolated(project: Project, gitlab: dict[str, Any]) -> None:
    """Every script and pipeline starts Python with -I: nothing is imported from a work tree."""
    text = "".join(
        path.read_text("utf-8")
        for path in (*(project.folder / "new" / "ci").iterdir(), project.folder / "new" / ".gitlab-ci.yml")
        if path.suffix != ".py"
    )
    starts = re.findall(r'(?m)^[^#\n]*?(?:/bin/python"|python3|"\$python") (-.*)$', text)
    assert len(starts) >= 5
    assert all(each.startswith("-I") for each in starts)


def test_gitlab(gitlab: dict[str, Any]) -> None:
    """Merge requests run one job, without a token. What has the token runs on the default branch's schedule, and is
    not the job that reads the requests' data.
    """
    jobs = {name: job for name, job in gitlab.items() if "script" in job}
    jobs = {name: {**gitlab.get(job.get("extends", ""), {}), **job} for name, job in jobs.items()}
    theirs = [name for name, job in jobs.items() if "merge_request_event" in json.dumps(job["rules"])]
    assert theirs == ["gpustack"]
    assert "TOKEN" not in json.dumps(jobs["gpustack"])
    assert "environment" not in jobs["gpustack"]
    for name in ("gpustack-list", "gpustack-judge", "gpustack-tell"):
        (rule,) = jobs[name]["rules"]
        assert rule["if"] == '$CI_PIPELINE_SOURCE == "schedule" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH'
        assert ("environment" in jobs[name]) == (name != "gpustack-judge")
    (rule,) = jobs["gpustack-promote"]["rules"]
    assert rule["if"].endswith('$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $GPUSTACK_PROMOTE == "yes"')
    assert jobs["gpustack-promote"]["environment"]["name"] == "gpustack-promote"
    assert gitlab["default"]["cache"] == []
    assert gitlab["variables"]["GPUSTACK_IMAGE"].startswith("<edit"), "no image can be named that nobody has looked at"


@pytest.mark.parametrize(("ci", "path"), [("github", ".github/CODEOWNERS"), ("gitlab", "CODEOWNERS")])
def test_owners(project: Project, ci: str, path: str) -> None:
    """Everything has an owner but policies and what they render to, of which waivers and attributes have one again. No
    owner can be registered by somebody else until the lines are edited: both sites take them for invalid.
    """
    project.run("init", "new", "--ci", ci, "--today", TODAY)
    text = (project.folder / "new" / path).read_text(encoding="utf-8")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [line[0] for line in lines] == ["*", "/policies/", "/dist/", "/policies/waivers.yaml", ".gitattributes"]
    assert [len(line) for line in lines] == [2, 1, 1, 2, 2]
    assert all(re.fullmatch(r"<edit: @[a-z-]+/[a-z-]+>", line[1]) for line in lines if len(line) > 1)


@pytest.mark.parametrize(("ci", "path"), [("github", ".github/CODEOWNERS"), ("gitlab", "CODEOWNERS")])
def test_what_steers_has_owners(project: Project, ci: str, path: str) -> None:
    """Every file that `diff` calls one that steers the review has an owner: the last line that fits it names one."""
    project.run("init", "new", "--ci", ci, "--today", TODAY)
    text = (project.folder / "new" / path).read_text(encoding="utf-8")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    names = [f"{folder}x" for folder in steering.FOLDERS] + [name.replace("*", "x") for name in steering.FILES]
    assert len(names) > 20
    for name in names:
        fitting = [line for line in lines if line[0] in {"*", f"/{name}", name} or f"/{name}".startswith(line[0])]
        assert len(fitting[-1]) == 2, name
