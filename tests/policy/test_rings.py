"""Rings and changes: who is in which ring, what a change says where, and what is wrong with the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.model import Finding, InputError
from gpustack.policy.help.explain import explain
from gpustack.policy.loading.envelope import open_policy
from gpustack.policy.loading.load import Memo, load
from gpustack.policy.loading.rings import rings_of
from gpustack.text.read import read
from tests.policy.fleet import PINS, Fleet

HEAD = "apiVersion: gpustack.dev/v1alpha1\nkind: {kind}\n"
RINGS = """\
spec:
  rings:
  - name: canary
    clusters: [lab-*]
    soak: 24h
  - name: early
    labels: {ring: early, site: eu}
    clusters: [shop]
  - name: all
    clusters: ["*"]
"""
SINCE = '"2027-03-01T08:00:00Z"'


class Ringed(Fleet):
    """A fleet with rings."""

    def __init__(self, folder: Path, rings: str = RINGS) -> None:
        super().__init__(folder)
        (folder / "changes").mkdir()
        self.file("fleet.yaml", HEAD.format(kind="Fleet") + rings)

    def change(self, name: str, ring: str | None, body: str) -> Path:
        """A change that has come to RING; its body starts on line 5."""
        rollout = f"rollout: {{ring: {ring}, since: {SINCE}}}\n" if ring else "rollout: {}\n"
        return self.file(f"changes/{name}.yaml", HEAD.format(kind="PolicyChange") + rollout + "spec:\n" + body)

    def cluster(self, name: str, labels: str = "{}", body: str = "") -> Path:
        """A policy with labels."""
        metadata = f"metadata: {{name: {name}, labels: {labels}}}\nspec:\n"
        return self.file(f"{name}.yaml", HEAD.format(kind="ClusterPolicy") + metadata + PINS + body)


@pytest.fixture
def fleet(tmp_path: Path) -> Ringed:
    """A folder of policies with rings."""
    return Ringed(tmp_path)


def ring_of(fleet: Ringed, path: Path) -> str | None:
    """The ring of the cluster whose policy is PATH."""
    return rings_of(fleet.folder, lambda file: file.name).ring_of(open_policy(read(path, path.name)))


@pytest.mark.parametrize(
    ("name", "labels", "ring"),
    [
        ("lab-1", "{}", "canary"),
        ("lab-1", "{ring: early, site: eu}", "canary"),  # the first that names it
        ("shop", "{}", "early"),
        ("x", "{ring: early, site: eu, more: x}", "early"),
        ("x", "{ring: early}", "all"),  # not all of its labels
    ],
)
def test_a_cluster_is_in_the_first_ring_that_names_it(fleet: Ringed, name: str, labels: str, ring: str) -> None:
    """By its name, a glob, or all labels of the ring."""
    assert ring_of(fleet, fleet.cluster(name, labels)) == ring


def test_a_change_counts_above_layers_and_below_the_cluster(fleet: Ringed) -> None:
    """Up to its ring; `explain` names file, line and ring; where the cluster itself says something, that counts."""
    fleet.layer("base", "  dcgmExporter: {serviceMonitor: {interval: 15s}}\n")
    fleet.change("slower", "early", "  dcgmExporter: {serviceMonitor: {interval: 60s}}\n")
    seen = {}
    for name, body in (("lab-1", ""), ("shop", ""), ("far", ""), ("lab-2", "interval: 5s")):
        own = f"  dcgmExporter: {{serviceMonitor: {{{body}}}}}\n" if body else ""
        loaded = load(fleet.cluster(name, body=f"  extends: [base]\n{own}"), root=fleet.folder)
        (row,) = explain(loaded, "dcgmExporter.serviceMonitor.interval")
        seen[name] = (row.value, row.origin.kind, row.origin.ring, row.location.file, row.location.line)
    assert seen == {
        "lab-1": ("60s", "change", "early", "changes/slower.yaml", 5),
        "shop": ("60s", "change", "early", "changes/slower.yaml", 5),
        "far": ("15s", "layer", "", "layers/base.yaml", 5),
        "lab-2": ("5s", "policy", "", "lab-2.yaml", 8),
    }


def wrong(fleet: Ringed, path: Path) -> tuple[str, str, int | None, str]:
    """Of the one thing that is wrong: the rule, the file, the line, and the words."""
    (finding,) = fleet.refused(path)
    assert finding.location is not None
    return finding.rule, finding.location.file, finding.location.line, finding.what


@pytest.mark.parametrize(
    ("kind", "text", "rule", "line", "what"),
    [
        ("PolicyChange", "rollout: {ring: nowhere, since: %s}\nspec: {}\n", "GPU090", 3, "there is no ring nowhere"),
        ("PolicyChange", "rollout: {ring: early}\nspec: {}\n", "GPU018", 3, "ring and since go together"),
        ("PolicyChange", 'rollout: {ring: early, since: "2027-02-30T00:00:00Z"}\nspec: {}\n', "GPU018", 3, "calendar"),
        ("PolicyChange", 'rollout: {ring: early, since: "9999-12-31T23:59:59Z"}\nspec: {}\n', "GPU018", 3, "calendar"),
        ("PolicyChange", "rollout: {ring: early, since: yesterday}\nspec: {}\n", "GPU018", 3, "RFC 3339"),
        ("PolicyChange", "rollout: [early]\nspec: {}\n", "GPU090", 3, "rollout is not a mapping"),
        ("PolicyChange", "rollout: {wave: 1}\nspec: {}\n", "GPU016", 3, "unknown key rollout.wave"),
        ("PolicyChange", "spec:\n  extends: [base]\n", "GPU016", 4, "a PolicyChange has no extends"),
        ("PolicyChange", "metadata: {name: other}\nspec: {}\n", "GPU013", 3, "its file is x"),
        (
            "PolicyChange",
            "metadata: {name: x, labels: {a: b}}\nspec: {}\n",
            "GPU016",
            3,
            "a PolicyChange has no labels",
        ),
        ("PolicyLayer", "spec: {}\n", "GPU012", 2, "here a PolicyChange stands"),
    ],
)
def test_a_change_that_can_not_be_used(fleet: Ringed, kind: str, text: str, rule: str, line: int, what: str) -> None:
    """It is refused at its line, in every cluster, whatever ring it has come to."""
    fleet.file("changes/x.yaml", HEAD.format(kind=kind) + text.replace("%s", SINCE))
    found = wrong(fleet, fleet.cluster("far"))
    assert (*found[:3], what in found[3]) == (rule, "changes/x.yaml", line, True)


@pytest.mark.parametrize(
    ("text", "rule", "line", "what"),
    [
        ("spec: {rings: []}\n", "GPU018", 3, "rings"),
        ('spec: {rings: [{name: a, clusters: ["*"]}, {name: a, clusters: [b]}]}\n', "GPU011", 3, "a"),
        ('spec: {rings: [{name: a, clusters: ["*"], soak: 1 day}]}\n', "GPU018", 3, "not a valid duration"),
        ('spec: {rings: [{name: a, clusters: ["*"], require: {findings: some}}]}\n', "GPU018", 3, "findings"),
    ],
)
def test_rings_that_can_not_be_used(fleet: Ringed, text: str, rule: str, line: int, what: str) -> None:
    """They are refused at their line."""
    fleet.file("fleet.yaml", HEAD.format(kind="Fleet") + text)
    found = wrong(fleet, fleet.cluster("far"))
    assert (*found[:3], what in found[3]) == (rule, "fleet.yaml", line, True)


def test_a_change_needs_rings_and_a_cluster_needs_one(fleet: Ringed) -> None:
    """A change without rings, and a cluster that none of them names, are refused; without a change, neither is."""
    far = fleet.cluster("far")
    fleet.file("fleet.yaml", HEAD.format(kind="Fleet") + "spec: {rings: [{name: a, clusters: [b]}]}\n")
    assert load(far, root=fleet.folder)
    assert ring_of(fleet, far) is None
    fleet.change("x", None, "  cdi: {enabled: false}\n")
    assert wrong(fleet, far) == ("GPU091", "far.yaml", 3, "the cluster far is in no ring")
    (fleet.folder / "fleet.yaml").unlink()
    assert wrong(fleet, far)[:3] == ("GPU090", "changes/x.yaml", 2)


def test_a_policy_where_the_rings_stand_is_told_apart(fleet: Ringed) -> None:
    """A cluster whose file is called fleet.yaml, as it could be before there were rings, is not left out silently."""
    fleet.policy(name="fleet")
    assert wrong(fleet, fleet.cluster("far")) == (
        "GPU012",
        "fleet.yaml",
        2,
        "this is a ClusterPolicy, and here a Fleet stands",
    )


def test_changes_that_contradict_each_other(fleet: Ringed) -> None:
    """Two that set one value in one cluster are refused unless they say the same; in a ring that has one, they are not.
    Items of a list that have names are told apart by them.
    """
    pool = "  nodePools: [{name: a, count: %s}, {name: b, count: 1}]\n"
    fleet.change("one", "canary", pool % 1)
    fleet.change("two", "all", "  nodePools: [{name: c, count: 7}, {name: a, count: 2}]\n")
    rule, file, line, what = wrong(fleet, fleet.cluster("lab-1"))
    assert (rule, file, line) == ("GPU091", "changes/two.yaml", 5)
    assert "one and two both set spec.nodePools[1].count" in what
    assert {pool.name for pool in load(fleet.cluster("far"), root=fleet.folder).spec.nodePools} == {"a", "c"}
    fleet.change("one", "canary", pool % 2)
    assert load(fleet.cluster("lab-1"), root=fleet.folder).spec.nodePools[0].name == "a"


def test_a_value_that_no_cluster_could_have_is_refused_in_the_change(fleet: Ringed) -> None:
    """As a layer's would be: at the line of the change."""
    fleet.change("x", "canary", '  cdi: {enabled: "yes"}\n')
    assert wrong(fleet, fleet.cluster("lab-1"))[:3] == ("GPU017", "changes/x.yaml", 5)
    assert load(fleet.cluster("far"), root=fleet.folder).spec.cdi.enabled is True


