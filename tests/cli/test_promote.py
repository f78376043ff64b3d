"""gpustack promote: sixty clusters in three rings, a change that goes through them, and one that is taken back."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.cli.promote import edited
from gpustack.compiler.beside import without_project
from gpustack.compiler.cache import digest
from gpustack.model import InputError
from gpustack.policy.loading.ring import moment
from gpustack.policy.loading.rings import of_documents
from gpustack.text.read import Document, parse
from tests.cli.repository import git
from tests.project import ROOT, SMALL, TODAY, Project, Ran, cache, document, project, tree

__all__ = ["cache", "project"]

FLEET = """\
apiVersion: gpustack.dev/v1alpha1
kind: Fleet
spec:
  rings:
  - name: canary # two that nobody waits for
    clusters: [c00, c01]
    soak: 24h
  - name: early
    clusters: [c0*]
    soak: 72h
    require: {findings: none}
  - name: all
    clusters: ["*"]
"""
CHANGE = """\
# Why: fewer series.
apiVersion: gpustack.dev/v1alpha1
kind: PolicyChange
rollout: {} # written by gpustack
# what it is
spec:
  daemonsets: {labels: {wave: %s}}
"""
RINGED = Document("fleet", FLEET, parse(FLEET, "fleet"), "")
NAMES = [f"c{number:02}" for number in range(60)]
RINGS = {"canary": NAMES[:2], "early": NAMES[2:10], "all": NAMES[10:]}
T0, T1, T2 = "2027-03-01T08:00:00Z", "2027-03-02T08:00:00Z", "2027-03-05T08:00:00Z"


def fleet(project: Project, names: list[str]) -> Project:
    """A repository with the rings, a policy for each of NAMES, rendered and committed."""
    for name in names:
        project.policy(name, extends=["base"])
    project.layer("base", daemonsets={"labels": {"of": "base"}})
    project.write("policies/fleet.yaml", FLEET)
    git(project.folder, "init", "-q", "-b", "main")
    for key in ("name", "email"):
        git(project.folder, "config", f"user.{key}", "bot@example.com")
    return project


def saved(project: Project) -> None:
    """Render and commit what there is."""
    assert project.run("render").code == 0
    git(project.folder, "add", "--all")
    git(project.folder, "commit", "-q", "-m", "change")


def promote(project: Project, *words: str, now: str = T0) -> Ran:
    """Run promote at the time NOW."""
    with mock.patch("gpustack.cli.common.clock", return_value=moment(now)):
        return project.run("promote", *words, "--today", TODAY)


def test_a_look_ahead_is_not_committed(small: Project) -> None:
    """A soak can't be passed over by a time to come: --now is for looking, and for who commits it by hand, for which
    the review has IMP003."""
    asked = ("promote", "wave", "--to", "early", "--now", T2, "--today", TODAY)
    refused = small.run(*asked)
    assert (refused.code, "GPU092" in refused.err) == (4, True), refused.err
    assert f'since: "{T0}"' in small.folder.joinpath("policies/changes/wave.yaml").read_text(encoding="utf-8")
    with mock.patch("gpustack.cli.common.clock", return_value=moment(T2)):
        assert "as of then" not in small.run(*asked).err


def report(project: Project, cluster: str, looked: str, *findings: tuple[str, str]) -> str:
    """What verify printed of CLUSTER, as it is rendered, at LOOKED: FINDINGS are ids and severities."""
    rendered = {cluster: digest(without_project((project.dist / f".index/{cluster}.json").read_bytes()))}
    told = [
        {"rule": rule, "severity": severity, "what": "w", "waived": None, "clusters": [cluster]}
        for rule, severity in findings
    ]
    head = {"version": 1, "exit": 0, "verb": "verify", "lookedAt": looked, "rendered": rendered}
    text = json.dumps({**head, "clusters": [cluster], "findings": told})
    project.folder.parent.joinpath(f"{cluster}.json").write_text(text, encoding="utf-8")
    return f"../{cluster}.json"


def touched(project: Project, before: dict[str, bytes]) -> set[str]:
    """The clusters of which a file in dist/ is other than BEFORE."""
    now = project.tree()
    paths = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    return {Path(path).stem if path.startswith(".index/") else path.split("/")[0] for path in paths}


def waves(project: Project) -> dict[str, set[str]]:
    """The clusters by what the label `wave` is in their pods, "" where it isn't there."""
    found: dict[str, set[str]] = {}
    for name in NAMES:
        texts = [text for path, text in project.tree(project.dist / name).items() if "daemonset-" in path]
        wave = {line.split()[1].decode() for text in texts for line in text.splitlines() if b" wave:" in line}
        found.setdefault("".join(sorted(wave)), set()).add(name)
    return found


