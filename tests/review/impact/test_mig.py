"""A MIG layout that changes: who cuts the GPUs, who waits for somebody, and what nodes advertise until then.

What the MIG manager does is reconciler.md's: it acts on a change of the label's value (M2) and at its pod's start (M4),
and it empties no node (M6).
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from gpustack.model import Body
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.load import load
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.impact.effects import Effect, impact
from gpustack.review.impact.tiers import RED
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

MANAGER: Body = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-mig-manager", "namespace": "gpu-operator"},
    "spec": {
        "selector": {"matchLabels": {"app": "nvidia-mig-manager"}},
        "template": {"spec": {"containers": [{"name": "nvidia-mig-manager", "image": "example.com/mig:1"}]}},
    },
}
MAP: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "gpu-operator"}}
POOL = {"name": "a", "count": 4, "gpusPerNode": 8, "gpuProduct": "NVIDIA-A100-SXM4-80GB", "nodeSelector": {"x": "y"}}
RUNS = {"reconciler": {"image": "registry.example.com/gpustack-reconciler:1"}}
RULES = {"IMP303", "IMP307", "IMP308", "IMP309", "IMP310"}
WINDOWS = {"windows": [{"days": ["sat"], "start": "22:00", "hours": 6}]}
THEIRS = {
    "migManager": {"config": {"name": "theirs", "create": False}},
    "references": [{"kind": "ConfigMap", "name": "theirs", "keys": ["config.yaml"]}],
}
"""A ConfigMap of layouts that is not the policy's."""
HALVES, QUARTERS = {"layout": {"3g.40gb": 2}}, {"layout": {"3g.40gb": 1, "2g.20gb": 2}}


def policy(project: Project, sharing: Any, **more: Any) -> ClusterPolicySpec:
    """A cluster with one pool of 4 nodes with 8 A100s, cut as SHARING says; MORE is in its spec."""
    pool = {
        **POOL,
        "sharing": {"mig": sharing} if sharing else {},
        "nodeSelector": more.pop("nodeSelector", {"x": "y"}),
        "upgrade": more.pop("upgrade", {}),
    }
    spec = {
        "release": "v26.7.0",
        "cluster": {"kubernetesVersion": "1.34"},
        "driver": {"enabled": False},
        "nodePools": [pool],
        **more,
    }
    body = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "ClusterPolicy", "metadata": {"name": "c"}, "spec": spec}
    project.write("policies/c.yaml", yaml.safe_dump(body))
    return load(project.folder / "policies" / "c.yaml", root=project.folder).spec


def side(*bodies: Body) -> Objects:
    """A side of a comparison."""
    return {Identity.of(body): Rendered(body, f"base/{body['metadata']['name']}.yaml") for body in bodies}


