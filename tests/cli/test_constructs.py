"""Constructs of a team's own: sections that installed distributions bring, on a list that the repository holds."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.policy.loading.brought import LIST
from gpustack.policy.loading.constructs import content
from gpustack.review.steering import steers
from tests.cli.test_diff import commit, git
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

EXAMPLES = ROOT / "examples" / "constructs"
ISOLATION = {"isolation": {"namespaces": ["team-a"], "allowed": ["monitoring"]}}
QUEUES = {"queues": {"teams": {"research": 8}}}
CRD = "gpuqueues.acme.example.yaml"

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution of examples/constructs as pip does, into a folder of its own; where its package lies."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{site}")

    def installed(example: str, change: Callable[[Path], object] = lambda _: None) -> Path:
        project = tomllib.loads((EXAMPLES / example / "pyproject.toml").read_text())["project"]
        shutil.copytree(EXAMPLES / example / example, site / example, ignore=shutil.ignore_patterns("__pycache__"))
        change(site / example)
        info = site / f"{example}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        (group,) = project["entry-points"].items()
        points = "".join(f"{name} = {value}\n" for name, value in group[1].items())
        (info / "entry_points.txt").write_text(f"[{group[0]}]\n{points}")
        (info / "INSTALLER").write_text("pip\n")
        files = [path for path in [*sorted((site / example).rglob("*")), *sorted(info.iterdir())] if path.is_file()]
        rows = [f"{path.relative_to(site)},sha256={sha256(path.read_bytes()).hexdigest()},\n" for path in files]
        (info / "RECORD").write_text("".join(rows) + f"{info.name}/RECORD,,\n")
        importlib.invalidate_caches()
        return site / example

    yield installed
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


def allow(project: Project, *names: str, **other: str) -> None:
    """List the distributions NAMES as they are installed, with OTHER values."""
    listed = []
    for name in names:
        found = metadata.distribution(name)
        listed.append(
            {"name": name, "version": found.version, "sha256": content(found), "why": "ours, and reviewed", **other}
        )
    project.write(LIST, yaml.safe_dump(listed))


def test_a_set_of_network_policies(project: Project, install: Install) -> None:
    """The section is validated, explained, rendered into the stage that the construct names, and told to be its own."""
    install("acme_isolation")
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    ran = project.run("render")
    assert (ran.code, ran.err) == (0, ran.err)
    body = yaml.safe_load((project.dist / "a/base/networkpolicy-team-a==isolated.yaml").read_text())
    assert body["metadata"]["annotations"] == {"gpustack.dev/construct": "isolation"}
    assert body["spec"]["ingress"][0]["from"][1] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    ran = project.run("explain", "a", "constructs.isolation")
    assert "team-a" in ran.out
    assert "policies/a.yaml" in ran.out
    assert project.run("check").code == 0


def test_a_custom_resource(project: Project, install: Install) -> None:
    """A plain cdk8s construct; its kind is one that `schema add` made known, and its objects go where the stack is."""
    install("acme_queues")
    allow(project, "acme-queues")
    pool = {"name": "gpus", "count": 1, "gpusPerNode": 4, "os": "ubuntu22.04"}
    project.policy("a", constructs=QUEUES, nodePools=[pool])
    ran = project.run("render")
    assert ran.code == 2
    assert "gpustack schema add FILE" in ran.err
    assert "policies/a.yaml" in ran.err
    assert project.run("schema", "add", EXAMPLES / "acme_queues" / CRD).code == 0
    assert project.run("render").code == 0
    body = yaml.safe_load((project.dist / "a/operands/gpuqueue-research.yaml").read_text())
    assert body["metadata"]["namespace"] == "gpu-operator"
    assert body["spec"] == {"gpus": 4}


@pytest.mark.parametrize(
    ("section", "path", "said"),
    [
        ({"namespace": ["a"], "namespaces": ["a"]}, "spec.constructs.isolation.namespace", "is not a field"),
        ({}, "spec.constructs.isolation", "namespaces is missing"),
        ({"namespaces": "a"}, "spec.constructs.isolation.namespaces", "valid list"),
        ({"namespaces": []}, "spec.constructs.isolation.namespaces", "at least 1 item"),
    ],
)
def test_mistakes_have_a_place(project: Project, install: Install, section: Any, path: str, said: str) -> None:
    """What the section's own model refuses is told at the line of the policy."""
    install("acme_isolation")
    allow(project, "acme-isolation")
    project.policy("a", constructs={"isolation": section})
    ran = project.run("render", "--format", "json")
    assert ran.code == 4
    (finding,) = ran.json["findings"]
    assert finding["path"] == path
    assert said in finding["what"]
    assert finding["file"] == "policies/a.yaml"
    assert finding["line"]


