"""What the DRA driver needs and which of its features go together."""

from __future__ import annotations

import pytest

from gpustack.catalog import dra, gpus, object_kinds, releases


def test_needs_are_those_of_the_support_matrix() -> None:
    """gpucluster_dra: Kubernetes 1.34.2, driver branch 580."""
    assert dra.least_kubernetes() == (1, 34, 2)
    assert dra.least_driver_branch() == 580


def test_gates_are_known_for_the_version_that_releases_bring() -> None:
    """A release with a newer DRA driver must bring its gates, or nothing is checked any more."""
    for name in releases.names():
        image = releases.release(name).images.get("gpuCluster.draDriver")
        assert image is None or dra.knows_gates_of(image.version)
    assert not dra.knows_gates_of("v0.4.0")
    assert not dra.knows_gates_of(None)


def test_defaults_contradict_nothing() -> None:
    """A driver that is told nothing starts."""
    assert list(dra.contradictions({})) == []


def test_contradictions_go_both_ways() -> None:
    """A feature that is on may need another or forbid it."""
    assert list(dra.contradictions({"DeviceMetadata": True})) == [("DeviceMetadata", "requires", "PassthroughSupport")]
    both = {"DynamicMIG": True, "MPSSupport": True}
    assert list(dra.contradictions(both)) == [("DynamicMIG", "excludes", "MPSSupport")]
    assert list(dra.contradictions({"DynamicMIG": False, "MPSSupport": True})) == []


def test_a_gate_that_is_none() -> None:
    """The nearest names are offered."""
    assert dra.gate_default("ComputeDomainCliques") is True
    with pytest.raises(dra.UnknownGate) as caught:
        dra.gate_default("MPSsupports")
    assert caught.value.nearest[0] == "MPSSupport"


def test_a_crd_that_is_none() -> None:
    """The nearest names are offered, and who needs a CRD is told."""
    assert object_kinds.known_crd("nodefeatures.nfd.k8s-sigs.io") == "node feature discovery"
    with pytest.raises(object_kinds.UnknownCRD) as caught:
        object_kinds.known_crd("nodefeature.nfd.k8s-sigs.io")
    assert caught.value.nearest[0].startswith("nodefeature")


def test_racks_and_their_cpus() -> None:
    """GB200 and GB300 are joined across nodes; these and GH200 come with an arm64 CPU."""
    racks = {name for name in gpus.products() if gpus.product(name).nvlink_rack}
    assert racks == {"NVIDIA-GB200", "NVIDIA-GB300"}
    arm = {name for name in gpus.products() if gpus.product(name).arch == "arm64"}
    assert arm == {*racks, *(name for name in gpus.products() if "GH200" in name)}


def test_a_gpu_cluster_has_defaults_where_the_release_knows_it() -> None:
    """GPUCluster exists since v26.7.0; older releases have nothing for it."""
    assert releases.release("v26.7.0").gpu_cluster["draDriver"]["computeDomains"] == {"enabled": True}
    having = [name for name in releases.names() if releases.release(name).gpu_cluster]
    assert having == releases.names()[releases.names().index("v26.7.0") :]
