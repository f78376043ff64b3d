"""What is said about the support matrix in a policy: CUDA of a pool, the network operator, types of kernel modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.cluster.node_labels import selection
from gpustack.model import Finding, InputError
from gpustack.policy.loading.load import load

HEAD = """
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: example}
spec:
  release: v26.7.0
"""


def refused(spec: str, folder: Path) -> tuple[Finding, ...]:
    """What is said against a policy with SPEC; empty where it is accepted."""
    path = folder / "policy.yaml"
    path.write_text(HEAD + spec, encoding="utf-8")
    try:
        load(path, root=folder)
    except InputError as error:
        return tuple(error.findings)
    return ()


CLUSTER = "  cluster: {kubernetesVersion: '1.34'%s}\n"


@pytest.mark.parametrize(
    ("cuda", "remedy"),
    [
        ('"13.0"', None),
        ('"12.8"', None),
        ('"9.2"', None),
        ("13.0", '"13.0"'),
        ('"13"', "write the minor version too"),
        ('"12.8.1"', "leave out the patch"),
        ('"v13.0"', ""),
    ],
)
def test_cuda_is_a_text_with_a_minor_version(cuda: str, remedy: str | None, tmp_path: Path) -> None:
    """13.0 without quotes is a number (and 12.10 would become 12.1): the message says how to write it."""
    found = refused(f"{CLUSTER % ''}  nodePools: [{{name: a, cuda: {cuda}}}]", tmp_path)
    assert bool(found) == (remedy is not None)
    assert all(remedy in finding.remedy for finding in found if remedy)


def test_precompiled_is_no_type_of_modules(tmp_path: Path) -> None:
    """Who writes kernelModuleType: precompiled means usePrecompiled, in whichever of the three places."""
    for place in (
        "  driver: {kernelModuleType: precompiled}",
        "  drivers: [{name: x, kernelModuleType: precompiled}]",
        "  nodePools: [{name: a, driver: {kernelModuleType: precompiled}}]",
    ):
        (found,) = refused(f"{CLUSTER % ''}{place}", tmp_path)
        assert "set usePrecompiled: true" in found.remedy
        assert found.location is not None
        assert found.location.line is not None
    assert "usePrecompiled" not in refused(f"{CLUSTER % ''}  driver: {{kernelModuleType: opn}}", tmp_path)[0].remedy


def test_the_network_operator_is_there_or_not(tmp_path: Path) -> None:
    """True or false, and no name."""
    assert not refused(CLUSTER % ", networkOperator: true", tmp_path)
    assert refused(CLUSTER % ", networkOperator: 'yes'", tmp_path)


@pytest.mark.parametrize(
    ("written", "labelled"),
    [
        ("6.12.46+", "6.12.46"),  # Container-Optimized OS
        ("5.15.0-1090-gke", "5.15.0-1090-gke"),
        ("5.14.0-570.12.1.el9_6.aarch64+64k", "5.14.0-570.12.1.el9_6.aarch64_64k"),
        ("6.6.9~rc1", "6.6.9_rc1"),
    ],
)
def test_kernels_are_written_as_uname_prints_them(written: str, labelled: str, tmp_path: Path) -> None:
    """The kernel is what `uname -r` prints, and what counts is the label that node feature discovery makes of it."""
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}{CLUSTER % ''}  nodePools: [{{name: a, kernel: '{written}'}}]", encoding="utf-8")
    spec = load(path, root=tmp_path).spec
    assert spec.nodePools[0].kernel == labelled
    assert selection(spec, spec.nodePools[0])["feature.node.kubernetes.io/kernel-version.full"] == labelled


@pytest.mark.parametrize("written", ["", "+", "6.1 x86_64", "6" * 64])
def test_what_no_kernel_is_called(written: str, tmp_path: Path) -> None:
    """Nothing, two words, no letter or digit, and more than a label holds is refused."""
    assert refused(f"{CLUSTER % ''}  nodePools: [{{name: a, kernel: '{written}'}}]", tmp_path)