def test_a_change_goes_through_sixty_clusters_in_three_rings(project: Project) -> None:
    """Twice further with reports, each with a commit of its own which holds the change's file and the folders of that
    ring alone; nobody else's dist/ is touched, byte for byte; comments stay; nothing is left uncommitted.
    """
    fleet(project, NAMES)
    project.write("policies/changes/wave.yaml", CHANGE % "one")
    saved(project)
    start = project.tree()
    assert waves(project) == {"": {*NAMES}}
    seen: list[str] = []
    for ring, now in (("canary", T0), ("early", T1), ("all", T2)):
        before = project.tree()
        done = promote(project, "wave", "--to", ring, *seen, now=now)
        assert (done.code, done.err) == (0, ""), done.err
        assert touched(project, before) == {*RINGS[ring]}
        changed = git(project.folder, "show", "--name-only", "--format=", "HEAD").split()
        assert {path.split("/")[1] for path in changed} - {"changes", ".index"} == {*RINGS[ring]}
        assert git(project.folder, "status", "--porcelain") == ""
        assert project.run("check").code == 0
        later = now.replace("08:00", "09:00")
        seen = ["--verified", *(report(project, name, later) for name in RINGS[ring])]
    assert waves(project) == {"one": {*NAMES}}
    text = (project.folder / "policies/changes/wave.yaml").read_text()
    assert yaml.safe_load(text)["rollout"]["ring"] == "all"
    words = [line for line in text.splitlines() if not line.startswith(("rollout", "  ring", "  since"))]
    assert words == [line for line in (CHANGE % "one").splitlines() if not line.startswith("rollout")]
    assert "# written by gpustack" in text
    assert promote(project, "wave", "--withdraw").code == 0
    assert project.tree() == start


def test_a_bad_change_stops_in_the_canary_and_goes_back(project: Project) -> None:
    """The breaker of a NodePolicy is an error of verify's: the change goes nowhere but back, and then dist/ is what it
    was, in all sixty clusters, while another change goes on.
    """
    fleet(project, NAMES)
    project.write("policies/changes/bad.yaml", CHANGE % "bad")
    saved(project)
    start = project.tree()
    assert promote(project, "bad", "--to", "canary").code == 0
    good, bad = report(project, "c00", T1), report(project, "c01", T1, ("LIV601", "error"))
    done = promote(project, "bad", "--to", "early", "--verified", good, bad, now=T1)
    assert done.code == 4
    assert "policies/changes/bad.yaml:5:" in done.err
    assert "in the ring canary, verify says of c01: LIV601" in done.err
    due = promote(project, "--due", "--verified", good, bad, now=T1)
    assert (due.code, "verify says of c01" in due.out) == (0, True)
    assert waves(project)["bad"] == {*RINGS["canary"]}
    assert promote(project, "bad", "--back", now=T1).code == 0
    assert project.tree() == start
    assert git(project.folder, "status", "--porcelain") == ""


