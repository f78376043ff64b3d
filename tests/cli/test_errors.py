"""Errors, as the person at the keyboard and the program behind a pipe see them."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from gpustack.compiler import fleet, stack
from gpustack.model import Resource
from tests.project import REFUSED, SMALL, Project, document, policy

DIGITS = "9" * 5000
HUGE = int("7" * 30)
CLUSTER = SMALL["cluster"]


def test_text(project: Project) -> None:
    """An error says rule and sentence, file:line:column, the line itself with a mark, why, and what to do."""
    text = policy("a", daemonset={})
    project.write("policies/a.yaml", text)
    done = project.run("render")
    assert (done.code, done.out) == (4, "")
    line = text.splitlines().index("  daemonset: {}") + 1
    place, shown, mark, *rest = done.err.splitlines()
    assert place.startswith(f"policies/a.yaml:{line}:3: error GPU")
    assert shown == f"{line:5} |   daemonset: {{}}"
    assert mark == "      |   ^"
    assert any(row.startswith("  do: ") and "daemonsets" in row for row in rest)


def test_long_lines_are_cut_around_the_mark(project: Project) -> None:
    """A line of thousands of characters is shown where the mistake is, and the mark stands below it."""
    spec = "{release: v26.7.0, cluster: {kubernetesVersion: '1.34'}, operator: {labels: {" + "a: b, " * 1
    spec += ", ".join(f"k{number}: v" for number in range(2000)) + "}}, oops: 1, operator2: {}}"
    project.write("policies/a.yaml", document("ClusterPolicy", "a", {}).replace("spec: {}", f"spec: {spec}"))
    done = project.run("render")
    assert done.code == 4
    shown, mark = done.err.splitlines()[1:3]
    assert len(shown) < 200
    assert shown[mark.index("^") :].startswith("oops")


def json_of(project: Project, *words: str) -> dict[str, Any]:
    """The document of a run that fails: the only thing that is printed."""
    done = project.run(*words)
    assert done.err == ""
    found = done.json
    assert (found["version"], found["exit"]) == (1, done.code)
    keys = {"rule", "severity", "what", "path", "file", "line", "column", "why", "remedy"}
    assert all(keys <= set(finding) for finding in found["findings"])
    return dict(found)


@pytest.mark.parametrize("form", [["--format", "json"], ["--format=json"]])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["render"], 4),
        (["render", "no-such"], 4),
        (["check", "policies/no.yaml"], 4),
        (["explain", "a"], 4),
        (["explain", "b", "nothing.here"], 4),
        (["render", "policies/refused.yaml"], 2),
        (["check", "policies/refused.yaml"], 2),
        (["validate"], 4),
        (["render", "--what"], 4),
        (["check", "--jobs", "0"], 4),
        (["explain"], 4),
        (["validate", "--kubeconform", "/no/such", "--out", "rendered"], 5),
    ],
)
def test_errors_as_json(project: Project, words: list[str], code: int, form: list[str]) -> None:
    """With --format json an error of any kind is a JSON document with the exit code and the findings, also one of the
    command line itself."""
    project.policy("b")
    project.run("render", "--out", "rendered")
    project.policy("a", nonsense=1)
    project.policy("refused", **REFUSED)
    found = json_of(project, *words, *form)
    assert found["exit"] == code
    assert found["findings"]


def test_place_in_json(project: Project) -> None:
    """File, line and column are fields of their own."""
    text = policy("a", nonsense=1)
    project.write("policies/a.yaml", text)
    (finding,) = json_of(project, "render", "--format", "json")["findings"]
    line = text.splitlines().index("  nonsense: 1") + 1
    assert (finding["file"], finding["line"], finding["column"]) == ("policies/a.yaml", line, 3)


def test_missing_node(project: Project) -> None:
    """Where there is no Node, or JSII_NODE names none, a cold render is exit 5 and says how to get one; nothing is
    written."""
    project.policy("a", daemonsets={"labels": {"never": "seen"}})
    broken = project.write("node", "#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    caches = (str(project.cache), str(project.folder.parent / "new"))
    for value, cache in itertools.product(("/no/such/node", str(broken)), caches):
        done = project.spawn("render", env={"JSII_NODE": value, "GPUSTACK_CACHE": cache})
        assert (done.code, done.out) == (5, "")
        assert done.err.startswith("error GPU907")
        assert "make setup" in done.err
        assert "Traceback" not in done.err
    assert not project.dist.exists()


def test_node_that_can_not_unpack_itself(project: Project) -> None:
    """A temporary folder that isn't there ends in a sentence, too."""
    project.policy("a", daemonsets={"labels": {"never": "seen"}})
    done = project.spawn("render", env={"TMPDIR": "/no/such/folder"})
    assert done.code == 5
    assert "/no/such/folder" in done.err
    assert "Traceback" not in done.err


