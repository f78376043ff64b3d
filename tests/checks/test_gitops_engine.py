"""Rules about the section `gitops`: what lacks, what contradicts, what has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpustack.checks.rule import all_rules
from gpustack.checks.subjects import Written
from gpustack.model import Finding
from gpustack.policy.loading.load import load
from tests.checks.snippets import loaded

URL = 'repository: {url: "https://git.example.com/gpu.git"}'
SOURCE = "flux: {source: {kind: GitRepository, name: flux-system}%s}"
DIGEST = f"sha256:{'a' * 64}"
TARGET = "argocd: {destination: {name: a}%s}"


def found(rule: str, snippet: str) -> list[Finding]:
    """What RULE says about a policy with SNIPPET."""
    (chosen,) = (each for each in all_rules() if each.id == rule)
    policy = loaded(snippet)
    subject = Written(policy.spec, policy.merged) if chosen.over == "origins" else policy.spec
    return list(chosen.findings(subject))


def paths(rule: str, snippet: str) -> list[str]:
    """Where RULE finds something."""
    return [finding.path for finding in found(rule, snippet)]


@pytest.mark.parametrize(
    ("gitops", "wanted"),
    [
        ("{}", ["spec.gitops"]),
        ("{engine: flux}", ["spec.gitops.repository"]),
        (f"{{engine: flux, {SOURCE % ''}}}", []),
        (f"{{engine: argocd, {SOURCE % ''}}}", ["spec.gitops.repository", "spec.gitops.argocd"]),
        (f"{{engine: argocd, {URL}}}", ["spec.gitops.argocd"]),
        (f"{{engine: argocd, {URL}, {TARGET % ''}}}", []),
        (f"{{engine: argocd, {URL}, argocd: {{destination: {{server: 'https://kubernetes.default.svc'}}}}}}", []),
    ],
)
def test_what_lacks(gitops: str, wanted: list[str]) -> None:
    """The engine, its repository and Argo CD's destination have no default; each that lacks is told at once."""
    assert paths("GPU832", f"gitops: {gitops}") == wanted


@pytest.mark.parametrize(
    ("gitops", "wanted"),
    [
        (f"{{engine: argocd, {URL}, argocd: {{destination: {{name: a, server: 'https://a.example.com'}}}}}}",
         ["spec.gitops.argocd.destination.server"]),
        ("{engine: flux, repository: {url: 'git@git.example.com:platform/gpu.git'}}", ["spec.gitops.repository.url"]),
        (f"{{engine: argocd, repository: {{url: 'git@git.example.com:platform/gpu.git'}}, {TARGET % ''}}}", []),
        (f"{{engine: flux, repository: {{url: 'oci://r.example.com/a', revision: '{DIGEST}'}}}}", []),
        ("{engine: flux, repository: {url: 'oci://r.example.com/a', revision: v1.2_3}}", []),
        ("{engine: flux, repository: {url: 'oci://r.example.com/a', revision: release/1}}",
         ["spec.gitops.repository.revision"]),
        ("{engine: flux, repository: {url: 'oci://r.example.com/a', revision: 1.0+b}}",
         ["spec.gitops.repository.revision"]),
        (f"{{engine: flux, repository: {{url: 'https://git.example.com/a', revision: '{DIGEST}'}}}}",
         ["spec.gitops.repository.revision"]),
    ],
)  # fmt: skip
def test_contradictions(gitops: str, wanted: list[str]) -> None:
    """Argo CD refuses a destination that is named twice, Flux reads no address without a scheme, and what isn't a tag
    or digest of an artifact, or a digest of a Git repository, is not there to be read."""
    assert paths("GPU833", f"gitops: {gitops}") == wanted