ROLLOUT = f'{{ring: canary, since: "{T0}"}}'
WRITTEN = [
    f"rollout: {ROLLOUT} # why\nspec: {{}}\n",
    f"rollout: # why\n  # more\n\n  since: '{T0}' # then\n  ring: canary # here\n# after\nspec: {{}}\n",
    f"spec: {{}}\n# before\nrollout:\n  ring: canary\n  since: {T0}\n",
    "spec: {} # x\n",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_an_edit_keeps_all_that_is_not_edited(text: str) -> None:
    """Comments stay, wherever the rollout stands and however it is written; so does every other line."""
    whole = f"apiVersion: gpustack.dev/v1alpha1\nkind: PolicyChange # kind\n{text}"
    (change,) = of_documents(
        {"changes/x.yaml": Document("x", whole, parse(whole, "x"), ""), "fleet.yaml": RINGED}
    ).changes
    made = edited(change, {"ring": "early", "since": T1, "hold": 'a "b" # c'})
    assert yaml.safe_load(made)["rollout"] == {"ring": "early", "since": T1, "hold": 'a "b" # c'}
    lost = [line for line in whole.splitlines() if line and line not in made.splitlines()]
    assert all(line.lstrip().startswith(("rollout", "ring", "since")) for line in lost)
    assert sorted(re.findall("# [a-z]+", made.replace('# c"', ""))) == sorted(re.findall("# [a-z]+", whole))


def test_an_edit_keeps_the_ends_of_lines() -> None:
    """A file with CR and LF at its lines' ends has them at all lines."""
    whole = f"apiVersion: gpustack.dev/v1alpha1\nkind: PolicyChange\n{WRITTEN[1]}".replace("\n", "\r\n")
    documents = {"changes/x.yaml": Document("x", whole, parse(whole, "x"), ""), "fleet.yaml": RINGED}
    made = edited(of_documents(documents).changes[0], {"ring": "early", "since": T1, "hold": "x"})
    assert made.count("\n") == made.count("\r\n") > 5


def test_an_edit_that_would_be_another_file_is_refused() -> None:
    """Where the text is written so that no line of it can be told apart, nothing is written."""
    whole = f"{{apiVersion: gpustack.dev/v1alpha1, kind: PolicyChange, rollout: {ROLLOUT}, spec: {{}}}}\n"
    (change,) = of_documents(
        {"changes/x.yaml": Document("x", whole, parse(whole, "x"), ""), "fleet.yaml": RINGED}
    ).changes
    with pytest.raises(InputError, match="nobody edits by program"):
        edited(change, {"hold": "x"})


@pytest.fixture
def small(project: Project) -> Project:
    """Three clusters, one in each ring, and a change that the canary has since T0."""
    fleet(project, ["c00", "c02", "c10"])
    project.write("policies/changes/wave.yaml", (CHANGE % "one").replace("{}", f'{{ring: canary, since: "{T0}"}}'))
    saved(project)
    return project


REFUSED: list[tuple[list[str], str, list[tuple[str, str, str]], str]] = [
    ([], "2027-03-02T07:30:00Z", [("c00", T1, "")], "soaks in the ring canary, with 30 minutes to go"),
    ([], T1, [], "nobody verified in the ring canary: c00"),
    ([], T1, [("c00", T0, "")], "nobody verified in the ring canary: c00"),  # not younger than the change is there
    ([], T1, [("c00", T1, "error")], "verify says of c00: LIV101: w"),
    ([], T1, [("c00", T1, "LIV603")], "verify says of c00: LIV603: w"),  # still rolled
    ([], T1, [("c00", T1, "LIV002")], "verify says of c00: LIV002: w"),  # nobody looked
]


@pytest.mark.parametrize(("words", "now", "seen", "what"), REFUSED)
def test_what_keeps_a_change_in_its_ring(
    small: Project, words: list[str], now: str, seen: list[tuple[str, str, str]], what: str
) -> None:
    """It is said at the line of its rollout, with what to do, and nothing is written."""
    before, head = tree(small.folder / "policies"), git(small.folder, "rev-parse", "HEAD")
    findings = {
        "": [],
        "error": [("LIV101", "error")],
        "LIV603": [("LIV603", "note")],
        "LIV002": [("LIV002", "warning")],
    }
    files = [report(small, cluster, looked, *findings[found]) for cluster, looked, found in seen]
    done = promote(small, "wave", "--to", "early", *words, *(["--verified", *files] if files else []), now=now)
    assert (done.code, what in done.err) == (4, True), done.err
    assert "policies/changes/wave.yaml:4:" in done.err
    assert "  do: " in done.err
    assert (tree(small.folder / "policies"), git(small.folder, "rev-parse", "HEAD")) == (before, head)


def test_warnings_count_where_the_ring_says_so(small: Project) -> None:
    """They let a change out of the canary, and not out of the next ring, which asks for none."""
    first = report(small, "c00", T1, ("LIV102", "warning"))
    assert promote(small, "wave", "--to", "early", "--verified", first, now=T1).code == 0
    then = report(small, "c02", T2, ("LIV102", "warning"))
    done = promote(small, "wave", "--to", "all", "--verified", then, now=T2)
    assert (done.code, "verify says of c02" in done.err) == (4, True)


def test_one_ring_at_a_time_unless_somebody_says_why(small: Project) -> None:
    """Over rings only with --skip, whose reason is in the commit; never over a hold."""
    done = promote(small, "wave", "--to", "all", now=T1)
    assert (done.code, "can't go from canary to all" in done.err, "--to early" in done.err) == (4, True, True)
    assert promote(small, "wave", "--hold", "metrics look odd").code == 0
    held = promote(small, "wave", "--to", "all", "--skip", "an exploit", now=T1)
    assert (held.code, "is held: metrics look odd" in held.err) == (4, True)
    assert promote(small, "wave", "--unhold").code == 0
    assert promote(small, "wave", "--to", "all", "--skip", "an exploit", now=T1).code == 0
    assert "Without soak and reports: an exploit" in git(small.folder, "log", "-1", "--format=%B")
    assert small.run("explain", "c10", "daemonsets.labels.wave").out.endswith("wave.yaml:9:31\n")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nobody", "--back"], "no change is called nobody"),
        (["--back"], "no change is named"),
        (["wave", "--to", "elsewhere"], "there is no ring elsewhere"),
        (["wave", "--unhold"], "the change wave isn't held"),
        (["wave", "--to", "canary"], "can't go from canary to canary"),
        (["wave", "--back", "--skip", "x"], "--skip goes with --to"),
        (["wave", "--back", "--verified", "nothing.json"], "nothing.json can't be read: No such file"),
        (["wave", "--back", "--verified", "policies/fleet.yaml"], "policies/fleet.yaml is not a report"),
    ],
)
def test_what_is_asked_in_vain(small: Project, words: list[str], what: str) -> None:
    """It is refused, with what there is instead."""
    done = promote(small, *words)
    assert (done.code, what in done.err, "  do: " in done.err) == (4, True, True), done.err


