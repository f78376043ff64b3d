"""What ci/requests.py of a new repository asks and tells GitHub and GitLab, and what their pipelines may do.

The sites are played by as much of their API as is asked, two items a page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.project import TODAY, Project

HEAD, OLD, BASE = "a" * 40, "b" * 40, "c" * 40


@dataclass
class State:
    """What the site holds, and what it was told."""

    comments: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    statuses: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    votes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuse: bool = False


class Api(BaseHTTPRequestHandler):
    """GitHub and GitLab in one: their paths don't meet."""

    state: State

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        """Nothing."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if self.state.refuse:
            self.send_error(403)
        elif path == "/user":
            self.answer({"id": 7})
        elif path.endswith(("/pulls", "/merge_requests")):
            assert re.search(r"(base|target_branch)=m%2Fain\b", query)
            self.answer(*self.page(self.state.requests, query))
        else:
            assert path in {"/repos/o/r/issues/5/comments", "/projects/3/merge_requests/5/notes"}
            self.answer(*self.page(self.state.comments, query))

    def page(self, items: list[dict[str, Any]], query: str) -> tuple[Any, str]:
        """Two of ITEMS, and where the next two are."""
        number = int((re.search(r"\bpage=([0-9]+)", query) or [0, 1])[1])
        path = self.path.partition("?")[0]
        more = re.sub(r"&page=[0-9]+", "", query)
        link = f'<http://{self.headers["Host"]}{path}?{more}&page={number + 1}>; rel="next"'
        return items[2 * number - 2 : 2 * number], link if len(items) > 2 * number else ""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = self.path.split("/")
        if "statuses" in what:
            self.state.statuses.append((what[-1], body))
        elif what[-1] in {"approve", "unapprove"}:
            self.state.votes.append((what[-1], body))
            if what[-1] == "unapprove":
                self.send_error(404)  # it hadn't approved
                return
        elif self.command == "POST":
            author = {"user": {"type": "Bot"}, "author": {"id": 7}}
            self.state.comments.append({"id": len(self.state.comments) + 1, "body": body["body"], **author})
        else:
            self.state.comments[int(what[-1]) - 1]["body"] = body["body"]
        self.answer({})

    do_PATCH = do_PUT = do_POST  # noqa: N815 - the names are the server's

    def answer(self, found: Any, more: str = "") -> None:
        """Send FOUND, and where MORE of it is."""
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Link", more)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@dataclass
class Site:
    """A site that is asked at `api`, and a repository that init made for it."""

    made: Project
    api: str
    state: State
    where: str

    def call(self, verb: str, path: str, code: int = 0, **more: str) -> str:
        """Run ci/requests.py, which ends with CODE; what it prints."""
        env = {
            **self.made.environment({"NO_PROXY": "127.0.0.1", "http_proxy": None}),
            "GITHUB_API_URL": self.api,
            "GITHUB_REPOSITORY": "o/r",
            "TOKEN": "t",
            "HEAD_SHA": HEAD,
            "EVENT": "pull_request",
            "DEFAULT_BRANCH": "m/ain",
            "CI_API_V4_URL": self.api,
            "CI_PROJECT_ID": "3",
            "CI_DEFAULT_BRANCH": "m/ain",
            "CI_COMMIT_SHA": BASE,
            "GPUSTACK_TOKEN": "t",
            **more,
        }
        words = [sys.executable, "-I", "ci/requests.py", self.where, verb, path]
        done = subprocess.run(words, cwd=self.made.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def tell(self, text: str, verdict: str = "success", code: int = 0, number: int = 5, **more: str) -> str:
        """Tell of a review that left TEXT and VERDICT."""
        for name, content in (("comment.md", text), ("verdict", f"{verdict}\n"), ("head", HEAD), ("base", BASE)):
            self.made.write(f"report/{number}/{name}", content)
        return self.call("tell", "report", code, **more)


@pytest.fixture(params=["github", "gitlab"])
def site(project: Project, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site with two comments of people, one of whom pretends to be us, and three requests of the same branch."""
    assert project.run("init", "new", "--ci", request.param, "--today", TODAY).code == 0
    comments = [
        {
            "id": 1,
            "body": f"<!-- gpustack {HEAD} {BASE} -->\nI am not it",
            "user": {"type": "User"},
            "author": {"id": 1},
        },
        {"id": 2, "body": "well done", "user": {"type": "User"}, "author": {"id": 1}},
    ]
    found = [
        {"number": number, "iid": number, "head": {"sha": sha}, "sha": sha, "base": {"ref": to}, "target_branch": to}
        for number, sha, to in ((3, HEAD, "other"), (4, OLD, "m/ain"), (5, HEAD, "m/ain"))
    ]
    if request.param == "gitlab":
        found.pop(1)
    Api.state = State(comments, found)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_address[1]}"
    yield Site(Project(project.folder / "new", project.cache), api, Api.state, request.param)
    server.shutdown()
    server.server_close()


def test_which_requests(site: Site) -> None:
    """Those that are open, go into the default branch, and are at the commit that the run was about."""
    site.call("list", "requests")
    assert (site.made.folder / "requests").read_text(encoding="utf-8") == f"5 {HEAD}\n"


