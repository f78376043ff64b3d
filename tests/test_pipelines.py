"""What this repository offers to pipelines of others, and its own: action.yml for GitHub, a component for GitLab, the
workflow that publishes. Each script is run as a runner runs it, in a project of somebody else's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import ROOT, Project, cache, project
from tests.registry.test_push import GIT, git

__all__ = ["cache", "project"]

PYTHON = f"""\
#!/bin/sh
echo "python $*" >>"$CALLS"
case "$*" in
"-c "*) ;;
*"-m venv "*) for place; do :; done; mkdir -p "$place/bin"; ln -s "$0" "$place/bin/python" ;;
esac
case "$*" in
*"-m pip "*) ln -sf {ROOT}/.venv/bin/gpustack "$(dirname -- "$0")/gpustack" ;;
esac
"""
"""Plays the interpreter: what pip is told is written down, and gpustack is there then."""


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The variables of a runner whose python3 is played."""
    played = tmp_path / "played"
    played.mkdir()
    (played / "python3").write_text(PYTHON, "utf-8")
    (played / "python3").chmod(0o755)
    return {
        **os.environ,
        **GIT,
        "PATH": f"{played}:/usr/bin:/bin",
        "CALLS": str(tmp_path / "calls"),
        "TMPDIR": str(tmp_path),
    }


def action() -> dict[str, Any]:
    """The action's one step."""
    (step,) = yaml.safe_load((ROOT / "action.yml").read_bytes())["runs"]["steps"]
    found: dict[str, Any] = step
    return found


def component(**inputs: str) -> dict[str, Any]:
    """The component's job, with INPUTS in it, else what they are without."""
    spec, _, text = (ROOT / "templates/gpustack.yml").read_text("utf-8").partition("\n---\n")
    known = yaml.safe_load(spec)["spec"]["inputs"]
    values = {name: inputs.get(name) or each["default"] for name, each in known.items()}
    made = yaml.safe_load(re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], text))
    job: dict[str, Any] = made["gpustack"]
    return job


def test_the_action_puts_gpustack_on_the_path(tmp_path: Path, runner: dict[str, str]) -> None:
    """Of pinned packages alone, in the action's own folder; beside gpustack nothing is on the PATH then, no Python."""
    place, paths = tmp_path / "an action", tmp_path / "paths"
    for name in ("tools", "requirements"):
        shutil.copytree(ROOT / name, place / name)
    (place / "gpustack").mkdir()
    for name in ("pyproject.toml", "gpustack/__init__.py"):
        shutil.copy(ROOT / name, place / name)
    env = {**runner, "GITHUB_ACTION_PATH": str(place), "GITHUB_PATH": str(paths), "KUBECONFORM": "false"}
    subprocess.run(["/bin/sh", "-e", "-c", action()["run"]], cwd=tmp_path, env=env, check=True, timeout=60)
    (added,) = map(Path, paths.read_text("utf-8").splitlines())
    assert [path.name for path in added.iterdir()] == ["gpustack"]
    said = subprocess.run([added / "gpustack", "version"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("gpustack ")
    installs = [line for line in (tmp_path / "calls").read_text("utf-8").splitlines() if " install " in line]
    assert [("--require-hashes" in line, "--no-deps" in line) for line in installs] == [(True, False), (False, True)]


def test_the_component_judges_a_request(project: Project, runner: dict[str, str]) -> None:
    """What changes is shown and kept, and passes where dist/ is current; a render that was forgotten fails, and so does
    what a rule objects to. Only what the requirements pin is installed.
    """
    project.policy("one")
    assert project.run("render").code == 0
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "x")
    base = git(project, "rev-parse", "HEAD")
    job = component(image="python@sha256:...", requirements="some other.txt")
    assert (job["image"], job["stage"]) == ("python@sha256:...", "test")

    def ran() -> tuple[int, str]:
        shutil.rmtree(project.folder / "gpustack-review", ignore_errors=True)
        env = {
            **runner,
            **job["variables"],
            "GPUSTACK_CACHE": str(project.cache),
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        }
        words = ["/bin/sh", "-e", "-c", "\n".join(job["script"])]
        done = subprocess.run(
            words, cwd=project.folder, env=env, check=False, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    project.policy("one", dcgmExporter={"enabled": True})
    code, text = ran()
    assert (code, "run `gpustack render`" in text) == (3, True), text
    assert project.run("render").code == 0
    code, text = ran()
    assert code == 0, text
    assert "dcgm" in (project.folder / "gpustack-review/diff.md").read_text("utf-8")
    assert (project.folder / "gpustack-review/lint.xml").exists()
    project.policy("one", dcgmExporter={"enabled": True, "serviceMonitor": {"enabled": True}})
    assert project.run("render").code == 0
    code, text = ran()
    assert (code, "GPU603" in text) == (2, True), text
    calls = Path(runner["CALLS"]).read_text("utf-8")
    assert "--require-hashes --only-binary :all: --requirement some other.txt" in calls


def test_scripts_have_no_values_in_them() -> None:
    """Neither GitHub nor GitLab puts a value into the text of a script, where it would be run; actions of others are
    named by their commit.
    """
    text = (ROOT / ".github/workflows/release.yaml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"].values()
    scripts = [action()["run"], *(step["run"] for job in jobs for step in job["steps"] if "run" in step)]
    _, _, job = (ROOT / "templates/gpustack.yml").read_text("utf-8").partition("\n---\n")
    scripts += [job[job.index("  script:") :]]
    assert len(scripts) > 8
    assert not [script for script in scripts if "${{" in script or "$[[" in script]
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9.]+", each) for each in uses)