WELL = {
    "version": 1,
    "exit": 0,
    "verb": "verify",
    "lookedAt": T1,
    "clusters": ["c00"],
    "findings": [],
}
STRANGE: dict[str, str] = {
    "empty": "",
    "cut off": json.dumps(WELL)[:-20],
    "a list": "[]",
    "too deep": "[" * 100_000,
    "of another verb": json.dumps({**WELL, "verb": "lint"}),
    "of a form to come": json.dumps({**WELL, "version": 2}),
    "of a run that failed": json.dumps({**WELL, "exit": 4}),
    "of no time": json.dumps({**WELL, "lookedAt": True}),
    "of a time without a zone": json.dumps({**WELL, "lookedAt": "2027-03-02T08:00:00"}),
    "of a day": json.dumps({**WELL, "lookedAt": "2027-03-02"}),
    "before all times": json.dumps({**WELL, "lookedAt": "0001-01-01T00:00:00+14:00"}),
    "after all times": json.dumps({**WELL, "lookedAt": "9999-12-31T23:00:00-14:00"}),
    "findings that are none": json.dumps({**WELL, "findings": None}),
    "findings of nobody": json.dumps({**WELL, "findings": [{"clusters": 5}]}),
    "a cluster that is a list": json.dumps({**WELL, "clusters": [["c00"]]}),
    "renders that are a list": json.dumps({**WELL, "rendered": ["c00"]}),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_report_that_is_none(small: Project, name: str) -> None:
    """Whatever `verify` of this version didn't print whole is refused by its name, and nothing is written."""
    small.folder.parent.joinpath("r.json").write_text(STRANGE[name], encoding="utf-8")
    before, head = tree(small.folder / "policies"), git(small.folder, "rev-parse", "HEAD")
    done = promote(small, "wave", "--to", "early", "--verified", "../r.json", now=T2)
    assert (done.code, "../r.json is not a report" in done.err) == (4, True), done.err
    assert (tree(small.folder / "policies"), git(small.folder, "rev-parse", "HEAD")) == (before, head)


def test_a_report_of_another_commit(small: Project) -> None:
    """A report tells what was rendered for the cluster that it is about. Where that is other than what is rendered
    now, or it doesn't tell, somebody looked from another commit, and the change stays; what `verify` says of the
    cluster today lets it go, whichever folder that ran in.
    """
    old = report(small, "c00", "2027-03-03T08:00:00Z")
    small.layer("base", daemonsets={"labels": {"of": "another"}})
    saved(small)
    done = promote(small, "wave", "--to", "early", "--verified", old, now=T2)
    assert (done.code, "is about other manifests than are rendered now, or doesn't say: c00" in done.err) == (4, True)
    untold = {**WELL, "lookedAt": "2027-03-03T08:00:00Z"}
    small.folder.parent.joinpath("r.json").write_text(json.dumps(untold), encoding="utf-8")
    assert promote(small, "wave", "--to", "early", "--verified", "../r.json", now=T2).code == 4
    git(small.folder, "clone", "-q", ".", "../clone")
    small.write("seen/namespace.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: gpu-operator}}\n")
    clone = Project(small.folder.parent / "clone", small.cache)
    seen = clone.run("verify", "c00", "--from", small.folder / "seen", "--format", "json").json
    small.folder.parent.joinpath("r.json").write_text(
        json.dumps({**seen, "lookedAt": "2027-03-03T08:00:00Z", "findings": []}), encoding="utf-8"
    )
    assert promote(small, "wave", "--to", "early", "--verified", "../r.json", now=T2).code == 0


def test_a_waiver_of_ones_own(small: Project) -> None:
    """`verify` waives nothing: a report that says so was written by somebody else, and its errors count."""
    file = report(small, "c00", T1, ("LIV601", "error"))
    path = small.folder.parent / "c00.json"
    path.write_text(path.read_text().replace("null", '"it is fine"'))
    assert promote(small, "wave", "--to", "early", "--verified", file, now=T1).code == 4


def merge(project: Project, when: str, path: str, text: str) -> None:
    """Write TEXT to PATH on a branch, long ago, and merge that into main on the day WHEN."""
    git(project.folder, "switch", "-q", "-c", "request")
    project.write(path, text)
    saved(project)
    git(project.folder, "switch", "-q", "main")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_COMMITTER_DATE", when)
        git(project.folder, "merge", "-q", "--no-ff", "-m", "merge", "request")
    git(project.folder, "branch", "-q", "-d", "request")


@pytest.mark.parametrize("what", ["the ring", "the spec"])
def test_the_soak_begins_when_it_is_merged(small: Project, what: str) -> None:
    """A request that waited for days has its soak before it, whatever `since` says, and so has a change of which
    somebody edits the spec on its way; a hold and a comment begin nothing anew. A report from before doesn't count.
    """
    path = "policies/changes/wave.yaml"
    there = (CHANGE % "one").replace("{}", f'{{ring: canary, since: "{T0}"}}')
    if what == "the ring":
        (small.folder / path).unlink()
        saved(small)
    text = there if what == "the ring" else there.replace("one", "two")
    merge(small, "2027-03-04T20:00:00Z", path, text)
    early = report(small, "c00", "2027-03-04T12:00:00Z")
    done = promote(small, "wave", "--to", "early", "--verified", early, now=T2)
    assert (done.code, "with 12 hours to go" in done.err, "nobody verified" in done.err) == (4, True, True), done.err
    rows = promote(small, "--status", "--format", "json", now=T2).json["changes"]
    assert (rows[0]["since"], rows[0]["rings"]["early"]) == (T0, "not before 2027-03-05 20:00 UTC")
    merge(small, "2027-03-05T06:00:00Z", path, f"# a word\n{text}")
    assert promote(small, "wave", "--hold", "wait", now=T2).code == 0
    assert promote(small, "wave", "--unhold", now=T2).code == 0
    late = report(small, "c00", "2027-03-04T21:00:00Z")
    assert promote(small, "wave", "--to", "early", "--verified", late, now="2027-03-05T19:59:00Z").code == 4
    assert promote(small, "wave", "--to", "early", "--verified", late, now="2027-03-05T20:00:00Z").code == 0


@pytest.mark.parametrize(
    ("how", "what"), [("switch -q --detach", "no branch is checked out"), ("config --unset user.email", "who commits")]
)
def test_where_nobody_can_commit_nothing_is_written(
    small: Project, how: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no branch is checked out, or nobody said who commits, it ends before anything is written."""
    git(small.folder, *how.split())
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(small.folder, "config", "user.useConfigOnly", "true")
    before = tree(small.folder / "policies"), small.tree()
    done = promote(small, "wave", "--back")
    assert (done.code, what in done.err) == (4, True), done.err
    assert (tree(small.folder / "policies"), small.tree()) == before


def test_one_that_can_not_go_stops_no_other(small: Project) -> None:
    """Of three changes that are due, the second is refused by a rule in the next ring: the others go, each with its
    commit, what refuses it is told as what keeps it, and the exit code is 0, so that CI pushes what went.
    """
    there = f'{{ring: canary, since: "{T0}"}}'
    (small.folder / "policies/changes/wave.yaml").unlink()
    small.policy("c02", extends=["base"], toolkit={"enabled": False}, cdi={"enabled": True})
    small.policy("c00", extends=["base"], toolkit={"enabled": True}, cdi={"enabled": True})
    for name, spec in (("a", "{daemonsets: {labels: {a: x}}}"), ("b", "{cdi: {nriPluginEnabled: true}}")):
        head = "apiVersion: gpustack.dev/v1alpha1\nkind: PolicyChange\n"
        small.write(f"policies/changes/{name}.yaml", f"{head}rollout: {there}\nspec: {spec}\n")
    small.write("policies/changes/c.yaml", (CHANGE % "one").replace("{}", there))
    saved(small)
    done = promote(small, "--due", "--verified", report(small, "c00", T1), now=T1)
    assert (done.code, done.err) == (0, "")
    went = [line.partition(",")[0] for line in done.out.splitlines() if "committed" in line]
    assert went == ["a: canary to early", "c: canary to early"]
    assert "note GPU102" in done.out.partition("policies/changes/b.yaml:")[2]
    assert git(small.folder, "log", "--format=%s", "-2").splitlines() == [
        f"promote: {name}: canary to early" for name in "ca"
    ]
    assert git(small.folder, "status", "--porcelain") == ""


def test_the_page_is_followed(project: Project) -> None:
    """docs/rings.md word for word: its two files, merged, change nothing that is rendered; its first command writes
    the lines that it shows, and its last one refuses before the soak is over and goes on after it.
    """
    page = (ROOT / "docs/rings.md").read_text(encoding="utf-8")
    rings, change, rollout, *_ = re.findall("```yaml\n(.*?)```", page, re.DOTALL)
    first, _, last = (
        line.partition("#")[0].split()[2:] for line in re.findall("```sh\n(.*?)```", page, re.DOTALL)[0].splitlines()
    )
    clusters: dict[str, Any] = {"lab-1": {}, "edge-1": {}, "eu-1": {"ring": "early"}, "us-1": {}}
    fleet(project, [])
    for name, labels in clusters.items():
        spec = {**SMALL, "dcgmExporter": {"enabled": True}, "cluster": {**SMALL["cluster"], "monitoring": True}}
        project.write(f"policies/{name}.yaml", document("ClusterPolicy", name, spec))
        text = (project.folder / f"policies/{name}.yaml").read_text()
        project.write(f"policies/{name}.yaml", text.replace(f"name: {name}", f"name: {name}\n  labels: {labels}"))
    saved(project)
    start = project.tree()
    project.write("policies/fleet.yaml", rings)
    project.write("policies/changes/dcgm-scrape-60s.yaml", change)
    saved(project)
    assert project.tree() == start
    assert promote(project, *first).out.startswith("dcgm-scrape-60s: no ring to canary, committed")
    there = (project.folder / "policies/changes/dcgm-scrape-60s.yaml").read_text()
    assert re.sub('since: ".*"', f'since: "{T0}"', rollout) in there
    assert touched(project, start) == {"lab-1", "edge-1"}
    assert last[-1] == "canary.json"
    seen = [report(project, name, T0.replace("08", "09")) for name in ("lab-1", "edge-1")]
    assert promote(project, *last[:-1], *seen, now="2027-03-02T07:59:59Z").code == 4
    assert promote(project, *last[:-1], *seen, now=T1).code == 0
    assert touched(project, start) == {"lab-1", "edge-1", "eu-1"}


def test_a_change_that_moves_no_manifest(small: Project) -> None:
    """It is told that the ring has nothing to soak."""
    body = document("PolicyChange", "still", {"dcgmExporter": {"enabled": False}})
    small.write("policies/changes/still.yaml", body)
    saved(small)
    assert "to canary, and no manifest changes, committed" in promote(small, "still", "--to", "canary").out


def test_a_fleet_without_rings(project: Project) -> None:
    """The status of what isn't there is a sentence, and no table of nothing."""
    project.policy("a")
    ran = project.run("promote", "--status")
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "there are no rings and no changes here; gpustack's docs/rings.md says what they are",
    )


def test_who_is_in_no_ring(small: Project) -> None:
    """The table tells which clusters a change would never come to."""
    small.write("policies/fleet.yaml", FLEET.replace('["*"]', "[d*]"))
    done = promote(small, "--status", "--format", "json")
    assert done.json["ringless"] == ["c10"]
    assert "in no ring: c10" in promote(small, "--status").out


@pytest.mark.parametrize("now", ["2027-03-02", "2027-03-02T08:00:00", "9999-12-31T23:59:59-14:00", "soon"])
def test_a_time_that_is_none(small: Project, now: str) -> None:
    """Without a zone it would be another one on each machine."""
    done = small.run("promote", "--status", "--now", now, "--today", TODAY)
    assert (done.code, "--now" in done.err) == (4, True)


def test_what_others_work_on_gets_into_no_commit(small: Project) -> None:
    """A policy that isn't committed, or isn't rendered, ends it; what is staged beside stays staged."""
    small.write("notes.txt", "mine")
    git(small.folder, "add", "notes.txt")
    assert promote(small, "wave", "--back").code == 0
    assert git(small.folder, "diff", "--cached", "--name-only") == "notes.txt"
    small.layer("base", daemonsets={"labels": {"of": "other"}})
    dirty = promote(small, "wave", "--to", "canary")
    assert (dirty.code, "policies/layers/base.yaml: not committed" in dirty.err) == (4, True)
    git(small.folder, "commit", "-q", "-m", "not rendered", "policies")
    stale = promote(small, "wave", "--to", "canary")
    assert (stale.code, "dist/c00: not committed, not rendered" in stale.err) == (4, True)
    assert promote(small, "wave", "--to", "canary", "--no-commit").code == 0
    assert "policies/changes/wave.yaml" in git(small.folder, "status", "--porcelain")


def test_a_refused_render_leaves_the_change_as_it_was(small: Project) -> None:
    """Nothing is written where a cluster of the next ring can't have it."""
    small.write("policies/changes/wave.yaml", (CHANGE % "[1]").replace("{}", f'{{ring: canary, since: "{T0}"}}'))
    git(small.folder, "commit", "-q", "-m", "broken", "policies")
    before = tree(small.folder)
    done = promote(small, "wave", "--to", "early", "--skip", "x", "--no-commit", now=T1)
    assert (done.code, "policies/changes/wave.yaml:9:" in done.err) == (4, True)
    assert tree(small.folder) == before


def test_no_hook_runs_and_what_a_filter_changes_is_refused(small: Project) -> None:
    """A commit is made of bytes: hooks don't run. Where .gitattributes names a filter, it isn't made."""
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        small.write(f".git/hooks/{name}", "#!/bin/sh\ntouch hooked\n").chmod(0o755)
    assert promote(small, "wave", "--hold", "x").code == 0
    (small.folder / ".git/hooks/reference-transaction").unlink()
    content = git(small.folder, "cat-file", "blob", "HEAD:policies/changes/wave.yaml")
    assert content + "\n" == (small.folder / "policies/changes/wave.yaml").read_text()
    small.write(
        ".git/config", (small.folder / ".git/config").read_text() + '[filter "f"]\nclean = touch filtered; cat\n'
    )
    small.write(".gitattributes", "policies/** filter=f\n")
    done = promote(small, "wave", "--unhold")
    assert (done.code, "converted by Git" in done.err) == (4, True)
    assert not any((small.folder / name).exists() for name in ("hooked", "filtered"))


def test_status(small: Project) -> None:
    """Where changes are, since when, how long they soak, and what they wait for."""
    done = promote(small, "--status", now=T0)
    assert done.out.splitlines() == [
        "change  canary (1)                  early (1)                        all (1)",
        "soak    24h                         72h                              0s",
        "wave    since 2027-03-01 08:00 UTC  not before 2027-03-02 08:00 UTC  not before 2027-03-05 08:00 UTC",
        "wave: next is early",
        "  waits: the change wave soaks in the ring canary, with a day to go",
        "  waits: nobody verified in the ring canary: c00",
    ]
    told: Any = promote(small, "--status", "--format", "json", now=T1).json
    (change,) = told["changes"]
    assert (change["name"], change["ring"], change["next"], change["soakLeft"]) == ("wave", "canary", "early", 0)
    assert [ring["clusters"] for ring in told["rings"]] == [["c00"], ["c02"], ["c10"]]


STEPS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["further", "back", "withdraw"])), max_size=6)


