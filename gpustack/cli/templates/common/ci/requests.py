"""What a site is asked and told: requests.py github|gitlab list FILE | tell FOLDER

`list` writes a line NUMBER COMMIT for each open request that is to be reviewed. `tell` takes what ci/judge.sh left in
FOLDER/NUMBER, writes it as the one comment of gpustack on the request, and sets the status gpustack/review of the
commit that was reviewed. Which requests there are, and at which commits, the site says both times, never a file.

A comment that is there already is updated. Its text comes from what a stranger wrote: it is opened without following
links, cut to what the site takes, and no line of it is a command of the site or of a bot (such as /merge).
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "<!-- gpustack"
NAME = "gpustack/review"
MOST = 63_000  # characters; GitHub takes 65,536
RIGHTS = """The token may not do that. On GitHub the job needs `pull-requests: write` and `statuses: write`, which
organisations may forbid; on GitLab GPUSTACK_TOKEN needs the scope `api` and the role Developer, and may be expired."""
TEXTS = {
    "success": "nothing that an owner has to accept first",
    "failure": "not passed: the comment says why",
    "error": "the review ended before it could say anything: its log says why",
}


class Failed(Exception):  # noqa: N818 - how a call ended
    """What the site answered instead."""


class Site:
    """Where to ask, and with what."""

    headers: dict[str, str]

    def requests(self) -> Iterator[tuple[int, str]]:
        """Number and commit of each request that is to be reviewed; 0 for a commit of a merge queue."""
        raise NotImplementedError

    def comment(self, number: int, body: str) -> None:
        """Make or update the comment on a request."""
        raise NotImplementedError

    def status(self, number: int, commit: str, state: str, text: str) -> None:
        """Say how the review of a commit ended."""
        raise NotImplementedError

    def pages(self, address: str | None) -> Iterator[Any]:
        """Every item of a list that comes in pages."""
        address = f"{address}{'&' if '?' in str(address) else '?'}per_page=100"
        while address:
            items, link = self.call(address)
            yield from items
            following = re.search(r'<([^>]*)>; rel="next"', link)
            address = following[1] if following else None

    def call(self, address: str, method: str = "GET", body: Any = None) -> tuple[Any, str]:
        """What the site answers, and where the next page is."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        asked = urllib.request.Request(address, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return json.loads(answer.read() or b"null"), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            hint = RIGHTS if error.code in {401, 403, 404} else ""
            raise Failed(f"{method} {address}: {error.code} {error.reason}\n{hint}") from None
        except OSError as error:
            raise Failed(f"{method} {address}: {error}") from None


class GitHub(Site):
    """The pull request, or the merge queue's commit, that the finished run was about."""

    def __init__(self) -> None:
        env = os.environ
        self.api = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}"
        self.headers = {"Authorization": f"Bearer {env['TOKEN']}", "Accept": "application/vnd.github+json"}
        self.head, self.branch, self.queued = env["HEAD_SHA"], env["DEFAULT_BRANCH"], env["EVENT"] == "merge_group"
        self.log = env.get("LOG", "")

    def requests(self) -> Iterator[tuple[int, str]]:
        if self.queued:
            yield 0, self.head
            return
        branch = urllib.parse.quote(self.branch, safe="")
        for pull in self.pages(f"{self.api}/pulls?state=open&base={branch}"):
            if pull["head"]["sha"] == self.head and pull["base"]["ref"] == self.branch:
                yield int(pull["number"]), self.head

    def comment(self, number: int, body: str) -> None:
        comments = f"{self.api}/issues/{number}/comments"
        for comment in self.pages(comments):
            if str(comment.get("body", "")).startswith(MARK) and (comment.get("user") or {}).get("type") == "Bot":
                self.call(f"{self.api}/issues/comments/{int(comment['id'])}", "PATCH", {"body": body})
                return
        self.call(comments, "POST", {"body": body})

    def status(self, number: int, commit: str, state: str, text: str) -> None:
        said = {"state": state, "context": NAME, "description": text[:140]}
        self.call(f"{self.api}/statuses/{commit}", "POST", said | ({"target_url": self.log} if self.log else {}))


