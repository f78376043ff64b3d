"""Driver branches, what GPUs ask of them, and image tags."""

from __future__ import annotations

import pytest

from gpustack.catalog import _versions, drivers, gpus, releases
from gpustack.catalog.drivers import UnknownBranch, branch, minimum
from gpustack.catalog.gpus import UnknownProduct
from gpustack.catalog.releases import UnknownRelease, release


@pytest.mark.parametrize(
    ("written", "name", "kind", "end", "ended"),
    [
        ("535.309.01", "R535", "LTSB", "2026-06", True),
        ("570", "R570", "PB", "2026-02", True),
        ("R580", "R580", "LTSB", "2028-06", False),
        ("580.126.20", "R580", "LTSB", "2028-06", False),
        ("595.91.07", "R595", "PB", "2027-03", False),
        ("590.48.01", "R590", "NFB", None, False),
    ],
)
def test_branch_of_a_version(written: str, name: str, kind: str, end: str | None, ended: bool) -> None:
    """A version, a number and a branch's name lead to the same branch, with its type and dates."""
    found = branch(written)
    assert (found.name, found.type, found.end_of_life, found.ended) == (name, kind, end, ended)


def test_branches_are_in_order() -> None:
    """Branches are listed oldest first, so that rules can compare them."""
    numbers = [found.number for found in drivers.branches()]
    assert numbers == sorted(numbers)
    assert {found.type for found in drivers.branches()} == {"LTSB", "PB", "NFB"}


def test_newer_branches_drop_old_gpus() -> None:
    """R580 is the last branch for Maxwell, Pascal and Volta; from R620 on there are open modules only."""
    assert branch("R580").last_for == ("maxwell", "pascal", "volta")
    assert [found.name for found in drivers.branches() if found.open_only] == ["R620"]


@pytest.mark.parametrize(
    ("written", "nearest"),
    [("585.10", ("R580", "R590")), ("1000", ("R620", "R610")), ("latest", ("R595", "R610", "R620"))],
)
def test_unknown_branch_names_its_neighbours(written: str, nearest: tuple[str, ...]) -> None:
    """A branch that does not exist leads to those around it."""
    with pytest.raises(UnknownBranch) as caught:
        branch(written)
    assert caught.value.nearest == nearest


@pytest.mark.parametrize("name", releases.names())
def test_the_driver_of_every_release_is_known(name: str) -> None:
    """The default driver belongs to a known branch and is one that the release's documentation lists."""
    version = release(name).image("driver").version
    assert version is not None
    assert branch(version).name in {"R580", "R595"}
    assert version in drivers.listed_versions(name)
    assert _versions.of_line(drivers._facts()["recommended"], release(name).line) in drivers.listed_versions(name)


@pytest.mark.parametrize(
    ("product", "modules", "first", "last", "version", "mig"),
    [
        ("NVIDIA-A100-SXM4-40GB", "either", "R450", None, None, "450.80.02"),
        ("NVIDIA-A30", "either", "R450", None, None, "460.73.01"),
        ("NVIDIA-H100-80GB-HBM3", "either", "R525", None, None, "525.85.12"),
        ("NVIDIA-H20", "either", "R525", None, None, "535.161.07"),
        ("NVIDIA-H200", "either", "R525", None, None, "550.90.07"),
        ("NVIDIA-GH200-480GB", "open", "R535", None, None, None),
        ("NVIDIA-B200", "open", "R570", None, "570.133.20", "570.133.20"),
        ("NVIDIA-B300-SXM6-AC", "open", "R570", None, "580.82.07", "580.82.07"),
        ("NVIDIA-GB300", "open", "R570", None, None, "595.58.03"),
        ("NVIDIA-GB10", "open", "R580", None, None, None),
        ("NVIDIA-L40S", "either", "R525", None, None, None),
        ("Tesla-T4", "either", None, None, None, None),
        ("Tesla-V100-SXM2-16GB", "proprietary", None, "R580", None, None),
        ("Tesla-P40", "proprietary", None, "R580", None, None),
    ],
)
def test_what_a_gpu_asks_of_its_driver(
    product: str, modules: str, first: str | None, last: str | None, version: str | None, mig: str | None
) -> None:
    """Kernel modules, branches and versions that a product needs, as far as they are known."""
    found = minimum(product)
    assert (found.modules, found.first_branch, found.last_branch) == (modules, first, last)
    assert (found.version, found.mig_version) == (version, mig)