@settings(max_examples=12)
@given(steps=STEPS)
def test_back_is_the_way_that_it_came(
    tmp_path_factory: pytest.TempPathFactory, cache: Path, steps: list[tuple[str, str]]
) -> None:
    """In any order of steps of two changes: what is rendered depends on where the changes are alone, so promote and
    back is the identity on dist/.
    """
    folder = tmp_path_factory.mktemp("project")
    project = Project(folder, cache)
    for name in ("c00", "c02", "c10"):
        project.policy(name)
    project.write("policies/fleet.yaml", FLEET)
    project.write("policies/changes/a.yaml", CHANGE % "a")
    project.write("policies/changes/b.yaml", (CHANGE % "b").replace("wave", "tide"))
    assert project.run("render").code == 0
    rings, at, known = [None, *RINGS], {"a": 0, "b": 0}, {(0, 0): project.tree()}
    for change, step in steps:
        place = at[change]
        target = min(place + 1, 3) if step == "further" else max(place - 1, 0) if step == "back" else 0
        words = ["--to", str(rings[target]), "--skip", "x"] if step == "further" else [f"--{step}"]
        done = promote(project, change, *words, "--no-commit")
        assert (done.code == 0) is (target != place)
        at[change] = target
        assert known.setdefault((at["a"], at["b"]), project.tree()) == project.tree()
    for change, place in at.items():
        if place:
            assert promote(project, change, "--withdraw", "--no-commit").code == 0
    assert project.tree() == known[0, 0]