class GitLab(Site):
    """Merge requests into the default branch, less those that were reviewed as they are, against this very commit."""

    def __init__(self) -> None:
        env = os.environ
        self.api = f"{env['CI_API_V4_URL']}/projects/{int(env['CI_PROJECT_ID'])}"
        self.headers = {"PRIVATE-TOKEN": env["GPUSTACK_TOKEN"]}
        self.branch, self.base, self.log = env["CI_DEFAULT_BRANCH"], env["CI_COMMIT_SHA"], env.get("CI_JOB_URL", "")
        self.me = self.call(f"{env['CI_API_V4_URL']}/user")[0]["id"]

    def requests(self) -> Iterator[tuple[int, str]]:
        branch = urllib.parse.quote(self.branch, safe="")
        for request in self.pages(f"{self.api}/merge_requests?state=opened&target_branch={branch}"):
            number, commit = int(request["iid"]), str(request["sha"])
            if request["target_branch"] != self.branch:
                continue
            note = self.note(number)
            if note is None or not str(note["body"]).startswith(marker(commit, self.base)):
                yield number, commit

    def note(self, number: int) -> Any:
        """Our note on the request NUMBER."""
        for note in self.pages(f"{self.api}/merge_requests/{number}/notes"):
            if str(note.get("body", "")).startswith(MARK) and (note.get("author") or {}).get("id") == self.me:
                return note
        return None

    def comment(self, number: int, body: str) -> None:
        note, notes = self.note(number), f"{self.api}/merge_requests/{number}/notes"
        where = (f"{notes}/{int(note['id'])}", "PUT") if note else (notes, "POST")
        self.call(*where, {"body": body})

    def status(self, number: int, commit: str, state: str, text: str) -> None:
        """The status, and an approval of this very commit, or none any more: a rule may require it."""
        passed = state == "success"
        said = {"state": state if passed else "failed", "name": NAME, "description": text[:140]}
        said |= {"target_url": self.log} if self.log else {}
        vote = f"merge_requests/{number}/{'approve' if passed else 'unapprove'}"
        for address, body in ((f"statuses/{commit}", said), (vote, {"sha": commit} if passed else {})):
            try:
                self.call(f"{self.api}/{address}", "POST", body)
            except Failed as failed:  # the same state or vote as before is an error there
                if not re.search(r": 40[0149] ", str(failed)):
                    raise
                print(f"not taken: {str(failed).splitlines()[0]}")


def marker(head: str, base: str) -> str:
    """How the comment on HEAD begins that was compared with BASE."""
    return f"{MARK} {head} {base} -->"


def main(where: str, verb: str, path: str) -> int:
    try:
        site: Site = GitHub() if where == "github" else GitLab()
        asked = list(site.requests())
    except Failed as failed:
        sys.exit(str(failed))
    if not asked:
        print("no open request is to be reviewed")
    if verb == "list":
        Path(path).write_text("".join(f"{number} {commit}\n" for number, commit in asked), encoding="utf-8")
        return 0
    listed = read(Path(path), "requests", MOST)
    if listed is not None:  # what came since then is for a later run
        asked = [each for each in asked if "{} {}".format(*each) in listed.splitlines()]
    errors = [str(failed) for number, commit in asked for failed in told(site, Path(path), number, commit)]
    print(*errors, sep="\n", file=sys.stderr, end="\n" if errors else "")
    return 1 if errors else 0


def told(site: Site, folder: Path, number: int, commit: str) -> Iterator[Failed]:
    """Tell SITE of the request NUMBER at COMMIT what is in FOLDER; what went wrong."""
    head, base, verdict, text = (
        (read(folder, f"{number}/{name}", most) or "")
        for name, most in (("head", 64), ("base", 64), ("verdict", 20), ("comment.md", 4 * MOST))
    )
    if head and head != commit:
        print(f"{number} is at another commit by now: a later run tells")
        return
    if not re.fullmatch(r"[0-9a-f]{40,64}", base):
        base, verdict = "", "error"
    state = verdict.strip() if verdict.strip() in TEXTS else "failure"
    text = without_commands(text) or f"### gpustack: {TEXTS['error']}"
    cut = "\n\n(cut here)" if len(text) > MOST else ""
    compared = f" (against {base[:12]})" if base else ""
    try:
        if number:
            site.comment(number, f"{marker(commit, base)}\n{text[:MOST]}{cut}")
    except Failed as failed:
        yield failed
    try:
        site.status(number, commit, state, f"{TEXTS[state]}{compared}")
    except Failed as failed:
        yield failed


def read(folder: Path, path: str, most: int) -> str | None:
    """The text of the file PATH in FOLDER, no more than MOST bytes of it; None unless it is a regular file, and no
    link is on the way.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    *folders, name = path.split("/")
    opened: list[int] = []
    try:
        opened.append(os.open(folder, flags | os.O_DIRECTORY))
        for step in folders:
            opened.append(os.open(step, flags | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(name, flags, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            return None
        with os.fdopen(opened.pop(), "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        for each in opened:
            os.close(each)


def without_commands(text: str) -> str:
    """TEXT in which no line begins as commands do; it reads the same."""
    return re.sub(r"(?m)^([^\S\n]*)/(?=\w)", r"\1\\/", re.sub(r"\r\n?", "\n", text))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