def test_defects_of_ours(project: Project) -> None:
    """What nobody expected is exit 70 and a sentence, in JSON too; the traceback is for whoever sets GPUSTACK_DEBUG."""
    project.policy("a")
    with mock.patch.object(fleet, "render", side_effect=ZeroDivisionError("oh\x1b[2J")):
        done = project.run("render", env={"GPUSTACK_DEBUG": None})
        assert (done.code, done.out) == (70, "")
        assert "internal error: ZeroDivisionError: oh\\x1b[2J" in done.err
        assert "Traceback" not in done.err
        assert json_of(project, "render", "--format", "json")["exit"] == 70
        with pytest.raises(ZeroDivisionError):
            project.run("render", env={"GPUSTACK_DEBUG": "1"})


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE, errno.ENOMEM])
def test_refusals_of_the_system(project: Project, code: int) -> None:
    """Room or permission that is lacking is the user's to give: exit 4 and the system's words, wherever it happens."""
    project.policy("a")
    error = OSError(code, os.strerror(code), "/some/file")
    with mock.patch.object(fleet, "render", side_effect=error):
        done = project.run("render")
    assert done.code == 4
    assert os.strerror(code) in done.err
    assert "/some/file" in done.err


def test_ctrl_c(project: Project) -> None:
    """Ctrl-C is exit 130, without a word."""
    project.policy("a")
    with mock.patch.object(fleet, "render", side_effect=KeyboardInterrupt):
        done = project.run("render")
    assert (done.code, done.out, done.err) == (130, "", "")


CONTROL = ["\x1b[2J", "\x9b2J", "\x07", "\x7f", "\u202e", "\u2028", "\r"]


@pytest.mark.parametrize("what", CONTROL)
def test_control_characters_of_a_policy(project: Project, what: str) -> None:
    """Nothing that stands in a policy steers the terminal: not in an error, not in explain, not in a header."""
    escaped = "".join(f"\\u{ord(c):04x}" for c in what)
    bad = [
        policy("a").replace("spec:", f'spec:\n  "oh{escaped}": 1', 1),
        policy("a").replace("spec:", f'spec:\n  mig: {{strategy: "oh{escaped}"}}', 1),
        policy("a").replace("name: a", f'name: "oh{escaped}"', 1),
        policy("a").replace("spec:", f'spec:\n  extends: ["oh{escaped}"]', 1),
        policy("a", release=f"v{what}"),
    ]
    for text in bad:
        project.write("policies/a.yaml", text)
        done = project.run("render")
        assert done.code == 4
        assert printable(done.err)
    project.policy("a", validator={"driver": {"env": [{"name": "X", "value": f"oh{what}"}]}})
    for words in (["explain", "a"], ["render"], ["check"]):
        done = project.run(*words)
        assert done.code == 0
        assert printable(done.out + done.err)


def printable(text: str) -> bool:
    """Whether TEXT has nothing but what is to be seen, and line ends."""
    return all(c.isprintable() for c in text.replace("\n", ""))


@pytest.mark.parametrize("name", ["a\nkind: Evil\n#.yaml", "a\x1b[2J.yaml", "a\x85b.yaml", "\udcff.yaml", "ä ö.yaml"])
def test_odd_file_names(project: Project, name: str) -> None:
    """A file may be called anything: its name can neither add a line to a manifest nor steer the terminal."""
    project.policy("a", file=f"policies/{name}")
    done = project.run("render")
    assert (done.code, printable(done.out + done.err)) == (0, True)
    for path, content in project.tree().items():
        if path.endswith(".yaml"):
            first, second = content.decode().split("\n")[:2]
            assert first.startswith("# Rendered by gpustack from policies/")
            assert first.isprintable()
            assert second.startswith("apiVersion: ")
    warm = project.run("render")
    assert (warm.code, project.run("check").code) == (0, 0)
    project.write(f"policies/{name}", policy("a", nonsense=1))
    refused = project.run("render")
    assert (refused.code, printable(refused.err)) == (4, True)


def test_odd_file_name_in_dist(project: Project) -> None:
    """A left-over file with a name that steers terminals is listed in harmless letters."""
    project.policy("a")
    project.run("render")
    some = project.dist / "a/base/namespace-gpu-operator.yaml"
    (some.parent / "x\x1b[2J.yaml").write_bytes(some.read_bytes())
    done = project.run("check")
    assert (done.code, printable(done.out)) == (3, True)


def test_terminal_without_unicode(project: Project) -> None:
    """A terminal that knows ASCII alone gets everything, with numbers for what it can't show."""
    ascii_only = {"PYTHONIOENCODING": "ascii:strict", "LC_ALL": "C"}
    project.policy("a", validator={"driver": {"env": [{"name": "X", "value": "größe"}]}})
    done = project.spawn("explain", "a", "validator.driver", env=ascii_only)
    assert (done.code, "gr\\xf6\\xdfe" in done.out) == (0, True)
    project.write("policies/a.yaml", policy("a").replace("spec:", "spec:\n  größe: 1", 1))
    done = project.spawn("render", env=ascii_only)
    assert (done.code, "gr\\xf6\\xdfe" in done.err) == (4, True)


