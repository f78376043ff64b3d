"""Rules about drivers: the GPUs and CUDA under them, their images, and whose driver a pool has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpustack.catalog import drivers, gpus
from gpustack.cluster.drivers import older
from gpustack.cluster.resolve import resolve
from tests.checks.snippets import loaded
from tests.checks.spec_rules import paths, said

V100, T4, B200, GH200 = "Tesla-V100-SXM2-16GB", "Tesla-T4", "NVIDIA-B200", "NVIDIA-GH200-480GB"
RTX = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"


def policy(product: str, version: str, modules: str = "auto") -> str:
    """A driver on nodes with PRODUCT."""
    return (
        f"driver: {{version: '{version}', kernelModuleType: {modules}}}\n"
        f"nodePools: [{{name: a, os: ubuntu22.04, gpuProduct: {product}}}]"
    )


@pytest.mark.parametrize(
    ("product", "version", "refused"),
    [
        (V100, "580.173.02", False),
        (V100, "590.48.01", True),
        (V100, "595.91.07", True),
        (T4, "610.57.04", False),
        ("NVIDIA-A100-SXM4-80GB", "535.309.01", False),
        ("NVIDIA-L4", "515.105.01", True),
        ("NVIDIA-L4", "525.60.13", False),
        (B200, "565.57.01", True),
        (B200, "570.124.06", True),
        (B200, "570.133.20", False),
        (RTX, "575.51.03", True),
        (RTX, "575.57.08", False),
        (GH200, "525.85.12", False),
        ("NVIDIA-L40S-24Q", "450.80.02", False),
    ],
)
def test_versions_that_support_a_gpu(product: str, version: str, refused: bool) -> None:
    """Minimum and last branch of drivers.yaml; what is uncertain, or not known, is no error."""
    assert paths("GPU420", policy(product, version)) == (["spec.driver.version"] if refused else [])


@pytest.mark.parametrize("product", gpus.products())
@pytest.mark.parametrize("version", ["580.173.02", "595.91.07"])
def test_current_drivers_are_fine_but_for_old_gpus(product: str, version: str) -> None:
    """The drivers of current releases support every GPU of the catalogue, except those that R595 dropped."""
    old = gpus.product(product).family in {"maxwell", "pascal", "volta"}
    assert bool(paths("GPU420", policy(product, version))) == (old and version > "590")
    assert not paths("GPU421", policy(product, version))


@pytest.mark.parametrize(
    ("product", "version", "warned"),
    [
        ("NVIDIA-B300-SXM6-AC", "580.65.06", True),
        ("NVIDIA-B300-SXM6-AC", "580.82.07", False),
        (GH200, "525.85.12", True),
        (GH200, "535.309.01", False),
        ("NVIDIA-GB10", "575.57.08", True),
        (B200, "565.57.01", False),
    ],
)
def test_uncertain_minimums_are_warnings(product: str, version: str, warned: bool) -> None:
    """Where the sources are not sure, so is the message."""
    assert bool(paths("GPU424", policy(product, version))) == warned
    assert not (warned and paths("GPU420", policy(product, version)))


@pytest.mark.parametrize("product", gpus.products())
def test_modules_follow_the_generation(product: str) -> None:
    """Blackwell and Grace refuse proprietary modules, Maxwell to Volta open ones, the others neither; auto fits all."""
    found = gpus.product(product)
    only_open = found.family in {"blackwell", "rubin"} or product.startswith("NVIDIA-GH200")
    only_proprietary = found.family in {"maxwell", "pascal", "volta"}
    assert bool(paths("GPU421", policy(product, "580.173.02", "proprietary"))) == only_open
    assert bool(paths("GPU421", policy(product, "580.173.02", "open"))) == only_proprietary
    assert not paths("GPU421", policy(product, "580.173.02"))


def test_a_branch_without_proprietary_modules() -> None:
    """R620 comes with open modules alone."""
    assert paths("GPU421", policy(T4, "620.10", "proprietary")) == ["spec.driver.kernelModuleType"]
    assert not paths("GPU421", policy(T4, "610.57.04", "proprietary"))


@pytest.mark.parametrize(
    ("version", "modules", "warned"),
    [("565.57.01", "auto", True), ("570.211.01", "auto", False), ("565.57.01", "open", False), ("535", "auto", True)],
)
def test_auto_needs_r570(version: str, modules: str, warned: bool) -> None:
    """Driver containers choose the modules themselves from R570 on."""
    assert bool(paths("GPU422", policy(T4, version, modules))) == warned


@pytest.mark.parametrize(
    ("product", "version", "refused"),
    [
        ("NVIDIA-H200", "550.54.15", True),
        ("NVIDIA-H200", "550.90.07", False),
        ("NVIDIA-H20", "535.104.05", True),
        ("NVIDIA-A100-SXM4-40GB", "450.51.06", True),
        ("NVIDIA-GB300", "580.173.02", False),
    ],
)
def test_mig_has_a_first_driver(product: str, version: str, refused: bool) -> None:
    """The MIG User Guide's minimum for each board; GB300's is that of DGX Station and uncertain, so a warning."""
    cut = f"{policy(product, version)[:-2]}, sharing: {{mig: {{config: all-balanced}}}}}}]"
    assert bool(paths("GPU423", cut)) == refused
    assert not paths("GPU423", policy(product, version))
    if product == "NVIDIA-GB300":
        assert paths("GPU424", cut)


@pytest.mark.parametrize(
    ("gds", "modules", "refused"),
    [
        ("2.17.5", "proprietary", True),
        ("2.17.4", "proprietary", False),
        ("v2.29.4", "open", False),
        ("2.29.4", "auto", False),
    ],
)
def test_gds_builds_with_open_modules(gds: str, modules: str, refused: bool) -> None:
    """nvidia-fs needs open modules from 2.17.5 on; auto gives a T4 open ones."""
    snippet = f"{policy(T4, '580.173.02', modules)}\ngds: {{enabled: true, version: '{gds}'}}"
    assert bool(paths("GPU425", snippet)) == refused
    assert not paths("GPU425", snippet.replace("enabled: true", "enabled: false"))


def test_gds_on_a_gpu_without_open_modules() -> None:
    """On Volta auto gives proprietary modules, so there is no GPUDirect Storage."""
    assert paths("GPU425", f"{policy(V100, '580.173.02')}\ngds: {{enabled: true}}") == ["spec.gds.enabled"]


def test_fabric_manager_where_nobody_brings_it() -> None:
    """NVSwitch boards of nodes with their own driver get the note, not those of images that have Fabric Manager."""
    pool = "nodePools: [{name: a, gpuProduct: %s}]\n"
    off = "driver: {enabled: false}\n"
    assert paths("GPU426", pool % "NVIDIA-H200" + off) == ["spec.nodePools[0].gpuProduct"]
    assert not paths("GPU426", pool % "NVIDIA-L40S" + off)
    assert not paths("GPU426", pool % "NVIDIA-H200" + "cluster: {platform: dgx-os-bcm}")
    assert not paths("GPU426", "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H200}]")
    label = 'nodeSelector: {nvidia.com/gpu.deploy.driver: "false"}'
    own = f"nodePools: [{{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H200, {label}}}]"
    assert paths("GPU426", own) == ["spec.nodePools[0].gpuProduct"]


@pytest.mark.parametrize(("number", "told"), [(1, False), (4, False), (8, True)])
def test_fabric_manager_is_for_whole_boards(number: int, told: bool) -> None:
    """Boards with NVSwitch have eight GPUs (NVIDIA AI Enterprise, NVSwitch: platform support): a board of four and a
    virtual machine with one have no switches that Fabric Manager could set up."""
    pool = f"nodePools: [{{name: a, gpuProduct: NVIDIA-H100-80GB-HBM3, gpusPerNode: {number}}}]\n"
    assert bool(paths("GPU426", pool + "driver: {enabled: false}\n")) == told


@pytest.mark.parametrize("product", ["NVIDIA-GB200", "NVIDIA-GB300"])
def test_compute_trays_run_no_fabric_manager(product: str) -> None:
    """The switches of an NVL72 rack are in trays of their own, and Fabric Manager runs there (leptonai/gpud issue 1106:
    healthy nodes with GB200 run without it)."""
    assert not paths("GPU426", f"nodePools: [{{name: a, gpuProduct: {product}}}]\ndriver: {{enabled: false}}")


# CUDA


def needing(cuda: str, version: str, product: str = "NVIDIA-L4") -> str:
    """A pool of PRODUCT whose workloads need CUDA, and its driver."""
    return (
        f"driver: {{version: '{version}'}}\n"
        f"nodePools: [{{name: a, os: ubuntu22.04, gpuProduct: {product}, cuda: '{cuda}'}}]"
    )


@pytest.mark.parametrize(
    ("cuda", "version", "rules"),
    [
        ("13.0", "580.173.02", []),
        ("13.1", "580.173.02", ["GPU431"]),
        ("13.0", "575.57.08", ["GPU430"]),
        ("12.9", "570.211.01", ["GPU431"]),
        ("12.8", "570.211.01", []),
        ("12.9", "595.91.07", []),
        ("13.2", "595.91.07", []),
        ("13.9", "610.57.04", ["GPU431"]),
        ("14.0", "610.57.04", ["GPU430"]),
        ("12.4", "580", []),
        ("99.0", "latest", []),
    ],
)
def test_cuda_of_the_driver(cuda: str, version: str, rules: list[str]) -> None:
    """A newer major version is refused, a newer minor one has limits, older ones run (CUDA compatibility)."""
    assert [rule for rule in ("GPU430", "GPU431") if paths(rule, needing(cuda, version))] == rules


def test_the_remedy_names_the_first_branch() -> None:
    """Who needs CUDA 13 is told R580, who needs 13.1 R590."""
    assert "R580 or newer" in said("GPU430", needing("13.0", "570.211.01"))[0].remedy
    assert "R590 or newer" in said("GPU431", needing("13.1", "580.173.02"))[0].remedy


@pytest.mark.parametrize(
    ("product", "cuda", "warned"),
    [(V100, "12.9", False), (V100, "13.0", True), (B200, "12.6", True), (B200, "12.8", False), (T4, "13.2", False),
     ("NVIDIA-B300-SXM6-AC", "12.8", True), ("NVIDIA-H200", "11.7", True), ("NVIDIA-H200", "11.8", False)],
)  # fmt: skip
def test_cuda_of_the_gpu(product: str, cuda: str, warned: bool) -> None:
    """CUDA 13 dropped GPUs before Turing, Blackwell came with 12.8 and 12.9, Hopper with 11.8."""
    assert bool(paths("GPU432", needing(cuda, "580.173.02", product))) == warned


# Images


@pytest.mark.parametrize(
    ("os", "version", "rule"),
    [
        ("ubuntu22.04", "580.173.02", ""),
        ("ubuntu23.10", "580.173.02", "GPU435"),
        ("ubuntu24.04", "535.309.01", "GPU435"),
        ("ubuntu26.04", "580.173.02", "GPU435"),
        ("ubuntu26.04", "595.91.07", ""),
        ("rhel9.4", "580.173.02", ""),
        ("rhel7.9", "580.173.02", "GPU435"),
        ("rhcos4.18", "580.173.02", ""),
        ("amzn2023", "580.173.02", "GPU435"),
        ("debian12", "550.90.07", "GPU435"),
        ("sles15.6", "580.173.02", "GPU436"),
        ("buildroot2024.02", "580.173.02", "GPU436"),
    ],
)
def test_images_for_a_system(os: str, version: str, rule: str) -> None:
    """What NVIDIA publishes; vendors and unknown systems are a warning; an own registry may have anything."""
    snippet = f"driver: {{version: '{version}'%s}}\nnodePools: [{{name: a, os: {os}}}]"
    found = [name for name in ("GPU435", "GPU436") if paths(name, snippet % "")]
    assert found == ([rule] if rule else [])
    for own in (", repository: registry.example.com/nvidia", ", image: my-driver"):
        assert not [name for name in ("GPU435", "GPU436") if paths(name, snippet % own)]


def test_a_mirror_has_nvidias_images() -> None:
    """Who mirrors nvcr.io gets the same images from elsewhere, and lacks the same."""
    snippet = "cluster: {registryMap: {nvcr.io: mirror.example.com}}\nnodePools: [{name: a, os: debian12}]"
    assert paths("GPU435", snippet) == ["spec.nodePools[0].os"]


def test_a_whole_reference_is_read() -> None:
    """The image alone may be a whole reference: its registry and its tag count."""
    nvidia = "driver: {repository: '', version: '', image: 'nvcr.io/nvidia/driver:%s'}\nnodePools: [{name: a, os: %s}]"
    assert paths("GPU435", nvidia % ("580.173.02", "debian12")) == ["spec.nodePools[0].os"]
    assert paths("GPU437", nvidia % ("580.173.02-ubuntu22.04", "ubuntu22.04")) == ["spec.driver.image"]
    assert not paths("GPU437", nvidia % ("580.173.02", "ubuntu22.04"))


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        ("580.173.02", False),
        ("580.173.02-ubuntu22.04", True),
        ("580.173.02-rhel9", True),
        ("580.173.02-rhcos4.18", True),
        ("580-signed-ubuntu24.04", True),
        ("550.90.07-grid", False),
        ("580.173.02-custom", False),
    ],
)
def test_systems_in_versions(version: str, refused: bool) -> None:
    """A version that ends in a system would have it twice; other endings are people's own."""
    assert paths("GPU437", f"driver: {{version: '{version}'}}") == (["spec.driver.version"] if refused else [])
    gds = f"gds: {{enabled: %s, version: '{version}'}}"
    assert paths("GPU437", gds % "true") == (["spec.gds.version"] if refused else [])
    assert not paths("GPU437", gds % "false")


