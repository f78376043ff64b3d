"""What Argo CD's and Flux's own objects do is told, and nothing of it is taken for an object of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.gitops.plan import Kind, Plan, objects
from gpustack.model import Body
from gpustack.policy.language.gitops import GitOps
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.impact.effects import Impact, impact
from gpustack.review.impact.origin import Fleet
from tests.review.impact.requests import loaded

URL = "https://git.example.com/a.git"
KINDS = (Kind(group="apps", kind="DaemonSet", namespaced=True),)

CLAIM = Kind(group="", kind="PersistentVolumeClaim", namespaced=True)


def engine(
    which: str,
    stages: tuple[str, ...] = ("base", "driver"),
    stack: str = "gpu-operator",
    kinds: tuple[Kind, ...] = KINDS,
    **settings: Any,
) -> Objects:
    """The objects of an engine for the cluster `c`, with SETTINGS over what every policy has."""
    repository = {"url": URL, **settings.pop("repository", {})}
    section = {"argocd": {"destination": {"name": "c"}}, "flux": {}}[which] | settings
    plan = Plan(
        settings=GitOps.model_validate({"engine": which, "repository": repository, which: section}),
        stages=stages,  # type: ignore[arg-type]
        kinds=kinds,
        namespace=stack,
        namespaces=(stack,),
        policies=(),
    )
    return {Identity.of(body, which): Rendered(body, f".gitops/{which}/c/x.yaml") for body in objects(plan, "c")}


def told(before: Objects, after: Objects, *, gone: bool = False) -> Impact:
    """What it does to go from BEFORE to AFTER."""
    return impact({"c": compare(before, after)}, {}, gone={"c"} if gone else set())


def said(found: Impact) -> dict[str, list[str]]:
    """The effects by their rules, but for those of the classifier, which knows fields and no meanings."""
    rules: dict[str, list[str]] = {}
    for effect in (effect for effect in found.effects if not effect.rule.startswith("IMP9")):
        rules.setdefault(effect.rule, []).append(f"{effect.where}: {effect.what}")
    return rules


APPLICATION = "Argo CD's Application argocd/gpustack-c"
DRIVER = "Flux's Kustomization flux-system/gpustack-driver"
UNSYNCED = "it is removed: what is in its stage isn't synced any more"


@pytest.mark.parametrize(
    ("before", "after", "rule", "what"),
    [
        (engine("argocd", prune=False), engine("argocd"), "IMP801", [f"{APPLICATION}: pruning is turned on"]),
        (engine("argocd", autoSync=False), engine("argocd"), "IMP801", [f"{APPLICATION}: pruning is turned on"]),
        (engine("argocd"), engine("argocd", prune=False), "IMP801", None),
        (engine("argocd"), engine("argocd", selfHeal=False), "IMP801", None),
        (
            engine("flux", ("driver",), prune=False),
            engine("flux", ("driver",)),
            "IMP801",
            [f"{DRIVER}: pruning is turned on"],
        ),
        (
            engine("argocd"),
            engine("argocd", destination={"server": "https://a.example.com"}),
            "IMP802",
            [f"{APPLICATION}: destination name c -> server https://a.example.com"],
        ),
        (engine("argocd"), engine("argocd", namespace="argocd", selfHeal=False), "IMP802", None),
        (engine("argocd"), engine("argocd", stack="gpu"), "IMP802", None),
        (
            engine("argocd"),
            engine("argocd", repository={"revision": "v2"}),
            "IMP803",
            [f"{APPLICATION}: source.targetRevision main -> v2"],
        ),
        (
            engine("flux", ("driver",)),
            engine("flux", ("driver",), repository={"path": "other"}),
            "IMP803",
            [f"{DRIVER}: path ./dist/c/driver -> ./other/c/driver"],
        ),
        (
            engine("flux", ("driver",)),
            engine("flux", ("driver",), repository={"revision": "v2"}),
            "IMP803",
            ["Flux's GitRepository flux-system/gpustack: ref branch main -> branch v2"],
        ),
        (engine("flux"), engine("flux", interval="5m"), "IMP803", None),
        (
            engine("argocd"),
            {},
            "IMP804",
            [f"{APPLICATION}: it is removed: the cluster isn't synced any more, and what it applied stays as it is"],
        ),
        (
            engine("flux"),
            engine("flux", ("base",)),
            "IMP804",
            [f"{DRIVER}: {UNSYNCED}, and Flux deletes what it applied"],
        ),
        (
            engine("flux", prune=False),
            engine("flux", ("base",), prune=False),
            "IMP804",
            [f"{DRIVER}: {UNSYNCED}, and what it applied stays as it is"],
        ),
        (
            engine("flux", ("driver",)),
            engine("flux", ("driver",), kubeConfig={"secretName": "c"}),
            "IMP804",
            [
                (
                    f"{DRIVER}: it is removed: Flux's Kustomization flux-system/gpustack-c-driver takes its place, "
                    "and Flux deletes what it applied"
                )
            ],
        ),
        (
            engine("argocd"),
            engine("argocd", namespace="other"),
            "IMP804",
            [
                (
                    f"{APPLICATION}: it is removed: Argo CD's Application other/gpustack-c takes its place, "
                    "and what it applied stays as it is"
                )
            ],
        ),
        (
            engine("flux", ("driver",), kubeConfig={"secretName": "c"}),
            engine("flux", ("driver",), kubeConfig={"secretName": "d"}),
            "IMP802",
            ["Flux's Kustomization flux-system/gpustack-c-driver: kubeConfig secretRef name c -> secretRef name d"],
        ),
        (engine("argocd"), engine("flux"), "IMP804", None),
        (engine("argocd"), engine("flux"), "IMP509", ["gitops.engine: argocd -> flux"]),
        (engine("flux"), engine("argocd"), "IMP509", ["gitops.engine: flux -> argocd"]),
        ({}, engine("flux"), "IMP509", None),
        (
            engine("argocd"),
            engine("argocd", selfHeal=False),
            "IMP805",
            [
                f"{APPLICATION}: syncPolicy.automated prune true, selfHeal true -> prune true, selfHeal false",
            ],
        ),
        (
            engine("flux", ("driver",)),
            engine("flux", ("driver",), serviceAccountName="deployer"),
            "IMP805",
            [f"{DRIVER}: serviceAccountName not set -> deployer"],
        ),
        (
            engine("argocd"),
            engine("argocd", destination={"name": "d"}),
            "IMP806",
            ["Argo CD's AppProject argocd/gpustack-c: destinations: name d, namespace *"],
        ),
        (
            engine("argocd", kinds=(*KINDS, CLAIM)),
            engine("argocd"),
            "IMP808",
            ["Argo CD's AppProject argocd/gpustack-c: namespaceResourceWhitelist without PersistentVolumeClaim"],
        ),
        (engine("argocd"), engine("argocd", kinds=(*KINDS, CLAIM)), "IMP808", None),
        (engine("argocd"), engine("argocd", prune=False), "IMP806", None),
    ],
)
def test_what_an_engines_objects_do(before: Objects, after: Objects, rule: str, what: list[str] | None) -> None:
    """Each rule says what changes in which object, and is quiet about the rest."""
    found = said(told(before, after))
    assert found.get(rule) == what
    assert all(name.startswith("IMP8") or name == "IMP509" for name in found)


def test_a_stage_that_is_emptied_takes_its_kustomization_along() -> None:
    """Objects that leave the render are told by the rules about objects; that nothing is left to sync is no danger."""
    body: Body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {}}
    before = {**engine("flux"), Identity.of(body): Rendered(body, "driver/deployment-a.yaml")}
    found = said(told(before, engine("flux", ("base",))))
    assert "IMP804" not in found
    assert found["IMP504"] == [": 1 Deployment removed"]


def test_a_cluster_that_goes_is_told_once() -> None:
    """The engine's objects are not among those that are removed from it, and their end is no danger of its own."""
    body: Body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    found = said(told({**engine("argocd"), Identity.of(body): Rendered(body, "base/a.yaml")}, {}, gone=True))
    assert found == {"IMP501": [": all 1 objects are removed"]}