@pytest.mark.parametrize(
    "refusal", ["raise ValueError('a team has one namespace')", "assert 0, 'a team has one namespace'"]
)
def test_what_a_model_says_itself_is_told_as_it_is(project: Project, install: Install, refusal: str) -> None:
    """In its own words, without those that pydantic puts in front of them."""

    def change(package: Path) -> None:
        with (package / "__init__.py").open("a") as file:
            file.write(f"\n    def model_post_init(self, _: object) -> None:\n        {refusal}\n")

    install("acme_isolation", change)
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    (finding,) = project.run("render", "--format", "json").json["findings"]
    assert finding["what"] == "spec.constructs.isolation: a team has one namespace"


MARK = "raise SystemExit('imported')\n"


def test_what_is_not_listed_is_refused_before_it_is_imported(project: Project, install: Install) -> None:
    """An installed distribution that nobody listed, and one that isn't what was listed, run no code; the error says
    what to add."""
    package = install("acme_isolation")
    project.policy("a", constructs=ISOLATION)
    good = content(metadata.distribution("acme-isolation"))
    (package / "__init__.py").write_text(MARK)
    ran = project.run("render")
    assert ran.code == 4
    assert "there is no construct 'isolation'" in ran.err
    assert "constructs.allow.yaml: - {name: acme-isolation, version: 1.0.0, sha256: " in ran.err
    project.write(
        LIST, yaml.safe_dump([{"name": "acme-isolation", "version": "1.0.0", "sha256": good, "why": "ours it is"}])
    )
    ran = project.run("render")
    assert ran.code == 4
    assert "has other files than constructs.allow.yaml says" in ran.err
    allow(project, "acme-isolation", version="9")
    ran = project.run("render")
    assert ran.code == 4
    assert "is installed in version 1.0.0, and constructs.allow.yaml has 9" in ran.err
    assert "acme_isolation" not in sys.modules


def test_code_beside_the_files_of_the_distribution_is_refused(
    project: Project, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that the distribution doesn't list, and a package of the same name that is found first."""
    package = install("acme_isolation")
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    (package / "more.py").write_text(MARK)
    assert "has a file that it doesn't list: acme_isolation/more.py" in project.run("render").err
    (package / "more.py").unlink()
    first = tmp_path / "first"
    (first / "acme_isolation").mkdir(parents=True)
    (first / "acme_isolation/__init__.py").write_text(MARK)
    monkeypatch.syspath_prepend(str(first))
    assert "doesn't have the package acme_isolation" in project.run("render").err
    assert "acme_isolation" not in sys.modules


def test_the_policy_repository_brings_no_code(project: Project) -> None:
    """A package and its metadata in the repository itself are nowhere looked for."""
    shutil.copytree(EXAMPLES / "acme_isolation/acme_isolation", project.folder / "acme_isolation")
    info = project.folder / "acme_isolation-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-isolation\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[gpustack.constructs]\nisolation = acme_isolation:Isolation\n")
    (info / "RECORD").write_text("acme_isolation/__init__.py,,\n")
    entry = {"name": "acme-isolation", "version": "1.0.0", "sha256": "0" * 64, "why": "ours it is"}
    project.write(LIST, yaml.safe_dump([entry]))
    project.policy("a", constructs=ISOLATION)
    ran = project.spawn("render", env={"PYTHONPATH": f":{ROOT}"})
    assert ran.code == 4
    assert "acme-isolation isn't installed" in ran.err


def test_another_version_of_the_code_renders_anew(project: Project, install: Install) -> None:
    """The cache is kept by the content of the distribution: what it rendered before counts for that alone."""
    package = install("acme_isolation")
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    assert project.run("render").code == 0
    text = (package / "policies.py").read_text()
    (package / "policies.py").write_text(text.replace('"name": "isolated"', '"name": "fenced"'))
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]
    allow(project, "acme-isolation")
    assert project.spawn("render", env={"PYTHONPATH": f"{ROOT}:{package.parent}"}).code == 0
    assert (project.dist / "a/base/networkpolicy-team-a==fenced.yaml").is_file()
    assert not (project.dist / "a/base/networkpolicy-team-a==isolated.yaml").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("policies.py", "for namespace in inputs.namespaces:", "for namespace in 1 / 0:", "ZeroDivisionError"),
        ("policies.py", '"kind": "NetworkPolicy",', '"kind": "NetworkPolicy", "x": 1,', "GPU901"),
        (
            "policies.py",
            '"apiVersion": "networking.k8s.io/v1",\n                "kind": "NetworkPolicy"',
            '"apiVersion": "v1", "kind": "Secret"',
            "the Secret isolated",
        ),
        ("policies.py", '= "base"', '= "first"', "its stage is 'first'"),
        ("policies.py", "class IsolationPolicies", "class Other", "can't be imported"),
        ("__init__.py", 'extra="forbid", ', "", "lets unknown keys pass"),
        ("__init__.py", "class Isolation(BaseModel)", "class Isolation(object)", "can't be"),
        ("__init__.py", "acme_isolation.policies:IsolationPolicies", "nothing", "doesn't name its construct"),
    ],
)
def test_code_that_fails_is_told(project: Project, install: Install, file: str, old: str, new: str, said: str) -> None:
    """Whatever the code does, it ends in a sentence that names the construct, and in no traceback."""

    def change(package: Path) -> None:
        text = (package / file).read_text()
        assert old in text
        (package / file).write_text(text.replace(old, new))

    install("acme_isolation", change)
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    ran = project.run("render")
    assert ran.code in {2, 4}
    assert said in ran.err
    assert "policies/a.yaml" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("text", ["a: 1", "- 1", "- {name: x}", "- {name: ../x, version: '1', sha256: a, why: b}"])