def test_lint_tells_at_once_what_a_later_ring_refuses(small: Project) -> None:
    """A change that one cluster of the last ring can't have is an error of lint's, with ring and clusters; a glob that
    names nobody is a warning, and a change that changes nothing a note.
    """
    small.policy("c10", toolkit={"enabled": False}, cdi={"enabled": True})
    small.write(
        "policies/changes/nri.yaml",
        document("PolicyChange", "nri", {"cdi": {"nriPluginEnabled": True}}),
    )
    small.policy("c02", toolkit={"enabled": True}, extends=[])
    small.policy("c00", toolkit={"enabled": True})
    small.write("policies/fleet.yaml", FLEET.replace("[c0*]", "[c0*, d*]"))
    vain = {"release": SMALL["release"]}
    small.write("policies/changes/vain.yaml", document("PolicyChange", "vain", vain))
    found = {(each["rule"], each["severity"]): each for each in small.run("lint", "--format", "json").json["findings"]}
    assert found["GPU102", "error"]["clusters"] == ["c10"]
    assert found["GPU102", "error"]["what"].startswith("once the ring all has nri: ")
    assert found["GPU102", "error"]["file"] == "policies/changes/nri.yaml"
    assert (found["GPU093", "warning"]["file"], found["GPU093", "warning"]["line"]) == ("policies/fleet.yaml", 9)
    assert found["GPU094", "note"]["file"] == "policies/changes/vain.yaml"
    assert small.run("render").code == 0