def test_no_change_of_an_engine_is_routine() -> None:
    """What an engine does is looked at by somebody."""
    assert not told(engine("flux"), engine("flux", interval="5m")).routine


def at(server: str) -> dict[str, str]:
    """A destination by its address."""
    return {"server": f"https://{server}"}


@pytest.mark.parametrize(
    ("there", "here", "one"),
    [
        ({"name": "prod"}, at("prod.example.com:6443"), True),
        (at("prod.example.com:6443"), {"name": "prod"}, True),
        (at("prod.example.com:6443"), at("prod.example.com"), True),
        (at("prod.example.com"), at("prod"), True),
        (at("prod.example.com:6443"), at("10.0.0.1:6443"), True),
        (at("10.0.0.1:6443"), at("[fd00::1]:6443"), True),
        (at("10.0.0.1"), at("0x0a000001"), True),
        ({"name": "prod"}, {"name": "test"}, False),
        (at("prod.example.com"), at("test.example.com"), False),
        (at("10.0.0.1:6443"), at("10.0.0.2:6443"), False),
    ],
)
def test_destinations_that_nothing_tells_apart(there: Any, here: Any, one: bool) -> None:
    """Two clusters that may be one by what the policies say are told, in whichever project and namespace."""
    old, new = installation(there), installation(here, namespace="other", project="other")
    known = Fleet.of([old], [old, new])
    for before in (None, installation({"name": "before"})):
        found = impact({"c": ()}, {"c": (before, new)}, new=set() if before else {"c"}, fleet=lambda: known)
        assert ("IMP807" in {effect.rule for effect in found.effects}) is one


INSIDE = ({"server": "https://kubernetes.default.svc"}, {"name": "in-cluster"})


def installation(destination: dict[str, str], **argocd: Any) -> Any:
    """A policy of a cluster that Argo CD applies to DESTINATION."""
    said = loaded("lab-a100", {}).spec.model_dump(mode="json", exclude_none=True)
    section = {**said["gitops"]["argocd"], "destination": destination, **argocd}
    return ClusterPolicySpec.model_validate({**said, "gitops": {**said["gitops"], "argocd": section}})


@pytest.mark.parametrize(
    ("there", "here", "shared"),
    [
        (installation({"name": "lab-a100"}), installation(INSIDE[0]), True),
        (installation(INSIDE[0]), installation(INSIDE[1]), True),
        (installation(INSIDE[0]), installation(INSIDE[0]), False),
        (installation(INSIDE[0]), installation({"name": "lab-b"}), False),
        (installation({"name": "lab-a100"}), installation(INSIDE[0], namespace="other"), False),
        (installation({"name": "lab-a100"}), installation(INSIDE[0], project="other"), False),
    ],
)
def test_the_cluster_of_argo_cd_by_two_names(there: Any, here: Any, shared: bool) -> None:
    """One Argo CD, by its namespace, repository and project, that calls its own cluster by another name."""
    known = Fleet.of([there], [there, here])
    for before in (None, installation({"name": "before"})):
        found = impact({"c": ()}, {"c": (before, here)}, new=set() if before else {"c"}, fleet=lambda: known)
        told = [effect.what for effect in found.effects if effect.rule == "IMP807"]
        assert [what.endswith("that may be the same one") for what in told] == [True] * shared