def test_the_remedy_leaves_the_system_out() -> None:
    """The message says what would be pulled, and what to write."""
    (found,) = said("GPU437", "driver: {version: 565.57.01-ubuntu22.04}")
    assert "565.57.01-ubuntu22.04-ubuntu22.04" in found.why
    assert "leave the system out: 565.57.01;" in found.remedy


@pytest.mark.parametrize(
    ("version", "kernel", "os", "rules"),
    [
        ("580", "5.15.0-105-generic", "ubuntu22.04", []),
        ("580", "6.8.0-1030-aws", "ubuntu22.04", []),
        ("580", "6.5.0-1019-aws", "ubuntu22.04", ["GPU440"]),
        ("580", "5.15.0-1061-gke", "ubuntu22.04", ["GPU440"]),
        ("570", "5.15.0-105-generic", "ubuntu22.04", ["GPU440"]),
        ("580", "6.8.0-1020-azure-fde", "ubuntu24.04", []),
        ("595", "7.0.0-15-generic", "ubuntu26.04", []),
        ("580.173.02", "5.15.0-105-generic", "ubuntu22.04", ["GPU438"]),
        ("580", "5.14.0-427.13.1.el9_4.x86_64", "rhel9.4", ["GPU440"]),
    ],
)
def test_precompiled(version: str, kernel: str, os: str, rules: list[str]) -> None:
    """A branch, a kernel series and a flavor that v26.7 has images for (precompiled_images and kernel_flavors)."""
    pools = f"nodePools: [{{name: a, os: {os}, kernel: {kernel}}}]"
    snippet = f"driver: {{usePrecompiled: true, version: '{version}'%s}}\n{pools}"
    assert [rule for rule in ("GPU438", "GPU439", "GPU440") if paths(rule, snippet % "")] == rules
    own = snippet % ", repository: registry.example.com/nvidia"
    assert not [rule for rule in ("GPU438", "GPU439", "GPU440") if paths(rule, own)]


