"""Mistakes of real clusters (real_mistakes.yaml): taken by Helm, the operator and the API server, and then ignored."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml

from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.stack import compile_stack
from gpustack.model import GpustackError
from gpustack.policy.loading.load import load, spec_key
from tests.checks.snippets import EVERY
from tests.checks.test_kinds import told

MISTAKES = yaml.safe_load(Path(__file__).with_name("real_mistakes.yaml").read_text(encoding="utf-8"))

DOCUMENTS = {
    "ClusterPolicy of the operator": "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: a}\n",
    "NVIDIADriver of the operator": "apiVersion: nvidia.com/v1alpha1\nkind: NVIDIADriver\nmetadata: {name: a}\n",
    "HelmRelease": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n",
    "Application": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  valuesObject:\n    ${values}\n",
    "values below the name of the chart": "gpu-operator: {driver: {enabled: false}}\n",
    "values": "driver: {enabled: false}\ntoolkit: {enabled: false}\n",
    "configuration of the device plugin": "version: v1\nsharing: {mps: {}}\n",
    "part of KubeVirt's configuration": "permittedHostDevices: {mediatedDevices: []}\n",
}
"""Files that are no policy, but something that people have."""

HEAD = "apiVersion: gpustack.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def written(folder: Path, text: str) -> Path:
    """A file with TEXT."""
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake['file']:02}-{mistake['what']}")
def test_the_mistake_is_told(mistake: dict[str, Any], store: Store) -> None:
    """By the rule that the list names."""
    assert mistake["rule"] in told(mistake["policy"], store)


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    """One file has a section twice: the second would win without a word (21)."""
    sections = (
        "vgpuDeviceManager:\n  enabled: true\nmig: {strategy: single}\nvgpuDeviceManager:\n  config: {name: mine}\n"
    )
    with pytest.raises(GpustackError) as caught:
        load(written(tmp_path, HEAD + indent(sections, "  ")), root=tmp_path)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.location and finding.location.line) == ("GPU004", 8)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_policy_is_recognised(name: str, tmp_path: Path) -> None:
    """Whoever hands us what they have is told what it is, and how to make a policy of it."""
    with pytest.raises(GpustackError) as caught:
        load(written(tmp_path, DOCUMENTS[name]), root=tmp_path)
    assert [finding.rule for finding in caught.value.findings] == ["GPU012"]
    assert caught.value.findings[0].remedy


GOOD = """
release: v26.7.0
cluster: {kubernetesVersion: "1.34", platform: k3s, containerRuntime: containerd}
driver: {enabled: false}
toolkit: {env: [{name: CONTAINERD_SET_AS_DEFAULT, value: "false"}]}
nodePools: [{name: a, os: ubuntu24.04}]
"""


def test_a_file_without_a_mistake(tmp_path: Path, store: Store) -> None:
    """One file does everything right (17: k3s with a driver on the host), and nothing is told off."""
    policy = load(written(tmp_path, HEAD + indent(GOOD, "  ")), root=tmp_path)
    found = compile_stack(policy.spec, spec_key(policy.merged), store, EVERY).findings
    assert [finding.rule for finding in found if finding.severity != "note"] == []
