"""Rules about what the example with the most components doesn't have."""

from __future__ import annotations

import pytest

from gpustack.model import Body
from gpustack.policy.language.gitops import GitOps
from gpustack.policy.loading.load import load
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.impact.effects import impact
from tests.project import ROOT
from tests.review.impact.test_rules import pressing

VGPU: Body = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-vgpu-manager-daemonset", "namespace": "gpu-operator"},
    "spec": {
        "selector": {"matchLabels": {"app": "nvidia-vgpu-manager-daemonset"}},
        "template": {
            "metadata": {"labels": {"app": "nvidia-vgpu-manager-daemonset"}},
            "spec": {"containers": [{"name": "nvidia-vgpu-manager-ctr", "image": "example.com/vgpu:580.1"}]},
        },
    },
}
CONSTRAINTS: Body = {
    "apiVersion": "security.openshift.io/v1",
    "kind": "SecurityContextConstraints",
    "metadata": {"name": "a"},
    "allowHostPID": False,
}
RULE: Body = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "PrometheusRule",
    "metadata": {"name": "a"},
    "spec": {"groups": [{"name": "g", "rules": [{"alert": "One", "expr": "1"}, {"alert": "Two", "expr": "1"}]}]},
}


def side(*bodies: Body, stage: str = "base") -> Objects:
    """A side of a comparison."""
    return {Identity.of(body): Rendered(body, f"{stage}/{body['metadata']['name']}.yaml") for body in bodies}


def told(before: Objects, after: Objects) -> dict[str, str]:
    """What presses of what changes, and what is said of it."""
    return {effect.rule: effect.what for effect in pressing(impact({"a": compare(before, after)}, {}))}


def test_the_vgpu_manager_rolls_by_itself() -> None:
    """A RollingUpdate that no upgrade flow watches (reconciler.md D15): a new image, or its end, is a danger."""
    container = {"name": "nvidia-vgpu-manager-ctr", "image": "example.com/vgpu:580.2"}
    template = {**VGPU["spec"]["template"], "spec": {"containers": [container]}}
    assert set(told(side(VGPU), side({**VGPU, "spec": {**VGPU["spec"], "template": template}}))) == {"IMP114"}
    assert set(told(side(VGPU), side(RULE))) == {"IMP114"}


def test_constraints_that_grow() -> None:
    """OpenShift's constraints say what pods may be: others, or new ones, are a danger."""
    assert set(told(side(CONSTRAINTS), side({**CONSTRAINTS, "allowHostPID": True}))) == {"IMP406"}
    assert set(told(side(RULE), side(RULE, CONSTRAINTS))) == {"IMP406"}
    assert told(side(RULE, CONSTRAINTS), side(RULE)) == {}


def test_what_engines_read_is_no_constraint() -> None:
    """An annotation alone lets no pod do more; one beside a constraint hides nothing."""
    metadata = {"name": "a", "annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}
    noted = {**CONSTRAINTS, "metadata": metadata}
    assert "IMP406" not in told(side(CONSTRAINTS), side(noted))
    assert "IMP406" in told(side(CONSTRAINTS), side({**noted, "allowHostPID": True}))


def test_alerts_that_go() -> None:
    """A PrometheusRule that goes, or lacks an alert that it had, is a danger; one alert more is none, nor are alerts
    that another one has now."""
    fewer = {**RULE, "spec": {"groups": [{"name": "g", "rules": [{"alert": "One", "expr": "1"}]}]}}
    assert told(side(RULE), side(fewer)) == {"IMP604": "no longer there: Two"}
    assert told(side(fewer), side(RULE)) == {}
    assert set(told(side(RULE, VGPU), side(VGPU))) == {"IMP604"}
    other = {**RULE, "metadata": {**RULE["metadata"], "name": "other"}}
    more = {"groups": [*RULE["spec"]["groups"], {"name": "h", "rules": [{"alert": "Three", "expr": "1"}]}]}
    assert "IMP604" not in told(side(RULE, VGPU), side({**other, "spec": more}, VGPU))
    assert "IMP604" in told(side(RULE, VGPU), side({**other, "spec": fewer["spec"]}, VGPU))


def test_an_object_that_moves_to_another_stage() -> None:
    """An engine with an Application for each stage deletes it and makes it anew."""
    assert set(told(side(VGPU), side(VGPU, stage="driver"))) == {"IMP508"}


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({}, ""),
        ({"kustomize.toolkit.fluxcd.io/prune": "disabled"}, "Flux doesn't prune it"),
        ({"argocd.argoproj.io/sync-options": "Prune=false,Delete=confirm"}, "Argo CD doesn't prune it"),
        ({"argocd.argoproj.io/sync-options": "Prune=confirm,Delete=confirm"}, "waits until somebody confirms"),
    ],
)
def test_an_object_that_goes_from_the_render_alone(annotations: dict[str, str], said: str) -> None:
    """What an engine keeps until somebody deletes or confirms it isn't said to be gone with the sync."""
    metadata = {"name": "infer", "annotations": annotations}
    policy: Body = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "NodePolicy", "metadata": metadata}
    what = told(side(RULE, policy), side(RULE))["IMP503"]
    assert said in what if said else what == "it is removed: its nodes are frozen as they are"
    manager = {**VGPU, "metadata": {**VGPU["metadata"], "annotations": annotations}}
    driver = {**manager, "metadata": {**metadata, "name": "nvidia-driver-daemonset"}}
    driver["spec"] = {"template": {"metadata": {"labels": {"app": "nvidia-driver-daemonset"}}}}
    for rule, body in (("IMP114", manager), ("IMP105", driver)):
        what = told(side(RULE, body), side(RULE))[rule]
        assert "it is removed with all its pods" in what
        assert said in what


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("argocd", "flux", "argocd -> flux"),
        ("flux", None, "flux -> none"),
        ("flux", "flux", None),
        (None, "flux", None),
        (None, None, None),
    ],
)
def test_another_engine(before: str | None, after: str | None, said: str | None) -> None:
    """A cluster that leaves its engine is synced by nobody, or by two, until both roots are seen to."""
    base = load(ROOT / "policies" / "lab-a100.yaml", root=ROOT).spec
    engines = (GitOps.model_validate({"engine": each}) if each else None for each in (before, after))
    specs = [base.model_copy(update={"gitops": engine}) for engine in engines]
    found = impact({"a": compare(side(RULE), side(VGPU, RULE))}, {"a": (specs[0], specs[1])}).effects
    assert [effect.what for effect in found if effect.rule == "IMP509"] == ([said] if said else [])


def test_what_has_no_body_on_one_side_is_survived() -> None:
    """A binding without a role, a role without rules, a CRD without versions."""
    for kind in ("RoleBinding", "ClusterRole", "CustomResourceDefinition", "Namespace"):
        body: Body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}
        told(side(RULE), side(RULE, body))
        told(side(RULE, body), side(RULE))
