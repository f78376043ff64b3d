"""gpustack init: what it makes renders, checks and passes; its CI comments once and trusts no fork."""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.cli import VERBS
from tests.project import ROOT, TODAY, Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


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


def test_the_editors_schema(new: Project) -> None:
    """The policies name the schema that lies there, and it is the one of this version."""
    for path in (new.folder / "policies").rglob("*.yaml"):
        named = re.search(r"\$schema=(\S+)", path.read_text(encoding="utf-8"))
        assert named
        assert json.loads((path.parent / named[1]).read_text(encoding="utf-8"))["title"] == "gpustack policy"


def test_line_ends_and_folds(new: Project) -> None:
    """Git keeps LF in what digests are about, folds the index away, and shows dist/ in reviews."""
    subprocess.run(["git", "init", "-q"], cwd=new.folder, check=True, env={**os.environ, **ENVIRONMENT})
    wanted = {"dist/example/base/a.yaml": "unspecified", "dist/.index/example.json": "true", "images.lock": "true"}
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


# --- what CI runs ----------------------------------------------------------------------------------------------------


def with_gpustack(new: Project, folder: Path) -> dict[str, str]:
    """The environment of NEW with this gpustack on the PATH."""
    shim = folder / "bin" / "gpustack"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpustack "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    return new.environment({**ENVIRONMENT, "PATH": f"{shim.parent}:{os.environ['PATH']}"})


def review(new: Project, folder: Path, base: str = "HEAD") -> subprocess.CompletedProcess[str]:
    """Run ci/review.sh of NEW with this gpustack on the PATH."""
    env = with_gpustack(new, folder)
    return subprocess.run(
        ["ci/review.sh", base, "report"], cwd=new.folder, env=env, capture_output=True, text=True, check=False
    )


def test_review(new: Project, tmp_path: Path) -> None:
    """A clean commit passes with a comment that says so; a policy that was not rendered fails, and the comment shows
    what would change; a policy that can't be read fails with a comment as well.
    """
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "new"]):
        subprocess.run(["git", *words], cwd=new.folder, check=True, env={**os.environ, **ENVIRONMENT})
    comment = new.folder / "report" / "comment.md"
    ran = review(new, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "no difference in 1 cluster" in comment.read_text(encoding="utf-8")
    assert (new.folder / "report" / "lint.xml").exists()
    policy = new.folder / "policies" / "example.yaml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(f"{text}  gfd: {{enabled: false}}\n", encoding="utf-8")
    assert review(new, tmp_path).returncode == 1
    assert "gpu-feature-discovery" in comment.read_text(encoding="utf-8")
    policy.write_text(f"{text}  nonsense: 1\n", encoding="utf-8")
    assert review(new, tmp_path).returncode == 1
    assert "could not be rendered" in comment.read_text(encoding="utf-8")


def test_review_validates_where_it_can(new: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kubeconform on the PATH the review asks it, and fails where it refuses an object; without, it passes."""
    without = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "kubeconform").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "new"]):
        subprocess.run(["git", *words], cwd=new.folder, check=True, env={**os.environ, **ENVIRONMENT})
    assert " valid" not in review(new, tmp_path).stdout
    tool = tmp_path / "bin" / "kubeconform"
    tool.symlink_to(ROOT / ".tools" / "bin" / "kubeconform")
    ran = review(new, tmp_path)
    assert (ran.returncode, "files of 1 cluster are valid" in ran.stdout) == (0, True), ran.stderr
    tool.unlink()
    tool.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    tool.chmod(0o755)
    assert review(new, tmp_path).returncode == 1


class Site(BaseHTTPRequestHandler):
    """As much of GitHub's and GitLab's API as a comment needs, two comments a page."""

    comments: list[dict[str, Any]]
    pulls: list[dict[str, Any]]
    refuse = False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        """Nothing."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if self.refuse:
            self.send_error(403)
            return
        if path.endswith("/notes"):
            assert path.startswith("/projects/3/merge_requests/5/"), "the request's project, which a fork's isn't"
        found: Any = {"id": 7}
        more = ""
        if path.endswith("/pulls"):
            found = self.pulls if "head=fork%3Ata%24x" in query else []
        elif path.endswith(("/comments", "/notes")):
            page = int((re.search(r"page=([0-9])$", query) or [0, 1])[1])
            found = self.comments[2 * page - 2 : 2 * page]
            if len(self.comments) > 2 * page:
                more = f'<http://{self.headers["Host"]}{path}?page={page + 1}>; rel="next"'
        self.answer(found, more)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))["body"]
        if self.command == "POST":
            author = {"user": {"type": "Bot"}, "author": {"id": 7}}
            self.comments.append({"id": len(self.comments) + 1, "body": body, **author})
        else:
            self.comments[int(self.path.rpartition("/")[2]) - 1]["body"] = body
        self.answer({}, "")

    do_PATCH = do_PUT = do_POST  # noqa: N815 - the names are the server's

    def answer(self, found: Any, more: str) -> None:
        """Send FOUND, and where MORE of it is."""
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Link", more)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def site() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of the API, and the comments of its one request: two of people, one of whom pretends to be us."""
    Site.comments = [
        {"id": 1, "body": "<!-- gpustack -->\nI am not it", "user": {"type": "User"}, "author": {"id": 1}},
        {"id": 2, "body": "well done", "user": {"type": "User"}, "author": {"id": 1}},
    ]
    Site.pulls = [{"number": 4, "head": {"sha": "old"}}, {"number": 5, "head": {"sha": "abc"}}]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", Site.comments
    server.shutdown()
    server.server_close()