def test_a_change_that_changes_nothing(small: Project) -> None:
    """It is told where it says nothing, null included, and, as a warning, where all clusters of a ring have values of
    their own: it would pass through that ring unseen. A finding names a cluster once.
    """
    small.policy("c00", extends=["base"], daemonsets={"labels": {"wave": "mine"}})
    body = document("PolicyChange", "empty", {"driver": {"version": None}})
    small.write("policies/changes/empty.yaml", body)
    pools = [{"name": "other", "driver": {"version": "580.173.02"}}]
    small.policy("c10", extends=["base"], driver={"enabled": True}, nodePools=[{"name": "one", "os": "ubuntu22.04"}])
    small.write("policies/changes/pool.yaml", document("PolicyChange", "pool", {"nodePools": pools}))
    every = small.run("lint", "--format", "json").json["findings"]
    told = {each["what"].partition(":")[0]: each["severity"] for each in every if each["rule"] == "GPU094"}
    assert told == {
        "the change empty says nothing": "note",
        "the change wave changes nothing in canary": "warning",
    }
    twice = [each["what"] for each in every if len({*each["clusters"]}) < len(each["clusters"])]
    assert (twice, "GPU137" in {each["rule"] for each in every}) == ([], True)


def test_a_ring_that_nobody_is_in(small: Project) -> None:
    """A ring without a cluster, by a label that none has, is a warning: a change would pass through it unseen."""
    ghost = "  - {name: ghost, labels: {ring: gohst}}\n"
    head, rings = FLEET.split("rings:\n")
    small.write("policies/fleet.yaml", f"{head}rings:\n{ghost}{rings}")
    every = small.run("lint", "--format", "json").json["findings"]
    (found,) = (each for each in every if each["rule"] == "GPU093" and "ghost" in each["what"])
    assert (found["severity"], found["what"]) == ("warning", "no cluster is in the ring ghost")


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("canry", "did you mean canary?"),  # a typing error
        ("seventh", "write one of canary, wide, or name it in fleet.yaml"),  # several are named, and this one isn't
        ("wide", ""),
        ("rest", ""),  # the name of the ring that takes the rest
    ],
)
def test_a_label_that_no_ring_names(label: str, told: str, small: Project) -> None:
    """A cluster with a label that rings select by and a value that none of them names is told, where it is written."""
    rings = "".join(f"  - {{name: {each}, labels: {{ring: {each}}}}}\n" for each in ("canary", "wide"))
    rings += "  - {name: rest, clusters: ['*']}\n"
    small.write("policies/fleet.yaml", FLEET.partition("  - name")[0] + rings)
    shutil.rmtree(small.folder / "policies/changes")
    path = small.folder / "policies/c00.yaml"
    text = path.read_text("utf-8").replace("name: c00\n", f"name: c00\n  labels:\n    ring: {label}\n")
    path.write_text(text, "utf-8")
    every = small.run("lint", "--format", "json").json["findings"]
    found = [each for each in every if each["rule"] == "GPU093" and each["file"] == "policies/c00.yaml"]
    lines = text.splitlines()
    assert [(lines[each["line"] - 1].strip(), each["severity"], each["what"], each["remedy"]) for each in found] == [
        (f"ring: {label}", "warning", f"no ring names ring={label}, so the ring of this cluster is rest", told)
    ] * bool(told)


def test_affected_knows_rings(small: Project) -> None:
    """A change concerns the rings that have it and the next one; all, once it is gone; the rings themselves all."""
    said = {name: small.run("affected", f"policies/{name}").out.split() for name in ("fleet.yaml", "changes/wave.yaml")}
    assert said == {"fleet.yaml": ["c00", "c02", "c10"], "changes/wave.yaml": ["c00", "c02"]}
    (small.folder / "policies/changes/wave.yaml").unlink()
    assert small.run("affected", "policies/changes/wave.yaml").out.split() == ["c00", "c02", "c10"]
    done = small.run("render", "--changed-since", "HEAD")
    assert (done.code, "3 clusters rendered" in done.out) == (0, True)


def findings(project: Project, rule: str) -> list[str]:
    """What `diff` says of RULE against what is committed."""
    told = project.run("diff", "--format", "json", "--today", T2[:10]).json["impact"]
    return [f"{each['where'].removeprefix('policies/')}: {each['what']}" for each in told if each["rule"] == rule]


def test_a_promotion_is_routine_for_the_review(small: Project) -> None:
    """One ring further after the soak: nothing to accept; it says which rings have it now, which come later, and how
    many clusters of each ring change.
    """
    seen = report(small, "c00", T1)
    assert promote(small, "wave", "--to", "early", "--verified", seen, "--no-commit", now=T1).code == 0
    assert (findings(small, "IMP003"), findings(small, "IMP002")) == ([], [])
    assert findings(small, "IMP004") == [
        "changes/wave.yaml: from canary to early; yet to come: all not before 2027-03-05 08:00 UTC",
        "fleet.yaml: clusters that change, by rings: early 1 of 1 (c02)",
    ]