def test_findings_of_many_components_come_together(project: Project) -> None:
    """Objects of two stages that the API server would refuse are reported in one go."""
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dat": {}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spek": {}},
    ]
    project.policy("a", extraObjects=objects)
    done = project.run("render")
    assert done.code == 2
    assert "ConfigMap" in done.err
    assert "spek" in done.err


def test_one_name_for_two_objects(project: Project) -> None:
    """An object of the user's that is called like one of ours is refused, also where the two would be applied in
    different stages; one of another namespace is another object."""
    name = "nvidia-operator-validator"
    mine = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "labels": {"a": "b"}}}
    project.policy("a", extraObjects=[mine])
    done = project.run("render")
    assert done.code == 2
    assert "error GPU204: two objects are called serviceaccount nvidia-operator-validator" in done.err
    other = {**mine, "metadata": {"name": name, "namespace": "elsewhere"}}
    project.policy("a", extraObjects=[other])
    assert project.run("render").code == 0


def test_file_names_are_injective_and_stay_in_the_folder() -> None:
    """Objects that differ in kind, namespace or name have different files, and no name leads out of the stage."""
    names = ["a", "a:b", "a=3ab", "a=b", "a.b", "../../x", "a" * 300, "a" * 299 + "b", "ä", "a\\b", "a b", "b", "3ab"]
    spaces = ["", "stack", "a", "b", "../../x", "a=", "a=3a"]
    found: dict[str, set[tuple[str, str, str]]] = {}
    for name, space, kind in itertools.product(names, spaces, ("Role", "ClusterRole")):
        meta = {"name": name, **({"namespace": space} if space else {})}
        resource = Resource({"apiVersion": "v1", "kind": kind, "metadata": meta}, "base", "x")
        path = stack.file_name(resource, "stack")
        assert path.count("/") == 1
        assert len(Path(path).name) < 255
        assert path.isascii()
        found.setdefault(path, set()).add((kind, space.replace("stack", ""), name))
    assert [same for same in found.values() if len(same) > 1] == []


@pytest.mark.parametrize(
    "words",
    [
        ["releases", "diff", f"v{DIGITS}", "v26.7.0"],
        ["releases", "diff", "v26.7.0", f"v26.{DIGITS}.0"],
        ["lint", "--jobs", DIGITS],
        ["lint", "--today", f"{DIGITS}-01-01"],
        ["mig", "list", DIGITS],
        ["mig", "plan", "NVIDIA-H100-80GB-HBM3", "--want", f"1g.{DIGITS}gb=1"],
        ["mig", "plan", "NVIDIA-H100-80GB-HBM3", "--want", f"1g.10gb={DIGITS}"],
        ["mig", "plan", "NVIDIA-H100-80GB-HBM3", "--want", f"{DIGITS}g.10gb"],
        ["explain", "a", f"nodePools[{DIGITS}].os"],
        ["capacity", DIGITS],
    ],
    ids=lambda words: " ".join(word[:12] for word in words),
)
def test_numbers_of_thousands_of_digits(words: list[str], project: Project) -> None:
    """A number that Python would refuse to read is refused like any other wrong word, and not repeated in full."""
    project.policy("a")
    done = project.run(*words)
    assert done.code in (2, 4)
    assert "GPU999" not in done.err
    assert DIGITS not in done.err


SECRET = {"stringData": {"password": "hunter2"}, "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
MASKED = {
    "Secret": ({"extraObjects": [SECRET]}, "GPU043"),
    "number in a Secret": ({"extraObjects": [SECRET | {"stringData": {"pin": HUGE}}]}, "GPU010"),
    "proxy": ({"cluster": CLUSTER | {"openshift": {"proxy": {"httpProxy": "http://me:hunter2@p:1"}}}}, "GPU018"),
    "variable": ({"driver": {"env": [{"name": "HTTP_PROXY", "value": "http://me:hunter2@p:1"}]}}, "GPU018"),
    "argument": ({"validator": {"args": ["--proxy=http://me:hunter2@p:1"]}}, "GPU814"),
    "address beside a mistake": ({"driver": {"enabled": True, "evn": "http://me:hunter2@p:1"}}, "GPU016"),
}
"""Policies with a secret in them, and the rule that says so."""


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit"])
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("flow", [False, True])
def test_no_secret_is_told_or_kept(name: str, form: str, flow: bool, project: Project, tmp_path: Path) -> None:
    """No report, no message and nothing in the cache holds a password of a policy: written in blocks or on one line."""
    spec, rule = MASKED[name]
    text = policy("a", **spec)
    body = yaml.safe_dump(yaml.safe_load(text), sort_keys=False, default_flow_style=flow, width=10**6)
    project.write("policies/a.yaml", body)
    own = Project(project.folder, tmp_path / "own cache")
    for words in (["lint", "--format", form], ["render"], ["lint", "--format", form]):
        done = own.run(*words)
        assert done.code in (2, 4)
        said = done.out + done.err
        assert rule in said
        assert "hunter2" not in said
        assert str(HUGE) not in said
    files = [path for path in own.cache.rglob("*") if path.is_file()] if own.cache.exists() else []
    assert not any(word in path.read_bytes() for path in files for word in (b"hunter2", str(HUGE).encode()))
