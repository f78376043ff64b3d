"""Which programs gpustack starts: a short list of places in the code, and none that a clone could bring along."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from gpustack.text import programs
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

STARTING = {
    "gpustack/cli/trees/git.py": "Git, for every verb",
    "gpustack/compiler/kubeconform.py": "kubeconform",
    "gpustack/compiler/node.py": "node --version",
    "gpustack/compiler/guard.py": "Node, by jsii",
    "gpustack/compiler/executor.py": "workers: this very Python",
    "gpustack/moving/adopt/inputs/overlays.py": "kustomize or kubectl, on a copy of an overlay",
    "gpustack/compiler/versions.py": "other versions of gpustack, as gpustack.lock says",
    "gpustack/registry/credentials.py": "credential helpers, docker-credential-NAME",
}
"""The modules that may start programs. lightkube starts a kubeconfig's plugin, which cli/live/connect.py looks at."""
MODULES = {"subprocess", "multiprocessing", "pty", "popen2", "sh", "plumbum", "invoke", "git", "pygit2", "dulwich"}
OF_OS = ("exec", "spawn", "system", "popen", "startfile", "fork", "posix_spawn")
CALLS = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"}
CALLS |= {"ProcessPoolExecutor"}
TEMPLATES = "gpustack/cli/templates/"  # files of a user's repository, which are written and not run


def product() -> list[Path]:
    """The modules of the product."""
    found = sorted((ROOT / "gpustack").rglob("*.py"))
    return [path for path in found if not path.relative_to(ROOT).as_posix().startswith(TEMPLATES)]


def starts(tree: ast.AST) -> set[str]:
    """By what TREE could start a program."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.partition(".")[0] in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} if node.module.partition(".")[0] in MODULES else set()
            risky = OF_OS if node.module == "os" else ("create_subprocess", "ProcessPool")
            found |= {name.name for name in node.names if name.name.startswith(risky)}
        elif isinstance(node, ast.Attribute):
            low = node.attr.startswith(OF_OS) and isinstance(node.value, ast.Name) and node.value.id == "os"
            found |= {node.attr} if low or node.attr in CALLS else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
            found.add(node.func.id)
    return found


def test_programs_are_started_in_few_places() -> None:
    """No module but those on the list can start a program, and each of these does."""
    assert len(product()) > 300
    found = {path.relative_to(ROOT).as_posix(): starts(ast.parse(path.read_text("utf-8"))) for path in product()}
    assert {path for path, ways in found.items() if ways} == set(STARTING)


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system('id')",
        "import os\nos.execv('/bin/id', [])",
        "import asyncio\nasyncio.create_subprocess_exec('id')",
        "from asyncio import create_subprocess_shell",
        "exec('x')",
    ],
)
def test_the_look_finds_what_starts_programs(code: str) -> None:
    """What the test above looks for is what there is to look for."""
    assert starts(ast.parse(code))


def test_git_is_named_in_one_place() -> None:
    """The word `git` as a program stands in cli/trees/git.py alone."""
    named = {
        path.relative_to(ROOT).as_posix()
        for path in product()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value == "git"
    }
    assert named <= {"gpustack/cli/trees/git.py"}


def test_a_search_never_depends_on_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty and relative folders of a PATH are passed over, and a path is no name of a program."""
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.chdir(tool.parent)
    for path in ("", ":", ".", "bin", "../bin", "./", "::/no/such:"):
        assert programs.find("tool", path) is None
        monkeypatch.setenv("PATH", path)
        assert programs.find("tool") is None
    assert programs.find("tool", f".:{tool.parent}") == str(tool)
    assert programs.find("./tool", str(tool.parent)) is None
    assert programs.find(str(tool), "/bin") is None


def test_the_environment_of_a_program() -> None:
    """Nothing by which a program is made to run another is passed on."""
    steering = {
        **dict.fromkeys(("GIT_DIR", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "NODE_OPTIONS", "NODE_PATH", "PAGER"), "x"),
        **dict.fromkeys(("PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "BASH_ENV", "BASH_FUNC_git%%", "EDITOR"), "x"),
    }
    assert programs.environment({**steering, "HOME": "/h", "PATH": ".:/bin:"}) == {"HOME": "/h", "PATH": "/bin"}


def test_what_is_of_the_work_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the clone that the current folder is in, by its name or by where a link leads; nothing beside it."""
    (tmp_path / "clone/.git").mkdir(parents=True)
    (tmp_path / "clone/gpu").mkdir()
    (tmp_path / "clone-2").mkdir()
    (tmp_path / "away").symlink_to(tmp_path / "clone")
    (tmp_path / "clone/out").symlink_to(tmp_path / "clone-2")
    monkeypatch.chdir(tmp_path / "clone/gpu")
    inside = ("x", "../x", tmp_path / "clone", tmp_path / "clone/x/y", tmp_path / "away/x", tmp_path / "clone/out")
    assert all(programs.of_work_tree(path) for path in (*inside, tmp_path / "clone/out/x"))
    assert not any(programs.of_work_tree(path) for path in ("../../x", tmp_path / "clone-2", tmp_path))


@pytest.mark.parametrize("module", ["yaml", "ipaddress", "multiprocessing"])
def test_nothing_is_imported_from_the_current_folder(project: Project, module: str) -> None:
    """A module in the clone is not taken for Python's or a package's, also with an empty part in PYTHONPATH."""
    project.policy("one")
    project.write(f"{module}.py", f"open({str(project.folder / 'pwned')!r}, 'w')\n")
    ran = project.spawn("lint", "--jobs", "2", env={"PYTHONPATH": f"{ROOT}{os.pathsep}"})
    assert ran.code == 0, ran.err
    assert not (project.folder / "pwned").exists()