WAVE, NEW = "changes/wave.yaml", "changes/new.yaml"
AROUND: list[tuple[str, str, str, str]] = [
    (
        WAVE,
        f'{{ring: canary, since: "{T0}"}}',
        f'{{ring: all, since: "{T2}"}}',
        "goes over rings, or around them: it comes to c10",
    ),
    (WAVE, f'canary, since: "{T0}"', f'early, since: "{T0}"', "leaves the ring canary before its soak is over"),
    (WAVE, f'since: "{T0}"', 'since: "2027-02-01T08:00:00Z"', "says of another time that it came to the ring canary"),
    (WAVE, "wave: one", "wave: two", "says something else, at once in all rings up to canary"),
    (WAVE, ", hold: odd", "", "is no longer held: odd"),
    ("fleet.yaml", "soak: 24h", "soak: 1h", "the ring canary soaks for less, or asks for less"),
    ("fleet.yaml", "require: {findings: none}", "", "the ring early soaks for less, or asks for less"),
    ("fleet.yaml", "[c00, c01]", "[c00, c10]", "in another ring while a change is on its way: c10"),
]


@pytest.mark.parametrize(("path", "old", "new", "what"), AROUND, ids=[each[3][:24] for each in AROUND])
def test_what_goes_around_rings_waits_for_somebody(small: Project, path: str, old: str, new: str, what: str) -> None:
    """It is power (tier 1), bound to the file's content."""
    if "hold" in old:
        text = (small.folder / "policies" / WAVE).read_text().replace('Z"}', 'Z", hold: odd}')
        small.write(f"policies/{WAVE}", text)
        saved(small)
    text = (small.folder / "policies" / path).read_text()
    assert old in text
    small.write(f"policies/{path}", text.replace(old, new))
    assert small.run("render").code == 0
    assert f"{path}: {what}" in findings(small, "IMP003")
    assert small.run("diff", "--fail-on", "power").code == 1


ON_A_LINE = "apiVersion: gpustack.dev/v1alpha1\nkind: Fleet\nspec: {rings: [{name: %s}]}\n"
HELD = f'{{ring: canary, since: "{T0}", hold: odd}}'
OVERTAKES = {"daemonsets": {"labels": {"of": "base", "wave": "one"}}}
ROUND_ABOUT: dict[str, tuple[str, dict[str, str | None], str]] = {
    "the same in a layer": (
        f'{{ring: canary, since: "{T0}", hold: x}}',
        {"layers/base.yaml": document("PolicyLayer", "base", OVERTAKES)},
        "is overtaken: other files say the same to c02, c10, which it has not reached",
    ),
    "another order of rings": (
        HELD,
        {
            "fleet.yaml": ON_A_LINE
            % "all, clusters: [c10]}, {name: early, clusters: [c02]}, {name: canary, clusters: [c00]"
        },
        "comes to c10",
    ),
    "all in the first ring, while nothing is on its way": (
        "{}",
        {"fleet.yaml": ON_A_LINE % 'canary, clusters: ["*"]'},
        "earlier ring",
    ),
    "no rings any more": ("", {"fleet.yaml": None}, "rings are gone"),
    "a held change under another name": (
        HELD,
        {WAVE: None, NEW: (CHANGE % "one").replace("{}", f'{{ring: canary, since: "{T2}"}}').replace("wave", "new")},
        "is gone, and was held: odd",
    ),
    "a change that nobody has seen in its ring": (
        "",
        {NEW: (CHANGE % "one").replace("{}", '{ring: canary, since: "2020-01-01T00:00:00Z"}').replace("wave", "new")},
        "nobody has seen it there",
    ),
    "a change that will have been in its ring": (
        f'{{ring: canary, since: "{T0}"}}',
        {WAVE: (CHANGE % "one").replace("{}", '{ring: early, since: "2099-01-01T00:00:00Z"}')},
        "will have come to the ring early on 2099-01-01",
    ),
}


@pytest.mark.parametrize("case", ROUND_ABOUT)
def test_ways_around(small: Project, case: str) -> None:
    """What takes a change to clusters around their rings, or takes its protection away, is power whatever it is in."""
    rollout, files, what = ROUND_ABOUT[case]
    small.write(
        "policies/fleet.yaml",
        ON_A_LINE % "canary, clusters: [c00]}, {name: early, clusters: [c02]}, {name: all, clusters: [c10]",
    )
    if rollout:
        small.write(f"policies/{WAVE}", (CHANGE % "one").replace("{}", rollout))
    else:
        (small.folder / "policies" / WAVE).unlink()
    saved(small)
    for path, text in files.items():
        if text is None:
            (small.folder / "policies" / path).unlink()
        else:
            small.write(f"policies/{path}", text)
    assert small.run("render").code == 0
    assert any(what in each for each in findings(small, "IMP003")), findings(small, "IMP003")


@pytest.mark.parametrize(("hours", "told"), [(1, True), (-1, False)])
def test_a_time_to_come_is_told_by_the_hour(small: Project, hours: int, told: bool) -> None:
    """Who writes that a change will have come to a ring passes over its soak, be it by an hour."""
    now = datetime.datetime.now(datetime.UTC)
    small.write(f"policies/{WAVE}", (CHANGE % "one").replace("{}", '{ring: canary, since: "2026-01-01T00:00:00Z"}'))
    saved(small)
    since = f"{now + datetime.timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"
    small.write(f"policies/{WAVE}", (CHANGE % "one").replace("{}", f'{{ring: early, since: "{since}"}}'))
    assert small.run("render").code == 0
    found = small.run("diff", "--base", "HEAD", "--format", "json", "--today", f"{now:%Y-%m-%d}").out
    assert ("will have come to the ring early" in found) == told
