"""Rules about the support matrix, life cycles and known faults."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import releases
from gpustack.catalog._versions import numbers
from gpustack.checks.platforms.support import outside
from gpustack.checks.rule import all_rules
from tests.checks.snippets import loaded
from tests.checks.spec_rules import paths, said


@pytest.mark.parametrize(
    ("release", "kubernetes", "warned"),
    [
        ("v26.7.0", "1.32", True),
        ("v26.7.0", "1.33", False),
        ("v26.7.0", "v1.36.2-eks-113cf36", False),
        ("v26.7.0", "1.37", True),
        ("v26.3.1", "1.36", True),
        ("v26.3.2", "1.36", False),
        ("v25.10.0", "1.35", True),
        ("v25.10.1", "1.35", False),
        ("v25.10.1", "1.29", True),
    ],
)
def test_kubernetes_ranges(release: str, kubernetes: str, warned: bool) -> None:
    """Both ends of the documented range belong to it; 1.35 came with v25.10.1, 1.36 with v26.3.2."""
    found = paths("GPU400", f"release: {release}\ncluster: {{kubernetesVersion: '{kubernetes}'}}")
    assert found == (["spec.cluster.kubernetesVersion"] if warned else [])


def test_a_newer_cluster_is_told_the_release() -> None:
    """Who upgraded Kubernetes first is told the first release that is documented for it."""
    (found,) = said("GPU400", "release: v26.3.1\ncluster: {kubernetesVersion: '1.36'}")
    assert "v26.3.2 or newer" in found.remedy


def test_distributions_may_be_documented_for_less() -> None:
    """MicroK8s ends at 1.35 with v26.7, and other distributions don't."""
    assert paths("GPU400", "cluster: {platform: microk8s, kubernetesVersion: '1.36'}")
    assert not paths("GPU400", "cluster: {platform: microk8s, kubernetesVersion: '1.35'}")
    assert not paths("GPU400", "cluster: {platform: rke2, kubernetesVersion: '1.36'}")


@pytest.mark.parametrize(
    ("version", "warned"), [("4.17.9", True), ("4.18.0", False), ("4.22", False), ("4.23.1", True)]
)
def test_openshift_counts_by_its_own_version(version: str, warned: bool) -> None:
    """On OpenShift its own version is documented, and the Kubernetes in it is not asked for beside that."""
    cluster = f"{{platform: openshift, kubernetesVersion: '1.31', openshift: {{version: '{version}'}}}}"
    snippet = f"cluster: {cluster}\nnodePools: [{{name: a, os: rhcos4.18}}]"
    assert bool(paths("GPU401", snippet)) == warned
    assert not paths("GPU400", snippet)


@pytest.mark.parametrize(
    ("release", "os", "warned"),
    [
        ("v26.7.0", "ubuntu20.04", True),
        ("v26.7.0", "ubuntu26.04", False),
        ("v26.3.3", "ubuntu26.04", True),
        ("v25.10.1", "rhel9.4", False),
        ("v25.10.1", "rhel9.7", True),
        ("v26.7.0", "rhel9", False),
        ("v26.7.0", "rocky9.4", True),
        ("v26.7.0", "rhcos4.18", False),
        ("v26.7.0", "debian12", False),
        ("v26.7.0", "sles15.6", False),
    ],
)
def test_operating_systems(release: str, os: str, warned: bool) -> None:
    """The table of the release decides; systems without NVIDIA's images are the business of GPU435 and GPU436."""
    snippet = f"release: {release}\nnodePools: [{{name: a, os: {os}}}]"
    assert paths("GPU402", snippet) == (["spec.nodePools[0].os"] if warned else [])
    assert not paths("GPU402", f"{snippet}\ndriver: {{enabled: false}}")


@pytest.mark.parametrize(
    ("runtime", "warned"),
    [
        ("containerd", False),
        ("containerd://1.7.0", False),
        ("containerd://1.6.39", True),
        ("containerd://2.3.9", False),
        ("containerd://2.4.0", True),
        ("cri-o://1.33.0", False),
        ("docker://26.1.0", True),
    ],
)
def test_runtimes(runtime: str, warned: bool) -> None:
    """containerd has a range (1.7 is what the printed 1.8 must mean), Docker is in no table, CRI-O has no range."""
    assert bool(paths("GPU403", f"cluster: {{containerRuntime: '{runtime}'}}")) == warned


