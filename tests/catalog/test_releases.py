"""Releases: complete, consistent, cheap to read, and helpful about names that aren't there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from gpustack.catalog import _data, _versions, fields, releases
from gpustack.catalog.releases import UnknownImage, UnknownRelease, release

NAMES = ["v25.10.0", "v25.10.1", "v26.3.0", "v26.3.1", "v26.3.2", "v26.3.3", "v26.7.0"]

NOT_YET = {
    "v25.10.0": {"kataSandboxDevicePlugin", "gpuCluster.draDriver"},
    "v25.10.1": {"kataSandboxDevicePlugin", "gpuCluster.draDriver"},
    "v26.3.0": {"gpuCluster.draDriver"},
    "v26.3.1": {"gpuCluster.draDriver"},
    "v26.3.2": {"gpuCluster.draDriver"},
    "v26.3.3": {"gpuCluster.draDriver"},
}
"""Components of the newest release that older ones did not have: kata sandbox from v26.3.0, DRA from v26.7.0."""

GONE = {"operator.initContainer", "kataManager"}
"""Components of the oldest release that newer charts have no image for."""

VERSIONS = {
    # what differs between any two releases, as the tags of NVIDIA/gpu-operator have it, in the order of SECTIONS
    "v25.10.0": """580.95.05 v0.9.0 v1.18.0 v0.18.0 4.4.1-2-ubuntu22.04 4.4.1-4.6.0-distroless v0.13.0
                   2.26.6 v2.5.1 v0.4.1 v1.4.0 v0.1.1""",
    "v25.10.1": """580.105.08 v0.9.1 v1.18.1 v0.18.1 4.4.2-1-ubuntu22.04 4.4.2-4.7.0-distroless v0.13.1
                   2.26.6 v2.5.1 v0.4.1 v1.4.0 v0.1.1""",
    "v26.3.0": """580.126.20 v0.10.0 v1.19.0 v0.19.0 4.5.2-1-ubuntu22.04 4.5.1-4.8.0-distroless v0.14.0
                  2.27.3 v2.5.1 v0.4.2 v1.5.0 v0.3.0""",
    "v26.3.1": """580.126.20 v0.10.0 v1.19.0 v0.19.0 4.5.2-1-ubuntu22.04 4.5.1-4.8.0-distroless v0.14.0
                  2.27.3 v2.5.2 v0.4.2 v1.5.0 v0.4.0""",
    "v26.3.2": """580.126.20 v0.11.0 v1.19.1 v0.19.2 4.5.2-1-ubuntu22.04 4.5.3-4.8.2-distroless v0.14.2
                  2.27.3 v2.5.2 v0.4.2 v1.5.0 v0.4.0""",
    "v26.3.3": """580.126.20 v0.11.0 v1.19.1 v0.19.3 4.5.2-1-ubuntu22.04 4.5.3-4.8.2-distroless v0.14.2
                  2.27.3 v2.5.2 v0.4.2 v1.5.0 v0.4.0""",
    "v26.7.0": """595.91.07 v0.12.0 v1.20.0 v0.20.0 4.6.0-1-ubuntu24.04 4.6.0-4.8.3-distroless v0.15.0
                  2.29.4 v2.6 v0.5.0 v1.6.0 v0.4.3""",
}
SECTIONS = """driver driver.manager toolkit devicePlugin dcgm dcgmExporter migManager
              gds gdrcopy vgpuDeviceManager sandboxDevicePlugin ccManager""".split()


def paths(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields that a spec tree sets, with [] for the elements of lists; maps with free keys count as one."""
    inner = path not in fields.leaves("ClusterPolicy")
    if isinstance(tree, dict) and tree and inner:
        for key, value in tree.items():
            yield from paths(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list) and any(isinstance(value, dict) for value in tree):
        for value in tree:
            yield from paths(value, f"{path}[]")
    else:
        yield path, tree


def test_names_are_all_releases_oldest_first(newest: str) -> None:
    """Every release of the three lines is there, what came later behind them, and the newest is last."""
    assert releases.names()[: len(NAMES)] == NAMES
    assert newest == releases.names()[-1] == max(releases.names(), key=_versions.key)


def test_names_are_ordered_as_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """v26.10 will come after v26.7, though not in the alphabet."""
    monkeypatch.setattr(_data, "listing", lambda folder: ("v26.10.0", "v26.7.0"))
    assert releases.names() == ["v26.7.0", "v26.10.0"]


def test_names_cannot_be_changed_by_a_caller() -> None:
    """A caller that sorts or empties the list of names does not change it for others."""
    before = releases.names()
    releases.names().clear()
    assert releases.names() == before


