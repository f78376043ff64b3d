"""Lay out what requests bring, as data: fetch.py REQUESTS STORE, run in a full clone at the target branch's commit

REQUESTS holds a line NUMBER COMMIT for each. A commit is fetched by its full id, so no name of a branch or a tag plays
a part, and what is reviewed is what a merge makes of the commit that this clone is at. Each gets a folder STORE/NUMBER:

    head, base   the two commits
    refused      why it isn't looked at; then there is nothing else
    tree/        the merge, byte by byte: no attribute of the tree changes what is written, and no filter is run
    pinned/      only where requirements change: the merge with the base's policies and dist/, and in before/ the base

Nothing of the request is run here, by Git neither: hooks, filters and configuration come from this program alone.
FETCH_TOKEN, of FETCH_USER, is for fetching, where that needs one.
"""

from __future__ import annotations

import base64
import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

MOST_FILES = 200_000
MOST_BYTES = 1 << 30
"""What a request may hold, laid out. A pack of some kilobytes can hold any number of files."""
SECONDS = 600
PINS = ("requirements*.txt", "constraints*.txt")
"""Files at the root that say which programs are installed."""
SAFE = """core.hooksPath=/dev/null core.fsmonitor=false core.symlinks=true core.autocrlf=false submodule.recurse=false
gc.auto=0 protocol.version=2 advice.detachedHead=false safe.directory=*""".split()
ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding !merge !diff\n"
"""For .git/info/attributes, which comes before every file in the tree."""
PASSED = "PATH https_proxy HTTPS_PROXY no_proxy NO_PROXY SSL_CERT_FILE SSL_CERT_DIR GIT_SSL_CAINFO".split()
WHO = {f"GIT_{who}_{what}": "gpustack@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Refused(Exception):  # noqa: N818 - what the request is
    """Why a request isn't looked at."""


def main(requests: str, store: str) -> int:
    judge, there = Path.cwd(), Path(store).resolve()
    base = git(judge, "rev-parse", "--verify", "HEAD^{commit}").strip()
    url = git(judge, "remote", "get-url", "origin").strip()
    for line in Path(requests).read_text(encoding="utf-8").splitlines():
        number, head = line.split()
        folder = there / str(int(number))
        folder.mkdir(parents=True)
        (folder / "head").write_text(head, encoding="utf-8")
        (folder / "base").write_text(base, encoding="utf-8")
        try:
            lay_out(judge, url, base, head, folder)
        except Refused as refused:
            print(f"{number} is refused: {refused}", file=sys.stderr)
            (folder / "refused").write_text(f"{refused}\n", encoding="utf-8")
    return 0


def lay_out(judge: Path, url: str, base: str, head: str, folder: Path) -> None:
    """Write into FOLDER what the merge of HEAD makes of BASE."""
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head):
        raise Refused("its commit is not named by a full id")
    tree = folder / "tree"
    repository(tree, judge)
    git(tree, "update-ref", "refs/gpustack/base", base)
    words = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
    try:
        git(tree, *words, "--end-of-options", bare(url), head, env=credentials(bare(url)))
    except Refused as refused:
        raise Refused(f"its commit can't be fetched: {refused}") from None
    measure(tree, head)
    merged = merge(tree, base, head)
    measure(tree, merged)
    refuse_links(tree, base, merged)
    check_out(tree, merged, base, head)
    if pins(tree, base) != pins(tree, merged):
        beside(tree, base, merged)


def git(repo: Path, *words: str, given: str = "", env: dict[str, str] | None = None) -> str:
    """What Git, in REPO, answers to WORDS. Raises Refused with what it says."""
    try:
        done = subprocess.run(
            command(repo, *words),
            input=os.fsencode(given),
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env=environment() | (env or {}),
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"git {words[0]} takes more than {SECONDS} seconds") from None
    if done.returncode:
        said = re.sub(r"[^ -~]+", " ", done.stderr.decode("utf-8", "replace"))
        raise Refused(f"git {words[0]} ends with {done.returncode}: {said[:300].strip()}")
    return os.fsdecode(done.stdout)


def command(repo: Path, *words: str) -> list[str]:
    """How Git is started in REPO."""
    settings = [word for setting in SAFE for word in ("-c", setting)]
    return ["git", "-C", str(repo), "--no-pager", "--literal-pathspecs", *settings, *words]


def environment() -> dict[str, str]:
    """Git's environment: nobody's configuration, and of our variables those by which a site is reached."""
    passed = {name: os.environ[name] for name in PASSED if name in os.environ}
    nothing = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return passed | nothing | WHO