def test_crio_is_listed_per_system() -> None:
    """Ubuntu 26.04 is listed with containerd alone; the pool's runtime counts before the cluster's."""
    pool = "nodePools: [{name: a, os: ubuntu26.04%s}]"
    assert paths("GPU403", "cluster: {containerRuntime: cri-o}\n" + pool % "") == ["spec.nodePools[0].os"]
    assert not paths("GPU403", "cluster: {containerRuntime: cri-o}\n" + pool % ", containerRuntime: containerd")


def test_equal_runtimes_are_said_once() -> None:
    """A cluster and twenty pools with one old runtime are one finding, and each other version is its own."""
    pools = ", ".join(
        f"{{name: p{number}, os: ubuntu22.04, containerRuntime: 'containerd://{version}'}}"
        for number, version in enumerate(("1.6.39", "1.6.39", "1.6.20", "2.1.0"))
    )
    snippet = f"cluster: {{containerRuntime: 'containerd://1.6.39'}}\nnodePools: [{pools}]"
    expected = ["spec.cluster.containerRuntime", "spec.nodePools[2].containerRuntime"]
    assert paths("GPU404", snippet) == paths("GPU403", snippet) == expected


@pytest.mark.parametrize(
    ("runtime", "refused"),
    [
        ("containerd://1.6.39", True),
        ("containerd://1.7.0-rc.1", False),
        ("containerd://1.7", False),
        ("docker://25", False),
        ("containerd://2.0.1", False),
        ("containerd", False),
        ("docker://24.0.9", True),
        ("docker://26.1.0", False),
        ("cri-o://1.31.4", False),
    ],
)
def test_cdi(runtime: str, refused: bool) -> None:
    """CDI needs containerd 1.7 or Docker 25; a runtime without version is given the benefit of the doubt."""
    snippet = f"cluster: {{containerRuntime: '{runtime}'}}"
    assert bool(paths("GPU404", snippet)) == refused
    assert not paths("GPU404", f"{snippet}\ncdi: {{enabled: false}}")


@pytest.mark.parametrize(
    ("runtime", "warned"),
    [
        ("containerd://1.7.29", True),
        ("containerd://1.7.30", False),
        ("containerd://2.0.5", True),
        ("containerd://2.1.0", False),
        ("containerd://2.3.1", False),
        ("cri-o://1.33.0", True),
        ("cri-o://1.34.0", False),
        ("containerd", False),
    ],
)
def test_nri(runtime: str, warned: bool) -> None:
    """The NRI plugin needs containerd 1.7.30, 2.1, 2.2 or 2.3, or CRI-O 1.34: 2.0 is not among them."""
    snippet = f"cluster: {{containerRuntime: '{runtime}'}}\ncdi: {{nriPluginEnabled: %s}}"
    assert bool(paths("GPU405", snippet % "true")) == warned
    assert not paths("GPU405", snippet % "false")


def test_nri_is_newer_than_v25_10() -> None:
    """The toolkit has the plugin since v26.3.0."""
    snippet = "release: %s\ncluster: {containerRuntime: 'containerd://2.1.0'}\ncdi: {nriPluginEnabled: true}"
    assert paths("GPU405", snippet % "v25.10.1") == ["spec.cdi.nriPluginEnabled"]
    assert not paths("GPU405", snippet % "v26.3.0")


def test_aks_left_the_table() -> None:
    """AKS was listed until v25.10."""
    assert paths("GPU406", "release: v26.3.1\ncluster: {platform: aks-azure-linux}")
    assert not paths("GPU406", "release: v25.10.1\ncluster: {platform: aks-azure-linux}")


@given(
    low=st.tuples(st.integers(1, 2), st.integers(0, 40)),
    high=st.tuples(st.integers(1, 2), st.integers(0, 40)),
    patch=st.integers(0, 99),
)
def test_a_patch_never_leaves_its_line(low: tuple[int, int], high: tuple[int, int], patch: int) -> None:
    """Whether a version is in a range of lines depends on its line, and both ends are in it."""
    first, last = (f"{major}.{minor}" for major, minor in sorted((low, high)))
    for line in (first, last):
        assert not outside(numbers(f"v{line}.{patch}"), first, last)
    assert not outside((), first, last)


# Life cycles