def test_a_branch_is_no_version() -> None:
    """ "580" without usePrecompiled names no image."""
    assert paths("GPU439", "driver: {version: '580'}") == ["spec.driver.version"]
    assert not paths("GPU439", "driver: {version: 580.173.02}")


def test_digests_of_many_systems() -> None:
    """A digest fits pools of one tag: rhel9.4 and rhel9.6 share one since v26.7, and did not before."""
    pools = "nodePools: [{name: a, os: rhel9.4, nodeSelector: {p: a}}, {name: b, os: rhel9.6, nodeSelector: {p: b}}]"
    digest = f"driver: {{version: 'sha256:{'4' * 64}'}}\n"
    assert not paths("GPU441", digest + pools)
    assert paths("GPU441", f"release: v26.3.1\n{digest}{pools}") == ["spec.driver.version"]


# Whose driver


def versions(snippet: str) -> Iterator[tuple[str, str, str]]:
    """Pool, version and its place of each driver."""
    for driver in resolve(loaded(snippet).spec).drivers:
        yield driver.pool.name, driver.version, driver.paths["version"]


POOLS = (
    "nodePools: [{name: a, os: ubuntu22.04, nodeSelector: {p: a}}, "
    "{name: b, os: ubuntu22.04, nodeSelector: {p: b}%s}]\n"
)


