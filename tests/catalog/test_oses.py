"""Operating systems: names, tags of driver images, directories for packages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import oses, releases
from gpustack.catalog.oses import OsFamily, UnknownOS, operating_system, os_family, os_id, os_names, os_tag

TAGS = {
    # as three releases rendered them: v25.10.1, v26.3.1, v26.7.0
    "ubuntu22.04": ("ubuntu22.04", "ubuntu22.04", "ubuntu22.04"),
    "rhel8.10": ("rhel8.10", "rhel8.10", "rhel8"),
    "rhel9.4": ("rhel9.4", "rhel9.4", "rhel9"),
    "rhel10.0": ("rhel10.0", "rhel10", "rhel10"),
    "rocky9.4": ("rocky9.4", "rocky9", "rocky9"),
    "ol8.9": ("ol8.9", "ol8.9", "ol8"),
    "sles15.6": ("sles15.6", "sles15.6", "sles15.6"),
    "sl-micro6.1": ("sl-micro6.1", "sl-micro6.1", "sl-micro6.1"),
    "rhcos4.18": ("rhcos4.18", "rhcos4.18", "rhcos4.18"),
    "debian12": ("debian12", "debian12", "debian12"),
    "almalinux9.4": ("almalinux9.4", "almalinux9.4", "almalinux9.4"),
}

APT = OsFamily("apt", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates")
YUM = OsFamily("yum", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem")
ZYPP = OsFamily("zypp", "/etc/zypp/repos.d", "/etc/pki/trust/anchors")

FAMILIES = {
    "ubuntu22.04": (APT, APT, APT),
    "debian12": (None, APT, APT),
    "rhel9.4": (YUM, YUM, YUM),
    "rhcos4.18": (YUM, YUM, YUM),
    "centos7": (YUM, YUM, YUM),
    "rocky9.4": (None, YUM, YUM),
    "ol9.4": (None, None, YUM),
    "sles15.6": (None, ZYPP, ZYPP),
    "sl-micro6.1": (None, ZYPP, ZYPP),
    "talos1.10": (None, None, None),
    "almalinux9.4": (None, None, None),
}

LINES = ("v25.10.1", "v26.3.1", "v26.7.0")


@pytest.mark.parametrize("os", TAGS)
def test_tags_follow_the_release(os: str) -> None:
    """Each release cuts versions of its own set of systems to the major number; the newest is the default."""
    assert tuple(os_tag(os, release) for release in LINES) == TAGS[os]
    assert os_tag(os) == TAGS[os][-1]


@pytest.mark.usefixtures("as_of_v26_7")
def test_tags_of_patches_are_those_of_their_line() -> None:
    """The rules changed with v26.3.0 and v26.7.0, not within a line."""
    for release in releases.names():
        line = next(known for known in LINES if known.rpartition(".")[0] == release.rpartition(".")[0])
        assert [os_tag(os, release) for os in TAGS] == [os_tag(os, line) for os in TAGS]


@pytest.mark.parametrize("os", FAMILIES)
def test_package_directories_follow_the_release(os: str) -> None:
    """Repositories and certificates go where the system reads them; systems that a release does not know have none."""
    assert tuple(os_family(os, release) for release in LINES) == FAMILIES[os]
    assert os_family(os) == FAMILIES[os][-1]


@pytest.mark.parametrize(
    ("os", "parts"),
    [
        ("ubuntu22.04", ("ubuntu", "22.04")),
        ("rhel9.4", ("rhel", "9.4")),
        ("sl-micro6.1", ("sl-micro", "6.1")),
        ("debian12", ("debian", "12")),
    ],
)
def test_name_and_version(os: str, parts: tuple[str, str]) -> None:
    """A system splits into the os-release fields that NFD labels carry."""
    assert os_id(os) == parts


@given(st.from_regex(r"[a-z]{2,12}", fullmatch=True), st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2})?", fullmatch=True))
def test_any_name_and_version_split_where_they_were_joined(name: str, version: str) -> None:
    """Joining and splitting are inverse, for any system."""
    assert os_id(name + version) == (name, version)


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("Ubuntu 22.04", "ubuntu22.04"),
        ("ubuntu-22.04", "ubuntu22.04"),
        ("ubunut22.04", "ubuntu22.04"),
        ("RHEL 9.4", "rhel9.4"),
        ("ubuntu", "ubuntu22.04"),
        ("22.04", "ubuntu22.04"),
        ("rocky-9.7", "rocky9.7"),
    ],
)
def test_unknown_system_names_the_nearest(written: str, nearest: str) -> None:
    """Other spellings and typos lead to the system that was meant."""
    with pytest.raises(UnknownOS) as caught:
        operating_system(written)
    assert caught.value.nearest[0] == nearest


@pytest.mark.parametrize("text", ["", "ubuntu", "Ubuntu22.04", "ubuntu 22.04", "22.04", "ubuntu22.04\n", "ubuntu２２"])
def test_texts_of_another_form_are_refused(text: str) -> None:
    """A tag is never made of something that is no system and version."""
    with pytest.raises(UnknownOS):
        os_tag(text)


def test_who_publishes_driver_images() -> None:
    """NVIDIA has images for some systems, SUSE for its own; images of others have to be built."""
    images = {name: operating_system(f"{name}1").driver_image for name in oses.os_ids()}
    assert {name for name, who in images.items() if who == "nvidia"} == {"ubuntu", "rhel", "rhcos", "rocky"}
    assert {name for name, who in images.items() if who == "vendor"} == {"sles", "sl-micro"}


@pytest.mark.parametrize("release", releases.names())
def test_supported_systems_are_known(release: str) -> None:
    """Each system in a support table is one that the catalogue knows, with driver images of NVIDIA."""
    assert os_names(release)
    for os in os_names(release):
        assert operating_system(os).driver_image == "nvidia"


def test_supported_systems_by_release() -> None:
    """Ubuntu 26.04 came with v26.7, Rocky with v26.3."""
    assert [("ubuntu26.04" in os_names(release), "rocky9.7" in os_names(release)) for release in LINES] == [
        (False, False), (False, True), (True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("os", "published"),
    [
        ("ubuntu22.04", True),
        ("ubuntu23.10", False),
        ("ubuntu26.04", True),
        ("rhel9.4", True),
        ("rhel7.9", False),
        ("rocky10.1", True),
        ("rhcos4.18", True),
        ("sles15.6", False),
        ("debian12", False),
    ],
)
def test_versions_with_driver_images(os: str, published: bool) -> None:
    """NVIDIA publishes for long-term support releases of Ubuntu, for EL 8 and newer, and for RHCOS."""
    assert operating_system(os).published is published


def test_what_components_meet_on_a_system() -> None:
    """SELinux enforces on Red Hat's family; Amazon Linux 2 and EL 7 have an old C library."""
    assert {name for name in oses.os_ids() if operating_system(f"{name}9").selinux} == {
        "rhel",
        "rhcos",
        "centos",
        "rocky",
        "ol",
    }
    old = ("amzn2", "centos7.9", "rhel7", "ol7.9")
    assert all(operating_system(os).ancient for os in old)
    assert not any(operating_system(os).ancient for os in ("amzn2023", "rhel8.10", "ubuntu20.04", "ol8.9"))
    assert operating_system("rhel9.4").name == "Red Hat Enterprise Linux 9.4"