@pytest.mark.usefixtures("as_of_v26_7")
def test_life_cycle_of_releases() -> None:
    """v26.3 is deprecated and v25.10 without support since v26.7.0 of 2026-08-20; v25.10 was deprecated by v26.3.0."""
    (ended,) = said("GPU410", "release: v25.10.1")
    assert (ended.since, ended.until) == (datetime.date(2026, 8, 20), None)
    assert "upgrade to v26.3.3, and from there to v26.7.0" in ended.remedy
    (before,) = said("GPU411", "release: v25.10.1")
    assert (before.since, before.until) == (datetime.date(2026, 3, 18), datetime.date(2026, 8, 20))
    (deprecated,) = said("GPU411", "release: v26.3.3")
    assert (deprecated.since, deprecated.until) == (datetime.date(2026, 8, 20), None)
    assert deprecated.remedy == "upgrade to v26.7.0"
    assert not said("GPU410", "release: v26.3.3")
    assert not said("GPU410", "release: v26.7.0")


def test_the_newest_release_is_fine(newest: str) -> None:
    """Nothing is said about the newest release, whatever it is."""
    assert not said("GPU411", f"release: {newest}")


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("535.309.01", datetime.date(2026, 7, 1)),
        ("570.211.01", datetime.date(2026, 3, 1)),
        ("550.163.01", datetime.date(2026, 8, 1)),
        ("595.91.07", datetime.date(2027, 4, 1)),
        ("580.173.02", datetime.date(2028, 7, 1)),
    ],
)
def test_end_of_life_of_branches(version: str, since: datetime.date) -> None:
    """A branch is out of support from the day after the month in which it ends; of R550 it is only known to be over."""
    (found,) = said("GPU412", f"driver: {{version: {version}}}")
    assert (found.path, found.since, found.until) == ("spec.driver.version", since, None)
    assert "R595 until 2027-03" in found.remedy


def test_the_end_of_a_branch_is_said_before() -> None:
    """The note appears three months before, and goes when the warning comes."""
    (soon,) = said("GPU413", "driver: {version: 595.91.07}")
    assert (soon.since, soon.until) == (datetime.date(2026, 12, 30), datetime.date(2027, 4, 1))
    assert soon.since is not None
    assert said("GPU412", "driver: {version: 595.91.07}")[0].since == soon.until
    assert not said("GPU413", "driver: {version: 550.163.01}")


@pytest.mark.parametrize(
    ("version", "near"), [("999.10.02", "R620"), ("'600'", "R595"), ("500.10.1", "R535"), ("latest", "R620")]
)
def test_branches_that_nobody_knows(version: str, near: str) -> None:
    """Rules about a driver go by its branch, so a version of no known branch is told, with the nearest ones."""
    (found,) = said("GPU417", f"driver: {{version: {version}}}")
    assert found.path == "spec.driver.version"
    assert near in found.remedy


@pytest.mark.parametrize("version", ["580.126.20", "'595'", "570.211.01", f"'sha256:{'4' * 64}'"])
def test_branches_that_are_known(version: str) -> None:
    """A version or branch that the catalogue has is none of these, and a digest says nothing about it."""
    assert not said("GPU417", f"driver: {{version: {version}}}")


def test_a_driver_of_the_nodes_has_no_branch() -> None:
    """Where the nodes bring the driver, its version is not the policy's, whatever the section says."""
    assert not said("GPU412", "driver: {enabled: false, version: 535.309.01}")


def test_each_driver_is_looked_at() -> None:
    """The section, a pool's own and those of `drivers`; pools of one driver are named together."""
    pools = (
        "nodePools: [{name: a, os: ubuntu22.04, nodeSelector: {p: a}}, "
        "{name: b, os: ubuntu22.04, nodeSelector: {p: b}}, {name: c, os: ubuntu22.04, nodeSelector: {p: c}%s}]"
    )
    own = ", driver: {version: 570.211.01}"
    first, second = said("GPU412", "driver: {version: 535.309.01}\n" + pools % own)
    assert (first.path, second.path) == ("spec.driver.version", "spec.nodePools[2].driver.version")
    assert "node pools a and b" in first.what
    listed = (
        "driver: {useNvidiaDriverCRD: true}\n"
        "drivers: [{name: x, default: true, version: 590.48.01}, "
        "{name: y, version: 535.309.01, nodeSelector: {p: c}}]\n"
    )
    (found,) = said("GPU412", listed + pools % "")
    assert (found.path, "node pool c" in found.what) == ("spec.drivers[1].version", True)


# Known faults


