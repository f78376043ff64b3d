"""The rule over an Application and its AppProject: what Argo CD would refuse is refused here (GPU839)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpustack.checks.gitops.argocd import matches, permits_destination, permits_kind, permits_source
from gpustack.checks.rule import RULES, all_rules
from gpustack.checks.subjects import EngineObjects
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.engine import engine_findings, synced
from gpustack.compiler.stack import RefusedError
from gpustack.gitops.engines.argocd import ENGINE
from gpustack.gitops.plan import Plan
from gpustack.model import Body, Finding
from tests.gitops.common import ARGOCD, compiled, plan, policy

HERE = "https://kubernetes.default.svc"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all stacks."""
    all_rules()
    return Store(tmp_path_factory.mktemp("store"), own_digest())


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("https://git.example.com/*", "https://git.example.com/gpu", True),
        ("https://git.example.com/*", "https://git.example.com/platform/gpu", False),
        ("https://git.example.com/**", "https://git.example.com/platform/gpu", True),
        ("*", "https://git.example.com/platform/gpu", True),
        ("!https://git.example.com/*", "https://git.example.com/gpu", False),
        ("https://[2001:db8::7]/gpu", "https://[2001:db8::7]/gpu", False),
        (r"https://\[2001:db8::7\]/gpu", "https://[2001:db8::7]/gpu", True),
        ("https://{a,b}.example.com/gpu", "https://b.example.com/gpu", True),
        ("https://git[!0-9].example.com/gpu", "https://git5.example.com/gpu", False),
        ("https://git[0-9].example.com/gpu", "https://git5.example.com/gpu", True),
        ("https://git?.example.com/gpu", "https://git5.example.com/gpu", True),
        ("a,b", "a,b", True),
        ("{a", "{a", False),
    ],
)
def test_patterns(pattern: str, text: str, wanted: bool) -> None:
    """What Argo CD's patterns are about."""
    assert matches(pattern, text, "/") is wanted


@pytest.mark.parametrize(
    ("patterns", "url", "wanted"),
    [
        (["https://git.example.com/gpu"], "https://git.example.com/gpu.git", True),
        (["https://GIT.example.com/gpu.git"], "https://git.example.com/GPU", True),
        (["git@git.example.com:platform/gpu.git"], "ssh://git@git.example.com/platform/gpu", True),
        (["*", "!https://git.example.com/gpu"], "https://git.example.com/gpu", False),
        (["https://git.example.com*/*"], "https://git.example.com:8443/gpu.git", True),
        (["https://git.example.com:*/*"], "https://git.example.com:8443/gpu.git", False),  # no port that Go reads
        (["!https://git.example.com:*/*"], "https://git.example.com:8443/gpu.git", True),  # and so it forbids nothing
        (["https://{git,hub}.example.com/gpu"], "https://git.example.com/gpu.git", False),
        (["https://git.example.com/[a-h]pu"], "https://git.example.com/gpu.git", True),
        (["https://git.example.com/{gpu,cpu}"], "https://git.example.com/gpu.git", False),  # it escapes braces
        (["https://*.example.com/gpu"], "https://git.example.com/gpu.git", True),
        (["https://[2001:db8::7]/gpu"], "https://[2001:db8::7]/gpu", False),
        (["https://git.example.com/a%20b"], "https://git.example.com/a%20b", True),
        (["*", "!https://git.example.com/other"], "https://git.example.com/gpu", True),
        ([], "https://git.example.com/gpu", False),
    ],
)
def test_sources(patterns: list[str], url: str, wanted: bool) -> None:
    """Addresses of one repository are one, whatever is written; a refusal beats a permission."""
    assert permits_source(patterns, url) is wanted


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([{"name": "prod", "namespace": "gpu"}], True),
        ([{"name": "prod", "namespace": "*"}], True),
        ([{"name": "prod", "namespace": "other"}], False),
        ([{"name": "pr*", "namespace": "g??"}], True),
        ([{"server": "*", "namespace": "gpu"}], True),
        ([{"server": HERE, "namespace": "gpu"}], None),
        ([{"server": HERE, "namespace": "other"}], False),
        ([{"name": "*", "namespace": "*"}, {"name": "!prod", "namespace": "*"}], False),
        ([{"name": "*", "namespace": "*"}, {"name": "prod", "namespace": "!gpu"}], False),
        ([{"name": "*", "namespace": "*"}, {"name": "!other", "namespace": "*"}], True),
        ([], False),
    ],
)
def test_destinations(items: list[dict[str, str]], wanted: bool | None) -> None:
    """By name or by address, with the namespace; None where the cluster's other name decides."""
    assert permits_destination(items, {"name": "prod", "namespace": "gpu"}) is wanted


