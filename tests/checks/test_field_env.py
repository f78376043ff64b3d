"""Variables and arguments that a field or a script is for, versions inside whole images, drivers that never existed."""

from __future__ import annotations

import pytest

from tests.checks.spec_rules import paths, said

B200 = "nodePools: [{name: a, os: ubuntu24.04, gpuProduct: NVIDIA-B200}]\n"
H100 = "nodePools: [{name: a, os: %s, gpuProduct: NVIDIA-H100-80GB-HBM3}]\n"
V100 = "nodePools: [{name: a, os: ubuntu24.04, gpuProduct: Tesla-V100-PCIE-32GB, vgpu: {config: V100D-32Q}}]\n"
WHOLE = "driver: {image: 'nvcr.io/nvidia/driver:%s'}\n"
WHOLE_LIST = "drivers: [{name: a, default: true, image: 'nvcr.io/nvidia/driver:%s'}]\n"
LIST = "driver: {useNvidiaDriverCRD: true}"
PEERMEM = "cluster: {networkOperator: true}\n"


def test_modules_by_variable() -> None:
    """KERNEL_MODULE_TYPE in driver.env wins over the field (operator.md 5.2), and Blackwell has open modules alone."""
    proprietary = "driver: {env: [{name: KERNEL_MODULE_TYPE, value: proprietary}]}\n"
    assert paths("GPU421", B200 + proprietary) == ["spec.driver.env[0].value"]
    assert paths("GPU190", B200 + proprietary) == ["spec.driver.env[0]"]
    assert not paths("GPU421", B200 + proprietary.replace("proprietary", "open"))


def test_modules_by_variable_of_a_pool() -> None:
    """A pool's own driver.env says the same of its nodes."""
    env = "driver: {env: [{name: KERNEL_MODULE_TYPE, value: proprietary}]}"
    pool = B200.replace("NVIDIA-B200", f"NVIDIA-B200, {env}")
    assert paths("GPU421", pool) == ["spec.nodePools[0].driver.env[0].value"]
    assert paths("GPU190", pool) == ["spec.nodePools[0].driver.env[0]"]
    assert not paths("GPU190", pool + "driver: {enabled: false}")


@pytest.mark.parametrize(
    ("section", "name", "value", "wins"),
    [
        ("gfd", "MIG_STRATEGY", "mixed", "the field wins"),
        ("devicePlugin", "MIG_STRATEGY", "mixed", "the variable wins"),
        ("devicePlugin", "CONFIG_FILE", "/mine", "the variable wins"),
        ("toolkit", "CDI_ENABLED", "false", "the variable wins"),
        ("toolkit", "ROOT", "/opt", "the variable wins"),
        ("migManager", "CONFIG_FILE", "/mine", "the variable wins"),
        ("dcgmExporter", "DCGM_EXPORTER_LISTEN", ":9500", "ask for 9400"),
        ("dcgmExporter", "DCGM_EXPORTER_LISTEN", ":9400", ""),
        ("migManager", "WITH_REBOOT", "true", ""),
        ("devicePlugin", "PASS_DEVICE_SPECS", "true", ""),
    ],
)
def test_variables_of_fields(section: str, name: str, value: str, wins: str) -> None:
    """Which wins stands in operator.md 5.2: `env` comes last but for GFD's strategy; the exporter's port in 7.8."""
    (*hits,) = said("GPU190", f"{section}: {{env: [{{name: {name}, value: '{value}'}}]}}")
    assert [hit.path for hit in hits] == ([f"spec.{section}.env[0]"] if wins else [])
    assert all(wins in hit.why for hit in hits)


def test_variables_of_what_is_off() -> None:
    """With claims, the device plugin's stack isn't rendered, and its exporter is another (operator.md 11.1)."""
    beside = "gpuCluster: {dcgmExporter: {env: [{name: DCGM_EXPORTER_LISTEN, value: ':1'}]}}\nnodePools: []\n"
    plugin = "devicePlugin: {env: [{name: MIG_STRATEGY, value: mixed}]}"
    assert paths("GPU190", beside + plugin) == ["spec.gpuCluster.dcgmExporter.env[0]"]


