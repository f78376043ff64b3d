"""The trusted review of a repository that init made: strangers' requests are data, whatever is in them.

All requests of this module are judged in one run, as a scheduled pipeline does; each test looks at one of them.
Whatever is run of a request leaves a file behind, and none may be there.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.hostile import JUDGED, LARGEST, LINES, REFUSED, pinned
from tests.cli.repository import Site, Verdict, commit, git, ready
from tests.project import Project


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Verdict], Path, Site]:
    """The verdict on each request, by its name; a file that is there when anything of them was run."""
    folder = tmp_path_factory.mktemp("site")
    pwned = folder / "pwned"
    (folder / "project").mkdir()
    made = ready(Project(folder / "project", folder / "cache"))
    made.write("notes.txt", "ours\n")
    fetch = made.folder / "ci" / "fetch.py"
    text = fetch.read_text(encoding="utf-8")
    assert "MOST_BYTES = 1 << 30" in text
    fetch.write_text(text.replace("MOST_BYTES = 1 << 30", f"MOST_BYTES = {LARGEST}"), encoding="utf-8")
    commit(made.folder)
    site = Site(made, folder)
    asked = {name: site.request(lambda work, each=each: each(work, pwned)) for name, each in (JUDGED | REFUSED).items()}  # type: ignore[misc]
    # Names that Git would take for the base, or for an option.
    evil = asked["files"][1]
    for name in (
        "refs/tags/main",
        "refs/tags/origin/main",
        "refs/heads/refs/heads/main",
        f"refs/heads/--upload-pack={pwned}",
    ):
        git(site.bare, "update-ref", name, evil)
    found = site.judge(list(asked.values()), PYTHONPATH=str(folder / "work1"))
    return {name: found[asked[name][0]] for name in asked}, pwned, site


def test_nothing_is_run(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """No script, import, program, filter, hook, submodule or package of any request was run."""
    assert judged[0].keys() == JUDGED.keys() | REFUSED.keys()
    assert not judged[1].exists()


def test_what_passes(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """A planned change passes."""
    found = judged[0]["routine"]
    assert (found.verdict, "Not passed" in found.comment) == ("success", False), found.comment


def test_what_does_not(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """What takes a driver away, and a render that was forgotten, don't pass, and the comment says why first."""
    found = judged[0]["stale"]
    assert found.verdict == "failure"
    assert "gpustack check" in found.comment.partition("###")[0]
    assert "an owner has to accept first" in found.comment.partition("###")[0]


def test_what_steers(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """A request that changes what steers the review doesn't pass by itself, and the comment names the files."""
    found = judged[0]["files"]
    assert found.verdict == "failure", found.comment
    for name in ("ci/judge.sh", "ci/json.py", ".gitattributes", "Makefile", ".github/workflows/gpustack-review.yaml"):
        assert name in found.comment
    assert "dist/example/config" in found.comment


def test_bytes_are_those_of_git(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """No attribute changes what is looked at: files are laid out as Git has them."""
    tree = judged[0]["files"].store / "tree"
    for path in ("policies/example.yaml", "requirements.txt", ".gitattributes"):
        there = subprocess.run(["git", "cat-file", "blob", f"HEAD:{path}"], cwd=tree, capture_output=True, check=True)
        assert (tree / path).read_bytes() == there.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("links", "it brings links or submodules, of which nobody sees what they lead to: `comment.md, "),
        ("submodule", "it brings links or submodules"),
        ("dot_git", "git checkout ends with"),
        ("bomb", "more than 200,000 files or 8 MiB"),
        ("large", "more than 200,000 files or 8 MiB"),
        ("conflict", "it can't be merged as it stands"),
        ("strangers", "merge"),
    ],
)
def test_what_is_not_looked_at(judged: tuple[dict[str, Verdict], Path, Site], name: str, said: str) -> None:
    """What can't be laid out as a review needs it is refused with the reason, before anything reads it."""
    found = judged[0][name]
    assert (found.verdict, said in found.comment) == ("failure", True), found.comment
    assert "this request is not reviewed" in found.comment


def test_another_version(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """Where the requirements change, the request's version is not installed, the comment says that the render is a
    stranger's, names the file, and judges dist/ as it stands.
    """
    found = judged[0]["pins"]
    assert found.verdict == "failure"
    assert "changes which gpustack is run" in found.comment
    assert "requirements.txt" in found.comment.partition("changes which gpustack is run")[2]
    assert "ClusterRoleBinding all" in found.comment


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_whatever_pip_obeys(judged: tuple[dict[str, Verdict], Path, Site], line: str, tmp_path: Path) -> None:
    """Each kind of line in the requirements is another version, which the base's never stands in for."""
    _, pwned, site = judged
    number, head = site.request(lambda work: pinned(line)(work, pwned))
    store = site.fetch([(number, head)], tmp_path)
    assert (store / str(number) / "pinned").is_dir()
    theirs = (store / str(number) / "tree" / "requirements.txt").read_text(encoding="utf-8")
    assert theirs.endswith(line)
    dist = store / str(number) / "pinned" / "dist" / "example" / "base"
    assert not (dist / "clusterrolebinding-all.yaml").exists()
    assert (dist.parents[2] / "requirements.txt").read_text(encoding="utf-8") == theirs


def test_secrets_stay_out(judged: tuple[dict[str, Verdict], Path, Site], tmp_path: Path) -> None:
    """gpustack, which reads hostile data, has none of the job's variables but the PATH."""
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nenv\n", encoding="utf-8")
    program.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "JUDGE_VENV": str(tmp_path), "JUDGE_HOME": str(tmp_path), "TOKEN": "hunter2"}
    env |= {"PIP_INDEX_URL": "https://a:hunter2@example.com", "NODE_OPTIONS": "--require=hunter2", "GIT_DIR": "hunter2"}
    isolated = judged[2].made.folder / "ci" / "isolated"
    done = subprocess.run([isolated, "diff"], env=env, capture_output=True, text=True, check=True)
    assert "hunter2" not in done.stdout
    assert "PATH=" in done.stdout


def test_two_that_pass_alone(judged: tuple[dict[str, Verdict], Path, Site]) -> None:
    """What is reviewed is what a merge makes of the base as it is by now: two requests that each render right, and
    whose texts don't touch, render to something else together, and the later one doesn't pass any more.
    """
    site = judged[2]

    def layer(work: Project) -> None:
        path = work.folder / "policies" / "layers" / "base.yaml"
        path.write_text(
            f"{path.read_text(encoding='utf-8')}  daemonsets: {{labels: {{team: gpu}}}}\n", encoding="utf-8"
        )
        assert work.run("render").code == 0

    def another(work: Project) -> None:
        text = (work.folder / "policies" / "example.yaml").read_text(encoding="utf-8")
        work.write("policies/second.yaml", text.replace("{name: example}", "{name: second}"))
        assert work.run("render").code == 0

    first, second = site.request(layer), site.request(another)
    site.merge(first[1])
    found = site.judge([second], "later")[second[0]]
    assert (found.store / "base").read_text(encoding="utf-8") == git(site.bare, "rev-parse", "refs/heads/main")
    assert "team: gpu" in (found.store / "tree" / "policies" / "layers" / "base.yaml").read_text(encoding="utf-8")
    assert found.verdict == "failure"
    assert "gpustack check" in found.comment