@pytest.mark.parametrize("name", NAMES)
def test_every_release_has_every_component(name: str) -> None:
    """A release names each component of the newest, apart from those that did not exist yet."""
    newest = set(release("v26.7.0").images)
    assert newest - set(release(name).images) == NOT_YET.get(name, set())
    assert set(release(name).images) - newest <= GONE


@pytest.mark.parametrize("name", NAMES)
def test_every_image_is_whole_or_documented_as_not(name: str) -> None:
    """Only the vGPU manager, which everybody builds, lacks repository and version."""
    for section, image in release(name).images.items():
        if section == "vgpuManager":
            assert (image.repository, image.image, image.version) == (None, "vgpu-manager", None)
        else:
            assert image.repository
            assert image.image
            assert image.version
            assert image.reference == f"{image.repository}/{image.image}:{image.version}"


@pytest.mark.parametrize("name", NAMES)
def test_component_versions_are_those_of_the_release(name: str) -> None:
    """Each release runs the versions that its chart has, also where its file holds a difference only."""
    assert [release(name).image(section).version for section in SECTIONS] == VERSIONS[name].split()
    assert release(name).image("validator").version == name


@pytest.mark.parametrize("name", NAMES)
def test_images_stand_in_their_sections(name: str) -> None:
    """The default tree holds each image where the spec has it, with the chart's pull policy."""
    chosen = release(name)
    for section, image in chosen.images.items():
        if section.startswith("gpuCluster."):
            continue
        tree: Any = chosen.defaults
        for step in section.split("."):
            tree = tree[step]
        assert tree.get("repository") == image.repository
        assert tree["image"] == image.image
        assert tree.get("version") == image.version
        assert tree["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("name", NAMES)
def test_every_default_is_a_field_that_the_release_has(name: str) -> None:
    """No default is misspelt, and none is older than its field: an API server would prune it."""
    known = fields.fields("ClusterPolicy")
    for path, value in paths(release(name).defaults):
        since = known[path].since
        assert since is None or _versions.key(since) <= _versions.key(name), path
        assert value is not None, path


@pytest.mark.parametrize("name", NAMES)
def test_defaults_hold_nothing_of_helm_or_a_cluster(name: str) -> None:
    """Labels of the chart would roll every pod; nodes, namespaces and versions of Kubernetes are a policy's own."""
    defaults = release(name).defaults
    assert "labels" not in defaults["daemonsets"]
    assert {"cluster", "nodePools", "release", "gpuCluster"}.isdisjoint(defaults)


def test_defaults_that_changed_between_lines() -> None:
    """What flipped between releases is what a policy without the field gets from its release."""
    old, middle, new = (release(name).defaults for name in ("v25.10.1", "v26.3.1", "v26.7.0"))
    assert [tree["dcgmExporter"]["serviceMonitor"]["enabled"] for tree in (old, middle, new)] == [False, False, True]
    assert [tree["dcgmExporter"]["serviceMonitor"].get("scrapeTimeout") for tree in (old, middle, new)] == [
        None,
        None,
        "10s",
    ]
    assert [tree["ccManager"]["enabled"] for tree in (old, middle, new)] == [False, True, True]
    assert [tree["ccManager"]["defaultMode"] for tree in (old, middle, new)] == ["off", "on", "on"]
    assert [tree["sandboxWorkloads"].get("mode") for tree in (old, middle, new)] == [None, "kubevirt", "kubevirt"]
    assert [tree["vfioManager"]["image"] for tree in (old, middle, new)] == [
        "cuda",
        "k8s-driver-manager",
        "k8s-driver-manager",
    ]
    assert [("initContainer" in tree["operator"]) for tree in (old, middle, new)] == [True, False, False]
    assert [("image" in tree["kataManager"]) for tree in (old, middle, new)] == [True, False, False]


def test_variable_of_the_cc_manager_goes_with_v26_3_1() -> None:
    """v26.3.0 still has CC_CAPABLE_DEVICE_IDS, v26.3.1 and what builds on it no longer."""
    assert [bool(release(name).defaults["ccManager"].get("env")) for name in NAMES] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_defaults_of_the_newest_release() -> None:
    """Spot checks of what the chart writes for an empty values file, in the types that it writes."""
    defaults = release("v26.7.0").defaults
    assert defaults["daemonsets"]["rollingUpdate"] == {"maxUnavailable": "1"}
    assert defaults["daemonsets"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]
    assert defaults["driver"]["upgradePolicy"]["maxUnavailable"] == "25%"
    assert defaults["driver"]["licensingConfig"] == {"secretName": "", "nlsEnabled": True}
    assert defaults["migManager"]["config"] == {"default": "all-disabled"}
    assert defaults["vgpuDeviceManager"]["config"] == {"name": "", "default": "default"}
    assert {name for name, section in defaults.items() if section.get("enabled") is False} == {
        "psa", "vgpuManager", "kataManager", "dcgm", "nodeStatusExporter", "gds", "gdrcopy", "sandboxWorkloads",
    }  # fmt: skip


def test_support_ranges() -> None:
    """A new minor version of Kubernetes belongs to the patch that brought it, not to its line."""
    assert [release(name).kubernetes_range for name in NAMES] == [
        ("1.30", "1.34"), ("1.30", "1.35"),
        ("1.32", "1.35"), ("1.32", "1.35"), ("1.32", "1.36"), ("1.32", "1.36"),
        ("1.33", "1.36"),
    ]  # fmt: skip
    assert release("v26.7.0").openshift_range == ("4.18", "4.22")


def test_nfd_image_belongs_to_the_release() -> None:
    """NFD comes in the version of the chart's own dependency."""
    versions = ["v0.18.2", "v0.18.2", "v0.18.3", "v0.18.3", "v0.18.3", "v0.18.3", "v0.19.0"]
    assert [release(name).nfd_version for name in NAMES] == versions
    assert release("v26.7.0").nfd_image.reference == "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"


def test_image_reference_rules() -> None:
    """A digest follows @; an image without repository and version is a full path."""
    digest = "sha256:" + "0" * 64
    assert releases.Image("r.example/a", "driver", digest).reference == f"r.example/a/driver@{digest}"
    assert releases.Image(None, "r.example/a/driver:1", None).reference == "r.example/a/driver:1"


def test_image_of_a_section_that_has_none() -> None:
    """A misspelt section names the one that was meant."""
    with pytest.raises(UnknownImage) as caught:
        release("v26.7.0").image("driver.manger")
    assert caught.value.nearest[0] == "driver.manager"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("v26.7", "v26.7.0"),
        ("26.7.0", "v26.7.0"),
        ("v26.3.x", "v26.3.3"),
        ("V26.3", "v26.3.3"),
        ("v26.3.9", "v26.3.3"),
        ("26", "v26.7.0"),
        ("v25.3.4", "v25.10.1"),
        ("v24.9.2", "v25.10.0"),
        ("v27.1.0", "v26.7.0"),
        ("latest", "v26.7.0"),
        ("", "v26.7.0"),
        ("../releases/v26.7.0", "v26.7.0"),
    ],
)
@pytest.mark.usefixtures("as_of_v26_7")
def test_unknown_release_names_the_nearest(written: str, nearest: str) -> None:
    """Whoever writes a line, forgets the v or asks for a release that is not there yet learns what there is."""
    with pytest.raises(UnknownRelease) as caught:
        release(written)
    assert caught.value.nearest[0] == nearest
    assert nearest in str(caught.value)