@pytest.mark.parametrize(
    ("section", "args", "found"),
    [
        ("devicePlugin", "[--mig-strategy=single]", True),
        ("migManager", "[--debug]", True),
        ("devicePlugin", "[/bin/entrypoint.sh]", False),
        ("gfd", "[--oneshot]", False),
        ("validator", "[--verbose]", True),
        ("validator", "['echo all is well; sleep infinity']", False),
        ("vfioManager", "[--debug]", True),
        ("vfioManager", "['vfio-manage bind --all; sleep infinity']", False),
        ("driver", "[--debug]", True),
        ("driver", "[init, --debug]", False),
        ("vgpuManager", "[--debug]", True),
    ],
)
def test_arguments_of_a_shell(section: str, args: str, found: bool) -> None:
    """Arguments replace the script of a shell (operator.md 5.2, case 29; 7.3, 7.14); GFD is started by its own name,
    and the driver by `nvidia-driver init` (7.1, 7.11)."""
    machines = "sandboxWorkloads: {enabled: true}\n"
    assert (
        bool(
            paths(
                "GPU191",
                f"{machines}{section}: {{enabled: true, args: {args}}}".replace(
                    "validator: {enabled: true, ", "validator: {"
                ),
            )
        )
        == found
    )
    if section in ("vfioManager", "vgpuManager"):
        assert not paths("GPU191", f"{section}: {{enabled: true, args: {args}}}")


@pytest.mark.parametrize(
    ("rule", "snippet", "where"),
    [
        (
            "GPU454",
            "nodePools: [{name: a, os: rhel7.9}]\ntoolkit: {image: 'r.example/t:v1.16.2-ubi8'}",
            "nodePools[0].os",
        ),
        ("GPU414", "cluster: {platform: k0s}\ntoolkit: {image: 'r.example/t:v1.17.3'}", "toolkit.image"),
        ("GPU455", "toolkit: {image: 'r.example/t:v1.20.0-ubuntu20.04'}", "toolkit.image"),
        ("GPU415", "devicePlugin: {image: 'r.example/plugin:v0.19.0'}", "devicePlugin.image"),
        ("GPU420", WHOLE_LIST % "470.82.01" + LIST, "drivers[0].image"),
        ("GPU417", WHOLE_LIST % "470.82.01" + LIST, "drivers[0].image"),
        ("GPU422", WHOLE_LIST % "470.82.01" + LIST, "drivers[0].kernelModuleType"),
        ("GPU173", WHOLE_LIST % "470.82.01" + "gpuCluster: {}", "drivers[0].image"),
        ("GPU412", WHOLE_LIST % "470.82.01" + "gpuCluster: {}", ""),
        ("GPU412", WHOLE_LIST % "550.144.03" + "gpuCluster: {}", "drivers[0].image"),
        ("GPU173", WHOLE % "550.144.03" + "computeDomains: {enabled: true}", "driver.image"),
        ("GPU173", WHOLE % "580.173.02" + "computeDomains: {enabled: true}", ""),
        ("GPU420", WHOLE % "470.82.01", "driver.image"),
    ],
)
def test_versions_inside_a_whole_image(rule: str, snippet: str, where: str) -> None:
    """What is known of a version holds where the image is named whole as well."""
    assert paths(rule, snippet) == ([f"spec.{where}"] if where else [])


def test_the_plugin_that_is_told_of() -> None:
    """Before v0.20.0 the plugin fails requests for several shares whatever it is told (plugin-config.yaml);
    the words say which version the image has."""
    config = "config: {data: {a: 'sharing: {mps: {failRequestsGreaterThanOne: false, resources: []}}'}}"
    (found,) = said("GPU509", f"devicePlugin: {{image: 'r.example/plugin:v0.18.2', {config}}}")
    assert "v0.18.2" in found.what + found.why


@pytest.mark.parametrize(
    ("version", "found"),
    [("580.999.99", True), ("580.126.20", False), ("580.178.04", False), ("575.57.08", False), ("700.10.01", False)],
)
def test_versions_that_never_existed(version: str, found: bool) -> None:
    """Versions of driver containers by NVIDIA/gpu-driver-container, versions.mk; of other branches nothing is said."""
    assert bool(paths("GPU482", f"driver: {{version: {version}}}")) == found
    mine = f"driver: {{version: {version}, repository: registry.example.com/mine}}"
    assert not paths("GPU482", mine)