VALUES = {"a": "  psa: {enabled: true}\n", "b": "  dcgm: {enabled: true}\n", "c": "  gdrcopy: {enabled: true}\n"}
PLACES = {"lab-1": 0, "shop": 1, "far": 2}
STATES = st.dictionaries(st.sampled_from([*VALUES]), st.sampled_from([None, "canary", "early", "all"]))


@settings(max_examples=40)
@given(state=STATES, name=st.sampled_from([*PLACES]))
def test_a_cluster_is_its_layers_and_the_changes_that_came(
    tmp_path_factory: pytest.TempPathFactory, state: dict[str, str | None], name: str
) -> None:
    """In every state of changes and rings: the effective spec is that of a fleet without rings in which a layer says
    just what the changes say that reached the cluster's ring.
    """
    ringed = Ringed(tmp_path_factory.mktemp("ringed"))
    for change, ring in state.items():
        ringed.change(change, ring, VALUES[change])
    order = {"canary": 0, "early": 1, "all": 2}
    here = [each for each, ring in state.items() if ring is not None and PLACES[name] <= order[ring]]
    plain = Fleet(tmp_path_factory.mktemp("plain"))
    for each in here:
        plain.layer(each, VALUES[each])
    wanted = load(plain.policy(f"  extends: [{', '.join(here)}]\n", name=name), root=plain.folder)
    assert load(ringed.cluster(name), root=ringed.folder).spec == wanted.spec