@pytest.mark.parametrize(
    ("gitops", "wanted"),
    [
        (f"{{engine: argocd, {URL}, {TARGET % ''}, flux: {{interval: 5m}}}}", ["spec.gitops.flux"]),
        (f"{{engine: flux, {URL}, argocd: {{namespace: gitops}}}}", ["spec.gitops.argocd"]),
        (f"{{engine: argocd, {URL}, {TARGET % ', autoSync: false, prune: true, selfHeal: true'}}}",
         ["spec.gitops.argocd.prune", "spec.gitops.argocd.selfHeal"]),
        (f"{{engine: argocd, {URL}, {TARGET % ', autoSync: false, prune: false'}}}", []),
        (f"{{engine: flux, {URL}, {SOURCE % ', secretName: key'}}}",
         ["spec.gitops.repository.url", "spec.gitops.flux.secretName"]),
        (f"{{engine: flux, repository: {{path: x}}, {SOURCE % ''}}}", []),
    ],
)  # fmt: skip
def test_what_has_no_effect(gitops: str, wanted: list[str]) -> None:
    """Settings of the other engine, of a sync that never happens, and of a source that is there already are told; what
    says no more than is so is not."""
    assert paths("GPU834", f"gitops: {gitops}") == wanted


def test_layers_may_serve_both_engines(tmp_path: Path) -> None:
    """A layer that has settings for both is no mistake of the cluster that extends it."""
    spec = {"gitops": {"repository": {"url": "https://git.example.com/gpu.git"}, "flux": {"interval": "5m"}}}
    head = {"apiVersion": "gpustack.dev/v1alpha1"}
    (tmp_path / "layers").mkdir()
    layer = {**head, "kind": "PolicyLayer", "metadata": {"name": "fleet"}, "spec": spec}
    (tmp_path / "layers/fleet.yaml").write_text(yaml.safe_dump(layer))
    own = {
        "extends": ["fleet"],
        "release": "v26.7.0",
        "cluster": {"kubernetesVersion": "1.34"},
        "gitops": {"engine": "argocd", "argocd": {"destination": {"name": "a"}}},
    }
    policy = {**head, "kind": "ClusterPolicy", "metadata": {"name": "a"}, "spec": own}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(policy))
    read = load(tmp_path / "a.yaml", root=tmp_path)
    for rule in (each for each in all_rules() if each.id in {"GPU832", "GPU833", "GPU834"}):
        subject = Written(read.spec, read.merged) if rule.over == "origins" else read.spec
        assert list(rule.findings(subject)) == []


CONFIG_MAP = (
    "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: "
    "{kustomize.toolkit.fluxcd.io/substitute: %s}}, data: {a: '%s'}}]"
)


@pytest.mark.parametrize(
    ("engine", "value", "text", "told"),
    [
        ("flux", "enabled", "${A}", True),
        ("flux", "disabled", "${A}", False),
        ("flux", "enabled", "A", False),
        ("argocd", "enabled", "${A}", False),
    ],
)
def test_variables_that_nothing_replaces(engine: str, value: str, text: str, told: bool) -> None:
    """Whoever asks Flux for a replacement is told that there is none."""
    snippet = f"gitops: {{engine: {engine}, {URL}, {TARGET % ''}}}\n{CONFIG_MAP % (value, text)}"
    where = 'spec.extraObjects[0].metadata.annotations["kustomize.toolkit.fluxcd.io/substitute"]'
    assert paths("GPU835", snippet) == ([where] if told else [])


@pytest.mark.parametrize(
    ("reconciler", "told"),
    [
        ("", True),
        ("reconciler: {labelling: nodeFeatureRule}", True),
        ('reconciler: {image: "r.example.com/a:1"}', False),
        ('reconciler: {image: "r.example.com/a:1", labelling: none}', False),
    ],
)
def test_nothing_to_wait_for(reconciler: str, told: bool) -> None:
    """NodePolicies come with the program, whoever labels nodes."""
    assert bool(paths("GPU836", f"gitops: {{engine: flux, {URL}}}\n{reconciler}")) == told