@pytest.mark.parametrize(
    ("os", "version", "found"),
    [
        ("ubuntu20.04", "595.91.07", True),
        ("ubuntu20.04", "580.95.05", True),
        ("ubuntu20.04", "570.211.01", True),
        ("ubuntu20.04", "570.195.03", False),
        ("ubuntu20.04", "550.163.01", False),
        ("ubuntu18.04", "535.54.03", True),
        ("ubuntu18.04", "525.105.17", False),
        ("rhel10.0", "570.172.08", True),
        ("rhel10.1", "580.126.20", False),
        ("rhel9.4", "535.309.01", False),
    ],
)
def test_first_and_last_image_of_a_system(os: str, version: str, found: bool) -> None:
    """NVIDIA/gpu-driver-container, commits 256274c and adcc8eb (what was built before), 6933326 (excluded)."""
    assert bool(paths("GPU435", H100 % os + f"driver: {{version: {version}}}")) == found


@pytest.mark.parametrize(("version", "found"), [("595.71.03", True), ("580.105.06", False)])
def test_vgpu_host_driver_of_another_generation(version: str, found: bool) -> None:
    """R580 is the last branch for Volta (drivers.yaml last_for), for the host driver of virtual GPUs too."""
    section = f"vgpuManager: {{enabled: true, repository: registry.example.com/nvidia, version: '{version}'}}\n"
    sandbox = "sandboxWorkloads: {enabled: true, defaultWorkload: vm-vgpu}\n"
    assert paths("GPU420", V100 + section + sandbox) == (["spec.vgpuManager.version"] if found else [])


@pytest.mark.parametrize(
    ("snippet", "found"),
    [
        ("release: v26.3.2\ndriver: {rdma: {enabled: true}}", True),
        ("release: v26.3.2\ndriver: {rdma: {enabled: true}, env: [{name: FORCE_REINSTALL, value: 'true'}]}", False),
        ("release: v26.3.2", False),
        ("release: v26.7.0\ndriver: {rdma: {enabled: true}}", False),
    ],
)
def test_peermem_after_a_restart(snippet: str, found: bool) -> None:
    """Known issue of v26.3.0, reported of v26.3.2 too (NVIDIA/gpu-operator issues 2619 and 2844), with the workaround
    of the release notes."""
    hits = [hit for hit in said("GPU415", PEERMEM + snippet) if "peermem" in hit.what]
    assert bool(hits) == found


@pytest.mark.parametrize(
    ("release", "found"), [("v26.3.2", True), ("v26.3.3", True), ("v26.7.0", False), ("v26.3.1", False)]
)
def test_series_that_are_missing(release: str, found: bool) -> None:
    """dcgm-exporter 4.5.3-4.8.2 is the default of v26.3.2 and v26.3.3 (NVIDIA/dcgm-exporter issue 700)."""
    hits = [hit for hit in said("GPU415", f"release: {release}") if "XID" in hit.what]
    assert bool(hits) == found


@pytest.mark.parametrize(
    ("sections", "where"),
    [
        ("{dcgmExporter: {version: 4.5.3-4.8.2-distroless}}", ["spec.gpuCluster.dcgmExporter.version"]),
        ("{dcgmExporter: {enabled: false, version: 4.5.3-4.8.2-distroless}}", []),
        ("{}", []),
    ],
)
def test_faults_beside_claims(sections: str, where: list[str]) -> None:
    """With a gpuCluster its own exporter runs, and nothing of the device plugin's stack (operator.md 11.1): neither
    device plugin v0.19.0 nor the exporter of the section beside has a fault that shows."""
    beside = "devicePlugin: {version: v0.19.0}\ntoolkit: {version: v1.18.0}\n"
    assert paths("GPU415", f"{beside}gpuCluster: {sections}\nnodePools: [{{name: a, driver: {{}}}}]") == where


def test_pages_of_64k() -> None:
    """NVIDIA/aicr issue 2345: peermem on Grace with such a kernel."""
    pool = "nodePools: [{name: a, os: ubuntu24.04, kernel: %s, arch: arm64, gpuProduct: NVIDIA-GB200}]\n"
    rdma = "driver: {rdma: {enabled: true, useHostMofed: true}}\n"
    for kernel, found in (("6.8.0-1035-nvidia-64k", True), ("6.8.0-1035-nvidia", False)):
        assert any("64k" in hit.what for hit in said("GPU416", pool % kernel + rdma)) == found


def test_variables_within_a_value() -> None:
    """Nothing replaces a variable inside a longer text; what a shell or Kubernetes reads is theirs."""
    value = "driver: {env: [{name: HTTPS_PROXY, value: '%s'}]}"
    assert paths("GPU802", value % "http://${PROXY_HOST:-proxy.example.com}:3128") == ["spec.driver.env[0].value"]
    assert not paths("GPU802", value % "http://$(PROXY_HOST):3128")