def test_a_list_that_is_none_is_refused(project: Project, text: str) -> None:
    """It is read for every verb, as what it says decides what a policy means."""
    project.write(LIST, text)
    project.policy("a")
    ran = project.run("render")
    assert ran.code == 4
    assert LIST in ran.err


def test_reviews_judge_its_objects_as_foreign(project: Project, install: Install) -> None:
    """A new object, and a change of one, is power, whatever else the policy changes; so is the list itself."""
    install("acme_isolation")
    allow(project, "acme-isolation")
    project.policy("a", constructs=ISOLATION)
    git(project.folder, "init", "-q")
    assert project.run("render").code == 0
    commit(project)
    more = {"isolation": {**ISOLATION["isolation"], "allowed": ["monitoring", "default"]}}
    project.policy("a", constructs=more, daemonsets={"labels": {"example.com/team": "b"}})
    found = project.run("diff", "--base", "HEAD", "--format", "json").json["impact"]
    objects = [each for each in found if "NetworkPolicy team-a/isolated" in json.dumps(each)]
    assert objects
    assert {each["tier"] for each in objects} == {1}
    assert any(each["tier"] == 1 and "constructs" in json.dumps(each) for each in found)
    assert steers(LIST)


def marked(package: Path) -> Path:
    """Let PACKAGE leave a file once it is imported; the file."""
    mark, file = package.parent / "imported", package / "__init__.py"
    file.write_text(f"{file.read_text()}\n__import__('pathlib').Path({str(mark)!r}).touch()\n")
    return mark


def test_the_list_of_the_base_decides(project: Project, install: Install) -> None:
    """What a branch adds to the list runs in no verb before the list is merged, nor what it lists anew with other
    files; the branch that adds it alone is reviewed as power. Without a base the list of the work tree decides."""
    package = install("acme_isolation")
    project.policy("a")
    git(project.folder, "init", "-q")
    project.run("render")
    commit(project)
    mark = marked(package)
    allow(project, "acme-isolation")
    found = project.run("diff", "--base", "HEAD", "--format", "json").json["impact"]
    assert [(each["rule"], each["tier"], each["where"]) for each in found] == [("IMP002", 1, LIST)]
    project.policy("a", constructs=ISOLATION)
    for words in (["render"], ["check"], ["lint"], ["explain", "a"], ["capacity"], ["diff", "--base", "HEAD"]):
        ran = project.run(*words)
        assert ran.code == 4, words
        assert "isn't on the constructs.allow.yaml of the base branch" in ran.out + ran.err, words
    assert not mark.exists()
    git(project.folder, "add", LIST)
    git(project.folder, "commit", "-qm", "the list, on a branch")
    git(project.folder, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    git(project.folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert "of the base branch" in project.run("render").err
    assert "of the base branch" in project.run("diff", "--base", "HEAD~1").err
    assert not mark.exists()


def test_the_list_that_is_merged_is_taken(project: Project, install: Install) -> None:
    """Once the base has it, the section renders; an entry that is taken out of the work tree counts no more."""
    install("acme_isolation")
    project.policy("a")
    allow(project, "acme-isolation")
    git(project.folder, "init", "-q")
    commit(project)
    project.policy("a", constructs=ISOLATION)
    assert project.run("render").code == 0
    project.write(LIST, "[]\n")
    assert "there is no construct 'isolation'" in project.run("render").err


def test_a_folder_beside_the_base_brings_no_code(project: Project, install: Install, tmp_path: Path) -> None:
    """Of two folders the first is the base: what the project of the second lists beyond that runs nowhere."""
    package = install("acme_isolation")
    project.policy("a")
    assert project.run("render").code == 0
    mark = marked(package)
    other = tmp_path / "request"
    shutil.copytree(project.folder, other)
    policy = yaml.safe_load((other / "policies/a.yaml").read_text())
    policy["spec"]["constructs"] = ISOLATION
    (other / "policies/a.yaml").write_text(yaml.safe_dump(policy))
    allow(project, "acme-isolation")
    (project.folder / LIST).rename(other / LIST)
    (other / "dist/a/base/more.yaml").write_text("kind: More\n")
    project.run("diff", "dist", other / "dist")
    assert not mark.exists()


def test_a_repository_without_them_pays_nothing(project: Project) -> None:
    """A warm render asks what the repository brings along, and imports nothing for it where that is nothing."""
    code = (
        "import sys, pathlib; from gpustack.policy.loading.brought import brought_by; "
        "print(repr(brought_by(pathlib.Path.cwd()).digest), "
        "[name for name in ('pydantic', 'importlib.metadata') if name in sys.modules])"
    )
    assert project.python(code).out == "'' []\n"