def test_what_a_change_would_be(fleet: Ringed) -> None:
    """A load is told which changes are to count though they have not come: what lint looks at."""
    fleet.change("x", None, "  psa: {enabled: true}\n")
    far, memo = fleet.cluster("far"), Memo()
    assert [load(far, root=fleet.folder, memo=memo, ahead=names).spec.psa.enabled for names in ((), ["x"])] == [
        False,
        True,
    ]


def test_a_change_in_a_file_that_would_be_read_by_nobody(fleet: Ringed) -> None:
    """A change whose file ends in .yml is refused with how to call it: nothing that lies there is left out silently."""
    fleet.file("changes/x.yml", HEAD.format(kind="PolicyChange") + "spec: {}\n")
    assert wrong(fleet, fleet.cluster("far"))[:2] == ("GPU090", "changes/x.yml")


def test_a_broken_file_beside_is_told_with_its_name(fleet: Ringed) -> None:
    """What is no YAML is refused as that."""
    fleet.file("changes/x.yaml", "spec: [\n")
    with pytest.raises(InputError) as caught:
        load(fleet.cluster("far"), root=fleet.folder)
    found: list[Finding] = caught.value.findings
    assert [(each.rule, each.location and each.location.file) for each in found] == [("GPU003", "changes/x.yaml")]
