"""gpustack itself goes by rings: each cluster is rendered by the version that gpustack.lock and changes say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpustack.compiler.cache import own_digest
from tests.cli.test_promote import NAMES, RINGS, T0, T1, T2, fleet, promote, report, saved, touched
from tests.project import Project, cache, project, tree
from tests.versions import SITE, edit, install, lock

__all__ = ["cache", "project"]

STEP = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyChange
rollout: {} # written by gpustack
gpustack: 0.2.0
"""
BUSY: dict[str, Any] = {
    **{section: {"enabled": True} for section in ("driver", "devicePlugin", "dcgmExporter")},
    "nodePools": [{"name": "training", "os": "ubuntu24.04"}],
}
"""A spec that renders 30 objects: 5 of the driver, 6 of admission, and 19 others."""
EMIT = "[file_name(resource, namespace), emit(resource.body)]"
MARKED = """

def _marked(body):
    meta = body["metadata"]
    if "nvidia-driver" in meta["name"] or "Admission" in body["kind"]:
        return body
    return {**body, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), "of": "two"}}}
"""


def marking(package: Path) -> None:
    """A version in which every object but those of drivers and of admission has one more annotation."""
    stack = package / "compiler/stack.py"
    edit(stack, EMIT, EMIT.replace("resource.body", "_marked(resource.body)"))
    stack.write_text(stack.read_text(encoding="utf-8") + MARKED, encoding="utf-8")


Installed = tuple[Path, dict[str, str]]
"""Where versions lie, and their digests."""


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Two versions side by side: 0.1.0, which has our files, and 0.2.0, which marks what it renders."""
    folder = tmp_path_factory.mktemp("versions")
    return folder, {"0.1.0": install(folder, "0.1.0"), "0.2.0": install(folder, "0.2.0", marking)}


@pytest.fixture
def begun(project: Project, versions: Installed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """Makes a fleet of the clusters NAMES, with both versions in gpustack.lock and a step to the second, committed."""
    monkeypatch.setenv("GPUSTACK_VERSIONS", str(versions[0]))

    def make(names: list[str], step: str = STEP, **spec: Any) -> Project:
        fleet(project, names)
        for name in names:
            project.policy(name, extends=["base"], **spec)
        project.write("gpustack.lock", lock(**versions[1]))
        project.write("policies/changes/gpustack.yaml", step)
        saved(project)
        return project

    return make


@pytest.fixture
def three(begun: Callable[..., Project]) -> Project:
    """Three clusters, one in each ring; the canary has the second version since T0."""
    return begun(["c00", "c02", "c10"], STEP.replace("{}", f'{{ring: canary, since: "{T0}"}}'))


def of_two(project: Project) -> set[str]:
    """The clusters that version 0.2.0 rendered."""
    folders = [folder for folder in project.dist.iterdir() if not folder.name.startswith(".")]
    return {each.name for each in folders if any(b"of: two" in text for text in project.tree(each).values())}


def told(project: Project, rule: str, base: str) -> list[tuple[int, str, list[str]]]:
    """Tier, sentence and clusters of what `diff` says of RULE against BASE."""
    every = project.run("diff", "--format", "json", "--base", base).json["impact"]
    return [(each["tier"], each["what"], each["clusters"]) for each in every if each["rule"] == rule]


def test_the_digest_is_that_of_the_files(versions: Installed) -> None:
    """One that is installed of our files has the digest that `version --lock` prints of a clone, wherever it lies."""
    assert versions[1]["0.1.0"] == own_digest() != versions[1]["0.2.0"]


def test_a_version_that_changes_19_templates_goes_by_rings(begun: Callable[..., Project]) -> None:
    """Sixty clusters in three rings: promoted twice with reports, each time the 19 objects of the clusters of that ring
    change and nobody else's folder; `check` is content at every step; back from all is what was.
    """
    project = begun(NAMES, **BUSY)
    start, seen = project.tree(), list[str]()
    for ring, now, had in (("canary", T0, 0), ("early", T1, 2), ("all", T2, 10)):
        before = project.tree()
        done = promote(project, "gpustack", "--to", ring, *seen, now=now)
        assert (done.code, done.err) == (0, ""), done.err
        assert touched(project, before) == {*RINGS[ring]}
        now_there = project.tree()
        changed = [path for path in now_there if now_there[path] != before[path] and not path.startswith(".index/")]
        assert len(changed) == 19 * len(RINGS[ring])
        assert len(of_two(project)) == had + len(RINGS[ring])
        assert project.run("check").code == 0
        seen = ["--verified", *(report(project, name, now.replace("08:00", "09:00")) for name in RINGS[ring])]
    assert promote(project, "gpustack", "--withdraw").code == 0
    assert project.tree() == start


def test_each_cluster_is_checked_by_its_own_version(three: Project) -> None:
    """What another version renders is stale, in either direction, also with nothing in a cache; and what one version
    refuses is told with its place, while nothing is written.
    """
    assert of_two(three) == {"c00"}
    assert three.run("render", "--own-version").code == 0
    assert of_two(three) == set()
    done = three.run("check", "--no-cache")
    assert (done.code, "1 of 3 clusters stale" in done.err) == (3, True)
    assert three.run("render", "c00").code == 0
    assert (of_two(three), three.run("check").code) == ({"c00"}, 0)
    three.policy("c00", extends=["base"], cdi={"enabled": True, "nriPluginEnabled": True})
    before = three.tree()
    done = three.run("render")
    assert (done.code, three.tree()) == (2, before)
    assert "policies/c00.yaml:" in done.err
    assert "GPU102" in done.err


def test_a_further_look_starts_nothing(three: Project, versions: Installed) -> None:
    """What is in the cache isn't rendered again, unless a policy is another; findings are told again."""
    python = versions[0] / "0.2.0/bin/python"
    there = python.readlink()
    python.unlink()
    python.symlink_to("/bin/false")
    try:
        assert three.run("check").code == 0
        three.policy("c00", extends=["base"], daemonsets={"labels": {"a": "b"}})
        done = three.run("render")
        assert (done.code, "GPU914" in done.err, "ended without a result" in done.err) == (4, True, True)
    finally:
        python.unlink()
        python.symlink_to(there)


