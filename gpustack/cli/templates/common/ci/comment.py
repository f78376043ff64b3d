"""Write a file as the one comment of gpustack on a pull or merge request: comment.py github|gitlab FILE

A comment that is there already is updated. The file may come from a fork: it is text, is cut to what the site takes,
and nothing in it is run, neither here nor as a command of the site or of a bot (a line such as /merge). Which request
it is about is said by the site, never by the file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "<!-- gpustack -->"
MOST = 60_000  # characters; GitHub takes 65,536
RIGHTS = """The token may not do that. On GitHub the job needs `pull-requests: write`, which organisations may forbid;
on GitLab GPUSTACK_COMMENT_TOKEN needs the scope `api` and a role that may comment, and it may have expired."""


@dataclass
class Request:
    """Where the comments of a pull or merge request are, how one is updated, and which are ours."""

    comments: str
    one: str
    update: str
    ours: Callable[[Any], bool]
    headers: dict[str, str]


def main(site: str, file: str) -> int:
    if not Path(file).is_file():
        print(f"there is no {file}: the review ended before it could say anything, and its log says why")
        return 0
    with Path(file).open("rb") as content:
        text = without_commands(content.read(4 * MOST + 1).decode("utf-8", errors="replace"))
    cut = "\n\n(cut here)" if len(text) > MOST else ""
    request = github() if site == "github" else gitlab()
    if request is None:
        print("no open request is at this commit any more: a later run comments")
        return 0
    body = {"body": f"{MARK}\n{text[:MOST]}{cut}"}
    for comment in pages(request.comments, request.headers):
        if str(comment.get("body", "")).startswith(MARK) and request.ours(comment):
            call(f"{request.one}/{int(comment['id'])}", request.headers, request.update, body)
            return 0
    call(request.comments, request.headers, "POST", body)
    return 0


def without_commands(text: str) -> str:
    """TEXT in which no line begins as commands do; it reads the same."""
    return re.sub(r"(?m)^([^\S\n]*)/(?=\w)", r"\1\\/", re.sub(r"\r\n?", "\n", text))


def github() -> Request | None:
    """The pull request that the finished run was about: of this branch of this fork, still at this commit."""
    env = os.environ
    api = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}"
    headers = {"Authorization": f"Bearer {env['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}
    head = urllib.parse.quote(f"{env['HEAD_OWNER']}:{env['HEAD_BRANCH']}", safe="")
    for pull in pages(f"{api}/pulls?state=open&head={head}", headers):
        if pull["head"]["sha"] == env["HEAD_SHA"]:
            comments = f"{api}/issues/{int(pull['number'])}/comments"
            return Request(comments, f"{api}/issues/comments", "PATCH", by_bot, headers)
    return None


def by_bot(comment: Any) -> bool:
    return (comment.get("user") or {}).get("type") == "Bot"


def gitlab() -> Request:
    """The merge request that the pipeline is for."""
    env = os.environ
    api, headers = env["CI_API_V4_URL"], {"PRIVATE-TOKEN": env["GPUSTACK_COMMENT_TOKEN"]}
    project, number = (int(env[f"CI_MERGE_REQUEST_{name}"]) for name in ("PROJECT_ID", "IID"))
    notes = f"{api}/projects/{project}/merge_requests/{number}/notes"
    me = call(f"{api}/user", headers)[0]["id"]
    return Request(notes, notes, "PUT", lambda note: (note.get("author") or {}).get("id") == me, headers)


def pages(address: str | None, headers: dict[str, str]) -> Iterator[Any]:
    """Every item of a list that comes in pages."""
    address = f"{address}{'&' if '?' in str(address) else '?'}per_page=100"
    while address:
        items, link = call(address, headers)
        yield from items
        found = re.search(r'<([^>]*)>; rel="next"', link)
        address = found[1] if found else None


def call(address: str, headers: dict[str, str], method: str = "GET", body: Any = None) -> tuple[Any, str]:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address, data, {**headers, "Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read() or b"null"), answer.headers.get("Link", "")
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {address}: {error.code} {error.reason}\n{RIGHTS if error.code in (401, 403, 404) else ''}")
    except OSError as error:
        sys.exit(f"{method} {address}: {error}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