@pytest.mark.parametrize("product", gpus.products())
def test_every_product_has_a_minimum(product: str) -> None:
    """No product refers to an entry that is not there, and a known MIG minimum belongs to a board with MIG."""
    found = minimum(product)
    assert found.modules in {"either", "open", "proprietary"}
    assert found.mig_version is None or gpus.product(product).mig_capable


def test_minimum_of_an_unknown_product() -> None:
    """A product that is not known has no minimum; the error names products."""
    with pytest.raises(UnknownProduct):
        minimum("NVIDIA-H1000")


@pytest.mark.parametrize(
    ("name", "os", "kernel", "expected"),
    [
        ("v26.7.0", "ubuntu22.04", "5.15.0-105-generic", (580, 595)),
        ("v26.7.0", "ubuntu22.04", "6.8.0-31-generic", (580, 595)),
        ("v26.7.0", "ubuntu22.04", "6.5.0-1019-nvidia", ()),
        ("v26.7.0", "ubuntu26.04", "7.0.0-10-generic", (595,)),
        ("v26.7.0", "rhel9.4", "5.14.0-427.13.1.el9_4.x86_64", ()),
        ("v26.3.2", "ubuntu22.04", "5.15.0-105-generic", (535, 570, 580)),
        ("v25.10.0", "ubuntu24.04", "6.8.0-31-generic", (570, 580)),
    ],
)
def test_precompiled_branches(name: str, os: str, kernel: str, expected: tuple[int, ...]) -> None:
    """Which branches have precompiled images for a kernel; none for systems that the documentation does not name."""
    assert drivers.precompiled_branches(name, os, kernel) == expected


def test_facts_of_an_unknown_release() -> None:
    """Facts by release refuse a release that is not known."""
    with pytest.raises(UnknownRelease):
        drivers.listed_versions("v26.7")


def test_kernel_flavors() -> None:
    """Flavors with precompiled images; the confidential flavor of Azure came with Ubuntu 24.04."""
    assert drivers.kernel_flavors("ubuntu22.04") == ("generic", "nvidia", "azure", "aws", "oracle")
    assert "azure-fde" in drivers.kernel_flavors("ubuntu24.04")
    assert drivers.kernel_flavors("rhel9.4") == ()


@pytest.mark.parametrize(
    ("name", "newest"),
    [("R535", "12.2"), ("R550", "12.4"), ("R570", "12.8"), ("R580", "13.0"), ("R590", "13.1"), ("R595", "13.2")],
)
def test_cuda_of_a_branch(name: str, newest: str) -> None:
    """The CUDA that each branch came with (CUDA Toolkit release notes), of its own major version."""
    assert branch(name).newest_cuda == newest


def test_newer_branches_have_a_newer_cuda() -> None:
    """CUDA grows with the branches, and the newest is of the highest major version."""
    known = [found for found in drivers.branches() if found.newest_cuda]
    versions = [tuple(int(part) for part in (found.newest_cuda or "").split(".")) for found in known]
    assert versions == sorted(versions)
    assert [version[0] for version in versions] == [found.cuda for found in known]


@pytest.mark.parametrize(
    ("product", "limits"),
    [
        ("Tesla-V100-SXM2-16GB", ("9.0", "13.0")),
        ("Tesla-T4", ("10.0", None)),
        ("NVIDIA-B200", ("12.8", None)),
        ("NVIDIA-GB300", ("12.9", None)),
    ],
)
def test_cuda_of_a_gpu(product: str, limits: tuple[str | None, str | None]) -> None:
    """The first CUDA with code for a GPU, and the first without it again."""
    assert drivers.cuda_range(product) == limits


@pytest.mark.parametrize("product", gpus.products())
def test_the_first_cuda_of_every_gpu_is_known(product: str) -> None:
    """No compute capability of the catalogue is left out."""
    assert drivers.cuda_range(product)[0] is not None


def test_systems_that_are_newer_than_a_branch() -> None:
    """Ubuntu 24.04 has images from R550 on, 26.04 from R595 on; of others nothing is known."""
    found = [drivers.first_branch_on(os) for os in ("ubuntu24.04", "ubuntu26.04", "ubuntu22.04")]
    assert [each and each.name for each in found] == ["R550", "R595", None]