def test_unknown_names_survive_another_process() -> None:
    """The error keeps name and suggestions when a worker process sends it back."""
    with pytest.raises(UnknownRelease) as caught:
        release("v26.7")
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert (type(copied), copied.name, copied.nearest) == (UnknownRelease, "v26.7", ("v26.7.0",))


def test_a_copy_of_the_defaults_is_the_callers_own() -> None:
    """Changing a copy changes neither the release nor the next copy."""
    copied = release("v26.7.0").default_spec()
    copied["driver"]["enabled"] = "changed"
    copied["daemonsets"]["tolerations"].append({})
    assert release("v26.7.0").defaults["driver"]["enabled"] is True
    assert len(release("v26.7.0").default_spec()["daemonsets"]["tolerations"]) == 1


def test_building_on_a_release_leaves_it_as_it_was() -> None:
    """v26.3.3 is written as a difference to v26.3.2; reading it first does not change v26.3.2 or v26.3.1."""
    releases.release.cache_clear()
    assert release("v26.3.3").image("devicePlugin").version == "v0.19.3"
    assert release("v26.3.2").image("devicePlugin").version == "v0.19.2"
    assert release("v26.3.1").image("devicePlugin").version == "v0.19.0"


def test_reading_a_release_reads_nothing_else(files_read: list[str]) -> None:
    """One release costs its own file and those of its bases: no other release, no MIG, no platforms."""
    releases.release.cache_clear()
    release("v26.7.0")
    assert files_read == ["releases/v26.7.0"]
    files_read.clear()
    release("v26.3.3")
    assert set(files_read) == {"releases/v26.3.3", "releases/v26.3.2", "releases/v26.3.1"}
