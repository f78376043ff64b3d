"""Nulls in policies are absence, and the line that has one is named."""

from __future__ import annotations

from pathlib import Path

from gpustack.checks.rule import rules_over
from gpustack.checks.subjects import Written
from gpustack.policy.loading.load import load

POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: a}
spec:
  extends: [base]
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34", platform: }
  nodePools:
  - name: second
    os: ubuntu22.04
    kernel: ~
  mig: {strategy: null}
  extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: }}
"""
LAYER = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyLayer
spec:
  nodePools:
  - {name: first, os: ubuntu24.04}
  driver:
"""


def test_every_null_is_told_with_its_line(tmp_path: Path) -> None:
    """In the policy and in layers, by the path in the merged spec; nulls of manifests are their authors'."""
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "base.yaml").write_text(LAYER, encoding="utf-8")
    (tmp_path / "a.yaml").write_text(POLICY, encoding="utf-8")
    policy = load(tmp_path / "a.yaml", root=tmp_path)
    (rule,) = [rule for rule in rules_over("origins") if rule.id == "GPU810"]
    found = {finding.path: finding for finding in rule.findings(Written(policy.spec, policy.merged))}
    assert {path: finding.what.partition(" (")[2] for path, finding in found.items()} == {
        "spec.driver": "layers/base.yaml, line 6)",
        "spec.cluster.platform": "a.yaml, line 7)",
        "spec.nodePools[1].kernel": "a.yaml, line 11)",
        "spec.mig.strategy": "a.yaml, line 12)",
    }
    assert "the defaults say stays" in found["spec.mig.strategy"].why
    assert found["spec.cluster.platform"].why == "null is absence, so the line says nothing"