@pytest.mark.parametrize(
    ("spec", "namespaced", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"namespaceResourceWhitelist": []}, True, False),
        ({"namespaceResourceWhitelist": [{"group": "*", "kind": "Dae*"}]}, True, True),
        ({"namespaceResourceBlacklist": [{"group": "apps", "kind": "*"}]}, True, False),
        ({"clusterResourceWhitelist": [{"group": "apps", "kind": "DaemonSet"}]}, False, True),
        ({"namespaceResourceWhitelist": [{"group": "*", "kind": "[^DS]*"}]}, True, False),
        ({"namespaceResourceWhitelist": [{"group": "ap?s", "kind": "[A-E]aemon\\Set"}]}, True, True),
        ({"namespaceResourceWhitelist": [{"group": "*", "kind": "{DaemonSet,Pod}"}]}, True, False),
        ({"namespaceResourceWhitelist": [{"group": "*", "kind": "[Daemon"}]}, True, False),
    ],
)
def test_kinds(spec: dict[str, Any], namespaced: bool, wanted: bool) -> None:
    """Namespaced kinds are permitted unless there is a list, those of the cluster only by one."""
    assert permits_kind(spec, "apps", "DaemonSet", namespaced=namespaced) is wanted


def said(made: Plan, change: Callable[[Body], object] = lambda _: None, **more: Any) -> list[Finding]:
    """What the rule says of the objects of MADE when CHANGE was done to each."""
    spec = policy(ARGOCD, **more)
    bodies = [*ENGINE.objects(made, "a"), *(one for one in ENGINE.roots(made, "a") if one["kind"] != "ConfigMap")]
    for body in bodies:
        change(body)
    return list(RULES["GPU839"].findings(EngineObjects(spec, bodies, synced(made, bodies[:2], bodies[2:]))))


@pytest.mark.parametrize(
    ("kind", "path", "value", "words"),
    [
        ("Application", ("destination", "namespace"), "", "namespace none"),
        ("Application", ("destination", "namespace"), "other", "namespace other"),
        ("Application", ("destination", "name"), "other", "cluster other"),
        ("AppProject", ("destinations",), [], "cluster"),
        ("AppProject", ("sourceRepos",), [], "the repository"),
        ("AppProject", ("clusterResourceWhitelist",), [], "ClusterRole (rbac"),
        ("AppProject", ("namespaceResourceWhitelist",), [], "DaemonSet (apps), "),
    ],
)
def test_what_is_rendered_is_compared(
    store: Store, kind: str, path: tuple[str, ...], value: object, words: str
) -> None:
    """Each part of an Application, the root too, that its project doesn't permit is told: what a trial stumbled over
    first, a destination without a namespace, as well."""
    made = plan(compiled(policy(ARGOCD), store))

    def change(body: Body) -> None:
        spec = body["spec"]
        if body["kind"] == kind:
            for key in path[:-1]:
                spec = spec[key]
            spec[path[-1]] = value

    assert said(made) == []
    assert any(words in finding.what for finding in said(made, change))


ANY = [{"group": "*", "kind": "*"}]
OWN: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "platform", "namespace": "argocd"},
}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "gpu-operator"}]}, "namespace argocd"),
        ({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}, "ClusterRole"),
        ({"destinations": [{"server": "*", "namespace": "*"}]}, "the repository"),
        ({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
          "clusterResourceWhitelist": ANY}, ""),
    ],
)  # fmt: skip
def test_a_project_of_ones_own(store: Store, spec: dict[str, Any], words: str) -> None:
    """A project among the extraObjects is read like the rendered one; what it doesn't permit is told at
    `argocd.project`, once."""
    gitops = {**ARGOCD, "argocd": {**ARGOCD["argocd"], "project": "platform"}}
    wanted = policy(gitops, extraObjects=[{**OWN, "spec": spec}])
    try:
        findings = compiled(wanted, store).findings
    except RefusedError as error:
        findings = tuple(error.findings)
    told = [finding for finding in findings if finding.rule == "GPU839"]
    assert [finding.path for finding in told] == (["spec.gitops.argocd.project"] * len(told) if words else [])
    assert not words or any(words in finding.what for finding in told)


def test_all_that_a_project_of_ones_own_lacks(store: Store) -> None:
    """Repository, destination and kinds are told, each by itself, where a project permits none of the three."""
    gitops = {**ARGOCD, "argocd": {**ARGOCD["argocd"], "project": "platform"}}
    with pytest.raises(RefusedError) as refused:
        compiled(policy(gitops, extraObjects=[{**OWN, "spec": {}}]), store)
    told = [each.what for each in refused.value.findings if each.rule == "GPU839"]
    for words in ("does not permit the repository", "does not permit cluster", "does not permit ClusterRole"):
        assert any(words in what for what in told), words


def test_a_project_somewhere_else(store: Store) -> None:
    """A project in another namespace than Argo CD's is none that Argo CD sees."""
    spec = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": ANY}
    gitops = {**ARGOCD, "argocd": {**ARGOCD["argocd"], "project": "platform", "namespace": "gitops"}}
    wanted = policy(gitops, extraObjects=[{**OWN, "spec": spec}])
    with pytest.raises(RefusedError) as refused:
        compiled(wanted, store)
    (finding,) = (each for each in refused.value.findings if each.rule == "GPU839")
    assert finding.what == "the AppProject platform is in namespace argocd, and Argo CD in gitops"


def test_a_project_that_is_not_there(store: Store) -> None:
    """Of a project that somebody else keeps nothing is known."""
    gitops = {**ARGOCD, "argocd": {**ARGOCD["argocd"], "project": "platform"}}
    wanted = policy(gitops)
    assert list(engine_findings(wanted, "1.34", compiled(wanted, store).plan)) == []