def test_what_the_version_alone_changes_stands_apart(begun: Callable[..., Project]) -> None:
    """A merge that takes the canary to the next version, and in which somebody changed a label: the 19 objects that the
    version alone changes are a group of their own, and what both change is with the rest.
    """
    project = begun(["c00", "c02", "c10"], **BUSY)
    assert promote(project, "gpustack", "--to", "canary").code == 0
    alone = project.run("diff", "--base", "HEAD~1", "--format", "json").json
    assert [(each.get("by"), len(each["changes"])) for each in alone["groups"]] == [("gpustack 0.2.0 alone", 19)]
    expected = "from gpustack 0.1.0 to 0.2.0: by that alone, 19 objects change; by what people changed as well, 0"
    assert told(project, "IMP006", "HEAD~1") == [(5, expected, ["c00"])]
    env = {"env": [{"name": "A", "value": "b"}]}
    said = {section: {"enabled": True, **env} for section in ("driver", "dcgmExporter")}
    project.policy("c00", extends=["base"], **{**BUSY, **said})
    assert project.run("render").code == 0
    both = project.run("diff", "--base", "HEAD~1", "--format", "json").json
    apart = {each.get("by", ""): sorted(one["name"] for one in each["changes"]) for each in both["groups"]}
    assert apart[""] == ["nvidia-dcgm-exporter", "nvidia-driver-daemonset"]
    assert len(apart["gpustack 0.2.0 alone"]) == 18
    assert "by gpustack 0.2.0 alone)" in project.run("diff", "--base", "HEAD~1").out
    assert "by gpustack 0.2.0 alone)" in project.run("diff", "--base", "HEAD~1", "--format", "markdown").out


