"""The command line itself, and the small verbs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gpustack import __version__, cli
from gpustack.cli import VERBS
from tests.project import Project


def test_help(project: Project) -> None:
    """--help lists every verb, each verb explains itself, and nobody has to be in a project for it."""
    done = project.run("--help")
    assert (done.code, done.err) == (0, "")
    for verb in VERBS:
        assert done.out.count(f"\n    {verb} ") + done.out.count(f"\n    {verb}\n") == 1
        below = project.run(verb, "--help")
        assert (below.code, below.out.startswith(f"usage: gpustack {verb}")) == (0, True)
    assert list(project.folder.iterdir()) == []


def test_no_verb_hides_what_the_command_line_does() -> None:
    """Importing the module of a verb replaces whatever the package calls by its name: nothing of ours may be."""
    body = ast.parse(Path(cli.__file__).read_text(encoding="utf-8")).body
    assert {node.name for node in body if isinstance(node, ast.FunctionDef)}.isdisjoint(VERBS)


def test_arguments_are_those_of_verbs() -> None:
    """Each verb has its file of arguments, none is left over, and what several share is used."""
    folder = Path(cli.__file__).parent / "arguments"
    files = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    shared = yaml.safe_load(files.pop("shared"))
    assert set(files) == set(VERBS)
    named = re.findall(r"^ *- ([a-z]+)$", "\n".join(files.values()), re.MULTILINE)
    assert set(shared) == {*named, *(each for listed in shared.values() for each in listed if isinstance(each, str))}


def test_version(project: Project) -> None:
    """--version is one line; `version` says what is known, too."""
    assert project.run("--version").out == f"gpustack {__version__}\n"
    done = project.run("version")
    assert done.code == 0
    assert done.out.startswith(f"gpustack {__version__} ")
    assert "v26.7.0" in done.out
    assert "1.29 to 1.37" in done.out


@pytest.mark.parametrize(
    "words", [["rendr"], ["--jobs"], ["render", "--oops"], ["check", "--format", "yaml"], ["render", "--no-c"]]
)
def test_command_lines_that_are_wrong(project: Project, words: list[str]) -> None:
    """A command line that can't be understood is exit 4 with the way to help; an abbreviation of an option is none, as
    a later option could change its meaning."""
    done = project.run(*words)
    assert (done.code, done.out) == (4, "")
    assert "--help" in done.err


@pytest.mark.parametrize("number", ["0", "-1", "+1", "1.5", "", "two", "\u0663", "513", "100000", "9" * 5000])
@pytest.mark.parametrize("verb", ["render", "check", "lint", "validate"])
def test_jobs_that_are_none(project: Project, verb: str, number: str) -> None:
    """--jobs takes a number of processes that a machine can have; anything else is a short usage error, exit 4."""
    project.policy("a")
    done = project.run(verb, f"--jobs={number}")
    assert (done.code, "--jobs" in done.err, "1 to 512" in done.err) == (4, True, True)
    assert len(done.err) < 300


def test_jobs(project: Project) -> None:
    """As many as are allowed are no more processes than there are clusters."""
    project.policy("a")
    for number in ("1", "007", "512"):
        assert project.run("render", "--jobs", number).code == 0


def test_schema(project: Project) -> None:
    """`schema` writes the language's schema where it is told to, by default below schemas/, or prints it; a folder in
    the way is exit 4."""
    assert project.run("schema").code == 0
    text = (project.folder / "schemas/clusterpolicy.schema.json").read_text()
    assert json.loads(text)["type"] == "object"
    assert project.run("schema", "--out", "-").out == text
    done = project.run("schema", "--out", "schemas")
    assert (done.code, "GPU924" in done.err) == (4, True)


def test_help_in_words(project: Project) -> None:
    """Whoever types `gpustack` alone, or asks `gpustack help`, gets what --help prints."""
    assert project.run().out == project.run("--help").out == project.run("help").out
    assert project.run("help", "mig", "plan").out == project.run("mig", "plan", "--help").out
    assert project.run("help", "rendr").code == 4


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gpustack ex", {"explain"}),
        ("gpustack render --form", {"--format"}),
        ("gpustack render --format ", {"text", "json"}),
        ("gpustack rollout re", {"resume", "retry", "reset-breaker"}),
        ("gpustack render prod", {"prod-1", "prod-2"}),
        ("gpustack explain t", {"test"}),
        ("gpustack capacity prod", {"prod-1", "prod-2"}),
        ("gpustack mig show prod", {"prod-1", "prod-2"}),
        ("gpustack lint --cluster prod", {"prod-1", "prod-2"}),
        ("gpustack bootstrap t", {"test"}),
        ("gpustack push prod", {"prod-1", "prod-2"}),
        ("gpustack releases diff v26.3.3 v26.7.0 t", {"test"}),
        ("gpustack validate t", {"test"}),
    ],
)
def test_completion(project: Project, line: str, offered: set[str]) -> None:
    """A shell that asks as argcomplete's protocol says (COMP_LINE, COMP_POINT, an answer on descriptor 8) gets verbs,
    options, their values, and the clusters of the folder."""
    for name in ("prod-1", "prod-2", "test"):
        project.policy(name)
    answer = project.folder / "answer"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    env = {**project.environment(), **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "gpustack"], cwd=project.folder, env=env, check=True, timeout=60)
    assert {word.strip() for word in answer.read_text(encoding="utf-8").split("\n")} - {""} == offered


def test_explain(project: Project) -> None:
    """`explain` says the value and who wrote it: policy, layer, platform or release, with file and line."""
    project.layer("base", daemonsets={"priorityClassName": "mine"})
    project.policy("a", extends=["base"], cdi={"enabled": False})
    assert "cdi.enabled: false" in project.run("explain", "a", "cdi.enabled").out
    row = project.run("explain", "a", "daemonsets.priorityClassName").out
    assert row.split() == ["daemonsets.priorityClassName:", '"mine"', "layer:", "policies/layers/base.yaml:7:24"]
    (found,) = project.run("explain", "a", "gfd.version", "--format", "json").json["values"]
    assert (found["origin"], found["value"]) == ("release", "v0.20.0")


def test_explain_needs_one_cluster(project: Project) -> None:
    """A word that means several clusters, or none, is exit 4."""
    for name in ("a", "ab"):
        project.policy(name)
    for word in ("a*", "x"):
        assert project.run("explain", word, "cdi").code == 4


def test_not_in_a_terminal(project: Project) -> None:
    """Without a terminal no progress is printed: it would fill the log."""
    for number in range(3):
        project.policy(f"c{number}")
    done = project.spawn("render")
    assert (done.code, done.err) == (0, "")
    assert "\r" not in done.out


def test_names_stand_on_both_sides_of_an_option(project: Project) -> None:
    """As people write them; behind "--" they may begin with a dash, and what is not a name is told by its verb."""
    for name in ("a", "b", "c"):
        project.policy(name)
    done = project.run("render", "a", "--jobs", "1", "b")
    assert (done.code, "2 clusters rendered" in done.out + done.err) == (0, True)
    done = project.run("render", "--", "-x")
    assert (done.code, "no cluster is called '-x'" in done.err) == (4, True)
    done = project.run("render", "a", "--nope")
    assert (done.code, "do: see gpustack render --help" in done.err) == (4, True)