def test_one_comment(site: Site) -> None:
    """The first review makes the comment, later ones update it, wherever it stands, and nobody else's is touched. The
    commit that was reviewed, and no other, gets the status; on GitLab it alone is approved, and only while it passes.
    """
    site.tell("first")
    first = f"<!-- gpustack {HEAD} {BASE} -->"
    assert [each["body"] for each in site.state.comments[2:]] == [f"{first}\nfirst"]
    site.tell("x" * 100_000, "failure") if site.where == "github" else site.tell(
        "x" * 100_000, "failure", CI_COMMIT_SHA=OLD
    )
    (ours,) = site.state.comments[2:]
    assert len(ours["body"]) < 65_536
    assert ours["body"].endswith("(cut here)")
    assert site.state.comments[0]["body"].endswith("I am not it")
    name = "context" if site.where == "github" else "name"
    told = [(commit, each["state"], each[name]) for commit, each in site.state.statuses]
    bad = "failure" if site.where == "github" else "failed"
    assert told == [(HEAD, "success", "gpustack/review"), (HEAD, bad, "gpustack/review")]
    assert f"(against {BASE[:12]})" in site.state.statuses[0][1]["description"]
    votes = [("approve", {"sha": HEAD}), ("unapprove", {})]
    assert site.state.votes == ([] if site.where == "github" else votes)


def test_once_is_enough(site: Site) -> None:
    """GitLab's schedule doesn't review what it has reviewed against the same base; against another it does."""
    if site.where == "github":
        site.state.requests.clear()
        assert "no open request" in site.call("tell", "report")
        return
    site.tell("first")
    for base, wanted in ((BASE, ""), (OLD, f"5 {HEAD}\n")):
        site.call("list", "requests", CI_COMMIT_SHA=base)
        assert (site.made.folder / "requests").read_text(encoding="utf-8") == wanted


def test_no_right(site: Site) -> None:
    """A token that may not is told with what it needs, a site that isn't there too; both fail."""
    site.state.refuse = True
    said = site.tell("first", code=1)
    assert "403" in said
    assert {"github": "statuses: write", "gitlab": "scope `api`"}[site.where] in said
    gone = {"GITHUB_API_URL": "http://127.0.0.1:9", "CI_API_V4_URL": "http://127.0.0.1:9"}
    assert "Connection refused" in site.call("tell", "report", 1, **gone)


def test_a_review_that_left_nothing(site: Site) -> None:
    """Where the review ended before it could say anything, that is said, and the commit doesn't pass."""
    site.call("tell", "report")
    assert "ended before it could say anything" in site.state.comments[2]["body"]
    assert [each["state"] for _, each in site.state.statuses] == ["error" if site.where == "github" else "failed"]


def test_a_push_in_between(site: Site) -> None:
    """What was found out about a commit is not said about another one, nor of a request that came later."""
    site.state.requests[-1]["head"]["sha"] = site.state.requests[-1]["sha"] = OLD
    if site.where == "github":
        site.state.requests.pop(1)
    for name, content in (("verdict", "success"), ("head", HEAD), ("base", BASE)):
        site.made.write(f"report/5/{name}", content)
    assert "a later run tells" in site.call("tell", "report", HEAD_SHA=OLD)
    site.made.write("report/requests", "6 x\n")
    site.call("tell", "report")
    assert (len(site.state.comments), site.state.statuses) == (2, [])


@pytest.mark.parametrize("site", ["github"], indirect=True)
def test_a_merge_queue(site: Site) -> None:
    """A commit of GitHub's merge queue gets its status; there is nothing to comment on. (GitLab's merge trains run the
    request's own file: only the check after the merge sees what they make.)
    """
    site.call("list", "requests", EVENT="merge_group")
    assert (site.made.folder / "requests").read_text(encoding="utf-8") == f"0 {HEAD}\n"
    site.tell("queued", EVENT="merge_group", number=0)
    assert ([commit for commit, _ in site.state.statuses], len(site.state.comments)) == ([HEAD], 2)


def test_no_commands(site: Site) -> None:
    """GitLab, and bots, do what a line of a comment that begins with a slash says: what a request changes must not
    merge it.
    """
    site.tell("/merge\n  /approve\r/close\r\n/lgtm\na /path\n//\n")
    lines = site.state.comments[2]["body"].split("\n")
    assert lines[1:] == ["\\/merge", "  \\/approve", "\\/close", "\\/lgtm", "a /path", "//", ""]


@pytest.mark.parametrize("kind", ["secret", "zero", "pipe", "folder", "way"])
def test_odd_files(site: Site, kind: str, tmp_path: Path) -> None:
    """Where the comment is not a regular file, or a link is on the way, nothing of it is told and nobody waits."""
    secret = tmp_path / "comment.md"
    secret.write_text("secret", encoding="utf-8")
    for name, content in (("verdict", "success"), ("head", HEAD), ("base", BASE)):
        (tmp_path / name).write_text(content, encoding="utf-8")
        site.made.write(f"report/5/{name}", content)
    path = site.made.folder / "report" / "5" / "comment.md"
    if kind in {"secret", "zero"}:
        path.symlink_to(secret if kind == "secret" else "/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.parent.rename(tmp_path / "there")
        path.parent.symlink_to(tmp_path)
    site.call("tell", "report")
    (ours,) = site.state.comments[2:]
    assert "secret" not in ours["body"]
    assert "ended before it could say anything" in ours["body"]
    assert len(ours["body"]) < 1000


def test_a_verdict_that_is_none(site: Site) -> None:
    """Whatever isn't success, word for word, doesn't pass."""
    site.tell("odd", "success and more")
    assert site.state.statuses[0][1]["state"] in {"failure", "failed"}