def test_pools_override_the_section() -> None:
    """A pool's own fields win, field by field; an image with a path replaces the whole reference."""
    section = "driver: {version: 580.173.02, kernelModuleType: open}\n"
    own = section + POOLS % ", driver: {version: 595.91.07}"
    assert [*versions(own)] == [
        ("a", "580.173.02", "spec.driver.version"),
        ("b", "595.91.07", "spec.nodePools[1].driver.version"),
    ]
    _, second = resolve(loaded(own).spec).drivers
    assert (second.modules, second.paths["kernelModuleType"]) == ("open", "spec.driver.kernelModuleType")
    _, whole = resolve(loaded(section + POOLS % ", driver: {image: 'registry.example.com/d:595.91.07'}").spec).drivers
    assert (whole.version, whole.nvidias, whole.numbers) == ("595.91.07", False, (595, 91, 7))


def test_listed_drivers() -> None:
    """`drivers` are taken by selector, the default last; one without image has the release's."""
    listed = (
        "driver: {useNvidiaDriverCRD: true}\n"
        "drivers: [{name: x, default: true}, {name: y, version: 580.173.02, nodeSelector: {p: b}}]\n"
    )
    assert [*versions(listed + POOLS % "")] == [
        ("a", "595.91.07", "spec.drivers[0].version"),
        ("b", "580.173.02", "spec.drivers[1].version"),
    ]


@pytest.mark.parametrize(
    "snippet",
    [
        "driver: {enabled: false}\n" + POOLS % "",
        "sandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}\n" + POOLS % "",
        "driver: {useNvidiaDriverCRD: true}\ndrivers: [{name: x, driverType: vgpu-host-manager}]\n" + POOLS % "",
    ],
)
def test_nodes_without_a_driver_of_ours(snippet: str) -> None:
    """Nodes that bring it, or serve virtual machines."""
    assert not [*versions(snippet)]


def test_a_branch_is_as_new_as_it_may_be() -> None:
    """570 may be any version of R570, so it is not older than one of them, but older than R575."""
    assert not older((570,), "570.133.20")
    assert older((570,), "575.51.03")
    assert older((570, 124, 6), "570.133.20")
    assert not older((), "570.133.20")
    assert drivers.branch("570").cuda == 12