def comment(new: Project, where: str, text: str | None, api: str, sha: str = "abc", code: int = 0) -> str:
    """Run ci/comment.py of NEW, which ends with CODE; without TEXT there is no file."""
    file = new.folder / "comment.md" if text is None else new.write("comment.md", text)
    env = {
        **new.environment({"NO_PROXY": "127.0.0.1", "http_proxy": None}),
        "GITHUB_API_URL": api,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_TOKEN": "t",
        "HEAD_OWNER": "fork",
        "HEAD_BRANCH": "ta$x",
        "HEAD_SHA": sha,
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "4",
        "CI_MERGE_REQUEST_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "5",
        "GPUSTACK_COMMENT_TOKEN": "t",
    }
    words = [sys.executable, "ci/comment.py", where, str(file)]
    done = subprocess.run(words, cwd=new.folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_one_comment(new: Project, site: tuple[str, list[dict[str, Any]]], where: str) -> None:
    """The first push makes the comment, later ones update it, wherever it stands, and nobody else's is touched."""
    api, comments = site
    comment(new, where, "first", api)
    assert [each["body"] for each in comments[2:]] == ["<!-- gpustack -->\nfirst"]
    comment(new, where, "x" * 100_000, api)
    (ours,) = comments[2:]
    assert len(ours["body"]) < 65_536
    assert ours["body"].endswith("(cut here)")
    assert comments[0]["body"].endswith("I am not it")


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_no_right_to_comment(
    new: Project, site: tuple[str, list[dict[str, Any]]], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that may not is told with what it needs, a site that isn't there too; both fail."""
    monkeypatch.setattr(Site, "refuse", True)
    said = comment(new, where, "first", site[0], code=1)
    assert "403" in said
    assert {"github": "pull-requests: write", "gitlab": "scope `api`"}[where] in said
    assert "Connection refused" in comment(new, where, "first", "http://127.0.0.1:9", code=1)


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_a_review_that_left_nothing(new: Project, site: tuple[str, list[dict[str, Any]]], where: str) -> None:
    """Where the review ended before it wrote a comment, nothing is commented, and that is no second failure."""
    assert "there is no" in comment(new, where, None, site[0])
    assert len(site[1]) == 2


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_no_commands(new: Project, site: tuple[str, list[dict[str, Any]]], where: str) -> None:
    """GitLab, and bots, do what a line of a comment that begins with a slash says: what a request changes must not
    merge it.
    """
    api, comments = site
    comment(new, where, "/merge\n  /approve\r/close\r\n/lgtm\na /path\n//\n", api)
    lines = comments[2]["body"].split("\n")
    assert lines == ["<!-- gpustack -->", "\\/merge", "  \\/approve", "\\/close", "\\/lgtm", "a /path", "//", ""]


def test_a_push_in_between(new: Project, site: tuple[str, list[dict[str, Any]]]) -> None:
    """What was found out about a commit is not said about another one."""
    api, comments = site
    assert "later run" in comment(new, "github", "late", api, sha="gone")
    assert len(comments) == 2


def workflows(new: Project) -> dict[str, Any]:
    """The workflows and the action, by file name."""
    return {
        path.name: yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - `on` stays a word
        for path in (new.folder / ".github").rglob("*.yaml")
    }


def test_forks_get_no_rights(new: Project) -> None:
    """What runs a pull request's code may only read and has no secret; what may write runs none of it. No script has a
    value of the event in its text, where a branch's name would be run.
    """
    found = workflows(new)
    looks, writes = found["gpustack.yaml"], found["gpustack-comment.yaml"]
    assert looks["permissions"] == {"contents": "read"}
    assert "pull_request" in looks["on"]
    assert list(writes["on"]) == ["workflow_run"]
    assert "pull_request_target" not in json.dumps(found)
    assert "secrets." not in json.dumps(found)
    (job,) = writes["jobs"].values()
    assert all("ref" not in step.get("with", {}) and "repository" not in step.get("with", {}) for step in job["steps"])
    jobs = [*looks["jobs"].values(), *writes["jobs"].values(), found["action.yaml"]["runs"]]
    assert all("${{" not in step.get("run", "") for each in jobs for step in each["steps"])
    assert writes["on"]["workflow_run"]["workflows"] == [looks["name"]]


def test_gitlab(project: Project) -> None:
    """The job that needs the token exists only where the token is; the comment comes from a file."""
    project.run("init", "new", "--ci", "gitlab", "--today", TODAY)
    jobs = yaml.safe_load((project.folder / "new" / ".gitlab-ci.yml").read_bytes())
    assert all("$GPUSTACK_COMMENT_TOKEN" in rule["if"] for rule in jobs["gpustack-comment"]["rules"])
    assert "TOKEN" not in json.dumps(jobs["gpustack"])
    assert jobs["gpustack-comment"]["script"] == ["python3 ci/comment.py gitlab report/comment.md"]


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
    """What is installed stands in requirements.txt alone, with what to write while no index has it; the README too."""
    naming = [
        path
        for path, content in new.tree(new.folder).items()
        if re.search(rb"^[^#\n]*gpustack-gitops *==", content, re.MULTILINE)
    ]
    assert naming == ["requirements.txt"]
    assert "gpustack-gitops @ git+https://" in (new.folder / "requirements.txt").read_text(encoding="utf-8")
    assert "no public package index" in (new.folder / "README.md").read_text(encoding="utf-8")


def test_hooks_find_gpustack(new: Project, tmp_path: Path) -> None:
    """Hooks take the gpustack of .venv before that of the PATH; where there is none, they say how it is installed."""
    env = with_gpustack(new, tmp_path)
    run = functools.partial(subprocess.run, cwd=new.folder, capture_output=True, text=True, check=False)
    assert run(["ci/gpustack", "version"], env=env).stdout.startswith("gpustack ")
    own = new.write(".venv/bin/gpustack", "#!/bin/sh\necho own $*\n")
    own.chmod(0o755)
    assert run(["ci/gpustack", "render", "--staged"], env=env).stdout == "own render --staged\n"
    own.unlink()
    done = run(["ci/gpustack", "version"], env={**env, "PATH": "/usr/bin:/bin"})
    assert (done.returncode, "pip install -r requirements.txt" in done.stderr) == (5, True), done.stderr


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