def test_a_version_that_rolls_drivers_waits_for_somebody(
    begun: Callable[..., Project], versions: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver's pod template that the version alone changes is told as any change of a driver's pods is (IMP112 where
    nothing rolls them, tier 1 with a variable that nobody knows), and that nobody but the version did it.
    """

    def rolling(package: Path) -> None:
        marking(package)
        env = 'body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "OF", "value": "two"}]'
        driver = f'if body["kind"] == "DaemonSet" and "driver" in body["metadata"]["name"]:\n        {env}\n'
        driver += '    if "nvidia-driver" in'
        edit(package / "compiler/stack.py", 'if "nvidia-driver" in', driver)

    project = begun(["c00", "c02", "c10"], **BUSY)
    digest = install(tmp_path / "more", "0.3.0", rolling)
    (tmp_path / "more/0.1.0").symlink_to(versions[0] / "0.1.0")
    monkeypatch.setenv("GPUSTACK_VERSIONS", str(tmp_path / "more"))
    project.write("gpustack.lock", lock(**{**versions[1], "0.3.0": digest}))
    project.write("policies/changes/gpustack.yaml", STEP.replace("0.2.0", "0.3.0"))
    saved(project)
    assert promote(project, "gpustack", "--to", "canary").code == 0
    done = project.run("diff", "--base", "HEAD~1", "--format", "json").json
    about = {(each["rule"], each["where"]): each["tier"] for each in done["impact"] if "driver" in each["where"]}
    assert {rule for rule, _ in about} == {"IMP112", "IMP901"}
    assert min(about.values()) == 1
    alone = [one["name"] for each in done["groups"] if each.get("by") for one in each["changes"]]
    assert "nvidia-driver-daemonset" in alone


def missing(project: Project, versions: Installed, more: Path) -> None:
    """No version is installed."""
    more.mkdir()


def other(project: Project, versions: Installed, more: Path) -> None:
    """A version has other files than the lock says."""
    install(more, "0.2.0")


def in_the_tree(project: Project, versions: Installed, more: Path) -> None:
    """A version lies in the work tree."""
    more.symlink_to(project.folder / "tools")
    install(project.folder / "tools", "0.2.0", marking)


def shared(project: Project, versions: Installed, more: Path) -> None:
    """Others can write to a version."""
    install(more, "0.2.0", marking)
    (more / "0.2.0" / SITE / "gpustack").chmod(0o777)


STARTED: list[tuple[Callable[[Project, Installed, Path], None], int, str]] = [
    (missing, 5, "python3 -m venv {more}/0.2.0 && {more}/0.2.0/bin/python -m pip install --require-hashes"),
    (other, 4, "has other files than gpustack.lock says: their sha256 is "),
    (in_the_tree, 4, "as others can write to it"),
    (shared, 4, "as others can write to it"),
]


@pytest.mark.parametrize(("how", "code", "what"), STARTED, ids=[each[0].__name__ for each in STARTED])
def test_what_is_not_started(
    begun: Callable[..., Project],
    versions: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Project, Installed, Path], None],
    code: int,
    what: str,
) -> None:
    """Only what the lock names, where nobody else can write; the error says what installs it."""
    project = begun(["c00"])
    more = tmp_path / "more"
    how(project, versions, more)
    monkeypatch.setenv("GPUSTACK_VERSIONS", str(more))
    before = project.tree()
    done = promote(project, "gpustack", "--to", "canary", "--no-commit")
    assert (done.code, what.format(more=more) in " ".join(done.err.split()), project.tree()) == (code, True, before)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({}, 0),
        ({"findings": []}, 0),
        ({"findings": [], "clusters": []}, 0),
        ({"findings": [], "clusters": [{"name": "../c00"}]}, 0),
        ({"findings": [], "clusters": []}, 4),  # without a word of why
        ({"findings": [{"severity": "error"}], "clusters": []}, 2),
        ([], 0),
    ],
)
def test_a_version_that_heeds_nothing(
    begun: Callable[..., Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Any, code: int
) -> None:
    """One that prints something else, or ends with nothing of what it was asked, is an error with its name, and
    neither the change nor dist/ is other than before.
    """
    project = begun(["c00"])

    def deaf(package: Path) -> None:
        (package / "__main__.py").write_text(f"import sys\nprint({json.dumps(told)!r})\nsys.exit({code})\n")

    project.write("gpustack.lock", lock(**{"0.1.0": own_digest(), "0.4.0": install(tmp_path, "0.4.0", deaf)}))
    project.write("policies/changes/gpustack.yaml", STEP.replace("0.2.0", "0.4.0"))
    saved(project)
    monkeypatch.setenv("GPUSTACK_VERSIONS", str(tmp_path))
    before = project.tree(), tree(project.folder / "policies")
    done = promote(project, "gpustack", "--to", "canary")
    assert (done.code, "GPU914: gpustack 0.4.0" in done.err) == (4, True), done.err
    assert (project.tree(), tree(project.folder / "policies")) == before


def test_what_a_request_locks_is_data(begun: Callable[..., Project], versions: Installed) -> None:
    """A version that the base's lock doesn't name is not started, though it is installed and has the digest that the
    request says: not by `render`, `check` or `diff`.
    """

    def hostile(package: Path) -> None:
        marking(package)
        edit(package / "cli/__init__.py", '"""', f'import pathlib; pathlib.Path("{versions[0]}/ran").touch()\n"""')

    project = begun(["c00"])
    digest = install(versions[0], "6.6.6", hostile)
    project.write("gpustack.lock", lock(**{"6.6.6": digest}))
    project.write("policies/changes/gpustack.yaml", STEP.replace("0.2.0", "6.6.6"))
    for verb in ("render", "check", "diff", "lint"):
        done = project.run(verb)
        assert done.code in {2, 4}
        assert "isn't in the gpustack.lock of the base branch" in done.err + done.out
    assert not (versions[0] / "ran").exists()


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("gpustack.lock", "- version: 1\n", "gpustack.lock:1:"),
        ("gpustack.lock", "- {version: ../x, sha256: a}\n", "gpustack.lock:1:"),
        ("gpustack.lock", "version: 1.0.0\n", "is not a list of versions"),
        ("gpustack.lock", None, "names gpustack 0.2.0, which gpustack.lock doesn't have"),
        ("policies/changes/gpustack.yaml", STEP.replace("0.2.0", "0.7"), "policies/changes/gpustack.yaml:4:"),
        ("policies/changes/gpustack.yaml", STEP.replace("0.2.0", '"0.7"'), "names gpustack 0.7, which gpustack.lock"),
        ("policies/changes/gpustack.yaml", STEP.replace("gpustack: 0.2.0\n", ""), "spec"),
    ],
)
def test_what_no_version_can_be_told_from(three: Project, path: str, text: str | None, what: str) -> None:
    """It is an error at its line, and nothing is written."""
    before = three.tree()
    if text is None:
        (three.folder / path).unlink()
    else:
        three.write(path, text)
    done = three.run("render")
    assert (done.code, what in done.err, three.tree()) == (4, True, before), done.err


def test_who_says_which_version(three: Project) -> None:
    """`explain` names the change or the lock, `promote --status` the version, and the lock concerns everybody."""
    assert three.run("explain", "c00", "gpustack").out.split()[:2] == ["gpustack:", "0.2.0"]
    (value,) = three.run("explain", "c00", "gpustack", "--format", "json").json["values"]
    where = {"path": "gpustack", "origin": "change", "where": "policies/changes/gpustack.yaml", "ring": "canary"}
    assert value == {**where, "value": "0.2.0"}
    (value,) = three.run("explain", "c10", "gpustack", "--format", "json").json["values"]
    assert value == {"path": "gpustack", "value": "0.1.0", "origin": "lock", "where": "gpustack.lock"}
    assert "gpustack (gpustack 0.2.0)  since 2027-03-01 08:00 UTC" in promote(three, "--status").out
    assert three.run("affected", "gpustack.lock").out.split() == ["c00", "c02", "c10"]
    three.write("policies/changes/gpustack.yaml", STEP)
    found = [each["rule"] for each in three.run("lint", "--format", "json").json["findings"]]
    assert "GPU094" not in found


def test_manifests_in_an_artifact_alone(begun: Callable[..., Project], versions: Installed) -> None:
    """A cluster whose manifests Git doesn't hold goes by rings as any other: its index has the digest of what its own
    version rendered, `check` is content, the 19 objects are told as that version's, what would be pushed has this
    digest, and back is what was. Two clusters that read one artifact are refused whoever renders them.
    """

    def section(name: str) -> dict[str, Any]:
        return {"engine": "flux", "repository": {"url": f"oci://registry.example.com/gpu/{name}", "dist": "oci"}}

    project = begun(["c00", "c02", "c10"], **BUSY)
    for name in ("c00", "c02"):
        project.policy(name, extends=["base"], **BUSY, gitops=section(name))
    saved(project)
    start = project.tree()
    assert promote(project, "gpustack", "--to", "canary").code == 0
    assert not (project.dist / "c00").exists()
    now, was = (json.loads(text)["artifact"] for text in (project.tree()[".index/c00.json"], start[".index/c00.json"]))
    assert (now["objects"], now["digest"] == was["digest"]) == (was["objects"], False)
    assert (project.run("check").code, touched(project, start)) == (0, {"c00"})
    alone = project.run("diff", "--base", "HEAD~1", "--format", "json").json["groups"]
    assert [(each.get("by"), len(each["changes"])) for each in alone] == [("gpustack 0.2.0 alone", 19)]
    pushed = project.run("push", "--all", "--dry-run", "--format", "json").json["artifacts"]
    assert [(each["cluster"], len(each["files"])) for each in pushed] == [(n, now["objects"]) for n in ("c00", "c02")]
    assert pushed[0]["digest"] != pushed[1]["digest"]
    project.run("render", "--no-cache")
    assert project.run("check").code == 0
    project.policy("c02", extends=["base"], **BUSY, gitops=section("c00"))
    assert "GPU046" in project.run("render").err
    project.policy("c02", extends=["base"], **BUSY, gitops=section("c02"))
    assert promote(project, "gpustack", "--back").code == 0
    assert project.tree() == start


def test_the_last_of_the_list_wins(begun: Callable[..., Project], versions: Installed) -> None:
    """Where two steps have come to a cluster, the version further down in gpustack.lock renders it."""
    project = begun(["c00", "c02", "c10"], STEP.replace("{}", f'{{ring: early, since: "{T0}"}}'))
    assert of_two(project) == {"c00", "c02"}
    first = STEP.replace("{}", f'{{ring: canary, since: "{T0}"}}').replace("0.2.0", "0.1.0")
    project.write("policies/changes/again.yaml", first)
    assert project.run("render").code == 0
    assert of_two(project) == {"c00", "c02"}
    project.write("gpustack.lock", lock(**dict(reversed(versions[1].items()))))
    assert project.run("render").code == 0
    assert of_two(project) == {"c02", "c10"}


def test_a_page_and_a_table_say_which_ring_gets_it_when(three: Project) -> None:
    """The report has the changes by rings, with the earliest time of those that have yet to get one."""
    assert three.run("report").code == 0
    page = (three.folder / "report.html").read_text()
    assert "not before 2027-03-02 08:00 UTC" in page
    assert json.dumps(promote(three, "--status", "--format", "json").json["changes"][0]["rings"]) == json.dumps(
        {
            "canary": "since 2027-03-01 08:00 UTC",
            "early": "not before 2027-03-02 08:00 UTC",
            "all": "not before 2027-03-05 08:00 UTC",
        }
    )