def repository(folder: Path, *stores: Path) -> None:
    """A new repository in FOLDER, which also finds the objects of the repositories STORES."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--template=")
    info = folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES, encoding="utf-8")
    paths = [git(store, "rev-parse", "--path-format=absolute", "--git-path", "objects").strip() for store in stores]
    (folder / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "objects" / "info" / "alternates").write_text("".join(f"{path}\n" for path in paths))


def bare(url: str) -> str:
    """URL without a name or password in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.scheme.startswith("http") else url


def credentials(url: str) -> dict[str, str]:
    """The environment in which Git sends the token to URL and to nobody else."""
    token = os.environ.get("FETCH_TOKEN")
    if not token:
        return {}
    word = base64.b64encode(f"{os.environ.get('FETCH_USER', 'x-access-token')}:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {word}",
    }


def measure(repo: Path, tree: str) -> None:
    """Refuse a TREE with more in it than somebody reviews; no more of it is listed than that."""
    listed = command(repo, "ls-tree", "-r", "--format=%(objectsize)", "--end-of-options", tree)
    files = size = 0
    with subprocess.Popen(listed, stdout=subprocess.PIPE, env=environment()) as program:
        for line in program.stdout or ():
            files, size = files + 1, size + (int(line) if line.strip().isdigit() else 0)
            if files > MOST_FILES or size > MOST_BYTES:
                program.kill()
                raise Refused(f"it holds more than {MOST_FILES:,} files or {MOST_BYTES >> 20:,} MiB")
    if program.returncode:
        raise Refused("its tree can't be read")


def merge(repo: Path, base: str, head: str) -> str:
    """The tree that a merge of HEAD into BASE makes."""
    common = git(repo, "merge-base", "--all", base, head).split()
    if base in common:
        return git(repo, "rev-parse", f"{head}^{{tree}}").strip()
    try:
        return git(repo, "merge-tree", "--write-tree", "--no-messages", base, head).split()[0]
    except Refused as refused:
        if " ends with 1:" not in str(refused):
            raise
        raise Refused("it can't be merged as it stands: bring its branch up to date") from None


def changes(repo: Path, base: str, tree: str) -> Iterator[tuple[str, str]]:
    """The mode and the path of every file of TREE that isn't so in BASE."""
    words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv", base, tree]
    parts = iter(git(repo, *words).split("\0"))
    for head in parts:
        if head:
            yield head.split()[1], next(parts)


def refuse_links(repo: Path, base: str, tree: str) -> None:
    """Refuse links and submodules that come: what a file is must stand in the request."""
    links = [path for mode, path in changes(repo, base, tree) if mode in {"120000", "160000"}]
    if links:
        shown = ", ".join(repr(path)[1:-1].replace("`", "'")[:120] for path in links[:10])
        raise Refused(f"it brings links or submodules, of which nobody sees what they lead to: `{shown}`")


def check_out(repo: Path, tree: str, *parents: str) -> None:
    """Write TREE into the folder of REPO, as a commit with PARENTS."""
    words = [word for parent in parents for word in ("-p", parent)]
    commit = git(repo, "commit-tree", tree, *words, "-m", "merge").strip()
    git(repo, "checkout", "--quiet", "--detach", "--force", commit)


def pins(repo: Path, tree: str) -> list[str]:
    """The files at the root of TREE that say which programs are installed, as Git lists them."""
    lines = git(repo, "ls-tree", "-z", "--end-of-options", tree).split("\0")
    return [line for line in lines if any(fnmatch.fnmatch(line.partition("\t")[2].lower(), pin) for pin in PINS)]


def rendered(path: str) -> bool:
    """Whether PATH is a policy, or what one renders to."""
    return path.startswith("dist/") or (path.startswith("policies/") and path.endswith(".yaml"))


def beside(tree: Path, base: str, merged: str) -> None:
    """Beside TREE, what a gpustack that isn't the request's can judge: pinned/ and before/."""
    before, pinned = tree.parent / "before", tree.parent / "pinned"
    repository(before, tree)
    check_out(before, f"{base}^{{tree}}", base)
    repository(pinned, tree)
    swapped = [
        line
        for which in (base, merged)
        for line in git(pinned, "ls-tree", "-r", "-z", which).split("\0")
        if rendered(line.partition("\t")[2]) and not line.endswith("\tpolicies/waivers.yaml")
    ]
    ours = {line.partition("\t")[2]: line for line in swapped[::-1]}  # those of the base win, which came first
    theirs = {line.partition("\t")[2] for line in git(pinned, "ls-tree", "-r", "-z", base).split("\0")}
    index = "".join(f"{line if path in theirs else f'0 {0:040}{chr(9)}{path}'}\0" for path, line in ours.items())
    git(pinned, "read-tree", merged)
    git(pinned, "update-index", "-z", "--index-info", given=index)
    check_out(pinned, git(pinned, "write-tree").strip(), base)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
