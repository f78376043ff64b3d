"""ci/review.sh of a new repository: what CI asks of a change, in the repository itself and after a merge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.repository import ENVIRONMENT, commit, ready
from tests.project import ROOT, Project


@pytest.fixture
def new(project: Project) -> Project:
    """A repository that init made, ready and committed."""
    return ready(project)


def review(new: Project, folder: Path, base: str = "HEAD", **env: str) -> subprocess.CompletedProcess[str]:
    """Run ci/review.sh of NEW with this gpustack, and with the PATH less what has kubeconform."""
    shim = folder / "bin" / "gpustack"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -X utf8 -m gpustack "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    paths = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "kubeconform").exists()]
    env = {**ENVIRONMENT, "GPUSTACK": str(shim), "PATH": os.pathsep.join([str(shim.parent), *paths]), **env}
    return subprocess.run(
        ["ci/review.sh", base, "report"],
        cwd=new.folder,
        env=new.environment(env),
        capture_output=True,
        text=True,
        check=False,
    )


def test_review(new: Project, tmp_path: Path) -> None:
    """A clean commit passes with a comment that says so; a policy that was not rendered fails, and the comment says so
    first and shows what would change; a policy that can't be read fails with a comment as well.
    """
    comment = new.folder / "report" / "comment.md"
    ran = review(new, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert comment.read_text(encoding="utf-8").startswith("### gpustack: no difference in 1 cluster")
    assert (new.folder / "report" / "lint.xml").exists()
    policy = new.folder / "policies" / "example.yaml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(f"{text}  gfd: {{enabled: false}}\n", encoding="utf-8")
    assert review(new, tmp_path).returncode == 1
    said = comment.read_text(encoding="utf-8")
    assert said.startswith("**Not passed:**\n\n- ")
    assert "`gpustack check`" in said.partition("###")[0]
    assert "gpu-feature-discovery" in said
    policy.write_text(f"{text}  nonsense: 1\n", encoding="utf-8")
    assert review(new, tmp_path).returncode == 1
    assert "could not be rendered" in comment.read_text(encoding="utf-8").partition("###")[0]


def test_what_rules_say(new: Project, tmp_path: Path) -> None:
    """What lint has against a policy stands in the comment, indented: no text of a policy ends the block."""
    policy = new.folder / "policies" / "example.yaml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB"), encoding="utf-8")
    new.run("render")
    assert review(new, tmp_path).returncode == 1
    said = (new.folder / "report" / "comment.md").read_text(encoding="utf-8")
    block = said.partition("### gpustack lint\n\n")[2]
    assert "warning GPU109: the catalogue has no GPU 'NVIDIA-H100-80GB'" in block
    assert all(line.startswith("    ") or not line for line in block.split("\n"))


def test_bases(new: Project, tmp_path: Path) -> None:
    """After a merge the base is the commit before. A branch that is new has none, and is compared with itself; a
    commit that the clone doesn't have, or a word that Git would take for an option, ends it.
    """
    new.write(
        "policies/example.yaml", (new.folder / "policies/example.yaml").read_bytes() + b"  gfd: {enabled: false}\n"
    )
    new.run("render")
    commit(new.folder)
    comment = new.folder / "report" / "comment.md"
    review(new, tmp_path, "HEAD^1")
    assert "gpu-feature-discovery" in comment.read_text(encoding="utf-8")
    assert review(new, tmp_path, "0" * 40).returncode == 0
    assert "no difference" in comment.read_text(encoding="utf-8")
    for base in ("f" * 40, "--upload-pack=x", ""):
        ran = review(new, tmp_path, base)
        assert (ran.returncode, "error: this clone has no commit" in ran.stderr) == (4, True)


def test_it_validates_where_it_can(new: Project, tmp_path: Path) -> None:
    """With kubeconform on the PATH the review asks it, and fails where it refuses an object; without, it passes."""
    assert " valid" not in review(new, tmp_path).stdout
    tool = tmp_path / "bin" / "kubeconform"
    tool.symlink_to(ROOT / ".tools" / "bin" / "kubeconform")
    ran = review(new, tmp_path)
    assert (ran.returncode, "files of 1 cluster are valid" in ran.stdout) == (0, True), ran.stderr
    tool.unlink()
    tool.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    tool.chmod(0o755)
    assert review(new, tmp_path).returncode == 1


def test_owners_that_nobody_put_in(new: Project, tmp_path: Path) -> None:
    """CODEOWNERS with its first lines owns nothing: the review fails until somebody is named, or the file is gone."""
    owners = new.folder / ".github" / "CODEOWNERS"
    text = owners.read_text(encoding="utf-8")
    owners.write_text(text.replace("@gpus/owners", "<edit: @your-org/your-team>"), encoding="utf-8")
    commit(new.folder)
    ran = review(new, tmp_path)
    assert (ran.returncode, ".github/CODEOWNERS names no owner yet" in ran.stderr) == (1, True)


def test_a_program_that_says_nothing(new: Project, tmp_path: Path) -> None:
    """A gpustack that is broken, whatever it ends with, is no review that passed."""
    for code in (0, 1, 2, 70, 127):
        broken = tmp_path / f"broken{code}"
        broken.write_text(f'#!/bin/sh\n[ "$1" != version ] || exec echo 1\nexit {code}\n', encoding="utf-8")
        broken.chmod(0o755)
        ran = review(new, tmp_path, GPUSTACK=str(broken))
        assert (ran.returncode, "could not be rendered" in ran.stderr) == (1, True), code


@pytest.mark.parametrize("code", [0, 1, 5, 127])
def test_no_program(new: Project, tmp_path: Path, code: int) -> None:
    """Where gpustack can't be installed or run, that is the one reason, and no rule or render is blamed."""
    broken = tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\necho pip says why >&2\nexit {code}\n", encoding="utf-8")
    broken.chmod(0o755)
    ran = review(new, tmp_path, GPUSTACK=str(broken))
    reason = "- gpustack can't be installed or run, so nothing was looked at; the log of the job says why.\n"
    assert (ran.returncode, ran.stderr) == (1, f"pip says why\nnot passed:\n{reason}")
    assert (new.folder / "report" / "comment.md").read_text(encoding="utf-8") == f"**Not passed:**\n\n{reason}"
