"""gpustack init: what it makes renders, checks and passes, and sets itself up of pinned requirements alone."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpustack.cli import VERBS
from tests.cli.repository import ENVIRONMENT, commit, git
from tests.project import ROOT, TODAY, Project, document


@pytest.fixture
def new(project: Project) -> Project:
    """The project that init makes for GitHub."""
    assert project.run("init", "new", "--today", TODAY).code == 0
    return Project(project.folder / "new", project.cache)


@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
def test_it_passes_as_created(project: Project, ci: str) -> None:
    """Nothing is stale, no rule warns, and a render changes nothing; only the CI that was asked for is there."""
    ran = project.run("init", "new", "--ci", ci, "--today", TODAY)
    assert ran.code == 0, ran.err
    made = Project(project.folder / "new", project.cache)
    assert f"{len(made.tree(made.folder))} files written" in ran.out
    assert made.run("check").code == 0
    assert made.run("lint", "--fail-on", "warning", "--today", TODAY).code == 0
    assert made.run("render").out == "1 cluster rendered into dist, 0 changed\n"
    there = {name for name in (".github", ".gitlab-ci.yml") if (made.folder / name).exists()}
    assert there == {"github": {".github"}, "gitlab": {".gitlab-ci.yml"}, "none": set()}[ci]
    assert not re.search(rb"@[A-Z]+@", b"".join(made.tree(made.folder).values()))


def test_in_a_home_folder(project: Project) -> None:
    """Whoever stands in a folder that is no clone and has the cache below it is told of no cache in the work tree."""
    ran = project.run("init", "new", env={"GPUSTACK_CACHE": None, "XDG_CACHE_HOME": str(project.folder / ".cache")})
    assert (ran.code, ran.err) == (0, "")
    assert (project.folder / ".cache/gpustack").is_dir()


def test_the_base_layer_fits_any_platform(new: Project) -> None:
    """A policy for OpenShift, whose nodes run CRI-O, extends the base layer as it is."""
    cluster = {"platform": "openshift", "kubernetesVersion": "1.31", "openshift": {"version": "4.18.22"}}
    spec = {"extends": ["base"], "cluster": cluster, "driver": {"enabled": False}}
    new.write("policies/ocp.yaml", document("ClusterPolicy", "ocp", spec))
    found = new.run("lint", "ocp", "--format", "json").json["findings"]
    assert [each["rule"] for each in found if each["severity"] == "error"] == []


def test_the_editors_schema(new: Project) -> None:
    """The policies name the schema that lies there, and it is the one of this version."""
    for path in (new.folder / "policies").rglob("*.yaml"):
        named = re.search(r"\$schema=(\S+)", path.read_text(encoding="utf-8"))
        assert named
        assert json.loads((path.parent / named[1]).read_text(encoding="utf-8"))["title"] == "gpustack policy"


def test_line_ends_and_folds(new: Project) -> None:
    """Git keeps LF in what digests are about, folds the index away, and shows dist/ in reviews."""
    subprocess.run(["git", "init", "-q"], cwd=new.folder, check=True, env={**os.environ, **ENVIRONMENT})
    wanted = {
        "dist/example/base/a.yaml": "unspecified",
        "dist/.index/example.json": "true",
        "images.lock": "unspecified",
    }
    for path, folded in wanted.items():
        words = ["git", "check-attr", "eol", "linguist-generated", "--", path]
        said = subprocess.run(words, cwd=new.folder, check=True, capture_output=True, text=True).stdout
        assert f"{path}: eol: lf\n{path}: linguist-generated: {folded}\n" == said


@pytest.mark.parametrize("name", ["policies/a.yaml", "dist/a/b.yaml", "requirements.txt", ".gitattributes"])
def test_nothing_is_written_over(project: Project, name: str) -> None:
    """Where something is that it would write, it writes nothing at all."""
    project.write(f"new/{name}", "mine")
    ran = project.run("init", "new")
    assert (ran.code, "GPU970" in ran.err) == (4, True)
    assert project.tree(project.folder / "new") == {name: b"mine"}
    project.write("file", "mine")
    assert "GPU970" in project.run("init", "file").err
    project.write("odd/.github", "mine")
    assert [project.run("init", each).code for each in ("file/new", "odd", "")] == [4, 4, 4]


def test_a_fresh_clone(project: Project) -> None:
    """What GitHub and GitLab put into a new repository stays byte for byte, all else is made, and what a .gitignore
    lacks is said; the result checks.
    """
    first = {"README.md": b"# fleet\r\n", "LICENSE": b"mine", ".gitignore": b"report/\n*.pyc"}
    for name, content in first.items():
        project.write(f"new/{name}", content)
    subprocess.run(["git", "init", "-q", "new"], cwd=project.folder, check=True, env={**os.environ, **ENVIRONMENT})
    ran = project.run("init", "new", "--today", TODAY)
    assert ran.code == 0, ran.err
    made = Project(project.folder / "new", project.cache)
    assert {name: (made.folder / name).read_bytes() for name in first} == first
    assert made.run("check").code == 0
    there = [name for name in made.tree(made.folder) if not name.startswith(".git/")]
    assert f"{len(there) - len(first)} files written" in ran.out
    assert "README.md stays as it is" in ran.out
    assert ".gitignore stays as it is; add to it: .venv/ report.html __pycache__/\n" in ran.out
    assert "LICENSE" not in ran.out
    assert "warning" not in ran.out


def test_a_gitignore_that_hides_the_render(project: Project) -> None:
    """GitHub's .gitignore for Python leaves out dist/: that is said, as an engine would find nothing to sync."""
    project.write("new/.gitignore", "build/\ndist/\n.venv/\nreport/\nreport.html\n__pycache__/\n")
    subprocess.run(["git", "init", "-q", "new"], cwd=project.folder, check=True, env={**os.environ, **ENVIRONMENT})
    ran = project.run("init", "new", "--today", TODAY)
    assert (ran.code, ".gitignore stays as it is\n" in ran.out) == (0, True), ran.out
    assert "warning: Git ignores dist here" in ran.out


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_odd_things_that_stay(project: Project, kind: str) -> None:
    """Whatever stands in the place of a file that stays is neither written through nor waited for."""
    elsewhere, path = project.write("elsewhere", "mine"), project.folder / "new" / ".gitignore"
    path.parent.mkdir()
    if kind == "link":
        path.symlink_to("../elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert project.run("init", "new", "--today", TODAY).code == 0
    assert elsewhere.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", [".github", "ci", "policies", "schemas"])
@pytest.mark.parametrize("kind", ["link", "pipe", "file"])
def test_no_way_out(project: Project, name: str, kind: str) -> None:
    """What stands where a folder goes is refused before anything is written; a link there would lead elsewhere."""
    (project.folder / "new").mkdir()
    (project.folder / "elsewhere").mkdir()
    path = project.folder / "new" / name
    if kind == "link":
        path.symlink_to("../elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("mine", encoding="utf-8")
    ran = project.run("init", "new")
    assert (ran.code, f"new has {name}" in ran.err) == (4, True), ran.err
    assert [each.name for each in (project.folder / "new").iterdir()] == [name]
    assert not list((project.folder / "elsewhere").iterdir())


@pytest.mark.parametrize("there", [True, False])
def test_no_half_of_a_repository(project: Project, there: bool) -> None:
    """Where the disk is full, nothing is left behind, and the same command works when there is room again."""
    if there:
        project.write("new/.git/HEAD", "ref: refs/heads/main\n")
    before = project.tree(project.folder / "new") if there else {}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, limit[1]))  # the schema has more
    try:
        ran = project.run("init", "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (ran.code, "GPU924" in ran.err) == (4, True), ran.err
    assert [each.name for each in project.folder.iterdir()] == (["new"] if there else [])
    assert (project.tree(project.folder / "new") if there else {}) == before
    assert project.run("init", "new").code == 0


def test_two_at_once(project: Project) -> None:
    """One of them sets it up, the other one is refused, and what is there is whole."""
    running = [project.start("init", "new") for _ in range(2)]
    codes = sorted(each.wait(120) for each in running)
    for each in running:
        each.communicate()
    assert codes == [0, 4]
    assert project.run("check", cwd=project.folder / "new").code == 0
    assert [each.name for each in project.folder.iterdir()] == ["new"]


def test_names_that_steer_a_terminal(project: Project) -> None:
    """What a folder is called is told without line ends and escapes."""
    ran = project.run("init", "a\n\x1b[31m")
    assert (ran.code, "\x1b" in ran.out, ran.out.count("\n")) == (0, False, 1)


# --- how it sets itself up -------------------------------------------------------------------------------------------


def with_gpustack(new: Project, folder: Path) -> dict[str, str]:
    """The environment of NEW in which ci/gpustack starts this gpustack."""
    shim = folder / "bin" / "gpustack"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpustack "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    path = f"{shim.parent}:{os.environ['PATH']}"  # the hooks of this repository look there
    return new.environment({**ENVIRONMENT, "GPUSTACK": str(shim), "PATH": path})


def test_requirements(new: Project) -> None:
    """All that gpustack runs on stands there as it was tested, each package by version and hash, for all that it
    supports; no address is in it. The one line that nobody but the user knows is one that pip refuses.
    """
    text = (new.folder / "requirements.txt").read_text(encoding="utf-8")
    assert text.endswith((ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8"))
    lines = [line for line in text.replace("\\\n", "").splitlines() if line and not line.startswith("#")]
    assert lines[0].startswith("<")
    names = {canonicalize_name(Requirement(line.partition(" --hash")[0]).name) for line in lines[1:]}
    assert all(" --hash=sha256:" in line for line in lines[1:])
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert {canonicalize_name(Requirement(each).name) for each in wanted} <= names
    assert not re.search(r"(?m)^[^#]*https?:", text)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--dry-run", "--require-hashes", "-r"]
    done = subprocess.run([*pip, "requirements.txt"], cwd=new.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "Invalid requirement" in done.stderr) == (1, True), done.stderr


def test_not_edited_yet(new: Project) -> None:
    """Until somebody says where gpustack comes from, every target, hook and CI job ends with what to do."""
    done = subprocess.run(["make", "render"], cwd=new.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "requirements.txt does not say yet where gpustack comes from" in done.stderr
    assert "edit its line in angle brackets" in done.stderr
    assert not (new.folder / ".venv").exists()


def wheel(folder: Path, version: str) -> tuple[Path, str]:
    """A wheel that is called gpustack and prints its arguments; the requirement that names it."""
    path = folder / f"gpustack_gitops-{version}-py3-none-any.whl"
    info = f"gpustack_gitops-{version}.dist-info"
    files = {
        "gpustack/__init__.py": "",
        "gpustack/__main__.py": f"import sys\nprint('gpustack {version}', *sys.argv[1:])\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: gpustack-gitops\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path, f"./{path.name} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def test_make_sets_itself_up(new: Project) -> None:
    """`make` installs what requirements.txt names, once, and anew when its content changes; a hash that is wrong, and
    what has none, are refused; no file of the tree is imported or made into another.
    """
    for name in (
        "json.py",
        "venv.py",
        "pip.py",
        "gpustack.py",
        "sitecustomize.py",
        "ci/json.py",
        "render.sh",
        "Makefile.sh",
    ):
        new.write(name, "raise SystemExit('imported')\n")
    make = new.folder / "Makefile"
    before = make.read_bytes()
    os.utime(make, (1, 1))
    env = new.environment(
        {"PIP_NO_INDEX": "1", "PYTHONPATH": None, "GPUSTACK": None, "MAKEFLAGS": None, "MAKELEVEL": None}
    )
    run = functools.partial(subprocess.run, cwd=new.folder, env=env, capture_output=True, text=True, check=False)
    _, first = wheel(new.folder, "1")
    new.write("requirements.txt", first)
    done = run(["make", "render", "ARGS=--jobs 2"])
    assert done.stdout == "gpustack 1 render --jobs 2\n", done.stderr
    assert "making" in done.stderr
    os.utime(new.folder / "requirements.txt", (1, 1))
    assert (run(["make", "check"]).stdout, run(["make", "lint"]).stderr) == ("gpustack 1 check\n", "")
    path, second = wheel(new.folder, "2")
    new.write("requirements.txt", second)
    assert run(["make", "diff"]).stdout == "gpustack 2 diff\n"
    for text, said in (
        (second.replace("sha256:", "sha256:0")[:-2] + "\n", "pip can't"),
        (f"./{path.name}\n", "pip can't"),
    ):
        new.write("requirements.txt", text)
        done = run(["make", "report"])
        assert (done.returncode, said in done.stderr, done.stdout) == (2, True, ""), done.stderr
    assert make.read_bytes() == before


def test_a_committed_environment(new: Project) -> None:
    """An environment that somebody committed, as files or as a link, is refused and never run."""
    git(new.folder, "init", "-q")
    env = new.environment({"GPUSTACK": None})
    run = functools.partial(subprocess.run, cwd=new.folder, env=env, capture_output=True, text=True, check=False)
    python = new.write(".venv/bin/python", "#!/bin/sh\necho pwned\n")
    python.chmod(0o755)
    commit(new.folder)
    for each in ("files", "link"):
        if each == "link":
            (new.folder / ".venv").rename(new.folder / "other")
            (new.folder / ".venv").symlink_to("other")
        done = run(["ci/gpustack", "version"])
        assert (done.returncode, done.stdout) == (5, "")
        assert "is committed, and would be run" in done.stderr


def test_make_help(new: Project) -> None:
    """`make` alone lists every target, and each verb behind one exists."""
    text = (new.folder / "Makefile").read_text(encoding="utf-8")
    shown = subprocess.run(["make"], cwd=new.folder, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"(?m)^\.PHONY: (.*)$", text))
    assert targets == set(re.findall(r"(?m)^  make ([a-z-]+) +\S", shown))
    assert targets == {"render", "check", "diff", "validate", "lint", "report", "lock", "help"}
    assert set(re.findall(r"@ci/gpustack ([a-z]+)", text)) == targets - {"help"}
    assert not re.search(r"(?m)^-?include|\$\(shell|\$\(wildcard|VPATH", text)


@pytest.mark.parametrize(
    ("code", "words", "ended"),
    [(0, "", 0), (1, "", 0), (1, "ARGS=--base HEAD", 0), (1, "ARGS=--fail-on outage", 2), (4, "", 2), (5, "", 2)],
)
def test_make_diff(new: Project, tmp_path: Path, code: int, words: str, ended: int) -> None:
    """What differs is no error of make; what can't be compared is, and what --fail-on was asked to fail on."""
    shim = tmp_path / "shim"
    shim.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    shim.chmod(0o755)
    env = new.environment({"GPUSTACK": str(shim), "MAKEFLAGS": None})
    done = subprocess.run(
        ["make", "diff", *filter(None, [words])], cwd=new.folder, env=env, capture_output=True, check=False
    )
    assert (done.returncode, not done.stderr) == (ended, ended == 0)


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_what_comes_before_the_first_push(project: Project, ci: str) -> None:
    """Every file that is invalid until edited is named in the first steps, before the commit."""
    assert project.run("init", "../fleet", "--ci", ci).code == 0
    fleet = project.folder.parent / "fleet"
    text = (fleet / "README.md").read_text(encoding="utf-8")
    first = text.partition("## First")[2].partition("`git add")[0]
    files = [path for path, content in project.tree(fleet).items() if re.search(rb"(?m)^[^#\n]*<(edit|where)", content)]
    assert len(files) > 1
    assert [path for path in files if f"`{path.rpartition('/')[2]}`" not in first and path != "ci/review.sh"] == []


def test_hooks(new: Project) -> None:
    """The hooks of this repository, and those of a new one, call verbs that exist, and see no file names."""
    ours = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    theirs = yaml.safe_load((new.folder / ".pre-commit-config.yaml").read_bytes())["repos"][0]["hooks"]
    for hook in (*ours, *theirs):
        program, verb = hook["entry"].split()[:2]
        wanted = "gpustack" if hook in ours else "ci/gpustack"
        assert (program, verb in VERBS, hook["pass_filenames"]) == (wanted, True, False)
        # pre-commit names no files that are gone: a hook that waits for one would let a policy's render stay behind.
        assert hook.get("always_run", False) == (verb in {"render", "check"})
        assert ("--staged" in hook["entry"]) == (verb in {"render", "check"})
    assert {hook["id"] for hook in ours} == {"gpustack-render", "gpustack-check", "gpustack-lint"}


def test_one_place_for_the_version(new: Project) -> None:
    """What is installed stands in requirements.txt alone; the README says what to edit there."""
    naming = [
        path
        for path, content in new.tree(new.folder).items()
        if re.search(rb"gpustack-gitops *(==|@)", content, re.MULTILINE)
    ]
    assert naming == ["requirements.txt"]
    assert "no public package index" in (new.folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", ["gpustack-render", "gpustack-check"])
def test_hooks_see_what_is_not_added(new: Project, tmp_path: Path, hook: str) -> None:
    """pre-commit sees files that a hook changes, not those that it makes: a commit without a new cluster's folder is
    stopped by the hook itself, and goes through once it was added.
    """
    entries = [*yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_bytes())]
    entries += yaml.safe_load((new.folder / ".pre-commit-config.yaml").read_bytes())["repos"][0]["hooks"]
    text = (new.folder / "policies" / "example.yaml").read_text(encoding="utf-8")
    new.write("policies/second.yaml", text.replace("{name: example}", "{name: second}"))
    new.run("render")
    env = with_gpustack(new, tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=new.folder, env=env, check=True)
    subprocess.run(["git", "add", "."], cwd=new.folder, env=env, check=True)
    for entry in (shlex.split(each["entry"]) for each in entries if each["id"] == hook):
        run = functools.partial(subprocess.run, cwd=new.folder, env=env, capture_output=True, text=True, check=False)
        run(["git", "rm", "-q", "-r", "--cached", "dist/second"])
        done = run(entry)
        assert (done.returncode != 0, "dist/second/" in done.stdout + done.stderr) == (True, True)
        run(["git", "add", "dist"])
        done = run(entry)
        assert done.returncode == 0, done.stdout + done.stderr