def told(
    before: ClusterPolicySpec, after: ClusterPolicySpec, *, restart: bool | str = False, on_delete: bool = False
) -> dict[str, Effect]:
    """What a change of the layout does, by rule; RESTART: the manager's DaemonSet changes as well, a label of its pods
    alone with "label"."""
    new = copy.deepcopy(MANAGER)
    if on_delete:
        new["spec"]["updateStrategy"] = {"type": "OnDelete"}
    if restart == "label":
        new["spec"]["template"]["metadata"] = {"labels": {"team": "ml"}}
    elif restart:
        new["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/mig:2"
    changes = compare(side(MANAGER, {**MAP, "data": {"x": "1"}}), side(new, {**MAP, "data": {"x": "2"}}))
    effects = impact({"c": changes}, {"c": (before, after)}).effects
    return {effect.rule: effect for effect in effects if effect.rule in RULES}


def named(layout: dict[str, int]) -> dict[str, Any]:
    """A text of layouts with an entry called mine."""
    entry = [{"devices": "all", "mig-enabled": True, "mig-devices": layout}]
    text = yaml.safe_dump({"version": "v1", "mig-configs": {"mine": entry}})
    return {"migManager": {"config": {"data": {"config.yaml": text}}}, "mig": {"strategy": "mixed"}}


def test_nothing_cuts_another_content_under_the_same_label(project: Project) -> None:
    """Without a reconciler the pool's label stays <pool>: the manager isn't woken (M4), and its next start cuts."""
    mixed = {"mig": {"strategy": "mixed"}}
    effects = told(policy(project, HALVES, **mixed), policy(project, QUARTERS, **mixed))
    assert set(effects) == {"IMP307"}
    found = effects["IMP307"]
    assert found.tier <= RED
    assert found.nodes == (4, 4)
    assert "MIG: 2 x 3g.40gb -> 2 x 2g.20gb, 1 x 3g.40gb" in found.what
    assert "aren't cut before the label changes or the pod of nvidia-mig-manager restarts" in found.what
    assert "at once" not in found.what + found.why
    assert "delete the manager's pod" in found.remedy
    assert "docs/labels.md" in found.remedy


def test_the_reconciler_rolls_it(project: Project) -> None:
    """It empties nodes and makes the manager act, whatever the label was."""
    mixed = {"mig": {"strategy": "mixed"}, **RUNS}
    effects = told(policy(project, HALVES, **mixed), policy(project, QUARTERS, **mixed))
    assert set(effects) == {"IMP303"}
    assert "without a drain" not in effects["IMP303"].what


def test_managers_that_restart_cut_undrained(project: Project) -> None:
    """A manager asserts at its start what its label names (M4), so a new image beside a new content cuts all nodes."""
    mixed = {"mig": {"strategy": "mixed"}}
    effects = told(policy(project, HALVES, **mixed), policy(project, QUARTERS, **mixed), restart=True)
    assert set(effects) == {"IMP303"}
    assert "cut without a drain" in effects["IMP303"].what


def test_no_restart_cuts_what_the_reconciler_keeps(project: Project) -> None:
    """Its file has the new content under a name that no node's label has yet (tests/reconciler/test_layouts.py), so a
    new image cuts nothing, with the layout or after it; the nodes have their turn one after another."""
    mixed = {"mig": {"strategy": "mixed"}, "upgrade": WINDOWS, **RUNS}
    one, two = policy(project, HALVES, **dict(mixed)), policy(project, QUARTERS, **dict(mixed))
    effects = told(one, two, restart=True)
    assert set(effects) == {"IMP303"}
    assert "without a drain" not in effects["IMP303"].what
    assert not told(two, two, restart=True)
    mine, yours = (policy(project, None, **named(layout), **RUNS) for layout in ({"3g.40gb": 2}, {"7g.80gb": 1}))
    (effect,) = told(mine, yours, restart=True).values()
    assert effect.rule == "IMP307"
    assert "keep what they have until their label" in effect.what


def test_managers_that_wait_to_be_deleted_cut_nothing(project: Project) -> None:
    """With OnDelete a pod keeps the template that it has, so nothing starts a manager (operator.md 5.1)."""
    more = {"mig": {"strategy": "mixed"}, **RUNS}
    effects = told(policy(project, HALVES, **more), policy(project, QUARTERS, **more), restart=True, on_delete=True)
    assert set(effects) == {"IMP303"}
    assert "without a drain" not in effects["IMP303"].what


@pytest.mark.parametrize(
    ("more", "tier"),
    [({**RUNS, "upgrade": WINDOWS, **THEIRS}, 2), ({**RUNS, **THEIRS}, 3), ({}, 3), ({"upgrade": WINDOWS}, 3)],
)
def test_a_later_restart_cuts_what_waits(project: Project, more: dict[str, Any], tier: int) -> None:
    """A manager applies the content of its layout at its start (M4), on nodes too that keep the old one until their
    window; whether some do isn't in the files. Without a window, or without a reconciler, that is a moment's matter.
    Where a reconciler runs, it is so of a ConfigMap that others bring."""
    cut = {"config": "mine"} if "migManager" in more else HALVES
    spec = policy(project, cut, **dict(more))
    effects = told(spec, policy(project, cut, **dict(more)), restart=True)
    assert set(effects) == {"IMP310"}
    found = effects["IMP310"]
    assert (found.tier, found.where, found.nodes) == (tier, "pool a", (4, 4))
    assert "may be cut at once, without a drain" in found.what
    assert told(spec, spec, restart=True)["IMP310"].tier == tier
    assert told(spec, spec, restart="label")["IMP310"].tier == 3
    assert not told(spec, spec)
    assert not told(spec, spec, restart=True, on_delete=True)


def test_a_layout_of_the_release_waits_for_its_label(project: Project) -> None:
    """Nodes that wait for a layout with another name have the old name in their label, which is what a manager that
    starts goes by (M2, M4); the release's layouts keep their content."""
    spec = policy(project, {"config": "all-1g.10gb"}, upgrade=WINDOWS, **RUNS)
    assert not told(spec, spec, restart=True)


def test_another_label_is_somebodys_to_set(project: Project) -> None:
    """Another layout's name is another value of the label: nothing sets it where no reconciler runs (M2)."""
    effects = told(
        policy(project, {"config": "all-1g.10gb"}, **named({"3g.40gb": 2})),
        policy(project, {"config": "mine"}, **named({"3g.40gb": 2})),
    )
    assert set(effects) == {"IMP309"}
    assert "waits for its label nvidia.com/mig.config=mine" in effects["IMP309"].what


def test_a_layout_that_goes_leaves_nodes_as_they_are(project: Project) -> None:
    """With nothing to command, the reconciler commands nothing either."""
    effects = told(policy(project, HALVES, **RUNS), policy(project, None, **RUNS))
    assert set(effects) == {"IMP309"}
    assert "stay cut as they are" in effects["IMP309"].what
    assert "all-disabled" in effects["IMP309"].remedy


@pytest.mark.parametrize("manner", ["commanded", "selected", "by hand"])
def test_content_of_a_named_layout(project: Project, manner: str) -> None:
    """The entry of a text of the policy's own: a pool names it, is made of the nodes that have it, or doesn't know."""
    mig = {"config": "mine"} if manner == "commanded" else None
    selector = {"nvidia.com/mig.config": "mine"} if manner == "selected" else {"x": "y"}
    one, two = (
        policy(project, mig, nodeSelector=selector, **named(layout)) for layout in ({"3g.40gb": 2}, {"7g.80gb": 1})
    )
    effects = told(one, two)
    assert set(effects) == {"IMP307"}
    assert effects["IMP307"].where == ("layout mine" if manner == "by hand" else "pool a")
    assert "another content" in effects["IMP307"].what or "content changes" in effects["IMP307"].what
    assert set(told(one, one)) == set()


def test_without_a_manager_nobody_cuts(project: Project) -> None:
    """A layout without a MIG manager is words (GPU309)."""
    off = {"migManager": {"enabled": False}, "mig": {"strategy": "mixed"}}
    effects = told(policy(project, HALVES, **off), policy(project, QUARTERS, **off))
    assert set(effects) == {"IMP309"}
    assert "no MIG manager runs" in effects["IMP309"].what


def test_labels_that_discovery_changes_cut_at_once() -> None:
    """Node feature discovery changes a label on every node that its rule matches, and a changed label is cut (M2)."""
    bodies = [
        {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeatureRule",
            "metadata": {"name": "cuts"},
            "spec": {"rules": [{"name": "all", "labels": {"nvidia.com/mig.config": layout}}]},
        }
        for layout in ("halves", "quarters")
    ]
    found = impact({"c": compare(side(bodies[0]), side(bodies[1]))}, {})
    (effect,) = (effect for effect in found.effects if effect.rule == "IMP303")
    assert "nvidia.com/mig.config=quarters instead of halves" in effect.what
    assert "at once, without a drain" in effect.what
    gone = impact({"c": compare(side(bodies[0]), side())}, {})
    assert "IMP303" not in {effect.rule for effect in gone.effects}  # a label that goes wakes nobody (M2)


def test_single_refuses_the_geometry_that_nodes_still_have(project: Project) -> None:
    """Halves after quarters make the derived strategy single, with the sync; nodes are cut as before until later."""
    effects = told(policy(project, QUARTERS, **RUNS), policy(project, HALVES, **RUNS))
    assert set(effects) == {"IMP303", "IMP308"}
    found = effects["IMP308"]
    assert found.tier <= RED
    assert found.where == "pool a"
    assert "8 nvidia.com/mig-3g.40gb -> nothing that is known: the device plugin refuses it" in found.what
    assert "pin `mig: {strategy: mixed}`" in found.remedy


def test_mixed_renames_what_alike_nodes_offer(project: Project) -> None:
    """The other way round nodes of one profile go from nvidia.com/gpu to the profile's own name, with the sync."""
    effects = told(policy(project, HALVES), policy(project, QUARTERS))
    assert "16 nvidia.com/gpu -> 16 nvidia.com/mig-3g.40gb" in effects["IMP308"].what


def test_a_pinned_strategy_is_no_change(project: Project) -> None:
    """A policy that says mixed keeps it through all layouts."""
    pinned = {"mig": {"strategy": "mixed"}, **RUNS}
    assert "IMP308" not in told(policy(project, QUARTERS, **pinned), policy(project, HALVES, **pinned))