@pytest.mark.parametrize(
    ("rule", "snippet", "path"),
    [
        ("GPU414", "cluster: {platform: k3s}\ntoolkit: {version: v1.17.0-ubuntu20.04}", "spec.toolkit.version"),
        ("GPU414", "cluster: {platform: k3s}\ntoolkit: {version: v1.17.3-ubuntu20.04}", ""),
        ("GPU414", "toolkit: {version: v1.17.0-ubuntu20.04}", ""),
        ("GPU414", "cluster: {platform: k3s}\ntoolkit: {enabled: false, version: v1.17.0}", ""),
        ("GPU415", "release: v25.10.0\ncluster: {containerRuntime: containerd}", "spec.toolkit.version"),
        ("GPU415", "release: v25.10.0\ncluster: {containerRuntime: cri-o}", ""),
        ("GPU415", "release: v25.10.1", ""),
        ("GPU415", "release: v25.10.1\nnodePools: [{name: a, os: rhel9.4}]", "spec.gfd.version"),
        (
            "GPU415",
            "release: v25.10.1\nnodePools: [{name: a, os: rhel9.4}]\n"  # noqa: ISC004
            'gfd: {env: [{name: USE_NODE_FEATURE_API, value: "true"}]}',
            "",
        ),
        ("GPU415", "release: v26.3.2\ndcgmExporter: {enabled: false}", "spec.devicePlugin.version"),
        ("GPU415", "release: v26.3.3\ndcgmExporter: {enabled: false}", ""),
        ("GPU415", "release: v26.3.3", "spec.dcgmExporter.version"),
        ("GPU415", "release: v26.3.2\ndevicePlugin: {enabled: false}", "spec.dcgmExporter.version"),
        (
            "GPU415",
            "release: v25.10.1\ndriver: {enabled: false}\ngfd: {enabled: false}\nnodePools: [{name: a, os: rhel8.10}]",
            "spec.migManager.version",
        ),
        ("GPU415", "release: v25.10.1\ngfd: {enabled: false}\nnodePools: [{name: a, os: rhel8.10}]", ""),
    ],
)
def test_faults_of_components(rule: str, snippet: str, path: str) -> None:
    """Each of the release notes' bad combinations is found where it shows, and nowhere else."""
    assert paths(rule, snippet) == ([path] if path else [])


H100 = "{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H100-80GB-HBM3, gpusPerNode: 8%s}"
MIXED = ", sharing: {mig: {devices: [{indices: [0, 1], layout: {1g.10gb: 7}}]}}"
EVERY = ", sharing: {mig: {devices: [{indices: [0, 1, 2, 3, 4, 5, 6, 7], layout: {1g.10gb: 7}}]}}"
WHOLE = ", sharing: {mig: {layout: {1g.10gb: 7}}}"


@pytest.mark.parametrize(
    ("version", "sharing", "warned"),
    [
        ("570.124.06", MIXED, True),
        ("570.158.01", MIXED, True),
        ("570.172.08", MIXED, False),
        ("570.158.01", WHOLE, False),
        ("570.158.01", EVERY, False),
        ("570.158.01", "", False),
    ],
)
def test_drivers_that_mix_mig_and_whole_gpus(version: str, sharing: str, warned: bool) -> None:
    """570.124.06 to 570.158.01 can't schedule whole GPUs on nodes that have both."""
    snippet = f"driver: {{version: {version}}}\nnodePools: [{H100 % sharing}]"
    assert paths("GPU415", snippet) == (["spec.driver.version"] if warned else [])


def test_mig_on_rtx_pro_6000() -> None:
    """575.57.08 has no MIG on RTX PRO 6000 Blackwell, and on other boards it has."""
    pool = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: %s, sharing: {mig: {config: all-1g.24gb}}}]"
    board = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"
    assert paths("GPU415", "driver: {version: 575.57.08}\n" + pool % board)
    assert not paths("GPU415", "driver: {version: 580.173.02}\n" + pool % board)
    assert not paths("GPU415", "driver: {version: 575.57.08}\n" + pool % "NVIDIA-B200")


def test_coherent_memory_is_a_note() -> None:
    """On Grace systems MIG and GPUDirect Storage may not go together with the driver's way to manage memory."""
    pool = "nodePools: [{name: a, os: ubuntu24.04, gpuProduct: %s, gpusPerNode: 4}]\ngds: {enabled: true}"
    assert paths("GPU416", pool % "NVIDIA-GB200") == ["spec.driver.version"]
    assert not paths("GPU416", pool % "NVIDIA-B200")


@pytest.mark.parametrize("release", releases.names())
def test_a_plain_policy_has_no_errors(release: str) -> None:
    """A pool of Ubuntu 22.04 with H100s can be had with every release."""
    spec = loaded(f"release: {release}").spec
    found = [finding for rule in all_rules() if rule.over == "spec" for finding in rule.findings(spec)]
    assert [finding for finding in found if finding.severity == "error"] == []
